/*
 * response_order.h - sends responses in the order in which their requests
 *                    arrived, not in that of their completion.
 *
 * Owner    Reference counted: the runner and every factory in line.
 * Thread   enter: one at a time, in the order to keep; the rest: any.
 * Units    none.
 * Errors   none.
 * Route    factory -> [response order] -> sink.
 *
 * A request is in line from enter until its FINAL was sent (or its factory
 * ended without one).  A thread whose request is not the first leaves its
 * responses in line; the thread of the first request sends them all, one
 * thread at a time, without a lock.
 */

#ifndef INF_TENSOR_RESPONSE_ORDER_H
#define INF_TENSOR_RESPONSE_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/queue.h"
#include "core/tensor/sink.h"

typedef struct inf_response_order_s inf_response_order_t;

/* A factory's place in line; a field of it; zeroed: not in line. */
typedef struct {
    inf_link_t            link;         /* order's lock, like all below      */
    inf_response_order_t *order;        /* a reference; set while in line    */
    inf_factory_t        *factory;
    inf_response_t       *first;        /* waiting responses, linked by next */
    inf_response_t       *last;
    bool                  final;        /* no further responses              */
    bool                  bare;         /* FINAL without a response          */
    bool                  abandoned;    /* factory is to be freed            */
} inf_response_place_t;

/* new: one reference; NULL: out of memory. */
inf_response_order_t *inf_response_order_new(void);
void inf_response_order_unref(inf_response_order_t *order);

/* Adds factory at the end of the line. */
void inf_response_order_enter(inf_response_order_t *order,
    inf_factory_t *factory);

/* For response.c: sends of a factory in line, and its end. */
void inf_response_order_send(inf_factory_t *factory,
    inf_response_t *response, uint32_t flags);
void inf_response_order_abandon(inf_factory_t *factory);

#endif /* INF_TENSOR_RESPONSE_ORDER_H */
