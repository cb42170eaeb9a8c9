#include "core/repository/loading_place.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/repository/pid_list.h"
#include "core/repository/thread_stat.h"

/* Whether thread has inherited from p's what this is about. */
typedef bool touch_t(const inf_loading_place_t *p, pid_t thread);

static inf_err_t *move_here(inf_loading_place_t *p, const char *text);
static bool others_have(const inf_host_policies_t *policies,
    const char *text);
static void visit_heirs(const inf_loading_place_t *p, touch_t *thread_touch,
    touch_t *process_touch);
static bool is_entered(pid_t thread);
static void visit_children(const inf_loading_place_t *p,
    inf_pid_list_t *parents, pid_t thread, touch_t *touch);
static bool is_younger(const inf_loading_place_t *p, pid_t thread);
static bool goes_home(const inf_loading_place_t *p, pid_t thread);
static bool has_priority(const inf_loading_place_t *p, pid_t thread);
static bool gives_up_priority(const inf_loading_place_t *p, pid_t thread);
static bool cores_get(pid_t thread, unsigned long *cores);
static int cores_set(pid_t thread, const unsigned long *cores);

/* Who is on loading cores because it loads. */
static pthread_mutex_t      entered_lock = PTHREAD_MUTEX_INITIALIZER;
static inf_loading_place_t *entered;

void
inf_loading_place_enter(inf_loading_place_t *p,
    const inf_host_policies_t *policies)
{
    const char *text = inf_host_policy_find(policies, INF_LOADING_POLICY,
        INF_HOST_CPU_CORES);
    inf_err_t *err = NULL;

    p->thread = gettid();
    p->began = inf_thread_ticks_now();
    p->looked_ns = inf_clock_ns();
    p->apart = false;

    /* whoever sends threads home meanwhile finds us entered, or not yet here */
    pthread_mutex_lock(&entered_lock);
    if (text != NULL) {
        err = move_here(p, text);
        p->apart = err == NULL;
        p->shared = others_have(policies, text);
    }
    inf_idle_priority_take(&p->priority);
    p->entered = p->apart || p->priority.taken;
    if (p->entered) {
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
    if (!p->entered) {
        return;
    }

    if (p->apart && cores_set(p->thread, p->home) != 0) {
        inf_err_log(inf_err_os(errno, "a thread stays on the cores of host"
            " policy '" INF_LOADING_POLICY "'"));
    }
    pthread_mutex_lock(&entered_lock);
    inf_idle_priority_give_up(&p->priority);    /* somebody may look at it   */
    pthread_mutex_unlock(&entered_lock);
    inf_loading_place_end(p);
}

void
inf_loading_place_end(inf_loading_place_t *p)
{
    inf_loading_place_t **at = &entered;

    if (!p->entered) {
        return;
    }

    p->entered = false;
    pthread_mutex_lock(&entered_lock);
    visit_heirs(p, goes_home, goes_home);
    while (*at != p) {
        at = &(*at)->next;
    }
    *at = p->next;
    pthread_mutex_unlock(&entered_lock);
}

void
inf_loading_place_look(uint64_t now_ns)
{
    pthread_mutex_lock(&entered_lock);
    for (inf_loading_place_t *p = entered; p != NULL; p = p->next) {
        inf_idle_priority_look(&p->priority, now_ns);
        if (now_ns >= p->looked_ns + INF_IDLE_LOOK_NS) {
            p->looked_ns = now_ns;
            visit_heirs(p, has_priority, gives_up_priority);
        }
    }
    pthread_mutex_unlock(&entered_lock);
}

static inf_err_t *
move_here(inf_loading_place_t *p, const char *text)
{
    inf_err_t *err = inf_host_cores_parse(text, p->cores);
    if (err != NULL) {
        return err;
    }

    if (!cores_get(p->thread, p->home)
        || cores_set(p->thread, p->cores) != 0
        || !cores_get(p->thread, p->cores))
    {
        return inf_err_os(errno, "cannot run on cores %s", text);
    }
    return NULL;
}

/* Then an instance's thread there may have been put there. */
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

/* Threads that have inherited something, processes that they have started, and
   theirs.  A thread that ends leaves its processes to the first one. */
static void
visit_heirs(const inf_loading_place_t *p, touch_t *thread_touch,
    touch_t *process_touch)
{
    inf_pid_list_t threads = { .pids = NULL }, parents = { .pids = NULL };

    inf_pid_list_add_threads(&threads, getpid());
    for (size_t i = 0; i < threads.count; i++) {
        pid_t thread = threads.pids[i];
        bool heir = !is_entered(thread) && thread_touch(p, thread);
        if (heir || thread == p->thread || thread == getpid()) {
            inf_pid_list_add(&parents, thread);
        }
    }
    for (size_t i = 0; i < parents.count; i++) {
        visit_children(p, &parents, parents.pids[i], process_touch);
    }

    inf_pid_list_fini(&threads);
    inf_pid_list_fini(&parents);
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

/* Those that thread has started since, if touch says so of their first
   thread; their threads are parents, too. */
static void
visit_children(const inf_loading_place_t *p, inf_pid_list_t *parents,
    pid_t thread, touch_t *touch)
{
    inf_pid_list_t children = { .pids = NULL };

    inf_pid_list_add_children(&children, thread);
    for (size_t i = 0; i < children.count; i++) {
        pid_t process = children.pids[i];
        size_t first = parents->count;
        if (is_younger(p, process) && touch(p, process)) {
            inf_pid_list_add_threads(parents, process);
        }
        for (size_t k = first; k < parents->count; k++) {
            (void) touch(p, parents->pids[k]);
        }
    }
    inf_pid_list_fini(&children);
}

static bool
is_younger(const inf_loading_place_t *p, pid_t thread)
{
    inf_thread_stat_t found;
    return inf_thread_stat_read(thread, &found) && found.began >= p->began;
}

/* The priority, or exactly these cores.  One that ends meanwhile is no
   error. */
static bool
goes_home(const inf_loading_place_t *p, pid_t thread)
{
    unsigned long cores[INF_HOST_CORE_WORDS];

    bool goes = inf_idle_priority_drop(&p->priority, thread);
    if (p->apart && !p->shared && cores_get(thread, cores)
        && memcmp(cores, p->cores, sizeof(cores)) == 0)
    {
        (void) cores_set(thread, p->home);
        goes = true;
    }
    return goes;
}

static bool
has_priority(const inf_loading_place_t *p, pid_t thread)
{
    return inf_idle_priority_inherited(&p->priority, thread);
}

static bool
gives_up_priority(const inf_loading_place_t *p, pid_t thread)
{
    return inf_idle_priority_drop(&p->priority, thread);
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
