/* The string instructions: the width and the order are the microcode's choice. The direction flag is
 * clear on entry (System V ABI) and is never touched: copying downwards with std is slow everywhere. */

#include "common.inc"

/* What UCX's inline copy does between 1 KiB and 8 MiB on Intel: nothing but the instruction. */
FUNCTION rep_movsb
    mov rax, rdi
    mov rcx, rdx
    rep movsb
    ret
END_FUNCTION rep_movsb

FUNCTION rep_movsb_dst
    PROLOGUE
    ALIGN_FORWARD 16, rdi
    mov rcx, rdx
    rep movsb
    ret
END_FUNCTION rep_movsb_dst

FUNCTION rep_movsq_dst
    PROLOGUE
    ALIGN_FORWARD 16, rdi
    mov rcx, rdx
    shr rcx, 3
    and edx, 7
    rep movsq
    mov rcx, [rsi + rdx - 8]
    mov [rdi + rdx - 8], rcx
    ret
END_FUNCTION rep_movsq_dst

    .section .note.GNU-stack, "", @progbits
