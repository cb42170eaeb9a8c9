#include "core/tensor/ledger.h"

#include <stdlib.h>

#include "core/base/lock.h"

#define LEDGER_RANK 34

struct inf_ledger_s {
    inf_lock_t lock;            /* rank 34; guards factories                 */
    inf_link_t factories;
};

static inf_factory_t *take(inf_ledger_t *ledger);
static bool settle_one(inf_factory_t *f, const char *why);

inf_ledger_t *
inf_ledger_new(void)
{
    inf_ledger_t *ledger = calloc(1, sizeof(*ledger));
    if (ledger != NULL) {
        inf_lock_init(&ledger->lock, LEDGER_RANK);
        inf_link_init(&ledger->factories);
    }
    return ledger;
}

void
inf_ledger_free(inf_ledger_t *ledger)
{
    if (ledger != NULL) {
        inf_lock_fini(&ledger->lock);
        free(ledger);
    }
}

void
inf_ledger_add(inf_ledger_t *ledger, inf_request_t *request)
{
    inf_factory_t *f = request->factory;

    inf_lock(&ledger->lock);
    if (f->ledger == NULL) {            /* set already if it is executed
                                           again                             */
        f->ledger = ledger;
        inf_list_push_back(&ledger->factories, &f->in_ledger);
    }
    atomic_store_explicit(&f->request, request, memory_order_relaxed);
    inf_unlock(&ledger->lock);
}

void
inf_ledger_remove(inf_factory_t *f)
{
    inf_ledger_t *ledger = f->ledger;

    inf_lock(&ledger->lock);
    inf_link_remove(&f->in_ledger);
    inf_unlock(&ledger->lock);
}

uint32_t
inf_ledger_settle(inf_ledger_t *ledger, const char *why)
{
    uint32_t answered = 0;
    inf_factory_t *f;

    while ((f = take(ledger)) != NULL) {
        answered += settle_one(f, why);
    }

    return answered;
}

/* Takes a factory, with a reference; one that is ending is skipped. */
static inf_factory_t *
take(inf_ledger_t *ledger)
{
    inf_factory_t *f = NULL;

    inf_lock(&ledger->lock);
    inf_link_t *link;
    while (f == NULL
        && (link = inf_list_pop_front(&ledger->factories)) != NULL)
    {
        f = inf_link_entry(link, inf_factory_t, in_ledger);
        if (!inf_factory_try_ref(f)) {
            f = NULL;
        }
    }
    inf_unlock(&ledger->lock);
    return f;
}

static bool
settle_one(inf_factory_t *f, const char *why)
{
    bool open = !atomic_load_explicit(&f->final, memory_order_acquire);
    bool padding = f->padding;
    if (open) {
        inf_factory_send_error(f, inf_err_new(INF_ERR_UNAVAILABLE, "%s",
            why));
    }

    inf_request_t *request = atomic_exchange_explicit(&f->request, NULL,
        memory_order_acquire);
    if (request != NULL) {
        inf_request_release(request, 1);
    }

    uint32_t handles = atomic_exchange_explicit(&f->handles, 0,
        memory_order_acquire);
    while (handles-- > 0) {
        inf_factory_unref(f);
    }

    inf_factory_unref(f);
    return open && !padding;
}
