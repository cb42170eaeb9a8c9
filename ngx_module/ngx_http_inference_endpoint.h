/*
 * ngx_http_inference_endpoint.h - what a request asks for: endpoint, model
 *                                 and version.
 *
 * Owner    The table of endpoints is constant.  Model and version are texts in
 *          the request's pool, or views into its path.
 * Thread   the worker's event loop.
 * Units    none.
 * Errors   NGX_ERROR: the request has failed, and its error is recorded.
 * Route    driver, early -> [path or location] -> endpoint, model, version.
 *
 * find_endpoint() comes first; the endpoint's verb then decides which phases
 * follow.  A new endpoint is a row of endpoints.c.
 */

#ifndef NGX_HTTP_INFERENCE_ENDPOINT_H
#define NGX_HTTP_INFERENCE_ENDPOINT_H

#include "ngx_module/ngx_http_inference.h"


/* the kind of work that an endpoint asks for */

typedef enum {
    NGX_HTTP_INFERENCE_LIVE = 1,        /* by the worker                     */
    NGX_HTTP_INFERENCE_MODEL_INFER,
    NGX_HTTP_INFERENCE_GENERATE_ONE,    /* generate                          */
    NGX_HTTP_INFERENCE_GENERATE_ALL,    /* generate_stream                   */
    NGX_HTTP_INFERENCE_STREAM_INFER,    /* ModelStreamInfer of gRPC          */
    NGX_HTTP_INFERENCE_CALL,            /* of the core, without a body       */
    NGX_HTTP_INFERENCE_CALL_BODY,       /* of the core, which reads the body */
    NGX_HTTP_INFERENCE_HEALTH_CHECK,    /* CALL_BODY with the messages of
                                           grpc.health.v1                    */
    NGX_HTTP_INFERENCE_HEALTH_WATCH,    /* the same, answered at each change */
    NGX_HTTP_INFERENCE_NAMED            /* never supported                   */
} ngx_http_inference_verb_e;


/* model and version that a request names, as texts; empty: none */
typedef struct {
    ngx_str_t                    model;
    ngx_str_t                    version;
} ngx_http_inference_names_t;


/* fields of a gRPC message that hold them */

typedef enum {
    NGX_HTTP_INFERENCE_NAMES_NONE = 0,
    NGX_HTTP_INFERENCE_NAMES_BOTH,      /* fields 1 and 2                    */
    NGX_HTTP_INFERENCE_NAMES_SECOND     /* the model in field 2              */
} ngx_http_inference_name_fields_e;


/* a row of the endpoint table */
struct ngx_http_inference_endpoint_s {
    ngx_str_t                    pattern;
    ngx_uint_t                   methods;       /* NGX_HTTP_GET|...          */
    ngx_uint_t                   part;
    ngx_http_inference_verb_e    verb;
    uint16_t                     call;          /* INF_METHOD_*              */
    ngx_str_t                    name;          /* $inference_verb           */
    ngx_http_inference_name_fields_e  name_fields;
};


/* ctx has an endpoint. */

#define ngx_http_inference_is_generate(ctx)                                   \
    ((ctx)->endpoint->verb == NGX_HTTP_INFERENCE_GENERATE_ONE                 \
     || (ctx)->endpoint->verb == NGX_HTTP_INFERENCE_GENERATE_ALL)

/* whether it is an inference in any form */
#define ngx_http_inference_is_infer(ctx)                                      \
    ((ctx)->endpoint->verb == NGX_HTTP_INFERENCE_MODEL_INFER                  \
     || ngx_http_inference_is_generate(ctx))

/* whether it is a call with a body (of the core, or LIVE over gRPC) */
#define ngx_http_inference_call_has_body(ctx)                                 \
    ((ctx)->endpoint->verb == NGX_HTTP_INFERENCE_CALL_BODY                    \
     || (ctx)->endpoint->verb == NGX_HTTP_INFERENCE_LIVE                      \
     || (ctx)->endpoint->verb == NGX_HTTP_INFERENCE_HEALTH_CHECK              \
     || (ctx)->endpoint->verb == NGX_HTTP_INFERENCE_HEALTH_WATCH)

/* whether it is a call that may carry files of a model */
#define ngx_http_inference_is_load(ctx)                                       \
    (ngx_http_inference_call_has_body(ctx)                                    \
     && (ctx)->endpoint->call == INF_METHOD_REPOSITORY_MODEL_LOAD)


/* ---- endpoint.c --------------------------------------------------------- */

/* Sets endpoint, model and version.  NGX_ERROR: the request has failed. */
ngx_int_t ngx_http_inference_find_endpoint(ngx_http_inference_ctx_t *ctx);

/* Sets the path as it was sent, without arguments.  NGX_DECLINED: it is not the
   path by which nginx has chosen the location. */
ngx_int_t ngx_http_inference_path(ngx_http_request_t *r, ngx_str_t *path);

/* Sets model and version in a location of one model. */
ngx_int_t ngx_http_inference_model_of_location(ngx_http_inference_ctx_t *ctx);

/* Parses names.version into version. */
ngx_int_t ngx_http_inference_parse_version(ngx_http_inference_ctx_t *ctx);


/* ---- endpoints.c -------------------------------------------------------- */

/* Finds the row for a path among parts, and sets names.
   NULL: none. */
const ngx_http_inference_endpoint_t *ngx_http_inference_match_endpoint(
    ngx_http_inference_ctx_t *ctx, ngx_str_t *path, ngx_uint_t parts);


#endif /* NGX_HTTP_INFERENCE_ENDPOINT_H */
