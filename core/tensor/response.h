/*
 * response.h - what a backend answers, and the factory it is made from.
 *
 * Owner    A response belongs to its maker (backend) until it is sent; the
 *          sink then owns it and frees it.  The factory is shared: request,
 *          responses and backend's factory handles hold references.
 * Thread   one response, one thread at a time; different responses of a
 *          factory from any thread.
 * Units    bytes.
 * Errors   as documented per function.
 * Route    backend -> abi -> [response] -> sink.
 */

#ifndef INF_TENSOR_RESPONSE_H
#define INF_TENSOR_RESPONSE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/queue.h"
#include "core/include/datatype.h"
#include "core/tensor/parameter.h"
#include "core/tensor/response_order.h"
#include "core/tensor/sink.h"

struct inf_buffer_attributes_s;
struct inf_ledger_s;
struct inf_model_s;
struct inf_step_request_s;

struct inf_output_s {
    inf_output_t      *next;
    const char        *name;
    inf_datatype_t     datatype;
    uint32_t           dim_count;
    const int64_t     *shape;           /* batch first, reshape undone       */
    void              *base;
    uint64_t           byte_size;
    inf_memory_type_t  memory_type;
    int64_t            memory_id;
    uint8_t            ipc_handle[64];
    bool               has_ipc_handle;
    bool               allocated;       /* the sink was asked, and gave      */
    void              *sink_userp;      /* the sink's mark for the buffer    */
    inf_response_t    *response;

    struct {
        struct inf_step_request_s *step_request;    /* of an ensemble: made
                                               the buffer, or NULL           */
    } sched;

    struct {
        struct inf_buffer_attributes_s *attributes; /* NULL: not asked for   */
    } abi;
};

struct inf_response_s {
    inf_factory_t        *factory;      /* a reference                       */
    inf_arena_t           arena;
    inf_output_t         *first;
    inf_output_t         *last;
    uint32_t              output_count;
    inf_parameter_list_t  parameters;
    inf_err_t            *err;
    bool                  embedded;     /* the factory's own object          */
    _Atomic bool          busy;         /* acquire, release: that object is in
                                           use                               */
    bool                  sent;         /* by the backend: it is not its own
                                           any more                          */
    uint64_t              output_ns;    /* the backend has made the first
                                           output; 0: it has none            */
    uint64_t              sent_ns;      /* by the backend; 0: nobody looked  */
    inf_response_t       *next;         /* while it waits for its turn       */
    uint32_t              flags;        /* to be sent with then              */
};

/* In place of the number of its GPU: the request alone has broken that GPU, and
   the process ends when the request is answered. */
#define INF_GPU_GUILTY (-2)

struct inf_factory_s {
    _Atomic uint32_t      refs;         /* up relaxed, down acq_rel          */
    _Atomic bool          cancelled;    /* relaxed: nothing else is read by
                                           it                                */
    _Atomic bool          final;        /* relaxed: FINAL was sent           */
    bool                  rejected;     /* as the request, which may be gone */
    bool                  padding;      /* constant: its request's; nothing
                                           is counted                        */
    _Atomic uint32_t      responses;    /* relaxed: made so far              */
    _Atomic uint32_t      reported;     /* relaxed: response statistics so
                                           far                               */
    _Atomic uint64_t      start_ns;     /* relaxed: of the request; 0: its
                                           first response is counted, or not
                                           to be                             */
    struct inf_ledger_s  *ledger;       /* NULL: nobody keeps account        */
    inf_link_t            in_ledger;    /* the ledger's lock                 */
    _Atomic(inf_request_t *) request;   /* with a ledger: until released     */
    _Atomic uint32_t      handles;      /* relaxed: the backend's            */
    _Atomic uint64_t     *awaited;      /* seq_cst: counts it when it ends;
                                           set while its request has it, or
                                           NULL                              */
    _Atomic int64_t       gpu;          /* relaxed: that its request executes
                                           on; -1: on none; or INF_GPU_GUILTY */
    struct inf_model_s   *model;        /* the sink's factory_free drops it  */
    const char           *id;           /* lives as long as the factory      */
    const inf_sink_ops_t *sink;
    void                 *userp;
    inf_response_place_t  place;        /* in line, where order is kept      */
    inf_response_t        embedded;     /* the usual single response         */
};

/* The submitter's memory; made ready with one reference. */
void inf_factory_init(inf_factory_t *f);
void inf_factory_fini(inf_factory_t *f);
void inf_factory_start(inf_factory_t *f, struct inf_model_s *model,
    const char *id, const inf_sink_ops_t *sink, void *userp);

/* Ends with inf_factory_unref, from any thread. */
void inf_factory_ref(inf_factory_t *f);

/* A reference unless the last one is gone already; the memory of f must still
   be there. */
bool inf_factory_try_ref(inf_factory_t *f);

/* The last one calls the sink's factory_free. */
void inf_factory_unref(inf_factory_t *f);

/* The same for a handle that the backend has. */
void inf_factory_ref_handle(inf_factory_t *f);
void inf_factory_unref_handle(inf_factory_t *f);

/* When the request began, to the first that asks; 0: it is counted. */
static inline uint64_t
inf_factory_take_start(inf_factory_t *f)
{
    return atomic_load_explicit(&f->start_ns, memory_order_relaxed) == 0 ? 0
        : atomic_exchange_explicit(&f->start_ns, 0, memory_order_relaxed);
}

/* A response with no outputs; calls the sink's start. */
INF_CHECK inf_err_t *inf_response_new(inf_factory_t *f, inf_response_t **out);

/* The same when the sink has been told of its start. */
INF_CHECK inf_err_t *inf_response_new_started(inf_factory_t *f,
    inf_response_t **out);

/* Frees buffers through the sink's release; response may be NULL. */
void inf_response_free(inf_response_t *response);

/* name and shape are copied.  NULL: out of memory. */
inf_output_t *inf_response_add_output(inf_response_t *response,
    const char *name, inf_datatype_t datatype, const int64_t *shape,
    uint32_t dim_count);

/* Asks the sink for out's buffer; NULL is legal for 0 bytes alone. */
INF_CHECK inf_err_t *inf_output_alloc(inf_output_t *out, uint64_t size);

/* The sink functions alloc and release for responses that stay in this process:
   outputs in CPU memory of the heap. */
INF_CHECK inf_err_t *inf_output_alloc_heap(void *userp, inf_output_t *out,
    size_t size);
void inf_output_free_heap(void *userp, inf_output_t *out);

/* Takes response; err (may be NULL) is copied into it.  Never fails. */
void inf_response_send(inf_response_t *response, uint32_t flags,
    const inf_err_t *err);

/* Answers the request behind f with err (taken) as FINAL response. */
void inf_factory_send_error(inf_factory_t *f, inf_err_t *err);

/* Delivers flags without a response. */
void inf_factory_send_flags(inf_factory_t *f, uint32_t flags);

#endif /* INF_TENSOR_RESPONSE_H */
