#include "core/base/os/thread.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/os/signal_stack.h"

#define NAME_BYTES 16           /* limit of the kernel, with the NUL         */

typedef struct {
    inf_thread_main_t main;
    void             *arg;
    char              name[NAME_BYTES];
} start_t;

static int create(pthread_t *thread, start_t *start);
static void *run(void *arg);

inf_err_t *
inf_thread_start(pthread_t *thread, const char *name,
    inf_thread_main_t thread_main, void *arg)
{
    start_t *start = malloc(sizeof(*start));
    if (start == NULL) {
        return inf_err_nomem();
    }

    start->main = thread_main;
    start->arg = arg;
    snprintf(start->name, sizeof(start->name), "%s", name);

    int rc = create(thread, start);
    if (rc != 0) {
        free(start);
        return inf_err_os(rc, "cannot start thread \"%s\"", name);
    }

    return NULL;
}

static int
create(pthread_t *thread, start_t *start)
{
    pthread_attr_t attr;
    pthread_t detached;

    if (thread != NULL) {
        return pthread_create(thread, NULL, run, start);
    }

    int rc = pthread_attr_init(&attr);
    if (rc != 0) {
        return rc;
    }

    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    rc = pthread_create(&detached, &attr, run, start);
    pthread_attr_destroy(&attr);
    return rc;
}

static void *
run(void *arg)
{
    start_t start = *(start_t *) arg;
    inf_signal_stack_t signals;

    free(arg);
    pthread_setname_np(pthread_self(), start.name);
    inf_signal_stack_begin(&signals);
    void *result = start.main(start.arg);
    inf_signal_stack_end(&signals);
    return result;
}
