#include "core/repository/idle_priority.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/repository/thread_stat.h"

#define STARVED_SHARE 8u        /* of the time, or less                      */

static void prepare(void);
static void *there_and_back(void *arg);
static void in_child(void);
static bool is_starved(inf_idle_priority_t *p, uint64_t now_ns);
static int policy_set(pid_t thread, int policy);

static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static int            usual;            /* the process's policy; -1: no use  */
static _Atomic int    takers;           /* that have not given up            */

void
inf_idle_priority_take(inf_idle_priority_t *p)
{
    p->taken = p->has = false;
    pthread_once(&prepared, prepare);
    if (usual < 0) {
        return;
    }

    p->thread = gettid();
    int now = sched_getscheduler(0);
    if (now == SCHED_IDLE || (now == usual && policy_set(0, SCHED_IDLE) == 0))
    {
        p->taken = p->has = true;
        p->began = inf_thread_ticks_now();
        atomic_fetch_add(&takers, 1);
        p->looked_ns = inf_clock_ns();
        p->ran_ns = 0;                  /* the first look only reads it      */
    }
}

void
inf_idle_priority_give_up(inf_idle_priority_t *p)
{
    if (!p->has) {
        return;
    }

    p->has = false;
    atomic_fetch_sub(&takers, 1);
    if (policy_set(p->thread, usual) != 0) {
        inf_err_log(inf_err_os(errno, "a thread that loads models stays under "
            "SCHED_IDLE"));
    }
}

void
inf_idle_priority_look(inf_idle_priority_t *p, uint64_t now_ns)
{
    if (p->has && now_ns >= p->looked_ns + INF_IDLE_LOOK_NS
        && is_starved(p, now_ns))
    {
        inf_idle_priority_give_up(p);
    }
}

bool
inf_idle_priority_inherited(const inf_idle_priority_t *p, pid_t thread)
{
    inf_thread_stat_t found;

    /* one that is older has it from somebody else; it may end meanwhile */
    return p->taken && sched_getscheduler(thread) == SCHED_IDLE
        && inf_thread_stat_read(thread, &found) && found.began >= p->began;
}

bool
inf_idle_priority_drop(const inf_idle_priority_t *p, pid_t thread)
{
    if (!inf_idle_priority_inherited(p, thread)) {
        return false;
    }

    (void) policy_set(thread, usual);
    return true;
}

/* Another thread tries it: it would not matter how that ends. */
static void
prepare(void)
{
    pthread_t thread;
    int failed = 0;

    usual = sched_getscheduler(0);
    if ((usual != SCHED_OTHER && usual != SCHED_BATCH)
        || getpriority(PRIO_PROCESS, 0) < 0)
    {
        usual = -1;                     /* somebody wants it so              */
        return;
    }

    int rc = pthread_create(&thread, NULL, there_and_back, &failed);
    if (rc == 0) {
        pthread_join(thread, NULL);
        rc = failed;
    }
    if (rc == 0) {
        rc = pthread_atfork(NULL, NULL, in_child);
    }
    if (rc != 0) {
        usual = -1;
        inf_log(INF_LOG_INFO, "models are loaded at the priority of requests:"
            " no thread can come back from SCHED_IDLE: %s", strerror(rc));
    }
}

static void *
there_and_back(void *arg)
{
    int *failed = arg;

    if (policy_set(0, SCHED_IDLE) != 0 || policy_set(0, usual) != 0) {
        *failed = errno;
    }
    return NULL;
}

/* Only calls that are safe behind fork() in a process with threads. */
static void
in_child(void)
{
    if (atomic_load(&takers) > 0 && sched_getscheduler(0) == SCHED_IDLE) {
        (void) policy_set(0, usual);
    }
}

/* A thread that waits for a file or a socket is not on the run queue. */
static bool
is_starved(inf_idle_priority_t *p, uint64_t now_ns)
{
    uint64_t before = p->ran_ns, window = now_ns - p->looked_ns;
    inf_thread_stat_t found;

    if (!inf_thread_stat_read(p->thread, &found)) {
        return true;                    /* nobody would ever see it          */
    }

    p->looked_ns = now_ns;
    p->ran_ns = found.ran_ns;
    return found.state == 'R'
        && found.ran_ns - before < window / STARVED_SHARE;
}

static int
policy_set(pid_t thread, int policy)
{
    const struct sched_param none = { .sched_priority = 0 };

    return sched_setscheduler(thread, policy, &none);
}
