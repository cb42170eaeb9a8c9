/*
 * string_check.h - checks the length prefixes of a request's BYTES inputs in
 *                  one pass.
 *
 * Owner    The request stays the caller's.
 * Thread   the thread that takes the payload, or the C API's caller; not the
 *          intake.
 * Units    elements, bytes.
 * Errors   INVALID_ARG naming the input, the expected and the actual value.
 * Route    normalise -> scheduler -> [string check] -> executor
 *
 * The time of the check depends on the client's data, so normalising only marks
 * the request (strings_unchecked), and the check runs on the thread that takes
 * the payload, or that asks a batch strategy about the request.  GPU buffers
 * are not checked.
 */

#ifndef INF_MODEL_STRING_CHECK_H
#define INF_MODEL_STRING_CHECK_H

#include "core/tensor/request.h"

/*
 * Checks the strings if req->strings_unchecked, which is cleared.  The error is
 * worded for the client, with the request's id.  If an ensemble made req from
 * malformed inputs of its client, the error is about those and has the cause
 * INF_CAUSE_STRINGS.
 */
INF_CHECK inf_err_t *inf_request_check_strings(inf_request_t *req);

#endif /* INF_MODEL_STRING_CHECK_H */
