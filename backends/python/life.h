/*
 * life.h - the interpreter's own thread: starts its process, takes what it
 *          sends while nothing runs, notices its end and starts the next one.
 *
 * Owner    The thread is the interpreter's, and ends when its stop_fd says so.
 * Thread   this one; it holds the consumer role while a process begins or ends.
 * Units    ms.
 * Errors   why a process has not begun: the interpreter's reason, until the
 *          next one has.
 * Route    interpreter -> [life] -> process, link, calls
 */

#ifndef PY_LIFE_H
#define PY_LIFE_H

#include "interpreter.h"

/* For pthread_create; of a py_interpreter_t. */
void *py_life_main(void *interpreter);

#endif /* PY_LIFE_H */
