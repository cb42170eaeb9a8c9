/*
 * ngx_http_inference_early.c - model, version and verb of a request that has
 *                              not reached our handler, or never will.
 *
 * Limits ask before our handler has its turn, and in a location of another
 * handler there is none: what the URI and the first bytes say is known then.
 * A request that nginx itself rejects may be redirected by error_page to a
 * location that says nothing of them, so they are kept for its log.
 */

#include "ngx_module/ngx_http_inference_peek.h"


/* of the last location that has names */
typedef struct {
    ngx_http_request_t                   *request;
    ngx_http_inference_loc_conf_t        *location;
    const ngx_http_inference_endpoint_t  *endpoint;
    ngx_str_t                             model;        /* in the path       */
    ngx_str_t                             version_text;
} ngx_http_inference_early_t;


static ngx_int_t ngx_http_inference_early_handler(ngx_http_request_t *r);
static void ngx_http_inference_early_init(ngx_http_inference_ctx_t *early,
    ngx_http_request_t *r);
static void ngx_http_inference_early_path(ngx_http_inference_ctx_t *early);
static void ngx_http_inference_early_excuse(ngx_http_inference_ctx_t *early);
static void ngx_http_inference_early_store(ngx_http_inference_ctx_t *early);
static ngx_http_inference_early_t *ngx_http_inference_early_stored(
    ngx_http_request_t *r);
static void ngx_http_inference_early_mark(void *data);
static void ngx_http_inference_early_names(ngx_http_inference_ctx_t *early,
    ngx_http_inference_loc_conf_t *location);


#define ngx_http_inference_has_names(ilcf)                                    \
    (ngx_http_inference_is_served(ilcf) || (ilcf)->peek)


ngx_http_inference_ctx_t *
ngx_http_inference_early(ngx_http_request_t *r,
    ngx_http_inference_ctx_t *early)
{
    ngx_http_inference_early_t     *stored;
    ngx_http_inference_loc_conf_t  *location;

    location = ngx_http_get_module_loc_conf(r, ngx_http_inference_module);

    ngx_http_inference_early_init(early, r);

    if (ngx_http_inference_has_names(location)) {
        ngx_http_inference_early_path(early);
        ngx_http_inference_early_store(early);

    } else {
        stored = r->internal ? ngx_http_inference_early_stored(r) : NULL;

        if (stored == NULL) {
            /* a subrequest (auth_request, mirror) is about its parent */
            return r->parent ? ngx_http_inference_early(r->parent, early)
                             : NULL;
        }

        location = stored->location;
        early->endpoint = stored->endpoint;
        early->model = stored->model;
        early->version_text = stored->version_text;
    }

    ngx_http_inference_early_names(early, location);

    return early;
}


ngx_int_t
ngx_http_inference_early_install(ngx_conf_t *cf)
{
    ngx_http_handler_pt        *h;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_PREACCESS_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_inference_early_handler;

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_early_handler(ngx_http_request_t *r)
{
    ngx_http_inference_ctx_t        early;
    ngx_http_core_loc_conf_t       *clcf;
    ngx_http_inference_loc_conf_t  *ilcf;

    ilcf = ngx_http_get_module_loc_conf(r, ngx_http_inference_module);
    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (ngx_http_inference_has_names(ilcf) && clcf->error_pages) {
        ngx_http_inference_early_init(&early, r);
        ngx_http_inference_early_path(&early);
        ngx_http_inference_early_store(&early);
    }

    return NGX_DECLINED;
}


static void
ngx_http_inference_early_init(ngx_http_inference_ctx_t *early,
    ngx_http_request_t *r)
{
    ngx_memzero(early, sizeof(ngx_http_inference_ctx_t));

    early->request = r;
    early->version = -1;
}


/* The variables of inference_model may not be known yet: not what it says. */

static void
ngx_http_inference_early_path(ngx_http_inference_ctx_t *early)
{
    ngx_http_inference_loc_conf_t  *ilcf;

    ilcf = ngx_http_get_module_loc_conf(early->request,
                                        ngx_http_inference_module);

    if (ngx_http_inference_is_grpc(early->request)) {
        early->endpoint = ngx_http_inference_grpc_match(early->request);

    } else if (ilcf->model) {
        early->endpoint = ilcf->endpoint;

    } else {
        (void) ngx_http_inference_find_endpoint(early);
        ngx_http_inference_early_excuse(early);
    }
}


/* Takes back an error of the path: our handler reports errors later. */

static void
ngx_http_inference_early_excuse(ngx_http_inference_ctx_t *early)
{
    early->status = 0;
    ngx_str_null(&early->error);
    inf_arena_fini(&early->arena);
}


/* Out of memory, a log lacks the names. */

static void
ngx_http_inference_early_store(ngx_http_inference_ctx_t *early)
{
    ngx_http_request_t          *r;
    ngx_pool_cleanup_t          *cln;
    ngx_http_core_loc_conf_t    *clcf;
    ngx_http_inference_early_t  *stored;

    r = early->request;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    stored = ngx_http_inference_early_stored(r);

    if (stored == NULL && clcf->error_pages) {

        cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_inference_early_t));

        if (cln) {
            cln->handler = ngx_http_inference_early_mark;
            stored = cln->data;
        }
    }

    if (stored) {
        stored->request = r;
        stored->location = ngx_http_get_module_loc_conf(
                                                  r, ngx_http_inference_module);
        stored->endpoint = early->endpoint;
        stored->model = early->model;
        stored->version_text = early->version_text;
    }
}


/* A redirect forgets contexts, the pool doesn't. */

static ngx_http_inference_early_t *
ngx_http_inference_early_stored(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t          *cln;
    ngx_http_inference_early_t  *stored;

    for (cln = r->pool->cleanup; cln; cln = cln->next) {

        if (cln->handler == ngx_http_inference_early_mark) {
            stored = cln->data;

            if (stored->request == r) {
                return stored;
            }
        }
    }

    return NULL;
}


static void
ngx_http_inference_early_mark(void *data)
{
    /* it tells the names apart among other data of the pool */
}


/* Model and version of a location or a message, which replace the path's. */

static void
ngx_http_inference_early_names(ngx_http_inference_ctx_t *early,
    ngx_http_inference_loc_conf_t *location)
{
    ngx_http_request_t         *r;
    ngx_http_inference_peek_t  *peek;

    r = early->request;

    if (location->model) {
        (void) ngx_http_complex_value(r, location->model, &early->model);

        if (location->version) {
            (void) ngx_http_complex_value(r, location->version,
                                          &early->version_text);
        }

    } else {
        peek = ngx_http_inference_peek(r);

        if (peek) {
            early->model = peek->model;
            early->version_text = peek->version_text;
        }
    }

    (void) ngx_http_inference_parse_version(early);

    ngx_http_inference_early_excuse(early);
}
