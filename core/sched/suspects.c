#include "core/sched/suspects.h"

#include <assert.h>
#include <stddef.h>

void
inf_suspects_init(inf_suspects_t *s)
{
    inf_link_init(&s->waiting);
    s->under_way = 0;
    s->until_ns = UINT64_MAX;
}

void
inf_suspects_push(inf_suspects_t *s, inf_suspect_t *suspect)
{
    assert(!suspect->waits);

    suspect->waits = true;
    inf_link_init(&suspect->link);
    inf_list_push_back(&s->waiting, &suspect->link);
}

inf_suspect_t *
inf_suspects_next(inf_suspects_t *s, uint64_t now_ns)
{
    if (inf_list_empty(&s->waiting)) {
        return NULL;
    }
    if (s->under_way > 0 && s->until_ns == UINT64_MAX) {
        s->until_ns = now_ns + INF_SUSPECTS_TOTAL_NS;   /* the wait begins   */
    }
    if (s->under_way > 0 && now_ns < s->until_ns) {
        return NULL;
    }

    inf_suspect_t *suspect = inf_link_entry(s->waiting.next, inf_suspect_t,
        link);
    inf_suspects_cancel(suspect);
    s->under_way++;
    return suspect;
}

void
inf_suspects_done(inf_suspects_t *s)
{
    assert(s->under_way > 0);
    s->under_way--;
}

bool
inf_suspects_cancel(inf_suspect_t *suspect)
{
    if (!suspect->waits) {
        return false;
    }

    suspect->waits = false;
    inf_link_remove(&suspect->link);
    return true;
}
