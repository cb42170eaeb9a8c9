/*
 * ngx_http_inference_balance_sequence.c - which node has a sequence: a table of
 *                                         fixed size in the zone, in which each
 *                                         bucket forgets what it has used least
 *                                         recently.
 */

#include "ngx_module/ngx_http_inference_balance.h"


static ngx_http_inference_sequence_t *ngx_http_inference_sequence_place(
    ngx_http_inference_balance_t *balance, uint64_t key);


/* Two values of one key only share a node. */

uint64_t
ngx_http_inference_sequence_key(ngx_str_t *value)
{
    uint64_t  key;

    if (value->len == 0 || (value->len == 1 && value->data[0] == '0')) {
        return 0;
    }

    key = (uint64_t) ngx_murmur_hash2(value->data, value->len) << 32
          | ngx_crc32_long(value->data, value->len);

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


void
ngx_http_inference_sequence_put(ngx_http_inference_balance_t *balance,
    uint64_t key, ngx_http_inference_node_t *node)
{
    ngx_slab_pool_t                *shpool;
    ngx_http_inference_sequence_t  *place;

    shpool = (ngx_slab_pool_t *) balance->zone->shm.addr;

    ngx_shmtx_lock(&shpool->mutex);

    place = ngx_http_inference_sequence_place(balance, key);

    if (node) {
        place->key = key;
        place->node = (uint32_t) (node - balance->shared->nodes) + 1;
        place->used = (uint32_t) ngx_time();

    } else if (place->node && place->key == key) {
        place->node = 0;
    }

    ngx_shmtx_unlock(&shpool->mutex);
}


void
ngx_http_inference_sequence_forget(ngx_http_inference_balance_t *balance,
    ngx_http_inference_node_t *node)
{
    uint32_t                        number;
    ngx_uint_t                      i, k;
    ngx_slab_pool_t                *shpool;
    ngx_http_inference_sequence_t  *place;

    if (balance->sequence == NULL) {
        return;
    }

    shpool = (ngx_slab_pool_t *) balance->zone->shm.addr;
    number = (uint32_t) (node - balance->shared->nodes) + 1;

    ngx_shmtx_lock(&shpool->mutex);

    for (i = 0; i < NGX_HTTP_INFERENCE_BUCKETS; i++) {

        place = balance->shared->buckets[i].places;

        for (k = 0; k < NGX_HTTP_INFERENCE_BUCKET_PLACES; k++) {
            if (place[k].node == number) {
                place[k].node = 0;
            }
        }
    }

    ngx_shmtx_unlock(&shpool->mutex);
}


/* The key's own, or else the one of its bucket to be taken. */

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
