/*
 * response.h - a backend's response, and the factory that creates responses.
 *
 * Owner    The backend owns a response until the response is sent.  Then the
 *          sink owns the response, and frees it.  A factory is shared: the
 *          request, its responses and the backend's handles have references.
 * Thread   a response: one at a time.  A factory: any.
 * Units    bytes, ns.
 * Errors   Each prototype says its own.
 * Route    backend -> abi -> [response] -> sink.
 *
 * Order: start the factory; new, outputs and send for each response; the last
 * response, or send_flags, has FINAL.
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
    const int64_t     *shape;           /* batch first, without reshape      */
    void              *base;
    uint64_t           byte_size;
    inf_memory_type_t  memory_type;
    int64_t            memory_id;
    uint8_t            ipc_handle[64];
    bool               has_ipc_handle;
    bool               allocated;       /* the sink has allocated it         */
    void              *sink_userp;      /* the sink's data on the buffer     */
    inf_response_t    *response;

    struct {
        struct inf_step_request_s *step_request;    /* request of an ensemble's
                                                       step that allocated the
                                                       buffer, or NULL       */
    } sched;

    struct {
        struct inf_buffer_attributes_s *attributes; /* NULL: not requested   */
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
    bool                  embedded;     /* the factory's embedded response   */
    _Atomic bool          busy;         /* acquire, release: the embedded
                                           response is in use                */
    bool                  sent;         /* by the backend, which no longer owns
                                           it                                */
    uint64_t              output_ns;    /* when the backend created the first
                                           output; 0: none                   */
    uint64_t              sent_ns;      /* by the backend; 0: not recorded   */
    inf_response_t       *next;         /* while it waits in order           */
    uint32_t              flags;        /* flags to send it with             */
};

/* Value of gpu: the request alone has broken its GPU, and the process ends when
   it is answered. */
#define INF_GPU_GUILTY (-2)

struct inf_factory_s {
    _Atomic uint32_t      refs;         /* up relaxed, down acq_rel          */
    _Atomic bool          cancelled;    /* relaxed: orders no other access   */
    _Atomic bool          final;        /* relaxed: FINAL was sent           */
    bool                  rejected;     /* like the request, which may be
                                           released                          */
    bool                  padding;      /* constant, from its request; not
                                           counted                           */
    _Atomic uint32_t      responses;    /* relaxed: created so far           */
    _Atomic uint32_t      reported;     /* relaxed: number of response
                                           statistics                        */
    _Atomic uint64_t      start_ns;     /* relaxed: of the request; 0: the first
                                           response was counted, or is not to
                                           be                                */
    struct inf_ledger_s  *ledger;       /* NULL: no ledger                   */
    inf_link_t            in_ledger;    /* the ledger's lock                 */
    _Atomic(inf_request_t *) request;   /* with a ledger: until its release  */
    _Atomic uint32_t      handles;      /* relaxed: of the backend           */
    _Atomic uint64_t     *awaited;      /* seq_cst: counter to increment at the
                                           end; set while its request has it, or
                                           NULL                              */
    _Atomic int64_t       gpu;          /* relaxed: that the request executes
                                           on; -1: none; or INF_GPU_GUILTY    */
    struct inf_model_s   *model;        /* dropped by the sink's factory_free */
    const char           *id;           /* valid as long as the factory      */
    const inf_sink_ops_t *sink;
    void                 *userp;
    inf_response_place_t  place;        /* in an ordered line, if any        */
    inf_response_t        embedded;     /* the usual single response         */
};

/* init and fini: in the submitter's memory.  start sets f up for a request,
   with one reference. */
void inf_factory_init(inf_factory_t *f);
void inf_factory_fini(inf_factory_t *f);
void inf_factory_start(inf_factory_t *f, struct inf_model_s *model,
    const char *id, const inf_sink_ops_t *sink, void *userp);

/* Adds a reference; any thread may drop it by inf_factory_unref. */
void inf_factory_ref(inf_factory_t *f);

/* Adds a reference.  false: the last reference is gone, or about to go.  The
   caller knows that the memory of f is valid. */
bool inf_factory_try_ref(inf_factory_t *f);

/* The last unref calls the sink's factory_free. */
void inf_factory_unref(inf_factory_t *f);

/* The same for a handle of the backend. */
void inf_factory_ref_handle(inf_factory_t *f);
void inf_factory_unref_handle(inf_factory_t *f);

/* When the request began, for the first caller, who counts the first response;
   0 for all later callers. */
static inline uint64_t
inf_factory_take_start(inf_factory_t *f)
{
    return atomic_load_explicit(&f->start_ns, memory_order_relaxed) == 0 ? 0
        : atomic_exchange_explicit(&f->start_ns, 0, memory_order_relaxed);
}

/* Creates a response without outputs, and calls the sink's start. */
INF_CHECK inf_err_t *inf_response_new(inf_factory_t *f, inf_response_t **out);

/* Creates a response for a caller who has called the sink's start. */
INF_CHECK inf_err_t *inf_response_new_started(inf_factory_t *f,
    inf_response_t **out);

/* Frees a response that is not sent; the sink's release frees its buffers.
   response may be NULL. */
void inf_response_free(inf_response_t *response);

/* Adds an output, with copies of name and shape.  NULL: out of memory. */
inf_output_t *inf_response_add_output(inf_response_t *response,
    const char *name, inf_datatype_t datatype, const int64_t *shape,
    uint32_t dim_count);

/* Allocates the buffer of out from the sink.  The buffer of 0 bytes may be
   NULL. */
INF_CHECK inf_err_t *inf_output_alloc(inf_output_t *out, uint64_t size);

/* alloc and release of a sink whose responses stay in this process: outputs are
   on the heap. */
INF_CHECK inf_err_t *inf_output_alloc_heap(void *userp, inf_output_t *out,
    size_t size);
void inf_output_free_heap(void *userp, inf_output_t *out);

/* Sends response, which is taken, with a copy of err, which may be NULL.  Does
   not fail. */
void inf_response_send(inf_response_t *response, uint32_t flags,
    const inf_err_t *err);

/* Sends a FINAL response with err, which is taken. */
void inf_factory_send_error(inf_factory_t *f, inf_err_t *err);

/* Sends flags without a response. */
void inf_factory_send_flags(inf_factory_t *f, uint32_t flags);

#endif /* INF_TENSOR_RESPONSE_H */
