/*
 * idle_priority.h - a thread that works with what requests leave of the
 *                   processors: SCHED_IDLE, and back.
 *
 * Owner    The caller's memory.
 * Thread   take is about the calling thread.  The rest may be called by any,
 *          but not for one thread at once.
 * Units    ns of inf_clock_ns().
 * Errors   Where the kernel would not let a thread come back (no CAP_SYS_NICE,
 *          RLIMIT_NICE below 20: sched(7)) nothing is taken, and the log says
 *          so once.
 * Route    loading place -> [idle priority] -> kernel
 *
 * A thread that is woken for a request takes the processor from one under
 * SCHED_IDLE at once.  From any other it doesn't always: there it may wait
 * for the end of a time slice, ms on a kernel that does not preempt.
 *
 * Threads and processes inherit it.  A process that is forked meanwhile gives
 * it up by itself; for threads, and for processes that are started otherwise
 * (posix_spawn, vfork, system, popen), somebody must call drop.
 */

#ifndef INF_REPOSITORY_IDLE_PRIORITY_H
#define INF_REPOSITORY_IDLE_PRIORITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Between two looks at a thread. */
#define INF_IDLE_LOOK_NS 1000000000ull

typedef struct {
    bool     taken;                     /* the thread had it, or has it      */
    bool     has;
    pid_t    thread;
    uint64_t began;                     /* ticks since the machine's start   */
    uint64_t looked_ns;
    uint64_t ran_ns;                    /* on a processor until then         */
} inf_idle_priority_t;

void inf_idle_priority_take(inf_idle_priority_t *p);
void inf_idle_priority_give_up(inf_idle_priority_t *p);

/* Gives up for a thread that gets next to nothing because the machine is
   full: models must be loaded under any traffic.  Looks at most every
   INF_IDLE_LOOK_NS. */
void inf_idle_priority_look(inf_idle_priority_t *p, uint64_t now_ns);

/* Whether another thread, of whichever process, may have inherited it from
   p's: one that began since, under SCHED_IDLE. */
bool inf_idle_priority_inherited(const inf_idle_priority_t *p, pid_t thread);

/* Gives up for such a thread.  false: it isn't one. */
bool inf_idle_priority_drop(const inf_idle_priority_t *p, pid_t thread);

#endif /* INF_REPOSITORY_IDLE_PRIORITY_H */
