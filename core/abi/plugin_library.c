#include "core/abi/plugin_library.h"

#include <dlfcn.h>
#include <stddef.h>

#include "core/abi/elf_check.h"
#include "core/abi/forwarding.h"

static void show_functions(void);

inf_err_t *
inf_plugin_library_open(const char *path, void **handle)
{
    *handle = NULL;

    inf_err_t *err = inf_elf_check(path);
    if (err == NULL) {
        err = inf_forwarding_load(path);
    }
    if (err != NULL) {
        return err;
    }

    show_functions();
    *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return *handle != NULL ? NULL : inf_err_new(INF_ERR_NOT_FOUND,
        "unable to load shared library: %s", dlerror());
}

/* Makes the core's functions global: if a program opens the core with
   RTLD_LOCAL, a plug-in that does not need the core by name cannot see them. */
static void
show_functions(void)
{
    void *core = dlopen("libtritonserver.so",
        RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL);

    if (core != NULL) {
        dlclose(core);
    } else {
        (void) dlerror();
    }
}

inf_err_t *
inf_plugin_library_require(void *handle, const char *path, const char *entry,
    void **address)
{
    *address = dlsym(handle, entry);
    return *address != NULL ? NULL : inf_err_new(INF_ERR_NOT_FOUND,
        "unable to find required entrypoint '%s' in shared library %s",
        entry, path);
}
