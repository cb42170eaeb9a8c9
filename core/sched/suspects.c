#include "core/sched/suspects.h"

#include <assert.h>
#include <stddef.h>

static inf_execution_t *part_of_whole(const inf_suspects_t *s);
static inf_execution_t *next_suspect(inf_suspects_t *s, uint64_t now_ns);
static void next_round(inf_suspects_t *s);
static inf_execution_t *first(const inf_link_t *list);
static inf_execution_t *begin(inf_suspects_t *s, inf_execution_t *e,
    inf_execution_state_t how);

void
inf_suspects_init(inf_suspects_t *s)
{
    *s = (inf_suspects_t) { .round = 0 };
    inf_link_init(&s->exempt);
    inf_link_init(&s->suspects);
    inf_link_init(&s->others);
}

void
inf_suspects_push(inf_suspects_t *s, inf_execution_t *e, uint64_t now_ns)
{
    if (e->suspect && inf_list_empty(&s->suspects) && s->alone == 0) {
        s->until_ns = now_ns + INF_SUSPECT_WAIT_NS;
    }

    e->state = INF_EXECUTION_WAITS;
    e->until_ns = now_ns + INF_SUSPECT_WAIT_NS;
    inf_link_init(&e->link);
    inf_list_push_back(e->suspect ? &s->suspects : e->exempt ? &s->exempt
        : &s->others, &e->link);
}

inf_execution_t *
inf_suspects_next(inf_suspects_t *s, uint64_t now_ns)
{
    inf_execution_t *e = first(&s->exempt);

    if (e == NULL && s->alone > 0) {
        e = part_of_whole(s);
        if (e != NULL) {
            return begin(s, e, INF_EXECUTION_ALONE);
        }
        if (now_ns < s->until_ns) {
            return NULL;
        }
        next_round(s);
    }

    if (e == NULL) {
        e = first(&s->others);
        if (e != NULL && !inf_list_empty(&s->suspects)) {
            if (now_ns < e->until_ns) {
                e = NULL;
            } else {
                s->until_ns = now_ns + INF_SUSPECT_WAIT_NS;
            }
        }
    }
    return e != NULL ? begin(s, e, INF_EXECUTION_BESIDE)
        : next_suspect(s, now_ns);
}

void
inf_suspects_done(inf_suspects_t *s, inf_execution_t *e, uint64_t now_ns)
{
    assert(e->state == INF_EXECUTION_BESIDE
        || e->state == INF_EXECUTION_ALONE);

    if (e->round == s->round && e->state == INF_EXECUTION_ALONE) {
        assert(s->alone > 0);
        s->alone--;
        s->until_ns = now_ns + INF_SUSPECT_WAIT_NS;
    } else if (e->round == s->round) {
        assert(s->beside > 0);
        s->beside--;
    }
    e->state = INF_EXECUTION_DONE;
}

/* Parts of one whole may wait for each other. */
static inf_execution_t *
part_of_whole(const inf_suspects_t *s)
{
    for (inf_link_t *l = s->suspects.next; l != &s->suspects; l = l->next) {
        inf_execution_t *e = inf_link_entry(l, inf_execution_t, link);
        if (e->whole == s->whole) {
            return e;
        }
    }
    return NULL;
}

/* Nothing executes alone. */
static inf_execution_t *
next_suspect(inf_suspects_t *s, uint64_t now_ns)
{
    inf_execution_t *e = first(&s->suspects);

    assert(s->alone == 0);
    if (e == NULL || (s->beside > 0 && now_ns < s->until_ns)) {
        return NULL;
    }
    if (s->beside > 0) {
        next_round(s);
    }

    s->until_ns = now_ns + INF_SUSPECT_WAIT_NS;
    return begin(s, e, INF_EXECUTION_ALONE);
}

/* Executions under way are waited for no more. */
static void
next_round(inf_suspects_t *s)
{
    s->beside = 0;
    s->alone = 0;
    s->round++;
}

static inf_execution_t *
first(const inf_link_t *list)
{
    return inf_list_empty(list) ? NULL
        : inf_link_entry(list->next, inf_execution_t, link);
}

static inf_execution_t *
begin(inf_suspects_t *s, inf_execution_t *e, inf_execution_state_t how)
{
    assert(e->state == INF_EXECUTION_WAITS);

    inf_link_remove(&e->link);
    e->state = how;
    e->round = s->round;
    if (how == INF_EXECUTION_ALONE) {
        s->alone++;
        s->whole = e->whole;
    } else {
        s->beside++;
    }
    return e;
}
