/*
 * infer_walk.h - the descriptions inside a request (one input, one output, id
 *                and parameters) turned from small documents into structures.
 *
 * Owner    Texts and tables are copied into the arena; nothing keeps the
 *          document.
 * Thread   one at a time.
 * Units    bytes.
 * Errors   INVALID_ARG, UNSUPPORTED, naming the member and the tensor.
 * Route    request reader, and its quick way for the rules at the end.
 *
 * The reader has replaced each integer beyond int64, NaN and Infinity by an
 * array of one element, the number's place in the list of big numbers, and has
 * rejected or left out containers in a container, so that the two aren't mixed
 * up.
 */

#ifndef INF_PROTO_INFER_WALK_H
#define INF_PROTO_INFER_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/*
 * The rules that hold however a description was read.
 */

/* False: more elements or bytes than int64 holds. */
bool inf_walk_elements(uint32_t datatype, const int64_t *shape, size_t count,
    uint64_t *elements);

/* Where the values of an input without shared memory are; out has its name,
   datatype and shape, and takes the rest. */
INF_CHECK inf_err_t *inf_walk_source(const inf_walk_t *w,
    const inf_infer_span_t *span, bool binary, uint64_t binary_size,
    inf_infer_input_t *out);

/* The k of a request as it goes to the core. */
uint32_t inf_walk_classification(uint64_t k);

#endif /* INF_PROTO_INFER_WALK_H */
