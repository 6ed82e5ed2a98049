/* The same with messages so short that notices hold them whole. */
#define LENGTH_IN_PAGES 4
#include "direct_kinds.c"
