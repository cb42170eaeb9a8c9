#include "core/cache/cache_hash.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

struct inf_cache_hash_s {
    EVP_MAC     *mac;
    EVP_MAC_CTX *keyed;         /* copied for each sum                       */
};

static void flush(inf_cache_sum_t *s);
static void update(inf_cache_sum_t *s, const void *data, size_t len);
static void give_up(inf_cache_sum_t *s);

inf_err_t *
inf_cache_hash_new(const void *secret, size_t len, inf_cache_hash_t **out)
{
    size_t size = INF_CACHE_HASH_BYTES;
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size),
        OSSL_PARAM_construct_end()
    };
    inf_cache_hash_t *hash = calloc(1, sizeof(*hash));
    if (hash == NULL) {
        return inf_err_nomem();
    }

    hash->mac = EVP_MAC_fetch(NULL, OSSL_MAC_NAME_BLAKE2BMAC, NULL);
    if (hash->mac != NULL) {
        hash->keyed = EVP_MAC_CTX_new(hash->mac);
    }
    if (hash->keyed == NULL
        || EVP_MAC_init(hash->keyed, secret, len, params) != 1)
    {
        inf_cache_hash_free(hash);
        return inf_err_new(INF_ERR_UNSUPPORTED, "libcrypto has no keyed"
            " BLAKE2b");
    }

    *out = hash;
    return NULL;
}

void
inf_cache_hash_free(inf_cache_hash_t *hash)
{
    if (hash == NULL) {
        return;
    }

    EVP_MAC_CTX_free(hash->keyed);
    EVP_MAC_free(hash->mac);
    free(hash);
}

void
inf_cache_sum_begin(inf_cache_sum_t *s, const inf_cache_hash_t *hash)
{
    s->state = EVP_MAC_CTX_dup(hash->keyed);
    s->fill = 0;
}

void
inf_cache_sum_put(inf_cache_sum_t *s, const void *data, size_t len)
{
    if (len > sizeof(s->tail) - s->fill) {
        flush(s);
    }
    if (len > sizeof(s->tail)) {
        update(s, data, len);
        return;
    }

    if (len > 0) {
        memcpy(s->tail + s->fill, data, len);
        s->fill += len;
    }
}

bool
inf_cache_sum_end(inf_cache_sum_t *s, unsigned char out[INF_CACHE_HASH_BYTES])
{
    size_t len = 0;

    flush(s);
    bool done = s->state != NULL && EVP_MAC_final(s->state, out, &len,
        INF_CACHE_HASH_BYTES) == 1 && len == INF_CACHE_HASH_BYTES;
    give_up(s);
    return done;
}

static void
flush(inf_cache_sum_t *s)
{
    update(s, s->tail, s->fill);
    s->fill = 0;
}

static void
update(inf_cache_sum_t *s, const void *data, size_t len)
{
    if (s->state != NULL && len > 0 && EVP_MAC_update(s->state, data, len)
        != 1)
    {
        give_up(s);
    }
}

static void
give_up(inf_cache_sum_t *s)
{
    EVP_MAC_CTX_free(s->state);
    s->state = NULL;
}
