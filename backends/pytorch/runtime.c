/* runtime.c - see runtime.h */

#include "runtime.h"

#include "package.h"
#include "script.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static TRITONSERVER_Error *libtorch_open(void);

TRITONSERVER_Error *
pt_runtime_open(void **out, TRITONBACKEND_Backend *backend)
{
    (void) out;
    (void) backend;

    TRITONSERVER_Error *err = libtorch_open();
    if (err != NULL) {
        return err;
    }

    /* Compiled models check shapes only if this is set, and else read beyond
       an input of another shape.  The environment grows once, from the
       process's own block, which stays: other threads may read it. */
    if (setenv("AOTI_RUNTIME_CHECK_INPUTS", "1", 0) != 0) {
        return bk_err_nomem("a variable of the environment");
    }

    pt_packages_sweep();
    return pt_threads_default(1);
}

/* Compiled models name libtorch.so as theirs.  With CUDA it is PyTorch's own,
   otherwise an empty one; both lie beside the backend.  A sanitizer calls the
   loader in our place, which then does not look there by itself. */
static TRITONSERVER_Error *
libtorch_open(void)
{
    static const char here;

    char path[PATH_MAX];
    const char *slash = NULL;
    Dl_info info;

    if (dladdr(&here, &info) != 0 && info.dli_fname != NULL) {
        slash = strrchr(info.dli_fname, '/');
    }

    int len = snprintf(path, sizeof(path), "%.*slibtorch.so",
        slash == NULL ? 0 : (int) (slash + 1 - info.dli_fname),
        slash == NULL ? "" : info.dli_fname);
    if (len < 0 || (size_t) len >= sizeof(path)) {
        return bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE,
            "cannot load PyTorch: the path of this backend is too long");
    }

    return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) != NULL ? NULL
        : bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE,
        "cannot load PyTorch: %s; install the package torch from PyPI, or run "
        "make deps", dlerror());
}

void
pt_runtime_inter_op(int64_t count, const char *model)
{
    static _Atomic int64_t set;         /* seq_cst: by the first model       */

    int64_t before = 0;

    if (count == before) {
        return;
    }

    if (atomic_compare_exchange_strong(&set, &before, count)) {
        bk_err_log(pt_threads_inter_op((int) count), model);
        return;
    }

    if (before != count) {
        bk_log(TRITONSERVER_LOG_WARN, "INTER_OP_THREAD_COUNT of model '%s' is "
            "%" PRId64 ", but the process has %" PRId64 " already, which a "
            "model before it has set", model, count, before);
    }
}
