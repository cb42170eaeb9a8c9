/*
 * ngx_http_inference.h - the module's configuration, and the functions of
 *                        supervisor and handler that other files call.
 *
 * Owner    Configuration belongs to its cycle's pool.
 * Thread   The worker's event loop; the supervisor's functions say otherwise.
 * Units    ms for nginx timers, bytes.
 * Errors   nginx return codes.
 */

#ifndef NGX_HTTP_INFERENCE_H
#define NGX_HTTP_INFERENCE_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "core/base/slice.h"
#include "core/include/datatype.h"

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
#define NGX_HTTP_INFERENCE_ARCHIVES       0x4000

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


/* the bytes of an ngx_str_t or of a store */

#define ngx_http_inference_slice(text)                                        \
    inf_slice((char *) (text)->data, (size_t) (text)->len)


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
    NGX_HTTP_INFERENCE_ERRORS_SAGEMAKER,
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

/* a request's context */
typedef struct ngx_http_inference_ctx_s  ngx_http_inference_ctx_t;

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
    ngx_str_t                   binary_type;    /* "inference_binary_type",
                                                   with "="; "": none        */
    ngx_flag_t                  binary_reply;   /* of responses, too         */
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


/* ---- supervisor ---------------------------------------------------------- */

/* exit code of a core whose program cannot be executed */
#define NGX_HTTP_INFERENCE_NOT_RUN  127

/* Called in init_module, in init_process of every process, and in
   exit_master. */
ngx_int_t ngx_http_inference_supervisor_init(ngx_cycle_t *cycle);
ngx_int_t ngx_http_inference_supervisor_process(ngx_cycle_t *cycle);
void ngx_http_inference_supervisor_exit(ngx_cycle_t *cycle);

/* The workers' end of the registration socket. */
ngx_socket_t ngx_http_inference_registration(void);


/* ---- handler (content phase) --------------------------------------------- */

/* content handler set by "inference" and "inference_model" */
ngx_int_t ngx_http_inference_handler(ngx_http_request_t *r);

/* The endpoint that "inference_model" names: infer, generate or
   generate_stream; NULL: none of them. */
const ngx_http_inference_endpoint_t *ngx_http_inference_model_endpoint(
    ngx_str_t *name);

/* Called after the configuration is read. */
void ngx_http_inference_install_filters(void);


extern ngx_module_t  ngx_http_inference_module;

#endif /* NGX_HTTP_INFERENCE_H */
