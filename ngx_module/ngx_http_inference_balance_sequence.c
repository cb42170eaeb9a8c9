/*
 * ngx_http_inference_balance_sequence.c - the node of each sequence: a table of
 *                                         fixed size in the zone.  A full
 *                                         bucket drops its least recently used
 *                                         entry.  The secret keeps clients from
 *                                         choosing a bucket.
 */

#include "ngx_module/ngx_http_inference_balance.h"

#include <ngx_md5.h>


/* minimum time that a sequence is kept after a request, s */
#define NGX_HTTP_INFERENCE_SEQUENCE_KEPT  3


static ngx_http_inference_sequence_t *ngx_http_inference_sequence_place(
    ngx_http_inference_balance_t *balance, uint64_t key);


/* Equal keys of two values make them share a node, which does no harm. */

uint64_t
ngx_http_inference_sequence_key(ngx_http_inference_balance_t *balance,
    ngx_str_t *value)
{
    u_char     digest[16];
    uint64_t   key;
    ngx_md5_t  md5;

    if (value->len == 0 || (value->len == 1 && value->data[0] == '0')) {
        return 0;
    }

    ngx_md5_init(&md5);
    ngx_md5_update(&md5, balance->shared->secret,
                   sizeof(balance->shared->secret));
    ngx_md5_update(&md5, value->data, value->len);
    ngx_md5_final(digest, &md5);

    ngx_memcpy(&key, digest, sizeof(key));

    return key ? key : 1;
}


ngx_http_inference_node_t *
ngx_http_inference_sequence_find(ngx_http_inference_balance_t *balance,
    uint64_t key)
{
    ngx_slab_pool_t                *shpool;
    ngx_http_inference_node_t      *node;
    ngx_http_inference_sequence_t  *place;

    shpool = (ngx_slab_pool_t *) balance->zone->shm.addr;
    node = NULL;

    ngx_shmtx_lock(&shpool->mutex);

    place = ngx_http_inference_sequence_place(balance, key);

    if (place->node && place->key == key) {
        place->used = (uint32_t) ngx_time();
        node = &balance->shared->nodes[place->node - 1];
    }

    ngx_shmtx_unlock(&shpool->mutex);

    return node;
}


ngx_int_t
ngx_http_inference_sequence_put(ngx_http_inference_balance_t *balance,
    uint64_t key, ngx_http_inference_node_t *node)
{
    uint32_t                        now;
    ngx_int_t                       rc;
    ngx_slab_pool_t                *shpool;
    ngx_http_inference_sequence_t  *place;

    shpool = (ngx_slab_pool_t *) balance->zone->shm.addr;
    now = (uint32_t) ngx_time();
    rc = NGX_OK;

    ngx_shmtx_lock(&shpool->mutex);

    place = ngx_http_inference_sequence_place(balance, key);

    if (node == NULL) {
        if (place->key == key) {
            place->node = 0;
        }

    } else if (place->node && place->key != key
               && (int32_t) (now - place->used)
                  < NGX_HTTP_INFERENCE_SEQUENCE_KEPT)
    {
        rc = NGX_DECLINED;

    } else {
        place->key = key;
        place->node = (uint32_t) (node - balance->shared->nodes) + 1;
        place->used = now;
    }

    ngx_shmtx_unlock(&shpool->mutex);

    return rc;
}


void
ngx_http_inference_sequence_forget(ngx_http_inference_balance_t *balance,
    ngx_http_inference_node_t *node)
{
    uint32_t                        number;
    ngx_uint_t                      i, k;
    ngx_http_inference_sequence_t  *place;

    if (balance->sequence == NULL) {
        return;
    }

    number = (uint32_t) (node - balance->shared->nodes) + 1;

    for (i = 0; i < NGX_HTTP_INFERENCE_BUCKETS; i++) {

        place = balance->shared->buckets[i].places;

        for (k = 0; k < NGX_HTTP_INFERENCE_BUCKET_PLACES; k++) {
            if (place[k].node == number) {
                place[k].node = 0;
            }
        }
    }
}


/* The entry of the key, or the entry of its bucket to replace. */

static ngx_http_inference_sequence_t *
ngx_http_inference_sequence_place(ngx_http_inference_balance_t *balance,
    uint64_t key)
{
    ngx_uint_t                      i;
    ngx_http_inference_sequence_t  *place, *best;

    place = balance->shared->buckets[key % NGX_HTTP_INFERENCE_BUCKETS].places;
    best = &place[0];

    for (i = 0; i < NGX_HTTP_INFERENCE_BUCKET_PLACES; i++) {

        if (place[i].node && place[i].key == key) {
            return &place[i];
        }

        if (best->node && (place[i].node == 0 || place[i].used < best->used)) {
            best = &place[i];
        }
    }

    return best;
}
