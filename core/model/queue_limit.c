#include "core/model/queue_limit.h"

#include "core/model/config_parameter.h"

inf_err_t *
inf_config_queue_limit(const Inference__ModelConfig *msg, uint32_t *limit)
{
    const char *text = inf_config_parameter(msg, INF_QUEUE_LIMIT_KEY);
    uint64_t n = 0;
    *limit = 0;

    if (text == NULL) {
        return NULL;
    }
    if (msg->scheduling_choice_case
        != INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE__NOT_SET)
    {
        return inf_err_new(INF_ERR_INVALID_ARG, "parameter '%s' is for models"
            " without a scheduling choice; %s has one, whose queue policy"
            " sets max_queue_size", INF_QUEUE_LIMIT_KEY, msg->name);
    }

    for (const char *p = text; n <= UINT32_MAX && *p != '\0'; p++) {
        n = *p >= '0' && *p <= '9' ? n * 10 + (uint64_t) (*p - '0')
            : UINT64_MAX;
    }
    if (text[0] == '\0' || n > UINT32_MAX) {
        return inf_err_new(INF_ERR_INVALID_ARG, "parameter '%s' of %s must be"
            " a count from 0 to %u, it is '%s'", INF_QUEUE_LIMIT_KEY,
            msg->name, UINT32_MAX, text);
    }

    *limit = (uint32_t) n;
    return NULL;
}
