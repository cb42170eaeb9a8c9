/* threads.c - see threads.h */

#include "threads.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#define IDLE_S 10

static void *thread_main(void *arg);
static py_job_t *job_take_locked(void);
static void until_in(struct timespec *until, unsigned seconds);

/* Guards the jobs and threads below. */
static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t threads_work = PTHREAD_COND_INITIALIZER;
static pthread_cond_t threads_changed = PTHREAD_COND_INITIALIZER;

/* Under threads_lock. */
static struct {
    py_job_t  *first;
    py_job_t  *last;
    unsigned   waiting;         /* number of jobs                            */
    unsigned   idle;
    unsigned   count;           /* number of threads                         */
    unsigned   ending;          /* callers of end()                          */
    pthread_t  ended;           /* the last ended one, to be joined          */
    bool       has_ended;
} threads;

TRITONSERVER_Error *
py_threads_run(py_job_t *job)
{
    pthread_t thread;
    int rc = 0;

    pthread_mutex_lock(&threads_lock);
    if (threads.idle <= threads.waiting) {
        rc = pthread_create(&thread, NULL, thread_main, NULL);
        threads.count += rc == 0;
    }
    if (rc == 0) {
        job->next = NULL;
        if (threads.last != NULL) {
            threads.last->next = job;
        } else {
            threads.first = job;
        }
        threads.last = job;
        threads.waiting++;
        pthread_cond_signal(&threads_work);
    }
    pthread_mutex_unlock(&threads_lock);

    char text[128];
    return rc == 0 ? NULL : bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE,
        "cannot start a thread for a call: %s",
        strerror_r(rc, text, sizeof(text)));
}

void
py_threads_end(unsigned seconds)
{
    struct timespec until;

    until_in(&until, seconds);
    pthread_mutex_lock(&threads_lock);
    threads.ending++;
    pthread_cond_broadcast(&threads_work);
    while (threads.count > 0
        && pthread_cond_timedwait(&threads_changed, &threads_lock, &until) == 0)
    {
        /* until none is left */
    }
    threads.ending--;
    bool joins = threads.count == 0 && threads.has_ended;
    pthread_t last = threads.ended;
    threads.has_ended = threads.has_ended && !joins;
    pthread_mutex_unlock(&threads_lock);

    if (joins) {
        pthread_join(last, NULL);
    }
}

/* Each thread joins the one that ended before it, and end() joins the last, so
   that no thread runs code of this library afterwards. */
static void *
thread_main(void *arg)
{
    py_job_t *job;

    (void) arg;
    pthread_setname_np(pthread_self(), "python call");
    pthread_mutex_lock(&threads_lock);
    while ((job = job_take_locked()) != NULL) {
        pthread_mutex_unlock(&threads_lock);
        job->run(job);
        pthread_mutex_lock(&threads_lock);
    }

    bool joins = threads.has_ended;
    pthread_t before = threads.ended;
    threads.ended = pthread_self();
    threads.has_ended = true;
    threads.count--;
    pthread_cond_broadcast(&threads_changed);
    pthread_mutex_unlock(&threads_lock);

    if (joins) {
        pthread_join(before, NULL);
    }
    return NULL;
}

/* Waits for a job; NULL: none for so long that the thread ends. */
static py_job_t *
job_take_locked(void)
{
    struct timespec until;
    int rc = 0;

    until_in(&until, IDLE_S);
    threads.idle++;
    while (threads.first == NULL && threads.ending == 0 && rc == 0) {
        rc = pthread_cond_timedwait(&threads_work, &threads_lock, &until);
    }
    threads.idle--;

    py_job_t *job = threads.first;
    if (job != NULL) {
        threads.first = job->next;
        threads.last = threads.first != NULL ? threads.last : NULL;
        threads.waiting--;
    }
    return job;
}

static void
until_in(struct timespec *until, unsigned seconds)
{
    clock_gettime(CLOCK_REALTIME, until);
    until->tv_sec += seconds;
}
