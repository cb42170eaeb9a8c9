/*
 * runtime.h - PyTorch's libraries, once a process.
 *
 * Owner    nothing: the libraries stay until the process ends.
 * Thread   open: a loader's; inter_op: any.
 * Units    none.
 * Errors   UNAVAILABLE: a library is not there, with the package to install.
 * Route    Initialize -> [runtime] -> model
 */

#ifndef PT_RUNTIME_H
#define PT_RUNTIME_H

#include "common/error.h"

#include <stdint.h>

/* As common/entry.h has it; *out stays NULL. */
BK_CHECK TRITONSERVER_Error *pt_runtime_open(void **out,
    TRITONBACKEND_Backend *backend);

/* Sets the threads of torch.jit.fork, which a process can do once: the first
 * model's count stays, another one is logged. */
void pt_runtime_inter_op(int64_t count, const char *model);

#endif /* PT_RUNTIME_H */
