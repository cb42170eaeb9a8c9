/*
 * signal_stack.h - a stack for signal handlers of a thread whose own stack a
 *                  backend may overflow.
 *
 * Owner    The thread: in the frame of its first function, above the frames of
 *          all calls, so that an overflow cannot reach it.
 * Thread   the thread of the stack.
 * Units    bytes.
 * Errors   none.  If the kernel rejects it, handlers run on the thread's own
 *          stack.
 * Route    thread (thread.h) -> [signal stack] -> handlers of crashes
 */

#ifndef INF_BASE_OS_SIGNAL_STACK_H
#define INF_BASE_OS_SIGNAL_STACK_H

/* Several times the kernel's frame with the largest register sets. */
#define INF_SIGNAL_STACK_SIZE 65536

typedef struct {
    char bytes[INF_SIGNAL_STACK_SIZE];
} inf_signal_stack_t;

/* Between begin and end handlers with SA_ONSTACK run on s, unless the thread
   already has such a stack. */
void inf_signal_stack_begin(inf_signal_stack_t *s);
void inf_signal_stack_end(const inf_signal_stack_t *s);

#endif /* INF_BASE_OS_SIGNAL_STACK_H */
