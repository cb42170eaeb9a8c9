#include "core/tensor/response_order.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "core/base/lock.h"
#include "core/base/refs.h"
#include "core/tensor/response.h"

#define ORDER_RANK 40

struct inf_response_order_s {
    _Atomic uint32_t refs;              /* up relaxed, down acq_rel          */
    inf_lock_t       lock;              /* rank 40; guards all below         */
    inf_link_t       line;              /* inf_response_place_t              */
    bool             sending;           /* a thread sends due responses      */
};

/* The next item of the first factory in line. */
typedef struct {
    inf_factory_t  *factory;
    inf_response_t *response;
    uint32_t        flags;
    bool            abandoned;          /* free the factory instead          */
} order_item_t;

static void place_add_locked(inf_response_place_t *place,
    inf_response_t *response, uint32_t flags);
static void send_due(inf_response_order_t *order);
static bool next_locked(inf_response_order_t *order, order_item_t *item)
    INF_NEEDS(order->lock);
static void leave_locked(inf_response_place_t *place);

inf_response_order_t *
inf_response_order_new(void)
{
    inf_response_order_t *order = calloc(1, sizeof(*order));
    if (order == NULL) {
        return NULL;
    }

    atomic_init(&order->refs, 1);
    inf_lock_init(&order->lock, ORDER_RANK);
    inf_link_init(&order->line);
    return order;
}

void
inf_response_order_unref(inf_response_order_t *order)
{
    if (order != NULL && inf_refs_drop(&order->refs)) {
        inf_lock_fini(&order->lock);
        free(order);
    }
}

void
inf_response_order_enter(inf_response_order_t *order, inf_factory_t *factory)
{
    inf_lock(&order->lock);
    if (factory->place.order == NULL) {
        atomic_fetch_add_explicit(&order->refs, 1, memory_order_relaxed);
        factory->place = (inf_response_place_t) {
            .order = order, .factory = factory
        };
        inf_list_push_back(&order->line, &factory->place.link);
    }
    inf_unlock(&order->lock);
}

void
inf_response_order_send(inf_factory_t *factory, inf_response_t *response,
    uint32_t flags)
{
    inf_response_order_t *order = factory->place.order;

    inf_lock(&order->lock);
    place_add_locked(&factory->place, response, flags);
    inf_unlock(&order->lock);

    send_due(order);
}

void
inf_response_order_abandon(inf_factory_t *factory)
{
    inf_response_order_t *order = factory->place.order;

    inf_lock(&order->lock);
    factory->place.abandoned = true;
    inf_unlock(&order->lock);

    send_due(order);
}

/* Adds a response, which has a reference of the factory.  Flags without meaning
   are dropped. */
static void
place_add_locked(inf_response_place_t *place, inf_response_t *response,
    uint32_t flags)
{
    bool final = flags & INF_SEND_FINAL;

    if (response == NULL) {
        if (final && !place->bare) {
            place->bare = true;
            inf_factory_ref(place->factory);
        }

    } else {
        response->next = NULL;
        response->flags = flags;
        if (place->last == NULL) {
            place->first = response;
        } else {
            place->last->next = response;
        }
        place->last = response;
    }

    place->final |= final;
}

/* Sends due items, one thread at a time; other threads add theirs to the
   line. */
static void
send_due(inf_response_order_t *order)
{
    order_item_t item;

    atomic_fetch_add_explicit(&order->refs, 1, memory_order_relaxed);
    inf_lock(&order->lock);
    if (order->sending) {
        inf_unlock(&order->lock);
        inf_response_order_unref(order);
        return;
    }

    order->sending = true;
    while (next_locked(order, &item)) {
        inf_factory_t *f = item.factory;

        inf_unlock(&order->lock);
        if (item.abandoned) {
            f->sink->factory_free(f->userp, f);
        } else {
            f->sink->complete(f->userp, item.response, item.flags);
            if (item.response == NULL) {
                inf_factory_unref(f);
            }
        }
        inf_lock(&order->lock);
    }
    order->sending = false;
    inf_unlock(&order->lock);

    inf_response_order_unref(order);
}

/* Takes the next item.  A factory leaves the line before its last item is sent,
   since it may be freed then. */
static bool
next_locked(inf_response_order_t *order, order_item_t *item)
{
    if (inf_list_empty(&order->line)) {
        return false;
    }

    inf_response_place_t *place = inf_link_entry(order->line.next,
        inf_response_place_t, link);
    *item = (order_item_t) { .factory = place->factory };

    if (place->first != NULL) {
        item->response = place->first;
        item->flags = place->first->flags;
        place->first = place->first->next;
        if (place->first == NULL) {
            place->last = NULL;
        }
    } else if (place->bare) {
        item->flags = INF_SEND_FINAL;
        place->bare = false;
    } else if (place->abandoned) {
        item->abandoned = true;
    } else {
        return false;
    }

    if (item->abandoned || (place->final && place->first == NULL
        && !place->bare))
    {
        leave_locked(place);
    }
    return true;
}

static void
leave_locked(inf_response_place_t *place)
{
    inf_response_order_t *order = place->order;

    inf_link_remove(&place->link);
    place->order = NULL;
    /* not the last reference: sender and runner have theirs */
    atomic_fetch_sub_explicit(&order->refs, 1, memory_order_relaxed);
}
