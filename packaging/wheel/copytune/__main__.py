"""`python -m copytune` is the command `copytune`, wherever pip has put it."""

import os
import sys

from . import command

if __name__ == "__main__":
    try:
        os.execv(command(), ["copytune", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"copytune: {error}")
