/* What all routines share: small sizes, overlapping ranges, and the copy that works before anything
 * else does. SSE2 alone, no data, no relocation, memmove's contract. */

#include "common.inc"

/* copytune_small: n <= 256, ranges may overlap: every byte is read before the first is written.
 * rax = dst already. */
    .macro BOTH_ENDS bytes
    .set ct_i, 0
    .rept (\bytes) / 16
    LOAD 16, %(ct_i), rsi, %(ct_i * 16)
    LOAD 16, %(ct_i + (\bytes) / 16), rsi+rdx, %(ct_i * 16 - (\bytes))
    .set ct_i, ct_i + 1
    .endr
    .set ct_i, 0
    .rept (\bytes) / 16
    STORE 16, %(ct_i), rdi, %(ct_i * 16), 0
    STORE 16, %(ct_i + (\bytes) / 16), rdi+rdx, %(ct_i * 16 - (\bytes)), 0
    .set ct_i, ct_i + 1
    .endr
    ret
    .endm

FUNCTION small
    cmp rdx, 16
    jae .Lfrom_16
    cmp edx, 8
    jae .Lfrom_8
    cmp edx, 4
    jae .Lfrom_4
    cmp edx, 1
    ja .Lfrom_2
    jb .Lnothing
    movzx ecx, byte ptr [rsi]
    mov [rdi], cl
.Lnothing:
    ret
.Lfrom_2:
    movzx ecx, word ptr [rsi]
    movzx r8d, word ptr [rsi + rdx - 2]
    mov [rdi], cx
    mov [rdi + rdx - 2], r8w
    ret
.Lfrom_4:
    mov ecx, [rsi]
    mov r8d, [rsi + rdx - 4]
    mov [rdi], ecx
    mov [rdi + rdx - 4], r8d
    ret
.Lfrom_8:
    mov rcx, [rsi]
    mov r8, [rsi + rdx - 8]
    mov [rdi], rcx
    mov [rdi + rdx - 8], r8
    ret
.Lfrom_16:
    cmp edx, 32
    ja .Lfrom_33
    BOTH_ENDS 16
.Lfrom_33:
    cmp edx, 64
    ja .Lfrom_65
    BOTH_ENDS 32
.Lfrom_65:
    cmp edx, 128
    ja .Lfrom_129
    BOTH_ENDS 64
.Lfrom_129:
    BOTH_ENDS 128
END_FUNCTION small

/* copytune_builtin_copy: memmove by itself, for calls that come before anything is known. */
FUNCTION builtin_copy
    mov rax, rdi
    cmp rdx, SMALL_BYTES
    jbe copytune_small
    jmp copytune_overlapping
END_FUNCTION builtin_copy

/* The 64 bytes of one end of the range, kept in xmm8-11 while the loop may overwrite them. */
    .macro KEEP_END at, off
    .set ct_i, 0
    .rept 4
    LOAD 16, %(ct_i + 8), \at, %(\off + ct_i * 16)
    .set ct_i, ct_i + 1
    .endr
    .endm

    .macro PUT_END at
    .set ct_i, 0
    .rept 4
    STORE 16, %(ct_i + 8), \at, %(ct_i * 16), 0
    .set ct_i, ct_i + 1
    .endr
    ret
    .endm

/* copytune_overlapping: n > 256, any overlap or none; rax = dst already. Forward unless the destination
 * starts inside the source. The last block of the loop may run into the kept end, which is put last. */
FUNCTION overlapping
    mov rcx, rdi
    sub rcx, rsi
    cmp rcx, rdx
    jb .Lmove_back

    KEEP_END rsi+rdx, -64
    lea r8, [rdi + rdx - 64]
    sub rdx, 64
.Lmove_forward:
    CHUNK 16, 64, rsi, rdi, 0, 1, 0, 0
    add rsi, 64
    add rdi, 64
    sub rdx, 64
    ja .Lmove_forward
    PUT_END r8

.Lmove_back:
    KEEP_END rsi, 0
    sub rdx, 64
.Lmove_back_loop:
    CHUNK 16, 64, rsi+rdx, rdi+rdx, 64, -1, 0, 0
    sub rdx, 64
    ja .Lmove_back_loop
    PUT_END rax
END_FUNCTION overlapping

    .section .note.GNU-stack, "", @progbits
