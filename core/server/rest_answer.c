#include "core/server/rest_answer.h"

#include <string.h>

#include "core/include/channel.h"
#include "core/proto/config_json.h"
#include "core/proto/message_json.h"
#include "core_calls.pb-c.h"
#include "grpc_service.pb-c.h"

#define LOGGED(kind)                                                         \
INFERENCE__LOG_SETTINGS_RESPONSE__SETTING_VALUE__PARAMETER_CHOICE_##kind##_PARAM

static inf_err_t *server_ready(const ProtobufCMessage *m);
static inf_err_t *model_ready(const ProtobufCMessage *m);
static inf_err_t *config(const ProtobufCMessage *m, inf_buf_t *out);
static inf_err_t *index_rows(const ProtobufCMessage *m, inf_buf_t *out);
static inf_err_t *trace(const ProtobufCMessage *m, inf_buf_t *out);
static inf_err_t *logging(const ProtobufCMessage *m, inf_buf_t *out);
static inf_err_t *system_rows(const ProtobufCMessage *m, inf_buf_t *out);
static inf_err_t *cuda_rows(const ProtobufCMessage *m, inf_buf_t *out);
static inf_err_t *next_row(const ProtobufCMessage *row, size_t i,
    const inf_json_options_t *options, inf_buf_t *out);
static inf_err_t *metrics(const ProtobufCMessage *m, inf_buf_t *out);
static inf_err_t *archives(const ProtobufCMessage *m, inf_buf_t *out);

static const inf_json_options_t plain = { .int64_numbers = true };

inf_err_t *
inf_rest_answer(uint16_t method, const ProtobufCMessage *answer,
    inf_buf_t *text)
{
    switch (method) {
    case INF_METHOD_SERVER_READY:
        return server_ready(answer);
    case INF_METHOD_MODEL_READY:
        return model_ready(answer);
    case INF_METHOD_MODEL_CONFIG:
        return config(answer, text);
    case INF_METHOD_REPOSITORY_INDEX:
        return index_rows(answer, text);
    case INF_METHOD_TRACE_SETTING:
        return trace(answer, text);
    case INF_METHOD_LOG_SETTINGS:
        return logging(answer, text);
    case INF_METHOD_SYSTEM_SHM_STATUS:
        return system_rows(answer, text);
    case INF_METHOD_CUDA_SHM_STATUS:
        return cuda_rows(answer, text);
    case INF_METHOD_METRICS:
        return metrics(answer, text);
    case INF_METHOD_ARCHIVE_LIST:
        return archives(answer, text);
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

/* Writes the configuration without the message around it. */
static inf_err_t *
config(const ProtobufCMessage *m, inf_buf_t *out)
{
    return inf_model_config_to_json(
        ((const Inference__ModelConfigResponse *) m)->config, out);
}

/* Writes the rows alone, without unknown fields. */
static inf_err_t *
index_rows(const ProtobufCMessage *m, inf_buf_t *out)
{
    static const inf_json_options_t options = { .omit_defaults = true };
    const Inference__RepositoryIndexResponse *r = (const void *) m;
    inf_err_t *err = NULL;

    inf_buf_putc(out, '[');
    for (size_t i = 0; err == NULL && i < r->n_models; i++) {
        err = next_row(&r->models[i]->base, i, &options, out);
    }
    inf_buf_putc(out, ']');
    return err;
}

/* Writes the settings alone: the level is a list, the others are texts. */
static inf_err_t *
trace(const ProtobufCMessage *m, inf_buf_t *out)
{
    const Inference__TraceSettingResponse *r = (const void *) m;

    inf_buf_putc(out, '{');
    for (size_t i = 0; i < r->n_settings; i++) {
        const Inference__TraceSettingResponse__SettingsEntry *e =
            r->settings[i];
        bool list = strcmp(e->key, "trace_level") == 0;
        inf_buf_puts(out, i > 0 ? "," : "");
        inf_json_put_string(out, inf_slice_str(e->key));
        inf_buf_puts(out, list ? ":[" : ":");
        for (size_t k = 0; k < e->value->n_value; k++) {
            inf_buf_puts(out, k > 0 ? "," : "");
            inf_json_put_string(out, inf_slice_str(e->value->value[k]));
        }
        inf_buf_puts(out, list ? "]" : "");
    }
    inf_buf_putc(out, '}');
    return NULL;
}

/* Writes the settings alone, of several kinds. */
static inf_err_t *
logging(const ProtobufCMessage *m, inf_buf_t *out)
{
    const Inference__LogSettingsResponse *r = (const void *) m;

    inf_buf_putc(out, '{');
    for (size_t i = 0; i < r->n_settings; i++) {
        const Inference__LogSettingsResponse__SettingsEntry *e =
            r->settings[i];
        inf_buf_puts(out, i > 0 ? "," : "");
        inf_json_put_string(out, inf_slice_str(e->key));
        inf_buf_putc(out, ':');
        switch (e->value->parameter_choice_case) {
        case LOGGED(BOOL):
            inf_buf_puts(out, e->value->bool_param ? "true" : "false");
            break;
        case LOGGED(UINT32):
            inf_buf_printf(out, "%u", e->value->uint32_param);
            break;
        case LOGGED(STRING):
            inf_json_put_string(out, inf_slice_str(e->value->string_param));
            break;
        default:
            inf_buf_puts(out, "null");
        }
    }
    inf_buf_putc(out, '}');
    return NULL;
}

/* Writes the regions alone, without their keys. */
static inf_err_t *
system_rows(const ProtobufCMessage *m, inf_buf_t *out)
{
    const Inference__SystemSharedMemoryStatusResponse *r = (const void *) m;
    inf_err_t *err = NULL;

    inf_buf_putc(out, '[');
    for (size_t i = 0; err == NULL && i < r->n_regions; i++) {
        err = next_row(&r->regions[i]->value->base, i, &plain, out);
    }
    inf_buf_putc(out, ']');
    return err;
}

static inf_err_t *
cuda_rows(const ProtobufCMessage *m, inf_buf_t *out)
{
    const Inference__CudaSharedMemoryStatusResponse *r = (const void *) m;
    inf_err_t *err = NULL;

    inf_buf_putc(out, '[');
    for (size_t i = 0; err == NULL && i < r->n_regions; i++) {
        err = next_row(&r->regions[i]->value->base, i, &plain, out);
    }
    inf_buf_putc(out, ']');
    return err;
}

static inf_err_t *
next_row(const ProtobufCMessage *row, size_t i,
    const inf_json_options_t *options, inf_buf_t *out)
{
    if (i > 0) {
        inf_buf_putc(out, ',');
    }
    return inf_message_to_json(row, options, out);
}

/* Writes the text unchanged. */
static inf_err_t *
metrics(const ProtobufCMessage *m, inf_buf_t *out)
{
    const NginxInference__MetricsResponse *r = (const void *) m;

    inf_buf_put(out, r->text.data, r->text.len);
    return NULL;
}

/* Writes the one that was asked for alone. */
static inf_err_t *
archives(const ProtobufCMessage *m, inf_buf_t *out)
{
    const NginxInference__ArchiveListResponse *r = (const void *) m;

    return inf_message_to_json(r->found != NULL ? &r->found->base : m, &plain,
        out);
}
