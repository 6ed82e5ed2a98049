/* The places where this program's own calls of madvise and mremap are bound, or those of a library: direct_bound WAY [LIBRARY]. */
#define _GNU_SOURCE
#define LENGTH_IN_PAGES 24
#include "direct_exchange.h"
#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <link.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* Where this program keeps the address of `name`; its dynamic section tells (elf(5)). */
static void **bound(const char *name) {
    const ElfW(Sym) *symbols = NULL;
    const char *strings = NULL;
    const ElfW(Rela) *tables[2] = {NULL, NULL};
    size_t bytes[2] = {0, 0};
    struct link_map *map = NULL;
    CHECK(dlinfo(dlopen(NULL, RTLD_LAZY), RTLD_DI_LINKMAP, &map) == 0);
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) switch (entry->d_tag) {
        case DT_SYMTAB: symbols = (const void *)entry->d_un.d_ptr; break;
        case DT_STRTAB: strings = (const void *)entry->d_un.d_ptr; break;
        case DT_RELA: tables[0] = (const void *)entry->d_un.d_ptr; break;
        case DT_RELASZ: bytes[0] = entry->d_un.d_val; break;
        case DT_JMPREL: tables[1] = (const void *)entry->d_un.d_ptr; break;
        case DT_PLTRELSZ: bytes[1] = entry->d_un.d_val; break;
        }
    for (int table = 0; table < 2; table++)
        for (size_t i = 0; i < bytes[table] / sizeof(ElfW(Rela)); i++) {
            const ElfW(Rela) *entry = &tables[table][i];
            if (strcmp(strings + symbols[ELF64_R_SYM(entry->r_info)].st_name, name) == 0)
                return (void **)(map->l_addr + entry->r_offset);
        }
    CHECK(!"bound");
    return NULL;
}

/* Discarded pages are zeroes, promoted or not. */
static void discard(unsigned char *out) {
    CHECK(madvise(out, LENGTH, MADV_DONTNEED) == 0);
    for (size_t i = 0; i < LENGTH; i++) CHECK(out[i] == 0);
}

/* Another thread that was binding the function meanwhile has set it back. */
static void set_back(void) {
    unsigned char *out = pages(NULL, LENGTH), *other = pages(NULL, LENGTH);
    void **place = bound("madvise");
    discard(out);
    for (int round = 0; round < ROUNDS; round++) {
        void *libc = dlsym(RTLD_NEXT, "madvise");
        swap(out, LENGTH);
        *place = libc;
        /* A promotion, or 64 messages. */
        if (round % 2)
            swap(other, LENGTH);
        else
            for (int i = 0; i < 80; i++) swap_once(out, LENGTH);
        discard(out);
        CHECK(munmap(other, LENGTH) == 0);
        other = pages(NULL, LENGTH);
    }
    CHECK(munmap(out, LENGTH) == 0);
    CHECK(munmap(other, LENGTH) == 0);
}

/* Another tool has hooked the calls, and must go on to be asked. */
static int asked;
static int advise(void *address, size_t length, int advice) {
    asked++;
    return (int)syscall(SYS_madvise, address, length, advice);
}

static void hooked(void) {
    unsigned char *out = pages(NULL, LENGTH);
    *bound("madvise") = (void *)advise;
    for (int round = 0; round < ROUNDS; round++) {
        swap(out, LENGTH);
        discard(out);
        CHECK(asked == round + 1);
    }
    CHECK(munmap(out, LENGTH) == 0);
}

/* mprotect(2) of the place is refused from before MPI_Init on. */
static void refuse_writing(void) {
    uintptr_t page = (uintptr_t)bound("madvise") & ~(uintptr_t)(PAGE - 1);
#define WORD(place) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, place)
    struct sock_filter filter[] = {
        WORD(offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 5),
        WORD(offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)page, 0, 3),
        WORD(offsetof(struct seccomp_data, args[0]) + 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(page >> 32), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        fprintf(stderr, "skipped: this kernel refuses nothing by seccomp\n");
    }
}

static void read_only(void) {
    unsigned char *out = pages(NULL, LENGTH);
    for (int round = 0; round < ROUNDS; round++) {
        swap(out, LENGTH);
        discard(out);
    }
    CHECK(munmap(out, LENGTH) == 0);
}

/* A library that comes after MPI_Init. */
static const char *late_library;
static int (*late_advise)(void *, size_t, int);
static void load(void) {
    void *library = dlopen(late_library, RTLD_LAZY | RTLD_LOCAL);
    CHECK(library != NULL);
    late_advise = (int (*)(void *, size_t, int))dlsym(library, "late_advise");
    CHECK(late_advise != NULL);
}

/* Until its calls are followed for certain, nothing is promoted; then what it discards are zeroes. */
static void late(void) {
    unsigned char *out = pages(NULL, LENGTH);
    load();
    for (int round = 0; round < ROUNDS; round++) {
        swap(out, LENGTH);
        CHECK(late_advise(out, LENGTH, MADV_DONTNEED) == 0);
        for (size_t i = 0; i < LENGTH; i++) CHECK(out[i] == 0);
        /* Whoever was binding something has done so by now. */
        usleep(2000);
    }
    CHECK(munmap(out, LENGTH) == 0);
}

/* It has made memory special before anybody looked at it: no child inherits that, so it stays where it is. */
static void late_special(void) {
    unsigned char *out = pages(NULL, LENGTH);
    load();
    CHECK(late_advise(out, LENGTH, MADV_DONTFORK) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        swap(out, LENGTH);
        usleep(2000);
    }
    CHECK(munmap(out, LENGTH) == 0);
}

int main(int argc, char **argv) {
    static const struct way ways[] = {
        {"set_back", set_back}, {"hooked", hooked}, {"read_only", read_only}, {"late", late},
        {"late_special", late_special}};
    CHECK(argc > 1);
    late_library = argc > 2 ? argv[2] : NULL;
    if (strcmp(argv[1], "read_only") == 0) refuse_writing();
    check_init(&argc, &argv);
    CHECK(check_size == 2);
    in = malloc(LENGTH);
    CHECK(in != NULL);
    run_way(ways, sizeof ways / sizeof *ways, argv[1]);
    return check_finish();
}
