/*
 * request.h - one inference request: inputs, wanted outputs, parameters.
 *
 * Owner    The submitter makes it and gets it back through ops->released;
 *          between submit and release it belongs to the core.  Names, shapes
 *          and tables live in its arena.
 * Thread   one at a time, except the factory's cancel flag.
 * Units    bytes, dims as in the tensor's shape, ns on the monotonic clock.
 * Errors   out of memory.
 * Route    service -> [request] -> sched -> abi -> backend -> release.
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

/* An input's data for one host policy; instances under others see the usual
   buffers. */
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
    uint32_t        dim_count;          /* as the client sent it             */
    const int64_t  *shape;
    uint32_t        model_dim_count;    /* batch first, config's reshape     */
    const int64_t  *model_shape;        /* applied: what the backend sees    */
    uint64_t        byte_size;          /* sum of buffers                    */
    inf_buffer_t   *buffers;
    uint32_t        buffer_count;
    uint32_t        buffer_cap;
    inf_buffer_t    one;                /* the usual single buffer           */
    inf_arena_t    *arena;              /* the request's                     */
    const inf_host_data_t *host_data;   /* C API only                        */
    bool            in_region;          /* a client maps the bytes, and may
                                           write to them at any time         */

    struct {                            /* what backends have asked for      */
        struct inf_buffer_attributes_s **attributes;    /* one a buffer      */
        uint32_t    attribute_count;    /* 0 again when data is removed      */
    } abi;
} inf_input_t;

typedef enum {
    INF_REQUEST_IDLE,                   /* with the submitter                */
    INF_REQUEST_PARKED,                 /* waits at the response cache       */
    INF_REQUEST_PENDING,                /* queued                            */
    INF_REQUEST_EXECUTING,              /* taken by an instance, or from the
                                           cache's lists by a thread         */
    INF_REQUEST_REJECTED,               /* unlinked, about to be answered    */
    INF_REQUEST_RELEASED
} inf_request_state_t;

typedef struct {
    /* Nobody reads the request any more; it is the submitter's again. */
    void (*released)(void *userp, inf_request_t *request, uint32_t flags);

    /* An instance has taken it (state EXECUTING); may be NULL. */
    void (*executing)(void *userp, inf_request_t *request);
} inf_request_ops_t;

/* Why a request leaves its queue without having run. */
typedef enum {
    INF_GONE_TIMED_OUT,                 /* or it was cancelled itself        */
    INF_GONE_WITH_SEQUENCE,             /* one before it was cancelled       */
    INF_GONE_WITH_START,                /* that was rejected: its sequence
                                           has not begun                     */
    INF_GONE_SEQUENCE_TIMED_OUT         /* before it got a slot              */
} inf_gone_t;

/* How it is counted. */
typedef enum {
    INF_OUTCOME_NONE,
    INF_OUTCOME_REPORTED,               /* by statistics of its backend      */
    INF_OUTCOME_REJECTED                /* it was taken and did not run      */
} inf_outcome_t;

/* Whether cores have died that had it; then it executes alone. */
typedef enum {
    INF_SUSPICION_NONE = 0,
    INF_SUSPICION_QUEUED,               /* several, while it was queued      */
    INF_SUSPICION_EXECUTING             /* one, while it was executing: it is
                                           a suspect                         */
} inf_suspicion_t;

/* Whether bytes of inputs are anyone else's: model/private_inputs.h. */
typedef enum {
    INF_INPUTS_PRIVATE = 0,
    INF_INPUTS_SHARED,                  /* others may write to some: these are
                                           copied before they are used       */
    INF_INPUTS_LOST                     /* a copy has failed: they are read no
                                           more                              */
} inf_inputs_state_t;

/* A policy's notes on a request while it is queued; model's lock. */
typedef struct {
    struct inf_level_s *level;          /* its priority's                    */
    uint32_t            scan;           /* the scan of the queue that took
                                           it in; 0: none                    */
    bool                delayed;        /* timed out, and waits on           */
    inf_gone_t          gone;           /* why it went, if nothing else says */
    struct inf_slot_s  *slot;           /* its sequence's                    */
    uint32_t            turn;           /* that sequence's in the slot, once
                                           it is taken                       */
    struct inf_sequence_s *sequence;    /* waits for a slot in it            */
    bool                withdrawn;      /* cancelled while a plug-in looks   */
} inf_request_queued_t;

struct inf_request_s {
    inf_link_t               link;      /* in a list of the room that has it
                                           (sched, cache, server); its lock  */
    inf_heap_node_t          timeout;   /* likewise in a heap, or nowhere    */
    _Atomic(inf_request_state_t) state; /* relaxed; moved by
                                           inf_request_move alone            */
    inf_suspicion_t          suspect;   /* but for NONE: execute it alone    */
    bool                     padding;   /* constant: it fills an empty slot;
                                           no client waits, nothing is
                                           counted                           */

    struct inf_model_s      *model;     /* a reference                       */
    inf_factory_t           *factory;   /* a reference, from prepare on      */
    const inf_request_ops_t *ops;
    void                    *userp;

    inf_arena_t              arena;
    const char              *id;        /* never NULL                        */
    uint64_t                 correlation_id;
    const char              *correlation_text;  /* NULL: the number counts   */
    uint32_t                 flags;     /* TRITONSERVER_REQUEST_FLAG_*       */
    uint64_t                 priority;
    uint64_t                 timeout_us;

    inf_input_t             *inputs;
    uint32_t                 input_count;
    uint32_t                 input_cap;
    uint32_t                 inputs_added;  /* the last ones: no client's    */

    const char *const       *outputs;   /* wanted; from normalise on those of
                                           the model's table, sorted         */
    uint32_t                 output_count;
    uint32_t                 output_cap;
    inf_inputs_state_t       inputs_state;  /* moved by
                                               inf_request_move_inputs alone */
    bool                     uses_regions;  /* constant: clients map inputs or
                                               outputs, its own or its
                                               whole's                       */
    bool                     strings_unchecked; /* of BYTES inputs: see
                                                   model/string_check.h      */
    inf_budget_t            *copies;    /* bounds those of its inputs; NULL:
                                           nothing does                      */
    uint64_t                 copied_bytes;  /* taken from it, until reset    */

    inf_parameter_list_t     parameters;

    uint32_t                 batch_size;    /* 0: model does not batch       */
    uint64_t                 start_ns;      /* submit                        */
    uint64_t                 queue_ns;      /* entered the scheduler         */
    uint64_t                 exec_ns;       /* taken by an instance          */
    uint64_t                 input_ns;      /* the backend has last asked for
                                               an input                      */
    uint64_t                 backend_ns[4]; /* exec start, compute start,
                                               compute end, exec end         */
    uint32_t                 payload_rows;  /* of the payload that ran it    */
    const char              *instance;      /* its name; NULL: has not run   */
    inf_outcome_t            outcome;       /* of the thread that has it     */

    const struct inf_request_s *whole;  /* an ensemble's, which made this one
                                           and is released later: it goes on
                                           where new ones are rejected; NULL */
    struct inf_states_s     *states;    /* the sequence's, or NULL           */

    struct {
        inf_request_queued_t       queued;
        bool                       again;   /* queued for one more step of an
                                               iterative sequence; model's
                                               lock                          */
        struct inf_ensemble_run_s *run;     /* an ensemble's request; its
                                               lock                          */

        /* Called first when it is released, then NULL; NULL: nobody. */
        void                     (*leaves)(struct inf_request_s *request);
    } sched;

    struct {
        uint64_t                   lookup_ns;   /* how long the lookup took  */
        inf_lookup_t               lookup;
    } cache;

    struct {
        struct inf_instance_s     *runs_on; /* until it is released          */
        struct TRITONSERVER_InferenceTrace *trace;  /* or NULL               */
        const struct inf_trace_ops_s *trace_ops;    /* with trace            */
    } abi;
};

/* The caller's memory; fini frees the arena. */
void inf_request_init(inf_request_t *r);
void inf_request_fini(inf_request_t *r);

/* Empties r for the next use and keeps its memory. */
void inf_request_reset(inf_request_t *r);

/* A new input (names are copied, shape too); NULL: out of memory. */
inf_input_t *inf_request_add_input(inf_request_t *r, const char *name,
    size_t name_len, inf_datatype_t datatype, const int64_t *shape,
    uint32_t dim_count);

/* References data until release.  Zero size adds nothing. */
INF_CHECK inf_err_t *inf_request_add_data(inf_request_t *r, inf_input_t *input,
    const inf_buffer_t *buffer);

/* NULL when there is none. */
inf_input_t *inf_request_find_input(const inf_request_t *r, const char *name);

/* Before the request is normalised, which looks at the names. */
INF_CHECK inf_err_t *inf_request_add_output(inf_request_t *r, const char *name,
    size_t name_len);

/* Of a normalised request. */
bool inf_request_wants_output(const inf_request_t *r, const char *name);

/* Puts the request's id before err; takes err and returns the new one. */
INF_CHECK inf_err_t *inf_request_name_error(const inf_request_t *r,
    inf_err_t *err);

/* Ends the request: state RELEASED, factory reference dropped, ops->released
   called.  r is the submitter's afterwards. */
void inf_request_release(inf_request_t *r, uint32_t flags);

/* The one function that writes r->state. */
void inf_request_move(inf_request_t *r, inf_request_state_t to);

/* The one function that writes r->inputs_state.  Lost inputs stay lost until
   the request is normalised, which begins with PRIVATE. */
static inline void
inf_request_move_inputs(inf_request_t *r, inf_inputs_state_t to)
{
    assert(r->inputs_state != INF_INPUTS_LOST || to != INF_INPUTS_SHARED);
    r->inputs_state = to;
}

#endif /* INF_TENSOR_REQUEST_H */
