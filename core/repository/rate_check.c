#include "core/repository/rate_check.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct rate_user_s {
    struct rate_user_s  *next;
    inf_rate_instance_t  limited;
} rate_user_t;

struct inf_rate_check_s {
    inf_rate_limiter_t *limiter;
    rate_user_t        *users;
    int32_t            *devices;    /* where a group may stand that doesn't
                                       say: 0, and those that limits name    */
    size_t              device_count;
};

static inf_err_t *check_group(inf_rate_check_t *c,
    const Inference__ModelInstanceGroup *group, size_t number,
    inf_findings_t *f);
static inf_err_t *check_devices(inf_rate_check_t *c, const int32_t *devices,
    size_t count, bool all, const inf_rate_need_t *needs, size_t need_count,
    size_t number, inf_findings_t *f);
static inf_err_t *add_user(inf_rate_check_t *c, int32_t device,
    const inf_rate_need_t *needs, size_t count);
static bool on_gpus(const Inference__ModelInstanceGroup *group);

inf_err_t *
inf_rate_check_new(const inf_rate_resource_t *resources, size_t count,
    inf_rate_check_t **out)
{
    inf_rate_check_t *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return inf_err_nomem();
    }

    c->devices = calloc(count + 1, sizeof(*c->devices));
    inf_err_t *err = c->devices == NULL ? inf_err_nomem()
        : inf_rate_limiter_new(resources, count, &c->limiter);
    if (err != NULL) {
        inf_rate_check_free(c);
        return err;
    }

    c->devices[c->device_count++] = 0;
    for (size_t i = 0; i < count; i++) {
        if (resources[i].device > 0) {
            c->devices[c->device_count++] = resources[i].device;
        }
    }
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
        rate_user_t *next = c->users->next;
        inf_rate_limiter_remove(c->limiter, &c->users->limited);
        free(c->users);
        c->users = next;
    }
    inf_rate_limiter_free(c->limiter);
    free(c->devices);
    free(c);
}

inf_err_t *
inf_rate_check_model(inf_rate_check_t *c, const Inference__ModelConfig *msg,
    inf_findings_t *f)
{
    for (size_t i = 0; i < msg->n_instance_group; i++) {
        const Inference__ModelInstanceGroup *group = msg->instance_group[i];
        if (group->rate_limiter == NULL || group->passive) {
            continue;
        }

        inf_err_t *err = check_group(c, group, i, f);
        if (err != NULL) {
            return err;
        }
    }
    return NULL;
}

static inf_err_t *
check_group(inf_rate_check_t *c, const Inference__ModelInstanceGroup *group,
    size_t number, inf_findings_t *f)
{
    const Inference__ModelRateLimiter *limits = group->rate_limiter;
    const int32_t first = 0;
    inf_err_t *err;

    inf_rate_need_t *needs = calloc(limits->n_resources + 1, sizeof(*needs));
    if (needs == NULL) {
        return inf_err_nomem();
    }
    for (size_t k = 0; k < limits->n_resources; k++) {
        needs[k].name = limits->resources[k]->name;
        needs[k].count = limits->resources[k]->count;
        needs[k].global = limits->resources[k]->global;
    }

    if (!on_gpus(group)) {
        err = check_devices(c, &first, 1, true, needs, limits->n_resources,
            number, f);
    } else if (group->n_gpus > 0) {
        err = check_devices(c, group->gpus, group->n_gpus, true, needs,
            limits->n_resources, number, f);
    } else {
        err = check_devices(c, c->devices, c->device_count, false, needs,
            limits->n_resources, number, f);
    }
    free(needs);
    return err;
}

/* All of the devices must do, or one of them. */
static inf_err_t *
check_devices(inf_rate_check_t *c, const int32_t *devices, size_t count,
    bool all, const inf_rate_need_t *needs, size_t need_count, size_t number,
    inf_findings_t *f)
{
    inf_err_t *bad = NULL;
    const char *field = NULL;
    size_t at = 0;

    for (size_t i = 0; i < count; i++) {
        inf_err_free(bad);
        bad = inf_rate_limiter_check(c->limiter, devices[i], needs,
            need_count, &at, &field);
        if (bad == NULL) {
            inf_err_t *err = add_user(c, devices[i], needs, need_count);
            if (err != NULL) {
                return err;
            }
        }
        if ((bad == NULL) != all) {
            break;
        }
    }

    if (bad != NULL) {
        char key[96];
        snprintf(key, sizeof(key),
            "instance_group[%zu].rate_limiter.resources[%zu].%s", number, at,
            field);
        inf_findings_add(f, inf_err_code(bad), key, "%s", inf_err_msg(bad));
        inf_err_free(bad);
    }
    return NULL;
}

static inf_err_t *
add_user(inf_rate_check_t *c, int32_t device, const inf_rate_need_t *needs,
    size_t count)
{
    rate_user_t *user = calloc(1, sizeof(*user));
    if (user == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = inf_rate_limiter_add(c->limiter, &user->limited, device,
        1, needs, count);
    if (err != NULL) {
        free(user);
        return err;
    }

    user->next = c->users;
    c->users = user;
    return NULL;
}

static bool
on_gpus(const Inference__ModelInstanceGroup *group)
{
    return group->kind == INFERENCE__MODEL_INSTANCE_GROUP__KIND__KIND_GPU
        || group->kind == INFERENCE__MODEL_INSTANCE_GROUP__KIND__KIND_AUTO;
}
