#include "core/cache/cache_executions.h"

#include <assert.h>

static inf_cache_execution_t **find(inf_cache_executions_t *f,
    inf_cache_key_t key, uint64_t priority);
static void list(inf_cache_executions_t *f, inf_cache_execution_t *e,
    inf_cache_key_t key, uint64_t priority);
static void unlist(inf_cache_executions_t *f, inf_cache_execution_t *e);

void
inf_cache_executions_init(inf_cache_executions_t *f)
{
    *f = (inf_cache_executions_t) { .count = 0 };
}

bool
inf_cache_executions_join(inf_cache_executions_t *f, inf_cache_execution_t *e,
    inf_cache_key_t key, inf_request_t *req)
{
    inf_cache_execution_t *led = *find(f, key, req->priority);
    if (led == NULL) {
        list(f, e, key, req->priority);
        return true;
    }

    inf_request_move(req, INF_REQUEST_PARKED);
    inf_list_push_back(&led->followers, &req->link);
    return false;
}

void
inf_cache_executions_leave(inf_cache_executions_t *f, inf_cache_execution_t *e,
    inf_link_t *to)
{
    if (!e->listed) {
        return;
    }

    unlist(f, e);
    inf_link_t *link;
    while ((link = inf_list_pop_front(&e->followers)) != NULL) {
        inf_request_move(inf_link_entry(link, inf_request_t, link),
            INF_REQUEST_EXECUTING);
        inf_list_push_back(to, link);
    }
}

inf_request_t *
inf_cache_executions_pass(inf_cache_executions_t *f, inf_cache_execution_t *e,
    inf_cache_execution_t *heir)
{
    if (!e->listed) {
        return NULL;
    }

    unlist(f, e);
    inf_link_t *link = inf_list_pop_front(&e->followers);
    if (link == NULL) {
        return NULL;
    }

    list(f, heir, e->key, e->priority);
    inf_link_t *next;
    while ((next = inf_list_pop_front(&e->followers)) != NULL) {
        inf_list_push_back(&heir->followers, next);
    }

    inf_request_t *req = inf_link_entry(link, inf_request_t, link);
    inf_request_move(req, INF_REQUEST_EXECUTING);
    return req;
}

/* The link to the execution of key, or the place to insert it.  A request does
   not wait for one of lower priority, which may be late in the queue. */
static inf_cache_execution_t **
find(inf_cache_executions_t *f, inf_cache_key_t key, uint64_t priority)
{
    inf_cache_execution_t **at =
        &f->buckets[key.words[0] % INF_CACHE_EXECUTION_BUCKETS];
    while (*at != NULL && ((*at)->priority != priority
        || !inf_cache_key_eq(&(*at)->key, &key)))
    {
        at = &(*at)->next;
    }
    return at;
}

static void
list(inf_cache_executions_t *f, inf_cache_execution_t *e, inf_cache_key_t key,
    uint64_t priority)
{
    inf_cache_execution_t **head =
        &f->buckets[key.words[0] % INF_CACHE_EXECUTION_BUCKETS];

    inf_link_init(&e->followers);
    e->key = key;
    e->priority = priority;
    e->listed = true;
    e->next = *head;
    *head = e;
    f->count++;
}

static void
unlist(inf_cache_executions_t *f, inf_cache_execution_t *e)
{
    inf_cache_execution_t **at = find(f, e->key, e->priority);
    assert(*at == e);

    *at = e->next;
    e->next = NULL;
    e->listed = false;
    f->count--;
}
