/*
 * script.h - TorchScript files, and what else only PyTorch's C++ interface
 *            has.
 *
 * Owner    pt_script_open gives the engine to the caller.
 * Thread   any; pt_threads_use counts for the calling thread.
 * Units    none.
 * Errors   INVALID_ARG, UNSUPPORTED: the file's forward() takes or gives what
 *          requests cannot carry.  INTERNAL: PyTorch's message.
 * Route    model, instance -> [script] -> libtorch
 *
 * The one part in C++; exceptions end here.
 */

#ifndef PT_SCRIPT_H
#define PT_SCRIPT_H

#include "engine.h"

/* model: its name, for errors.  device: a GPU's number, PT_CPU or
   PT_ANY_DEVICE.  options are copied. */
BK_CHECK TRITONSERVER_Error *pt_script_open(pt_engine_t **out,
    const char *model, const char *path, const pt_options_t *options,
    int device);

/* Operators called from threads that say nothing run on that many threads. */
BK_CHECK TRITONSERVER_Error *pt_threads_default(int count);

/* From now on, operators called from this thread run on that many. */
void pt_threads_use(int count);

/* Threads for torch.jit.fork, in the whole process, once. */
BK_CHECK TRITONSERVER_Error *pt_threads_inter_op(int count);

/* Whether that GPU can be computed on. */
BK_CHECK TRITONSERVER_Error *pt_gpu_check(int device);

#endif /* PT_SCRIPT_H */
