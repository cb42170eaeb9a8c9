#include "core/repository/instance_change.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/base/os/thread.h"
#include "core/model/config_validate.h"
#include "core/model/instances.h"
#include "core/proto/message.h"
#include "core/repository/children.h"
#include "core/repository/model_instances.h"

typedef Inference__ModelConfig config_t;

struct inf_instance_change_s {
    const inf_lifecycle_options_t *options;
    inf_model_t                   *model;       /* a reference               */
    bool                           blocking;    /* its GPU instances block the
                                                   device                    */
    config_t                      *config;      /* the model's afterwards    */
    inf_instance_t               **has;         /* present ones, not leaving */
    uint32_t                       has_count;
    inf_instance_t               **comes;
    uint32_t                       come_count;
    inf_instance_t               **goes;
    uint32_t                       go_count;
};

static inf_err_t *prepare(inf_instance_change_t *c,
    const inf_model_load_t *what);
static inf_err_t *make_config(inf_instance_change_t *c,
    const inf_model_load_t *what);
static void take_settings(config_t *to, config_t *from);
static inf_err_t *check_config(const inf_instance_change_t *c,
    const inf_model_load_t *what);
static bool same_groups(const inf_instance_change_t *c);
static config_t groups_of(const config_t *msg);
static inf_err_t *choose(inf_instance_change_t *c,
    inf_instance_specs_t *specs);
static void list_instances(inf_instance_change_t *c, uint32_t room);
static inf_err_t *match(inf_instance_change_t *c, inf_instance_specs_t *specs,
    bool *met, bool *stays);
static void match_all(const inf_instance_change_t *c,
    const inf_instance_specs_t *specs, bool *met, bool *stays, bool by_name);
static bool may_stay(const inf_instance_change_t *c,
    const inf_instance_spec_t *spec);
static void serve(inf_instance_change_t *c);
static void show(inf_instance_change_t *c);
static void end_later(inf_instance_change_t *c);
static void *end_main(void *arg);
static void change_free(inf_instance_change_t *c);

inf_err_t *
inf_instance_change_prepare(const inf_model_load_t *what, inf_model_t *model,
    inf_instance_change_t **out)
{
    inf_instance_change_t *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return inf_err_nomem();
    }

    inf_model_ref(model);
    c->model = model;
    c->options = what->options;
    c->blocking = inf_model_is_device_blocking(model);

    inf_err_t *err = NULL;
    if (inf_model_enter(model)) {
        err = prepare(c, what);
        inf_model_leave(model);
    } else {
        err = inf_err_new(INF_ERR_UNAVAILABLE, "it is being unloaded");
    }
    if (err != NULL) {
        change_free(c);
        return err;
    }

    *out = c;
    return NULL;
}

void
inf_instance_change_commit(inf_instance_change_t *c)
{
    inf_model_t *model = c->model;

    if (!inf_model_enter(model)) {      /* all are finalized                 */
        change_free(c);
        return;
    }

    serve(c);
    show(c);
    inf_children_arm(c->options->children, model);
    end_later(c);
}

void
inf_instance_change_abort(inf_instance_change_t *c)
{
    if (c == NULL) {
        return;
    }

    if (inf_model_enter(c->model)) {
        inf_runner_dismiss(c->model->sched.runner, c->comes, c->come_count);
        inf_runner_collect(c->model->sched.runner, c->comes, c->come_count);
        inf_model_drop_instances(c->options, c->model, c->comes,
            c->come_count);
        inf_model_leave(c->model);
    }

    change_free(c);
}

static inf_err_t *
prepare(inf_instance_change_t *c, const inf_model_load_t *what)
{
    inf_instance_specs_t specs = { NULL, 0 };

    inf_err_t *err = make_config(c, what);
    if (err != NULL || same_groups(c)) {
        return err;
    }

    err = inf_instance_specs_make(c->config, &specs);
    if (err == NULL) {
        err = choose(c, &specs);
    }
    if (err == NULL && c->come_count > 0) {
        err = inf_model_add_instances(what, c->model, c->comes,
            c->come_count);
        c->come_count = err == NULL ? c->come_count : 0;    /* they were
                                                               freed         */
    }

    inf_instance_specs_fini(&specs);
    return err;
}

/* The new configuration: as the backend completed it, except instance groups
   and version policy. */
static inf_err_t *
make_config(inf_instance_change_t *c, const inf_model_load_t *what)
{
    ProtobufCMessage *copy = NULL;
    ProtobufCMessage *asked;

    inf_err_t *err = inf_message_clone(&what->config->msg->base, &asked);
    if (err != NULL) {
        return err;
    }

    inf_lock(&c->model->config_lock);
    err = inf_message_clone(&c->model->config->msg->base, &copy);
    inf_unlock(&c->model->config_lock);

    if (err == NULL) {
        c->config = (config_t *) (void *) copy;
        take_settings(c->config, (config_t *) (void *) asked);
        err = check_config(c, what);
    }
    inf_message_free(asked);
    return err;
}

/* Exchanges the settings. */
static void
take_settings(config_t *to, config_t *from)
{
    config_t old = *to;

    to->n_instance_group = from->n_instance_group;
    to->instance_group = from->instance_group;
    to->version_policy = from->version_policy;
    from->n_instance_group = old.n_instance_group;
    from->instance_group = old.instance_group;
    from->version_policy = old.version_policy;
}

static inf_err_t *
check_config(const inf_instance_change_t *c, const inf_model_load_t *what)
{
    inf_findings_t f;

    inf_findings_init(&f);
    inf_err_t *err = inf_model_settle_groups(what, c->model->backend,
        c->config, &f);
    if (err == NULL) {
        inf_config_find(c->config, INF_RULES_ALL, &f);
        err = inf_model_config_explain(what->config, what->storage, &f);
    }
    inf_findings_fini(&f);
    return err;
}

static bool
same_groups(const inf_instance_change_t *c)
{
    const config_t then = groups_of(c->config);

    inf_lock(&c->model->config_lock);
    const config_t now = groups_of(c->model->config->msg);
    bool same = inf_message_same(&now.base, &then.base);
    inf_unlock(&c->model->config_lock);
    return same;
}

/* The instance groups of msg, borrowed. */
static config_t
groups_of(const config_t *msg)
{
    config_t groups = INFERENCE__MODEL_CONFIG__INIT;

    groups.n_instance_group = msg->n_instance_group;
    groups.instance_group = msg->instance_group;
    return groups;
}

static inf_err_t *
choose(inf_instance_change_t *c, inf_instance_specs_t *specs)
{
    inf_model_t *model = c->model;

    inf_lock(&model->usage_lock);       /* no one adds instances meanwhile   */
    uint32_t room = model->instance_count;
    inf_unlock(&model->usage_lock);

    bool *met = calloc(specs->count + 1, sizeof(*met));
    bool *stays = calloc((size_t) room + 1, sizeof(*stays));
    c->has = calloc((size_t) room + 1, sizeof(*c->has));
    c->comes = calloc(specs->count + 1, sizeof(*c->comes));
    c->goes = calloc((size_t) room + 1, sizeof(*c->goes));
    inf_err_t *err = met == NULL || stays == NULL || c->has == NULL
        || c->comes == NULL || c->goes == NULL ? inf_err_nomem() : NULL;
    if (err == NULL) {
        list_instances(c, room);
        err = match(c, specs, met, stays);
    }

    free(met);
    free(stays);
    return err;
}

/* Lists the instances, except those leaving by an earlier change. */
static void
list_instances(inf_instance_change_t *c, uint32_t room)
{
    inf_instance_t *i = NULL;

    while ((i = inf_instance_visit_next(c->model, i)) != NULL) {
        if (c->has_count < room) {
            c->has[c->has_count++] = i;
        }
    }
}

static inf_err_t *
match(inf_instance_change_t *c, inf_instance_specs_t *specs, bool *met,
    bool *stays)
{
    match_all(c, specs, met, stays, true);
    match_all(c, specs, met, stays, false);

    for (uint32_t i = 0; i < c->has_count; i++) {
        if (!stays[i]) {
            c->goes[c->go_count++] = c->has[i];
        }
    }

    return inf_model_new_instances(c->model, specs, met, c->comes,
        &c->come_count);
}

/* Keeps an instance for each equal spec; by_name: only with its name. */
static void
match_all(const inf_instance_change_t *c, const inf_instance_specs_t *specs,
    bool *met, bool *stays, bool by_name)
{
    for (size_t k = 0; k < specs->count; k++) {
        const inf_instance_spec_t *spec = &specs->items[k];

        for (uint32_t i = 0; !met[k] && i < c->has_count; i++) {
            const inf_instance_spec_t *old = c->has[i]->spec;
            if (!stays[i] && may_stay(c, spec)
                && (!by_name || strcmp(spec->name, old->name) == 0)
                && inf_instance_spec_alike(spec, old))
            {
                met[k] = true;
                stays[i] = true;
            }
        }
    }
}

/* Whether an instance of spec may stay: instances that block their GPU share a
   thread, and are replaced together. */
static bool
may_stay(const inf_instance_change_t *c, const inf_instance_spec_t *spec)
{
    return spec->kind != INF_INSTANCE_GPU || !c->blocking;
}

/* Exchanges the instances.  At least one takes requests at any time, except on
   devices that must not have two. */
static void
serve(inf_instance_change_t *c)
{
    inf_runner_t *runner = c->model->sched.runner;

    for (uint32_t i = 0; i < c->go_count; i++) {
        inf_instance_leave(c->goes[i]);
    }

    if (c->blocking) {
        inf_runner_dismiss(runner, c->goes, c->go_count);
        inf_runner_collect(runner, c->goes, c->go_count);
        inf_runner_admit(runner);
        return;
    }

    inf_runner_admit(runner);
    inf_runner_dismiss(runner, c->goes, c->go_count);
}

static void
show(inf_instance_change_t *c)
{
    inf_model_t *model = c->model;

    inf_lock(&model->config_lock);
    take_settings(model->config->msg, c->config);
    inf_unlock(&model->config_lock);

    if (c->come_count > 0 || c->go_count > 0) {
        inf_log(INF_LOG_NOTICE, "model=%s version=%lld serves on with other"
            " instances: %u are new, %u go", model->name,
            (long long) model->version, c->come_count, c->go_count);
    }
}

/* Ends removed instances on a thread of their own, as their requests and
   sequences may take long, and each when it is idle; here if no thread can be
   started. */
static void
end_later(inf_instance_change_t *c)
{
    if (c->go_count == 0) {
        end_main(c);
        return;
    }

    inf_err_t *err = inf_thread_start(NULL, "instances end", end_main, c);
    if (err != NULL) {
        inf_err_free(err);
        end_main(c);
    }
}

static void *
end_main(void *arg)
{
    inf_instance_change_t *c = arg;

    while (c->go_count > 0) {
        uint32_t i = inf_runner_collect_next(c->model->sched.runner, c->goes,
            c->go_count);
        inf_model_drop_instances(c->options, c->model, &c->goes[i], 1);
        c->go_count--;
        memmove(&c->goes[i], &c->goes[i + 1], (c->go_count - i)
            * sizeof(*c->goes));
    }
    inf_model_leave(c->model);
    change_free(c);
    return NULL;
}

static void
change_free(inf_instance_change_t *c)
{
    inf_model_unref(c->model);
    inf_message_free((ProtobufCMessage *) c->config);
    free(c->has);
    free(c->comes);
    free(c->goes);
    free(c);
}
