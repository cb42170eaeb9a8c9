/*
 * json_doc.h - a JSON document as a tree; the only user of jansson.
 *
 * Owner    The caller's memory: parse, use, fini.  The tree belongs to the
 *          document: its values are borrowed, read-only, and freed by fini.
 * Thread   one at a time; fini may be called by another thread than parse.
 * Units    offsets are bytes from the text's first.
 * Errors   INVALID_ARG: invalid JSON; the text has line, column and offset of
 *          the end of the faulty token.  INVALID_ARG also: more than
 *          INF_JSON_DOC_VALUES values.
 * Route    small, complete control documents -> [json doc] -> their readers
 */

#ifndef INF_PROTO_JSON_DOC_H
#define INF_PROTO_JSON_DOC_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/buf.h"
#include "core/base/error.h"
#include "core/base/slice.h"

/* Limit of values, including nested ones: a value of two bytes takes a hundred
   bytes in a tree. */
#define INF_JSON_DOC_VALUES 65536u

/* A duplicate key is an error; otherwise the last counts. */
#define INF_JSON_DOC_NO_DUPLICATES 0x01u

typedef struct {
    json_t  *root;              /* object, array or scalar                   */
} inf_json_doc_t;

/* text is not kept; the caller calls fini. */
INF_CHECK inf_err_t *inf_json_doc_parse(inf_json_doc_t *doc, inf_slice_t text,
    unsigned flags);

/* The fault of a text that was not parsed and its position, in the words of
   the reader of inferences; NULL: the text is no wrong JSON. */
const char *inf_json_doc_fault(inf_slice_t text, size_t *offset);

/* doc may be {0} or already finished. */
void inf_json_doc_fini(inf_json_doc_t *doc);

/* Reads an integer from 0 on; false: v is not one. */
bool inf_json_doc_uint64(const json_t *v, uint64_t *out);

/* Reads a string; false: v is not one. */
bool inf_json_doc_string(const json_t *v, inf_slice_t *out);

/* Appends v as compact JSON; v NULL: out of memory. */
INF_CHECK inf_err_t *inf_json_doc_put(const json_t *v, inf_buf_t *out);

#endif /* INF_PROTO_JSON_DOC_H */
