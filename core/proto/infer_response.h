/*
 * infer_response.h - a response record written as KServe v2 JSON, with the
 *                    list of the binary tensors that follow it; or as the JSON
 *                    of generate.
 *
 * Owner    The caller owns the record's private copy, the mapped arena and
 *          the pool; all must outlive the writer, which lives in the pool.
 * Thread   one at a time.
 * Units    bytes.
 * Errors   INTERNAL: the record or a BYTES tensor is inconsistent.
 *          INVALID_ARG: FP16, BF16 in JSON; classification that can't be.
 *          UNSUPPORTED: a parameter of type BYTES.
 * Route    completion ring -> record check -> [writer] -> socket.
 *
 * The life: check, new, prepare until DONE, then (optionally) measure until
 * DONE, then fill as the socket drains, then send each binary output.  All
 * errors that the response's content can cause come out of new and prepare,
 * so a status can still be chosen.
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

/* UNSUPPORTED where one is of type BYTES, which no protocol carries. */
INF_CHECK inf_err_t *inf_response_check_parameters(
    const inf_response_record_t *rec);

/* A classifier of one of the record's outputs, which lies in the arena. */
INF_CHECK inf_err_t *inf_response_classifier(inf_classifier_t **out,
    const inf_response_record_t *rec, const inf_response_output_t *output,
    const void *arena_base, uint32_t k, inf_arena_t *pool);

/*
 * The JSON of generate is one object of outputs and response parameters by
 * name, model_name, model_version and id, in the order of the names.  Where
 * two have one name the response's own word goes before a parameter, that
 * before an output.  An output of one element is that element, any other a
 * flat array.
 */
typedef enum {
    INF_RESPONSE_INFER,
    INF_RESPONSE_GENERATE,
    INF_RESPONSE_EVENT          /* of generate, as a server-sent event       */
} inf_response_form_t;

/* The outputs that the client asked for; from the request. */
typedef struct {
    const inf_infer_output_t *outputs;      /* the listed ones               */
    uint32_t                  output_count;
    bool                      binary_data_output;   /* for those not listed  */
    bool                      raw;          /* raw mode: everything binary   */
    inf_response_form_t       form;         /* of generate: all others are 0 */
} inf_response_options_t;

typedef enum {
    INF_DELIVER_JSON,
    INF_DELIVER_BINARY,
    INF_DELIVER_SHM,            /* lies in shared memory: nothing to send    */
    INF_DELIVER_NONE            /* of generate: its name is another's        */
} inf_delivery_t;

typedef struct inf_response_writer_s inf_response_writer_t;

/* rec is checked and its status INF_OK.  options may be NULL: nothing listed,
   all JSON.  The writer and its tables come from pool. */
INF_CHECK inf_err_t *inf_response_writer_new(inf_response_writer_t **out,
    const inf_response_record_t *rec, const void *arena_base,
    const inf_response_options_t *options, inf_arena_t *pool);

/* Classifies, and checks the lengths inside BYTES tensors.  Call until DONE
   before anything below. */
INF_CHECK inf_codec_t inf_response_prepare(inf_response_writer_t *w,
    size_t budget, inf_err_t **err);

/* Counts the JSON bytes; DONE sets *json_len.  Only for those who need the
   number before they send: with no JSON data it is as cheap as writing. */
INF_CHECK inf_codec_t inf_response_measure(inf_response_writer_t *w,
    size_t budget, uint64_t *json_len, inf_err_t **err);

/* Writes the next bytes of the JSON, at most cap.  AGAIN: buf is full. */
INF_CHECK inf_codec_t inf_response_fill(inf_response_writer_t *w, void *buf,
    size_t cap, size_t *written, inf_err_t **err);

/* Outputs of the response. */
uint32_t inf_response_output_count(const inf_response_writer_t *w);

/* How output i is delivered; for BINARY its bytes, to be sent in the order of
   i right behind the JSON (arena or pool memory; len may be 0). */
inf_delivery_t inf_response_output(const inf_response_writer_t *w, uint32_t i,
    const void **data, uint64_t *len);

/* Sum of all binary outputs.  Not 0: the body is application/octet-stream and
   carries Inference-Header-Content-Length. */
uint64_t inf_response_binary_size(const inf_response_writer_t *w);

/* Whether any output's values are in the JSON: if not, the JSON is short. */
bool inf_response_has_json_data(const inf_response_writer_t *w);

#endif /* INF_PROTO_INFER_RESPONSE_H */
