/*
 * process_end.h - the exit status of a child process, read without reaping it,
 *                 and its program's name.
 *
 * Owner    The caller's memory.
 * Thread   any.
 * Units    none.
 * Errors   GONE: the process was reaped elsewhere.
 * Route    children, load threads -> [process end] -> kernel
 */

#ifndef INF_BASE_OS_PROCESS_END_H
#define INF_BASE_OS_PROCESS_END_H

#include <stddef.h>
#include <sys/types.h>
#include <sys/wait.h>

#define INF_PROCESS_NAME 32
#define INF_PROCESS_END  96

typedef enum {
    INF_PROCESS_LIVES,
    INF_PROCESS_GONE,
    INF_PROCESS_DONE,           /* status 0                                  */
    INF_PROCESS_FAILED          /* a signal, or another status               */
} inf_process_end_t;

/* text (may be NULL): for DONE and FAILED "exited with status 3", "was killed
   by signal 9 (Killed)". */
inf_process_end_t inf_process_end(idtype_t type, id_t id, char *text,
    size_t cap);

/* The name of its program, at most 15 characters; "?": cannot be read. */
void inf_process_name(pid_t pid, char *name, size_t cap);

#endif /* INF_BASE_OS_PROCESS_END_H */
