/*
 * first_load.h - the result of loading the models and the cache at the start.
 *
 * Owner    none; each call asks nginx.
 * Thread   one.
 * Units    bytes, seconds.
 * Errors   A missing answer is not an error.
 * Route    launcher -> [first load] -> repository index, over a socket
 */

#ifndef TOOLS_FIRST_LOAD_H
#define TOOLS_FIRST_LOAD_H

#include <stdbool.h>
#include <stdio.h>

#include "options.h"

typedef enum {
    FIRST_LOAD_PENDING,     /* or no answer yet                              */
    FIRST_LOAD_GOOD,
    FIRST_LOAD_FAILED       /* a model or a repository failed                */
} first_load_t;

/* Asks the server at that Unix-domain socket; takes at most some seconds.
   Models of a remote repository are not waited for.  *index: the answer with
   the repository index, to be freed; NULL while the loads are pending. */
first_load_t first_load_ask(const char *path, const options_t *o,
    char **index);

/* Whether a model, a repository or the response cache failed; writes a line for
   each such model, and with --exit-on-error Triton's last line, which names the
   other causes. */
bool first_load_explain(FILE *f, const char *path, const options_t *o,
    first_load_t verdict, const char *index);

#endif /* TOOLS_FIRST_LOAD_H */
