/* Upwards, one stream. */

#include "common.inc"

/* reg: rdi or rsi, the pointer that is aligned to 64 bytes. group: bytes that are loaded before they are stored,
 * as many for all widths, so that members of one name differ in nothing but the width. */
    .macro FORWARD name, width, reg, group, nt, alt, hint, dist
FUNCTION \name, \width
    PROLOGUE
    ALIGN_FORWARD \width, \reg
    BLOCKS_FORWARD \width, \group, \nt, \alt, \hint, \dist
    FINISH_FORWARD \width, \nt
END_FUNCTION \name
    .endm

    FORWARD sse2,                     16, rdi, 256, 0, 0, none, 0
    FORWARD sse2_alt,                 16, rdi, 256, 0, 1, none, 0
    FORWARD sse2_src,                 16, rsi, 256, 0, 0, none, 0
    FORWARD sse2_pft0_512,            16, rdi, 256, 0, 0, t0, 512
    FORWARD sse2_pft0_1024,           16, rdi, 256, 0, 0, t0, 1024
    FORWARD sse2_pfnta_512,           16, rdi, 256, 0, 0, nta, 512
    FORWARD sse2_pfw_512,             16, rdi, 256, 0, 0, w, 512
    FORWARD sse2_pft0w_512,           16, rdi, 256, 0, 0, t0w, 512
    FORWARD sse2_nt,                  16, rdi, 256, 1, 0, none, 0
    FORWARD sse2_nt_pfnta_512,        16, rdi, 256, 1, 0, nta, 512

    FORWARD avx2,                     32, rdi, 256, 0, 0, none, 0
    FORWARD avx2_alt,                 32, rdi, 256, 0, 1, none, 0
    FORWARD avx2_src,                 32, rsi, 256, 0, 0, none, 0
    FORWARD avx2_g512,                32, rdi, 512, 0, 0, none, 0
    FORWARD avx2_g512_pfw_512,        32, rdi, 512, 0, 0, w, 512
    FORWARD avx2_pft0_256,            32, rdi, 256, 0, 0, t0, 256
    FORWARD avx2_pft0_512,            32, rdi, 256, 0, 0, t0, 512
    FORWARD avx2_pft0_1024,           32, rdi, 256, 0, 0, t0, 1024
    FORWARD avx2_pft0_2048,           32, rdi, 256, 0, 0, t0, 2048
    FORWARD avx2_pft1_1024,           32, rdi, 256, 0, 0, t1, 1024
    FORWARD avx2_pft2_4096,           32, rdi, 256, 0, 0, t2, 4096
    FORWARD avx2_pfnta_512,           32, rdi, 256, 0, 0, nta, 512
    FORWARD avx2_pfw_256,             32, rdi, 256, 0, 0, w, 256
    FORWARD avx2_pfw_512,             32, rdi, 256, 0, 0, w, 512
    FORWARD avx2_pfw_2048,            32, rdi, 256, 0, 0, w, 2048
    FORWARD avx2_pft0w_512,           32, rdi, 256, 0, 0, t0w, 512
    FORWARD avx2_pft0w_1024,          32, rdi, 256, 0, 0, t0w, 1024
    FORWARD avx2_nt,                  32, rdi, 256, 1, 0, none, 0
    FORWARD avx2_nt_pfnta_512,        32, rdi, 256, 1, 0, nta, 512
    FORWARD avx2_nt_pft0_1024,        32, rdi, 256, 1, 0, t0, 1024

    FORWARD avx512,                   64, rdi, 256, 0, 0, none, 0
    FORWARD avx512_alt,               64, rdi, 256, 0, 1, none, 0
    FORWARD avx512_src,               64, rsi, 256, 0, 0, none, 0
    FORWARD avx512_g512,              64, rdi, 512, 0, 0, none, 0
    FORWARD avx512_g512_pfw_512,      64, rdi, 512, 0, 0, w, 512
    FORWARD avx512_pft0_256,          64, rdi, 256, 0, 0, t0, 256
    FORWARD avx512_pft0_512,          64, rdi, 256, 0, 0, t0, 512
    FORWARD avx512_pft0_1024,         64, rdi, 256, 0, 0, t0, 1024
    FORWARD avx512_pft0_2048,         64, rdi, 256, 0, 0, t0, 2048
    FORWARD avx512_pft1_1024,         64, rdi, 256, 0, 0, t1, 1024
    FORWARD avx512_pft2_4096,         64, rdi, 256, 0, 0, t2, 4096
    FORWARD avx512_pfnta_512,         64, rdi, 256, 0, 0, nta, 512
    FORWARD avx512_pfw_256,           64, rdi, 256, 0, 0, w, 256
    FORWARD avx512_pfw_512,           64, rdi, 256, 0, 0, w, 512
    FORWARD avx512_pfw_2048,          64, rdi, 256, 0, 0, w, 2048
    FORWARD avx512_pft0w_512,         64, rdi, 256, 0, 0, t0w, 512
    FORWARD avx512_pft0w_1024,        64, rdi, 256, 0, 0, t0w, 1024
    FORWARD avx512_nt,                64, rdi, 256, 1, 0, none, 0
    FORWARD avx512_nt_pfnta_512,      64, rdi, 256, 1, 0, nta, 512
    FORWARD avx512_nt_pft0_1024,      64, rdi, 256, 1, 0, t0, 1024

    .section .note.GNU-stack, "", @progbits
