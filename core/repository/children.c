#include "core/repository/children.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/lock.h"
#include "core/base/log.h"
#include "core/base/os/process_end.h"
#include "core/base/os/shared_names.h"
#include "core/base/os/thread.h"
#include "core/base/queue.h"

#define CHILDREN_RANK 14
#define STOP_ID       UINT64_C(0)

typedef struct {
    inf_link_t          link;           /* in c->watched                     */
    uint64_t            id;             /* in epoll events                   */
    inf_model_t        *model;          /* lives until forgotten             */
    const void         *owner;          /* its instance; only compared       */
    char               *instance;       /* the name of that                  */
    pid_t               pid;
    int                 fd;             /* pidfd                             */
    char                program[INF_PROCESS_NAME];
    bool                armed;
    bool                let_go;         /* may exit                          */
    inf_shared_names_t  names;          /* of memory shared with us          */
} child_t;

struct inf_children_s {
    inf_child_died_fn  died;            /* set in new()                      */
    void              *userp;

    int                epoll;           /* opened under lock before the thread
                                           starts, then constant; -1: none   */
    int                stop_fd;         /* an eventfd, likewise              */

    inf_lock_t         lock;            /* rank 14; guards what follows      */
    inf_cond_t         told;            /* telling became NULL               */
    inf_link_t         watched;
    uint64_t           last_id;
    const inf_model_t *telling;         /* model for which died runs         */
    bool               running;         /* the thread exists                 */
    bool               stopping;
    pthread_t          thread;
};

struct inf_leftovers_s {
    inf_shared_names_t names;
    inf_leftovers_t   *next;
};

static bool belongs(const child_t *child, const inf_model_t *model,
    const inf_instance_t *instance);
static inf_err_t *child_new(inf_instance_t *instance, pid_t pid,
    child_t **out);
static void child_free(child_t *child);
static bool dead(const child_t *child);
static inf_err_t *start_locked(inf_children_t *c) INF_NEEDS(c->lock);
static inf_err_t *arm_locked(inf_children_t *c, child_t *child)
    INF_NEEDS(c->lock);
static void *watch_main(void *arg);
static void tell(inf_children_t *c, uint64_t id);
static child_t *find_locked(inf_children_t *c, uint64_t id) INF_NEEDS(c->lock);
static bool describe(const child_t *child, char *why, size_t cap);

inf_err_t *
inf_children_new(inf_child_died_fn died, void *userp, inf_children_t **out)
{
    inf_children_t *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return inf_err_nomem();
    }

    inf_lock_init(&c->lock, CHILDREN_RANK);
    inf_cond_init(&c->told);
    inf_link_init(&c->watched);
    c->died = died;
    c->userp = userp;
    c->epoll = -1;
    c->stop_fd = -1;
    *out = c;
    return NULL;
}

void
inf_children_stop(inf_children_t *c)
{
    if (c == NULL) {
        return;
    }

    inf_lock(&c->lock);
    bool join = c->running && !c->stopping;
    c->stopping = true;
    inf_unlock(&c->lock);

    if (join) {
        const uint64_t one = 1;
        if (write(c->stop_fd, &one, sizeof(one)) < 0) {
            inf_err_log(inf_err_os(errno, "stopping the watch on children"));
        }
        pthread_join(c->thread, NULL);
    }
}

void
inf_children_free(inf_children_t *c)
{
    if (c == NULL) {
        return;
    }

    inf_children_stop(c);
    inf_link_t *link;
    while ((link = inf_list_pop_front(&c->watched)) != NULL) {
        child_free(inf_link_entry(link, child_t, link));
    }
    if (c->epoll >= 0) {
        close(c->epoll);
    }
    if (c->stop_fd >= 0) {
        close(c->stop_fd);
    }
    inf_cond_fini(&c->told);
    inf_lock_fini(&c->lock);
    free(c);
}

void
inf_children_watch(inf_children_t *c, inf_instance_t *instance,
    const inf_pid_list_t *before)
{
    inf_pid_list_t now = { .pids = NULL };
    if (c != NULL) {
        inf_pid_list_add_children(&now, gettid());
    }

    for (size_t i = 0; i < now.count; i++) {
        if (inf_pid_list_has(before, now.pids[i])) {
            continue;
        }

        child_t *child = NULL;
        inf_err_t *err = child_new(instance, now.pids[i], &child);
        if (err != NULL) {
            inf_err_log(inf_err_add(err, "process %d of instance '%s' is not"
                " watched", (int) now.pids[i], instance->spec->name));
            continue;
        }

        inf_log(INF_LOG_VERBOSE, "model=%s version=%lld: process %d (%s) of"
            " instance '%s' is watched", child->model->name,
            (long long) child->model->version, (int) child->pid,
            child->program, child->instance);
        inf_lock(&c->lock);
        child->id = ++c->last_id;
        inf_list_push_back(&c->watched, &child->link);
        inf_unlock(&c->lock);
    }

    inf_pid_list_fini(&now);
}

bool
inf_children_any(inf_children_t *c, const inf_model_t *model)
{
    bool any = false;
    if (c == NULL) {
        return false;
    }

    inf_lock(&c->lock);
    for (inf_link_t *l = c->watched.next; !any && l != &c->watched;
        l = l->next)
    {
        any = inf_link_entry(l, child_t, link)->model == model;
    }
    inf_unlock(&c->lock);
    return any;
}

void
inf_children_arm(inf_children_t *c, const inf_model_t *model)
{
    inf_err_t *err = NULL;

    inf_lock(&c->lock);
    for (inf_link_t *l = c->watched.next; l != &c->watched; l = l->next) {
        child_t *child = inf_link_entry(l, child_t, link);
        if (child->model == model && !child->armed && err == NULL) {
            err = arm_locked(c, child);
        }
    }
    inf_unlock(&c->lock);

    if (err != NULL) {
        inf_err_log(inf_err_add(err, "model=%s version=%lld: its processes are"
            " not watched", model->name, (long long) model->version));
    }
}

uint32_t
inf_children_kill(inf_children_t *c, const void *owner)
{
    uint32_t killed = 0;

    inf_lock(&c->lock);
    for (inf_link_t *l = c->watched.next; l != &c->watched; l = l->next) {
        child_t *child = inf_link_entry(l, child_t, link);
        if (owner != NULL && child->model->owner == owner) {
            killed += syscall(SYS_pidfd_send_signal, child->fd, SIGKILL, NULL,
                0) == 0;
        }
    }
    inf_unlock(&c->lock);
    return killed;
}

void
inf_children_let_go(inf_children_t *c, const inf_model_t *model,
    const inf_instance_t *instance)
{
    if (c == NULL) {
        return;
    }

    inf_lock(&c->lock);
    for (inf_link_t *l = c->watched.next; l != &c->watched; l = l->next) {
        child_t *child = inf_link_entry(l, child_t, link);
        child->let_go |= belongs(child, model, instance);
    }
    while (c->telling == model) {
        inf_cond_wait(&c->told, &c->lock);
    }
    inf_unlock(&c->lock);
}

/* Whether child belongs to the instance; NULL: to any of model. */
static bool
belongs(const child_t *child, const inf_model_t *model,
    const inf_instance_t *instance)
{
    return child->model == model
        && (instance == NULL || child->owner == instance);
}

bool
inf_children_stranded(inf_children_t *c, const inf_model_t *model)
{
    bool any = false;
    bool living = false;

    inf_lock(&c->lock);
    for (inf_link_t *l = c->watched.next; l != &c->watched; l = l->next) {
        child_t *child = inf_link_entry(l, child_t, link);
        if (child->model == model) {
            any = true;
            living |= !dead(child);
        }
    }
    inf_unlock(&c->lock);
    return any && !living;
}

inf_leftovers_t *
inf_children_forget(inf_children_t *c, const inf_model_t *model,
    const inf_instance_t *instance)
{
    inf_leftovers_t *left = NULL;
    inf_link_t gone;
    if (c == NULL) {
        return NULL;
    }

    inf_children_let_go(c, model, instance);
    inf_link_init(&gone);
    inf_lock(&c->lock);
    for (inf_link_t *l = c->watched.next; l != &c->watched; ) {
        child_t *child = inf_link_entry(l, child_t, link);
        l = l->next;
        if (belongs(child, model, instance)) {
            inf_link_remove(&child->link);
            inf_list_push_back(&gone, &child->link);
        }
    }
    inf_unlock(&c->lock);

    inf_link_t *link;
    while ((link = inf_list_pop_front(&gone)) != NULL) {
        child_t *child = inf_link_entry(link, child_t, link);
        inf_leftovers_t *l = dead(child) && child->names.count > 0
            ? calloc(1, sizeof(*l)) : NULL;
        if (l != NULL) {
            l->names = child->names;
            l->next = left;
            left = l;
            child->names = (inf_shared_names_t) { .items = NULL };
        }
        child_free(child);
    }

    return left;
}

inf_leftovers_t *
inf_leftovers_join(inf_leftovers_t *a, inf_leftovers_t *b)
{
    inf_leftovers_t **end = &a;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = b;
    return a;
}

void
inf_leftovers_remove(inf_leftovers_t *l, bool ours)
{
    while (l != NULL) {
        inf_leftovers_t *next = l->next;
        inf_shared_names_unlink(&l->names, ours);
        inf_shared_names_fini(&l->names);
        free(l);
        l = next;
    }
}

static inf_err_t *
child_new(inf_instance_t *instance, pid_t pid, child_t **out)
{
    child_t *child = calloc(1, sizeof(*child));
    if (child == NULL) {
        return inf_err_nomem();
    }

    inf_link_init(&child->link);
    child->model = instance->model;
    child->owner = instance;
    child->pid = pid;
    child->instance = strdup(instance->spec->name);
    child->fd = (int) syscall(SYS_pidfd_open, pid, 0);
    inf_err_t *err = child->fd < 0 ? inf_err_os(errno, "pidfd_open")
        : child->instance == NULL ? inf_err_nomem() : NULL;
    if (err != NULL) {
        child_free(child);
        return err;
    }

    inf_process_name(pid, child->program, sizeof(child->program));
    inf_shared_names_read(&child->names, pid);
    *out = child;
    return NULL;
}

static void
child_free(child_t *child)
{
    if (child->fd >= 0) {
        close(child->fd);           /* also removes it from the epoll set    */
    }
    inf_shared_names_fini(&child->names);
    free(child->instance);
    free(child);
}

/* Whether child has exited; a zombie counts. */
static bool
dead(const child_t *child)
{
    struct pollfd p = { .fd = child->fd, .events = POLLIN };
    return poll(&p, 1, 0) == 1;
}

static inf_err_t *
start_locked(inf_children_t *c)
{
    struct epoll_event event = { .events = EPOLLIN, .data.u64 = STOP_ID };

    if (c->epoll < 0) {
        c->epoll = epoll_create1(EPOLL_CLOEXEC);
    }
    if (c->stop_fd < 0) {
        c->stop_fd = eventfd(0, EFD_CLOEXEC);
    }
    if (c->epoll < 0 || c->stop_fd < 0) {
        return inf_err_os(errno, "watch");
    }
    if (epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->stop_fd, &event) != 0
        && errno != EEXIST)
    {
        return inf_err_os(errno, "watch");
    }

    inf_err_t *err = inf_thread_start(&c->thread, "children", watch_main, c);
    c->running = err == NULL;
    return err;
}

static inf_err_t *
arm_locked(inf_children_t *c, child_t *child)
{
    inf_err_t *err = c->running || c->stopping ? NULL : start_locked(c);
    if (err != NULL || c->stopping) {
        return err;
    }

    /* once: an exited process stays readable */
    struct epoll_event event = {
        .events = EPOLLIN | EPOLLONESHOT, .data.u64 = child->id
    };
    if (epoll_ctl(c->epoll, EPOLL_CTL_ADD, child->fd, &event) != 0) {
        return inf_err_os(errno, "process %d", (int) child->pid);
    }

    child->armed = true;
    return NULL;
}

static void *
watch_main(void *arg)
{
    inf_children_t *c = arg;

    for (;;) {
        struct epoll_event event;
        int n = epoll_wait(c->epoll, &event, 1, -1);
        if (n < 0 && errno != EINTR) {
            inf_err_log(inf_err_os(errno, "the watch on children ends"));
            return NULL;
        }
        if (n > 0 && event.data.u64 == STOP_ID) {
            return NULL;
        }
        if (n > 0) {
            tell(c, event.data.u64);
        }
    }
}

static void
tell(inf_children_t *c, uint64_t id)
{
    char why[256];

    inf_lock(&c->lock);
    child_t *child = c->stopping ? NULL : find_locked(c, id);
    if (child != NULL && child->let_go) {
        child = NULL;
    }
    if (child != NULL) {
        c->telling = child->model;
    }
    inf_unlock(&c->lock);
    if (child == NULL) {
        return;
    }

    /* inf_children_let_go waits for this call, so child stays */
    if (describe(child, why, sizeof(why))) {
        c->died(c->userp, child->model, why);
    } else {
        inf_log(INF_LOG_NOTICE, "model=%s version=%lld: %s", child->model->name,
            (long long) child->model->version, why);
    }

    inf_lock(&c->lock);
    c->telling = NULL;
    inf_unlock(&c->lock);
    inf_cond_broadcast(&c->told);
}

static child_t *
find_locked(inf_children_t *c, uint64_t id)
{
    for (inf_link_t *l = c->watched.next; l != &c->watched; l = l->next) {
        child_t *child = inf_link_entry(l, child_t, link);
        if (child->id == id) {
            return child;
        }
    }

    return NULL;
}

/*
 * Describes the exit without reaping the process, which belongs to its backend.
 * false: it had finished its work.  A process that shares memory with us is
 * never finished.
 */
static bool
describe(const child_t *child, char *why, size_t cap)
{
    char text[INF_PROCESS_END] = "has ended";
    inf_process_end_t end = inf_process_end(P_PIDFD, (id_t) child->fd, text,
        sizeof(text));

    snprintf(why, cap, "process %d (%s) of instance '%s' %s",
        (int) child->pid, child->program, child->instance, text);
    return end == INF_PROCESS_FAILED || child->names.count > 0;
}
