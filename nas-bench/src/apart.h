/* How far the cores of two processes lie apart. */
#ifndef APART_H
#define APART_H

/* Nanoseconds in which a cache line goes from process 0 to process 1 and back, the least of some tries; 0 where there are not just
   two processes on one host. A virtual machine's cores are moved about by its host, between neighbours and distant cores, several
   times in a second: what goes between distant ones takes up to three times as long. All processes must call it. */
double cores_apart(void);

#endif
