/* A library to be preloaded: one byte of every 40th message that MPI_Recv or MPI_Sendrecv brings is changed, as a faulty copy
   would change it. */
#include <mpi.h>

enum { EVERY = 40 };

static void spoil(void *buffer, int count, MPI_Datatype type, int source) {
    static __thread unsigned received;
    int bytes = 0;
    MPI_Type_size(type, &bytes);
    if (source == MPI_PROC_NULL || count * bytes == 0 || ++received % EVERY != 0) return;
    ((unsigned char *)buffer)[0] ^= 0x10;
}

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status) {
    int result = PMPI_Recv(buffer, count, type, source, tag, comm, status);
    spoil(buffer, count, type, source);
    return result;
}

int MPI_Sendrecv(const void *out, int sends, MPI_Datatype out_type, int target, int out_tag, void *in, int receives,
                 MPI_Datatype in_type, int source, int in_tag, MPI_Comm comm, MPI_Status *status) {
    int result = PMPI_Sendrecv(out, sends, out_type, target, out_tag, in, receives, in_type, source, in_tag, comm, status);
    spoil(in, receives, in_type, source);
    return result;
}
