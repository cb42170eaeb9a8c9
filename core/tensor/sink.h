/*
 * sink.h - the receiver of a request's responses, a table of functions set by
 *          its submitter.
 *
 * Owner    The table is static; userp belongs to the submitter and outlives
 *          the factory.
 * Thread   any thread of the core or of a backend; no lock held.
 * Units    bytes.
 * Errors   alloc returns the reason, which is passed to the backend.
 * Route    backend -> abi -> response -> [sink] -> channel or callback.
 */

#ifndef INF_TENSOR_SINK_H
#define INF_TENSOR_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

typedef struct inf_request_s  inf_request_t;
typedef struct inf_response_s inf_response_t;
typedef struct inf_output_s   inf_output_t;
typedef struct inf_factory_s  inf_factory_t;

/* The values are those of TRITONSERVER_MemoryType. */
typedef enum {
    INF_MEMORY_CPU        = 0,
    INF_MEMORY_CPU_PINNED = 1,
    INF_MEMORY_GPU        = 2
} inf_memory_type_t;

/* TRITONSERVER_RESPONSE_COMPLETE_FINAL */
#define INF_SEND_FINAL 1u

typedef struct {
    /* A response object was created; may be NULL. */
    void (*start)(void *userp);

    /* Sets out->base (NULL is valid for size 0), out->memory_type,
       out->memory_id and out->sink_userp; the preferred memory is set before
       the call. */
    inf_err_t *(*alloc)(void *userp, inf_output_t *out, size_t size);

    /* Frees a buffer of alloc; called once per output whose base is not
       NULL. */
    void (*release)(void *userp, inf_output_t *out);

    /* Adds a release for out's buffer, which is in two responses.  false, or
       share NULL: not possible. */
    bool (*share)(void *userp, inf_output_t *out);

    /* Takes response (NULL: flags alone).  err, if not NULL, is the response's
       error, owned by the response. */
    void (*complete)(void *userp, inf_response_t *response, uint32_t flags);

    /* The client's preferred memory for an output; may be NULL (unknown). */
    inf_err_t *(*query)(void *userp, const char *name, size_t *size,
        inf_memory_type_t *memory_type, int64_t *memory_id);

    /* The last reference to the factory was dropped; the factory may be
       reused. */
    void (*factory_free)(void *userp, inf_factory_t *factory);
} inf_sink_ops_t;

#endif /* INF_TENSOR_SINK_H */
