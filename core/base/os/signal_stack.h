/*
 * signal_stack.h - a stack for the handlers of signals, for a thread whose own
 *                  stack a backend may overflow.
 *
 * Owner    The thread: in the frame of its first function, so that it lies above
 *          all that the thread calls, where no overflow reaches it.
 * Thread   the one that it is for.
 * Units    bytes.
 * Errors   none.  Where the kernel rejects it, handlers run on the thread's own
 *          stack.
 * Route    thread (thread.h) -> [signal stack] -> handlers of crashes
 */

#ifndef INF_BASE_OS_SIGNAL_STACK_H
#define INF_BASE_OS_SIGNAL_STACK_H

/* Several times what the kernel stores there of the largest register sets. */
#define INF_SIGNAL_STACK_SIZE 65536

typedef struct {
    char bytes[INF_SIGNAL_STACK_SIZE];
} inf_signal_stack_t;

/* From here to the end handlers with SA_ONSTACK run there, unless the thread has
   such a stack already. */
void inf_signal_stack_begin(inf_signal_stack_t *s);
void inf_signal_stack_end(const inf_signal_stack_t *s);

#endif /* INF_BASE_OS_SIGNAL_STACK_H */
