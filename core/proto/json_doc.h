/*
 * json_doc.h - a JSON document as a tree: the one door to jansson.
 *
 * Owner    The caller's memory: parse, use, fini.  The tree belongs to the
 *          document: its values are borrowed, read only, and gone after fini.
 * Thread   one at a time; fini may be called by another thread than parse.
 * Units    offsets are bytes from the text's first.
 * Errors   INVALID_ARG: no JSON; the text names line, column and offset at
 *          which reading stopped, right after what was wrong.  INVALID_ARG
 *          as well: more than INF_JSON_DOC_VALUES values.
 * Route    control documents that are small and are there as a whole.
 */

#ifndef INF_PROTO_JSON_DOC_H
#define INF_PROTO_JSON_DOC_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/slice.h"

/* Values of a document, those within others among them: a value of two bytes
   is a hundred in a tree. */
#define INF_JSON_DOC_VALUES 65536u

/* A key that stands twice in an object is an error; else the last counts. */
#define INF_JSON_DOC_NO_DUPLICATES 0x01u

typedef struct {
    json_t  *root;              /* object, array or scalar                   */
} inf_json_doc_t;

/* The text is not kept; doc is finished by the caller. */
INF_CHECK inf_err_t *inf_json_doc_parse(inf_json_doc_t *doc, inf_slice_t text,
    unsigned flags);

/* doc may be {0} or already finished. */
void inf_json_doc_fini(inf_json_doc_t *doc);

/* An integer that is not negative; false: v is none. */
bool inf_json_doc_uint64(const json_t *v, uint64_t *out);

/* A string's bytes; false: v is no string. */
bool inf_json_doc_string(const json_t *v, inf_slice_t *out);

#endif /* INF_PROTO_JSON_DOC_H */
