/* sequence_ids.c - finds sequences by their clients' ids, and sets their
   timers. */

#include "core/sched/sequence_parts.h"

#include <stdlib.h>
#include <string.h>

#define SPARES_MAX 1024u

typedef inf_sequence_batcher_t batcher_t;
typedef inf_sequence_t         sequence_t;

static bool is(const sequence_t *q, uint64_t hash, const inf_request_t *req);
static void widen(batcher_t *b);
static uint64_t hash_of(const batcher_t *b, const inf_request_t *req);

sequence_t *
inf_sequence_find(const batcher_t *b, const inf_request_t *req)
{
    uint64_t hash = hash_of(b, req);
    sequence_t *q = b->buckets[hash & b->mask];

    while (q != NULL && !is(q, hash, req)) {
        q = q->next;
    }
    return q;
}

static bool
is(const sequence_t *q, uint64_t hash, const inf_request_t *req)
{
    if (q->hash != hash || (q->text == NULL) != (req->correlation_text
            == NULL))
    {
        return false;
    }

    return q->text != NULL ? strcmp(q->text, req->correlation_text) == 0
        : q->id == req->correlation_id;
}

inf_err_t *
inf_sequence_new(batcher_t *b, const inf_request_t *req, sequence_t **out)
{
    const char *text = req->correlation_text;
    size_t len = text != NULL ? strlen(text) : 0;
    sequence_t *q = b->spares;
    char *copy = NULL;

    if (len >= INF_SEQUENCE_TEXT) {
        copy = strdup(text);
        if (copy == NULL) {
            return inf_err_nomem();
        }
    }
    if (q != NULL) {
        b->spares = q->next;
        b->spare_count--;
    } else {
        q = malloc(sizeof(*q));
        if (q == NULL) {
            free(copy);
            return inf_err_nomem();
        }
    }

    *q = (sequence_t) {
        .hash = hash_of(b, req),
        .id = req->correlation_id,
        .known = true
    };
    if (text != NULL) {
        q->text = copy != NULL ? copy : memcpy(q->small, text, len + 1);
    }
    inf_link_init(&q->link);
    inf_link_init(&q->queue);

    if (b->base.live > b->mask) {
        widen(b);
    }
    q->next = b->buckets[q->hash & b->mask];
    b->buckets[q->hash & b->mask] = q;
    b->base.live++;
    *out = q;
    return NULL;
}

void
inf_sequence_forget(batcher_t *b, sequence_t *q)
{
    sequence_t **at = &b->buckets[q->hash & b->mask];

    if (!q->known) {
        return;
    }

    while (*at != q) {
        at = &(*at)->next;
    }
    *at = q->next;
    q->known = false;
    b->base.live--;
}

void
inf_sequence_free(batcher_t *b, sequence_t *q)
{
    if (q->text != q->small) {
        free(q->text);
    }
    if (b->spare_count >= SPARES_MAX) {
        free(q);
        return;
    }

    q->next = b->spares;
    b->spares = q;
    b->spare_count++;
}

void
inf_sequence_timer_set(batcher_t *b, sequence_t *q, uint64_t at_ns)
{
    inf_heap_remove(&b->timers, &q->timer);
    if (at_ns != INF_NEVER) {
        inf_heap_push(&b->timers, &q->timer, at_ns);
    }
    b->base.deadline_ns = b->timers.top != NULL ? b->timers.top->key
        : INF_NEVER;
}

void
inf_sequence_timer_clear(batcher_t *b, sequence_t *q)
{
    if (q != NULL && q->timer.queued) {
        inf_sequence_timer_set(b, q, INF_NEVER);
    }
}

/* Grows the hash table; without memory the chains get longer. */
static void
widen(batcher_t *b)
{
    uint64_t mask = b->mask * 2 + 1;
    sequence_t **wider = calloc(mask + 1, sizeof(wider[0]));
    if (wider == NULL) {
        return;
    }

    for (uint64_t i = 0; i <= b->mask; i++) {
        while (b->buckets[i] != NULL) {
            sequence_t *q = b->buckets[i];
            b->buckets[i] = q->next;
            q->next = wider[q->hash & mask];
            wider[q->hash & mask] = q;
        }
    }
    free(b->buckets);
    b->buckets = wider;
    b->mask = mask;
}

static uint64_t
hash_of(const batcher_t *b, const inf_request_t *req)
{
    const char *text = req->correlation_text;
    size_t len = text != NULL ? strlen(text) : sizeof(req->correlation_id);
    const char *at = text != NULL ? text
        : (const char *) &req->correlation_id;
    uint64_t h = b->seed ^ len;

    for (size_t i = 0; i < len; i += sizeof(uint64_t)) {
        uint64_t piece = 0;
        size_t n = len - i < sizeof(piece) ? len - i : sizeof(piece);

        memcpy(&piece, at + i, n);
        h = (h ^ piece) * UINT64_C(0x9e3779b97f4a7c15);
        h = ((h ^ h >> 32) + b->seed) * UINT64_C(0xd6e8feb86659fd93);
        h ^= h >> 29;
    }
    return h;
}
