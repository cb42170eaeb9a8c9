/* bytes.c - see bytes.h */

#include "bytes.h"

#include <inttypes.h>
#include <string.h>

#define PREFIX_LEN 4u

static TRITONSERVER_Error *strings_fill(const ort_runtime_t *rt,
    OrtValue *value, const char *name, const void *data, uint64_t len_bytes,
    uint64_t elements);
static uint32_t prefix_read(const unsigned char *p);
static void prefix_write(unsigned char *p, uint32_t n);

TRITONSERVER_Error *
ort_bytes_new(const ort_runtime_t *rt, const char *name, const void *data,
    uint64_t len_bytes, const int64_t *shape, size_t dims_count,
    uint64_t elements, OrtValue **out)
{
    OrtValue *value = NULL;

    /* before the library makes room for elements that nobody sent */
    if (elements > len_bytes / PREFIX_LEN) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "input \"%s\" has %" PRIu64 " bytes, too few for its %" PRIu64
            " elements", name, len_bytes, elements);
    }

    TRITONSERVER_Error *err = ort_err(rt, rt->api->CreateTensorAsOrtValue(
        rt->allocator, shape, dims_count, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING,
        &value), "input \"%s\"", name);
    if (err != NULL) {
        return err;
    }

    err = strings_fill(rt, value, name, data, len_bytes, elements);
    if (err != NULL) {
        rt->api->ReleaseValue(value);
        return err;
    }

    *out = value;
    return NULL;
}

TRITONSERVER_Error *
ort_bytes_size(const ort_runtime_t *rt, const OrtValue *value,
    uint64_t first, uint64_t count, uint64_t *len_bytes)
{
    uint64_t sum = 0;

    for (uint64_t i = first; i < first + count; i++) {
        size_t len = 0;

        TRITONSERVER_Error *err = ort_err(rt,
            rt->api->GetStringTensorElementLength(value, i, &len),
            "element %" PRIu64, i);
        if (err != NULL) {
            return err;
        }

        if (len > UINT32_MAX) {
            return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
                "element %" PRIu64 " has %zu bytes, more than 4 GiB", i, len);
        }

        sum += PREFIX_LEN + len;
    }

    *len_bytes = sum;
    return NULL;
}

TRITONSERVER_Error *
ort_bytes_write(const ort_runtime_t *rt, const OrtValue *value,
    uint64_t first, uint64_t count, void *data)
{
    unsigned char *p = data;

    for (uint64_t i = first; i < first + count; i++) {
        size_t len = 0;

        TRITONSERVER_Error *err = ort_err(rt,
            rt->api->GetStringTensorElementLength(value, i, &len),
            "element %" PRIu64, i);
        if (err != NULL) {
            return err;
        }

        prefix_write(p, (uint32_t) len);
        err = ort_err(rt, rt->api->GetStringTensorElement(value, len, i,
            p + PREFIX_LEN), "element %" PRIu64, i);
        if (err != NULL) {
            return err;
        }

        p += PREFIX_LEN + len;
    }

    return NULL;
}

static TRITONSERVER_Error *
strings_fill(const ort_runtime_t *rt, OrtValue *value, const char *name,
    const void *data, uint64_t len_bytes, uint64_t elements)
{
    const unsigned char *p = data;
    uint64_t left = len_bytes;

    for (uint64_t i = 0; i < elements; i++) {
        char *room = NULL;

        uint32_t len = left < PREFIX_LEN ? 0 : prefix_read(p);
        if (left < PREFIX_LEN || len > left - PREFIX_LEN) {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "input \"%s\" ends inside element %" PRIu64 " of %" PRIu64,
                name, i, elements);
        }

        TRITONSERVER_Error *err = ort_err(rt,
            rt->api->GetResizedStringTensorElementBuffer(value, i, len,
            &room), "input \"%s\"", name);
        if (err != NULL) {
            return err;
        }

        if (len != 0) {
            memcpy(room, p + PREFIX_LEN, len);
        }
        p += PREFIX_LEN + len;
        left -= PREFIX_LEN + (uint64_t) len;
    }

    if (left != 0) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "input \"%s\" has %" PRIu64 " bytes behind its %" PRIu64
            " elements", name, left, elements);
    }

    return NULL;
}

static uint32_t
prefix_read(const unsigned char *p)
{
    return (uint32_t) p[0] | (uint32_t) p[1] << 8 | (uint32_t) p[2] << 16
        | (uint32_t) p[3] << 24;
}

static void
prefix_write(unsigned char *p, uint32_t n)
{
    p[0] = (unsigned char) n;
    p[1] = (unsigned char) (n >> 8);
    p[2] = (unsigned char) (n >> 16);
    p[3] = (unsigned char) (n >> 24);
}
