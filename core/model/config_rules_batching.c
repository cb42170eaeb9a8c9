/* config_rules_batching.c - rules of dynamic_batching and its queues. */

#include "core/model/config_validate.h"
#include "core/model/queue_limit.h"

static void find_queue_limit(const Inference__ModelConfig *msg,
    inf_findings_t *f);
static void find_preferred(const Inference__ModelConfig *msg,
    inf_findings_t *f);
static void find_priorities(const Inference__ModelConfig *msg,
    inf_findings_t *f);
static void find_ordering(const Inference__ModelConfig *msg,
    inf_findings_t *f);
static bool policy_delays(const Inference__ModelQueuePolicy *policy);
static void add_delay(const char *model, const char *key, inf_findings_t *f);

void
inf_config_find_batching(const Inference__ModelConfig *msg,
    inf_findings_t *f)
{
    find_queue_limit(msg, f);
    if (msg->scheduling_choice_case
        != INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_DYNAMIC_BATCHING)
    {
        return;
    }

    find_preferred(msg, f);
    find_priorities(msg, f);
    find_ordering(msg, f);
}

static void
find_queue_limit(const Inference__ModelConfig *msg, inf_findings_t *f)
{
    uint32_t limit;

    inf_err_t *err = inf_config_queue_limit(msg, &limit);
    if (err != NULL) {
        inf_findings_add(f, inf_err_code(err),
            "parameters[\"" INF_QUEUE_LIMIT_KEY "\"]", "%s",
            inf_err_msg(err));
        inf_err_free(err);
    }
}

static void
find_preferred(const Inference__ModelConfig *msg, inf_findings_t *f)
{
    const Inference__ModelDynamicBatching *d = msg->dynamic_batching;
    char key[INF_KEY_MAX];

    for (size_t i = 0; i < d->n_preferred_batch_size; i++) {
        int32_t size = d->preferred_batch_size[i];
        inf_key(key, "dynamic_batching.preferred_batch_size[%zu]", i);

        if (size <= 0) {
            inf_findings_add(f, INF_ERR_INVALID_ARG, key,
                "dynamic batching preferred size must be positive for %s, "
                "it is %d", msg->name, size);

        } else if (size > msg->max_batch_size) {
            inf_findings_add(f, INF_ERR_INVALID_ARG, key,
                "dynamic batching preferred size must be <= max batch size "
                "for %s, it is %d and max_batch_size is %d", msg->name, size,
                msg->max_batch_size);
        }
    }
}

/* Checks priorities; without levels, policies by level are ignored. */
static void
find_priorities(const Inference__ModelConfig *msg, inf_findings_t *f)
{
    const Inference__ModelDynamicBatching *d = msg->dynamic_batching;
    unsigned long long levels = d->priority_levels;
    char key[INF_KEY_MAX];

    if (levels == 0) {
        return;
    }

    if (d->default_priority_level == 0
        || d->default_priority_level > levels)
    {
        inf_findings_add(f, INF_ERR_INVALID_ARG,
            "dynamic_batching.default_priority_level",
            "default priority level must be in range [1, %llu] for %s, it is "
            "%llu", levels, msg->name,
            (unsigned long long) d->default_priority_level);
    }

    for (size_t i = 0; i < d->n_priority_queue_policy; i++) {
        unsigned long long level = d->priority_queue_policy[i]->key;

        if (level == 0 || level > levels) {
            inf_findings_add(f, INF_ERR_INVALID_ARG, inf_key(key,
                "dynamic_batching.priority_queue_policy[%llu]", level),
                "priority queue policy must have priority level in range "
                "[1, %llu] for %s", levels, msg->name);
        }
    }
}

static void
find_ordering(const Inference__ModelConfig *msg, inf_findings_t *f)
{
    const Inference__ModelDynamicBatching *d = msg->dynamic_batching;
    char key[INF_KEY_MAX];

    if (!d->preserve_ordering) {
        return;
    }

    if (d->priority_levels > 1) {
        inf_findings_add(f, INF_ERR_INVALID_ARG,
            "dynamic_batching.priority_levels",
            "Only one priority level is allowed when 'preserve_ordering' is "
            "true for %s", msg->name);
    }

    if (policy_delays(d->default_queue_policy)) {
        add_delay(msg->name, "dynamic_batching.default_queue_policy", f);
    }

    for (size_t i = 0; i < d->n_priority_queue_policy; i++) {
        if (policy_delays(d->priority_queue_policy[i]->value)) {
            add_delay(msg->name, inf_key(key,
                "dynamic_batching.priority_queue_policy[%llu]",
                (unsigned long long) d->priority_queue_policy[i]->key), f);
        }
    }
}

static bool
policy_delays(const Inference__ModelQueuePolicy *policy)
{
    return policy != NULL && policy->default_timeout_microseconds != 0
        && policy->timeout_action
            == INFERENCE__MODEL_QUEUE_POLICY__TIMEOUT_ACTION__DELAY;
}

static void
add_delay(const char *model, const char *key, inf_findings_t *f)
{
    inf_findings_add(f, INF_ERR_INVALID_ARG, key, "Queue policy can not have "
        "DELAY as timeout action when 'preserve_ordering' is true for %s",
        model);
}
