/*
 * index_rows.h - parses the rows of a repository index from the server: an
 *                array of objects whose values are strings.
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
    const char *version;        /* "", like the others: no value             */
    const char *state;
    const char *reason;
} index_row_t;

/* Reads the next row at *at, which is overwritten and advanced; false: none. */
bool index_row_next(char **at, index_row_t *row);

/* Reads the next string likewise; NULL: none. */
char *index_string_next(char **at);

#endif /* TOOLS_INDEX_ROWS_H */
