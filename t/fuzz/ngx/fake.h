/*
 * fake.h - as much of an nginx as a request of our module's sees: a pool, one
 *          request with its configuration, a body that comes in pieces, posted
 *          events, timers that never end and a clock that the fuzzer turns.
 *
 * Owner    The world owns all that hangs off its request; a pool's blocks are
 *          allocations of their own, so that a sanitizer sees their ends.
 * Thread   one.
 * Units    bytes.
 * Errors   a broken rule ends the fuzzer.
 * Route    fuzzer -> open -> handler -> body's pieces, turns -> close
 */

#ifndef T_FUZZ_NGX_FAKE_H
#define T_FUZZ_NGX_FAKE_H

#include "ngx_module/ngx_http_inference_grpc.h"

#include "core/base/buf.h"
#include "t/fuzz/check.h"
#include "t/fuzz/input.h"

typedef struct {
    ngx_http_request_t              request;
    ngx_connection_t                connection;
    ngx_event_t                     read;
    ngx_event_t                     write;
    ngx_log_t                       log;
    ngx_http_log_ctx_t              log_ctx;
    ngx_http_core_loc_conf_t        core_conf;
    ngx_http_inference_main_conf_t  main_conf;
    NginxInference__TraceSettings   trace;      /* of main_conf              */
    ngx_http_inference_loc_conf_t   loc_conf;
    ngx_array_t                     error_pages;
    ngx_http_err_page_t             pages[8];
    void                           *confs[2];
    void                           *main_confs[2];
    void                           *ctx[2];
    ngx_table_elt_t                 headers[4];

    uint64_t                        arena_size; /* of the client             */
    inf_client_t                     *client;
    ngx_http_inference_submission_t  *submission; /* NULL: none came yet     */
    inf_submission_t                  record;   /* the ring entry            */
    input_t                          *clock;    /* NULL: it stands           */

    ngx_http_client_body_handler_pt  post;      /* once the body is here     */
    unsigned                        submitted:1;
    unsigned                        sent:1;     /* an answer of our own      */
    unsigned                        finalized:1;
    unsigned                        turning:1;  /* an event handler runs     */
    ngx_int_t                       rc;         /* of the finalization       */
} fake_world_t;

extern fake_world_t  fake;

/* A POST with that path; headers are set by the fuzzer before it runs. */
void fake_open(const char *path, inf_client_t *client);

/* The request ends and its pool goes. */
void fake_close(void);

void fake_header(const char *key, const void *value, size_t len);

/* One more piece of the body; false: nobody reads it any more. */
bool fake_piece(const void *data, size_t len, bool last);

/* Runs what was posted for the next turn of the event loop. */
void fake_turn(void);

/* Whether there is anything to run. */
bool fake_posted(void);

/* The submitted record as the core reads it, without the places of things, with
   the tensors' bytes. */
void fake_record(inf_buf_t *out);

/* The core's end, as far as the request has been given to one. */
void fake_core_dies(void);

#endif /* T_FUZZ_NGX_FAKE_H */
