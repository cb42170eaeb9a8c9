/*
 * flat_record.h - a request that was read becomes a flat record.
 *
 * Owner    The caller's request.
 * Thread   any.
 * Units    bytes.
 * Errors   as check.h: what was read can be written.
 * Route    fuzzer -> [flat record] -> record writer
 */

#ifndef T_FUZZ_FLAT_RECORD_H
#define T_FUZZ_FLAT_RECORD_H

#include <stdint.h>
#include <stdlib.h>

#include "core/wire/request_record.h"
#include "t/fuzz/check.h"

/* Writes it, for sanitizers to see; version and protocol go into it as they
   are. */
static inline void
flat_record_write(const inf_infer_request_t *q, inf_slice_t model,
    int64_t version, inf_protocol_t protocol)
{
    uint64_t *offsets = calloc(q->input_count + 1u, sizeof(*offsets));
    inf_infer_target_t target = {
        model, version, (uint16_t) protocol, offsets
    };
    size_t size;

    check(offsets != NULL);
    check(inf_infer_record_size(q, &target, &size) == NULL);
    void *record = malloc(size);
    check(record != NULL);
    inf_infer_record_write(q, &target, record, size);
    free(record);
    free(offsets);
}

#endif /* T_FUZZ_FLAT_RECORD_H */
