/* config_rules_sequence.c - rules of sequence_batching and its controls. */

#include "core/model/config_validate.h"

#include "core/model/config_names.h"

typedef Inference__ModelSequenceBatching__Control control_t;

static void find_sequence_cache(const Inference__ModelConfig *msg,
    inf_findings_t *f);
static void find_control_names(const Inference__ModelConfig *msg,
    inf_findings_t *f);
static void find_control_kind(const Inference__ModelConfig *msg,
    unsigned kind, inf_findings_t *f);
static void find_boolean(const char *model, const char *key,
    const control_t *c, inf_findings_t *f);
static void find_list(const char *model, const char *key, const control_t *c,
    const char *list, size_t count, inf_findings_t *f);
static void find_correlation(const char *model, const char *key,
    const control_t *c, inf_findings_t *f);
static void find_oldest(const Inference__ModelConfig *msg,
    inf_findings_t *f);
static void find_direct(const Inference__ModelConfig *msg,
    inf_findings_t *f);

static const char *const control_kinds[] = {
    "CONTROL_SEQUENCE_START", "CONTROL_SEQUENCE_READY",
    "CONTROL_SEQUENCE_END", "CONTROL_SEQUENCE_CORRID"
};

/* the generated names do not fit on a line */
#define CONTROL_CORRID                                                       \
INFERENCE__MODEL_SEQUENCE_BATCHING__CONTROL__KIND__CONTROL_SEQUENCE_CORRID

#define CONTROL_KINDS (sizeof(control_kinds) / sizeof(control_kinds[0]))

void
inf_config_find_sequence(const Inference__ModelConfig *msg,
    inf_findings_t *f)
{
    if (msg->scheduling_choice_case
        != INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_SEQUENCE_BATCHING)
    {
        return;
    }

    find_sequence_cache(msg, f);
    find_control_names(msg, f);

    for (unsigned kind = 0; kind < CONTROL_KINDS; kind++) {
        find_control_kind(msg, kind, f);
    }

    find_oldest(msg, f);
    find_direct(msg, f);
}

static void
find_sequence_cache(const Inference__ModelConfig *msg, inf_findings_t *f)
{
    if (msg->response_cache != NULL && msg->response_cache->enable) {
        inf_findings_add(f, INF_ERR_INVALID_ARG, "response_cache",
            "Response Cache does not currently support model %s with "
            "sequence batching scheduler. Please disable the response "
            "cache.", msg->name);
    }
}

static void
find_control_names(const Inference__ModelConfig *msg, inf_findings_t *f)
{
    const Inference__ModelSequenceBatching *s = msg->sequence_batching;
    char key[INF_KEY_MAX];
    inf_config_names_t seen;

    inf_config_names_init(&seen);
    for (size_t i = 0; i < s->n_control_input; i++) {
        const char *name = s->control_input[i]->name;
        inf_key(key, "sequence_batching.control_input[%zu].name", i);

        if (name[0] == '\0') {
            inf_findings_add(f, INF_ERR_INVALID_ARG, key, "sequence batching "
                "control tensor must have a name for %s", msg->name);
            continue;
        }

        switch (inf_config_names_add(&seen, inf_slice_str(name), 0)) {
        case INF_CONFIG_NAMES_ADDED:
            break;
        case INF_CONFIG_NAMES_KNOWN:
            inf_findings_add(f, INF_ERR_INVALID_ARG, key, "sequence batching "
                "control tensor '%s' is specified for multiple control kinds "
                "for %s", name, msg->name);
            break;
        case INF_CONFIG_NAMES_NOMEM:
            f->lost++;
            break;
        }
    }

    inf_config_names_fini(&seen);
}

static void
find_control_kind(const Inference__ModelConfig *msg, unsigned kind,
    inf_findings_t *f)
{
    const Inference__ModelSequenceBatching *s = msg->sequence_batching;
    char key[INF_KEY_MAX];
    bool seen = false;

    for (size_t i = 0; i < s->n_control_input; i++) {
        for (size_t k = 0; k < s->control_input[i]->n_control; k++) {
            const control_t *c = s->control_input[i]->control[k];
            if ((unsigned) c->kind != kind) {
                continue;
            }

            inf_key(key, "sequence_batching.control_input[%zu].control[%zu]",
                i, k);

            if (seen) {
                inf_findings_add(f, INF_ERR_INVALID_ARG, key, "sequence "
                    "batching specifies multiple %s tensors for %s",
                    control_kinds[kind], msg->name);
            }

            seen = true;
            if (kind == CONTROL_CORRID) {
                find_correlation(msg->name, key, c, f);

            } else {
                find_boolean(msg->name, key, c, f);
            }
        }
    }
}

/* Checks START, END or READY: exactly one list, with two entries. */
static void
find_boolean(const char *model, const char *key, const control_t *c,
    inf_findings_t *f)
{
    int lists = (c->n_int32_false_true > 0) + (c->n_fp32_false_true > 0)
        + (c->n_bool_false_true > 0);

    if (lists == 0) {
        inf_findings_add(f, INF_ERR_INVALID_ARG, key, "sequence batching "
            "must specify either 'int32_false_true', 'fp32_false_true' or "
            "'bool_false_true' for %s for %s", control_kinds[c->kind],
            model);
        return;
    }

    if (lists > 1) {
        inf_findings_add(f, INF_ERR_INVALID_ARG, key, "sequence batching "
            "specifies more than one from 'int32_false_true', "
            "'fp32_false_true' and 'bool_false_true' for %s for %s",
            control_kinds[c->kind], model);
        return;
    }

    find_list(model, key, c, "int32_false_true", c->n_int32_false_true, f);
    find_list(model, key, c, "fp32_false_true", c->n_fp32_false_true, f);
    find_list(model, key, c, "bool_false_true", c->n_bool_false_true, f);
}

static void
find_list(const char *model, const char *key, const control_t *c,
    const char *list, size_t count, inf_findings_t *f)
{
    if (count != 0 && count != 2) {
        inf_findings_add(f, INF_ERR_INVALID_ARG, key, "sequence batching "
            "control '%s' must have exactly 2 entries for %s for %s, it has "
            "%zu", list, control_kinds[c->kind], model, count);
    }
}

static void
find_correlation(const char *model, const char *key, const control_t *c,
    inf_findings_t *f)
{
    if (c->n_int32_false_true > 0 || c->n_fp32_false_true > 0
        || c->n_bool_false_true > 0)
    {
        inf_findings_add(f, INF_ERR_INVALID_ARG, key, "sequence batching "
            "must not specify either 'int32_false_true', 'fp32_false_true' "
            "or 'bool_false_true' for CONTROL_SEQUENCE_CORRID for %s",
            model);
    }

    switch ((unsigned) c->data_type) {
    case INFERENCE__DATA_TYPE__TYPE_UINT64:
    case INFERENCE__DATA_TYPE__TYPE_INT64:
    case INFERENCE__DATA_TYPE__TYPE_UINT32:
    case INFERENCE__DATA_TYPE__TYPE_INT32:
    case INFERENCE__DATA_TYPE__TYPE_STRING:
        return;
    default:                            /* a file may contain any number */
        inf_findings_add(f, INF_ERR_INVALID_ARG, key, "unexpected data type "
            "for control CONTROL_SEQUENCE_CORRID for %s. Allowed data types "
            "are TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and "
            "TYPE_STRING", model);
    }
}

static void
find_oldest(const Inference__ModelConfig *msg, inf_findings_t *f)
{
    const Inference__ModelSequenceBatching *s = msg->sequence_batching;
    char key[INF_KEY_MAX];

    if (s->strategy_choice_case
        != INFERENCE__MODEL_SEQUENCE_BATCHING__STRATEGY_CHOICE_OLDEST)
    {
        return;
    }

    for (size_t i = 0; i < s->oldest->n_preferred_batch_size; i++) {
        int32_t size = s->oldest->preferred_batch_size[i];
        inf_key(key, "sequence_batching.oldest.preferred_batch_size[%zu]", i);

        if (size <= 0) {
            inf_findings_add(f, INF_ERR_INVALID_ARG, key, "sequence batching "
                "preferred batch size must be positive for %s, it is %d",
                msg->name, size);

        } else if (size > msg->max_batch_size) {
            inf_findings_add(f, INF_ERR_INVALID_ARG, key, "sequence batching "
                "preferred batch size must be <= max batch size for %s, it "
                "is %d and max_batch_size is %d", msg->name, size,
                msg->max_batch_size);
        }
    }
}

static void
find_direct(const Inference__ModelConfig *msg, inf_findings_t *f)
{
    const Inference__ModelSequenceBatching *s = msg->sequence_batching;

    if (s->strategy_choice_case
        != INFERENCE__MODEL_SEQUENCE_BATCHING__STRATEGY_CHOICE_DIRECT)
    {
        return;
    }

    float share = s->direct->minimum_slot_utilization;
    if (!(share >= 0.0f && share <= 1.0f)) {            /* nan is neither */
        inf_findings_add(f, INF_ERR_INVALID_ARG,
            "sequence_batching.direct.minimum_slot_utilization",
            "sequence batching minimum slot utilization must be in range "
            "(0.0, 1.0] for %s, it is %g", msg->name, (double) share);
    }
}
