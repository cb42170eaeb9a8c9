/*
 * text_format.h - the protobuf text format, by descriptor: config.pbtxt.
 *
 * Owner    The caller frees the message with inf_message_free.
 * Thread   any.
 * Units    lines and columns count from 1, columns are bytes.
 * Errors   INVALID_ARG, "<file>:<line>:<column>: <field>: <what is wrong>".
 * Route    repository reads a model's configuration; the core its own.
 *
 * A singular field may be given once, maps keep the last entry of a key,
 * unnamed enum numbers are kept, strings need not be UTF-8.  "\0" in a string
 * field is an error.
 */

#ifndef INF_PROTO_TEXT_FORMAT_H
#define INF_PROTO_TEXT_FORMAT_H

#include "core/base/buf.h"
#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/proto/message.h"

/* Parses a new message, which the caller frees; file_name is for errors. */
INF_CHECK inf_err_t *inf_text_parse(const ProtobufCMessageDescriptor *desc,
    inf_slice_t text, const char *file_name, ProtobufCMessage **out);

/* The position of a field in a text. */
typedef struct {
    size_t  line;
    size_t  column;
} inf_text_place_t;

/*
 * Finds key ("input[0].dims") in a text that inf_text_parse accepted.  A
 * missing key has the position of the nearest enclosing field, at the top 1:1.
 * An entry of a map is named by its key, parameters["x"], and all its fields
 * have its position.
 */
INF_CHECK inf_err_t *inf_text_locate(const ProtobufCMessageDescriptor *desc,
    inf_slice_t text, inf_slice_t key, inf_text_place_t *out);

/* Appends m as text that inf_text_parse reads back as the same message. */
INF_CHECK inf_err_t *inf_text_print(const ProtobufCMessage *m,
    inf_buf_t *out);

#endif /* INF_PROTO_TEXT_FORMAT_H */
