"""copytune makes the messages of MPI programs faster: `copytune run -- mpirun -np 4 python program.py`.

Python needs nothing of it: the library is preloaded. This module tells where its files are.
"""

from importlib import metadata
from pathlib import Path

__all__ = ["__version__", "command", "library"]

__version__ = metadata.version("copytune")


def _installed(ending):
    for file in metadata.files("copytune") or ():
        path = Path(file.locate()).resolve()
        if path.as_posix().endswith(ending):
            return str(path)
    raise FileNotFoundError(f"{ending[1:]} is not among the installed files of copytune: install it again")


def command():
    """The path of the command `copytune`."""
    return _installed("/bin/copytune")


def library():
    """The path of libcopytune.so, for LD_PRELOAD."""
    return _installed("/lib/libcopytune.so")
