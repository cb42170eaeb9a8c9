/* text.c - see text.h */

#include "text.h"

#include "common/bytes.h"

#include <inttypes.h>
#include <string.h>

static TRITONSERVER_Error *strings_fill(const ort_runtime_t *rt,
    OrtValue *value, bk_bytes_t *text);

TRITONSERVER_Error *
ort_text_new(const ort_runtime_t *rt, const bk_value_t *v, OrtValue **out)
{
    const char *name = v->tensor->name;
    OrtValue *value = NULL;
    bk_bytes_t text;

    TRITONSERVER_Error *err = bk_bytes_open(&text, "input", name, v->data,
        v->len_bytes, v->elements);
    if (err != NULL) {
        return err;
    }

    err = ort_err(rt, rt->api->CreateTensorAsOrtValue(rt->allocator, v->dims,
        v->dims_count, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &value),
        "input \"%s\"", name);
    if (err != NULL) {
        return err;
    }

    err = strings_fill(rt, value, &text);
    if (err != NULL) {
        rt->api->ReleaseValue(value);
        return err;
    }

    *out = value;
    return NULL;
}

TRITONSERVER_Error *
ort_text_size(const ort_runtime_t *rt, const OrtValue *value,
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

        sum += BK_BYTES_PREFIX + len;
    }

    *len_bytes = sum;
    return NULL;
}

TRITONSERVER_Error *
ort_text_write(const ort_runtime_t *rt, const OrtValue *value,
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

        bk_bytes_put_len(p, (uint32_t) len);
        err = ort_err(rt, rt->api->GetStringTensorElement(value, len, i,
            p + BK_BYTES_PREFIX), "element %" PRIu64, i);
        if (err != NULL) {
            return err;
        }

        p += BK_BYTES_PREFIX + len;
    }

    return NULL;
}

static TRITONSERVER_Error *
strings_fill(const ort_runtime_t *rt, OrtValue *value, bk_bytes_t *text)
{
    for (uint64_t i = 0; i < text->elements; i++) {
        const char *from;
        uint32_t len;
        char *room = NULL;

        TRITONSERVER_Error *err = bk_bytes_next(text, &from, &len);
        if (err == NULL) {
            err = ort_err(rt, rt->api->GetResizedStringTensorElementBuffer(
                value, i, len, &room), "input \"%s\"", text->name);
        }
        if (err != NULL) {
            return err;
        }

        if (len != 0) {
            memcpy(room, from, len);
        }
    }

    return NULL;
}
