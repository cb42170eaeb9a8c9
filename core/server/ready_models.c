#include "core/server/ready_models.h"

#include <stdatomic.h>
#include <stdlib.h>

/* A question to all models. */
typedef struct {
    inf_readiness_fn fn;
    void            *userp;
    _Atomic size_t   open;          /* seq_cst: pending answers              */
    _Atomic bool     ready;         /* seq_cst: so far                       */
} all_t;

static void on_answer(void *userp, bool ready);

inf_err_t *
inf_ready_models_init(inf_ready_models_t *list, inf_server_t *server)
{
    inf_registry_reader_t reader;
    *list = (inf_ready_models_t) { .models = NULL };

    inf_registry_reader_init(&reader, &server->registry);
    inf_err_t *err = inf_registry_models(&reader, &list->models, &list->count);
    inf_registry_reader_fini(&reader);
    return err;
}

void
inf_ready_models_fini(inf_ready_models_t *list)
{
    for (size_t i = 0; i < list->count; i++) {
        inf_model_unref(list->models[i]);
    }
    free(list->models);
    *list = (inf_ready_models_t) { .models = NULL };
}

inf_err_t *
inf_ready_models_ask(inf_server_t *server, inf_readiness_fn fn, void *userp)
{
    inf_ready_models_t list;
    all_t *all = calloc(1, sizeof(*all));
    if (all == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = inf_ready_models_init(&list, server);
    if (err != NULL) {
        free(all);
        return err;
    }

    *all = (all_t) { .fn = fn, .userp = userp };
    atomic_init(&all->open, list.count + 1);
    atomic_init(&all->ready, true);
    for (size_t i = 0; i < list.count; i++) {
        inf_readiness_ask(server->readiness, list.models[i], on_answer, all);
    }
    inf_ready_models_fini(&list);
    on_answer(all, true);               /* the reference of this function    */
    return NULL;
}

static void
on_answer(void *userp, bool ready)
{
    all_t *all = userp;

    if (!ready) {
        atomic_store(&all->ready, false);
    }
    if (atomic_fetch_sub(&all->open, 1) == 1) {
        all->fn(all->userp, atomic_load(&all->ready));
        free(all);
    }
}
