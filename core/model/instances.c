#include "core/model/instances.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/tensor/memory.h"

/* An instance made by inf_instance_new. */
typedef struct {
    inf_instance_t      instance;
    inf_instance_spec_t spec;
} own_instance_t;

typedef struct inf_instance_name_s {
    struct inf_instance_name_s *next;
    char                        text[];
} name_t;

static char *keep_name(inf_model_t *model, const char *text);
static inf_instance_t *next_locked(const inf_model_t *model,
    const inf_instance_t *after) INF_NEEDS(model->usage_lock);
static inf_instance_t *heir_locked(const inf_instance_t *instance);
static void add_to_sum(void *userp, const inf_instance_spec_t *spec,
    const inf_statistics_t *s);
static void end_visit_locked(inf_instance_t *instance);

inf_err_t *
inf_instance_new(inf_model_t *model, inf_instance_spec_t *spec,
    inf_instance_t **out)
{
    own_instance_t *own = calloc(1, sizeof(*own));
    char *name = own != NULL ? keep_name(model, spec->name) : NULL;
    if (name == NULL) {
        free(own);
        return inf_err_nomem();
    }

    free(spec->name);
    own->spec = *spec;
    own->spec.name = name;
    *spec = (inf_instance_spec_t) { .name = NULL };
    own->instance.model = model;
    own->instance.spec = &own->spec;
    own->instance.sched.peer = &own->instance;
    own->instance.number = ++model->last_number;
    *out = &own->instance;
    return NULL;
}

void
inf_instance_free(inf_instance_t *instance)
{
    if (instance == NULL) {
        return;
    }

    own_instance_t *own = inf_link_entry(instance, own_instance_t, instance);
    own->spec.name = NULL;                  /* owned by the model            */
    inf_instance_spec_fini(&own->spec);
    inf_statistics_fini(&instance->statistics);
    free(instance->memory.rows);
    free(own);
}

inf_err_t *
inf_instances_link(inf_model_t *model, inf_instance_t *const *instances,
    uint32_t count)
{
    inf_lock(&model->usage_lock);
    size_t most = (size_t) model->instance_count + count;
    inf_unlock(&model->usage_lock);

    inf_instance_t **wider = calloc(most + 1, sizeof(*wider));
    if (wider == NULL) {
        return inf_err_nomem();
    }

    inf_lock(&model->usage_lock);       /* others may have gone meanwhile    */
    uint32_t had = model->instance_count;
    for (uint32_t i = 0; i < had; i++) {
        wider[i] = model->instances[i];
    }
    for (uint32_t i = 0; i < count; i++) {
        wider[had + i] = instances[i];
    }
    inf_instance_t **old = model->instances;
    model->instances = wider;
    model->instance_count = had + count;
    inf_unlock(&model->usage_lock);

    free(old);
    return NULL;
}

void
inf_instance_leave(inf_instance_t *instance)
{
    inf_model_t *model = instance->model;

    inf_lock(&model->usage_lock);
    instance->leaving = true;
    inf_unlock(&model->usage_lock);
}

bool
inf_instance_is_idle(inf_instance_t *instance)
{
    inf_model_t *model = instance->model;

    inf_lock(&model->usage_lock);
    bool idle = instance->leaving && instance->visits == 0;
    inf_unlock(&model->usage_lock);

    return idle
        && atomic_load(&instance->returned) >= atomic_load(&instance->kept);
}

void
inf_instance_unlink(inf_instance_t *instance)
{
    inf_model_t *model = instance->model;
    uint32_t n = 0;

    inf_lock(&model->usage_lock);
    inf_instance_t *heir = heir_locked(instance);
    inf_unlock(&model->usage_lock);

    inf_statistics_t *into = heir != NULL ? &heir->statistics
        : &model->statistics;
    inf_err_t *err = inf_statistics_reserve(into, &instance->statistics);
    if (err != NULL) {
        inf_err_log(inf_err_add(err, "model=%s: statistics of instance '%s'"
            " are incomplete", model->name, instance->spec->name));
    }

    inf_lock(&model->usage_lock);
    for (uint32_t i = 0; i < model->instance_count; i++) {
        if (model->instances[i] != instance) {
            model->instances[n++] = model->instances[i];
        }
    }
    model->instance_count = n;
    inf_statistics_absorb(into, &instance->statistics);
    if (heir != NULL) {
        end_visit_locked(heir);
    }
    inf_unlock(&model->usage_lock);
}

void
inf_instances_free(inf_model_t *model)
{
    for (uint32_t i = 0; i < model->instance_count; i++) {
        inf_instance_free(model->instances[i]);
    }

    free(model->instances);
    while (model->names != NULL) {
        name_t *next = model->names->next;
        free(model->names);
        model->names = next;
    }
}

inf_instance_t *
inf_instance_visit_next(inf_model_t *model, inf_instance_t *after)
{
    inf_lock(&model->usage_lock);
    inf_instance_t *next = next_locked(model, after);
    if (next != NULL) {
        next->visits++;
    }
    if (after != NULL) {
        end_visit_locked(after);
    }
    inf_unlock(&model->usage_lock);
    return next;
}

void
inf_instance_visited(inf_instance_t *instance)
{
    inf_model_t *model = instance->model;

    inf_lock(&model->usage_lock);
    end_visit_locked(instance);
    inf_unlock(&model->usage_lock);
}

int64_t
inf_instances_failed_gpu(inf_model_t *model)
{
    const inf_memory_t *memory = inf_memory_shared();
    int64_t found = -1;

    if (inf_memory_failed_gpu(memory) < 0) {
        return -1;
    }

    inf_lock(&model->usage_lock);
    for (uint32_t i = 0; found < 0 && i < model->instance_count; i++) {
        const inf_instance_spec_t *spec = model->instances[i]->spec;
        if (spec->kind == INF_INSTANCE_GPU
            && inf_memory_gpu_failure(memory, spec->device_id) != NULL)
        {
            found = spec->device_id;
        }
    }
    inf_unlock(&model->usage_lock);
    return found;
}

/* Waits for the right to make instances of the model; conflicts are rare. */
void
inf_instances_begin(inf_model_t *model)
{
    while (atomic_exchange(&model->making, true)) {
        usleep(1000);
    }
}

void
inf_instances_end(inf_model_t *model)
{
    atomic_store(&model->making, false);
}

void
inf_model_sum_statistics(inf_model_t *model, inf_statistics_t *sum)
{
    inf_model_each_statistics(model, add_to_sum, sum);
}

void
inf_model_each_statistics(inf_model_t *model, inf_statistics_fn fn,
    void *userp)
{
    inf_lock(&model->usage_lock);
    fn(userp, NULL, &model->statistics);
    for (uint32_t i = 0; i < model->instance_count; i++) {
        const inf_instance_t *instance = model->instances[i];
        fn(userp, instance->spec, &instance->statistics);
    }
    inf_unlock(&model->usage_lock);
}

bool
inf_model_sum_responses(inf_model_t *model, uint32_t index,
    inf_response_stat_t *sum)
{
    *sum = (inf_response_stat_t) { 0 };

    inf_lock(&model->usage_lock);
    bool any = inf_statistics_add_response(sum, &model->statistics, index);
    for (uint32_t i = 0; i < model->instance_count; i++) {
        any |= inf_statistics_add_response(sum,
            &model->instances[i]->statistics, index);
    }
    inf_unlock(&model->usage_lock);
    return any;
}

/* Keeps a name for the model's life; NULL: out of memory.  There are as many as
   the model's configurations have used. */
static char *
keep_name(inf_model_t *model, const char *text)
{
    for (name_t *n = model->names; n != NULL; n = n->next) {
        if (strcmp(n->text, text) == 0) {
            return n->text;
        }
    }

    size_t size = strlen(text) + 1;
    name_t *name = malloc(sizeof(*name) + size);
    if (name == NULL) {
        return NULL;
    }

    memcpy(name->text, text, size);
    name->next = model->names;
    model->names = name;
    return name->text;
}

/* The instance that inherits the counters, visited: a GPU's counters must not
   decrease while it has instances. */
static inf_instance_t *
heir_locked(const inf_instance_t *instance)
{
    const inf_model_t *model = instance->model;
    const inf_instance_spec_t *spec = instance->spec;

    for (uint32_t i = 0; spec->kind == INF_INSTANCE_GPU
        && i < model->instance_count; i++)
    {
        inf_instance_t *other = model->instances[i];
        if (other != instance && !other->leaving
            && other->spec->kind == INF_INSTANCE_GPU
            && other->spec->device_id == spec->device_id)
        {
            other->visits++;
            return other;
        }
    }

    return NULL;
}

static void
add_to_sum(void *userp, const inf_instance_spec_t *spec,
    const inf_statistics_t *s)
{
    (void) spec;
    inf_statistics_fold(userp, s);
}

static inf_instance_t *
next_locked(const inf_model_t *model, const inf_instance_t *after)
{
    uint32_t low = 0;
    uint32_t high = after != NULL ? model->instance_count : 0;

    while (low < high) {                /* the first with a greater number   */
        uint32_t mid = low + (high - low) / 2;
        if (model->instances[mid]->number > after->number) {
            high = mid;
        } else {
            low = mid + 1;
        }
    }

    while (low < model->instance_count && model->instances[low]->leaving) {
        low++;
    }
    return low < model->instance_count ? model->instances[low] : NULL;
}

static void
end_visit_locked(inf_instance_t *instance)
{
    instance->visits--;
}
