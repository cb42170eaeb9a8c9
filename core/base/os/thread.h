/*
 * thread.h - starts the core's threads: each has its name, and a stack for the
 *            handlers of signals (signal_stack.h).
 *
 * Owner    A thread is its starter's to join; one without a handle frees itself.
 * Thread   any.
 * Units    none.
 * Errors   "cannot start thread NAME" with the system's reason; no thread has
 *          begun then, and arg stays the caller's.
 * Route    a part of the core that needs a thread -> [thread] -> its main
 */

#ifndef INF_BASE_OS_THREAD_H
#define INF_BASE_OS_THREAD_H

#include <pthread.h>

#include "core/base/error.h"

typedef void *(*inf_thread_main_t)(void *arg);

/* The thread is set before it begins; NULL: it is detached, and nobody learns
   of its end.  The system shows the first 15 bytes of the name, which is
   copied. */
INF_CHECK inf_err_t *inf_thread_start(pthread_t *thread, const char *name,
    inf_thread_main_t thread_main, void *arg);

#endif /* INF_BASE_OS_THREAD_H */
