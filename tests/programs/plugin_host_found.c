/* As plugin_host.c, but nothing in this process refers to dlopen or dlsym: they are found in the C library's own symbol
 * table, as a debugger finds them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

struct wanted {
    const char *name;
    void *address;
};

static int look(struct dl_phdr_info *module, size_t size, void *argument) {
    struct wanted *wanted = argument;
    const ElfW(Dyn) *entry = NULL;
    (void)size;
    if (strstr(module->dlpi_name, "/libc.so") == NULL) return 0;
    for (int i = 0; i < module->dlpi_phnum; i++)
        if (module->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const ElfW(Dyn) *)(module->dlpi_addr + module->dlpi_phdr[i].p_vaddr);
    const ElfW(Sym) *symbol = NULL;
    const char *strings = NULL;
    for (; entry != NULL && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SYMTAB) symbol = (const ElfW(Sym) *)entry->d_un.d_ptr;
        if (entry->d_tag == DT_STRTAB) strings = (const char *)entry->d_un.d_ptr;
    }
    /* The strings follow the symbols. */
    for (; symbol != NULL && (const char *)symbol < strings; symbol++)
        if (symbol->st_value != 0 && strcmp(strings + symbol->st_name, wanted->name) == 0)
            wanted->address = (void *)(module->dlpi_addr + symbol->st_value);
    return 1;
}

static void *find(const char *name) {
    struct wanted wanted = {name, NULL};
    dl_iterate_phdr(look, &wanted);
    return wanted.address;
}

#define dlopen(path, mode) ((void *(*)(const char *, int))find("dlopen"))(path, mode)
#define dlsym(handle, name) ((void *(*)(void *, const char *))find("dlsym"))(handle, name)
#define dlclose(handle) ((int (*)(void *))find("dlclose"))(handle)
#define dlerror() ((char *(*)(void))find("dlerror"))()
#include "plugin_host.c"
