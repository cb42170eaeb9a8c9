/*
 * grpc.h - the parts of the gRPC protocol around a message: prefix, status,
 *          timeout and encodings.
 *
 * Owner    The caller's memory.
 * Thread   any.
 * Units    bytes; times in ns.
 * Errors   false: invalid syntax.
 * Route    headers and trailers of a gRPC call.
 */

#ifndef INF_PROTO_GRPC_H
#define INF_PROTO_GRPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/slice.h"

#define INF_GRPC_PREFIX      5u             /* flag, 32-bit length           */
#define INF_GRPC_MAX_MESSAGE INT32_MAX      /* bytes, in both directions     */

typedef enum {
    INF_GRPC_OK                  = 0,
    INF_GRPC_CANCELLED           = 1,
    INF_GRPC_UNKNOWN             = 2,
    INF_GRPC_INVALID_ARGUMENT    = 3,
    INF_GRPC_DEADLINE_EXCEEDED   = 4,
    INF_GRPC_NOT_FOUND           = 5,
    INF_GRPC_ALREADY_EXISTS      = 6,
    INF_GRPC_PERMISSION_DENIED   = 7,
    INF_GRPC_RESOURCE_EXHAUSTED  = 8,
    INF_GRPC_FAILED_PRECONDITION = 9,
    INF_GRPC_ABORTED             = 10,
    INF_GRPC_OUT_OF_RANGE        = 11,
    INF_GRPC_UNIMPLEMENTED       = 12,
    INF_GRPC_INTERNAL            = 13,
    INF_GRPC_UNAVAILABLE         = 14,
    INF_GRPC_DATA_LOSS           = 15,
    INF_GRPC_UNAUTHENTICATED     = 16
} inf_grpc_status_t;

/* The gRPC status for an error code. */
inf_grpc_status_t inf_grpc_status(inf_err_code_t code);

/* ---- a message's prefix -------------------------------------------------- */

typedef struct {
    bool     compressed;
    uint32_t len;               /* of the message                            */
} inf_grpc_prefix_t;

/* Reads INF_GRPC_PREFIX bytes.  False: the flag is neither 0 nor 1. */
bool inf_grpc_read_prefix(const void *p, inf_grpc_prefix_t *prefix);
void inf_grpc_put_prefix(void *dst, const inf_grpc_prefix_t *prefix);

/* ---- headers ------------------------------------------------------------- */

/* The length of text as grpc-message: bytes other than visible ASCII are
   escaped. */
size_t inf_grpc_escaped_size(inf_slice_t text);

/* Writes inf_grpc_escaped_size bytes. */
void inf_grpc_escape(char *dst, inf_slice_t text);

/* Parses grpc-timeout; UINT64_MAX for a longer time. */
bool inf_grpc_timeout(inf_slice_t value, uint64_t *timeout_ns);

typedef enum {
    INF_GRPC_IDENTITY,
    INF_GRPC_DEFLATE,           /* zlib                                      */
    INF_GRPC_GZIP
} inf_grpc_encoding_t;

/* "identity", "deflate", "gzip". */
const char *inf_grpc_encoding_name(inf_grpc_encoding_t encoding);

/* Parses grpc-encoding. */
bool inf_grpc_encoding(inf_slice_t value, inf_grpc_encoding_t *encoding);

typedef enum {
    INF_GRPC_LEVEL_NONE,
    INF_GRPC_LEVEL_LOW,
    INF_GRPC_LEVEL_MEDIUM,
    INF_GRPC_LEVEL_HIGH
} inf_grpc_level_t;

/* The encoding of a reply to a client with this grpc-accept-encoding (empty:
   none). */
inf_grpc_encoding_t inf_grpc_reply_encoding(inf_slice_t accept,
    inf_grpc_level_t level);

#endif /* INF_PROTO_GRPC_H */
