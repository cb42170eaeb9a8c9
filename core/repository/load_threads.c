#include "core/repository/load_threads.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "core/base/os/process_end.h"

#define LOAD_THREADS_RANK 15

static bool find_failed(inf_load_thread_t *l, char *why, size_t cap);

void
inf_load_threads_init(inf_load_threads_t *t)
{
    inf_lock_init(&t->lock, LOAD_THREADS_RANK);
    inf_link_init(&t->threads);
}

void
inf_load_threads_fini(inf_load_threads_t *t)
{
    inf_lock_fini(&t->lock);
}

void
inf_load_threads_enter(inf_load_threads_t *t, inf_load_thread_t *me,
    uint64_t load)
{
    *me = (inf_load_thread_t) { .load = load, .thread = gettid() };
    inf_link_init(&me->link);
    inf_pid_list_add_children(&me->before, me->thread);
    if (t != NULL) {
        inf_lock(&t->lock);
        inf_list_push_back(&t->threads, &me->link);
        inf_unlock(&t->lock);
    }
}

void
inf_load_threads_leave(inf_load_threads_t *t, inf_load_thread_t *me)
{
    if (t != NULL) {
        inf_lock(&t->lock);
        inf_link_remove(&me->link);
        inf_unlock(&t->lock);
    }
    inf_pid_list_fini(&me->before);
}

uint64_t
inf_load_threads_find_failed(inf_load_threads_t *t, uint64_t now_ns,
    uint64_t patience_ns, char *why, size_t cap)
{
    uint64_t load = 0;

    inf_lock(&t->lock);
    for (inf_link_t *at = t->threads.next; load == 0 && at != &t->threads;
        at = at->next)
    {
        inf_load_thread_t *l = inf_link_entry(at, inf_load_thread_t, link);
        if (!find_failed(l, why, cap)) {
            l->failed_ns = 0;
        } else if (l->failed_ns == 0) {
            l->failed_ns = now_ns;
        } else if (now_ns - l->failed_ns >= patience_ns) {
            load = l->load;
        }
    }
    inf_unlock(&t->lock);
    return load;
}

/* Finds an exited process that failed and its backend has not reaped. */
static bool
find_failed(inf_load_thread_t *l, char *why, size_t cap)
{
    inf_pid_list_t now = { .pids = NULL };
    char program[INF_PROCESS_NAME];
    char end[INF_PROCESS_END];
    bool failed = false;

    inf_pid_list_add_children(&now, l->thread);
    for (size_t i = 0; !failed && i < now.count; i++) {
        failed = !inf_pid_list_has(&l->before, now.pids[i])
            && inf_process_end(P_PID, (id_t) now.pids[i], end, sizeof(end))
                == INF_PROCESS_FAILED;
        if (failed) {
            inf_process_name(now.pids[i], program, sizeof(program));
            snprintf(why, cap, "process %d (%s) %s", (int) now.pids[i],
                program, end);
        }
    }
    inf_pid_list_fini(&now);
    return failed;
}

uint32_t
inf_load_threads_kill(inf_load_threads_t *t, uint64_t load)
{
    uint32_t killed = 0;

    inf_lock(&t->lock);
    for (const inf_link_t *at = t->threads.next; at != &t->threads;
        at = at->next)
    {
        const inf_load_thread_t *l = inf_link_entry(
            (inf_link_t *) (uintptr_t) at, inf_load_thread_t, link);
        inf_pid_list_t now = { .pids = NULL };
        if (l->load != load) {
            continue;
        }

        inf_pid_list_add_children(&now, l->thread);
        for (size_t i = 0; i < now.count; i++) {
            if (!inf_pid_list_has(&l->before, now.pids[i])
                && inf_process_end(P_PID, (id_t) now.pids[i], NULL, 0)
                    == INF_PROCESS_LIVES)
            {
                killed += kill(now.pids[i], SIGKILL) == 0;
            }
        }
        inf_pid_list_fini(&now);
    }
    inf_unlock(&t->lock);
    return killed;
}
