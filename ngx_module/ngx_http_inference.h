/*
 * ngx_http_inference.h - what the files of the nginx module share.
 *
 * Owner    Configuration belongs to its cycle's pool; a request's context to
 *          its r->pool; the client to the worker process.
 * Thread   the worker's event loop; supervisor functions run in the helper.
 * Units    ms for nginx timers, ns on the wall between processes, bytes.
 * Errors   nginx return codes; a failed inference is a status and a text.
 * Route    handler -> body -> infer|control -> client -> core and back.
 */

#ifndef NGX_HTTP_INFERENCE_H
#define NGX_HTTP_INFERENCE_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "core/base/buf.h"
#include "core/include/channel.h"
#include "core/include/datatype.h"
#include "core/wire/client.h"

#include "core_config.pb-c.h"


/* parts of the API a location serves (directive "inference") */

#define NGX_HTTP_INFERENCE_HEALTH         0x0001
#define NGX_HTTP_INFERENCE_METADATA       0x0002
#define NGX_HTTP_INFERENCE_CONFIG         0x0004
#define NGX_HTTP_INFERENCE_INFER          0x0008
#define NGX_HTTP_INFERENCE_GENERATE       0x0010
#define NGX_HTTP_INFERENCE_STATISTICS     0x0020
#define NGX_HTTP_INFERENCE_REPOSITORY     0x0040
#define NGX_HTTP_INFERENCE_TRACE          0x0080
#define NGX_HTTP_INFERENCE_LOGGING        0x0100
#define NGX_HTTP_INFERENCE_SHARED_MEMORY  0x0200
#define NGX_HTTP_INFERENCE_METRICS        0x0400
#define NGX_HTTP_INFERENCE_OPENAI         0x0800
#define NGX_HTTP_INFERENCE_STATUS         0x1000

/* no part: of those that are listed, calls of gRPC alone */

#define NGX_HTTP_INFERENCE_GRPC           0x2000

/* "all": the first group only; the control group is never implied */

#define NGX_HTTP_INFERENCE_ALL                                                \
    (NGX_HTTP_INFERENCE_HEALTH|NGX_HTTP_INFERENCE_METADATA                    \
     |NGX_HTTP_INFERENCE_CONFIG|NGX_HTTP_INFERENCE_INFER                      \
     |NGX_HTTP_INFERENCE_GENERATE|NGX_HTTP_INFERENCE_STATISTICS)

/* known to clients: locations that do not list them say so, not "Not Found" */

#define NGX_HTTP_INFERENCE_TOLD  NGX_HTTP_INFERENCE_SHARED_MEMORY

/* the paths of all parts are known where another server serves them */

#define NGX_HTTP_INFERENCE_EVERY  (~(ngx_uint_t) NGX_HTTP_INFERENCE_GRPC)

#define ngx_http_inference_parts_of(ilcf)                                     \
    ((ilcf)->parts ? (ilcf)->parts | NGX_HTTP_INFERENCE_TOLD                  \
                   : NGX_HTTP_INFERENCE_EVERY)

/* "inference" or "inference_model" is in force */

#define ngx_http_inference_is_served(ilcf)                                    \
    ((ilcf)->parts != 0 || (ilcf)->model != NULL)


/* of the configuration */
typedef struct {
    u_char                     *file;           /* NULL: nowhere             */
    ngx_uint_t                  number;
} ngx_http_inference_line_t;


typedef struct {
    ngx_str_t                   core;           /* program                   */
    ngx_str_t                   external;       /* socket of a core started
                                                   elsewhere, or empty       */
    NginxInference__CoreConfig  config;         /* the core's options; texts
                                                   and lists are the pool's  */
    ngx_array_t                 env;            /* ngx_str_t NAME=value      */
    off_t                       arena;          /* per worker, bound, bytes  */
    NginxInference__NamedModel **named;         /* by directives             */
    size_t                      n_named;
    ngx_http_inference_line_t   load;           /* of the first
                                                   inference_load_model      */
    ngx_http_inference_line_t   resource;       /* ... _rate_limit_resource  */
    ngx_http_inference_line_t   serving;        /* inference(_model)         */
    ngx_uint_t                  check;          /* what nginx -t does        */
    ngx_shm_zone_t             *shm_zone;       /* counters, survive reloads */
    ngx_array_t                 servers;        /* ngx_http_core_loc_conf_t *
                                                   of those with inference   */
    unsigned                    used:1;         /* some location needs it    */
    unsigned                    configured:1;   /* inference_core was seen   */
    unsigned                    names:1;        /* something uses the variables
                                                   of model and version      */
} ngx_http_inference_main_conf_t;


/* "inference_errors" */
typedef enum {
    NGX_HTTP_INFERENCE_ERRORS_TRITON = 0,
    NGX_HTTP_INFERENCE_ERRORS_PRECISE
} ngx_http_inference_errors_e;


/* "inference_min_body_rate" */
typedef struct {
    size_t                      size;           /* a second; 0: any          */
    ngx_msec_t                  over;           /* the time that is judged   */
} ngx_http_inference_rate_t;


typedef struct ngx_http_inference_readiness_s  ngx_http_inference_readiness_t;

/* "inference_upstream" */
typedef struct {
    ngx_str_t                   name;
    ngx_http_upstream_srv_conf_t  *conf;        /* once all are read         */
    u_char                     *file;           /* where it stands           */
    ngx_uint_t                  line;

    /* of this worker */
    ngx_http_inference_readiness_t  *readiness;
    ngx_uint_t                  last;           /* of its addresses: the one
                                                   that has answered last    */
} ngx_http_inference_upstream_t;


typedef struct ngx_http_inference_endpoint_s  ngx_http_inference_endpoint_t;

typedef struct {
    ngx_uint_t                  parts;          /* 0: no "inference" here    */
    ngx_str_t                   name;           /* of the location, without
                                                   its last slash; empty in
                                                   regex locations           */
    ngx_str_t                   prefix;         /* of it, to strip           */
    ngx_str_t                   alone;          /* path that the name itself
                                                   stands for; "": none      */
    ngx_http_complex_value_t   *model;          /* "inference_model"         */
    ngx_http_complex_value_t   *version;
    const ngx_http_inference_endpoint_t  *endpoint;     /* that model's      */
    ngx_http_inference_line_t   line;           /* of one of the two         */
    ngx_str_t                   setting;        /* the first directive for our
                                                   handler that stands here  */
    ngx_http_inference_line_t   setting_line;
    ngx_array_t                *pages;          /* error_page, as merged     */
    ngx_msec_t                  timeout;        /* 0: none                   */
    ngx_uint_t                  tries;
    ngx_uint_t                  errors;         /* ..._errors_e              */
    off_t                       max_body;       /* 0: unlimited; unset: half
                                                   of the arena              */
    ngx_http_inference_rate_t   min_rate;
    ngx_uint_t                  grpc_compression;   /* inf_grpc_level_t      */
    ngx_flag_t                  deflate;        /* answers of REST           */
    ngx_flag_t                  peek;           /* the names, in a location of
                                                   another handler           */
    ngx_flag_t                  intercept;      /* error_page has our errors */
    ngx_http_inference_upstream_t  *upstream;   /* NULL: none                */
    ngx_array_t                *forward;        /* names of headers, by
                                                   ngx_regex_elt_t; NULL:
                                                   none is forwarded         */
} ngx_http_inference_loc_conf_t;


/* ---- counters in the shared zone (ngx_http_inference_zone.c) ------------- */

/* of one worker; written by that worker alone */

typedef struct {
    ngx_atomic_t                pid;            /* that worker's             */
    ngx_atomic_t                used;           /* bytes of its request arena */
    ngx_atomic_t                reserved;       /* bytes announced for it    */
    ngx_atomic_t                slots;          /* of its channel, taken     */
} ngx_http_inference_gauges_t;


typedef struct {
    ngx_atomic_t                requests;
    ngx_atomic_t                failed;
    ngx_atomic_t                cancelled;
    ngx_atomic_t                retried;
    ngx_atomic_t                arena_full;
    ngx_atomic_t                ring_full;
    ngx_atomic_t                core_starts;
    ngx_atomic_t                core_deaths;
    ngx_atomic_t                core_failed;    /* 1 + wait status of a core
                                                   that ended before it had
                                                   answered; 0: none         */
    ngx_atomic_t                log_dropped;
    ngx_atomic_t                answered;       /* pid of the core that last
                                                   answered a worker         */
    ngx_http_inference_gauges_t  gauges[NGX_MAX_PROCESSES];
                                                /* by ngx_process_slot       */
    ngx_atomic_t                slices;         /* whose work goes on in a
                                                   later turn                */
    ngx_atomic_t                longest_ns;     /* turn for one request      */
    ngx_atomic_t                core_hangs;
    ngx_atomic_t                suspects;
    ngx_atomic_t                out_of_tries;
    ngx_atomic_t                configurations; /* that the master has had   */
    ngx_atomic_t                stopped;        /* the one with which it
                                                   stops; 0: it goes on      */
} ngx_http_inference_counters_t;

/* Never NULL; until the zone is there the counts go nowhere. */
ngx_http_inference_counters_t *ngx_http_inference_counters(void);

/* This worker's: bytes of its request arena, and slots. */
void ngx_http_inference_set_gauges(uint64_t used, uint64_t reserved,
    uint32_t slots);
void ngx_http_inference_set_slots(uint32_t slots);

/* Sums of all workers', for the answer to a call of the core: slots are those
   of the others. */
void ngx_http_inference_sum_gauges(ngx_http_inference_gauges_t *sum);

/*
 * An event handler of a request has its turn in the event loop.  One that nginx
 * calls from inside of another (a body's first bytes come while the content
 * handler asks for them) belongs to the outer one's turn: it gets 0, ns.
 */
uint64_t ngx_http_inference_turn_begin(void);
void ngx_http_inference_turn_end(uint64_t began_ns);

/* Appends them as metrics. */
void ngx_http_inference_counters_text(inf_buf_t *out);

/* Appends them as an object of JSON. */
void ngx_http_inference_counters_json(inf_buf_t *out);

/* The counters' zone, of this configuration. */
ngx_int_t ngx_http_inference_add_zone(ngx_conf_t *cf,
    ngx_http_inference_main_conf_t *imcf);


/* ---- leaving.c ----------------------------------------------------------- */

/* Of a call that may be idle as long as it likes; zeroed at first. */
typedef struct {
    ngx_queue_t                 queue;
    ngx_event_t                *turn;           /* NULL: not listed          */
} ngx_http_inference_leaver_t;

/* turn is posted when the worker begins to leave, at once if it has. */
void ngx_http_inference_leaver_add(ngx_http_inference_leaver_t *leaver,
    ngx_event_t *turn);

/* Does nothing where it is not listed. */
void ngx_http_inference_leaver_remove(ngx_http_inference_leaver_t *leaver);

/* In the master: a configuration with inferences is in force. */
void ngx_http_inference_leaving_number(void);

/* The worker leaves, and no other worker serves after it: nginx ends. */
ngx_uint_t ngx_http_inference_stopping(void);

/* The worker is new. */
void ngx_http_inference_leaving_init(void);

/* The worker has begun to leave. */
void ngx_http_inference_leaving(void);

/* turn is called in the next turn of the event loop, in a worker that leaves,
   too. */
void ngx_http_inference_next_turn(ngx_event_t *turn);

/* A request comes; it may be one of a connection that is not told yet. */
void ngx_http_inference_leaving_request(ngx_http_request_t *r);


/* ---- client: this worker's channel to the core --------------------------- */

typedef struct ngx_http_inference_submission_s  ngx_http_inference_submission_t;

/*
 * c is NULL when the core died before it answered; there is no further call
 * then.  The submission is not touched after the call: it may go in it.
 */
typedef void (*ngx_http_inference_answer_pt)(
    ngx_http_inference_submission_t *submission, const inf_completion_t *c);

/* the channel is up (rc NGX_OK), or it can't come up (NGX_ERROR) */
typedef void (*ngx_http_inference_ready_pt)(
    ngx_http_inference_submission_t *submission, ngx_int_t rc);

#define NGX_HTTP_INFERENCE_REGIONS  4


/* RELEASED: the core reads its regions no more.  FINAL: it was answered. */

typedef enum {
    NGX_HTTP_INFERENCE_SUBMISSION_FREE = 0, /* not used, or all has come     */
    NGX_HTTP_INFERENCE_SUBMISSION_QUEUED,   /* waits for a channel, or for
                                               the news that its own died    */
    NGX_HTTP_INFERENCE_SUBMISSION_SUBMITTED,
    NGX_HTTP_INFERENCE_SUBMISSION_RELEASED, /* FINAL is still to come        */
    NGX_HTTP_INFERENCE_SUBMISSION_FINAL     /* RELEASED is still to come     */
} ngx_http_inference_submission_state_e;


/*
 * One submission, embedded in the request's context and zeroed at first.
 * After a submission was submitted its slot is busy until FINAL and RELEASED
 * have come; ngx_http_inference_abandon() detaches the request from it at any
 * time: the client then cancels, waits for RELEASED and frees the regions by
 * itself.
 *
 * With `keep` set before submit the regions outlive RELEASED and the core, and
 * are freed by forget() or by abandon(), which the request's cleanup calls then
 * in any case: for a request that another core may get, or a body that may be
 * handed on to another handler.
 */
struct ngx_http_inference_submission_s {
    ngx_queue_t                   queue;        /* while it is QUEUED        */
    ngx_http_inference_submission_state_e  state;
    void                         *data;         /* the request's context     */
    ngx_http_inference_answer_pt  answer;
    ngx_http_inference_ready_pt   ready;

    uint32_t                      slot;         /* in_flight.c only          */
    uint32_t                      generation;
    uint64_t                      epoch;        /* of the channel            */
    inf_region_t                 *regions[NGX_HTTP_INFERENCE_REGIONS];
    ngx_uint_t                    nregions;     /* still to be freed         */
    ngx_uint_t                    begun;        /* executions of it, as far as
                                                   is known                  */
    ngx_uint_t                    excused;      /* of them: a suspect was
                                                   under way beside it when
                                                   its core ended            */
    ngx_uint_t                    deaths;       /* of cores that had it      */
    unsigned                      keep:1;       /* set by the request        */
    unsigned                      sequence:1;   /* the core that had it is
                                                   gone, and its sequence    */
    unsigned                      taken:1;      /* a core had taken it, and
                                                   is gone                   */
};

/* in a queue, or the core has not answered it */
#define ngx_http_inference_unanswered(submission)                             \
    ((submission)->state != NGX_HTTP_INFERENCE_SUBMISSION_FREE                \
     && (submission)->state != NGX_HTTP_INFERENCE_SUBMISSION_FINAL)

/* NGX_OK: channel is up.  NGX_AGAIN: not yet; submission->ready will be called.
   NGX_ERROR: no core is configured, or it was out of reach for too long. */
ngx_int_t ngx_http_inference_wait_ready(
    ngx_http_inference_submission_t *submission);

/* How long a worker that is so new that it has had no channel yet may still be
   given for its first, ms; 0: it is not new any more. */
ngx_msec_t ngx_http_inference_grace(void);

/* Why there is no channel, as far as is known, to be appended to a sentence:
   empty, or a text that begins with a colon.  Until the next call. */
ngx_str_t *ngx_http_inference_why_no_channel(void);

/* The words of the last core that has died, or empty, to be appended likewise.
   Until the next core dies. */
ngx_str_t *ngx_http_inference_last_crash(void);

/*
 * The channel, or NULL while it is down; changes after a core's death.  A
 * channel that died stays valid (mapped, its regions to be freed with
 * inf_client_free_region on the same pointer) as long as any region of its
 * request arena is in use or a response of it was not released.
 */
inf_client_t *ngx_http_inference_channel(uint64_t *epoch);

/* The same, or while it is down the last one, whose memory takes what comes in
   the meantime; NULL: there was none. */
inf_client_t *ngx_http_inference_last_channel(uint64_t *epoch);

/*
 * s: op, method, flags, offset, length, deadline and received time are the
 * caller's; slot and generation are filled in.  `regions` (count of them, at
 * most NGX_HTTP_INFERENCE_REGIONS) were allocated on the channel of `epoch`;
 * the client frees them once RELEASED has come, however the request
 * ends; on error they stay the caller's.
 * NGX_OK; NGX_BUSY: no slot or ring full; NGX_ERROR: that channel is down (a
 * newer one may be up).
 */
ngx_int_t ngx_http_inference_submit(ngx_http_inference_submission_t *submission,
    uint64_t epoch, inf_submission_t *s, inf_region_t *const *regions,
    ngx_uint_t count);

/* The request is going away: cancel what is queued, forget the submission.  May
   be called for a submission that was never used or is done. */
void ngx_http_inference_abandon(ngx_http_inference_submission_t *submission);

/* Its answer is not wanted any more; the bytes of one with `keep` are: abandon
   it in the end. */
void ngx_http_inference_cancel(ngx_http_inference_submission_t *submission);

/* The bytes of one with `keep` are not wanted any more. */
void ngx_http_inference_forget(ngx_http_inference_submission_t *submission);

/* A response region was sent to the socket (or isn't wanted any more). */
void ngx_http_inference_release(uint64_t epoch, uint64_t offset);

/* Response bytes of that epoch's channel, as inf_client_response(). */
const void *ngx_http_inference_response(uint64_t epoch, uint64_t offset,
    uint64_t len);

/* Starts the timer that trims the arena and updates its gauges. */
void ngx_http_inference_client_plan_sweep(void);

/* In init_process and exit_process. */
ngx_int_t ngx_http_inference_client_init(ngx_cycle_t *cycle);
void ngx_http_inference_client_exit(ngx_cycle_t *cycle);


/* ---- supervisor ---------------------------------------------------------- */

/* exit code of a core whose program cannot be run */
#define NGX_HTTP_INFERENCE_NOT_RUN  127

/* In init_module and in init_process of every kind of process. */
ngx_int_t ngx_http_inference_supervisor_init(ngx_cycle_t *cycle);
ngx_int_t ngx_http_inference_supervisor_process(ngx_cycle_t *cycle);

/* worker's end of the registration socket */
ngx_socket_t ngx_http_inference_registration(void);


/* ---- handler (content phase) --------------------------------------------- */

/* installed by "inference" and "inference_model" as clcf->handler */
ngx_int_t ngx_http_inference_handler(ngx_http_request_t *r);

/* what "inference_model" calls infer, generate, generate_stream; NULL: none */
const ngx_http_inference_endpoint_t *ngx_http_inference_model_endpoint(
    ngx_str_t *name);

/* before and after configuration, by the request side: variables, filters */
ngx_int_t ngx_http_inference_add_variables(ngx_conf_t *cf);
ngx_int_t ngx_http_inference_install_filters(ngx_conf_t *cf);


extern ngx_module_t  ngx_http_inference_module;

#endif /* NGX_HTTP_INFERENCE_H */
