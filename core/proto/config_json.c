#include "core/proto/config_json.h"

#include <string.h>

#include "core/proto/message_json.h"

static bool config_is_number(const ProtobufCMessageDescriptor *desc,
    const ProtobufCFieldDescriptor *f);

/*
 * The 64-bit fields that are JSON numbers.  The others are strings: dims of a
 * state's initial_state, dim of a CUDA graph's shape, a secondary device's id,
 * and (being keys) the priorities of priority_queue_policy.
 */
static const struct {
    const char  *message;
    const char  *field;
} config_numbers[] = {
    { "inference.ModelInput", "dims" },
    { "inference.ModelOutput", "dims" },
    { "inference.ModelTensorReshape", "shape" },
    { "inference.ModelVersionPolicy.Specific", "versions" },
    { "inference.ModelQueuePolicy", "default_timeout_microseconds" },
    { "inference.ModelDynamicBatching", "max_queue_delay_microseconds" },
    { "inference.ModelDynamicBatching", "priority_levels" },
    { "inference.ModelDynamicBatching", "default_priority_level" },
    { "inference.ModelSequenceBatching", "max_sequence_idle_microseconds" },
    { "inference.ModelSequenceBatching.State", "dims" },
    { "inference.ModelSequenceBatching.StrategyDirect",
        "max_queue_delay_microseconds" },
    { "inference.ModelSequenceBatching.StrategyOldest",
        "max_queue_delay_microseconds" },
    { "inference.ModelEnsembling.Step", "model_version" },
    { "inference.ModelWarmup.Input", "dims" },
};

/* Oneofs that are not at the end of their message in the .proto file. */
static const inf_json_oneof_place_t config_places[] = {
    { "inference.ModelConfig", "instance_group" },
    { "inference.ModelSequenceBatching", "max_sequence_idle_microseconds" },
    { "inference.ModelSequenceBatching.InitialState", "name" },
};

inf_err_t *
inf_model_config_to_json(const Inference__ModelConfig *config, inf_buf_t *out)
{
    static const inf_json_options_t options = {
        .is_number = config_is_number,
        .places = config_places,
        .n_places = sizeof(config_places) / sizeof(config_places[0]),
    };

    if (inf_message_packed_len(&config->base) == 0) {
        return NULL;
    }
    return inf_message_to_json(&config->base, &options, out);
}

inf_err_t *
inf_model_config_from_json(inf_slice_t text, Inference__ModelConfig **out)
{
    ProtobufCMessage *m;

    inf_err_t *err = inf_message_from_json(
        &inference__model_config__descriptor, text, &m);
    if (err == NULL) {
        *out = (Inference__ModelConfig *) m;
    }
    return err;
}

static bool
config_is_number(const ProtobufCMessageDescriptor *desc,
    const ProtobufCFieldDescriptor *f)
{
    size_t n = sizeof(config_numbers) / sizeof(config_numbers[0]);

    for (size_t i = 0; i < n; i++) {
        if (strcmp(config_numbers[i].field, f->name) == 0
            && strcmp(config_numbers[i].message, desc->name) == 0)
        {
            return true;
        }
    }
    return false;
}
