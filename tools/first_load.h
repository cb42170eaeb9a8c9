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

#include "index_rows.h"
#include "options.h"

typedef enum {
    FIRST_LOAD_PENDING,     /* or nobody answers yet                         */
    FIRST_LOAD_GOOD,
    FIRST_LOAD_FAILED       /* a model, or a repository                      */
} first_load_t;

/* Asks the server behind that Unix-domain socket; takes at most some seconds.
   Where a repository is on another machine, its models come later.  *index: the
   answer with the repository index, to be freed; NULL while the loads are
   pending. */
first_load_t first_load_ask(const char *path, const options_t *o,
    char **index);

/* Whether the start loads the row's model: not one that a request may have
   loaded since. */
bool first_load_has(const options_t *o, const index_row_t *row);

#endif /* TOOLS_FIRST_LOAD_H */
