/*
 * process.h - the process of an interpreter: started, watched, ended.
 *
 * Owner    The instance; end gives everything back.
 * Thread   start: the thread that lives as long as the process may (the
 *          process ends with it).  The rest: that one.
 * Units    none.
 * Errors   start: the program is not there, no process can be made.
 * Route    interpreter -> [process] -> kernel
 *
 * The process is started by posix_spawn, never by fork alone: the core has
 * threads and may have a driver's state.  It leads a group of its own, which
 * ends with it.
 */

#ifndef PY_PROCESS_H
#define PY_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

#include "../common/error.h"

typedef struct {
    pid_t pid;          /* 0: there is none                                  */
    int   fd;           /* readable: it has ended                            */
    int   socket;       /* its first words, and descriptors for it           */
} py_process_t;

/* Arguments and variables end with NULL; the first argument is the program's
   path.  The process has channel, event and socket as the descriptors 3, 4
   and 5. */
BK_CHECK TRITONSERVER_Error *py_process_start(py_process_t *p,
    const char *const *arguments, char *const *variables, int channel,
    int event);

void py_process_kill(const py_process_t *p);

/* Kills its group, waits for it and says how it ended: "exited with status 1".
   Without a process it does nothing. */
void py_process_end(py_process_t *p, char *how, size_t size);

/* The text that it has left on the socket, "" without one. */
void py_process_words(const py_process_t *p, char *text, size_t size);

#endif /* PY_PROCESS_H */
