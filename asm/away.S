/* Upwards or downwards, one stream, as the places tell. A load waits for an earlier store, not yet in the cache, to an address that is the
 * same in its last 12 bits (Intel, Optimization Reference Manual, "4-KByte aliasing"; AMD's cores compare them likewise). Upward loads do
 * so where the destination lies a little behind the source modulo 4096, downward ones where it lies a little before. */

#include "common.inc"

    .macro AWAY name, width, up, down
FUNCTION \name, \width
    mov eax, edi
    sub eax, esi
    dec eax
    and eax, PAGE_BYTES - 1
    cmp eax, PAGE_BYTES / 2 - 1
    jb copytune_\down
    jmp copytune_\up
END_FUNCTION \name
    .endm

    AWAY sse2_away,   16, sse2,   sse2_back
    AWAY avx2_away,   32, avx2,   avx2_back
    AWAY avx512_away, 64, avx512, avx512_back

    .section .note.GNU-stack, "", @progbits
