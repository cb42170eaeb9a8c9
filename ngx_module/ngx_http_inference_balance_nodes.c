/*
 * ngx_http_inference_balance_nodes.c - the nodes of an upstream in their shared
 *                                      zone, which reloads keep.
 */

#include "ngx_module/ngx_http_inference_balance.h"

#include <sys/random.h>


/* Time an entry without configured server is kept after its last probe, ms:
   without requests, and with requests. */
#define NGX_HTTP_INFERENCE_NODE_IDLE  10000
#define NGX_HTTP_INFERENCE_NODE_LEFT  3600000


static ngx_int_t ngx_http_inference_balance_init_zone(ngx_shm_zone_t *zone,
    void *data);
static ngx_http_inference_node_t *ngx_http_inference_balance_free_node(
    ngx_http_inference_balance_t *balance);
static ngx_uint_t ngx_http_inference_balance_left(
    ngx_http_inference_node_t *node);
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


/* Name and size of the zone are independent of the servers, so reloads keep
   it. */

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

    /* the slab allocator needs a page, and some bytes for each page */

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

        if (getrandom(balance->shared->secret, sizeof(balance->shared->secret),
                      0)
            != (ssize_t) sizeof(balance->shared->secret))
        {
            ngx_log_error(NGX_LOG_EMERG, zone->shm.log, ngx_errno,
                          "getrandom() failed");
            return NGX_ERROR;
        }

        shpool->data = balance->shared;
    }

    return NGX_OK;
}


/* Called by workers only, so a rejected configuration takes no entries. */

ngx_http_inference_node_t *
ngx_http_inference_place_node(ngx_http_inference_balance_t *balance,
    ngx_addr_t *addr)
{
    ngx_slab_pool_t            *shpool;
    ngx_http_inference_node_t  *node;

    shpool = (ngx_slab_pool_t *) balance->zone->shm.addr;

    ngx_shmtx_lock(&shpool->mutex);

    node = ngx_http_inference_find_node(balance->shared, addr->sockaddr,
                                        addr->socklen, 0);
    if (node == NULL) {
        node = ngx_http_inference_balance_free_node(balance);

        if (node) {
            ngx_http_inference_sequence_forget(balance, node);

            node->socklen = 0;
            ngx_memory_barrier();

            ngx_memzero(node, sizeof(ngx_http_inference_node_t));
            ngx_memcpy(&node->sockaddr, addr->sockaddr, addr->socklen);
            node->placed = ngx_current_msec;

            /* publish: readers do not take the mutex */
            ngx_memory_barrier();
            node->socklen = addr->socklen;
        }
    }

    ngx_shmtx_unlock(&shpool->mutex);

    return node;
}


static ngx_http_inference_node_t *
ngx_http_inference_balance_free_node(ngx_http_inference_balance_t *balance)
{
    ngx_uint_t                  i;
    ngx_http_inference_node_t  *node, *old;

    node = balance->shared->nodes;
    old = NULL;

    for (i = 0; i < NGX_HTTP_INFERENCE_NODES; i++) {

        if (node[i].socklen == 0) {
            return &node[i];
        }

        if (old == NULL
            && ngx_http_inference_balance_left(&node[i])
            && !ngx_http_inference_balance_has(balance,
                                               &node[i].sockaddr.sockaddr,
                                               node[i].socklen))
        {
            old = &node[i];
        }
    }

    return old;
}


/* Whether the node is unused: no worker probes it, and it has no requests.  A
   count that stays for NODE_LEFT was left by a killed worker. */

static ngx_uint_t
ngx_http_inference_balance_left(ngx_http_inference_node_t *node)
{
    ngx_msec_int_t  age, placed;

    age = (ngx_msec_int_t) (ngx_current_msec - node->probed);
    placed = (ngx_msec_int_t) (ngx_current_msec - node->placed);

    return ngx_min(age, placed) > (node->requests
                                   ? NGX_HTTP_INFERENCE_NODE_LEFT
                                   : NGX_HTTP_INFERENCE_NODE_IDLE);
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
