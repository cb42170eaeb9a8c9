#include "core/abi/executions.h"

#include "core/repository/lifecycle.h"

#define PLACES 4096u

static void describe(const inf_execution_t *e, inf_signal_text_t *text);

_Thread_local inf_execution_t *inf_execution_running;

/* The executions of all instances that have executed. */
static inf_execution_place_t places[PLACES];

void
inf_executions_add(inf_execution_t *e)
{
    e->place = NULL;
    for (uint32_t i = 0; e->place == NULL && i < PLACES; i++) {
        inf_execution_t *none = NULL;
        if (atomic_compare_exchange_strong_explicit(&places[i], &none, e,
            memory_order_acq_rel, memory_order_relaxed))
        {
            e->place = &places[i];
        }
    }
}

void
inf_executions_remove(inf_execution_t *e)
{
    if (e != NULL && e->place != NULL) {
        atomic_store_explicit(e->place, NULL, memory_order_release);
        e->place = NULL;
    }
}

const inf_execution_t *
inf_executions_next(uint32_t *at)
{
    while (*at < PLACES) {
        const inf_execution_t *e = atomic_load_explicit(&places[(*at)++],
            memory_order_acquire);
        if (e != NULL
            && (atomic_load_explicit(&e->executing, memory_order_relaxed)
                || atomic_load(&e->instance->returned)
                    < atomic_load(&e->instance->kept)))
        {
            return e;
        }
    }
    return NULL;
}

const inf_model_t *
inf_execution_culprit(bool *certain)
{
    const inf_execution_t *running = inf_execution_running;
    bool several;

    *certain = running != NULL;
    return running != NULL ? running->instance->model
        : inf_execution_likely_culprit(&several);
}

const inf_model_t *
inf_execution_likely_culprit(bool *several)
{
    const inf_model_t *one = NULL;
    const inf_execution_t *e;
    bool suspect = false;
    *several = false;

    for (uint32_t at = 0; (e = inf_executions_next(&at)) != NULL; ) {
        bool is_suspect = atomic_load_explicit(&e->suspect,
            memory_order_relaxed);
        if (suspect && !is_suspect) {
            continue;
        }
        if (is_suspect && !suspect) {
            suspect = true;
            *several = false;
            one = NULL;
        }
        *several |= one != NULL && one != e->instance->model;
        one = e->instance->model;
    }
    return *several ? NULL : one;
}

bool
inf_execution_describe(inf_signal_text_t *text)
{
    const inf_execution_t *e = inf_execution_running;

    if (e != NULL) {
        describe(e, text);
        return true;
    }
    for (uint32_t at = 0; (e = inf_executions_next(&at)) != NULL; ) {
        describe(e, text);
    }
    return false;
}

static void
describe(const inf_execution_t *e, inf_signal_text_t *text)
{
    const inf_model_t *model = e->instance->model;

    inf_signal_text_puts(text, text->len > 0 ? "; model=" : "model=");
    inf_signal_text_puts(text, inf_lifecycle_title(model));
    inf_signal_text_puts(text, " version=");
    inf_signal_text_number(text, (uint64_t) model->version);
    inf_signal_text_puts(text, " backend=");
    inf_signal_text_puts(text, inf_model_backend_name(model));
    inf_signal_text_puts(text, " instance=");
    inf_signal_text_puts(text, e->instance->spec->name);
}
