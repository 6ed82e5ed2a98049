/* The same with messages so short that a sender tells where they lie. */
#define LENGTH_IN_PAGES 40
#include "direct_hazards.c"
