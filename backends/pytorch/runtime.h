/*
 * runtime.h - opens PyTorch's libraries, once in a process.
 *
 * Owner    nothing: the libraries stay until the process ends.
 * Thread   open: a loader's; inter_op: any.
 * Units    none.
 * Errors   UNAVAILABLE: a library is missing; names the package to install.
 * Route    Initialize -> [runtime] -> model
 */

#ifndef PT_RUNTIME_H
#define PT_RUNTIME_H

#include "common/error.h"

#include <stdint.h>

/* bk_backend_t.open of common/entry.h; *out stays NULL. */
BK_CHECK TRITONSERVER_Error *pt_runtime_open(void **out,
    TRITONBACKEND_Backend *backend);

/* Sets the number of threads of torch.jit.fork, which is possible once in a
 * process: the first model's count stays, and a different one is logged. */
void pt_runtime_inter_op(int64_t count, const char *model);

#endif /* PT_RUNTIME_H */
