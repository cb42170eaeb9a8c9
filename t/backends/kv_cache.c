/*
 * kv_cache.c - a backend that tells of a KV cache by gauges, as backends for
 * language models do: those of used, max and tokens_per that the model's
 * parameters name.  It answers IN (INT32, one number) with OUT, the same.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"

#define KINDS 3

typedef struct {
    TRITONSERVER_MetricFamily *family;
    TRITONSERVER_Metric       *metrics[KINDS];
} gauges_t;

static const char *const kinds[KINDS] = { "used", "max", "tokens_per" };

/* The number in the parameter's text, or false. */
static int
parameter(const char *config, const char *key, double *out)
{
    char        head[128];
    const char *at;

    snprintf(head, sizeof(head), "\"%s\":{\"string_value\":\"", key);
    at = strstr(config, head);
    if (at == NULL) {
        return 0;
    }
    *out = atof(at + strlen(head));
    return 1;
}

static TRITONSERVER_Error *
add_gauge(gauges_t *g, TRITONBACKEND_Model *model, int kind, double value)
{
    const TRITONSERVER_Parameter *labels[2];
    const char                   *name = "";
    TRITONSERVER_Error           *err;

    TRITONBACKEND_ModelName(model, &name);
    labels[0] = TRITONSERVER_ParameterNew("kv_cache_block_type",
        TRITONSERVER_PARAMETER_STRING, kinds[kind]);
    labels[1] = TRITONSERVER_ParameterNew("model",
        TRITONSERVER_PARAMETER_STRING, name);
    err = TRITONSERVER_MetricNew(&g->metrics[kind], g->family, labels, 2);
    for (int i = 0; i < 2; i++) {
        TRITONSERVER_ParameterDelete((TRITONSERVER_Parameter *) labels[i]);
    }
    return err != NULL ? err : TRITONSERVER_MetricSet(g->metrics[kind], value);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model)
{
    TRITONSERVER_Message *message = NULL;
    const char           *text;
    size_t                size;
    gauges_t             *g = calloc(1, sizeof(*g));

    if (g == NULL) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE,
                                     "out of memory");
    }
    TRITONBACKEND_ModelSetState(model, g);

    TRITONSERVER_Error *err = TRITONBACKEND_ModelConfig(model, 1, &message);
    if (err == NULL) {
        err = TRITONSERVER_MetricFamilyNew(&g->family,
            TRITONSERVER_METRIC_KIND_GAUGE,
            "nv_trt_llm_kv_cache_block_metrics", "KV cache blocks");
    }
    if (err == NULL) {
        err = TRITONSERVER_MessageSerializeToJson(message, &text, &size);
    }
    for (int i = 0; err == NULL && i < KINDS; i++) {
        double value;

        if (parameter(text, kinds[i], &value)) {
            err = add_gauge(g, model, i, value);
        }
    }
    if (message != NULL) {
        TRITONSERVER_MessageDelete(message);
    }
    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model)
{
    void *state;

    TRITONBACKEND_ModelState(model, &state);

    gauges_t *g = state;
    for (int i = 0; i < KINDS; i++) {
        if (g->metrics[i] != NULL) {
            TRITONSERVER_ErrorDelete(TRITONSERVER_MetricDelete(
                g->metrics[i]));
        }
    }
    if (g->family != NULL) {
        TRITONSERVER_ErrorDelete(TRITONSERVER_MetricFamilyDelete(g->family));
    }
    free(g);
    return NULL;
}

static TRITONSERVER_Error *
answer(TRITONBACKEND_Request *request, TRITONBACKEND_Response *response,
    void *userp)
{
    const void         *data;
    uint64_t            size;
    int32_t             number;
    TRITONSERVER_Error *err = answer_read(request, "IN", &data, &size);

    (void) userp;
    if (err != NULL) {
        return err;
    }
    memcpy(&number, data, sizeof(number));
    return answer_int32(response, "OUT", number);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
    TRITONBACKEND_Request **requests, const uint32_t count)
{
    (void) instance;
    return answer_each(requests, count, answer, NULL);
}
