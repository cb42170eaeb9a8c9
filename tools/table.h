/*
 * table.h - a text table in the format of Triton's log.
 *
 * Owner    The table copies its cells.
 * Thread   one.
 * Units    bytes of a cell's line.
 * Errors   die, out of memory.
 * Route    start log -> [table] -> stream
 */

#ifndef TOOLS_TABLE_H
#define TOOLS_TABLE_H

#include <stdio.h>

#define TABLE_COLUMNS_MAX 3

typedef struct {
    size_t   columns;
    size_t   width[TABLE_COLUMNS_MAX];
    char   **cells;             /* by row                                    */
    size_t   n;
} table_t;

/* Adds a row; one text for each column. */
void table_add(table_t *t, ...);

/* Writes the table; the first row is the head. */
void table_print(FILE *f, const table_t *t);

/* Frees the cells, not t. */
void table_free(table_t *t);

#endif /* TOOLS_TABLE_H */
