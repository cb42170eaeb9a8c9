/*
 * string_check.h - the length prefixes of a request's BYTES inputs: one walk
 *                  over all of them.
 *
 * Owner    The request stays the caller's.
 * Thread   the thread that takes the payload, or the C API's caller; never
 *          the intake.
 * Units    elements, bytes.
 * Errors   INVALID_ARG naming the input, what was expected and what came.
 * Route    normalise -> scheduler -> [string check] -> executor
 *
 * The walk takes time by what the client sends, so normalising only notes
 * that it is due (strings_unchecked), and the thread that takes the payload, or
 * asks a batch strategy about the request, does it.  GPU buffers are
 * taken on trust.
 */

#ifndef INF_MODEL_STRING_CHECK_H
#define INF_MODEL_STRING_CHECK_H

#include "core/tensor/request.h"

/*
 * Nothing to do unless req->strings_unchecked, which is off afterwards.  The
 * error is as the client is told it, with the request's id.  If an ensemble
 * made req and its client's inputs are malformed, the error is about those and
 * has the cause INF_CAUSE_STRINGS.
 */
INF_CHECK inf_err_t *inf_request_check_strings(inf_request_t *req);

#endif /* INF_MODEL_STRING_CHECK_H */
