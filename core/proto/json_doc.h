/*
 * json_doc.h - a JSON document as a tree: the one door to jansson.
 *
 * Owner    The caller's memory: parse, use, fini.  The tree belongs to the
 *          document: its values are borrowed, read only, and gone after fini.
 * Thread   one at a time; fini may be called by another thread than parse.
 * Units    offsets are bytes from the text's first.
 * Errors   INVALID_ARG: no JSON; the text names line, column and offset at
 *          which reading stopped, right after what was wrong.
 * Route    the HTTP codec reads headers of requests and control documents.
 *
 * A small document takes its nodes from its thread's bump memory: no malloc
 * per node, freed in one stroke.  jansson's allocation functions are global
 * to the process; ours are malloc and free for whoever has no document being
 * parsed, so that other users of jansson notice nothing.
 */

#ifndef INF_PROTO_JSON_DOC_H
#define INF_PROTO_JSON_DOC_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/slice.h"

/* Integers that int64 cannot hold are kept, see inf_json_doc_uint64; else
   they are an error. */
#define INF_JSON_DOC_BIG_INTEGERS  0x01u

/* A key that stands twice in an object is an error; else the last counts. */
#define INF_JSON_DOC_NO_DUPLICATES 0x02u

typedef struct inf_json_slot_s inf_json_slot_t;

typedef struct {
    json_t           *root;         /* object, array or scalar               */
    inf_json_slot_t  *slot;         /* bump memory in use, or NULL           */
} inf_json_doc_t;

/*
 * Takes jansson's allocation functions over.  The first document does it too;
 * a process where others use jansson on threads of their own (backends do)
 * calls this before there are any.
 */
void inf_json_doc_init(void);

INF_CHECK inf_err_t *inf_json_doc_parse(inf_json_doc_t *doc, inf_slice_t text,
    unsigned flags);

/* doc may be {0} or already finished. */
void inf_json_doc_fini(inf_json_doc_t *doc);

/* An integer from 0 to UINT64_MAX, also one beyond int64 that
   INF_JSON_DOC_BIG_INTEGERS kept; false: v is none. */
bool inf_json_doc_uint64(const json_t *v, uint64_t *out);

/* A string's bytes; false: v is no string (nor a kept big integer). */
bool inf_json_doc_string(const json_t *v, inf_slice_t *out);

#endif /* INF_PROTO_JSON_DOC_H */
