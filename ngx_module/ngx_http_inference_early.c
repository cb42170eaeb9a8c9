/*
 * ngx_http_inference_early.c - model, version and verb of a request before, or
 *                              without, our handler.
 *
 * Limits need the names before our handler runs, and locations of another
 * handler never run it: the names come from the URI and the first bytes of the
 * body.  If nginx rejects the request, error_page may redirect it to another
 * location, so the names are kept for its log.
 */

#include "ngx_module/ngx_http_inference_endpoint.h"
#include "ngx_module/ngx_http_inference_grpc.h"
#include "ngx_module/ngx_http_inference_peek.h"
#include "ngx_module/ngx_http_inference_request.h"

#include "core/base/arena.h"


/* the names from the last location that has any */
typedef struct {
    ngx_http_request_t                   *request;
    ngx_http_inference_loc_conf_t        *location;
    const ngx_http_inference_endpoint_t  *endpoint;
    ngx_http_inference_names_t            names;        /* in the path       */
} ngx_http_inference_early_t;


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

        if (r->parent && early->endpoint == NULL) {
            /* inference_peek may be inherited: its path is no endpoint */
            return ngx_http_inference_early(r->parent, early);
        }

        ngx_http_inference_early_store(early);

    } else {
        stored = r->internal ? ngx_http_inference_early_stored(r) : NULL;

        if (stored == NULL) {
            /* a subrequest (auth_request, mirror) has the names of its
               parent */
            return r->parent ? ngx_http_inference_early(r->parent, early)
                             : NULL;
        }

        location = stored->location;
        early->endpoint = stored->endpoint;
        early->names = stored->names;
    }

    ngx_http_inference_early_names(early, location);

    return early;
}


ngx_int_t
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


/* Reads the names from the path.  Values of inference_model are skipped: their
   variables may not be known yet. */

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


/* Clears an error of the path, which our handler reports later. */

static void
ngx_http_inference_early_excuse(ngx_http_inference_ctx_t *early)
{
    early->status = 0;
    ngx_str_null(&early->error);
    inf_arena_fini(&early->arena);
}


/* Keeps the names in the pool; without memory, the log lacks them. */

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
        stored->names = early->names;
    }
}


/* Finds the names in the pool's cleanups: a redirect clears contexts. */

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
    /* identifies the names among the pool's cleanups */
}


/* Replaces the path's names by those of the location or message. */

static void
ngx_http_inference_early_names(ngx_http_inference_ctx_t *early,
    ngx_http_inference_loc_conf_t *location)
{
    ngx_http_request_t         *r;
    ngx_http_inference_peek_t  *peek;

    r = early->request;

    if (location->model) {
        (void) ngx_http_complex_value(r, location->model, &early->names.model);

        if (location->version) {
            (void) ngx_http_complex_value(r, location->version,
                                          &early->names.version);
        }

    } else {
        peek = ngx_http_inference_peek(r);

        if (peek) {
            early->names = peek->names;
        }
    }

    (void) ngx_http_inference_parse_version(early);

    ngx_http_inference_early_excuse(early);
}
