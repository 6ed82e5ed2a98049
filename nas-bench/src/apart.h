/* How far the cores of two processes lie apart. */
#ifndef APART_H
#define APART_H

#include <mpi.h>
#include <stdbool.h>

/* Whether there are just two processes on one host. All must ask. */
bool can_measure_apart(void);
/* Nanoseconds in which a cache line goes from process 0 to process 1 and back, by this process's clock. */
double measure_apart(void);

/* Nanoseconds in which a cache line goes from process 0 to process 1 and back, the least of some tries; 0 where there are not just
   two processes on one host. A virtual machine's cores are moved about by its host, between neighbours and distant cores, several
   times in a second: what goes between distant ones takes up to three times as long. All processes must call it. It is a part of its
   caller, so that each call of it has call sites of its own: with common ones, all between two calls would look like a loop. */
static inline __attribute__((always_inline)) double cores_apart(void)
{
    if (!can_measure_apart())
        return 0;
    /* Who comes first waits inside MPI: the other may need its progress to end what it does (Open MPI, whose last word on a window of
       256 messages had found no room). */
    MPI_Barrier(MPI_COMM_WORLD);
    double apart = measure_apart();
    MPI_Bcast(&apart, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return apart;
}

#endif
