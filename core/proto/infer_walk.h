/*
 * infer_walk.h - the descriptions inside a request (one input, one output, id
 *                and parameters) turned from small documents into structures.
 *
 * Owner    Texts and tables are copied into the arena; nothing keeps the
 *          document.
 * Thread   one at a time.
 * Units    bytes.
 * Errors   INVALID_ARG, UNSUPPORTED, naming the member and the tensor.
 * Route    request reader only.
 *
 * The reader has replaced each integer beyond int64 by an array of one
 * element, the number's place in the list of big numbers, and has refused
 * every container inside a container, so that the two can't be mixed up.
 */

#ifndef INF_PROTO_INFER_WALK_H
#define INF_PROTO_INFER_WALK_H

#include "core/proto/infer_request.h"
#include "core/proto/json_doc.h"
#include "core/proto/json_scan.h"

typedef struct {
    uint64_t integer;           /* when fits                                 */
    double   real;
    bool     fits;              /* in uint64                                 */
} inf_big_number_t;

/* What the reader found where an input's data should be. */
typedef struct {
    bool             present;
    bool             array;
    uint64_t         offset;
    uint64_t         length;
    inf_json_tally_t tally;
} inf_infer_span_t;

typedef struct {
    inf_arena_t            *arena;
    json_t                 *root;
    const inf_big_number_t *bigs;
    size_t                  big_count;
    uint64_t                max_bytes;      /* of a decoded tensor           */
    uint32_t                index;          /* of the input or output        */
} inf_walk_t;

INF_CHECK inf_err_t *inf_walk_input(const inf_walk_t *w,
    const inf_infer_span_t *span, inf_infer_input_t *out);

INF_CHECK inf_err_t *inf_walk_output(const inf_walk_t *w,
    inf_infer_output_t *out);

/* id and parameters. */
INF_CHECK inf_err_t *inf_walk_top(const inf_walk_t *w,
    inf_infer_request_t *out);

#endif /* INF_PROTO_INFER_WALK_H */
