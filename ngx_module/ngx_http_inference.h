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


/* parts of the API that a location serves (directive "inference") */

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

/* not a part: restricts the listed parts to calls of gRPC */

#define NGX_HTTP_INFERENCE_GRPC           0x2000

/* "all" is the first group alone; the control group must be listed by name */

#define NGX_HTTP_INFERENCE_ALL                                                \
    (NGX_HTTP_INFERENCE_HEALTH|NGX_HTTP_INFERENCE_METADATA                    \
     |NGX_HTTP_INFERENCE_CONFIG|NGX_HTTP_INFERENCE_INFER                      \
     |NGX_HTTP_INFERENCE_GENERATE|NGX_HTTP_INFERENCE_STATISTICS)

/* A location that does not list this part says so instead of "Not Found". */

#define NGX_HTTP_INFERENCE_TOLD  NGX_HTTP_INFERENCE_SHARED_MEMORY

/* Where another handler serves the location, the paths of all parts are
   known. */

#define NGX_HTTP_INFERENCE_EVERY  (~(ngx_uint_t) NGX_HTTP_INFERENCE_GRPC)

#define ngx_http_inference_parts_of(ilcf)                                     \
    ((ilcf)->parts ? (ilcf)->parts | NGX_HTTP_INFERENCE_TOLD                  \
                   : NGX_HTTP_INFERENCE_EVERY)

/* "inference" or "inference_model" is in force */

#define ngx_http_inference_is_served(ilcf)                                    \
    ((ilcf)->parts != 0 || (ilcf)->model != NULL)


/* a line of nginx's configuration */
typedef struct {
    u_char                     *file;           /* NULL: no such line        */
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
    ngx_http_inference_line_t   load;           /* first
                                                   inference_load_model      */
    ngx_http_inference_line_t   resource;       /* first rate limit resource */
    ngx_http_inference_line_t   serving;        /* first inference(_model)   */
    ngx_uint_t                  check;          /* mode of nginx -t          */
    ngx_shm_zone_t             *shm_zone;       /* counters, survive reloads */
    ngx_array_t                 servers;        /* ngx_http_core_loc_conf_t *
                                                   of servers with inference */
    unsigned                    used:1;         /* a location needs the core */
    unsigned                    configured:1;   /* inference_core was seen   */
    unsigned                    names:1;        /* a variable of model or
                                                   version is used           */
} ngx_http_inference_main_conf_t;


/* "inference_errors" */
typedef enum {
    NGX_HTTP_INFERENCE_ERRORS_TRITON = 0,
    NGX_HTTP_INFERENCE_ERRORS_PRECISE
} ngx_http_inference_errors_e;


/* "inference_min_body_rate" */
typedef struct {
    size_t                      size;           /* bytes a second; 0: any    */
    ngx_msec_t                  over;           /* length of the period      */
} ngx_http_inference_rate_t;


typedef struct ngx_http_inference_readiness_s  ngx_http_inference_readiness_t;

/* "inference_upstream" */
typedef struct {
    ngx_str_t                   name;
    ngx_http_upstream_srv_conf_t  *conf;        /* set when all are read     */
    u_char                     *file;           /* of the directive          */
    ngx_uint_t                  line;

    /* state of this worker */
    ngx_http_inference_readiness_t  *readiness;
    ngx_uint_t                  last;           /* index of the address that
                                                   answered last             */
} ngx_http_inference_upstream_t;


typedef struct ngx_http_inference_endpoint_s  ngx_http_inference_endpoint_t;

typedef struct {
    ngx_uint_t                  parts;          /* 0: no "inference" here    */
    ngx_str_t                   name;           /* of the location, without a
                                                   trailing slash; empty in
                                                   regex locations           */
    ngx_str_t                   prefix;         /* part of the name to strip */
    ngx_str_t                   alone;          /* path for a request of the
                                                   name itself; "": none     */
    ngx_http_complex_value_t   *model;          /* "inference_model"         */
    ngx_http_complex_value_t   *version;
    const ngx_http_inference_endpoint_t  *endpoint;     /* of that model     */
    ngx_http_inference_line_t   line;           /* of the directive          */
    ngx_str_t                   setting;        /* first directive here for our
                                                   handler                   */
    ngx_http_inference_line_t   setting_line;
    ngx_array_t                *pages;          /* error_page, as merged     */
    ngx_msec_t                  timeout;        /* 0: none                   */
    ngx_uint_t                  tries;
    ngx_uint_t                  errors;         /* ..._errors_e              */
    off_t                       max_body;       /* 0: unlimited; unset: half
                                                   of the arena              */
    ngx_http_inference_rate_t   min_rate;
    ngx_uint_t                  grpc_compression;   /* inf_grpc_level_t      */
    ngx_flag_t                  deflate;        /* REST responses            */
    ngx_flag_t                  peek;           /* inference_peek: names in a
                                                   location of another
                                                   handler                   */
    ngx_flag_t                  intercept;      /* error_page gets our
                                                   errors                    */
    ngx_http_inference_upstream_t  *upstream;   /* NULL: none                */
    ngx_array_t                *forward;        /* names of headers, by
                                                   ngx_regex_elt_t; NULL:
                                                   none is forwarded         */
} ngx_http_inference_loc_conf_t;


/* ---- counters in the shared zone (ngx_http_inference_zone.c) ------------- */

/* Gauges of one worker, written by that worker alone. */

typedef struct {
    ngx_atomic_t                pid;            /* of the worker             */
    ngx_atomic_t                used;           /* bytes of its request arena */
    ngx_atomic_t                reserved;       /* bytes announced for the
                                                   arena                     */
    ngx_atomic_t                slots;          /* taken in its channel      */
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
    ngx_atomic_t                slices;         /* ended slices with work left
                                                   for a later turn          */
    ngx_atomic_t                longest_ns;     /* longest turn for one
                                                   request                   */
    ngx_atomic_t                core_hangs;
    ngx_atomic_t                suspects;
    ngx_atomic_t                out_of_tries;
    ngx_atomic_t                configurations; /* read by the master        */
    ngx_atomic_t                stopped;        /* configuration with which the
                                                   master stops; 0: it runs  */
} ngx_http_inference_counters_t;

/* Returns the counters, never NULL.  Without a zone the counts are
   discarded. */
ngx_http_inference_counters_t *ngx_http_inference_counters(void);

/* Sets the gauges of this worker: bytes of its request arena, and slots. */
void ngx_http_inference_set_gauges(uint64_t used, uint64_t reserved,
    uint32_t slots);
void ngx_http_inference_set_slots(uint32_t slots);

/* Sums the gauges of all workers for the answer to a call of the core.  The
   slots are those of the other workers. */
void ngx_http_inference_sum_gauges(ngx_http_inference_gauges_t *sum);

/*
 * Called at the begin and end of an event handler of a request; the counters
 * keep the longest turn.  When nginx calls a handler from inside another one
 * (the content handler receives the first bytes of a body), the inner call
 * belongs to the outer turn and gets 0.  Times are ns.
 */
uint64_t ngx_http_inference_turn_begin(void);
void ngx_http_inference_turn_end(uint64_t began_ns);

/* Appends the counters in the text format of metrics. */
void ngx_http_inference_counters_text(inf_buf_t *out);

/* Appends the counters as a JSON object. */
void ngx_http_inference_counters_json(inf_buf_t *out);

/* Adds the shared zone of the counters to this configuration. */
ngx_int_t ngx_http_inference_add_zone(ngx_conf_t *cf,
    ngx_http_inference_main_conf_t *imcf);


/* ---- leaving.c ----------------------------------------------------------- */

/* An entry for a call without a time limit; the memory is zeroed first. */
typedef struct {
    ngx_queue_t                 queue;
    ngx_event_t                *turn;           /* NULL: not listed          */
} ngx_http_inference_leaver_t;

/* Posts turn when the worker begins to exit, or at once if it is exiting. */
void ngx_http_inference_leaver_add(ngx_http_inference_leaver_t *leaver,
    ngx_event_t *turn);

/* Removes an entry; does nothing if it is not listed. */
void ngx_http_inference_leaver_remove(ngx_http_inference_leaver_t *leaver);

/* Called in the master when a configuration with inferences takes effect. */
void ngx_http_inference_leaving_number(void);

/* Whether the worker exits and no other worker replaces it (nginx stops). */
ngx_uint_t ngx_http_inference_stopping(void);

/* Initializes this file's state in a new worker. */
void ngx_http_inference_leaving_init(void);

/* Called when the worker begins to exit: posts all listed turns. */
void ngx_http_inference_leaving(void);

/* Posts turn for the next turn of the event loop.  An exiting worker stays
   until then. */
void ngx_http_inference_next_turn(ngx_event_t *turn);

/* Called for each new request.  In an exiting worker, closes a connection of
   HTTP/2 that has had no GOAWAY yet. */
void ngx_http_inference_leaving_request(ngx_http_request_t *r);


/* ---- client: this worker's channel to the core --------------------------- */

typedef struct ngx_http_inference_submission_s  ngx_http_inference_submission_t;

/*
 * Called for each completion.  c is NULL when the core exited before its
 * answer; no further call follows.  The caller does not touch the submission
 * afterwards: the callback may free it.
 */
typedef void (*ngx_http_inference_answer_pt)(
    ngx_http_inference_submission_t *submission, const inf_completion_t *c);

/* called when the channel is up (rc NGX_OK) or cannot come up (NGX_ERROR) */
typedef void (*ngx_http_inference_ready_pt)(
    ngx_http_inference_submission_t *submission, ngx_int_t rc);

#define NGX_HTTP_INFERENCE_REGIONS  4


/* RELEASED: the core no longer reads the regions.  FINAL: the last answer has
   come. */

typedef enum {
    NGX_HTTP_INFERENCE_SUBMISSION_FREE = 0, /* not used, or finished         */
    NGX_HTTP_INFERENCE_SUBMISSION_QUEUED,   /* waits for a channel, or for the
                                               end of its own one            */
    NGX_HTTP_INFERENCE_SUBMISSION_SUBMITTED,
    NGX_HTTP_INFERENCE_SUBMISSION_RELEASED, /* FINAL is to come              */
    NGX_HTTP_INFERENCE_SUBMISSION_FINAL     /* RELEASED is to come           */
} ngx_http_inference_submission_state_e;


/*
 * One submission, embedded in the request's context and zeroed first.  The slot
 * is busy from submit() until both FINAL and RELEASED have come.
 * ngx_http_inference_abandon() detaches the request at any time: the client
 * then cancels, waits for RELEASED and frees the regions.
 *
 * With `keep` set before submit() the regions outlive RELEASED and the core;
 * forget() or abandon() frees them, and the request's cleanup always calls
 * abandon().  `keep` is for a request that another core may get, and for a body
 * that another handler may get.
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
    ngx_uint_t                    begun;        /* executions begun, as far as
                                                   known                     */
    ngx_uint_t                    excused;      /* executions during which a
                                                   suspect ran when the core
                                                   exited                    */
    ngx_uint_t                    deaths;       /* number of cores that exited
                                                   with it                   */
    unsigned                      keep:1;       /* set by the request        */
    unsigned                      sequence:1;   /* its core exited, and its
                                                   sequence is lost          */
    unsigned                      taken:1;      /* a core took it and has
                                                   exited                    */
};

/* whether it is queued, or the core has not answered it */
#define ngx_http_inference_unanswered(submission)                             \
    ((submission)->state != NGX_HTTP_INFERENCE_SUBMISSION_FREE                \
     && (submission)->state != NGX_HTTP_INFERENCE_SUBMISSION_FINAL)

/* NGX_OK: the channel is up.  NGX_AGAIN: submission->ready will be called.
   NGX_ERROR: no core is configured, or the core was out of reach for too
   long. */
ngx_int_t ngx_http_inference_wait_ready(
    ngx_http_inference_submission_t *submission);

/* Time left for the first channel of a new worker, ms; 0: the worker is not
   new. */
ngx_msec_t ngx_http_inference_grace(void);

/* Why there is no channel: empty, or a text that begins with a colon, to be
   appended to a sentence.  Valid until the next call. */
ngx_str_t *ngx_http_inference_why_no_channel(void);

/* Last words of the core that exited last, to be appended likewise, or empty.
   Valid until the next core exits. */
ngx_str_t *ngx_http_inference_last_crash(void);

/*
 * Returns the channel, or NULL while it is down; after an exit of the core it
 * is a new one.  A dead channel stays valid (mapped; inf_client_free_region()
 * on the same pointer frees its regions) while a region of its request arena is
 * in use or a response is not released.
 */
inf_client_t *ngx_http_inference_channel(uint64_t *epoch);

/* Returns the channel, or the last one while it is down, whose memory takes
   bytes received meanwhile.  NULL: there has been none. */
inf_client_t *ngx_http_inference_last_channel(uint64_t *epoch);

/*
 * Submits s.  The caller sets op, method, flags, offset, length, deadline and
 * received time; slot and generation are filled in.  `regions` (count of them,
 * at most NGX_HTTP_INFERENCE_REGIONS) were allocated on the channel of `epoch`;
 * the client frees them after RELEASED, however the request ends.  On error
 * they stay the caller's.  NGX_OK; NGX_BUSY: no slot, or the ring is full;
 * NGX_ERROR: that channel is down (a newer one may be up).
 */
ngx_int_t ngx_http_inference_submit(ngx_http_inference_submission_t *submission,
    uint64_t epoch, inf_submission_t *s, inf_region_t *const *regions,
    ngx_uint_t count);

/* The request ends: cancels what is queued and detaches the submission.  Does
   nothing for a submission that is unused or done. */
void ngx_http_inference_abandon(ngx_http_inference_submission_t *submission);

/* Cancels the answer.  Regions of a submission with `keep` stay until
   abandon(). */
void ngx_http_inference_cancel(ngx_http_inference_submission_t *submission);

/* Frees the regions of a submission with `keep`. */
void ngx_http_inference_forget(ngx_http_inference_submission_t *submission);

/* Releases a response region that was sent or is not wanted. */
void ngx_http_inference_release(uint64_t epoch, uint64_t offset);

/* Response bytes on the channel of epoch, as inf_client_response(). */
const void *ngx_http_inference_response(uint64_t epoch, uint64_t offset,
    uint64_t len);

/* Starts the timer that trims the arena and updates its gauges. */
void ngx_http_inference_client_plan_sweep(void);

/* In init_process and exit_process. */
ngx_int_t ngx_http_inference_client_init(ngx_cycle_t *cycle);
void ngx_http_inference_client_exit(ngx_cycle_t *cycle);


/* ---- supervisor ---------------------------------------------------------- */

/* exit code of a core whose program cannot be executed */
#define NGX_HTTP_INFERENCE_NOT_RUN  127

/* Called in init_module, and in init_process of every process. */
ngx_int_t ngx_http_inference_supervisor_init(ngx_cycle_t *cycle);
ngx_int_t ngx_http_inference_supervisor_process(ngx_cycle_t *cycle);

/* The workers' end of the registration socket. */
ngx_socket_t ngx_http_inference_registration(void);


/* ---- handler (content phase) --------------------------------------------- */

/* content handler set by "inference" and "inference_model" */
ngx_int_t ngx_http_inference_handler(ngx_http_request_t *r);

/* The endpoint that "inference_model" names: infer, generate or
   generate_stream; NULL: none of them. */
const ngx_http_inference_endpoint_t *ngx_http_inference_model_endpoint(
    ngx_str_t *name);

/* Called before and after the configuration is read. */
ngx_int_t ngx_http_inference_add_variables(ngx_conf_t *cf);
ngx_int_t ngx_http_inference_install_filters(ngx_conf_t *cf);


extern ngx_module_t  ngx_http_inference_module;

#endif /* NGX_HTTP_INFERENCE_H */
