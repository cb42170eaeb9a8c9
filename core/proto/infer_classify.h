/*
 * infer_classify.h - the classification extension: the k largest elements of
 *                    each batch row as texts "value:index[:label]".
 *
 * Owner    The caller owns the tensor, labels and pool; the classifier and
 *          its result live in the pool.
 * Thread   one at a time.
 * Units    elements and bytes.
 * Errors   INVALID_ARG: a datatype without order, too many elements.
 * Route    response writer -> [classifier] -> a BYTES tensor.
 *
 * Descending; equal values in the order of their index; NaN comes last.
 */

#ifndef INF_PROTO_INFER_CLASSIFY_H
#define INF_PROTO_INFER_CLASSIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/proto/infer_codec.h"

#define INF_CLASSIFY_MAX_ELEMENTS 1000000u

/* Up to so many places the labels may be those of the result alone. */
#define INF_CLASSIFY_RANKED_MAX   4096u

typedef struct {
    inf_slice_t        name;        /* for error texts                       */
    uint32_t           datatype;
    uint32_t           dim_count;
    const int64_t     *shape;
    bool               batched;     /* shape[0] is the batch                 */
    const void        *data;
    uint64_t           data_len;
    uint32_t           k;           /* > 0                                   */
    const inf_slice_t *labels;      /* by index, missing ones add nothing; or by
                                       place in the result, if ranked, as many
                                       as places and at most
                                       INF_CLASSIFY_RANKED_MAX               */
    uint32_t           label_count;
    bool               ranked;      /* the labels may be by place            */
} inf_classify_source_t;

typedef struct inf_classifier_s inf_classifier_t;

/* Copies src, but not its bytes and labels; memory comes from pool. */
INF_CHECK inf_err_t *inf_classifier_new(inf_classifier_t **out,
    const inf_classify_source_t *src, inf_arena_t *pool);

/* Processes about budget elements.  AGAIN: call again. */
INF_CHECK inf_codec_t inf_classifier_run(inf_classifier_t *c, size_t budget,
    inf_err_t **err);

/* Number of elements of the result, known from the start. */
uint32_t inf_classifier_places(const inf_classifier_t *c);

/* Instead of run: the index in its row of the element at each place. */
const uint32_t *inf_classifier_select(inf_classifier_t *c);

/* Shape of the result, known from the start: [batch,] min(k, n). */
uint32_t inf_classifier_shape(const inf_classifier_t *c,
    const int64_t **shape);

/* The BYTES tensor, after DONE. */
const void *inf_classifier_result(const inf_classifier_t *c, uint64_t *len);

#endif /* INF_PROTO_INFER_CLASSIFY_H */
