#include "core/model/config_validate.h"

#include <string.h>

#include "core/base/path.h"
#include "core/model/model_config.h"
#include "core/model/private_inputs.h"

/* the generated names do not fit on a line */
#define WARMUP_DATA_FILE                                                     \
INFERENCE__MODEL_WARMUP__INPUT__INPUT_DATA_TYPE_INPUT_DATA_FILE
#define METRIC_HISTOGRAM                                                     \
INFERENCE__MODEL_METRICS__METRIC_CONTROL__METRIC_OPTIONS_HISTOGRAM_OPTIONS

static void find_model(const Inference__ModelConfig *msg, inf_findings_t *f);
static void find_backend(const Inference__ModelConfig *msg,
    inf_findings_t *f);
static const char *platform_backend(const char *platform);
static const char *backend_platform(const char *backend);
static void find_files(const Inference__ModelConfig *msg, inf_findings_t *f);
static void find_file(const char *key, const char *path, const char *within,
    const char *model, inf_findings_t *f);
static void find_warmup_files(const Inference__ModelConfig *msg,
    inf_findings_t *f);
static void find_cache(const Inference__ModelConfig *msg, inf_findings_t *f);
static void find_private_inputs(const Inference__ModelConfig *msg,
    inf_findings_t *f);
static void find_metrics(const Inference__ModelConfig *msg,
    inf_findings_t *f);

inf_err_t *
inf_config_validate(const Inference__ModelConfig *msg, unsigned rules)
{
    inf_findings_t f;
    inf_findings_init(&f);
    inf_config_find(msg, rules, &f);
    inf_err_t *err = inf_findings_error(&f, NULL);
    inf_findings_fini(&f);
    return err;
}

void
inf_config_find(const Inference__ModelConfig *msg, unsigned rules,
    inf_findings_t *f)
{
    if (rules & INF_RULES_MODEL) {
        find_model(msg, f);
    }

    if (rules & INF_RULES_TENSORS) {
        inf_config_find_tensors(msg, f);
    }

    if (rules & INF_RULES_STATE) {
        inf_config_find_state(msg, f);
    }
}

static void
find_model(const Inference__ModelConfig *msg, inf_findings_t *f)
{
    if (msg->name[0] == '\0') {
        inf_findings_add(f, INF_ERR_INVALID_ARG, "name",
            "model configuration must specify 'name'");
    }

    find_backend(msg, f);

    if (msg->max_batch_size < 0) {
        inf_findings_add(f, INF_ERR_INVALID_ARG, "max_batch_size",
            "'max_batch_size' must be non-negative value for %s, it is %d",
            msg->name, msg->max_batch_size);
    }

    if (msg->version_policy == NULL) {
        inf_findings_add(f, INF_ERR_INVALID_ARG, "version_policy",
            "must specify 'version policy' for %s", msg->name);
    }

    inf_config_find_batching(msg, f);
    inf_config_find_sequence(msg, f);
    inf_config_find_ensemble(msg, f);
    find_private_inputs(msg, f);
    find_cache(msg, f);
    find_metrics(msg, f);
    find_files(msg, f);
}

static void
find_backend(const Inference__ModelConfig *msg, inf_findings_t *f)
{
    bool ensemble = inf_config_is_ensemble(msg);

    if (msg->backend[0] == '\0') {
        if (!ensemble) {
            inf_findings_add(f, INF_ERR_INVALID_ARG, "backend",
                "unexpected platform type '%s' for %s; specify 'backend'",
                msg->platform, msg->name);
        }

        return;
    }

    if (ensemble) {
        inf_findings_add(f, INF_ERR_INVALID_ARG, "backend",
            "Ensemble model '%s' must have platform type 'ensemble' and "
            "empty backend type, it has backend '%s'", msg->name,
            msg->backend);
        return;
    }

    const char *usual = backend_platform(msg->backend);
    if (usual[0] != '\0'
        && strcmp(platform_backend(msg->platform), msg->backend) != 0)
    {
        inf_findings_add(f, INF_ERR_INVALID_ARG, "platform",
            "unexpected 'platform' and 'backend' pair, got:%s, %s; '%s' is one"
            " of that backend's", msg->platform, msg->backend, usual);
    }
}

/* Platforms and their backends; of several for a backend the first is
   preferred. */
static const char *const platforms[][2] = {
    { "tensorflow_graphdef",   "tensorflow"  },
    { "tensorflow_savedmodel", "tensorflow"  },
    { "tensorrt_plan",         "tensorrt"    },
    { "onnxruntime_onnx",      "onnxruntime" },
    { "pytorch_libtorch",      "pytorch"     },
    { "torch_aoti",            "pytorch"     },
};

static const char *
platform_backend(const char *platform)
{
    for (size_t i = 0; i < sizeof(platforms) / sizeof(platforms[0]); i++) {
        if (strcmp(platform, platforms[i][0]) == 0) {
            return platforms[i][1];
        }
    }

    return "";
}

/* The platform of a backend; "": any. */
static const char *
backend_platform(const char *backend)
{
    for (size_t i = 0; i < sizeof(platforms) / sizeof(platforms[0]); i++) {
        if (strcmp(backend, platforms[i][1]) == 0) {
            return platforms[i][0];
        }
    }

    return "";
}

/* Checks that files named by a model stay in their directory. */
static void
find_files(const Inference__ModelConfig *msg, inf_findings_t *f)
{
    char key[INF_KEY_MAX];

    find_file("default_model_filename", msg->default_model_filename,
        "version", msg->name, f);

    for (size_t i = 0; i < msg->n_cc_model_filenames; i++) {
        find_file(inf_key(key, "cc_model_filenames[\"%s\"]",
            msg->cc_model_filenames[i]->key),
            msg->cc_model_filenames[i]->value, "version", msg->name, f);
    }

    find_warmup_files(msg, f);
}

static void
find_file(const char *key, const char *path, const char *within,
    const char *model, inf_findings_t *f)
{
    if (path[0] != '\0' && !inf_path_is_inner(path)) {
        inf_findings_add(f, INF_ERR_INVALID_ARG, key,
            "file name '%s' must stay within the %s directory for %s: no "
            "leading slash and no '..'", path, within, model);
    }
}

static void
find_warmup_files(const Inference__ModelConfig *msg, inf_findings_t *f)
{
    char key[INF_KEY_MAX];

    for (size_t i = 0; i < msg->n_model_warmup; i++) {
        const Inference__ModelWarmup *sample = msg->model_warmup[i];

        for (size_t k = 0; k < sample->n_inputs; k++) {
            const Inference__ModelWarmup__Input *in = sample->inputs[k]->value;

            if (in != NULL && in->input_data_type_case == WARMUP_DATA_FILE) {
                find_file(inf_key(key, "model_warmup[%zu].inputs[\"%s\"]"
                    ".input_data_file", i, sample->inputs[k]->key),
                    in->input_data_file, "warmup", msg->name, f);
            }
        }
    }
}

static void
find_private_inputs(const Inference__ModelConfig *msg, inf_findings_t *f)
{
    bool wanted;

    inf_err_t *err = inf_private_inputs_wanted(msg, &wanted);
    if (err != NULL) {
        inf_findings_add(f, inf_err_code(err),
            "parameters[\"" INF_PRIVATE_INPUTS_KEY "\"]", "%s",
            inf_err_msg(err));
        inf_err_free(err);
    }
}

static void
find_cache(const Inference__ModelConfig *msg, inf_findings_t *f)
{
    if (msg->response_cache == NULL || !msg->response_cache->enable) {
        return;
    }

    if (msg->model_transaction_policy != NULL
        && msg->model_transaction_policy->decoupled)
    {
        inf_findings_add(f, INF_ERR_INVALID_ARG, "response_cache",
            "Response Cache does not currently support model %s with "
            "'decoupled' transaction policy. Please disable the response "
            "cache.", msg->name);
    }
}

static void
find_metrics(const Inference__ModelConfig *msg, inf_findings_t *f)
{
    char key[INF_KEY_MAX];

    if (msg->model_metrics == NULL) {
        return;
    }

    for (size_t i = 0; i < msg->model_metrics->n_metric_control; i++) {
        const Inference__ModelMetrics__MetricControl *control =
            msg->model_metrics->metric_control[i];

        if (control->metric_identifier == NULL) {
            inf_findings_add(f, INF_ERR_INVALID_ARG,
                inf_key(key, "model_metrics.metric_control[%zu]", i),
                "metric control must specify 'metric_identifier' for %s",
                msg->name);

        } else if (control->metric_identifier->family[0] == '\0') {
            inf_findings_add(f, INF_ERR_INVALID_ARG, inf_key(key,
                "model_metrics.metric_control[%zu].metric_identifier", i),
                "metric identifier must specify non-empty 'family' for %s",
                msg->name);
        }

        if (control->metric_options_case != METRIC_HISTOGRAM) {
            inf_findings_add(f, INF_ERR_INVALID_ARG,
                inf_key(key, "model_metrics.metric_control[%zu]", i),
                "metric control must specify 'histogram_options' for %s",
                msg->name);

        } else if (control->histogram_options->n_buckets == 0) {
            inf_findings_add(f, INF_ERR_INVALID_ARG, inf_key(key,
                "model_metrics.metric_control[%zu].histogram_options", i),
                "histogram options must specify non-empty 'buckets' for %s",
                msg->name);
        }
    }
}
