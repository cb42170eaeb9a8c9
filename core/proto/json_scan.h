/*
 * json_scan.h - a JSON document as events; reading can stop at any byte and
 *               continue.
 *
 * Owner    The caller's memory; there is nothing to free.
 * Thread   one at a time.
 * Units    Offsets are bytes from the text's first byte.
 * Errors   INF_JSON_ERROR: s->reason is the fault, s->tokens.pos its position.
 * Route    tokenizer -> [scan] -> reader of inference requests.
 *
 * The scanner accepts RFC 8259 as restricted by json_token.h, and on request
 * the bare words NaN, Infinity, -Infinity, Inf and -Inf.
 */

#ifndef INF_PROTO_JSON_SCAN_H
#define INF_PROTO_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/proto/json_token.h"

#define INF_JSON_MAX_DEPTH 128u

typedef enum {
    INF_JSON_AGAIN,             /* more bytes are needed                     */
    INF_JSON_ERROR,
    INF_JSON_OBJECT_BEGIN,
    INF_JSON_OBJECT_END,
    INF_JSON_ARRAY_BEGIN,
    INF_JSON_ARRAY_END,
    INF_JSON_KEY,
    INF_JSON_STRING,
    INF_JSON_NUMBER,
    INF_JSON_TRUE,
    INF_JSON_FALSE,
    INF_JSON_NULL,
    INF_JSON_NONFINITE,         /* a bare word                               */
    INF_JSON_END                /* the text is complete                      */
} inf_json_event_t;

/* Kinds of leaves that inf_json_scan_skip met in an array. */
#define INF_JSON_KIND_STRING  0x01u
#define INF_JSON_KIND_NUMBER  0x02u
#define INF_JSON_KIND_BOOL    0x04u
#define INF_JSON_KIND_NULL    0x08u
#define INF_JSON_KIND_OBJECT  0x10u

typedef struct {
    uint64_t count;             /* of leaves                                 */
    uint64_t string_bytes;      /* of all strings, unescaped                 */
    uint32_t kinds;             /* INF_JSON_KIND_*                           */
} inf_json_tally_t;

typedef struct {
    inf_json_tokens_t tokens;   /* the last token is the event's: a string with
                                   quotes, a bracket, a scalar               */
    bool              nonfinite;    /* set by the caller: bare words allowed */
    const char       *reason;
    bool              too_deep; /* max_depth is the fault                    */

    /* private to the scanner */
    uint8_t           expect;
    char              closing;      /* of the open container: } or ]         */
    uint32_t          depth;
    uint32_t          max_depth;
    uint64_t          objects[2];   /* bit per level: an object, not an array */
} inf_json_scan_t;

/* max_depth is at most INF_JSON_MAX_DEPTH. */
void inf_json_scan_init(inf_json_scan_t *s, uint32_t max_depth);

/*
 * Returns the next event.  text is the first byte, end limits this call,
 * final: there are no bytes after end.
 */
inf_json_event_t inf_json_scan_next(inf_json_scan_t *s, const char *text,
    const char *end, bool final);

/*
 * After an INF_JSON_ARRAY_BEGIN or OBJECT_BEGIN: reads up to its end and
 * returns that event, AGAIN or ERROR; depth is that of the scan right after
 * the begin.  tally accumulates over calls; the caller zeroes it first.
 */
inf_json_event_t inf_json_scan_skip(inf_json_scan_t *s, const char *text,
    const char *end, bool final, uint32_t depth, inf_json_tally_t *tally);

#endif /* INF_PROTO_JSON_SCAN_H */
