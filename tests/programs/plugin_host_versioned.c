/* As plugin_host.c, but dlopen and dlsym are asked of dlvsym, which alone is referred to. */
#define _GNU_SOURCE
#include <dlfcn.h>

#define find(name) dlvsym(RTLD_DEFAULT, name, "GLIBC_2.2.5")
#define dlopen(path, mode) ((void *(*)(const char *, int))find("dlopen"))(path, mode)
#define dlsym(handle, name) ((void *(*)(void *, const char *))find("dlsym"))(handle, name)
#define dlclose(handle) ((int (*)(void *))find("dlclose"))(handle)
#define dlerror() ((char *(*)(void))find("dlerror"))()
#include "plugin_host.c"
