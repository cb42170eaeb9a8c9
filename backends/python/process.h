/*
 * process.h - starts, watches and ends the process of an interpreter.
 *
 * Owner    The instance; end frees everything.
 * Thread   start: a thread that lives as long as the process, which ends with
 *          it.  The rest: the same thread.
 * Units    none.
 * Errors   start: no such program, or no process can be created.
 * Route    interpreter -> [process] -> kernel
 *
 * The process is started by posix_spawn, never by fork alone: the core has
 * threads and perhaps a driver's state.  It leads its own process group, which
 * is killed with it.
 */

#ifndef PY_PROCESS_H
#define PY_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

#include "../common/error.h"
#include "stderr_pipe.h"

typedef struct {
    pid_t pid;          /* 0: no process                                     */
    int   fd;           /* readable when it has ended                        */
    int   socket;       /* for descriptors                                   */
    py_stderr_t errors; /* closed by the end; its last text stays            */
} py_process_t;

/* Starts the process.  Arguments and variables end with NULL; the first
   argument is the program's path.  Channel, event, socket, this process's
   stderr and a pipe, whose text is logged with name, become descriptors 3 to 7;
   the pipe is its own stderr, too. */
BK_CHECK TRITONSERVER_Error *py_process_start(py_process_t *p,
    const char *name, const char *const *arguments, char *const *variables,
    int channel, int event);

/* Kills the process group, without waiting. */
void py_process_kill(const py_process_t *p);

/* Kills its group, waits some seconds for it and writes how it ended: "exited
   with status 1", or "ended" if that is unknown or there is no process.  Closes
   the descriptors. */
void py_process_end(py_process_t *p, char *how, size_t size);

#endif /* PY_PROCESS_H */
