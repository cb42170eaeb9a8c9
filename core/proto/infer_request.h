/*
 * infer_request.h - reads the JSON header of a KServe v2 inference request
 *                   into tables.
 *
 * Owner    The caller owns the JSON bytes, the arena and the reader.  All
 *          tables and texts of inf_infer_request_t are in the arena; the
 *          reader may be freed once it is DONE.
 * Thread   one at a time.
 * Units    Offsets and lengths are bytes; offsets of data spans count from the
 *          JSON's first byte, of binary data from the JSON's end.
 * Errors   INVALID_ARG: a fault of the text, with its position.  UNSUPPORTED:
 *          a correlation id longer than 128 bytes.
 * Route    body -> [reader] -> data decoder -> record -> channel.
 *
 * The values of the tensors are checked for syntax, number and kind only;
 * infer_data.h decodes them.  Of the remaining text the positions of known
 * members are noted, without a copy.
 */

#ifndef INF_PROTO_INFER_REQUEST_H
#define INF_PROTO_INFER_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/include/channel.h"
#include "core/include/datatype.h"
#include "core/proto/infer_codec.h"

#define INF_INFER_MAX_JSON      (UINT64_C(64) << 20)
#define INF_INFER_MAX_JSON_SETTING                                            \
    "inference_max_json_size (--http-max-input-size)"
#define INF_INFER_MAX_TENSORS   16384u      /* inputs; outputs               */
#define INF_INFER_MAX_PIECE     (128u << 10)
#define INF_INFER_MAX_CORRELATION 128u

/* Zero in a field means the default above. */
typedef struct {
    uint64_t max_json_bytes;    /* of the JSON, and of a decoded tensor      */
    uint32_t max_inputs;
    uint32_t max_outputs;
    uint32_t max_piece_bytes;   /* of one input's or output's description, or id
                                   and parameters, without data; the longest
                                   part read in one turn                     */
} inf_infer_limits_t;

typedef struct {
    inf_slice_t name;
    uint32_t    type;           /* inf_parameter_type_t                      */
    inf_slice_t text;           /* STRING                                    */
    int64_t     integer;        /* INT; BOOL as 0 or 1                       */
    double      real;           /* DOUBLE                                    */
} inf_infer_parameter_t;

typedef enum {
    INF_SOURCE_JSON,            /* decode json_offset, json_length           */
    INF_SOURCE_BINARY,          /* byte_size bytes at binary_offset          */
    INF_SOURCE_SHM,             /* byte_size bytes in shm_region             */
    INF_SOURCE_RAW,             /* byte_size bytes, entry raw_entry of the
                                   message's raw_input_contents              */
    INF_SOURCE_CONTENTS         /* decode the contents in the description
                                   at json_offset, json_length of the text
                                   (infer_contents.h)                        */
} inf_infer_source_t;

typedef struct {
    inf_slice_t        name;            /* empty in raw mode                 */
    uint32_t           datatype;        /* inf_datatype_t                    */
    uint32_t           dim_count;
    const int64_t     *shape;
    uint64_t           element_count;   /* 0 for shape []                    */
    inf_infer_source_t source;
    uint64_t           byte_size;       /* of the tensor: decoded JSON, binary
                                           data or shared memory             */
    uint32_t           raw_entry;
    uint64_t           json_offset;     /* of '[' in the JSON                */
    uint64_t           json_length;     /* including ']'; 0: no data, nothing to
                                           decode                            */
    uint64_t           binary_offset;   /* from the end of the JSON          */
    inf_slice_t        shm_region;
    uint64_t           shm_offset;
} inf_infer_input_t;

typedef struct {
    inf_slice_t name;
    bool        binary;                 /* binary_data                       */
    uint32_t    classification;         /* k, 0: off                         */
    inf_slice_t shm_region;             /* empty: none                       */
    uint64_t    shm_offset;
    uint64_t    shm_byte_size;
} inf_infer_output_t;

typedef struct {
    inf_slice_t                  id;
    uint16_t                     flags;         /* INF_REQUEST_*             */
    bool                         binary_data_output;
    uint64_t                     correlation_id;
    inf_slice_t                  correlation_text;
    uint64_t                     priority;
    uint64_t                     timeout_us;
    const inf_infer_input_t     *inputs;
    uint32_t                     input_count;
    const inf_infer_output_t    *outputs;       /* in the request's order    */
    uint32_t                     output_count;
    const inf_infer_parameter_t *parameters;    /* custom ones only          */
    uint32_t                     parameter_count;
    uint64_t                     binary_size;   /* sum of all binary inputs  */
} inf_infer_request_t;

typedef struct inf_infer_reader_s inf_infer_reader_t;

/* Allocates the reader; limits may be NULL.  Texts and tables are allocated in
   arena, which must outlive the request. */
INF_CHECK inf_err_t *inf_infer_reader_new(inf_infer_reader_t **out,
    inf_arena_t *arena, const inf_infer_limits_t *limits);

/* r may be NULL. */
void inf_infer_reader_free(inf_infer_reader_t *r);

/*
 * Continues reading.  json is the first byte of the JSON, avail the number of
 * bytes present, last: there are no more.  Between calls the bytes read so far
 * must not change; their address may.  AGAIN with inf_infer_reader_offset() ==
 * avail: more bytes are needed; otherwise call again.  DONE only if last is
 * true.
 */
INF_CHECK inf_codec_t inf_infer_reader_feed(inf_infer_reader_t *r,
    const char *json, size_t avail, bool last, size_t budget,
    inf_err_t **err);

/* The error of JSON beyond the limit, which setting changes. */
inf_err_t *inf_infer_json_long(uint64_t limit, const char *setting);

/* The number of bytes read. */
size_t inf_infer_reader_offset(const inf_infer_reader_t *r);

/* After DONE the request, whose tables are in the arena.  After ERROR only its
   id, empty if not read. */
inf_infer_request_t inf_infer_reader_request(const inf_infer_reader_t *r);

/* The request of raw binary mode: one nameless input of body_len bytes. */
INF_CHECK inf_err_t *inf_infer_request_raw(inf_infer_request_t *out,
    inf_arena_t *arena, uint64_t body_len);

/* Checks that the binary inputs have exactly the tail_len bytes after the JSON;
   model is for the error's text. */
INF_CHECK inf_err_t *inf_infer_request_check_tail(
    const inf_infer_request_t *req, uint64_t tail_len, inf_slice_t model);

#endif /* INF_PROTO_INFER_REQUEST_H */
