/*
 * shm_calls.h - the calls on clients' shared memory regions.
 *
 * Owner    The caller owns the message; an answer lies in its arena, except
 *          for texts, which belong to list.
 * Thread   control threads: registering waits for the kernel or a driver.
 * Units    bytes.
 * Errors   those of tensor/shm_region.h.
 * Route    calls -> [shm calls] -> regions
 */

#ifndef INF_SERVER_SHM_CALLS_H
#define INF_SERVER_SHM_CALLS_H

#include "core/base/arena.h"
#include "core/tensor/shm_region.h"
#include "grpc_service.pb-c.h"

/* Runs one of the four methods that register and unregister. */
INF_CHECK inf_err_t *inf_shm_call(inf_shm_regions_t *set, uint16_t method,
    const ProtobufCMessage *m);

/* The rows of a status, by name.  list is released after the answer is
   packed. */
INF_CHECK inf_err_t *inf_shm_system_status(inf_shm_region_t *const *list,
    size_t count, inf_arena_t *arena,
    Inference__SystemSharedMemoryStatusResponse *r);
INF_CHECK inf_err_t *inf_shm_cuda_status(inf_shm_region_t *const *list,
    size_t count, inf_arena_t *arena,
    Inference__CudaSharedMemoryStatusResponse *r);

#endif /* INF_SERVER_SHM_CALLS_H */
