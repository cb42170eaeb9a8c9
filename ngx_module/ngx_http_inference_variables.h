/*
 * ngx_http_inference_variables.h - the variables $inference_*.
 *
 * Owner    Values are the request's pool's.
 * Thread   the worker's event loop.
 * Units    none.
 * Errors   NGX_ERROR: out of memory.  A value that is not known is not found.
 * Route    nginx -> [variable] -> logs, maps, limits.
 */

#ifndef NGX_HTTP_INFERENCE_VARIABLES_H
#define NGX_HTTP_INFERENCE_VARIABLES_H

#include "ngx_module/ngx_http_inference.h"


/* ---- variables.c -------------------------------------------------------- */

/* Adds all variables before the configuration is read. */
ngx_int_t ngx_http_inference_add_variables(ngx_conf_t *cf);

/* Called when the configuration was read: whether a directive uses a variable
   of a name (model or version), which a gRPC call has in its message. */
ngx_uint_t ngx_http_inference_names_are_used(ngx_conf_t *cf);


/* ---- digest.c ----------------------------------------------------------- */

/* $inference_digest */
ngx_int_t ngx_http_inference_variable_digest(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


#endif /* NGX_HTTP_INFERENCE_VARIABLES_H */
