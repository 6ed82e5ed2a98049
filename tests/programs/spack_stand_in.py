"""Carries out a recipe as Spack does where there is no Spack: reads it with the directives of spack.package, makes its build
environment and its install phase in a checkout, looks for the files that it promises, and prints what its users get set.
    usage: spack_stand_in.py RECIPE CHECKOUT PREFIX
Spack Packaging Guide, version 1.1. What it knows nothing of: solving for dependencies, fetching, compiler wrappers.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
import types
from pathlib import Path

# What the recipe may depend on.
KNOWN = {"c", "gmake", "rust"}


class Prefix(str):
    """spack.util.prefix.Prefix: attributes are folders below."""

    def __getattr__(self, name):
        return Prefix(os.path.join(self, name))

    def join(self, name):
        return Prefix(os.path.join(self, name))


class Environment(dict):
    """spack.util.environment.EnvironmentModifications, as far as recipes here use it."""

    def set(self, name, value):
        if not isinstance(value, str):
            sys.exit(f"{name} is set to {value!r}, which is no text")
        self[name] = value


class Package:
    """spack_repo.builtin.build_systems.generic.Package: one phase, install."""

    sanity_check_is_file = ()

    def __init__(self, stage, prefix):
        self.stage, self.prefix = types.SimpleNamespace(path=stage), prefix


# The directives of the recipe: name, first argument, named ones.
said = []


def is_text(value):
    return isinstance(value, str) and value != ""


def directive(name, first, known):
    """One that takes a first argument for which `first` holds, and the named ones in `known`."""

    def noted(value, **options):
        if not first(value) or not set(options) <= known:
            sys.exit(f"{name}({value!r}, {options}) is no directive")
        said.append((name, value, options))

    return noted


def recipe(path):
    """The recipe's class and module."""
    package = types.ModuleType("spack.package")
    package.Package = Package
    package.license = directive("license", is_text, {"checked_by", "when"})
    package.version = directive("version", is_text, {"branch", "tag", "commit", "sha256", "preferred", "deprecated"})
    package.depends_on = directive("depends_on", lambda value: value.split("@")[0] in KNOWN, {"type", "when", "patches"})
    package.requires = directive("requires", lambda value: value.split("=")[0] in ("target", "platform"), {"msg", "when", "policy"})
    sys.modules["spack"] = types.ModuleType("spack")
    sys.modules["spack.package"] = package
    found = importlib.util.spec_from_file_location("package", path)
    module = importlib.util.module_from_spec(found)
    sys.dont_write_bytecode = True
    found.loader.exec_module(module)
    classes = [it for it in vars(module).values() if isinstance(it, type) and issubclass(it, Package) and it is not Package]
    if [it.__name__ for it in classes] != [Path(path).parent.name.capitalize()]:
        sys.exit(f"{path} is to hold one class that is named as its folder, and has {classes}")
    return classes[0], module


def main():
    path, checkout, prefix = sys.argv[1:]
    kind, module = recipe(path)
    if not kind.__doc__ or not any(name == "version" for name, _, _ in said):
        sys.exit("a recipe needs a description and a version")
    if kind.git != Path(checkout).resolve().as_uri():
        sys.exit(f"the sources are {kind.git}, not {checkout}")
    with tempfile.TemporaryDirectory() as stage:
        package = kind(stage, Prefix(prefix))
        build, run = Environment(), Environment()
        package.setup_build_environment(build)
        if not build.pop("CARGO_HOME").startswith(stage):
            sys.exit("what cargo downloads is to stay with the build")
        # Otherwise all would be downloaded and built anew.
        inside = {**os.environ, **build}
        module.make = lambda *words: subprocess.run(["make", *words], cwd=checkout, env=inside, check=True)
        package.install(None, package.prefix)
        for file in kind.sanity_check_is_file:
            if not os.path.isfile(os.path.join(prefix, file)):
                sys.exit(f"{file} was promised and is not there")
        package.setup_run_environment(run)
    for name, value in run.items():
        print(f"{name}={value}")


main()
