/*
 * messages.h - requests and responses as messages: writes requests for the
 *              interpreter, and reads its responses.
 *
 * Owner    Requests and responses stay the caller's.
 * Thread   the thread with the instance's consumer role.
 * Units    bytes.
 * Errors   write: an unreadable input, or no room.  fill: a tensor whose name,
 *          datatype, shape or size do not match.
 * Route    requests -> [messages] -> value
 */

#ifndef PY_MESSAGES_H
#define PY_MESSAGES_H

#include "../common/request.h"
#include "link.h"

#define PY_DIMS_MAX 64u

/* A tensor described by the interpreter. */
typedef struct {
    const char            *name;
    TRITONSERVER_DataType  datatype;
    uint32_t               dims_count;
    int64_t                dims[PY_DIMS_MAX];
    py_data_t              data;
} py_tensor_t;

/* Frees the blocks of a message that was not sent. */
void py_blocks_free(py_link_t *link, const void *message, size_t len);

/* Reads name, datatype, shape and data, whose len_bytes match. */
BK_CHECK TRITONSERVER_Error *py_tensor_read(py_tensor_t *t,
    py_reader_t *r);

/* Reads [error or none, [tensor...], [[key, value]...]] into response; an error
   is [code, text]. */
BK_CHECK TRITONSERVER_Error *py_response_fill(
    TRITONBACKEND_Response *response, py_link_t *link, py_reader_t *r);

/* read: *err is the error that follows, or none.  false: neither. */
bool py_error_read(py_reader_t *r, TRITONSERVER_Error **err);
void py_error_write(py_writer_t *w, TRITONSERVER_Error *err);

/* Sends the reply to a call: [error or none, value]; value NULL: none.  err
   stays the caller's. */
void py_reply(py_link_t *link, uint32_t slot, TRITONSERVER_Error *err,
    const py_writer_t *value);

/* Writes a parameter's value of the server's interface. */
void py_parameter_write(py_writer_t *w, TRITONSERVER_ParameterType type,
    const void *value);

/* The error of an invalid message. */
BK_CHECK TRITONSERVER_Error *py_error_message(const char *what);

#endif /* PY_MESSAGES_H */
