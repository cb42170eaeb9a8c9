/*
 * infer_tables.h - the tables of a request that is being read: each complete
 *                  description becomes a row.
 *
 * Owner    The reader's memory; rows, names and texts are the arena's.
 * Thread   one at a time.
 * Units    bytes.
 * Errors   INVALID_ARG, UNSUPPORTED: what the walk finds, a name that stands
 *          twice, binary sizes whose sum overflows.
 * Route    request reader -> [tables] -> quick way, or document and walk.
 */

#ifndef INF_PROTO_INFER_TABLES_H
#define INF_PROTO_INFER_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/proto/infer_names.h"
#include "core/proto/infer_request.h"
#include "core/proto/infer_walk.h"

typedef enum {
    INF_PIECE_INPUT,
    INF_PIECE_OUTPUT,
    INF_PIECE_TOP               /* id and parameters                         */
} inf_piece_kind_t;

/* One description; views. */
typedef struct {
    inf_piece_kind_t        kind;
    inf_slice_t             text;       /* from its '{' on                   */
    const inf_infer_span_t *span;       /* INPUT: where its data is          */
    const inf_big_number_t *bigs;
    size_t                  big_count;
} inf_piece_t;

typedef struct {
    void    *items;
    size_t   item_size;
    uint32_t count;
    uint32_t capacity;
    uint32_t max;               /* of count, watched by the reader           */
} inf_infer_table_t;

typedef struct {
    inf_arena_t         *arena;
    uint64_t             max_bytes;     /* of a decoded tensor               */
    bool                 quick;         /* try the quick way first           */
    inf_infer_table_t    inputs;
    inf_infer_table_t    outputs;
    inf_names_t          input_names;
    inf_names_t          output_names;
    inf_infer_request_t  request;
} inf_infer_tables_t;

/* t is zeroed; limits have no zeroes. */
void inf_tables_init(inf_infer_tables_t *t, inf_arena_t *arena,
    const inf_infer_limits_t *limits);

/* True: the piece is usual, *err says whether it became a row, its '}' stands
   *used bytes behind its '{'.  False: nothing has happened. */
bool inf_tables_take(inf_infer_tables_t *t, const inf_piece_t *piece,
    size_t *used, inf_err_t **err);

/* By a document; the text ends with the piece. */
INF_CHECK inf_err_t *inf_tables_walk(inf_infer_tables_t *t,
    const inf_piece_t *piece);

/* The request's counts and tables, once everything has been read. */
void inf_tables_close(inf_infer_tables_t *t);

#endif /* INF_PROTO_INFER_TABLES_H */
