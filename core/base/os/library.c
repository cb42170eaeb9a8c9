#include "core/base/os/library.h"

#include <dlfcn.h>
#include <string.h>

inf_err_t *
inf_library_open(const char *name, const inf_library_row_t *rows,
    size_t count, const char *lacks, void *functions)
{
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        return inf_err_new(INF_ERR_NOT_FOUND, "%s", dlerror());
    }

    for (size_t i = 0; i < count; i++) {
        void *function = dlsym(handle, rows[i].symbol);
        if (function == NULL) {
            dlclose(handle);
            return inf_err_new(INF_ERR_UNSUPPORTED, "%s has no function %s%s",
                name, rows[i].symbol, lacks);
        }
        memcpy((char *) functions + rows[i].offset, &function,
            sizeof(function));
    }
    return NULL;
}
