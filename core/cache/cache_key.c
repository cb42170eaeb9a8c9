#include "core/cache/cache_key.h"

#include <stdlib.h>
#include <string.h>

static void add_text(inf_buf_t *out, const char *text);
static void add_u64(inf_buf_t *out, uint64_t n);
static const inf_input_t **by_name(inf_request_t *req);
static int compare_names(const void *a, const void *b);
static void put_input(inf_cache_sum_t *s, const inf_input_t *in);
static void put_parameter(inf_cache_sum_t *s, const inf_parameter_t *p);
static void put_text(inf_cache_sum_t *s, const char *text);
static void put_u64(inf_cache_sum_t *s, uint64_t n);

bool
inf_cache_key_bytes(const inf_request_t *req, uint64_t *bytes)
{
    uint64_t sum = 0;

    /* the client may change the bytes between key and execution, or execution
       and insertion */
    if (req->uses_regions) {
        return false;
    }

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

    for (uint32_t i = 0; i < req->parameters.count; i++) {
        const inf_parameter_t *p = req->parameters.items[i];
        sum += sizeof(*p) + p->text_len;
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

bool
inf_cache_key(const inf_cache_hash_t *hash, inf_slice_t model,
    inf_request_t *req, inf_cache_key_t *key)
{
    const inf_input_t **inputs = by_name(req);
    inf_cache_sum_t s;
    if (inputs == NULL) {
        return false;
    }

    inf_cache_sum_begin(&s, hash);
    inf_cache_sum_put(&s, model.data, model.len);
    put_u64(&s, req->output_count);
    for (uint32_t i = 0; i < req->output_count; i++) {
        put_text(&s, req->outputs[i]);      /* sorted                        */
    }

    put_u64(&s, req->input_count);
    for (uint32_t i = 0; i < req->input_count; i++) {
        put_input(&s, inputs[i]);
    }

    put_u64(&s, req->parameters.count);
    for (uint32_t i = 0; i < req->parameters.count; i++) {
        const inf_parameter_t *p = req->parameters.items[i];
        put_parameter(&s, p);
    }

    return inf_cache_sum_end(&s, (unsigned char *) key->words);
}

void
inf_cache_key_write(const inf_cache_key_t *key, char text[INF_CACHE_KEY_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *bytes = (const unsigned char *) key->words;

    for (size_t i = 0; i < sizeof(key->words); i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    text[2 * sizeof(key->words)] = '\0';
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

/* The inputs sorted by name; names are distinct.  NULL: no memory. */
static const inf_input_t **
by_name(inf_request_t *req)
{
    const inf_input_t **list = inf_arena_alloc(&req->arena,
        (req->input_count + (size_t) 1) * sizeof(*list));
    if (list == NULL) {
        return NULL;
    }

    for (uint32_t i = 0; i < req->input_count; i++) {
        list[i] = &req->inputs[i];
    }
    if (req->input_count > 1) {
        qsort(list, req->input_count, sizeof(*list), compare_names);
    }
    return list;
}

static int
compare_names(const void *a, const void *b)
{
    const inf_input_t *const *one = a;
    const inf_input_t *const *other = b;

    return strcmp((*one)->name, (*other)->name);
}

static void
put_input(inf_cache_sum_t *s, const inf_input_t *in)
{
    put_text(s, in->name);
    put_u64(s, in->datatype);
    put_u64(s, in->dim_count);
    inf_cache_sum_put(s, in->shape, in->dim_count * sizeof(*in->shape));
    put_u64(s, in->byte_size);
    for (uint32_t i = 0; i < in->buffer_count; i++) {
        inf_cache_sum_put(s, in->buffers[i].base, in->buffers[i].size);
    }
}

static void
put_parameter(inf_cache_sum_t *s, const inf_parameter_t *p)
{
    put_text(s, p->name);
    put_u64(s, p->type);

    switch (p->type) {
    case INF_PARAMETER_STRING:
    case INF_PARAMETER_BYTES:
        put_u64(s, p->text_len);
        inf_cache_sum_put(s, p->text, p->text_len);
        return;
    case INF_PARAMETER_INT:
        put_u64(s, (uint64_t) p->i);
        return;
    case INF_PARAMETER_BOOL:
        put_u64(s, p->b);
        return;
    case INF_PARAMETER_DOUBLE:
        inf_cache_sum_put(s, &p->d, sizeof(p->d));
        return;
    }
}

static void
put_text(inf_cache_sum_t *s, const char *text)
{
    size_t len = strlen(text);
    put_u64(s, len);
    inf_cache_sum_put(s, text, len);
}

static void
put_u64(inf_cache_sum_t *s, uint64_t n)
{
    inf_cache_sum_put(s, &n, sizeof(n));
}
