/*
 * pid_list.h - lists threads of a process and children of a thread, from
 *              /proc.
 *
 * Owner    The caller's memory: all zero, or fini.
 * Thread   one at a time.
 * Units    none.
 * Errors   A process that cannot be read, or added for lack of memory, is
 *          missing from the list.
 * Route    kernel -> [pid list] -> children, loading place
 */

#ifndef INF_BASE_OS_PID_LIST_H
#define INF_BASE_OS_PID_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct {
    pid_t *pids;
    size_t count;
    size_t capacity;
} inf_pid_list_t;

/* A zeroed list is empty. */
void inf_pid_list_fini(inf_pid_list_t *list);

/* Adds the threads of a process; without memory the list lacks some. */
void inf_pid_list_add_threads(inf_pid_list_t *list, pid_t process);

/* Adds the children started by this thread; the kernel keeps a list per thread,
   and moves children of a thread that ends to another. */
void inf_pid_list_add_children(inf_pid_list_t *list, pid_t thread);

/* Linear search, for short lists. */
bool inf_pid_list_has(const inf_pid_list_t *list, pid_t pid);

#endif /* INF_BASE_OS_PID_LIST_H */
