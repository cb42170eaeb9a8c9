/*
 * life.h - the interpreter's own thread: starts its process, takes messages
 *          while nothing runs, notices its end and starts the next one.
 *
 * Owner    The thread is the interpreter's, and ends after a signal on stop_fd.
 * Thread   this thread; it holds the consumer role while a process starts or
 *          ends.
 * Units    ms.
 * Errors   why a process has not started: the interpreter's reason until the
 *          next start.
 * Route    interpreter -> [life] -> process, link, calls
 */

#ifndef PY_LIFE_H
#define PY_LIFE_H

#include "interpreter.h"

/* Thread function, for pthread_create; its argument is a py_interpreter_t. */
void *py_life_main(void *interpreter);

#endif /* PY_LIFE_H */
