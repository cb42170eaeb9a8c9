/* api_request_fields.c - the fields of a client's request apart from tensors:
   ids, flags, priority, timeout and parameters. */

#include "core/abi/api_request.h"

#include <string.h>

#define CORRELATION_TEXT_MAX 128u

static inf_err_t *add_parameter(inf_api_request_t *q, const char *key,
    inf_parameter_type_t type, inf_parameter_t **out);

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetReleaseCallback(
    TRITONSERVER_InferenceRequest *inference_request,
    TRITONSERVER_InferenceRequestReleaseFn_t request_release_fn,
    void *request_release_userp)
{
    inf_api_request_t *q = inf_as_client_request(inference_request);
    q->release = request_release_fn;
    q->release_userp = request_release_userp;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetResponseCallback(
    TRITONSERVER_InferenceRequest *inference_request,
    TRITONSERVER_ResponseAllocator *response_allocator,
    void *response_allocator_userp,
    TRITONSERVER_InferenceResponseCompleteFn_t response_fn,
    void *response_userp)
{
    inf_as_client_request(inference_request)->target = (inf_api_target_t) {
        .allocator = response_allocator,
        .allocator_userp = response_allocator_userp,
        .complete = response_fn,
        .userp = response_userp
    };
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestId(
    TRITONSERVER_InferenceRequest *inference_request, const char **id)
{
    *id = inf_buf_slice(&inf_as_client_request(inference_request)->id).data;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetId(
    TRITONSERVER_InferenceRequest *inference_request, const char *id)
{
    return inf_api_set_text(&inf_as_client_request(inference_request)->id,
        id != NULL ? id : "");
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestFlags(
    TRITONSERVER_InferenceRequest *inference_request, uint32_t *flags)
{
    *flags = inf_as_client_request(inference_request)->flags;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetFlags(
    TRITONSERVER_InferenceRequest *inference_request, uint32_t flags)
{
    inf_as_client_request(inference_request)->flags = flags;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestCorrelationId(
    TRITONSERVER_InferenceRequest *inference_request, uint64_t *correlation_id)
{
    const inf_api_request_t *q = inf_as_client_request(inference_request);
    if (q->correlation_is_text) {
        return inf_err_new(INF_ERR_INVALID_ARG, "given request's correlation"
            " id is not an unsigned int, but '%s'",
            inf_buf_slice(&q->correlation_text).data);
    }

    *correlation_id = q->correlation_id;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestCorrelationIdString(
    TRITONSERVER_InferenceRequest *inference_request,
    const char **correlation_id)
{
    const inf_api_request_t *q = inf_as_client_request(inference_request);
    if (!q->correlation_is_text) {
        return inf_err_new(INF_ERR_INVALID_ARG, "given request's correlation"
            " id is not a string, but %llu",
            (unsigned long long) q->correlation_id);
    }

    *correlation_id = inf_buf_slice(&q->correlation_text).data;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetCorrelationId(
    TRITONSERVER_InferenceRequest *inference_request, uint64_t correlation_id)
{
    inf_api_request_t *q = inf_as_client_request(inference_request);
    q->correlation_id = correlation_id;
    q->correlation_is_text = false;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetCorrelationIdString(
    TRITONSERVER_InferenceRequest *inference_request,
    const char *correlation_id)
{
    inf_api_request_t *q = inf_as_client_request(inference_request);
    if (correlation_id == NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "string correlation ID is NULL");
    }
    if (strnlen(correlation_id, CORRELATION_TEXT_MAX + 1)
        > CORRELATION_TEXT_MAX)
    {
        return inf_err_new(INF_ERR_UNSUPPORTED, "string correlation ID cannot"
            " be longer than %u characters", CORRELATION_TEXT_MAX);
    }

    inf_err_t *err = inf_api_set_text(&q->correlation_text, correlation_id);
    q->correlation_is_text = err == NULL;
    return err;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestPriority(
    TRITONSERVER_InferenceRequest *inference_request, uint32_t *priority)
{
    uint64_t p = inf_as_client_request(inference_request)->priority;
    if (p > UINT32_MAX) {
        return inf_err_new(INF_ERR_INVALID_ARG, "request priority overflows"
            " uint32_t, use TRITONSERVER_InferenceRequestPriorityUInt64,"
            " priority=%llu", (unsigned long long) p);
    }

    *priority = (uint32_t) p;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestPriorityUInt64(
    TRITONSERVER_InferenceRequest *inference_request, uint64_t *priority)
{
    *priority = inf_as_client_request(inference_request)->priority;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetPriority(
    TRITONSERVER_InferenceRequest *inference_request, uint32_t priority)
{
    return TRITONSERVER_InferenceRequestSetPriorityUInt64(inference_request,
        priority);
}

/* A priority outside the model's range becomes the model's default. */
TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetPriorityUInt64(
    TRITONSERVER_InferenceRequest *inference_request, uint64_t priority)
{
    inf_api_request_t *q = inf_as_client_request(inference_request);
    const Inference__ModelConfig *config = q->model->built;
    uint64_t levels = 0;
    uint64_t standard = 0;

    switch (config->scheduling_choice_case) {
    case INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_ENSEMBLE_SCHEDULING:
        q->priority = priority;     /* composing models decide               */
        return NULL;
    case INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_DYNAMIC_BATCHING:
        levels = config->dynamic_batching->priority_levels;
        standard = config->dynamic_batching->default_priority_level;
        break;
    default:
        break;
    }

    q->priority = priority == 0 || priority > levels ? standard : priority;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestTimeoutMicroseconds(
    TRITONSERVER_InferenceRequest *inference_request, uint64_t *timeout_us)
{
    *timeout_us = inf_as_client_request(inference_request)->timeout_us;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(
    TRITONSERVER_InferenceRequest *inference_request, uint64_t timeout_us)
{
    inf_as_client_request(inference_request)->timeout_us = timeout_us;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetStringParameter(
    TRITONSERVER_InferenceRequest *request, const char *key, const char *value)
{
    inf_api_request_t *q = inf_as_client_request(request);
    inf_parameter_t *p;
    if (value == NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "string parameter '%s' has no value", key);
    }

    char *copy = inf_arena_strdup(&q->arena, value, strlen(value));
    if (copy == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = add_parameter(q, key, INF_PARAMETER_STRING, &p);
    if (err == NULL) {
        p->text = copy;
        p->text_len = strlen(value);
    }
    return err;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetIntParameter(
    TRITONSERVER_InferenceRequest *request, const char *key,
    const int64_t value)
{
    inf_parameter_t *p;
    inf_err_t *err = add_parameter(inf_as_client_request(request), key,
        INF_PARAMETER_INT, &p);
    if (err == NULL) {
        p->i = value;
    }
    return err;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetBoolParameter(
    TRITONSERVER_InferenceRequest *request, const char *key, const bool value)
{
    inf_parameter_t *p;
    inf_err_t *err = add_parameter(inf_as_client_request(request), key,
        INF_PARAMETER_BOOL, &p);
    if (err == NULL) {
        p->b = value;
    }
    return err;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetDoubleParameter(
    TRITONSERVER_InferenceRequest *request, const char *key,
    const double value)
{
    inf_parameter_t *p;
    inf_err_t *err = add_parameter(inf_as_client_request(request), key,
        INF_PARAMETER_DOUBLE, &p);
    if (err == NULL) {
        p->d = value;
    }
    return err;
}

static inf_err_t *
add_parameter(inf_api_request_t *q, const char *key, inf_parameter_type_t type,
    inf_parameter_t **out)
{
    if (key == NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG, "a parameter has no name");
    }

    *out = inf_parameter_add(&q->parameters, &q->arena, key, strlen(key),
        type);
    return *out != NULL ? NULL : inf_err_nomem();
}

inf_err_t *
inf_api_set_text(inf_buf_t *b, const char *text)
{
    inf_buf_reset(b);
    inf_buf_put(b, text, strlen(text) + 1);
    if (b->failed) {
        inf_err_t *err = inf_buf_status(b);
        inf_buf_fini(b);
        inf_buf_init(b);
        return err;
    }

    b->len--;
    return NULL;
}
