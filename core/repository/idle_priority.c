#include "core/repository/idle_priority.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"

#define STARVED_SHARE 8u        /* of the time, or less                      */

static void prepare(void);
static void *there_and_back(void *arg);
static void in_child(void);
static bool is_starved(inf_idle_priority_t *p, uint64_t now_ns);
static bool thread_times(pid_t thread, char *state, uint64_t *ran_ns);
static int policy_set(pid_t thread, int policy);

static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static int            usual;            /* the process's policy; -1: no use  */

void
inf_idle_priority_take(inf_idle_priority_t *p)
{
    p->taken = p->has = false;
    pthread_once(&prepared, prepare);
    if (usual < 0) {
        return;
    }

    p->thread = gettid();
    p->policy = usual;
    int now = sched_getscheduler(0);
    if (now == SCHED_IDLE || (now == usual && policy_set(0, SCHED_IDLE) == 0))
    {
        p->taken = p->has = true;
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
    if (policy_set(p->thread, p->policy) != 0) {
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

void
inf_idle_priority_drop(const inf_idle_priority_t *p, pid_t thread)
{
    if (p->taken && sched_getscheduler(thread) == SCHED_IDLE) {
        (void) policy_set(thread, p->policy);   /* it may have ended         */
    }
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
    if (sched_getscheduler(0) == SCHED_IDLE) {
        (void) policy_set(0, usual);
    }
}

/* A thread that waits for a file or a socket is not on the run queue. */
static bool
is_starved(inf_idle_priority_t *p, uint64_t now_ns)
{
    uint64_t ran, before = p->ran_ns, window = now_ns - p->looked_ns;
    char state;

    if (!thread_times(p->thread, &state, &ran)) {
        return true;                    /* nobody would ever see it          */
    }

    p->looked_ns = now_ns;
    p->ran_ns = ran;
    return state == 'R' && ran - before < window / STARVED_SHARE;
}

/* /proc/self/task/<thread>/stat: "tid (name) state ...", the 14th and 15th
   are ticks in user and kernel mode (proc(5)). */
static bool
thread_times(pid_t thread, char *state, uint64_t *ran_ns)
{
    unsigned long long user, system;
    char path[64], text[512];

    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int) thread);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t n = read(fd, text, sizeof(text) - 1);
    (void) close(fd);
    if (n <= 0) {
        return false;
    }

    text[n] = '\0';
    const char *p = strrchr(text, ')');         /* the name may hold any     */
    if (p == NULL
        || sscanf(p + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu"
            " %llu", state, &user, &system) != 3)
    {
        return false;
    }

    *ran_ns = (user + system) * (1000000000ull
        / (unsigned long long) sysconf(_SC_CLK_TCK));
    return true;
}

static int
policy_set(pid_t thread, int policy)
{
    const struct sched_param none = { .sched_priority = 0 };

    return sched_setscheduler(thread, policy, &none);
}
