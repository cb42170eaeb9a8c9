/*
 * call_spec.h - the names of an AOTInductor package's inputs and outputs.
 *
 * Owner    pt_call_spec_read fills tables of the caller's signature, which it
 *          ends as such.
 * Thread   any.
 * Units    none.
 * Errors   INVALID_ARG: a text that is none, with the place.
 * Route    package's library -> [call_spec] -> names
 *
 * PyTorch describes what forward() takes and gives as a tree in JSON.  Its
 * leaves are the tensors, in the order in which the library takes them; the
 * way to a leaf is its name, as Triton writes it: ARGS[0], KWARGS[mask],
 * RESULT, RESULT[1].
 */

#ifndef PT_CALL_SPEC_H
#define PT_CALL_SPEC_H

#include "engine.h"

/* Sets the names of parameters and outputs from the two specifications. */
BK_CHECK TRITONSERVER_Error *pt_call_spec_read(pt_signature_t *s,
    const char *in, const char *out);

#endif /* PT_CALL_SPEC_H */
