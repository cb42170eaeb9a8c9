/*
 * run.h - runs of a compiled model: input tensors in the memory of requests,
 *         and the outputs.
 *
 * Owner    The instance.  The handles of a run's values hold its tensors until
 *          the run is done.
 * Thread   the instance's.
 * Units    rows of the batch dimension.
 * Errors   The library's messages.  INTERNAL: the number of rows or an output
 *          differs from the model's description.
 * Route    batch -> [run] -> the library
 */

#ifndef VINO_RUN_H
#define VINO_RUN_H

#include "network.h"

#include "common/runtime.h"
#include "common/scratch.h"

typedef struct {
    vino_network_t       *network;      /* compiled                          */
    bool                  padding;      /* of batches with too few rows      */
    ov_infer_request_t   *request;
    uint64_t              generation;   /* of request                        */
    ov_tensor_t         **own;          /* of each output, the library's     */
    bool                 *lent;         /* output lies in memory of a run    */
    bk_scratch_t         *padded;       /* one per input                     */
} vino_run_t;

/* Takes a vino_run_t as self. */
extern const bk_runtime_t vino_run_functions;

/* The caller calls fini even after an error. */
BK_CHECK TRITONSERVER_Error *vino_run_init(vino_run_t *r,
    vino_network_t *network, bool padding);
void vino_run_fini(vino_run_t *r);

#endif /* VINO_RUN_H */
