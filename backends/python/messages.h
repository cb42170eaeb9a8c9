/*
 * messages.h - requests and responses as messages: a request is written for
 *              the interpreter, and what it says of a response is read.
 *
 * Owner    Requests and responses stay the caller's.
 * Thread   the one that has the instance's consumer role.
 * Units    bytes.
 * Errors   write: an input that can't be read or has no room.  fill: a tensor
 *          whose name, datatype, shape or size don't fit each other.
 * Route    requests -> [messages] -> value
 */

#ifndef PY_MESSAGES_H
#define PY_MESSAGES_H

#include "../common/request.h"
#include "link.h"

#define PY_DIMS_MAX 64u

/* A tensor as the interpreter describes it. */
typedef struct {
    const char            *name;
    TRITONSERVER_DataType  datatype;
    uint32_t               dims_count;
    int64_t                dims[PY_DIMS_MAX];
    py_data_t              data;
} py_tensor_t;

/* Gives back the blocks of a message that was not sent. */
void py_blocks_free(py_link_t *link, const void *message, size_t len);

/* Data behind its name, datatype and shape; len_bytes fit them. */
BK_CHECK TRITONSERVER_Error *py_tensor_read(py_tensor_t *t,
    py_reader_t *r);

/* [error or none, [tensor...], [[key, value]...]]; of an error [code, text] */
BK_CHECK TRITONSERVER_Error *py_response_fill(
    TRITONBACKEND_Response *response, py_link_t *link, py_reader_t *r);

/* The error that comes, or none: *err.  false: neither. */
bool py_error_read(py_reader_t *r, TRITONSERVER_Error **err);
void py_error_write(py_writer_t *w, TRITONSERVER_Error *err);

/* The reply to a call: [error or none, value]; NULL: none.  err stays the
   caller's. */
void py_reply(py_link_t *link, uint32_t slot, TRITONSERVER_Error *err,
    const py_writer_t *value);

/* A parameter's value, as the server's interface gives it. */
void py_parameter_write(py_writer_t *w, TRITONSERVER_ParameterType type,
    const void *value);

/* A message that is none of what may come here. */
BK_CHECK TRITONSERVER_Error *py_error_message(const char *what);

#endif /* PY_MESSAGES_H */
