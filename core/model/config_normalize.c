#include "core/model/config_normalize.h"

#include "core/model/config_edit.h"
#include "core/model/model_config.h"

#define SEQUENCE_IDLE_DEFAULT_US 1000000u

static inf_err_t *normalize_version_policy(Inference__ModelConfig *msg);
static inf_err_t *normalize_dynamic(Inference__ModelConfig *msg);
static inf_err_t *normalize_sequence(Inference__ModelConfig *msg);
static inf_err_t *normalize_pinned(Inference__ModelConfig *msg);
static inf_err_t *normalize_buffer(ProtobufCMessage *optimization,
    const char *field);

inf_err_t *
inf_config_normalize(Inference__ModelConfig *msg)
{
    inf_err_t *err = normalize_version_policy(msg);

    if (err == NULL && msg->scheduling_choice_case
        == INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_DYNAMIC_BATCHING)
    {
        err = normalize_dynamic(msg);
    }

    if (err == NULL && msg->scheduling_choice_case
        == INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_SEQUENCE_BATCHING)
    {
        err = normalize_sequence(msg);
    }

    if (err == NULL && !inf_config_is_ensemble(msg)
        && msg->scheduling_choice_case
            != INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_ENSEMBLE_SCHEDULING)
    {
        err = normalize_pinned(msg);
    }

    return err;
}

/* Sets the version policy; an empty one stays and means all versions. */
static inf_err_t *
normalize_version_policy(Inference__ModelConfig *msg)
{
    if (msg->version_policy != NULL) {
        return NULL;
    }

    Inference__ModelVersionPolicy *policy;
    inf_err_t *err = inf_config_put_message(&msg->base, "version_policy",
        &policy);
    if (err != NULL) {
        return err;
    }

    Inference__ModelVersionPolicy__Latest *latest;
    err = inf_config_put_message(&policy->base, "latest", &latest);
    if (err != NULL) {
        return err;
    }

    latest->num_versions = 1;
    return NULL;
}

static inf_err_t *
normalize_dynamic(Inference__ModelConfig *msg)
{
    Inference__ModelDynamicBatching *dynamic = msg->dynamic_batching;

    if (dynamic->n_preferred_batch_size > 0 || msg->max_batch_size <= 0) {
        return NULL;
    }

    return inf_config_put_int(&dynamic->base, "preferred_batch_size",
        msg->max_batch_size);
}

static inf_err_t *
normalize_sequence(Inference__ModelConfig *msg)
{
    Inference__ModelSequenceBatching *sequence = msg->sequence_batching;

    if (sequence->max_sequence_idle_microseconds == 0) {
        sequence->max_sequence_idle_microseconds = SEQUENCE_IDLE_DEFAULT_US;
    }

    if (sequence->strategy_choice_case
            != INFERENCE__MODEL_SEQUENCE_BATCHING__STRATEGY_CHOICE_OLDEST
        || sequence->oldest->n_preferred_batch_size > 0
        || msg->max_batch_size <= 0)
    {
        return NULL;
    }

    return inf_config_put_int(&sequence->oldest->base,
        "preferred_batch_size", msg->max_batch_size);
}

static inf_err_t *
normalize_pinned(Inference__ModelConfig *msg)
{
    if (msg->optimization == NULL) {
        inf_err_t *err = inf_config_put_message(&msg->base, "optimization",
            NULL);
        if (err != NULL) {
            return err;
        }
    }

    Inference__ModelOptimizationPolicy *policy = msg->optimization;
    if (policy->input_pinned_memory == NULL) {
        inf_err_t *err = normalize_buffer(&policy->base,
            "input_pinned_memory");
        if (err != NULL) {
            return err;
        }
    }

    if (policy->output_pinned_memory == NULL) {
        return normalize_buffer(&policy->base, "output_pinned_memory");
    }

    return NULL;
}

/* Sets a buffer option; an empty message stays and means no. */
static inf_err_t *
normalize_buffer(ProtobufCMessage *optimization, const char *field)
{
    Inference__ModelOptimizationPolicy__PinnedMemoryBuffer *buffer;
    inf_err_t *err = inf_config_put_message(optimization, field, &buffer);
    if (err == NULL) {
        buffer->enable = true;
    }

    return err;
}
