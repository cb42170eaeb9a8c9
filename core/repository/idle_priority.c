#include "core/repository/idle_priority.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"

#define STARVED_SHARE 8u        /* of the time, or less                      */

/* As /proc has it. */
typedef struct {
    char     state;
    uint64_t ran_ns;                    /* on a processor                    */
    uint64_t began;                     /* ticks since the machine's start   */
} thread_t;

static void prepare(void);
static void *there_and_back(void *arg);
static void in_child(void);
static bool is_starved(inf_idle_priority_t *p, uint64_t now_ns);
static uint64_t ticks_now(void);
static bool thread_read(pid_t thread, thread_t *out);
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
        p->began = ticks_now();
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

void
inf_idle_priority_drop(const inf_idle_priority_t *p, pid_t thread)
{
    thread_t found;

    /* one that is older has it from somebody else; it may end meanwhile */
    if (p->taken && sched_getscheduler(thread) == SCHED_IDLE
        && thread_read(thread, &found) && found.began >= p->began)
    {
        (void) policy_set(thread, usual);
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
    if (atomic_load(&takers) > 0 && sched_getscheduler(0) == SCHED_IDLE) {
        (void) policy_set(0, usual);
    }
}

/* A thread that waits for a file or a socket is not on the run queue. */
static bool
is_starved(inf_idle_priority_t *p, uint64_t now_ns)
{
    uint64_t before = p->ran_ns, window = now_ns - p->looked_ns;
    thread_t found;

    if (!thread_read(p->thread, &found)) {
        return true;                    /* nobody would ever see it          */
    }

    p->looked_ns = now_ns;
    p->ran_ns = found.ran_ns;
    return found.state == 'R'
        && found.ran_ns - before < window / STARVED_SHARE;
}

static uint64_t
ticks_now(void)
{
    struct timespec ts;
    uint64_t rate = (uint64_t) sysconf(_SC_CLK_TCK);

    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (uint64_t) ts.tv_sec * rate
        + (uint64_t) ts.tv_nsec / (1000000000u / rate);
}

/* /proc/self/task/<thread>/stat: "tid (name) state ...", the 14th and 15th
   are ticks in user and kernel mode, the 22nd when it began (proc(5)). */
static bool
thread_read(pid_t thread, thread_t *out)
{
    unsigned long long user, system, began;
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
            " %llu %*d %*d %*d %*d %*d %*d %llu", &out->state, &user, &system,
            &began) != 4)
    {
        return false;
    }

    out->ran_ns = (user + system) * (1000000000ull
        / (unsigned long long) sysconf(_SC_CLK_TCK));
    out->began = began;
    return true;
}

static int
policy_set(pid_t thread, int policy)
{
    const struct sched_param none = { .sched_priority = 0 };

    return sched_setscheduler(thread, policy, &none);
}
