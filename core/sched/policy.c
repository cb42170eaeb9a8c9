#include "core/sched/policy.h"

#include <stdlib.h>

#include "core/model/queue_limit.h"
#include "core/sched/default_scheduler.h"
#include "core/sched/dynamic_batcher.h"
#include "core/sched/sequence_batcher.h"

static const Inference__ModelDynamicBatching *batching(
    const inf_model_t *model);
static const Inference__ModelSequenceBatching *sequences(
    const inf_model_t *model);

inf_err_t *
inf_policy_new(inf_model_t *model, inf_policy_t **out)
{
    if (batching(model) != NULL) {
        return inf_dynamic_batcher_of(model, out);
    }
    if (sequences(model) != NULL) {
        return inf_sequence_batcher_of(model, out);
    }

    uint32_t limit = 0;
    inf_err_t *err = model->built != NULL
        ? inf_config_queue_limit(model->built, &limit) : NULL;
    if (err != NULL) {
        return err;
    }

    *out = inf_default_scheduler_new(limit);
    return *out != NULL ? NULL : inf_err_nomem();
}

bool
inf_policy_keeps_order(const inf_model_t *model)
{
    const Inference__ModelDynamicBatching *msg = batching(model);
    const Inference__ModelSequenceBatching *q = sequences(model);

    return (msg != NULL && msg->preserve_ordering)
        || (q != NULL && q->strategy_choice_case
            == INFERENCE__MODEL_SEQUENCE_BATCHING__STRATEGY_CHOICE_OLDEST
            && q->oldest->preserve_ordering);
}

inf_err_t *
inf_policy_attach_any(inf_policy_t *p, uint32_t number,
    inf_instance_t *instance, void *owner)
{
    (void) p;
    (void) number;
    (void) instance;
    (void) owner;
    return NULL;
}

void
inf_policy_instance_any(inf_policy_t *p, uint32_t number)
{
    (void) p;
    (void) number;
}

bool
inf_policy_occupied_none(const inf_policy_t *p, uint32_t number)
{
    (void) p;
    (void) number;
    return false;
}

uint32_t
inf_policy_hold(const char *variable)
{
    const char *text = getenv(variable);

    return text != NULL ? (uint32_t) strtoul(text, NULL, 10) : 0;
}

void
inf_policy_leave(inf_policy_t *p, bool leaves)
{
    p->leaving = leaves;
}

/* The model's dynamic batching; NULL: another scheduler. */
static const Inference__ModelDynamicBatching *
batching(const inf_model_t *model)
{
    const Inference__ModelConfig *msg = model->built;

    return msg != NULL && msg->scheduling_choice_case
        == INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_DYNAMIC_BATCHING
        ? msg->dynamic_batching : NULL;
}

/* The model's sequence batching; NULL: another scheduler. */
static const Inference__ModelSequenceBatching *
sequences(const inf_model_t *model)
{
    const Inference__ModelConfig *msg = model->built;

    return msg != NULL && msg->scheduling_choice_case
        == INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_SEQUENCE_BATCHING
        ? msg->sequence_batching : NULL;
}
