/*
 * ngx_http_inference_upstream.c - the directive "inference_upstream": an
 *                                 upstream{} whose models are listed with ours
 *                                 (join.c).
 */

#include "ngx_module/ngx_http_inference_ask.h"
#include "ngx_module/ngx_http_inference_directives.h"


static ngx_http_inference_readiness_t *ngx_http_inference_upstream_readiness(
    ngx_conf_t *cf, ngx_http_inference_upstream_t *upstream);


char *
ngx_http_inference_upstream_directive(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_http_inference_loc_conf_t *ilcf = conf;

    ngx_str_t                      *value;
    ngx_http_inference_upstream_t  *upstream;

    if (ilcf->upstream) {
        return "is duplicate";
    }

    upstream = ngx_pcalloc(cf->pool, sizeof(ngx_http_inference_upstream_t));
    if (upstream == NULL) {
        return NGX_CONF_ERROR;
    }

    value = cf->args->elts;

    upstream->name = value[1];
    upstream->file = cf->conf_file->file.name.data;
    upstream->line = cf->conf_file->line;

    upstream->readiness = ngx_http_inference_upstream_readiness(cf, upstream);
    if (upstream->readiness == NULL) {
        return NGX_CONF_ERROR;
    }

    ilcf->upstream = upstream;

    return NGX_CONF_OK;
}


static ngx_http_inference_readiness_t *
ngx_http_inference_upstream_readiness(ngx_conf_t *cf,
    ngx_http_inference_upstream_t *upstream)
{
    ngx_http_inference_readiness_t  *readiness;

    static ngx_str_t  ready = ngx_string("/v2/health/ready");

    readiness = ngx_pcalloc(cf->pool, sizeof(ngx_http_inference_readiness_t));
    if (readiness == NULL) {
        return NULL;
    }

    readiness->ask.upstream = upstream;

    if (ngx_http_inference_ask_get(&readiness->ask, cf->pool, &ready)
        != NGX_OK)
    {
        return NULL;
    }

    readiness->ask.without = "it is not ready";
    readiness->ask.fetch.answer = readiness->answer;
    readiness->ask.fetch.size = sizeof(readiness->answer);

    ngx_queue_init(&readiness->waiting);

    return readiness;
}


ngx_int_t
ngx_http_inference_find_upstream(ngx_conf_t *cf,
    ngx_http_inference_loc_conf_t *ilcf)
{
    ngx_uint_t                       i;
    ngx_http_upstream_srv_conf_t   **uscfp;
    ngx_http_inference_upstream_t   *upstream;
    ngx_http_upstream_main_conf_t   *umcf;

    upstream = ilcf->upstream;

    if ((ilcf->parts & (NGX_HTTP_INFERENCE_HEALTH
                        |NGX_HTTP_INFERENCE_METADATA
                        |NGX_HTTP_INFERENCE_REPOSITORY)) == 0)
    {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"inference_upstream\" in a location whose "
                      "\"inference\" lists neither health, metadata nor "
                      "repository in %s:%ui", upstream->file, upstream->line);
        return NGX_ERROR;
    }

    umcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_upstream_module);
    uscfp = umcf->upstreams.elts;

    for (i = 0; i < umcf->upstreams.nelts; i++) {

        /* implicit upstreams are addresses of a proxy_pass */

        if ((uscfp[i]->flags & NGX_HTTP_UPSTREAM_CREATE)
            && uscfp[i]->host.len == upstream->name.len
            && ngx_strncasecmp(uscfp[i]->host.data, upstream->name.data,
                               upstream->name.len)
               == 0)
        {
            upstream->conf = uscfp[i];
            return NGX_OK;
        }
    }

    ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                  "\"inference_upstream\" names \"%V\", but there is no "
                  "upstream of that name in %s:%ui", &upstream->name,
                  upstream->file, upstream->line);
    return NGX_ERROR;
}
