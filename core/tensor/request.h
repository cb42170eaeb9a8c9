/*
 * request.h - one inference request: inputs, requested outputs, parameters.
 *
 * Owner    The submitter creates a request.  From submit to release the core
 *          owns the request; ops->released gives the request back.  Names,
 *          shapes and tables are in the request's arena.
 * Thread   one at a time, except where a field says otherwise.
 * Units    bytes; dims as in the tensor's shape; ns on the monotonic clock.
 * Errors   out of memory.
 * Route    service -> [request] -> sched -> abi -> backend -> release.
 *
 * Order: init; add inputs and outputs; submit; after released, reset for the
 * next request or fini.
 */

#ifndef INF_TENSOR_REQUEST_H
#define INF_TENSOR_REQUEST_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/budget.h"
#include "core/base/heap.h"
#include "core/base/queue.h"
#include "core/include/channel.h"
#include "core/include/datatype.h"
#include "core/tensor/parameter.h"
#include "core/tensor/sink.h"

struct inf_buffer_attributes_s;
struct inf_ensemble_run_s;
struct inf_instance_s;
struct inf_model_s;
struct inf_states_s;
struct inf_trace_ops_s;
struct TRITONSERVER_InferenceTrace;

typedef struct {
    const void        *base;
    uint64_t           size;
    inf_memory_type_t  memory_type;
    int64_t            memory_id;
    const void        *ipc_handle;      /* 64 bytes, or NULL                 */
} inf_buffer_t;

/* An input's data for one host policy; instances under other policies use the
   default buffers. */
typedef struct inf_host_data_s {
    struct inf_host_data_s *next;
    const char             *policy;
    uint64_t                byte_size;
    const inf_buffer_t     *buffers;
    uint32_t                buffer_count;
} inf_host_data_t;

typedef struct {
    const char     *name;               /* NUL-terminated                    */
    inf_datatype_t  datatype;
    uint32_t        dim_count;          /* as sent by the client             */
    const int64_t  *shape;
    uint32_t        model_dim_count;    /* batch first, with the reshape of  */
    const int64_t  *model_shape;        /* the config: the backend's shape   */
    uint64_t        byte_size;          /* sum of buffers                    */
    inf_buffer_t   *buffers;
    uint32_t        buffer_count;
    uint32_t        buffer_cap;
    inf_buffer_t    one;                /* the usual single buffer           */
    inf_arena_t    *arena;              /* of the request                    */
    const inf_host_data_t *host_data;   /* C API only                        */
    bool            in_region;          /* a client maps the bytes and may write
                                           to them at any time               */

    struct {                            /* created on request of backends    */
        struct inf_buffer_attributes_s **attributes;    /* one per buffer    */
        uint32_t    attribute_count;    /* 0 again after data is removed     */
    } abi;
} inf_input_t;

typedef enum {
    INF_REQUEST_IDLE,                   /* with the submitter                */
    INF_REQUEST_PARKED,                 /* waits in the response cache       */
    INF_REQUEST_PENDING,                /* queued                            */
    INF_REQUEST_EXECUTING,              /* taken by an instance, or from the
                                           cache's lists by a thread         */
    INF_REQUEST_REJECTED,               /* unlinked, about to be answered    */
    INF_REQUEST_RELEASED
} inf_request_state_t;

typedef struct {
    /* The core no longer uses the request; it belongs to the submitter. */
    void (*released)(void *userp, inf_request_t *request, uint32_t flags);

    /* An instance has taken the request (state EXECUTING); may be NULL. */
    void (*executing)(void *userp, inf_request_t *request);
} inf_request_ops_t;

/* Why a request leaves its queue without being executed. */
typedef enum {
    INF_GONE_TIMED_OUT,                 /* or was cancelled itself           */
    INF_GONE_WITH_SEQUENCE,             /* an earlier one was cancelled      */
    INF_GONE_WITH_START,                /* the first was rejected: the sequence
                                           has not begun                     */
    INF_GONE_SEQUENCE_TIMED_OUT         /* before it got a slot              */
} inf_gone_t;

/* How a request is counted. */
typedef enum {
    INF_OUTCOME_NONE,
    INF_OUTCOME_REPORTED,               /* by its backend's statistics       */
    INF_OUTCOME_REJECTED                /* taken and not executed            */
} inf_outcome_t;

/* Whether cores crashed that had the request; it then executes alone. */
typedef enum {
    INF_SUSPICION_NONE = 0,
    INF_SUSPICION_QUEUED,               /* several crashes, while queued     */
    INF_SUSPICION_EXECUTING             /* one crash, while executing: the
                                           request is a suspect              */
} inf_suspicion_t;

/* Whether clients can write to bytes of inputs: model/private_inputs.h. */
typedef enum {
    INF_INPUTS_PRIVATE = 0,
    INF_INPUTS_SHARED,                  /* some are writable by others: these
                                           are copied before use             */
    INF_INPUTS_LOST                     /* a copy failed: the inputs are no
                                           longer read                       */
} inf_inputs_state_t;

/* A policy's data on a queued request; model's lock. */
typedef struct {
    struct inf_level_s *level;          /* level of its priority             */
    uint32_t            scan;           /* scan of the queue that took it; 0:
                                           none                              */
    bool                delayed;        /* timed out, but still waits        */
    inf_gone_t          gone;           /* reason to leave, by default       */
    struct inf_slot_s  *slot;           /* slot of its sequence              */
    uint32_t            turn;           /* turn of the sequence in the slot,
                                           once it is taken                  */
    struct inf_sequence_s *sequence;    /* sequence in which it waits for a
                                           slot                              */
    bool                withdrawn;      /* cancelled while used by a plug-in */
} inf_request_queued_t;

struct inf_request_s {
    inf_link_t               link;      /* in a list of its holder (sched,
                                           cache, server), under its lock    */
    inf_heap_node_t          timeout;   /* likewise in a heap, or in none    */
    _Atomic(inf_request_state_t) state; /* relaxed; written by inf_request_move
                                           alone                             */
    inf_suspicion_t          suspect;   /* not NONE: executes alone          */
    bool                     padding;   /* constant: a padding request for an
                                           empty slot: no client, not counted */

    struct inf_model_s      *model;     /* a reference                       */
    inf_factory_t           *factory;   /* a reference, from prepare on      */
    const inf_request_ops_t *ops;
    void                    *userp;

    inf_arena_t              arena;
    const char              *id;        /* not NULL                          */
    uint64_t                 correlation_id;
    const char              *correlation_text;  /* NULL: correlation_id is
                                                   used                      */
    uint32_t                 flags;     /* TRITONSERVER_REQUEST_FLAG_*       */
    uint64_t                 priority;
    uint64_t                 timeout_us;

    inf_input_t             *inputs;
    uint32_t                 input_count;
    uint32_t                 input_cap;
    uint32_t                 inputs_added;  /* at the end: not the client's  */

    const char *const       *outputs;   /* requested; after normalising the
                                           model's names, sorted             */
    uint32_t                 output_count;
    uint32_t                 output_cap;
    inf_inputs_state_t       inputs_state;  /* written by
                                               inf_request_move_inputs alone */
    bool                     uses_regions;  /* constant: clients map inputs or
                                               outputs of it or of its whole */
    bool                     strings_unchecked; /* of BYTES inputs, see
                                                   model/string_check.h      */
    inf_budget_t            *copies;    /* limit for copies of its inputs; NULL:
                                           none                              */
    uint64_t                 copied_bytes;  /* taken from copies, until reset */

    inf_parameter_list_t     parameters;

    uint32_t                 batch_size;    /* 0: the model does not batch   */
    uint64_t                 start_ns;      /* submit                        */
    uint64_t                 queue_ns;      /* entered the scheduler         */
    uint64_t                 backend_ns[4]; /* exec start, compute start,
                                               compute end, exec end         */

    /* Of the latest execution: a response of an earlier one may be sent when
       the request is executed again. */
    _Atomic(uint64_t)        exec_ns;       /* taken by an instance; relaxed */
    _Atomic(uint64_t)        queued_ns;     /* time queued before; relaxed   */
    _Atomic(uint64_t)        input_ns;      /* last access of the backend to an
                                               input; relaxed                */
    _Atomic(uint32_t)        payload_rows;  /* of its payload; relaxed       */
    _Atomic(const char *)    instance;      /* its name; NULL: not executed;
                                               relaxed                       */

    inf_outcome_t            outcome;       /* of the thread that has the
                                               request                       */

    const struct inf_request_s *whole;  /* request of an ensemble that created
                                           this one and is released later, so
                                           that this one is accepted where new
                                           ones are rejected; NULL           */
    struct inf_states_s     *states;    /* of the sequence, or NULL          */

    struct {
        inf_request_queued_t       queued;
        bool                       again;   /* queued for another step of an
                                               iterative sequence; model's
                                               lock                          */
        struct inf_ensemble_run_s *run;     /* of an ensemble's request; its
                                               lock                          */

        /* Called first at the release, then NULL; NULL: none. */
        void                     (*leaves)(struct inf_request_s *request);
    } sched;

    struct {
        uint64_t                   lookup_ns;   /* duration of the lookup    */
        inf_lookup_t               lookup;
    } cache;

    struct {
        struct inf_instance_s     *runs_on; /* until it is released          */
        struct TRITONSERVER_InferenceTrace *trace;  /* or NULL               */
        const struct inf_trace_ops_s *trace_ops;    /* with trace            */
    } abi;
};

/* init uses the caller's memory; fini frees the arena. */
void inf_request_init(inf_request_t *r);
void inf_request_fini(inf_request_t *r);

/* Clears r for reuse and keeps its memory. */
void inf_request_reset(inf_request_t *r);

/* Adds an input, with copies of name and shape.  NULL: out of memory. */
inf_input_t *inf_request_add_input(inf_request_t *r, const char *name,
    size_t name_len, inf_datatype_t datatype, const int64_t *shape,
    uint32_t dim_count);

/* Adds data to an input; the bytes stay valid until the release.  A buffer of 0
   bytes adds nothing. */
INF_CHECK inf_err_t *inf_request_add_data(inf_request_t *r, inf_input_t *input,
    const inf_buffer_t *buffer);

/* The input of that name; NULL: there is none. */
inf_input_t *inf_request_find_input(const inf_request_t *r, const char *name);

/* Adds a requested output.  Called before the request is normalised; that
   checks the names. */
INF_CHECK inf_err_t *inf_request_add_output(inf_request_t *r, const char *name,
    size_t name_len);

/* Whether a normalised request has requested the output. */
bool inf_request_wants_output(const inf_request_t *r, const char *name);

/* Takes err and returns an error whose text begins with the request's id. */
INF_CHECK inf_err_t *inf_request_name_error(const inf_request_t *r,
    inf_err_t *err);

/* Ends the request: moves r to RELEASED, drops the factory's reference and
   calls ops->released.  Then the submitter owns r again. */
void inf_request_release(inf_request_t *r, uint32_t flags);

/* Writes r->state; no other function does. */
void inf_request_move(inf_request_t *r, inf_request_state_t to);

/* Writes r->inputs_state; no other function does.  Lost inputs stay lost until
   the request is normalised again: then the state begins as PRIVATE. */
static inline void
inf_request_move_inputs(inf_request_t *r, inf_inputs_state_t to)
{
    assert(r->inputs_state != INF_INPUTS_LOST || to != INF_INPUTS_SHARED);
    r->inputs_state = to;
}

#endif /* INF_TENSOR_REQUEST_H */
