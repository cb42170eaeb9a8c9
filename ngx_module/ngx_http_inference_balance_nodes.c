/*
 * ngx_http_inference_balance_nodes.c - the nodes of an upstream in their shared
 *                                      zone, which reloads keep.
 */

#include "ngx_module/ngx_http_inference_balance.h"


static ngx_int_t ngx_http_inference_balance_init_zone(ngx_shm_zone_t *zone,
    void *data);
static ngx_int_t ngx_http_inference_balance_place(
    ngx_http_inference_balance_t *balance, ngx_addr_t *addr);
static ngx_uint_t ngx_http_inference_balance_has(
    ngx_http_inference_balance_t *balance, struct sockaddr *sockaddr,
    socklen_t socklen);


ngx_int_t
ngx_http_inference_balance_add_nodes(ngx_http_inference_balance_t *balance,
    ngx_http_upstream_rr_peers_t *peers)
{
    ngx_addr_t                   *addr;
    ngx_http_upstream_rr_peer_t  *peer;

    for (peer = peers->peer; peer; peer = peer->next) {

        if (peer->down
            || ngx_http_inference_balance_has(balance, peer->sockaddr,
                                              peer->socklen))
        {
            continue;
        }

        addr = ngx_array_push(&balance->addrs);
        if (addr == NULL) {
            return NGX_ERROR;
        }

        addr->sockaddr = peer->sockaddr;
        addr->socklen = peer->socklen;
        addr->name = peer->name;
    }

    return NGX_OK;
}


/* Reloads keep it: neither its name nor its size depend on the servers. */

ngx_int_t
ngx_http_inference_balance_add_zone(ngx_conf_t *cf,
    ngx_http_inference_balance_t *balance)
{
    size_t     size;
    u_char    *p;
    ngx_str_t  name;

    p = ngx_pnalloc(cf->pool, sizeof("inference_balance ") - 1
                              + balance->name.len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    name.data = p;
    name.len = ngx_sprintf(p, "inference_balance %V", &balance->name) - p;

    size = sizeof(ngx_http_inference_nodes_t);

    if (balance->sequence) {
        size += NGX_HTTP_INFERENCE_BUCKETS
                * sizeof(ngx_http_inference_bucket_t);
    }

    /* nginx's pool in the zone takes a page, and some bytes for each page */

    balance->zone = ngx_shared_memory_add(cf, &name,
                                          ngx_align(size + size / 16,
                                                    ngx_pagesize)
                                          + 8 * ngx_pagesize,
                                          &ngx_http_inference_module);
    if (balance->zone == NULL) {
        return NGX_ERROR;
    }

    balance->zone->init = ngx_http_inference_balance_init_zone;
    balance->zone->data = balance;

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_balance_init_zone(ngx_shm_zone_t *zone, void *data)
{
    ngx_http_inference_balance_t *former = data;

    size_t                         size;
    ngx_addr_t                    *addr;
    ngx_uint_t                     i;
    ngx_slab_pool_t               *shpool;
    ngx_http_inference_balance_t  *balance;

    balance = zone->data;
    shpool = (ngx_slab_pool_t *) zone->shm.addr;

    if (former) {
        balance->shared = former->shared;

    } else if (zone->shm.exists) {
        balance->shared = shpool->data;

    } else {
        size = sizeof(ngx_http_inference_nodes_t);

        if (balance->sequence) {
            size += NGX_HTTP_INFERENCE_BUCKETS
                    * sizeof(ngx_http_inference_bucket_t);
        }

        balance->shared = ngx_slab_calloc(shpool, size);
        if (balance->shared == NULL) {
            return NGX_ERROR;
        }

        shpool->data = balance->shared;
    }

    addr = balance->addrs.elts;

    for (i = 0; i < balance->addrs.nelts; i++) {
        if (ngx_http_inference_balance_place(balance, &addr[i]) != NGX_OK) {
            ngx_log_error(NGX_LOG_EMERG, zone->shm.log, 0,
                          "no room for server %V of upstream \"%V\": servers "
                          "of former configurations still have requests",
                          &addr[i].name, &balance->name);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* A server that is configured no more keeps its entry until another needs it:
   workers of the former configuration may still send there. */

static ngx_int_t
ngx_http_inference_balance_place(ngx_http_inference_balance_t *balance,
    ngx_addr_t *addr)
{
    ngx_uint_t                  i;
    ngx_http_inference_node_t  *node, *free;

    node = balance->shared->nodes;

    if (ngx_http_inference_find_node(balance->shared, addr->sockaddr,
                                     addr->socklen, 0))
    {
        return NGX_OK;
    }

    free = NULL;

    for (i = 0; i < NGX_HTTP_INFERENCE_NODES; i++) {

        if (node[i].socklen == 0) {
            free = &node[i];
            break;
        }

        if (free == NULL && node[i].requests == 0
            && !ngx_http_inference_balance_has(balance,
                                               &node[i].sockaddr.sockaddr,
                                               node[i].socklen))
        {
            free = &node[i];
        }
    }

    if (free == NULL || addr->socklen > (socklen_t) sizeof(ngx_sockaddr_t)) {
        return NGX_ERROR;
    }

    ngx_http_inference_sequence_forget(balance, free);

    ngx_memzero(free, sizeof(ngx_http_inference_node_t));
    ngx_memcpy(&free->sockaddr, addr->sockaddr, addr->socklen);
    free->socklen = addr->socklen;

    return NGX_OK;
}


static ngx_uint_t
ngx_http_inference_balance_has(ngx_http_inference_balance_t *balance,
    struct sockaddr *sockaddr, socklen_t socklen)
{
    ngx_uint_t   i;
    ngx_addr_t  *addr;

    addr = balance->addrs.elts;

    for (i = 0; i < balance->addrs.nelts; i++) {
        if (ngx_cmp_sockaddr(addr[i].sockaddr, addr[i].socklen, sockaddr,
                             socklen, 1)
            == NGX_OK)
        {
            return 1;
        }
    }

    return 0;
}


ngx_http_inference_node_t *
ngx_http_inference_find_node(ngx_http_inference_nodes_t *shared,
    struct sockaddr *sockaddr, socklen_t socklen, ngx_uint_t hint)
{
    ngx_uint_t                  i;
    ngx_http_inference_node_t  *node;

    for (i = 0; i < NGX_HTTP_INFERENCE_NODES; i++) {

        node = &shared->nodes[(hint + i) % NGX_HTTP_INFERENCE_NODES];

        if (node->socklen == 0) {
            continue;
        }

        if (ngx_cmp_sockaddr(&node->sockaddr.sockaddr, node->socklen,
                             sockaddr, socklen, 1)
            == NGX_OK)
        {
            return node;
        }
    }

    return NULL;
}
