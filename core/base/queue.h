/*
 * queue.h - intrusive doubly linked list; the link is a field of the object.
 *
 * Owner    The list owns nothing; objects insert and remove their links.
 * Thread   holds the lock that guards the list.
 * Units    none.
 * Errors   none; a link must be initialised before inf_link_remove.
 * Route    queues of requests, lists of models, instances, channels.
 */

#ifndef INF_BASE_QUEUE_H
#define INF_BASE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct inf_link_s {
    struct inf_link_s *prev;
    struct inf_link_s *next;
} inf_link_t;

#define inf_link_entry(link, type, member)                                   \
    ((type *) (void *) ((char *) (link) - offsetof(type, member)))

/* A list head and a link are both initialised as a ring of one. */
static inline void
inf_link_init(inf_link_t *l)
{
    l->prev = l;
    l->next = l;
}

static inline bool
inf_list_empty(const inf_link_t *head)
{
    return head->next == head;
}

static inline void
inf_link_insert(inf_link_t *before, inf_link_t *l)
{
    l->prev = before->prev;
    l->next = before;
    before->prev->next = l;
    before->prev = l;
}

static inline void
inf_list_push_back(inf_link_t *head, inf_link_t *l)
{
    inf_link_insert(head, l);
}

static inline void
inf_list_push_front(inf_link_t *head, inf_link_t *l)
{
    inf_link_insert(head->next, l);
}

/* l becomes a ring of one, so a second removal has no effect. */
static inline void
inf_link_remove(inf_link_t *l)
{
    l->prev->next = l->next;
    l->next->prev = l->prev;
    inf_link_init(l);
}

/* NULL: the list is empty. */
static inline inf_link_t *
inf_list_pop_front(inf_link_t *head)
{
    inf_link_t *l = head->next;
    if (l == head) {
        return NULL;
    }

    inf_link_remove(l);
    return l;
}

#endif /* INF_BASE_QUEUE_H */
