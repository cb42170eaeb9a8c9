/*
 * index_rows.h - the rows of a repository index, as the server writes them:
 *                an array of objects whose values are strings.
 *
 * Owner    A row's texts point into the index, which is decoded in place.
 * Thread   one.
 * Units    none.
 * Errors   Any other line ends the rows.
 * Route    own socket -> [index rows] -> start log
 */

#ifndef TOOLS_INDEX_ROWS_H
#define TOOLS_INDEX_ROWS_H

#include <stdbool.h>

typedef struct {
    const char *name;
    const char *version;        /* "", as the others: it has none            */
    const char *state;
    const char *reason;
} index_row_t;

/* The next row of the text at *at, which it writes over and moves on; false:
   there is none. */
bool index_row_next(char **at, index_row_t *row);

/* The next string of the text likewise; NULL: there is none. */
char *index_string_next(char **at);

#endif /* TOOLS_INDEX_ROWS_H */
