/*
 * ngx_http_inference_balance.c - the directive "inference_balance" of
 *                                upstream{}: its parameters, and its place
 *                                among nginx's balancing methods.
 */

#include "ngx_module/ngx_http_inference_balance.h"
#include "ngx_module/ngx_http_inference_directives.h"


#define NGX_HTTP_INFERENCE_INTERVAL_MIN  10
#define NGX_HTTP_INFERENCE_INTERVAL_MAX  3600000


static ngx_int_t ngx_http_inference_balance_option(ngx_conf_t *cf,
    ngx_http_inference_balance_t *balance, ngx_str_t *arg);
static ngx_int_t ngx_http_inference_balance_sequence(ngx_conf_t *cf,
    ngx_http_inference_balance_t *balance, ngx_str_t *value);
static ngx_int_t ngx_http_inference_balance_init_upstream(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us);


void *
ngx_http_inference_create_srv_conf(ngx_conf_t *cf)
{
    ngx_http_inference_balance_t  *balance;

    balance = ngx_pcalloc(cf->pool, sizeof(ngx_http_inference_balance_t));
    if (balance == NULL) {
        return NULL;
    }

    /*
     * set by ngx_pcalloc():
     *
     *     balance->sequence = NULL;
     *     balance->port = 0;
     *     balance->zone = NULL;
     *     balance->shared = NULL;
     *     balance->file = NULL;
     */

    balance->interval = NGX_CONF_UNSET_MSEC;

    return balance;
}


char *
ngx_http_inference_balance_directive(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_http_inference_balance_t *balance = conf;

    ngx_str_t                     *value;
    ngx_uint_t                     i;
    ngx_http_upstream_srv_conf_t  *uscf;

    if (balance->file) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (!ngx_http_inference_is(&value[1], "queue")) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "unknown method \"%V\" in \"inference_balance\"; "
                           "there is: queue", &value[1]);
        return NGX_CONF_ERROR;
    }

    for (i = 2; i < cf->args->nelts; i++) {
        if (ngx_http_inference_balance_option(cf, balance, &value[i])
            != NGX_OK)
        {
            return NGX_CONF_ERROR;
        }
    }

    ngx_conf_init_msec_value(balance->interval, 1000);

    if (balance->uri.len == 0) {
        ngx_str_set(&balance->uri, "/v2/health/ready");
    }

    uscf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_upstream_module);

    if (uscf->peer.init_upstream) {
        return "stands behind another balancing method or behind "
               "\"keepalive\": there is one method, before \"keepalive\"";
    }

    uscf->peer.init_upstream = ngx_http_inference_balance_init_upstream;

    uscf->flags = NGX_HTTP_UPSTREAM_CREATE
                  |NGX_HTTP_UPSTREAM_WEIGHT
                  |NGX_HTTP_UPSTREAM_MAX_CONNS
                  |NGX_HTTP_UPSTREAM_MAX_FAILS
                  |NGX_HTTP_UPSTREAM_FAIL_TIMEOUT
                  |NGX_HTTP_UPSTREAM_DOWN
                  |NGX_HTTP_UPSTREAM_BACKUP;

    balance->name = uscf->host;
    balance->file = cf->conf_file->file.name.data;
    balance->line = cf->conf_file->line;

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_inference_balance_option(ngx_conf_t *cf,
    ngx_http_inference_balance_t *balance, ngx_str_t *arg)
{
    ngx_int_t  n;
    ngx_str_t  value;

    if (ngx_http_inference_option(arg, "sequence=", &value) == NGX_OK
        && balance->sequence == NULL && value.len)
    {
        return ngx_http_inference_balance_sequence(cf, balance, &value);
    }

    if (ngx_http_inference_option(arg, "port=", &value) == NGX_OK
        && balance->port == 0)
    {
        n = ngx_atoi(value.data, value.len);

        if (n > 0 && n <= 65535) {
            balance->port = (in_port_t) n;
            return NGX_OK;
        }
    }

    if (ngx_http_inference_option(arg, "uri=", &value) == NGX_OK
        && balance->uri.len == 0 && value.len && value.data[0] == '/')
    {
        balance->uri = value;
        return NGX_OK;
    }

    if (ngx_http_inference_option(arg, "interval=", &value) == NGX_OK
        && balance->interval == NGX_CONF_UNSET_MSEC)
    {
        n = ngx_parse_time(&value, 0);

        if (n >= NGX_HTTP_INFERENCE_INTERVAL_MIN
            && n <= NGX_HTTP_INFERENCE_INTERVAL_MAX)
        {
            balance->interval = (ngx_msec_t) n;
            return NGX_OK;
        }
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid or duplicate parameter \"%V\" of "
                       "\"inference_balance\": it takes sequence=VARIABLE, "
                       "port=1...65535, uri=/PATH and interval=TIME (10ms to "
                       "1h)", arg);
    return NGX_ERROR;
}


static ngx_int_t
ngx_http_inference_balance_sequence(ngx_conf_t *cf,
    ngx_http_inference_balance_t *balance, ngx_str_t *value)
{
    ngx_http_compile_complex_value_t   ccv;

    if (ngx_http_script_variables_count(value) == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"sequence=%V\" of \"inference_balance\" holds no "
                           "variable: all requests would go to one node",
                           value);
        return NGX_ERROR;
    }

    balance->sequence = ngx_pcalloc(cf->pool,
                                    sizeof(ngx_http_complex_value_t));
    if (balance->sequence == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));

    ccv.cf = cf;
    ccv.value = value;
    ccv.complex_value = balance->sequence;

    return ngx_http_compile_complex_value(&ccv);
}


static ngx_int_t
ngx_http_inference_balance_init_upstream(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us)
{
    ngx_http_inference_balance_t  *balance;
    ngx_http_upstream_rr_peers_t  *peers;

    if (ngx_http_upstream_init_round_robin(cf, us) != NGX_OK) {
        return NGX_ERROR;
    }

    us->peer.init = ngx_http_inference_balance_init_peer;

    balance = ngx_http_conf_upstream_srv_conf(us, ngx_http_inference_module);

    if (ngx_array_init(&balance->addrs, cf->pool, 8, sizeof(ngx_addr_t))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* backup servers are the second group */

    for (peers = us->peer.data; peers; peers = peers->next) {
        if (ngx_http_inference_balance_add_nodes(balance, peers) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    if (balance->addrs.nelts > NGX_HTTP_INFERENCE_NODES) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "upstream \"%V\" has %ui addresses; "
                      "\"inference_balance\" takes %d in %s:%ui",
                      &balance->name, balance->addrs.nelts,
                      NGX_HTTP_INFERENCE_NODES, balance->file, balance->line);
        return NGX_ERROR;
    }

    return ngx_http_inference_balance_add_zone(cf, balance);
}


/* Fails if another method has replaced ours: nginx itself only warns. */

ngx_int_t
ngx_http_inference_balance_verify(ngx_conf_t *cf)
{
    ngx_uint_t                       i;
    ngx_http_inference_balance_t    *balance;
    ngx_http_upstream_srv_conf_t   **uscfp;
    ngx_http_upstream_main_conf_t   *umcf;

    umcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_upstream_module);
    uscfp = umcf->upstreams.elts;

    for (i = 0; i < umcf->upstreams.nelts; i++) {

        if (uscfp[i]->srv_conf == NULL) {
            /* not written as upstream{} */
            continue;
        }

        balance = ngx_http_conf_upstream_srv_conf(uscfp[i],
                                                  ngx_http_inference_module);

        if (balance->file && balance->zone == NULL) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "\"inference_balance\" of upstream \"%V\" is "
                          "followed by another balancing method in %s:%ui",
                          &balance->name, balance->file, balance->line);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}
