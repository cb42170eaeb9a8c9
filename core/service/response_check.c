#include "core/service/response_check.h"

#include "core/base/buf.h"
#include "core/proto/message_utf8.h"

static inf_err_t *check_output(const inf_model_t *model,
    const inf_output_t *out);
static const char *wrong_size(const inf_output_t *out);
static inf_err_t *complain(const inf_model_t *model, const inf_output_t *out,
    const char *what);
static inf_err_t *check_parameters(const inf_model_t *model,
    const inf_response_t *response);

inf_err_t *
inf_response_check(const inf_model_t *model, const inf_response_t *response)
{
    for (const inf_output_t *out = response->first; out != NULL;
        out = out->next)
    {
        inf_err_t *err = check_output(model, out);
        if (err != NULL) {
            return err;
        }
    }

    return check_parameters(model, response);
}

inf_slice_t
inf_response_readable(inf_arena_t *arena, const char *text)
{
    inf_slice_t s = inf_slice_str(text);
    if (inf_utf8_valid(s)) {
        return s;
    }

    char *copy = inf_arena_strdup(arena, s.data, s.len);
    if (copy == NULL) {
        return inf_slice_str("");
    }

    inf_utf8_repair(copy, s.len);
    return inf_slice(copy, s.len);
}

static inf_err_t *
check_output(const inf_model_t *model, const inf_output_t *out)
{
    if (out->datatype == INF_TYPE_INVALID) {
        return complain(model, out, "has no datatype");
    }

    const char *what = wrong_size(out);
    return what == NULL ? NULL : complain(model, out, what);
}

/* Why the size is wrong; the worker checks the lengths of strings. */
static const char *
wrong_size(const inf_output_t *out)
{
    uint64_t bytes = inf_datatype_size(out->datatype);
    bool strings = bytes == 0;
    bool overflow = false;

    bytes = strings ? 4 : bytes;        /* at least a length each            */
    for (uint32_t i = 0; i < out->dim_count; i++) {
        if (out->shape[i] < 0) {
            return "has a negative dimension";
        }
        if (out->shape[i] == 0) {
            return out->byte_size == 0 ? NULL
                : "has data but no elements";
        }
        overflow |= __builtin_mul_overflow(bytes, (uint64_t) out->shape[i],
            &bytes);
    }

    if (overflow) {
        return "has more elements than can be counted";
    }
    if (out->base == NULL) {
        return out->dim_count == 0 ? NULL : "has no buffer";
    }
    return out->byte_size < bytes ? "has less data than its shape says"
        : strings || out->byte_size == bytes ? NULL
        : "has more data than its shape says";
}

static inf_err_t *
complain(const inf_model_t *model, const inf_output_t *out, const char *what)
{
    inf_buf_t shape;
    inf_buf_init(&shape);
    for (uint32_t i = 0; i < out->dim_count; i++) {
        inf_buf_printf(&shape, "%s%lld", i > 0 ? "," : "",
            (long long) out->shape[i]);
    }

    inf_err_t *err = inf_err_new(INF_ERR_INTERNAL, "output '%s' that backend"
        " '%s' made for model '%s' %s: %s, shape [%s], %llu bytes", out->name,
        inf_model_backend_name(model),
        model != NULL ? model->name : "", what,
        inf_datatype_name(out->datatype), inf_buf_slice(&shape).data,
        (unsigned long long) out->byte_size);
    inf_buf_fini(&shape);
    return err;
}

static inf_err_t *
check_parameters(const inf_model_t *model, const inf_response_t *response)
{
    for (uint32_t i = 0; i < response->parameters.count; i++) {
        const inf_parameter_t *p = response->parameters.items[i];
        if (!inf_utf8_valid(inf_slice_str(p->name))
            || (p->type == INF_PARAMETER_STRING
                && !inf_utf8_valid(inf_slice(p->text, p->text_len))))
        {
            return inf_err_new(INF_ERR_INTERNAL, "parameter %u that backend"
                " '%s' gave the response of model '%s' is not UTF-8", i,
                inf_model_backend_name(model),
                model != NULL ? model->name : "");
        }
    }

    return NULL;
}
