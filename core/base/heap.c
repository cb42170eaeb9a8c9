#include "core/base/heap.h"

static inf_heap_node_t *meld(inf_heap_node_t *a, inf_heap_node_t *b);
static inf_heap_node_t *meld_all(inf_heap_node_t *first);

void
inf_heap_push(inf_heap_t *h, inf_heap_node_t *node, uint64_t key)
{
    *node = (inf_heap_node_t) { .key = key, .queued = true };
    h->top = meld(h->top, node);
}

void
inf_heap_remove(inf_heap_t *h, inf_heap_node_t *node)
{
    if (!node->queued) {
        return;
    }

    inf_heap_node_t *below = meld_all(node->child);

    if (node->prev == NULL) {
        h->top = below;

    } else {
        if (node->prev->child == node) {
            node->prev->child = node->next;
        } else {
            node->prev->next = node->next;
        }
        if (node->next != NULL) {
            node->next->prev = node->prev;
        }
        h->top = meld(h->top, below);
    }

    *node = (inf_heap_node_t) { 0 };
}

/* Merges two heaps; either may be NULL. */
static inf_heap_node_t *
meld(inf_heap_node_t *a, inf_heap_node_t *b)
{
    if (a == NULL || b == NULL) {
        return a != NULL ? a : b;
    }

    if (b->key < a->key) {
        inf_heap_node_t *swap = a;
        a = b;
        b = swap;
    }

    b->prev = a;
    b->next = a->child;
    if (a->child != NULL) {
        a->child->prev = b;
    }
    a->child = b;
    return a;
}

/* Merges pairs from the left, then all pairs from the right, which keeps the
   heap flat. */
static inf_heap_node_t *
meld_all(inf_heap_node_t *first)
{
    inf_heap_node_t *pairs = NULL;

    while (first != NULL) {
        inf_heap_node_t *a = first;
        inf_heap_node_t *b = a->next;
        first = b != NULL ? b->next : NULL;

        a->next = a->prev = NULL;
        if (b != NULL) {
            b->next = b->prev = NULL;
        }
        a = meld(a, b);
        a->next = pairs;
        pairs = a;
    }

    inf_heap_node_t *top = NULL;
    while (pairs != NULL) {
        inf_heap_node_t *rest = pairs->next;
        pairs->next = NULL;
        top = meld(top, pairs);
        pairs = rest;
    }

    return top;
}
