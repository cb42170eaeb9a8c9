#include "core/repository/loading_place.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/log.h"

static inf_err_t *move_here(inf_loading_place_t *p, const char *text);
static bool others_have(const inf_host_policies_t *policies,
    const char *text);
static void send_home(const inf_loading_place_t *p);
static bool is_entered(pid_t thread);
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
    send_home(p);
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

/* Threads that have inherited from it: the priority, or exactly these cores.
   One that ends meanwhile is no error. */
static void
send_home(const inf_loading_place_t *p)
{
    unsigned long cores[INF_HOST_CORE_WORDS];
    const struct dirent *entry;
    DIR *dir = opendir("/proc/self/task");

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        pid_t thread = (pid_t) strtol(entry->d_name, NULL, 10);
        if (thread <= 0 || is_entered(thread)) {
            continue;
        }

        inf_idle_priority_drop(&p->priority, thread);
        if (p->apart && !p->shared && cores_get(thread, cores)
            && memcmp(cores, p->cores, sizeof(cores)) == 0)
        {
            (void) cores_set(thread, p->home);
        }
    }

    if (dir != NULL) {
        closedir(dir);
    }
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
