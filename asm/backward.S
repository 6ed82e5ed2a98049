/* Downwards, one stream. The end of the destination is aligned. A source that trails the destination by
 * little more than a multiple of 4096 makes upward loads wait for earlier stores; downward ones do not. */

#include "common.inc"

    .macro BACKWARD name, width, nt, hint, dist
    LOCAL loop, rest, rest_loop, last
FUNCTION \name, \width
    PROLOGUE
    add rsi, rdx
    add rdi, rdx
    CHUNK \width, 64, rsi, rdi, 0, -1, 0, 0
    lea rcx, [rdi - 1]
    and rcx, -64
    sub rcx, rdi
    add rsi, rcx
    add rdi, rcx
    add rdx, rcx
    sub rdx, 256
    jb rest
    .p2align 5
loop:
    PREFETCH \hint, %(-256 - \dist), 256
    CHUNK \width, 256, rsi, rdi, 0, -1, \nt, 0
    sub rsi, 256
    sub rdi, 256
    sub rdx, 256
    jae loop
rest:
    add rdx, 256 - 64
    jnc last
rest_loop:
    CHUNK \width, 64, rsi, rdi, 0, -1, \nt, 0
    sub rsi, 64
    sub rdi, 64
    sub rdx, 64
    jae rest_loop
last:
    /* rdx + 64 bytes (at most 63) lie before rsi; the first 64 bytes of the range, as they lie. */
    neg rdx
    lea rsi, [rsi + rdx - 64]
    CHUNK \width, 64, rsi, rax, 0, 1, 0, 0
    EPILOGUE \width, \nt
END_FUNCTION \name
    .endm

    BACKWARD sse2_back,                16, 0, none, 0

    BACKWARD avx2_back,                32, 0, none, 0
    BACKWARD avx2_back_pft0_512,       32, 0, t0, 512
    BACKWARD avx2_back_pfw_512,        32, 0, w, 512
    BACKWARD avx2_back_nt,             32, 1, none, 0

    BACKWARD avx512_back,              64, 0, none, 0
    BACKWARD avx512_back_pft0_512,     64, 0, t0, 512
    BACKWARD avx512_back_pfw_512,      64, 0, w, 512
    BACKWARD avx512_back_nt,           64, 1, none, 0

    .section .note.GNU-stack, "", @progbits
