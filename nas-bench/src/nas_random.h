/* The pseudo-random sequence of the NAS suite: x(k+1) = 5**13 * x(k) mod 2**46, whose element k has the
   value x(k) * 2**-46. */
#ifndef NAS_RANDOM_H
#define NAS_RANDOM_H

#include <stdint.h>

/* The multiplier and the state before the first element. */
static const uint64_t nas_multiplier = 1220703125, nas_seed = 314159265;

/* a * b mod 2**46. Unsigned products lose bits from 64 on, which the remainder does not need. */
static inline uint64_t nas_product(uint64_t a, uint64_t b)
{
    return a * b & ((UINT64_C(1) << 46) - 1);
}

/* Goes on by one element and returns its value. */
static inline double nas_next(uint64_t *state)
{
    *state = nas_product(nas_multiplier, *state);
    return (double)*state * 0x1p-46;
}

/* The state `count` elements after the seed. */
static inline uint64_t nas_state(uint64_t count)
{
    uint64_t state = nas_seed, power = nas_multiplier;
    for (; count > 0; count >>= 1) {
        if (count & 1)
            state = nas_product(state, power);
        power = nas_product(power, power);
    }
    return state;
}

#endif
