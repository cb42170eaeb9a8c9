#include "core/server/rest_answer.h"

#include "core/include/channel.h"
#include "core/proto/config_json.h"
#include "core/proto/message_json.h"
#include "core_calls.pb-c.h"
#include "grpc_service.pb-c.h"

static inf_err_t *server_ready(const ProtobufCMessage *m);
static inf_err_t *model_ready(const ProtobufCMessage *m);
static inf_err_t *config(const ProtobufCMessage *m, inf_buf_t *out);
static inf_err_t *index_rows(const ProtobufCMessage *m, inf_buf_t *out);
static inf_err_t *metrics(const ProtobufCMessage *m, inf_buf_t *out);

inf_err_t *
inf_rest_answer(uint16_t method, const ProtobufCMessage *answer,
    inf_buf_t *text)
{
    static const inf_json_options_t plain = { .int64_numbers = true };

    switch (method) {
    case INF_METHOD_SERVER_READY:
        return server_ready(answer);
    case INF_METHOD_MODEL_READY:
        return model_ready(answer);
    case INF_METHOD_MODEL_CONFIG:
        return config(answer, text);
    case INF_METHOD_REPOSITORY_INDEX:
        return index_rows(answer, text);
    case INF_METHOD_METRICS:
        return metrics(answer, text);
    default:
        return inf_message_to_json(answer, &plain, text);
    }
}

static inf_err_t *
server_ready(const ProtobufCMessage *m)
{
    return ((const Inference__ServerReadyResponse *) m)->ready ? NULL
        : inf_err_because(inf_err_new(INF_ERR_UNAVAILABLE, "%s", ""),
            INF_CAUSE_NOT_READY);
}

static inf_err_t *
model_ready(const ProtobufCMessage *m)
{
    return ((const Inference__ModelReadyResponse *) m)->ready ? NULL
        : inf_err_because(inf_err_new(INF_ERR_INVALID_ARG,
            "Model version not ready"), INF_CAUSE_NOT_READY);
}

/* The configuration alone, not the message around it. */
static inf_err_t *
config(const ProtobufCMessage *m, inf_buf_t *out)
{
    return inf_model_config_to_json(
        ((const Inference__ModelConfigResponse *) m)->config, out);
}

/* The rows alone; what a row doesn't know it leaves out. */
static inf_err_t *
index_rows(const ProtobufCMessage *m, inf_buf_t *out)
{
    static const inf_json_options_t options = { .omit_defaults = true };
    const Inference__RepositoryIndexResponse *r = (const void *) m;
    inf_err_t *err = NULL;

    inf_buf_putc(out, '[');
    for (size_t i = 0; err == NULL && i < r->n_models; i++) {
        if (i > 0) {
            inf_buf_putc(out, ',');
        }
        err = inf_message_to_json(&r->models[i]->base, &options, out);
    }
    inf_buf_putc(out, ']');
    return err;
}

/* Text as it is. */
static inf_err_t *
metrics(const ProtobufCMessage *m, inf_buf_t *out)
{
    const NginxInference__MetricsResponse *r = (const void *) m;

    inf_buf_put(out, r->text.data, r->text.len);
    return NULL;
}
