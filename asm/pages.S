/* Upwards in several pages at once, one line of each in turn: more streams for the hardware prefetchers, which
 * do not cross a page, and more translations under way. Sizes that no group of pages fills end as one stream. */

#include "common.inc"

    .macro PAGES name, width, pages, nt, hint, dist
    LOCAL group, line, rest
FUNCTION \name, \width
    PROLOGUE
    ALIGN_FORWARD \width, rdi
    sub rdx, \pages * PAGE_BYTES
    jb rest
group:
    mov ecx, PAGE_BYTES / 64
    .p2align 5
line:
    .set ct_page, 0
    .rept \pages
    .ifnc \hint, none
    PREFETCH_LINE \hint, %(ct_page * PAGE_BYTES + \dist)
    .endif
    .set ct_page, ct_page + 1
    .endr
    LOAD_LINES \width, \pages
    STORE_LINES \width, \pages, \nt
    add rsi, 64
    add rdi, 64
    dec ecx
    jnz line
    add rsi, (\pages - 1) * PAGE_BYTES
    add rdi, (\pages - 1) * PAGE_BYTES
    sub rdx, \pages * PAGE_BYTES
    jae group
rest:
    add rdx, \pages * PAGE_BYTES
    BLOCKS_FORWARD \width, 256, \nt, 0, none, 0
    FINISH_FORWARD \width, \nt
END_FUNCTION \name
    .endm

/* The line at rsi, and those at the same place of the following pages; 4 pages of 16-byte vectors fill all registers. */
    .macro LOAD_LINES width, pages
    .set ct_i, 0
    .rept (\pages) * 64 / (\width)
    LOAD \width, %(ct_i), rsi, %((ct_i * \width / 64) * PAGE_BYTES + (ct_i * \width) % 64)
    .set ct_i, ct_i + 1
    .endr
    .endm

    .macro STORE_LINES width, pages, nt
    .set ct_i, 0
    .rept (\pages) * 64 / (\width)
    STORE \width, %(ct_i), rdi, %((ct_i * \width / 64) * PAGE_BYTES + (ct_i * \width) % 64), \nt
    .set ct_i, ct_i + 1
    .endr
    .endm

    PAGES sse2_2page,               16, 2, 0, none, 0
    PAGES sse2_nt_4page,            16, 4, 1, none, 0

    PAGES avx2_2page,               32, 2, 0, none, 0
    PAGES avx2_4page,               32, 4, 0, none, 0
    PAGES avx2_2page_pft0_256,      32, 2, 0, t0, 256
    PAGES avx2_2page_pfw_256,       32, 2, 0, w, 256
    PAGES avx2_4page_pfw_256,       32, 4, 0, w, 256
    PAGES avx2_nt_4page,            32, 4, 1, none, 0
    PAGES avx2_nt_4page_pft0_256,   32, 4, 1, t0, 256

    PAGES avx512_2page,             64, 2, 0, none, 0
    PAGES avx512_4page,             64, 4, 0, none, 0
    PAGES avx512_2page_pft0_256,    64, 2, 0, t0, 256
    PAGES avx512_2page_pfw_256,     64, 2, 0, w, 256
    PAGES avx512_4page_pfw_256,     64, 4, 0, w, 256
    PAGES avx512_nt_4page,          64, 4, 1, none, 0
    PAGES avx512_nt_4page_pft0_256, 64, 4, 1, t0, 256

    .section .note.GNU-stack, "", @progbits
