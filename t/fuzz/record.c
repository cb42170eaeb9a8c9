/*
 * Flat records as the core reads them.  First byte of the input: what the rest
 * is.  0: an arena that is one record.  1: 16 bytes of place and length, then
 * the arena.  Else: patches (2 bytes where, 4 bytes what) upon a good record,
 * which get behind the first checks.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/include/datatype.h"
#include "core/wire/request_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile unsigned touched;

static void
touch(const void *p, uint64_t len)
{
    const unsigned char *bytes = p;

    for (uint64_t i = 0; i < len; i++) {
        touched += bytes[i];
    }
}

static void
touch_text(const inf_infer_record_t *r, inf_ref_t ref)
{
    inf_slice_t s = inf_infer_record_text(r, ref);
    touch(s.data, s.len);
}

/* Reads all that a caller may read of a checked record. */
static void
walk(const inf_infer_record_t *r, const uint8_t *arena)
{
    touch_text(r, r->model_name);
    touch_text(r, r->id);
    touch_text(r, r->correlation_text);

    const inf_record_input_t *in = inf_infer_record_inputs(r);
    for (uint32_t i = 0; i < r->input_count; i++) {
        if (in[i].dim_count > INF_MAX_DIMS
            || in[i].datatype >= INF_TYPE_COUNT)
        {
            abort();
        }
        touch_text(r, in[i].name);
        touch(inf_infer_record_shape(r, &in[i]),
            in[i].dim_count * sizeof(int64_t));
        if (in[i].data_kind == INF_DATA_ARENA) {
            touch(arena + in[i].data_offset, in[i].data_length);
        } else {
            touch_text(r, in[i].shm_region);
        }
    }

    const inf_record_output_t *out = inf_infer_record_outputs(r);
    for (uint32_t i = 0; i < r->output_count; i++) {
        touch_text(r, out[i].name);
        touch_text(r, out[i].shm_region);
    }

    const inf_record_parameter_t *p = inf_infer_record_parameters(r);
    for (uint32_t i = 0; i < r->parameter_count; i++) {
        touch_text(r, p[i].name);
        touch_text(r, p[i].text);
    }
}

/* Good as it is: without patches all of it is walked. */
typedef struct {
    inf_infer_record_t     head;
    inf_record_input_t     inputs[3];
    inf_record_output_t    outputs[2];
    inf_record_parameter_t parameters[3];
    int64_t                shape[4];
    char                   texts[64];
} good_t;

static void
fill_good(good_t *g)
{
    const inf_ref_t name = { offsetof(good_t, texts), 8 };

    memset(g, 0, sizeof(*g));
    memset(g->texts, 'n', sizeof(g->texts));
    g->head = (inf_infer_record_t) {
        .size = sizeof(*g),
        .protocol = INF_PROTOCOL_GRPC,
        .model_name = name,
        .id = name,
        .input_count = 3,
        .input_offset = offsetof(good_t, inputs),
        .output_count = 2,
        .output_offset = offsetof(good_t, outputs),
        .parameter_count = 3,
        .parameter_offset = offsetof(good_t, parameters)
    };

    for (uint32_t i = 0; i < 3; i++) {
        g->inputs[i] = (inf_record_input_t) {
            .name = name,
            .datatype = INF_TYPE_INT64,
            .dim_count = i + 1,
            .shape_offset = offsetof(good_t, shape),
            .data_kind = i == 2 ? INF_DATA_SHM_REGION : INF_DATA_ARENA,
            .shm_region = name,
            .data_length = 64
        };
        g->parameters[i] = (inf_record_parameter_t) { .name = name,
            .type = i * 2, .text = name };
        g->outputs[i % 2] = (inf_record_output_t) { .name = name,
            .data_kind = i % 2, .shm_region = name };
    }
}

static void
check(const uint8_t *bytes, size_t size, uint64_t offset, uint64_t length)
{
    /* Exactly as large as it is, so that a sanitizer sees its end. */
    uint8_t *arena = malloc(size > 0 ? size : 1);
    if (arena == NULL) {
        return;
    }
    memcpy(arena, bytes, size);

    inf_arena_t mem;
    const inf_infer_record_t *r;
    inf_arena_init(&mem);
    inf_err_t *err = inf_infer_record_copy_check(arena, size, offset, length,
        &mem, &r);
    if (err == NULL) {
        walk(r, arena);
    }
    inf_err_free(err);
    inf_arena_fini(&mem);
    free(arena);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }

    uint8_t kind = *data++;
    size--;

    if (kind == 0) {
        check(data, size, 0, size);
        return 0;
    }

    if (kind == 1 && size >= 16) {
        uint64_t place[2];
        memcpy(place, data, sizeof(place));
        check(data + 16, size - 16, place[0], place[1]);
        return 0;
    }

    good_t good;
    fill_good(&good);
    for ( ; size >= 6; data += 6, size -= 6) {
        uint16_t where;
        memcpy(&where, data, sizeof(where));
        memcpy((uint8_t *) &good + where % (sizeof(good) / 4) * 4, data + 2,
            4);
    }
    check((uint8_t *) &good, sizeof(good), 0, sizeof(good));
    return 0;
}
