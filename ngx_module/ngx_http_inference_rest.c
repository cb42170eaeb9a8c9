/*
 * ngx_http_inference_rest.c - answers of the core as REST bodies.  The JSON
 *                             follows the messages' descriptors; an adapter
 *                             stands where REST differs.
 */

#include "ngx_module/ngx_http_inference_request.h"

#include "core/proto/config_json.h"
#include "core/proto/message.h"
#include "core/proto/message_json.h"

#include "core_calls.pb-c.h"
#include "grpc_service.pb-c.h"


static inf_err_t *ngx_http_inference_rest_ready(const ProtobufCMessage *m,
    inf_buf_t *out, ngx_uint_t *status);
static inf_err_t *ngx_http_inference_rest_model_ready(
    const ProtobufCMessage *m, inf_buf_t *out, ngx_uint_t *status);
static inf_err_t *ngx_http_inference_rest_config(const ProtobufCMessage *m,
    inf_buf_t *out, ngx_uint_t *status);
static inf_err_t *ngx_http_inference_rest_index(const ProtobufCMessage *m,
    inf_buf_t *out, ngx_uint_t *status);
static inf_err_t *ngx_http_inference_rest_empty(const ProtobufCMessage *m,
    inf_buf_t *out, ngx_uint_t *status);
static inf_err_t *ngx_http_inference_rest_plain(const ProtobufCMessage *m,
    inf_buf_t *out, ngx_uint_t *status);
static inf_err_t *ngx_http_inference_rest_metrics(const ProtobufCMessage *m,
    inf_buf_t *out, ngx_uint_t *status);


typedef inf_err_t *(*ngx_http_inference_rest_pt)(const ProtobufCMessage *m,
    inf_buf_t *out, ngx_uint_t *status);

typedef struct {
    ngx_http_inference_verb_e           verb;
    const ProtobufCMessageDescriptor   *answer;
    ngx_http_inference_rest_pt          write;
} ngx_http_inference_rest_t;


static const ngx_http_inference_rest_t  ngx_http_inference_rests[] = {

    { NGX_HTTP_INFERENCE_SERVER_READY,
      &inference__server_ready_response__descriptor,
      ngx_http_inference_rest_ready },

    { NGX_HTTP_INFERENCE_MODEL_READY,
      &inference__model_ready_response__descriptor,
      ngx_http_inference_rest_model_ready },

    { NGX_HTTP_INFERENCE_SERVER_METADATA,
      &inference__server_metadata_response__descriptor,
      ngx_http_inference_rest_plain },

    { NGX_HTTP_INFERENCE_MODEL_METADATA,
      &inference__model_metadata_response__descriptor,
      ngx_http_inference_rest_plain },

    { NGX_HTTP_INFERENCE_MODEL_CONFIG,
      &inference__model_config_response__descriptor,
      ngx_http_inference_rest_config },

    { NGX_HTTP_INFERENCE_STATISTICS_READ,
      &inference__model_statistics_response__descriptor,
      ngx_http_inference_rest_plain },

    { NGX_HTTP_INFERENCE_METRICS_TEXT,
      &nginx_inference__metrics_response__descriptor,
      ngx_http_inference_rest_metrics },

    { NGX_HTTP_INFERENCE_REPOSITORY_INDEX,
      &inference__repository_index_response__descriptor,
      ngx_http_inference_rest_index },

    { NGX_HTTP_INFERENCE_REPOSITORY_LOAD,
      &inference__repository_model_load_response__descriptor,
      ngx_http_inference_rest_empty },

    { NGX_HTTP_INFERENCE_REPOSITORY_UNLOAD,
      &inference__repository_model_unload_response__descriptor,
      ngx_http_inference_rest_empty },

    { 0, NULL, NULL }
};


inf_err_t *
ngx_http_inference_rest(ngx_http_inference_verb_e verb, inf_slice_t answer,
    inf_buf_t *out, ngx_uint_t *status)
{
    inf_err_t                        *err;
    ProtobufCMessage                 *m;
    const ngx_http_inference_rest_t  *rest;

    for (rest = ngx_http_inference_rests; rest->answer; rest++) {
        if (rest->verb == verb) {
            break;
        }
    }

    if (rest->answer == NULL) {
        return inf_err_new(INF_ERR_INTERNAL, "no REST form of endpoint %d",
                           (int) verb);
    }

    err = inf_message_unpack(rest->answer, answer, &m);

    if (err) {
        err = inf_err_recode(err, INF_ERR_INTERNAL);
        return inf_err_add(err, "the core's answer");
    }

    *status = NGX_HTTP_OK;

    err = rest->write(m, out, status);

    inf_message_free(m);

    return err ? err : inf_buf_status(out);
}


static inf_err_t *
ngx_http_inference_rest_ready(const ProtobufCMessage *m, inf_buf_t *out,
    ngx_uint_t *status)
{
    if (!((const Inference__ServerReadyResponse *) m)->ready) {
        *status = NGX_HTTP_BAD_REQUEST;
    }

    return NULL;
}


static inf_err_t *
ngx_http_inference_rest_model_ready(const ProtobufCMessage *m, inf_buf_t *out,
    ngx_uint_t *status)
{
    if (((const Inference__ModelReadyResponse *) m)->ready) {
        return NULL;
    }

    return inf_err_new(INF_ERR_INVALID_ARG, "Model version not ready");
}


/* The configuration alone, not the message around it. */

static inf_err_t *
ngx_http_inference_rest_config(const ProtobufCMessage *m, inf_buf_t *out,
    ngx_uint_t *status)
{
    const Inference__ModelConfigResponse  *response;

    response = (const Inference__ModelConfigResponse *) m;

    if (response->config == NULL) {
        return inf_err_new(INF_ERR_INTERNAL,
                           "the core's answer holds no configuration");
    }

    return inf_model_config_to_json(response->config, out);
}


/* The rows alone; what a row doesn't know it leaves out. */

static inf_err_t *
ngx_http_inference_rest_index(const ProtobufCMessage *m, inf_buf_t *out,
    ngx_uint_t *status)
{
    size_t                                     i;
    inf_err_t                                 *err;
    inf_json_options_t                         options;
    const Inference__RepositoryIndexResponse  *response;

    response = (const Inference__RepositoryIndexResponse *) m;

    ngx_memzero(&options, sizeof(inf_json_options_t));
    options.omit_defaults = 1;

    inf_buf_putc(out, '[');

    for (i = 0; i < response->n_models; i++) {

        if (i) {
            inf_buf_putc(out, ',');
        }

        err = inf_message_to_json(&response->models[i]->base, &options, out);

        if (err) {
            return err;
        }
    }

    inf_buf_putc(out, ']');

    return NULL;
}


static inf_err_t *
ngx_http_inference_rest_empty(const ProtobufCMessage *m, inf_buf_t *out,
    ngx_uint_t *status)
{
    return NULL;
}


/* 64-bit integers are numbers in REST. */

static inf_err_t *
ngx_http_inference_rest_plain(const ProtobufCMessage *m, inf_buf_t *out,
    ngx_uint_t *status)
{
    inf_json_options_t  options;

    ngx_memzero(&options, sizeof(inf_json_options_t));
    options.int64_numbers = 1;

    return inf_message_to_json(m, &options, out);
}


/* Text as it is, and what the core can't know. */

static inf_err_t *
ngx_http_inference_rest_metrics(const ProtobufCMessage *m, inf_buf_t *out,
    ngx_uint_t *status)
{
    const NginxInference__MetricsResponse  *response;

    response = (const NginxInference__MetricsResponse *) m;

    inf_buf_put(out, response->text.data, response->text.len);
    ngx_http_inference_counters_text(out);

    return NULL;
}
