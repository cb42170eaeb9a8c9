/*
 * first_load.h - how the loads of the models at the start have ended.
 *
 * Owner    nobody: it asks nginx each time anew.
 * Thread   one.
 * Units    bytes, seconds.
 * Errors   No answer yet is no error.
 * Route    launcher -> [first load] -> repository index, over a socket
 */

#ifndef TOOLS_FIRST_LOAD_H
#define TOOLS_FIRST_LOAD_H

#include <stdbool.h>

typedef enum {
    FIRST_LOAD_PENDING,     /* or nobody answers yet                         */
    FIRST_LOAD_GOOD,
    FIRST_LOAD_FAILED       /* a model, or a repository                      */
} first_load_t;

/* Asks the server behind that Unix-domain socket; takes at most some seconds.
   remote: a repository is on another machine, whose models come later.
   *index: the answer with the repository index, to be freed; NULL while the
   loads are pending. */
first_load_t first_load_ask(const char *path, bool remote, char **index);

#endif /* TOOLS_FIRST_LOAD_H */
