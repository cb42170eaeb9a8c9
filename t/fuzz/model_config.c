/* Any JSON as what a backend sets (ModelSetConfig) or as the configuration a
   load is given: no crash on the way to the tables that a model is built
   from; what was merged is reported, and the report merges as the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/model/config_complete.h"
#include "core/model/config_normalize.h"
#include "core/model/model_config.h"
#include "core/model/config_tensors.h"
#include "core/model/config_validate.h"
#include "core/model/instance_groups.h"
#include "core/proto/config_json.h"

static const char base[] = "{\"name\":\"m\",\"backend\":\"b\","
    "\"max_batch_size\":4,\"input\":[{\"name\":\"A\",\"data_type\":"
    "\"TYPE_FP32\",\"dims\":[-1]}],\"output\":[{\"name\":\"B\","
    "\"data_type\":\"TYPE_FP32\",\"dims\":[-1]}]}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
need(inf_err_t *err)
{
    if (err != NULL) {
        abort();
    }
}

/* As the load of a model does it. */
static void
build(Inference__ModelConfig *msg)
{
    const inf_instance_host_t host = { .preferred = NULL };
    inf_config_tensors_t *tensors = NULL;
    inf_instance_specs_t specs = { .items = NULL };

    inf_err_t *err = inf_config_normalize(msg);
    if (err == NULL) {
        err = inf_instance_groups_normalize(msg, &host);
    }
    if (err == NULL) {
        err = inf_instance_groups_validate(msg, &host.gpus);
    }
    if (err == NULL) {
        err = inf_config_validate(msg, INF_RULES_ALL);
    }
    if (err == NULL) {
        err = inf_config_tensors_new(msg, &tensors);
    }
    if (err == NULL) {
        err = inf_instance_specs_make(msg, &specs);
    }

    inf_err_free(err);
    inf_instance_specs_fini(&specs);
    inf_config_tensors_free(tensors);
}

static void
merge(const char *json, size_t len)
{
    Inference__ModelConfig *msg;
    inf_model_config_t *c;
    inf_buf_t text[2];

    need(inf_model_config_from_json(inf_slice_str(base), &msg));
    need(inf_model_config_new(msg, "config.pbtxt", "fuzz", &c));

    inf_err_t *err = inf_model_config_merge_json(c, json, len);
    if (err == NULL) {
        inf_buf_init(&text[0]);
        inf_buf_init(&text[1]);
        need(inf_model_config_to_json(c->msg, &text[0]));
        need(inf_model_config_merge_json(c, inf_buf_slice(&text[0]).data,
            text[0].len));
        need(inf_model_config_to_json(c->msg, &text[1]));
        if (!inf_slice_eq(inf_buf_slice(&text[0]), inf_buf_slice(&text[1]))) {
            abort();
        }
        inf_buf_fini(&text[0]);
        inf_buf_fini(&text[1]);
        build(c->msg);
    }
    inf_err_free(err);
    inf_model_config_free(c);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Inference__ModelConfig *msg;
    const char *json = (const char *) data;

    merge(json, size);
    inf_err_t *err = inf_model_config_from_json(inf_slice(json, size), &msg);
    if (err == NULL) {
        build(msg);
        inf_message_free(&msg->base);
    }
    inf_err_free(err);
    return 0;
}
