"""Loads the MPI library that its argument names, and asks which functions there are, before and after MPI_Init."""

import ctypes
import sys

NAMES = ["MPI_Send", "MPI_Send_c", "PMPI_Send_c", "MPI_Bcast_c", "MPI_Isendrecv", "MPI_Session_init", "MPI_Psend_init"]
NAMES += ["MPI_Bcast_init", "MPIX_Bcast_init", "MPI_Type_free", "MPI_No_such_function"]

library = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
everywhere = ctypes.CDLL(None)


def ask(when):
    return "".join(f"{when} {name} {hasattr(library, name)} {hasattr(everywhere, name)}\n" for name in NAMES)


before = ask("before")
assert everywhere.MPI_Init(None, None) == 0
sys.stdout.write(before + ask("after"))
assert everywhere.MPI_Finalize() == 0
