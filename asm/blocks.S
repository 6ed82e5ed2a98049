/* Upwards in blocks: those that read a block into L1 first, and those that make a page's translation known
 * before its prefetches come due. */

#include "common.inc"

/* Reads one byte of every line of a block, so that many misses are under way at once, then copies it out of L1. */
    .macro BLOCKED name, width, block, nt
    LOCAL outer, touch, inner, rest
FUNCTION \name, \width
    PROLOGUE
    ALIGN_FORWARD \width, rdi
    sub rdx, \block
    jb rest
outer:
    xor ecx, ecx
    .p2align 5
touch:
    movzx r8d, byte ptr [rsi + rcx]
    movzx r9d, byte ptr [rsi + rcx + 64]
    movzx r10d, byte ptr [rsi + rcx + 128]
    movzx r11d, byte ptr [rsi + rcx + 192]
    add ecx, 256
    cmp ecx, \block
    jb touch
    mov ecx, \block / 256
    .p2align 5
inner:
    CHUNK \width, 256, rsi, rdi, 0, 1, \nt, 0
    add rsi, 256
    add rdi, 256
    dec ecx
    jnz inner
    sub rdx, \block
    jae outer
rest:
    add rdx, \block
    BLOCKS_FORWARD \width, 256, \nt, 0, none, 0
    FINISH_FORWARD \width, \nt
END_FUNCTION \name
    .endm

/* A load (which, unlike a prefetch, is never dropped) from the page after the next one of the source, and a
 * prefetch of the destination's, which must not be read: a page that was never written would be mapped twice. */
    .macro PRIMED name, width, nt, hint, dist
    LOCAL page, near, inner, rest
FUNCTION \name, \width
    PROLOGUE
    ALIGN_FORWARD \width, rdi
    sub rdx, PAGE_BYTES
    jb rest
page:
    /* rdx + 4096 bytes are left; the byte at 8192 is one of them when rdx > 4096. */
    cmp rdx, PAGE_BYTES
    jbe near
    movzx r8d, byte ptr [rsi + 2 * PAGE_BYTES]
    prefetcht0 [rdi + 2 * PAGE_BYTES]
near:
    mov ecx, PAGE_BYTES / 256
    .p2align 5
inner:
    PREFETCH \hint, \dist, 256
    CHUNK \width, 256, rsi, rdi, 0, 1, \nt, 0
    add rsi, 256
    add rdi, 256
    dec ecx
    jnz inner
    sub rdx, PAGE_BYTES
    jae page
rest:
    add rdx, PAGE_BYTES
    BLOCKS_FORWARD \width, 256, \nt, 0, none, 0
    FINISH_FORWARD \width, \nt
END_FUNCTION \name
    .endm

    BLOCKED sse2_nt_block16k,         16, 16384, 1

    BLOCKED avx2_block4k,             32, 4096, 0
    BLOCKED avx2_nt_block16k,         32, 16384, 1

    BLOCKED avx512_block4k,           64, 4096, 0
    BLOCKED avx512_nt_block16k,       64, 16384, 1

    PRIMED sse2_pft0_1024_tlb,       16, 0, t0, 1024

    PRIMED avx2_pft0_1024_tlb,       32, 0, t0, 1024

    PRIMED avx512_pft0_1024_tlb,     64, 0, t0, 1024

    .section .note.GNU-stack, "", @progbits
