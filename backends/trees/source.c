/* source.c - see source.h */

#include "source.h"

#include <inttypes.h>
#include <string.h>

static TRITONSERVER_Error *get(const trees_array_t *a, uint64_t index,
    void *out, size_t size);

TRITONSERVER_Error *
trees_get_i8(const trees_array_t *a, uint64_t index, int8_t *out)
{
    return get(a, index, out, sizeof(*out));
}

TRITONSERVER_Error *
trees_get_i32(const trees_array_t *a, uint64_t index, int32_t *out)
{
    return get(a, index, out, sizeof(*out));
}

TRITONSERVER_Error *
trees_get_u32(const trees_array_t *a, uint64_t index, uint32_t *out)
{
    return get(a, index, out, sizeof(*out));
}

TRITONSERVER_Error *
trees_get_u64(const trees_array_t *a, uint64_t index, uint64_t *out)
{
    return get(a, index, out, sizeof(*out));
}

TRITONSERVER_Error *
trees_get_float(const trees_array_t *a, uint64_t index, float *out)
{
    return get(a, index, out, sizeof(*out));
}

TRITONSERVER_Error *
trees_get_number(const trees_array_t *a, uint64_t index, double *out)
{
    float single = 0;

    if (a->size == sizeof(*out)) {
        return get(a, index, out, sizeof(*out));
    }

    TRITONSERVER_Error *err = get(a, index, &single, sizeof(single));
    *out = single;
    return err;
}

static TRITONSERVER_Error *
get(const trees_array_t *a, uint64_t index, void *out, size_t size)
{
    if (a->size != size) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "\"%s\" has elements of %zu bytes, not of %zu", a->name, a->size,
            size);
    }

    if (index >= a->count) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "\"%s\" has %zu elements, too few for number %" PRIu64, a->name,
            a->count, index);
    }

    memcpy(out, (const char *) a->data + index * size, size);
    return NULL;
}
