/*
 * asked_thread.h - a thread that looks, whenever it is asked, on which cores
 *                  it may run.
 *
 * Owner    the test: start, end.
 * Thread   one test's.
 * Units    none.
 * Errors   a test fails at once.
 * Route    unit tests only
 */

#ifndef INF_T_BASE_OS_ASKED_THREAD_H
#define INF_T_BASE_OS_ASKED_THREAD_H

#include "temp_tree.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <unistd.h>

typedef struct {
    pthread_t thread;
    cpu_set_t cores;                    /* after an ask                      */
    sem_t     asked;
    sem_t     told;
    _Atomic bool ends;
} asked_thread_t;

static inline void *
asked_thread_main(void *arg)
{
    asked_thread_t *t = arg;

    for (;;) {
        sem_wait(&t->asked);
        if (t->ends) {
            return NULL;
        }
        assert_int_equal(sched_getaffinity(0, sizeof(t->cores), &t->cores), 0);
        sem_post(&t->told);
    }
}

static inline void
asked_thread_ask(asked_thread_t *t)
{
    sem_post(&t->asked);
    sem_wait(&t->told);
}

static inline void
asked_thread_start(asked_thread_t *t)
{
    sem_init(&t->asked, 0, 0);
    sem_init(&t->told, 0, 0);
    t->ends = false;
    assert_int_equal(pthread_create(&t->thread, NULL, asked_thread_main, t),
        0);
    asked_thread_ask(t);
}

static inline void
asked_thread_end(asked_thread_t *t)
{
    t->ends = true;
    sem_post(&t->asked);
    pthread_join(t->thread, NULL);
    sem_destroy(&t->asked);
    sem_destroy(&t->told);
}

#endif /* INF_T_BASE_OS_ASKED_THREAD_H */
