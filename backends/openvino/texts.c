/* texts.c - see texts.h */

#include "texts.h"

#include "std_string.h"

#include "common/bytes.h"

#include <inttypes.h>
#include <string.h>

static TRITONSERVER_Error *texts_fill(void *array, bk_bytes_t *bytes,
    uint64_t elements);

TRITONSERVER_Error *
vino_texts_new(const vino_runtime_t *rt, const bk_value_t *v, int64_t *dims,
    ov_tensor_t **out)
{
    ov_shape_t shape = { .rank = v->tensor->dims_count, .dims = dims };
    ov_tensor_t *tensor = NULL;
    void *array = NULL;
    bk_bytes_t bytes;

    TRITONSERVER_Error *err = bk_bytes_open(&bytes, "input",
        v->tensor->name, v->data, v->len_bytes, v->elements);
    if (err == NULL) {
        err = vino_err(rt, rt->f.ov_tensor_create(STRING, shape, &tensor),
            "input \"%s\"", v->tensor->name);
    }
    if (err == NULL) {
        err = vino_err(rt, rt->f.ov_tensor_data(tensor, &array),
            "input \"%s\"", v->tensor->name);
    }
    if (err == NULL) {
        err = texts_fill(array, &bytes, v->elements);
    }
    if (err != NULL) {
        if (tensor != NULL) {
            rt->f.ov_tensor_free(tensor);
        }
        return err;
    }

    *out = tensor;
    return NULL;
}

TRITONSERVER_Error *
vino_texts_size(void *self, const bk_value_t *v, uint64_t first,
    uint64_t count, uint64_t *len_bytes)
{
    uint64_t sum = 0;

    (void) self;
    for (uint64_t i = first; i < first + count; i++) {
        size_t len = 0;

        vino_string_get(v->data, i, &len);
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
vino_texts_write(void *self, const bk_value_t *v, uint64_t first,
    uint64_t count, void *to)
{
    unsigned char *p = to;

    (void) self;
    for (uint64_t i = first; i < first + count; i++) {
        size_t len = 0;
        const char *text = vino_string_get(v->data, i, &len);

        bk_bytes_put_len(p, (uint32_t) len);
        if (len != 0) {
            memcpy(p + BK_BYTES_PREFIX, text, len);
        }
        p += BK_BYTES_PREFIX + len;
    }

    return NULL;
}

static TRITONSERVER_Error *
texts_fill(void *array, bk_bytes_t *bytes, uint64_t elements)
{
    for (uint64_t i = 0; i < elements; i++) {
        const char *text = NULL;
        uint32_t len = 0;

        TRITONSERVER_Error *err = bk_bytes_next(bytes, &text, &len);
        if (err != NULL) {
            return err;
        }
        if (!vino_string_set(array, i, text, len)) {
            return bk_err_nomem("an element of an input");
        }
    }

    return NULL;
}
