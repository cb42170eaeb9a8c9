/*
 * pid_list.h - threads of a process and children of a thread, as /proc lists
 *              them.
 *
 * Owner    The caller's memory: all zero, or fini.
 * Thread   one at a time.
 * Units    none.
 * Errors   A process that can't be read, or kept for lack of memory, is not in
 *          the list.
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

/* The list begins as zeroed memory. */
void inf_pid_list_fini(inf_pid_list_t *list);

/* Without memory nothing is added. */
void inf_pid_list_add(inf_pid_list_t *list, pid_t pid);
void inf_pid_list_add_threads(inf_pid_list_t *list, pid_t process);

/* The kernel keeps a list for each thread: what others start isn't in it,
   until they end and leave it to another. */
void inf_pid_list_add_children(inf_pid_list_t *list, pid_t thread);

/* Searches from the start: for short lists. */
bool inf_pid_list_has(const inf_pid_list_t *list, pid_t pid);

#endif /* INF_BASE_OS_PID_LIST_H */
