#include "core/repository/rate_check.h"

#include <stdlib.h>

#include "core/sched/rate_gate.h"

/* The first instance of a group. */
typedef struct rate_user_s {
    struct rate_user_s  *next;
    inf_rate_instance_t  limited;
} rate_user_t;

struct inf_rate_check_s {
    inf_rate_gate_t *gate;
    rate_user_t     *users;
};

static inf_err_t *add_user(inf_rate_check_t *c,
    const Inference__ModelInstanceGroup *group);

inf_err_t *
inf_rate_check_new(const NginxInference__CoreConfig *config,
    inf_rate_check_t **out)
{
    inf_rate_gate_t *gate;

    *out = NULL;
    inf_err_t *err = inf_rate_gate_from_config(config, &gate);
    if (err != NULL || gate == NULL) {
        return err;
    }

    inf_rate_check_t *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        inf_rate_gate_free(gate);
        return inf_err_nomem();
    }

    c->gate = gate;
    *out = c;
    return NULL;
}

void
inf_rate_check_free(inf_rate_check_t *c)
{
    if (c == NULL) {
        return;
    }

    while (c->users != NULL) {
        rate_user_t *user = c->users;
        c->users = user->next;
        inf_rate_gate_remove(c->gate, &user->limited);
        free(user);
    }
    inf_rate_gate_free(c->gate);
    free(c);
}

inf_err_t *
inf_rate_check_model(inf_rate_check_t *c, const Inference__ModelConfig *msg,
    inf_findings_t *f)
{
    size_t before = inf_findings_total(f);

    inf_err_t *err = inf_rate_gate_find(c->gate, msg, f);
    for (size_t i = 0; err == NULL && inf_findings_total(f) == before
        && i < msg->n_instance_group; i++)
    {
        err = add_user(c, msg->instance_group[i]);
        if (err != NULL && inf_err_code(err) == INF_ERR_INVALID_ARG) {
            char key[INF_KEY_MAX];      /* it differs from the model's others */
            inf_findings_add(f, INF_ERR_INVALID_ARG, inf_key(key,
                "instance_group[%zu].rate_limiter", i), "%s",
                inf_err_msg(err));
            inf_err_free(err);
            err = NULL;
        }
    }
    return err;
}

static inf_err_t *
add_user(inf_rate_check_t *c, const Inference__ModelInstanceGroup *group)
{
    if (group->passive || group->rate_limiter == NULL) {
        return NULL;
    }

    rate_user_t *user = calloc(1, sizeof(*user));
    if (user == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = inf_rate_gate_add(c->gate, &user->limited, group);
    if (err != NULL) {
        free(user);
        return err;
    }

    user->next = c->users;
    c->users = user;
    return NULL;
}
