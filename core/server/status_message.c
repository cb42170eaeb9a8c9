#include "core/server/status_message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/include/build_id.h"
#include "core/model/instances.h"
#include "core/sched/gate.h"
#include "core/sched/runtime.h"
#include "core/server/ready_models.h"

typedef NginxInference__StatusResponse status_t;
typedef NginxInference__ModelStatus    model_status_t;
typedef NginxInference__SequenceStatus sequence_status_t;
typedef NginxInference__BatchStatus    batch_status_t;
typedef NginxInference__ResourceStatus resource_status_t;

/* Rows of one kind; rows is malloc'ed. */
typedef struct {
    void   **rows;
    size_t   count;
    size_t   cap;
} list_t;

/* After one failed allocation the message fails. */
typedef struct {
    inf_arena_t *arena;
    bool         failed;
    list_t       models;
    list_t       resources;
} maker_t;

static void add_version(void *userp, const char *name, int64_t version,
    inf_version_state_t state, const char *reason);
static inf_err_t *describe_ready(maker_t *mk, inf_server_t *server);
static model_status_t *row_of(maker_t *mk, const inf_model_t *model,
    size_t *from);
static void describe(maker_t *mk, inf_model_t *model, model_status_t *m);
static void describe_load(maker_t *mk, inf_model_t *model, model_status_t *m);
static void add_batches(maker_t *mk, const inf_statistics_t *s,
    model_status_t *m);
static void add_resource(void *userp, const char *name, bool global,
    int32_t device, uint64_t copies, uint64_t used);
static void add_row(maker_t *mk, list_t *list, void *row);
static void **keep_rows(maker_t *mk, list_t *list);
static char *copy(maker_t *mk, const char *text);
static void *make(maker_t *mk, size_t size);

inf_err_t *
inf_status_message(inf_server_t *server, inf_arena_t *arena, status_t *out)
{
    maker_t mk = { .arena = arena };
    const char *id = server->config->values->server_id;

    nginx_inference__status_response__init(out);
    out->name = (char *) (id[0] != '\0' ? id : "triton");
    out->version = (char *) INF_VERSION;
    out->pid = (uint64_t) getpid();
    out->ready = inf_server_ready(server);
    out->cache_failure = server->cache.failure == NULL ? (char *) ""
        : copy(&mk, inf_err_msg(server->cache.failure));
    out->duration_bounds_ns = (uint64_t *) inf_histogram_bounds_ns;
    out->n_duration_bounds_ns = INF_HISTOGRAM_BOUNDS;

    inf_err_t *err = inf_lifecycle_status_rows(server->lifecycle, add_version,
        &mk);
    if (err == NULL) {
        err = describe_ready(&mk, server);
    }
    if (err == NULL && server->rate_gate != NULL) {
        inf_rate_gate_each(server->rate_gate, add_resource, &mk);
    }

    out->n_models = mk.models.count;
    out->n_resources = mk.resources.count;
    out->models = (model_status_t **) keep_rows(&mk, &mk.models);
    out->resources = (resource_status_t **) keep_rows(&mk, &mk.resources);
    return err != NULL ? err : mk.failed ? inf_err_nomem() : NULL;
}

static void
add_version(void *userp, const char *name, int64_t version,
    inf_version_state_t state, const char *reason)
{
    maker_t *mk = userp;
    char text[24] = "";
    model_status_t *m = make(mk, sizeof(*m));
    if (m == NULL) {
        return;
    }

    if (version >= 0) {
        snprintf(text, sizeof(text), "%lld", (long long) version);
    }
    nginx_inference__model_status__init(m);
    m->name = copy(mk, name);
    m->version = copy(mk, text);
    m->state = state == INF_VERSION_UNKNOWN ? (char *) ""
        : (char *) (uintptr_t) inf_version_state_name(state);
    m->reason = copy(mk, reason);
    add_row(mk, &mk->models, m);
}

/* Adds details to rows; ready models are in the order of the rows.  A model
   loaded or unloaded after the rows were made has no details. */
static inf_err_t *
describe_ready(maker_t *mk, inf_server_t *server)
{
    inf_ready_models_t ready;
    size_t from = 0;

    inf_err_t *err = inf_ready_models_init(&ready, server);
    if (err != NULL) {
        return err;
    }

    for (size_t i = 0; !mk->failed && i < ready.count; i++) {
        model_status_t *m = row_of(mk, ready.models[i], &from);
        if (m != NULL) {
            describe(mk, ready.models[i], m);
        }
    }
    inf_ready_models_fini(&ready);
    return NULL;
}

/* The row of a model, from *from on; on success *from is the index after it. */
static model_status_t *
row_of(maker_t *mk, const inf_model_t *model, size_t *from)
{
    char version[24];

    snprintf(version, sizeof(version), "%lld", (long long) model->version);
    for (size_t i = *from; i < mk->models.count; i++) {
        model_status_t *m = mk->models.rows[i];
        if (strcmp(m->name, model->name) == 0
            && strcmp(m->version, version) == 0)
        {
            *from = i + 1;
            return m;
        }
    }
    return NULL;
}

static void
describe(maker_t *mk, inf_model_t *model, model_status_t *m)
{
    inf_statistics_t s = { 0 };
    const inf_histogram_t *h = &s.histograms[INF_HISTOGRAM_REQUEST];

    inf_model_sum_statistics(model, &s);
    m->namespace_ = copy(mk, model->space != NULL ? model->space : "");
    m->backend = copy(mk, inf_model_backend_name(model));
    m->success_count = s.success.count;
    m->fail_count = s.fail.count;
    m->execution_count = s.execution_count;
    describe_load(mk, model, m);
    add_batches(mk, &s, m);

    m->duration_counts = make(mk, sizeof(h->counts));
    for (size_t i = 0; !mk->failed && i <= INF_HISTOGRAM_BOUNDS; i++) {
        m->duration_counts[m->n_duration_counts++] = h->counts[i];
    }
    inf_statistics_fini(&s);
}

static void
describe_load(maker_t *mk, inf_model_t *model, model_status_t *m)
{
    inf_runner_t *runner = model->sched.runner;

    if (model->sched.gate != NULL) {
        m->queued = inf_gate_waiting(model->sched.gate);
    }
    if (runner == NULL) {
        return;
    }

    uint64_t all = inf_runner_pending(runner);
    uint64_t queued = inf_runner_queued(runner);
    m->queued += queued;
    m->executing = all > queued ? all - queued : 0;

    const inf_stuck_t instances = inf_runner_stuck(runner);
    m->instances = instances.serving;
    m->instances_busy = instances.busy;
    m->instances_stuck = instances.stuck;

    const inf_sequence_counts_t count = inf_runner_slots(runner);
    if (count.slots + count.free == 0) {
        return;
    }
    m->sequences = make(mk, sizeof(*m->sequences));
    if (m->sequences != NULL) {
        nginx_inference__sequence_status__init(m->sequences);
        m->sequences->slots = count.slots + count.free;
        m->sequences->slots_taken = count.slots;
        m->sequences->backlog = count.backlog;
    }
}

/* Adds the batch sizes, ascending. */
static void
add_batches(maker_t *mk, const inf_statistics_t *s, model_status_t *m)
{
    size_t count = inf_statistics_batches(s, NULL, 0);
    const inf_batch_stat_t **sorted = make(mk, (count + 1) * sizeof(*sorted));

    m->batches = make(mk, (count + 1) * sizeof(*m->batches));
    if (mk->failed) {
        return;
    }

    count = inf_statistics_batches(s, sorted, count);
    for (size_t i = 0; i < count; i++) {
        batch_status_t *b = make(mk, sizeof(*b));
        if (b == NULL) {
            return;
        }
        nginx_inference__batch_status__init(b);
        b->size = sorted[i]->batch_size;
        b->count = sorted[i]->compute_infer.count;
        m->batches[m->n_batches++] = b;
    }
}

static void
add_resource(void *userp, const char *name, bool global, int32_t device,
    uint64_t copies, uint64_t used)
{
    maker_t *mk = userp;
    resource_status_t *r = make(mk, sizeof(*r));
    if (r == NULL) {
        return;
    }

    nginx_inference__resource_status__init(r);
    r->name = copy(mk, name);
    r->global = global;
    r->device = device;
    r->copies = copies;
    r->used = used;
    add_row(mk, &mk->resources, r);
}

static void
add_row(maker_t *mk, list_t *list, void *row)
{
    if (!mk->failed && list->count == list->cap) {
        size_t cap = list->cap == 0 ? 64 : list->cap * 2;
        void **wider = realloc(list->rows, cap * sizeof(*wider));
        mk->failed = wider == NULL;
        list->rows = wider != NULL ? wider : list->rows;
        list->cap = wider != NULL ? cap : list->cap;
    }
    if (!mk->failed) {
        list->rows[list->count++] = row;
    }
}

/* Copies the rows to the arena and frees the list. */
static void **
keep_rows(maker_t *mk, list_t *list)
{
    void **rows = make(mk, (list->count + 1) * sizeof(*rows));

    if (rows != NULL && list->count > 0) {
        memcpy(rows, list->rows, list->count * sizeof(*rows));
    }
    free(list->rows);
    return rows;
}

static char *
copy(maker_t *mk, const char *text)
{
    char *own = inf_arena_strdup(mk->arena, text, strlen(text));
    mk->failed |= own == NULL;
    return own;
}

static void *
make(maker_t *mk, size_t size)
{
    void *memory = inf_arena_alloc(mk->arena, size);
    mk->failed |= memory == NULL;
    return memory;
}
