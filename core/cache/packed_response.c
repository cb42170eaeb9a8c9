#include "core/cache/packed_response.h"

#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define LINE     64u            /* of the processor's caches                 */
#define DIMS_MAX (2 * INF_MAX_DIMS)     /* a reshape may double them         */

typedef struct {
    const char *at;
    const char *end;
} reader_t;

static uint64_t output_size(const inf_output_t *out);
static char *put(char *to, const void *data, uint64_t len);
static char *put_cold(char *to, const char *data, uint64_t len);
static char *put_sized(char *to, const void *data, uint32_t len);
static char *write_output(char *to, const inf_output_t *out, bool cold);
static char *write_parameter(char *to, const inf_parameter_t *p);
static inf_err_t *read_output(reader_t *r, inf_response_t *into);
static inf_err_t *read_parameter(reader_t *r, inf_response_t *into);
static const char *take(reader_t *r, uint64_t len);
static bool take_u32(reader_t *r, uint32_t *out);
static bool take_u64(reader_t *r, uint64_t *out);
static const char *take_sized(reader_t *r, uint32_t *len);
static inf_err_t *broken(const char *what);
static inf_err_t *add_output(inf_response_t *into, const char *name,
    inf_datatype_t datatype, const int64_t *shape, uint32_t dim_count,
    const void *data, uint64_t size);
static inf_err_t *add_parameter(inf_response_t *into, const char *name,
    uint32_t name_len, uint32_t type, const char *value, uint64_t len);

inf_err_t *
inf_packed_response_size(const inf_response_t *response, uint64_t *size)
{
    uint64_t sum = sizeof(uint32_t);

    for (const inf_output_t *out = response->first; out != NULL;
        out = out->next)
    {
        if (out->memory_type == INF_MEMORY_GPU && out->byte_size > 0) {
            return inf_err_new(INF_ERR_INVALID_ARG, "output '%s' is in device"
                " memory: only the host's is cached", out->name);
        }
        if (out->base == NULL && out->byte_size > 0) {
            return inf_err_new(INF_ERR_INTERNAL, "output '%s' has %llu bytes"
                " and no memory", out->name,
                (unsigned long long) out->byte_size);
        }
        sum += sizeof(uint64_t) + output_size(out);
    }

    if (response->parameters.count > 0) {
        sum += sizeof(uint32_t);
    }
    for (uint32_t i = 0; i < response->parameters.count; i++) {
        const inf_parameter_t *p = response->parameters.items[i];
        uint64_t len;
        inf_parameter_bytes(p, &len);
        sum += 2 * sizeof(uint32_t) + strlen(p->name) + sizeof(uint64_t) + len;
    }

    *size = sum;
    return NULL;
}

void
inf_packed_response_write(const inf_response_t *response, void *to, bool cold)
{
    char *at = put(to, &response->output_count, sizeof(uint32_t));

    for (const inf_output_t *out = response->first; out != NULL;
        out = out->next)
    {
        at = write_output(at, out, cold);
    }

    if (response->parameters.count > 0) {
        at = put(at, &response->parameters.count, sizeof(uint32_t));
    }
    for (uint32_t i = 0; i < response->parameters.count; i++) {
        const inf_parameter_t *p = response->parameters.items[i];
        at = write_parameter(at, p);
    }
}

inf_err_t *
inf_packed_response_read(const void *data, uint64_t size,
    inf_response_t *into)
{
    reader_t r = { .at = data, .end = (const char *) data + size };
    uint32_t count;
    inf_err_t *err = NULL;

    if (!take_u32(&r, &count)) {
        return broken("the number of outputs");
    }
    for (uint32_t i = 0; err == NULL && i < count; i++) {
        err = read_output(&r, into);
    }
    if (err != NULL || r.at == r.end) {
        return err;
    }

    if (!take_u32(&r, &count)) {
        return broken("the number of parameters");
    }
    for (uint32_t i = 0; err == NULL && i < count; i++) {
        err = read_parameter(&r, into);
    }
    return err != NULL || r.at == r.end ? err : broken("the end");
}

inf_err_t *
inf_response_copy(const inf_response_t *from, inf_response_t *into)
{
    inf_err_t *err = NULL;

    for (const inf_output_t *out = from->first; err == NULL && out != NULL;
        out = out->next)
    {
        err = add_output(into, out->name, out->datatype, out->shape,
            out->dim_count, out->base, out->byte_size);
    }
    for (uint32_t i = 0; err == NULL && i < from->parameters.count; i++) {
        const inf_parameter_t *p = from->parameters.items[i];
        uint64_t len;
        const void *value = inf_parameter_bytes(p, &len);
        err = add_parameter(into, p->name, (uint32_t) strlen(p->name),
            p->type, value, len);
    }
    return err;
}

static uint64_t
output_size(const inf_output_t *out)
{
    return 3 * sizeof(uint32_t) + strlen(out->name)
        + strlen(inf_datatype_name(out->datatype))
        + out->dim_count * sizeof(int64_t) + sizeof(uint64_t) + out->byte_size;
}

static char *
put(char *to, const void *data, uint64_t len)
{
    if (len > 0) {
        memcpy(to, data, len);
    }
    return to + len;
}

static char *
put_sized(char *to, const void *data, uint32_t len)
{
    return put(put(to, &len, sizeof(len)), data, len);
}

/* Copies past the processor's caches, if possible. */
static char *
put_cold(char *to, const char *data, uint64_t len)
{
#if defined(__SSE2__)
    uint64_t head = -(uintptr_t) to % LINE;
    if (len >= head + LINE) {
        to = put(to, data, head);
        data += head;
        len -= head;
        for (; len >= LINE; len -= LINE) {
            for (unsigned i = 0; i < LINE; i += sizeof(__m128i)) {
                _mm_stream_si128((__m128i *) (void *) (to + i),
                    _mm_loadu_si128((const __m128i *) (const void *)
                        (data + i)));
            }
            to += LINE;
            data += LINE;
        }
        _mm_sfence();
    }
#endif
    return put(to, data, len);
}

static char *
write_output(char *to, const inf_output_t *out, bool cold)
{
    const char *datatype = inf_datatype_name(out->datatype);
    uint64_t rest = output_size(out);

    to = put(to, &rest, sizeof(rest));
    to = put_sized(to, out->name, (uint32_t) strlen(out->name));
    to = put_sized(to, datatype, (uint32_t) strlen(datatype));
    to = put_sized(to, out->shape,
        out->dim_count * (uint32_t) sizeof(int64_t));
    to = put(to, &out->byte_size, sizeof(out->byte_size));
    return cold ? put_cold(to, out->base, out->byte_size)
        : put(to, out->base, out->byte_size);
}

static char *
write_parameter(char *to, const inf_parameter_t *p)
{
    uint32_t type = p->type;
    uint64_t len;
    const void *value = inf_parameter_bytes(p, &len);

    to = put_sized(to, p->name, (uint32_t) strlen(p->name));
    to = put(to, &type, sizeof(type));
    to = put(to, &len, sizeof(len));
    return put(to, value, len);
}

static inf_err_t *
read_output(reader_t *r, inf_response_t *into)
{
    uint64_t rest;
    const char *body;
    if (!take_u64(r, &rest) || (body = take(r, rest)) == NULL) {
        return broken("an output's length");
    }

    reader_t in = { .at = body, .end = body + rest };
    uint32_t name_len, type_len, dims_len;
    uint64_t size;
    int64_t shape[DIMS_MAX];
    const char *name = take_sized(&in, &name_len);
    const char *type = name != NULL ? take_sized(&in, &type_len) : NULL;
    const char *dims = type != NULL ? take_sized(&in, &dims_len) : NULL;
    if (dims == NULL || dims_len % sizeof(int64_t) != 0
        || dims_len > sizeof(shape) || !take_u64(&in, &size))
    {
        return broken("an output's description");
    }
    if (size != (uint64_t) (in.end - in.at)) {
        return broken("an output's data");
    }

    uint32_t datatype = inf_datatype_parse(type, type_len);
    char *copy = inf_arena_strdup(&into->arena, name, name_len);
    if (copy == NULL) {
        return inf_err_nomem();
    }
    memcpy(shape, dims, dims_len);
    return add_output(into, copy, (inf_datatype_t) datatype, shape,
        dims_len / (uint32_t) sizeof(int64_t), in.at, size);
}

static inf_err_t *
read_parameter(reader_t *r, inf_response_t *into)
{
    uint32_t name_len, type;
    uint64_t len;
    const char *name = take_sized(r, &name_len);
    if (name == NULL || !take_u32(r, &type) || !take_u64(r, &len)) {
        return broken("a parameter's description");
    }

    const char *value = take(r, len);
    return value == NULL ? broken("a parameter's value")
        : add_parameter(into, name, name_len, type, value, len);
}

/* NULL: fewer bytes are left. */
static const char *
take(reader_t *r, uint64_t len)
{
    if (len > (uint64_t) (r->end - r->at)) {
        return NULL;
    }

    const char *at = r->at;
    r->at += len;
    return at;
}

static bool
take_u32(reader_t *r, uint32_t *out)
{
    const char *at = take(r, sizeof(*out));
    if (at != NULL) {
        memcpy(out, at, sizeof(*out));
    }
    return at != NULL;
}

static bool
take_u64(reader_t *r, uint64_t *out)
{
    const char *at = take(r, sizeof(*out));
    if (at != NULL) {
        memcpy(out, at, sizeof(*out));
    }
    return at != NULL;
}

static const char *
take_sized(reader_t *r, uint32_t *len)
{
    return take_u32(r, len) ? take(r, *len) : NULL;
}

static inf_err_t *
broken(const char *what)
{
    return inf_err_new(INF_ERR_INTERNAL, "a packed response breaks off at %s",
        what);
}

static inf_err_t *
add_output(inf_response_t *into, const char *name, inf_datatype_t datatype,
    const int64_t *shape, uint32_t dim_count, const void *data, uint64_t size)
{
    inf_output_t *out = inf_response_add_output(into, name, datatype, shape,
        dim_count);
    if (out == NULL) {
        return inf_err_nomem();
    }

    out->memory_type = INF_MEMORY_CPU;
    inf_err_t *err = inf_output_alloc(out, size);
    if (err != NULL || size == 0) {
        return err;
    }
    if (out->base == NULL || out->memory_type == INF_MEMORY_GPU) {
        return inf_err_new(INF_ERR_UNSUPPORTED, "output '%s' can't be copied"
            " to the memory that was allocated for it", name);
    }

    memcpy(out->base, data, size);
    return NULL;
}

static inf_err_t *
add_parameter(inf_response_t *into, const char *name, uint32_t name_len,
    uint32_t type, const char *value, uint64_t len)
{
    inf_parameter_t *p = inf_parameter_add(&into->parameters, &into->arena,
        name, name_len, (inf_parameter_type_t) type);
    if (p == NULL) {
        return inf_err_nomem();
    }

    switch (p->type) {
    case INF_PARAMETER_STRING:
    case INF_PARAMETER_BYTES:
        p->text = inf_arena_strdup(&into->arena, value, len);
        p->text_len = len;
        return p->text != NULL ? NULL : inf_err_nomem();
    case INF_PARAMETER_INT:
        if (len == sizeof(p->i)) {
            memcpy(&p->i, value, len);
            return NULL;
        }
        break;
    case INF_PARAMETER_BOOL:
        if (len == 1) {
            p->b = *value != 0;
            return NULL;
        }
        break;
    case INF_PARAMETER_DOUBLE:
        if (len == sizeof(p->d)) {
            memcpy(&p->d, value, len);
            return NULL;
        }
        break;
    }

    return broken("a parameter's type");
}
