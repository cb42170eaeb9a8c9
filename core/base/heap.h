/*
 * heap.h - intrusive priority queue; the top is the node with the least key.
 *
 * Owner    The heap owns nothing; objects push and remove their nodes.
 * Thread   holds the lock that guards the heap.
 * Units    keys are the caller's, usually ns.
 * Errors   none: nothing is allocated.
 * Route    deadlines of queued requests, timers of models.
 *
 * A pairing heap: a push needs one comparison, the removal of any node O(log
 * n) amortised.
 */

#ifndef INF_BASE_HEAP_H
#define INF_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/queue.h"

typedef struct inf_heap_node_s {
    struct inf_heap_node_s *child;      /* first child                       */
    struct inf_heap_node_s *next;       /* sibling                           */
    struct inf_heap_node_s *prev;       /* sibling or parent; NULL: top      */
    uint64_t                key;
    bool                    queued;     /* zeroed memory: not in a heap      */
} inf_heap_node_t;

typedef struct {
    inf_heap_node_t *top;               /* NULL: empty                       */
} inf_heap_t;

#define inf_heap_entry(node, type, member) inf_link_entry(node, type, member)

/* node must not be in a heap. */
void inf_heap_push(inf_heap_t *h, inf_heap_node_t *node, uint64_t key);

/* Removes node; does nothing if it is in no heap. */
void inf_heap_remove(inf_heap_t *h, inf_heap_node_t *node);

#endif /* INF_BASE_HEAP_H */
