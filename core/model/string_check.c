#include "core/model/string_check.h"

#include <string.h>

#include "core/model/model.h"

/* of an input, so far */
typedef struct {
    uint64_t seen;
    uint64_t skip;      /* bytes of the current string in later buffers      */
} strings_t;

static inf_err_t *check_inputs(const inf_request_t *req);
static inf_err_t *check_input(const inf_model_t *model, const inf_input_t *in);
static uint64_t count_strings(strings_t *strings, const inf_buffer_t *b);
static uint64_t count_elements(const inf_input_t *in);

inf_err_t *
inf_request_check_strings(inf_request_t *req)
{
    inf_err_t *err = check_inputs(req);

    req->strings_unchecked = false;
    if (err == NULL) {
        return NULL;
    }
    if (req->whole == NULL) {
        return inf_request_name_error(req, err);
    }

    const inf_request_t *client = req->whole;
    while (client->whole != NULL) {
        client = client->whole;
    }
    inf_err_t *own = check_inputs(client);
    if (own == NULL) {
        return err;
    }

    inf_err_free(err);
    return inf_err_because(inf_request_name_error(client, own),
        INF_CAUSE_STRINGS);
}

static inf_err_t *
check_inputs(const inf_request_t *req)
{
    inf_err_t *err = NULL;

    for (uint32_t i = 0; req->strings_unchecked && err == NULL
        && i < req->input_count; i++)
    {
        const inf_config_tensor_t *t = inf_config_tensors_find_input(
            req->model->tensors, inf_slice_str(req->inputs[i].name));
        if (t != NULL && t->datatype == INF_TYPE_BYTES && !t->non_linear) {
            err = check_input(req->model, &req->inputs[i]);
        }
    }

    return err;
}

/* Checks an input; reads each length once, because the client's side may write
   to it meanwhile. */
static inf_err_t *
check_input(const inf_model_t *model, const inf_input_t *in)
{
    uint64_t elements = count_elements(in);
    strings_t strings = { 0 };

    for (uint32_t i = 0; i < in->buffer_count; i++) {
        const inf_buffer_t *b = &in->buffers[i];
        if (b->memory_type == INF_MEMORY_GPU) {
            return NULL;
        }

        uint64_t left = count_strings(&strings, b);
        if (left > 0) {
            return inf_err_new(INF_ERR_INVALID_ARG, "incomplete string length"
                " indicator for inference input '%s' for model '%s', expecting"
                " 4 bytes but only %llu bytes available. Please make sure the"
                " string length indicator is in one buffer.", in->name,
                model->name, (unsigned long long) left);
        }
    }

    if (strings.skip > 0) {
        return inf_err_new(INF_ERR_INVALID_ARG, "incomplete string data for"
            " inference input '%s' for model '%s', %llu more bytes expected",
            in->name, model->name, (unsigned long long) strings.skip);
    }

    if (strings.seen > elements) {
        /* the first that is too much, as Triton, which counts no further */
        return inf_err_new(INF_ERR_INVALID_ARG, "unexpected number of string"
            " elements %llu for inference input '%s' for model '%s', expecting"
            " %llu", (unsigned long long) elements + 1, in->name, model->name,
            (unsigned long long) elements);
    }

    if (strings.seen < elements) {
        return inf_err_new(INF_ERR_INVALID_ARG, "expected %llu string elements"
            " for inference input '%s' for model '%s', got %llu",
            (unsigned long long) elements, in->name, model->name,
            (unsigned long long) strings.seen);
    }

    return NULL;
}

/* Counts strings; returns the bytes at the end that are too few for a length;
   0: none. */
static uint64_t
count_strings(strings_t *strings, const inf_buffer_t *b)
{
    const unsigned char *p = b->base;
    uint64_t left = b->size;

    for (;;) {
        uint64_t n = strings->skip < left ? strings->skip : left;
        uint32_t len;

        p += n;
        left -= n;
        strings->skip -= n;
        if (left < sizeof(len)) {
            return left;
        }

        memcpy(&len, p, sizeof(len));
        p += sizeof(len);
        left -= sizeof(len);
        strings->skip = len;
        strings->seen++;
    }
}

/* The number of elements, which normalising has bounded. */
static uint64_t
count_elements(const inf_input_t *in)
{
    uint64_t n = 1;

    for (uint32_t i = 0; i < in->dim_count; i++) {
        n *= (uint64_t) in->shape[i];
    }

    return n;
}
