/*
 * infer_record.h - an inference request as the flat record that crosses to
 *                  the core.
 *
 * Owner    the caller's memory.
 * Thread   any.
 * Units    bytes; offsets inside the record count from its first byte.
 * Errors   INVALID_ARG: the record would exceed INF_RECORD_MAX.
 * Route    reader -> [record] -> submission ring -> core.
 */

#ifndef INF_PROTO_INFER_RECORD_H
#define INF_PROTO_INFER_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/include/channel.h"
#include "core/proto/infer_request.h"

/* Where a request goes, and where its bytes are. */
typedef struct {
    inf_slice_t     model_name;
    int64_t         model_version;  /* -1: by policy                         */
    uint16_t        protocol;       /* inf_protocol_t                        */
    const uint64_t *data_offsets;   /* request arena, one for each input;
                                       not looked at for shared memory, nor
                                       by inf_infer_record_size              */
} inf_infer_target_t;

INF_CHECK inf_err_t *inf_infer_record_size(const inf_infer_request_t *req,
    const inf_infer_target_t *target, size_t *size);

/* dst: 8-byte aligned, the size that inf_infer_record_size gave. */
void inf_infer_record_write(const inf_infer_request_t *req,
    const inf_infer_target_t *target, void *dst, size_t size);

#endif /* INF_PROTO_INFER_RECORD_H */
