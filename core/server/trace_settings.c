#include "core/server/trace_settings.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/refs.h"
#include "core/base/search.h"

#define TURN_RANK     38
#define SETTINGS_RANK 45

/* The prepared settings of a change, of the server and its models; NULL: the
   old one stays. */
typedef struct {
    inf_trace_setting_t  *global;
    inf_trace_setting_t **models;       /* one per model                     */
} renewal_t;

static bool has_turn(inf_trace_setting_t *setting);
static inf_trace_values_t configured(const NginxInference__TraceSettings *c);
static void merge(inf_trace_values_t *to, uint32_t what,
    const inf_trace_values_t *from);
static uint32_t differences(const inf_trace_values_t *a,
    const inf_trace_values_t *b);
static inf_err_t *setting_new(const inf_trace_values_t *values,
    inf_trace_setting_t **out);
static const char *invalid(const inf_trace_settings_t *s,
    const inf_trace_values_t *values);
static inf_err_t *check(const inf_trace_settings_t *s,
    const inf_trace_values_t *values);
static inf_trace_values_t in_force(const inf_trace_values_t *global,
    const inf_trace_scope_t *scope);
static inf_trace_scope_t left_over(const inf_trace_scope_t *scope);
static inf_err_t *change(inf_trace_settings_t *s, const char *model,
    const inf_trace_change_t *c, bool restored);
static inf_err_t *change_server(inf_trace_settings_t *s,
    const inf_trace_change_t *c, bool restored);
static inf_err_t *renew_models(inf_trace_settings_t *s,
    const inf_trace_values_t *global, inf_trace_setting_t **made);
static inf_err_t *change_model(inf_trace_settings_t *s, const char *model,
    const inf_trace_change_t *c, bool restored);
static inf_err_t *put_model(inf_trace_settings_t *s, const char *model,
    const inf_trace_scope_t *scope, size_t at, bool found);
static void drop_model(inf_trace_settings_t *s, size_t at);
static void scope_free(inf_trace_scope_t *scope);
static size_t find_locked(const inf_trace_settings_t *s, const char *model,
    bool *found);
static int by_model(const void *model, const void *scope);
static void set_on(inf_trace_settings_t *s);

inf_err_t *
inf_trace_settings_init(inf_trace_settings_t *s,
    const NginxInference__TraceSettings *config)
{
    *s = (inf_trace_settings_t) { .config = config };
    s->global.own = configured(config);
    s->global.given = INF_TRACE_ALL;
    inf_lock_init(&s->turn, TURN_RANK);
    inf_lock_init(&s->lock, SETTINGS_RANK);

    inf_err_t *err = setting_new(&s->global.own, &s->global.setting);
    if (err == NULL) {
        set_on(s);
    }
    return err;
}

void
inf_trace_settings_fini(inf_trace_settings_t *s)
{
    for (size_t i = 0; i < s->count; i++) {
        scope_free(s->models[i]);
    }
    free(s->models);
    inf_trace_setting_unref(s->global.setting);
    inf_lock_fini(&s->lock);
    inf_lock_fini(&s->turn);
}

const char *
inf_trace_mode(const inf_trace_settings_t *s)
{
    return inf_trace_is_otel(s) ? "opentelemetry" : "triton";
}

bool
inf_trace_is_otel(const inf_trace_settings_t *s)
{
    return s->config->url[0] != '\0';
}

inf_err_t *
inf_trace_settings_change(inf_trace_settings_t *s, const char *model,
    const inf_trace_change_t *c)
{
    return change(s, model, c, false);
}

inf_err_t *
inf_trace_settings_restore(inf_trace_settings_t *s, const char *model,
    const inf_trace_change_t *c)
{
    return change(s, model, c, true);
}

static inf_err_t *
change(inf_trace_settings_t *s, const char *model, const inf_trace_change_t *c,
    bool restored)
{
    inf_lock(&s->turn);
    inf_err_t *err = model[0] == '\0' ? change_server(s, c, restored)
        : change_model(s, model, c, restored);
    set_on(s);
    inf_unlock(&s->turn);
    return err;
}

void
inf_trace_settings_get(inf_trace_settings_t *s, const char *model,
    inf_trace_values_t *values)
{
    bool found;

    inf_lock(&s->lock);
    size_t i = find_locked(s, model, &found);
    const inf_trace_setting_t *setting = found ? s->models[i]->setting
        : s->global.setting;
    *values = setting->values;
    values->count = (int32_t) atomic_load_explicit(&setting->left,
        memory_order_relaxed);
    inf_unlock(&s->lock);
}

uint32_t
inf_trace_settings_own(inf_trace_settings_t *s, const char *model,
    inf_trace_values_t *values)
{
    const inf_trace_values_t config = configured(s->config);
    bool found;

    inf_lock(&s->lock);
    size_t i = find_locked(s, model, &found);
    const inf_trace_scope_t *scope = found ? s->models[i] : &s->global;
    uint32_t given = found ? scope->given : 0;
    *values = scope->own;
    inf_unlock(&s->lock);

    return model[0] == '\0' ? differences(values, &config) : given;
}

inf_trace_setting_t *
inf_trace_settings_sample(inf_trace_settings_t *s, const char *model,
    bool forced)
{
    bool found;

    inf_lock(&s->lock);
    size_t i = find_locked(s, model, &found);
    inf_trace_setting_t *setting = found ? s->models[i]->setting
        : s->global.setting;
    atomic_fetch_add_explicit(&setting->refs, 1, memory_order_relaxed);
    inf_unlock(&s->lock);

    if (invalid(s, &setting->values) != NULL
        || (!has_turn(setting) && !forced))
    {
        inf_trace_setting_unref(setting);
        return NULL;
    }

    return setting;
}

/* Whether it is the turn of this request: each rate-th one has it, while the
   count lasts. */
static bool
has_turn(inf_trace_setting_t *setting)
{
    uint32_t rate = setting->values.rate;
    uint64_t seen = atomic_fetch_add_explicit(&setting->seen, 1,
        memory_order_relaxed) + 1;
    if (rate == 0 || seen % rate != 0) {
        return false;
    }

    int64_t left = atomic_load_explicit(&setting->left, memory_order_relaxed);
    while (left > 0 && !atomic_compare_exchange_weak_explicit(&setting->left,
        &left, left - 1, memory_order_relaxed, memory_order_relaxed))
    {
        /* left was reloaded by the failed exchange */
    }
    return left != 0;
}

void
inf_trace_setting_unref(inf_trace_setting_t *setting)
{
    if (setting != NULL && inf_refs_drop(&setting->refs)) {
        free(setting);
    }
}

static inf_trace_values_t
configured(const NginxInference__TraceSettings *c)
{
    return (inf_trace_values_t) {
        .level = (c->timestamps ? INF_TRACE_TIMESTAMPS : 0)
            | (c->tensors ? INF_TRACE_TENSORS : 0),
        .rate = c->rate,
        .count = c->count,
        .log_frequency = c->log_frequency
    };
}

static void
merge(inf_trace_values_t *to, uint32_t what, const inf_trace_values_t *from)
{
    if (what & INF_TRACE_LEVEL) {
        to->level = from->level;
    }
    if (what & INF_TRACE_RATE) {
        to->rate = from->rate;
    }
    if (what & INF_TRACE_COUNT) {
        to->count = from->count;
    }
    if (what & INF_TRACE_FREQUENCY) {
        to->log_frequency = from->log_frequency;
    }
}

static uint32_t
differences(const inf_trace_values_t *a, const inf_trace_values_t *b)
{
    return (a->level != b->level ? INF_TRACE_LEVEL : 0)
        | (a->rate != b->rate ? INF_TRACE_RATE : 0)
        | (a->count != b->count ? INF_TRACE_COUNT : 0)
        | (a->log_frequency != b->log_frequency ? INF_TRACE_FREQUENCY : 0);
}

static inf_err_t *
setting_new(const inf_trace_values_t *values, inf_trace_setting_t **out)
{
    inf_trace_setting_t *setting = calloc(1, sizeof(*setting));
    if (setting == NULL) {
        return inf_err_nomem();
    }

    atomic_init(&setting->refs, 1);
    atomic_init(&setting->left, values->count);
    setting->values = *values;
    setting->index = -1;
    *out = setting;
    return NULL;
}

/* The reason why these values trace nothing; NULL: they trace. */
static const char *
invalid(const inf_trace_settings_t *s, const inf_trace_values_t *values)
{
    if (values->level == INF_TRACE_OFF) {
        return "tracing is disabled";
    }
    if (inf_trace_is_otel(s)) {
        return NULL;
    }
    if (values->rate == 0) {
        return "sample rate must be non-zero";
    }

    return s->config->file[0] == '\0' ? "trace file name is not given" : NULL;
}

/* Rejects invalid values; OFF is accepted. */
static inf_err_t *
check(const inf_trace_settings_t *s, const inf_trace_values_t *values)
{
    const char *why = invalid(s, values);

    return why == NULL || values->level == INF_TRACE_OFF ? NULL
        : inf_err_new(INF_ERR_INVALID_ARG, "Attempting to set invalid trace"
            " setting :%s", why);
}

static inf_trace_values_t
in_force(const inf_trace_values_t *global, const inf_trace_scope_t *scope)
{
    inf_trace_values_t values = *global;

    merge(&values, scope->given, &scope->own);
    return values;
}

/* A copy of the scope with the rest of its count: changing another setting does
   not restart the count. */
static inf_trace_scope_t
left_over(const inf_trace_scope_t *scope)
{
    inf_trace_scope_t copy = *scope;

    copy.own.count = (int32_t) atomic_load_explicit(&scope->setting->left,
        memory_order_relaxed);
    return copy;
}

static inf_err_t *
change_server(inf_trace_settings_t *s, const inf_trace_change_t *c,
    bool restored)
{
    const inf_trace_values_t config = configured(s->config);
    inf_trace_scope_t next = left_over(&s->global);
    renewal_t made = { 0 };

    merge(&next.own, c->clear, &config);
    merge(&next.own, c->set, &c->values);
    inf_err_t *err = restored ? NULL : check(s, &next.own);
    if (err == NULL) {
        made.models = calloc(s->count + 1, sizeof(*made.models));
        err = made.models == NULL ? inf_err_nomem()
            : renew_models(s, &next.own, made.models);
    }
    if (err == NULL) {
        err = setting_new(&next.own, &made.global);
    }

    if (err == NULL) {
        inf_trace_setting_t *old = s->global.setting;
        next.setting = made.global;
        made.global = old;
        inf_lock(&s->lock);
        s->global = next;
        for (size_t i = 0; i < s->count; i++) {
            if (made.models[i] != NULL) {
                old = s->models[i]->setting;
                s->models[i]->setting = made.models[i];
                made.models[i] = old;
            }
        }
        inf_unlock(&s->lock);
    }

    for (size_t i = 0; made.models != NULL && i < s->count; i++) {
        inf_trace_setting_unref(made.models[i]);
    }
    free(made.models);
    inf_trace_setting_unref(made.global);
    return err;
}

/* Prepares settings of the models that inherit a changed global value. */
static inf_err_t *
renew_models(inf_trace_settings_t *s, const inf_trace_values_t *global,
    inf_trace_setting_t **made)
{
    for (size_t i = 0; i < s->count; i++) {
        inf_trace_scope_t scope = left_over(s->models[i]);
        const inf_trace_values_t v = in_force(global, &scope);
        const inf_trace_values_t *old = &scope.setting->values;
        if (v.level == old->level && v.rate == old->rate
            && v.log_frequency == old->log_frequency
            && ((scope.given & INF_TRACE_COUNT) || v.count == old->count))
        {
            continue;
        }

        inf_err_t *err = setting_new(&v, &made[i]);
        if (err != NULL) {
            return err;
        }
    }
    return NULL;
}

static inf_err_t *
change_model(inf_trace_settings_t *s, const char *model,
    const inf_trace_change_t *c, bool restored)
{
    bool found;
    size_t at = find_locked(s, model, &found);
    inf_trace_scope_t next = { .given = 0 };

    if (found) {
        next = left_over(s->models[at]);
    }
    next.given = (next.given & ~c->clear) | c->set;
    merge(&next.own, c->set, &c->values);
    if (next.given == 0) {
        if (found) {
            drop_model(s, at);
        }
        return NULL;
    }

    const inf_trace_scope_t global = left_over(&s->global);
    const inf_trace_values_t v = in_force(&global.own, &next);
    inf_err_t *err = restored ? NULL : check(s, &v);
    if (err == NULL) {
        err = setting_new(&v, &next.setting);
    }
    if (err == NULL) {
        err = put_model(s, model, &next, at, found);
        if (err != NULL) {
            inf_trace_setting_unref(next.setting);
        }
    }
    return err;
}

/* Takes scope's setting on success. */
static inf_err_t *
put_model(inf_trace_settings_t *s, const char *model,
    const inf_trace_scope_t *scope, size_t at, bool found)
{
    if (found) {
        inf_trace_scope_t *mine = s->models[at];
        inf_trace_setting_t *old = mine->setting;
        inf_lock(&s->lock);
        mine->own = scope->own;
        mine->given = scope->given;
        mine->setting = scope->setting;
        inf_unlock(&s->lock);
        inf_trace_setting_unref(old);
        return NULL;
    }

    inf_trace_scope_t **grown = malloc((s->count + 1) * sizeof(*grown));
    inf_trace_scope_t *mine = malloc(sizeof(*mine));
    char *name = strdup(model);
    if (grown == NULL || mine == NULL || name == NULL) {
        free(grown);
        free(mine);
        free(name);
        return inf_err_nomem();
    }

    *mine = *scope;
    mine->model = name;
    for (size_t i = 0; i < s->count; i++) {
        grown[i < at ? i : i + 1] = s->models[i];
    }
    grown[at] = mine;

    inf_trace_scope_t **old = s->models;
    inf_lock(&s->lock);
    s->models = grown;
    s->count++;
    inf_unlock(&s->lock);
    free(old);
    return NULL;
}

static void
drop_model(inf_trace_settings_t *s, size_t at)
{
    inf_trace_scope_t *scope = s->models[at];

    inf_lock(&s->lock);
    s->count--;
    for (size_t i = at; i < s->count; i++) {
        s->models[i] = s->models[i + 1];
    }
    inf_unlock(&s->lock);
    scope_free(scope);
}

static void
scope_free(inf_trace_scope_t *scope)
{
    inf_trace_setting_unref(scope->setting);
    free(scope->model);
    free(scope);
}

/* The position of the model, or where to insert it.  Either lock or
   turn suffices. */
static size_t
find_locked(const inf_trace_settings_t *s, const char *model, bool *found)
{
    return inf_search(model, s->models, s->count, sizeof(*s->models), by_model,
        found);
}

static int
by_model(const void *model, const void *scope)
{
    return strcmp(model, (*(inf_trace_scope_t *const *) scope)->model);
}

static void
set_on(inf_trace_settings_t *s)
{
    bool on = invalid(s, &s->global.setting->values) == NULL;

    for (size_t i = 0; i < s->count; i++) {
        on |= invalid(s, &s->models[i]->setting->values) == NULL;
    }
    atomic_store_explicit(&s->on, on, memory_order_relaxed);
}
