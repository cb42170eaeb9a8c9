/*
 * infer_tables.h - the tables of a request that is being read: each complete
 *                  description becomes a row.
 *
 * Owner    The reader's memory; rows, names and texts are the arena's.
 * Thread   one at a time.
 * Units    bytes.
 * Errors   INVALID_ARG: a name that stands twice, binary sizes whose sum
 *          overflows, what makes no row of the members.
 * Route    request reader -> members -> [tables] -> record.
 */

#ifndef INF_PROTO_INFER_TABLES_H
#define INF_PROTO_INFER_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/proto/infer_members.h"
#include "core/proto/infer_names.h"
#include "core/proto/infer_request.h"

typedef struct {
    void    *items;
    size_t   item_size;
    uint32_t count;
    uint32_t capacity;
    uint32_t max;               /* of count, watched by the reader           */
} inf_infer_table_t;

typedef struct {
    inf_arena_t         *arena;
    inf_infer_table_t    inputs;
    inf_infer_table_t    outputs;
    inf_infer_table_t    parameters;    /* custom ones                       */
    inf_names_t          input_names;
    inf_names_t          output_names;
    inf_infer_request_t  request;
} inf_infer_tables_t;

/* t is zeroed; limits have no zeroes. */
void inf_tables_init(inf_infer_tables_t *t, inf_arena_t *arena,
    const inf_infer_limits_t *limits);

/* The table that descriptions of object go to, inputs or outputs. */
const inf_infer_table_t *inf_tables_of(const inf_infer_tables_t *t,
    const inf_object_t *object);

/* Adds the tensor whose members d has taken. */
INF_CHECK inf_err_t *inf_tables_add(inf_infer_tables_t *t,
    const inf_description_t *d);

/* Adds a copy to the table of parameters. */
INF_CHECK inf_err_t *inf_tables_add_parameter(inf_infer_tables_t *t,
    const inf_infer_parameter_t *parameter);

/* The request's counts and tables, once everything has been read. */
void inf_tables_close(inf_infer_tables_t *t);

#endif /* INF_PROTO_INFER_TABLES_H */
