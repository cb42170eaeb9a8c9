/* runtime.c - see runtime.h */

#include "runtime.h"

#include "script.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

TRITONSERVER_Error *
pt_runtime_open(void **out, TRITONBACKEND_Backend *backend)
{
    (void) out;
    (void) backend;

    /* Compiled models name libtorch.so as theirs.  With CUDA it is PyTorch's
       own, otherwise an empty one; both lie beside the backend. */
    if (dlopen("libtorch.so", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) == NULL)
    {
        return bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE,
            "cannot load PyTorch: %s; install the package torch from PyPI, "
            "or run make deps", dlerror());
    }

    /* Compiled models check shapes only if this is set, and else read beyond
       an input of another shape.  The environment grows once, from the
       process's own block, which stays: other threads may read it. */
    if (setenv("AOTI_RUNTIME_CHECK_INPUTS", "1", 0) != 0) {
        return bk_err_nomem("a variable of the environment");
    }

    return pt_threads_default(1);
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
