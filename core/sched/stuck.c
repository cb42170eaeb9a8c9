#include "core/sched/stuck.h"

void
inf_stuck_count(inf_stuck_t *s, uint32_t instances, uint64_t begun_ns,
    uint64_t now_ns, uint64_t limit_ns)
{
    bool late = begun_ns != 0 && limit_ns != 0 && now_ns > begun_ns
        && now_ns - begun_ns > limit_ns;

    s->serving += instances;
    s->busy += begun_ns != 0;       /* instances take turns                  */
    s->stuck += late ? instances : 0;
}

bool
inf_stuck_all(const inf_stuck_t *s)
{
    return s->serving > 0 && s->stuck == s->serving;
}
