/*
 * infer_response.h - writes a response record as KServe v2 JSON, with a list
 *                    of the binary tensors that follow it, or as the JSON of
 *                    generate.
 *
 * Owner    The caller owns the record's private copy, the mapped arena and the
 *          pool; all must outlive the writer, which lives in the pool.
 * Thread   one at a time.
 * Units    bytes.
 * Errors   INTERNAL: the record or a BYTES tensor is inconsistent.
 *          INVALID_ARG: FP16, BF16 in JSON; impossible classification.
 *          UNSUPPORTED: a parameter of type BYTES.
 * Route    completion ring -> record check -> [writer] -> socket.
 *
 * Order of calls: check, new, prepare until DONE, optionally measure until
 * DONE, then fill as the socket drains, then send each binary output.  All
 * errors due to the response's content come from new and prepare, so a status
 * can still be chosen.
 */

#ifndef INF_PROTO_INFER_RESPONSE_H
#define INF_PROTO_INFER_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/include/channel.h"
#include "core/proto/infer_classify.h"
#include "core/proto/infer_codec.h"
#include "core/proto/infer_request.h"

/* A text of a checked record (core/wire/response_record.h). */
inf_slice_t inf_response_text(const inf_response_record_t *rec, inf_ref_t ref);

/* UNSUPPORTED if a parameter has type BYTES, which no protocol can carry. */
INF_CHECK inf_err_t *inf_response_check_parameters(
    const inf_response_record_t *rec);

/* Creates a classifier of one of the record's outputs, whose data is in the
   arena. */
INF_CHECK inf_err_t *inf_response_classifier(inf_classifier_t **out,
    const inf_response_record_t *rec, const inf_response_output_t *output,
    const void *arena_base, uint32_t k, inf_arena_t *pool);

/*
 * The JSON of generate is one object of outputs and response parameters by
 * name, model_name, model_version and id, sorted by name.  Of two with the
 * same name the response's own field is kept before a parameter, and a
 * parameter before an output.  An output of one element is that element, any
 * other a flat array.
 */
typedef enum {
    INF_RESPONSE_INFER,
    INF_RESPONSE_GENERATE,
    INF_RESPONSE_EVENT          /* of generate, as a server-sent event       */
} inf_response_form_t;

/* The outputs requested by the client. */
typedef struct {
    const inf_infer_output_t *outputs;      /* the listed ones               */
    uint32_t                  output_count;
    bool                      binary_data_output;   /* for outputs not listed */
    bool                      raw;          /* raw mode: all binary          */
    inf_response_form_t       form;         /* of generate: the other fields are
                                               0                             */
} inf_response_options_t;

typedef enum {
    INF_DELIVER_JSON,
    INF_DELIVER_BINARY,
    INF_DELIVER_SHM,            /* in shared memory: nothing to send         */
    INF_DELIVER_NONE            /* of generate: another member has its name  */
} inf_delivery_t;

typedef struct inf_response_writer_s inf_response_writer_t;

/* rec is checked and its status INF_OK.  options NULL: nothing listed, all
   JSON.  The writer and its tables are allocated in pool. */
INF_CHECK inf_err_t *inf_response_writer_new(inf_response_writer_t **out,
    const inf_response_record_t *rec, const void *arena_base,
    const inf_response_options_t *options, inf_arena_t *pool);

/* Classifies, and checks the lengths in BYTES tensors.  Called until DONE
   before the functions below. */
INF_CHECK inf_codec_t inf_response_prepare(inf_response_writer_t *w,
    size_t budget, inf_err_t **err);

/* Counts the JSON bytes; DONE sets *json_len.  Needed only if the length is
   sent first: without JSON data it costs as much as writing. */
INF_CHECK inf_codec_t inf_response_measure(inf_response_writer_t *w,
    size_t budget, uint64_t *json_len, inf_err_t **err);

/* Writes the next bytes of the JSON, at most cap.  AGAIN: buf is full. */
INF_CHECK inf_codec_t inf_response_fill(inf_response_writer_t *w, void *buf,
    size_t cap, size_t *written, inf_err_t **err);

/* The number of outputs of the response. */
uint32_t inf_response_output_count(const inf_response_writer_t *w);

/* The delivery of output i; for BINARY also its bytes, sent in the order of i
   after the JSON (arena or pool memory; len may be 0). */
inf_delivery_t inf_response_output(const inf_response_writer_t *w, uint32_t i,
    const void **data, uint64_t *len);

/* Sum of all binary outputs.  If not 0 the body is application/octet-stream and
   has Inference-Header-Content-Length. */
uint64_t inf_response_binary_size(const inf_response_writer_t *w);

/* Whether any output's values are in the JSON; otherwise the JSON is short. */
bool inf_response_has_json_data(const inf_response_writer_t *w);

#endif /* INF_PROTO_INFER_RESPONSE_H */
