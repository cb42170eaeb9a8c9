#include "core/abi/batch_strategy.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "core/abi/guard.h"
#include "core/abi/objects.h"
#include "core/abi/plugin_library.h"
#include "core/base/log.h"

#define BATCHER_INIT  "TRITONBACKEND_ModelBatcherInitialize"
#define BATCHER_FINI  "TRITONBACKEND_ModelBatcherFinalize"
#define BATCH_INIT    "TRITONBACKEND_ModelBatchInitialize"
#define BATCH_INCLUDE "TRITONBACKEND_ModelBatchIncludeRequest"
#define BATCH_FINI    "TRITONBACKEND_ModelBatchFinalize"

#define WHO(s, entry) ((inf_guard_who_t) { (s)->library, entry })

typedef struct {
    inf_batch_strategy_t       base;
    char                      *library;     /* its path                      */
    void                      *handle;
    TRITONBACKEND_Batcher     *batcher;     /* of the library                */
    inf_guard_batcher_init_fn  batcher_init;
    inf_guard_batcher_fini_fn  batcher_fini;
    inf_guard_batch_init_fn    batch_init;
    inf_guard_batch_include_fn batch_include;
    inf_guard_batch_fini_fn    batch_fini;
} abi_strategy_t;

static inf_err_t *batcher_finalize(abi_strategy_t *s);
static inf_err_t *library_open(abi_strategy_t *s, const char *library,
    uint32_t *found);
static void *symbol(abi_strategy_t *s, const char *name, uint32_t *found);
static void library_close(abi_strategy_t *s);
static inf_err_t *strategy_begin(inf_batch_strategy_t *base, void **batch);
static inf_err_t *strategy_include(inf_batch_strategy_t *base, void *batch,
    inf_request_t *req, bool *joins);
static inf_err_t *strategy_end(inf_batch_strategy_t *base, void *batch);

static const inf_batch_strategy_ops_t strategy_ops = {
    .begin = strategy_begin,
    .include = strategy_include,
    .end = strategy_end
};

inf_err_t *
inf_batch_strategy_open(inf_model_t *model, const char *library,
    inf_batch_strategy_t **out)
{
    uint32_t found = 0;
    *out = NULL;

    abi_strategy_t *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return inf_err_nomem();
    }
    s->base.ops = &strategy_ops;
    s->library = strdup(library);
    inf_log(INF_LOG_INFO, "Loading custom batching strategy library %s for"
        " model %s", library, model->name);

    inf_err_t *err = s->library == NULL ? inf_err_nomem()
        : library_open(s, library, &found);
    if (err == NULL && found == 0) {
        inf_log(INF_LOG_WARN, "model=%s: %s is no batch strategy, it has none"
            " of the functions", model->name, library);
        library_close(s);
        return NULL;
    }
    if (err == NULL && found != 5) {
        err = inf_err_new(INF_ERR_INVALID_ARG, "only %u of the five functions"
            " of a batch strategy are there (TRITONBACKEND_ModelBatch*)",
            found);
    }
    if (err == NULL) {
        err = inf_guard_batcher_init(WHO(s, BATCHER_INIT), s->batcher_init,
            &s->batcher, inf_abi_as_model(model));
    }
    if (err == NULL) {
        *out = &s->base;
        return NULL;
    }

    if (s->batcher != NULL && s->batcher_fini != NULL) {
        inf_err_log(batcher_finalize(s));
    }
    library_close(s);
    return inf_err_add(err, "model '%s': batch strategy %s", model->name,
        library);
}

void
inf_batch_strategy_close(inf_batch_strategy_t *strategy)
{
    abi_strategy_t *s = (abi_strategy_t *) strategy;

    if (s != NULL) {
        inf_err_log(batcher_finalize(s));
        library_close(s);
    }
}

static inf_err_t *
batcher_finalize(abi_strategy_t *s)
{
    return inf_guard_batcher_fini(WHO(s, BATCHER_FINI), s->batcher_fini,
        s->batcher);
}

static inf_err_t *
library_open(abi_strategy_t *s, const char *library, uint32_t *found)
{
    inf_err_t *err = inf_plugin_library_open(library, &s->handle);
    if (err != NULL) {
        return err;
    }

    s->batcher_init = (inf_guard_batcher_init_fn)
        symbol(s, BATCHER_INIT, found);
    s->batcher_fini = (inf_guard_batcher_fini_fn)
        symbol(s, BATCHER_FINI, found);
    s->batch_init = (inf_guard_batch_init_fn)
        symbol(s, BATCH_INIT, found);
    s->batch_include = (inf_guard_batch_include_fn)
        symbol(s, BATCH_INCLUDE, found);
    s->batch_fini = (inf_guard_batch_fini_fn)
        symbol(s, BATCH_FINI, found);
    return NULL;
}

static void *
symbol(abi_strategy_t *s, const char *name, uint32_t *found)
{
    void *address = dlsym(s->handle, name);
    *found += address != NULL;
    return address;
}

static void
library_close(abi_strategy_t *s)
{
    if (s->handle != NULL) {
        dlclose(s->handle);
    }
    free(s->library);
    free(s);
}

static inf_err_t *
strategy_begin(inf_batch_strategy_t *base, void **batch)
{
    abi_strategy_t *s = (abi_strategy_t *) base;
    return inf_guard_batch_init(WHO(s, BATCH_INIT), s->batch_init, s->batcher,
        batch);
}

static inf_err_t *
strategy_include(inf_batch_strategy_t *base, void *batch, inf_request_t *req,
    bool *joins)
{
    abi_strategy_t *s = (abi_strategy_t *) base;
    return inf_guard_batch_include(WHO(s, BATCH_INCLUDE), s->batch_include,
        inf_abi_as_request(req), batch, joins);
}

static inf_err_t *
strategy_end(inf_batch_strategy_t *base, void *batch)
{
    abi_strategy_t *s = (abi_strategy_t *) base;
    return batch == NULL ? NULL
        : inf_guard_batch_fini(WHO(s, BATCH_FINI), s->batch_fini, batch);
}
