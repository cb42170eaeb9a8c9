/*
 * thread.h - starts the core's threads, each with a name and a stack for
 *            signal handlers (signal_stack.h).
 *
 * Owner    The caller joins the thread; a thread without a handle is detached.
 * Thread   any.
 * Units    none.
 * Errors   "cannot start thread NAME" with the system's reason; no thread was
 *          started, and arg stays the caller's.
 * Route    a part of the core that needs a thread -> [thread] -> its main
 */

#ifndef INF_BASE_OS_THREAD_H
#define INF_BASE_OS_THREAD_H

#include <pthread.h>

#include "core/base/error.h"

typedef void *(*inf_thread_main_t)(void *arg);

/* *thread is set before the thread begins; NULL: detached.  The name is copied;
   the system shows its first 15 bytes. */
INF_CHECK inf_err_t *inf_thread_start(pthread_t *thread, const char *name,
    inf_thread_main_t thread_main, void *arg);

#endif /* INF_BASE_OS_THREAD_H */
