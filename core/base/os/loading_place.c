#include "core/base/os/loading_place.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/base/os/pid_list.h"

static inf_err_t *move_here(inf_loading_place_t *p, const char *text);
static bool others_have(const inf_host_policies_t *policies,
    const char *text);
static void move_back(const inf_loading_place_t *p);
static bool is_entered(pid_t thread);
static bool moved_back(const inf_loading_place_t *p, pid_t thread);
static void add_threads_of_children(inf_pid_list_t *threads, pid_t thread);
static bool cores_get(pid_t thread, unsigned long *cores);
static int cores_set(pid_t thread, const unsigned long *cores);

/* Threads that are loading on these cores; no other load moves them. */
static pthread_mutex_t      entered_lock = PTHREAD_MUTEX_INITIALIZER;
static inf_loading_place_t *entered;

void
inf_loading_place_enter(inf_loading_place_t *p,
    const inf_host_policies_t *policies)
{
    const char *text = inf_host_policy_find(policies, INF_LOADING_POLICY,
        INF_HOST_CPU_CORES);

    p->entered = false;
    if (text == NULL) {
        return;
    }

    p->thread = gettid();
    p->shared = others_have(policies, text);

    /* a load that ends meanwhile finds the thread not moved yet, or in the
       list */
    pthread_mutex_lock(&entered_lock);
    inf_err_t *err = move_here(p, text);
    if (err == NULL) {
        p->entered = true;
        p->next = entered;
        entered = p;
    }
    pthread_mutex_unlock(&entered_lock);

    if (err != NULL) {
        inf_err_log(inf_err_add(err, "host policy '" INF_LOADING_POLICY
            "'"));
    }
}

void
inf_loading_place_leave(inf_loading_place_t *p)
{
    inf_loading_place_t **at = &entered;

    if (!p->entered) {
        return;
    }

    p->entered = false;
    if (cores_set(p->thread, p->previous) != 0) {
        inf_err_log(inf_err_os(errno, "a thread stays on the cores of host"
            " policy '" INF_LOADING_POLICY "'"));
    }

    pthread_mutex_lock(&entered_lock);
    move_back(p);
    while (*at != p) {
        at = &(*at)->next;
    }
    *at = p->next;
    pthread_mutex_unlock(&entered_lock);
}

static inf_err_t *
move_here(inf_loading_place_t *p, const char *text)
{
    inf_err_t *err = inf_host_cores_parse(text, p->cores);
    if (err != NULL) {
        return err;
    }

    if (!cores_get(p->thread, p->previous)
        || cores_set(p->thread, p->cores) != 0
        || !cores_get(p->thread, p->cores))
    {
        return inf_err_os(errno, "cannot run on cores %s", text);
    }
    return NULL;
}

/* Whether another policy has the same cores, so that threads of instances may
   belong there. */
static bool
others_have(const inf_host_policies_t *policies, const char *text)
{
    for (size_t i = 0; i < policies->count; i++) {
        const inf_host_setting_t *s = &policies->items[i];
        if (strcmp(s->policy, INF_LOADING_POLICY) != 0
            && strcmp(s->key, INF_HOST_CPU_CORES) == 0
            && strcmp(s->value, text) == 0)
        {
            return true;
        }
    }

    return false;
}

/* Moves threads that inherited the cores: threads of this process, of the
   processes started by these and the loading thread, and so on.  Processes
   started by a thread that ends become children of the main thread. */
static void
move_back(const inf_loading_place_t *p)
{
    inf_pid_list_t threads = { .pids = NULL };

    if (p->shared) {
        return;
    }

    inf_pid_list_add_threads(&threads, getpid());
    for (size_t i = 0; i < threads.count; i++) {
        pid_t thread = threads.pids[i];
        bool inherited = !is_entered(thread) && moved_back(p, thread);
        if (inherited || thread == p->thread || thread == getpid()) {
            add_threads_of_children(&threads, thread);
        }
    }
    inf_pid_list_fini(&threads);
}

static bool
is_entered(pid_t thread)
{
    const inf_loading_place_t *p = entered;

    while (p != NULL && p->thread != thread) {
        p = p->next;
    }
    return p != NULL;
}

/* Whether a thread has exactly these cores.  A thread that has ended is no
   error. */
static bool
moved_back(const inf_loading_place_t *p, pid_t thread)
{
    unsigned long cores[INF_HOST_CORE_WORDS];

    if (!cores_get(thread, cores)
        || memcmp(cores, p->cores, sizeof(cores)) != 0)
    {
        return false;
    }

    (void) cores_set(thread, p->previous);
    return true;
}

static void
add_threads_of_children(inf_pid_list_t *threads, pid_t thread)
{
    inf_pid_list_t children = { .pids = NULL };

    inf_pid_list_add_children(&children, thread);
    for (size_t i = 0; i < children.count; i++) {
        inf_pid_list_add_threads(threads, children.pids[i]);
    }
    inf_pid_list_fini(&children);
}

static bool
cores_get(pid_t thread, unsigned long *cores)
{
    memset(cores, 0, INF_HOST_CORE_WORDS * sizeof(*cores));
    return sched_getaffinity(thread, INF_HOST_CORE_WORDS * sizeof(*cores),
        (cpu_set_t *) (void *) cores) == 0;
}

static int
cores_set(pid_t thread, const unsigned long *cores)
{
    return sched_setaffinity(thread, INF_HOST_CORE_WORDS * sizeof(*cores),
        (const cpu_set_t *) (const void *) cores);
}
