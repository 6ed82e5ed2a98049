/* Upwards, one stream. Block sizes are what the 16 registers hold at 16 bytes, and as many lines at the
 * greater widths, so that members of one name differ in nothing but the width. */

#include "common.inc"

/* reg: rdi or rsi, the pointer that is aligned to 64 bytes. */
    .macro FORWARD name, w, reg, nt, alt, hint, dist
FUNCTION \name
    PROLOGUE
    ALIGN_FORWARD \w, \reg
    BLOCKS_FORWARD \w, 256, \nt, \alt, \hint, \dist
    FINISH_FORWARD \w, \nt
END_FUNCTION \name
    .endm

    FORWARD sse2,                 16, rdi, 0, 0, none, 0
    FORWARD sse2_alt,             16, rdi, 0, 1, none, 0
    FORWARD sse2_src,             16, rsi, 0, 0, none, 0
    FORWARD sse2_pft0_512,        16, rdi, 0, 0, t0, 512
    FORWARD sse2_pft0_1024,       16, rdi, 0, 0, t0, 1024
    FORWARD sse2_pfnta_512,       16, rdi, 0, 0, nta, 512
    FORWARD sse2_pfw_512,         16, rdi, 0, 0, w, 512
    FORWARD sse2_nt,              16, rdi, 1, 0, none, 0
    FORWARD sse2_nt_pfnta_512,    16, rdi, 1, 0, nta, 512
    FORWARD sse2_nt_pft0_1024,    16, rdi, 1, 0, t0, 1024

    FORWARD avx2,                 32, rdi, 0, 0, none, 0
    FORWARD avx2_alt,             32, rdi, 0, 1, none, 0
    FORWARD avx2_src,             32, rsi, 0, 0, none, 0
    FORWARD avx2_pft0_256,        32, rdi, 0, 0, t0, 256
    FORWARD avx2_pft0_512,        32, rdi, 0, 0, t0, 512
    FORWARD avx2_pft0_1024,       32, rdi, 0, 0, t0, 1024
    FORWARD avx2_pft0_2048,       32, rdi, 0, 0, t0, 2048
    FORWARD avx2_pft1_1024,       32, rdi, 0, 0, t1, 1024
    FORWARD avx2_pfnta_512,       32, rdi, 0, 0, nta, 512
    FORWARD avx2_pfw_512,         32, rdi, 0, 0, w, 512
    FORWARD avx2_pfw_1024,        32, rdi, 0, 0, w, 1024
    FORWARD avx2_nt,              32, rdi, 1, 0, none, 0
    FORWARD avx2_nt_pfnta_512,    32, rdi, 1, 0, nta, 512
    FORWARD avx2_nt_pft0_1024,    32, rdi, 1, 0, t0, 1024
    FORWARD avx2_nt_pft0_2048,    32, rdi, 1, 0, t0, 2048

    FORWARD avx512,               64, rdi, 0, 0, none, 0
    FORWARD avx512_alt,           64, rdi, 0, 1, none, 0
    FORWARD avx512_src,           64, rsi, 0, 0, none, 0
    FORWARD avx512_pft0_256,      64, rdi, 0, 0, t0, 256
    FORWARD avx512_pft0_512,      64, rdi, 0, 0, t0, 512
    FORWARD avx512_pft0_1024,     64, rdi, 0, 0, t0, 1024
    FORWARD avx512_pft0_2048,     64, rdi, 0, 0, t0, 2048
    FORWARD avx512_pft1_1024,     64, rdi, 0, 0, t1, 1024
    FORWARD avx512_pfnta_512,     64, rdi, 0, 0, nta, 512
    FORWARD avx512_pfw_512,       64, rdi, 0, 0, w, 512
    FORWARD avx512_pfw_1024,      64, rdi, 0, 0, w, 1024
    FORWARD avx512_nt,            64, rdi, 1, 0, none, 0
    FORWARD avx512_nt_pfnta_512,  64, rdi, 1, 0, nta, 512
    FORWARD avx512_nt_pft0_1024,  64, rdi, 1, 0, t0, 1024
    FORWARD avx512_nt_pft0_2048,  64, rdi, 1, 0, t0, 2048

    .section .note.GNU-stack, "", @progbits
