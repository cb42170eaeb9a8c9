/*
 * infer_tables.h - the tables of a request being read: each complete
 *                  description becomes a row.
 *
 * Owner    The reader's memory; rows, names and texts are in the arena.
 * Thread   one at a time.
 * Units    bytes.
 * Errors   INVALID_ARG: a duplicate name, binary sizes whose sum overflows,
 *          members that make no valid row.
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
    uint32_t max;               /* limit of count, checked by the reader     */
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

/* t is zeroed; limits has no zeros. */
void inf_tables_init(inf_infer_tables_t *t, inf_arena_t *arena,
    const inf_infer_limits_t *limits);

/* The table for descriptions of object, inputs or outputs. */
const inf_infer_table_t *inf_tables_of(const inf_infer_tables_t *t,
    const inf_object_t *object);

/* Adds the tensor described by d, whose members have been taken. */
INF_CHECK inf_err_t *inf_tables_add(inf_infer_tables_t *t,
    const inf_description_t *d);

/* Adds a copy to the table of parameters. */
INF_CHECK inf_err_t *inf_tables_add_parameter(inf_infer_tables_t *t,
    const inf_infer_parameter_t *parameter);

/* Sets the request's counts and tables after everything was read. */
void inf_tables_close(inf_infer_tables_t *t);

#endif /* INF_PROTO_INFER_TABLES_H */
