/* A thousand places of a program that make the same call, each with a return address of its own:
   switch (place) { PLACES_1000(call) }. */
#ifndef PLACES_H
#define PLACES_H

enum { PLACES = 1000, PLACES_BEGIN = __COUNTER__ + 1 };

/* What the compiler is told after the call differs, so that it cannot have one call serve several places. */
#define PLACE(call)                                                                                \
    case (__COUNTER__ - PLACES_BEGIN) / 2:                                                         \
        call;                                                                                      \
        __asm__ volatile("" : : "i"(__COUNTER__));                                                 \
        break;
#define PLACES_10(call)                                                                            \
    PLACE(call) PLACE(call) PLACE(call) PLACE(call) PLACE(call)                                    \
    PLACE(call) PLACE(call) PLACE(call) PLACE(call) PLACE(call)
#define PLACES_100(call)                                                                           \
    PLACES_10(call) PLACES_10(call) PLACES_10(call) PLACES_10(call) PLACES_10(call)                \
    PLACES_10(call) PLACES_10(call) PLACES_10(call) PLACES_10(call) PLACES_10(call)
#define PLACES_1000(call)                                                                          \
    PLACES_100(call) PLACES_100(call) PLACES_100(call) PLACES_100(call) PLACES_100(call)           \
    PLACES_100(call) PLACES_100(call) PLACES_100(call) PLACES_100(call) PLACES_100(call)
#endif
