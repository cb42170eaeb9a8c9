#include "core/tensor/response.h"

#include "core/base/refs.h"
#include "core/tensor/ledger.h"

#include <stdlib.h>
#include <string.h>

static void factory_send(inf_factory_t *f, inf_response_t *response,
    uint32_t flags);
static void response_free_outputs(inf_response_t *response);

void
inf_factory_init(inf_factory_t *f)
{
    memset(f, 0, sizeof(*f));
    inf_arena_init(&f->embedded.arena);
    f->embedded.embedded = true;
    inf_link_init(&f->in_ledger);
}

void
inf_factory_fini(inf_factory_t *f)
{
    inf_arena_fini(&f->embedded.arena);
}

void
inf_factory_start(inf_factory_t *f, struct inf_model_s *model, const char *id,
    const inf_sink_ops_t *sink, void *userp)
{
    atomic_store_explicit(&f->refs, 1, memory_order_relaxed);
    atomic_store_explicit(&f->cancelled, false, memory_order_relaxed);
    f->rejected = false;
    f->padding = false;
    atomic_store_explicit(&f->embedded.busy, false, memory_order_relaxed);
    atomic_store_explicit(&f->final, false, memory_order_relaxed);
    atomic_store_explicit(&f->responses, 0, memory_order_relaxed);
    atomic_store_explicit(&f->reported, 0, memory_order_relaxed);
    atomic_store_explicit(&f->start_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&f->gpu, -1, memory_order_relaxed);
    f->ledger = NULL;
    f->awaited = NULL;
    f->place.order = NULL;
    f->model = model;
    f->id = id;
    f->sink = sink;
    f->userp = userp;
}

void
inf_factory_ref(inf_factory_t *f)
{
    atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
}

bool
inf_factory_try_ref(inf_factory_t *f)
{
    uint32_t refs = atomic_load_explicit(&f->refs, memory_order_relaxed);
    while (refs > 0) {
        if (atomic_compare_exchange_weak_explicit(&f->refs, &refs, refs + 1,
            memory_order_acquire, memory_order_relaxed))
        {
            return true;
        }
    }

    return false;
}

void
inf_factory_unref(inf_factory_t *f)
{
    if (f == NULL) {
        return;
    }

    if (!inf_refs_drop(&f->refs)) {
        return;
    }

    if (f->ledger != NULL) {
        inf_ledger_remove(f);
    }
    if (f->awaited != NULL) {
        atomic_fetch_add(f->awaited, 1);
    }
    if (f->place.order != NULL) {
        inf_response_order_abandon(f);
    } else {
        f->sink->factory_free(f->userp, f);
    }
}

void
inf_factory_ref_handle(inf_factory_t *f)
{
    atomic_fetch_add_explicit(&f->handles, 1, memory_order_relaxed);
    inf_factory_ref(f);
}

void
inf_factory_unref_handle(inf_factory_t *f)
{
    if (f != NULL) {
        atomic_fetch_sub_explicit(&f->handles, 1, memory_order_relaxed);
    }
    inf_factory_unref(f);
}

inf_err_t *
inf_response_new(inf_factory_t *f, inf_response_t **out)
{
    inf_err_t *err = inf_response_new_started(f, out);
    if (err == NULL && f->sink->start != NULL) {
        f->sink->start(f->userp);
    }
    return err;
}

inf_err_t *
inf_response_new_started(inf_factory_t *f, inf_response_t **out)
{
    inf_response_t *response = NULL;
    *out = NULL;

    if (!atomic_exchange_explicit(&f->embedded.busy, true,
            memory_order_acquire))
    {
        response = &f->embedded;

    } else {
        response = calloc(1, sizeof(*response));
        if (response == NULL) {
            return inf_err_nomem();
        }
        inf_arena_init(&response->arena);
    }

    response->first = NULL;
    response->last = NULL;
    response->output_count = 0;
    response->parameters = (inf_parameter_list_t) { 0 };
    response->err = NULL;
    response->sent = false;
    response->output_ns = 0;
    response->sent_ns = 0;
    response->factory = f;
    inf_factory_ref(f);
    atomic_fetch_add_explicit(&f->responses, 1, memory_order_relaxed);

    *out = response;
    return NULL;
}

void
inf_response_free(inf_response_t *response)
{
    if (response == NULL) {
        return;
    }

    inf_factory_t *f = response->factory;
    response_free_outputs(response);
    inf_err_free(response->err);
    response->err = NULL;

    if (response->embedded) {
        inf_arena_reset(&response->arena);
        atomic_store_explicit(&response->busy, false, memory_order_release);
    } else {
        inf_arena_fini(&response->arena);
        free(response);
    }

    inf_factory_unref(f);
}

inf_output_t *
inf_response_add_output(inf_response_t *response, const char *name,
    inf_datatype_t datatype, const int64_t *shape, uint32_t dim_count)
{
    inf_arena_t *arena = &response->arena;
    inf_output_t *out = inf_arena_calloc(arena, 1, sizeof(*out));
    char *copy = inf_arena_strdup(arena, name, strlen(name));
    int64_t *dims = inf_arena_alloc(arena, dim_count * sizeof(*dims));
    if (out == NULL || copy == NULL || dims == NULL) {
        return NULL;
    }

    if (dim_count > 0) {
        memcpy(dims, shape, dim_count * sizeof(*dims));
    }

    out->name = copy;
    out->datatype = datatype;
    out->dim_count = dim_count;
    out->shape = dims;
    out->response = response;

    if (response->last == NULL) {
        response->first = out;
    } else {
        response->last->next = out;
    }
    response->last = out;
    response->output_count++;
    return out;
}

inf_err_t *
inf_output_alloc(inf_output_t *out, uint64_t size)
{
    inf_factory_t *f = out->response->factory;

    inf_err_t *err = f->sink->alloc(f->userp, out, size);
    out->allocated = err == NULL;
    if (err != NULL) {
        out->base = NULL;
        return err;
    }

    out->byte_size = size;
    return NULL;
}

void
inf_response_send(inf_response_t *response, uint32_t flags,
    const inf_err_t *err)
{
    if (err != NULL) {
        response->err = inf_err_copy(err);
    }

    factory_send(response->factory, response, flags);
}

void
inf_factory_send_error(inf_factory_t *f, inf_err_t *err)
{
    inf_response_t *response;
    atomic_store_explicit(&f->final, true, memory_order_relaxed);

    inf_err_t *failed = inf_response_new(f, &response);
    if (failed != NULL) {
        inf_err_log(err);
        inf_err_log(inf_err_add(failed, "cannot answer request \"%s\"", f->id));
        inf_factory_send_flags(f, INF_SEND_FINAL);
        return;
    }

    response->err = err;
    factory_send(f, response, INF_SEND_FINAL);
}

void
inf_factory_send_flags(inf_factory_t *f, uint32_t flags)
{
    factory_send(f, NULL, flags);
}

inf_err_t *
inf_output_alloc_heap(void *userp, inf_output_t *out, size_t size)
{
    (void) userp;
    out->memory_type = INF_MEMORY_CPU;
    out->memory_id = 0;
    out->base = malloc(size > 0 ? size : 1);
    return out->base != NULL ? NULL : inf_err_nomem();
}

void
inf_output_free_heap(void *userp, inf_output_t *out)
{
    (void) userp;
    free(out->base);
}

static void
factory_send(inf_factory_t *f, inf_response_t *response, uint32_t flags)
{
    if (f->place.order != NULL) {
        inf_response_order_send(f, response, flags);
    } else {
        f->sink->complete(f->userp, response, flags);
    }
}

static void
response_free_outputs(inf_response_t *response)
{
    inf_factory_t *f = response->factory;

    for (inf_output_t *out = response->first; out != NULL; out = out->next) {
        if (out->base != NULL) {
            f->sink->release(f->userp, out);
            out->base = NULL;
        }
    }
}
