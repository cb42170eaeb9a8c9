#include "core/sched/cache_key.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#define BLOCK INF_CACHE_KEY_BLOCK

typedef unsigned __int128 u128;

typedef struct {
    const inf_cache_secret_t *secret;
    u128                      point;
    u128                      sum;          /* the polynomial so far         */
    uint64_t                  len;          /* bytes so far                  */
    unsigned char             tail[BLOCK];  /* len % BLOCK of them           */
} hasher_t;

static void add_text(inf_buf_t *out, const char *text);
static void add_u64(inf_buf_t *out, uint64_t n);
static void hash_input(hasher_t *h, const inf_input_t *in);
static void hash_parameter(hasher_t *h, const inf_parameter_t *p);
static const inf_input_t *next_by_name(const inf_request_t *req,
    const inf_input_t *last);
static void put_text(hasher_t *h, const char *text);
static void put_u64(hasher_t *h, uint64_t n);
static void put_bytes(hasher_t *h, const void *data, uint64_t len);
static void put_block(hasher_t *h, const unsigned char *p, size_t len);
static void end_block(hasher_t *h);
static inf_cache_key_t hash_end(hasher_t *h);
static u128 reduce(u128 n);
static u128 multiply(u128 a, u128 b);
static uint64_t mix(uint64_t n);

inf_err_t *
inf_cache_secret_random(inf_cache_secret_t *secret)
{
    size_t got = 0;

    while (got < sizeof(*secret)) {
        ssize_t n = getrandom((char *) secret + got, sizeof(*secret) - got, 0);
        if (n < 0 && errno != EINTR) {
            return inf_err_os(errno, "cannot get random bytes");
        }
        got += n > 0 ? (size_t) n : 0;
    }

    secret->block_sums = inf_block_sums();
    return NULL;
}

/* Always the same, and nothing up the sleeve: mixed from small numbers. */
void
inf_cache_secret_constant(inf_cache_secret_t *secret)
{
    for (uint64_t i = 0; i < INF_CACHE_SECRET_WORDS; i++) {
        secret->words[i] = mix((i + 1) * UINT64_C(0x9e3779b97f4a7c15));
    }
    secret->point[0] = mix(UINT64_C(0x243f6a8885a308d3));
    secret->point[1] = mix(UINT64_C(0x13198a2e03707344));
    secret->block_sums = inf_block_sums();
}

bool
inf_cache_key_bytes(const inf_request_t *req, uint64_t *bytes)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < req->input_count; i++) {
        const inf_input_t *in = &req->inputs[i];
        if (in->host_data != NULL) {
            return false;
        }
        for (uint32_t b = 0; b < in->buffer_count; b++) {
            if (in->buffers[b].memory_type == INF_MEMORY_GPU
                || in->buffers[b].base == NULL)
            {
                return false;
            }
        }
        sum += in->byte_size;
    }

    *bytes = sum;
    return true;
}

void
inf_cache_key_model(const inf_model_t *model, uint64_t load, inf_buf_t *out)
{
    add_text(out, model->name);
    if (model->space != NULL) {
        add_text(out, model->space);
    }
    add_u64(out, (uint64_t) model->version);
    add_u64(out, load);
}

inf_cache_key_t
inf_cache_key(const inf_cache_secret_t *secret, inf_slice_t model,
    const inf_request_t *req)
{
    hasher_t h;
    h.secret = secret;
    h.point = reduce((u128) secret->point[1] << 64 | secret->point[0]);
    h.sum = 1;
    h.len = 0;

    put_bytes(&h, model.data, model.len);
    put_u64(&h, req->output_count);
    for (uint32_t i = 0; i < req->output_count; i++) {
        put_text(&h, req->outputs[i]);      /* sorted                        */
    }

    put_u64(&h, req->input_count);
    const inf_input_t *in = next_by_name(req, NULL);
    while (in != NULL) {
        hash_input(&h, in);
        in = next_by_name(req, in);
    }

    put_u64(&h, req->parameters.count);
    for (const inf_parameter_t *p = req->parameters.first; p != NULL;
        p = p->next)
    {
        hash_parameter(&h, p);
    }

    return hash_end(&h);
}

void
inf_cache_key_write(inf_cache_key_t key, char text[INF_CACHE_KEY_TEXT])
{
    static const char digits[] = "0123456789abcdef";

    for (unsigned i = 0; i < 16; i++) {
        text[i] = digits[key.hi >> (60 - 4 * i) & 15];
        text[16 + i] = digits[key.lo >> (60 - 4 * i) & 15];
    }
    text[32] = '\0';
}

static void
hash_input(hasher_t *h, const inf_input_t *in)
{
    put_text(h, in->name);
    put_u64(h, in->datatype);
    put_u64(h, in->dim_count);
    put_bytes(h, in->shape, in->dim_count * sizeof(*in->shape));
    put_u64(h, in->byte_size);
    if (in->byte_size >= BLOCK) {
        end_block(h);                   /* no byte of them is copied, then   */
    }
    for (uint32_t i = 0; i < in->buffer_count; i++) {
        put_bytes(h, in->buffers[i].base, in->buffers[i].size);
    }
}

static void
hash_parameter(hasher_t *h, const inf_parameter_t *p)
{
    put_text(h, p->name);
    put_u64(h, p->type);

    switch (p->type) {
    case INF_PARAMETER_STRING:
    case INF_PARAMETER_BYTES:
        put_u64(h, p->text_len);
        put_bytes(h, p->text, p->text_len);
        return;
    case INF_PARAMETER_INT:
        put_u64(h, (uint64_t) p->i);
        return;
    case INF_PARAMETER_BOOL:
        put_u64(h, p->b);
        return;
    case INF_PARAMETER_DOUBLE:
        put_bytes(h, &p->d, sizeof(p->d));
        return;
    }
}

/* The input after last in the order of names, which are distinct; there are
   few of them. */
static const inf_input_t *
next_by_name(const inf_request_t *req, const inf_input_t *last)
{
    const inf_input_t *next = NULL;

    for (uint32_t i = 0; i < req->input_count; i++) {
        const inf_input_t *in = &req->inputs[i];
        if ((last == NULL || strcmp(in->name, last->name) > 0)
            && (next == NULL || strcmp(in->name, next->name) < 0))
        {
            next = in;
        }
    }
    return next;
}

static void
add_text(inf_buf_t *out, const char *text)
{
    size_t len = strlen(text);
    add_u64(out, len);
    inf_buf_put(out, text, len);
}

static void
add_u64(inf_buf_t *out, uint64_t n)
{
    inf_buf_put(out, &n, sizeof(n));
}

static void
put_text(hasher_t *h, const char *text)
{
    size_t len = strlen(text);
    put_u64(h, len);
    put_bytes(h, text, len);
}

static void
put_u64(hasher_t *h, uint64_t n)
{
    uint64_t fill = h->len % BLOCK;

    if (fill + sizeof(n) < BLOCK) {
        memcpy(h->tail + fill, &n, sizeof(n));
        h->len += sizeof(n);
    } else {
        put_bytes(h, &n, sizeof(n));
    }
}

/* The same for the same bytes, however they are cut. */
static void
put_bytes(hasher_t *h, const void *data, uint64_t len)
{
    const unsigned char *p = data;
    uint64_t fill = h->len % BLOCK;
    h->len += len;

    if (fill > 0) {
        uint64_t n = len < BLOCK - fill ? len : BLOCK - fill;
        memcpy(h->tail + fill, p, n);
        if (fill + n < BLOCK) {
            return;
        }
        put_block(h, h->tail, BLOCK);
        p += n;
        len -= n;
    }

    for (; len >= BLOCK; len -= BLOCK) {
        put_block(h, p, BLOCK);
        p += BLOCK;
    }
    if (len > 0) {
        memcpy(h->tail, p, len);
    }
}

/* len is a multiple of INF_BLOCK_STEP. */
static void
put_block(hasher_t *h, const unsigned char *p, size_t len)
{
    inf_block_sums_t s = h->secret->block_sums(p, len, h->secret->words);
    h->sum = multiply(reduce(h->sum + reduce((u128) s.first << 64 | s.second)),
        h->point);
}

/* Zeros take the rest of a block that has begun. */
static void
end_block(hasher_t *h)
{
    size_t fill = h->len % BLOCK;
    if (fill > 0) {
        size_t padded = (fill + INF_BLOCK_STEP - 1) / INF_BLOCK_STEP
            * INF_BLOCK_STEP;
        memset(h->tail + fill, 0, padded - fill);
        put_block(h, h->tail, padded);
        h->len += BLOCK - fill;
    }
}

static inf_cache_key_t
hash_end(hasher_t *h)
{
    uint64_t len = h->len;
    end_block(h);

    /* the length counts like a block; mixed, so that all bits are as good */
    u128 sum = multiply(reduce(h->sum + len), h->point);
    uint64_t lo = mix((uint64_t) sum);
    return (inf_cache_key_t) {
        .hi = mix((uint64_t) (sum >> 64) + lo),
        .lo = lo
    };
}

/* To less than 2^127, modulo 2^127 - 1. */
static u128
reduce(u128 n)
{
    const u128 modulus = ((u128) 1 << 127) - 1;
    return (n & modulus) + (n >> 127) == modulus ? 0
        : (n & modulus) + (n >> 127);
}

/* Modulo 2^127 - 1; both are less. */
static u128
multiply(u128 a, u128 b)
{
    const uint64_t low63 = UINT64_MAX >> 1;
    uint64_t a0 = (uint64_t) a, a1 = (uint64_t) (a >> 64);
    uint64_t b0 = (uint64_t) b, b1 = (uint64_t) (b >> 64);

    /* a1 and b1 have 63 bits, so nothing overflows; 2^127 is 1 */
    u128 middle = (u128) a0 * b1 + (u128) a1 * b0;
    u128 sum = reduce((u128) a0 * b0);
    sum = reduce(sum + 2 * ((u128) a1 * b1));
    sum = reduce(sum + (middle >> 63));
    return reduce(sum + ((u128) ((uint64_t) middle & low63) << 64));
}

/* One to one. */
static uint64_t
mix(uint64_t n)
{
    n = (n ^ n >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    n = (n ^ n >> 27) * UINT64_C(0x94d049bb133111eb);
    return n ^ n >> 31;
}
