//! Call sites: what identifies one MPI call in a way that survives a restart of the program.
