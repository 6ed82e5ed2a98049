"""The recipe for Spack. It takes the sources from the checkout in which it lies:

    spack repo add packaging/spack
    spack install copytune
"""

from pathlib import Path

from spack.package import *

try:
    from spack_repo.builtin.build_systems.generic import Package
except ImportError:
    # Before Spack 1.0 it comes with spack.package.
    pass


class Copytune(Package):
    """copytune makes the messages of MPI programs faster without changing the programs: a library that is preloaded into the ranks
    finds, while they run, the fastest way of copying at each call site."""

    git = Path(__file__).resolve().parents[4].as_uri()

    license("MIT OR Apache-2.0")

    version("main", branch="main")

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("rust@1.90:", type="build")

    requires("target=x86_64:", msg="the copy routines are written for x86-64")
    requires("platform=linux", msg="the library is preloaded as glibc's loader does it")

    sanity_check_is_file = ["bin/copytune", "lib/libcopytune.so", "include/copytune.h"]

    def setup_build_environment(self, env):
        # What cargo downloads stays with the build, and does not go to the user's home.
        env.set("CARGO_HOME", str(Path(self.stage.path) / "cargo"))

    def install(self, spec, prefix):
        make("install", f"PREFIX={prefix}")

    def setup_run_environment(self, env):
        env.set("COPYTUNE_LIB", self.prefix.lib.join("libcopytune.so"))
