/*
 * response_order.h - responses leave in the order in which their requests
 *                    came, not in that of their making.
 *
 * Owner    Shared by reference: the runner and every factory in line.
 * Thread   enter: one at a time, in the order to keep; the rest: any.
 * Units    none.
 * Errors   none.
 * Route    factory -> [response order] -> sink.
 *
 * A request stands in line from enter until its FINAL has left (or its factory
 * is gone without one).  A thread that comes too early leaves its responses
 * here; that of the first in line sends them all, one thread at a time, no
 * lock held.
 */

#ifndef INF_TENSOR_RESPONSE_ORDER_H
#define INF_TENSOR_RESPONSE_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/queue.h"
#include "core/tensor/sink.h"

typedef struct inf_response_order_s inf_response_order_t;

/* A factory's place in line; embedded there, zeroed: not in line. */
typedef struct {
    inf_link_t            link;         /* the order's lock, as all below    */
    inf_response_order_t *order;        /* a reference; set while in line    */
    inf_factory_t        *factory;
    inf_response_t       *first;        /* waiting, by their next            */
    inf_response_t       *last;
    bool                  final;        /* nothing comes after these         */
    bool                  bare;         /* FINAL without a response          */
    bool                  abandoned;    /* the factory is to be freed        */
} inf_response_place_t;

/* One reference; NULL: out of memory. */
inf_response_order_t *inf_response_order_new(void);
void inf_response_order_unref(inf_response_order_t *order);

/* At the end of the line; who is in line stays where it is. */
void inf_response_order_enter(inf_response_order_t *order,
    inf_factory_t *factory);

/* For response.c: what a factory in line sends, and its end. */
void inf_response_order_send(inf_factory_t *factory,
    inf_response_t *response, uint32_t flags);
void inf_response_order_abandon(inf_factory_t *factory);

#endif /* INF_TENSOR_RESPONSE_ORDER_H */
