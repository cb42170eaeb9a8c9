/*
 * infer_quick.h - the usual descriptions inside a request read straight from
 *                 their text, without a document.
 *
 * Owner    Names and tables are copied into the walk's arena, as the walk
 *          does; nothing keeps the text.
 * Thread   one at a time.
 * Units    bytes.
 * Errors   Those of inf_walk_source, and out of memory.  Whatever is wrong
 *          with the text, or only unusual, is declined (false): the walk
 *          reads it then and words the error.
 * Route    request reader -> [quick], or -> document -> walk.
 *
 * Understood are the members of KServe v2 without shared memory, in any order
 * and with any white space; strings of plain ASCII without escapes; integers
 * of up to 18 digits; true and false.  Anything else is declined, a member
 * that stands twice too, so what is taken means the same both ways.
 */

#ifndef INF_PROTO_INFER_QUICK_H
#define INF_PROTO_INFER_QUICK_H

#include "core/proto/infer_walk.h"

/*
 * The object whose members begin at text; *used: where its '}' is.  False:
 * declined, out, *used and *err are as they were.  True: *err says whether
 * out is good.  The walk's root is not looked at.
 */
bool inf_quick_input(const inf_walk_t *w, inf_slice_t text,
    const inf_infer_span_t *span, inf_infer_input_t *out, size_t *used,
    inf_err_t **err);

bool inf_quick_output(const inf_walk_t *w, inf_slice_t text,
    inf_infer_output_t *out, size_t *used, inf_err_t **err);

/* id and parameters; the other fields of out stay as they are. */
bool inf_quick_top(const inf_walk_t *w, inf_slice_t text,
    inf_infer_request_t *out, size_t *used, inf_err_t **err);

/* For tests that compare: whether a reader takes this way at all (it does);
   before the first feed. */
void inf_infer_reader_set_quick(inf_infer_reader_t *r, bool on);

#endif /* INF_PROTO_INFER_QUICK_H */
