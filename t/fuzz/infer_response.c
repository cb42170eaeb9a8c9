/*
 * The response reader over memory that somebody else changes.  A response
 * record and its tensors lie in an arena, well made and then patched by the
 * input; the reader copies the record, as a worker does, and reads the tensors
 * in place, in small steps.  Between the steps the input changes any byte of
 * the arena; if it asks for that, a thread does so during them, too.
 *
 * In every case no byte outside is read, and JSON and gRPC message end.
 * Nothing at all may be wrong where nothing changes: the length measured is
 * the one filled.
 */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/include/datatype.h"
#include "core/proto/infer_response.h"
#include "core/proto/reply_message.h"
#include "core/wire/response_record.h"
#include "t/fuzz/check.h"
#include "t/fuzz/input.h"

#define OUTPUTS    3u
#define LABELS     4u
#define STEPS_MAX  200000u
#define TEXT_MAX   360u         /* JSON of one element, an escape's bytes  */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- the thread that changes the arena ---- */

static struct {
    _Atomic(volatile uint8_t *) bytes;      /* NULL: nothing to change       */
    _Atomic size_t              size;
    _Atomic uint32_t            seed;
    _Atomic bool                busy;
} vandal;

static void *
vandal_run(void *unused)
{
    for (;;) {
        atomic_store(&vandal.busy, true);
        volatile uint8_t *bytes = atomic_load(&vandal.bytes);
        if (bytes == NULL) {
            atomic_store(&vandal.busy, false);
            sched_yield();
            continue;
        }

        uint32_t x = atomic_load(&vandal.seed);
        size_t size = atomic_load(&vandal.size);
        for (int i = 0; i < 64; i++) {
            x = x * 1664525u + 1013904223u;
            bytes[(x >> 8) % size] = (uint8_t) (x & 0x20 ? x : 0xff);
        }
        atomic_store(&vandal.seed, x);
        atomic_store(&vandal.busy, false);
    }

    return unused;
}

static void
vandal_begin(uint8_t *bytes, size_t size, uint32_t seed)
{
    static pthread_t thread;
    static bool started;

    if (!started) {
        check(pthread_create(&thread, NULL, vandal_run, NULL) == 0);
        started = true;
    }

    atomic_store(&vandal.seed, seed);
    atomic_store(&vandal.size, size);
    atomic_store(&vandal.bytes, bytes);
}

/* After this the thread touches nothing. */
static void
vandal_end(void)
{
    atomic_store(&vandal.bytes, NULL);
    while (atomic_load(&vandal.busy)) {
        sched_yield();
    }
}

/* ---- an arena with a response ---- */

typedef struct {
    uint8_t  *bytes;
    uint64_t  size;
    uint64_t  record;       /* offset and length of the record             */
    uint64_t  length;
} memory_t;

static uint64_t
output_describe(input_t *in, inf_response_output_desc_t *o, int64_t *shape)
{
    uint64_t how = input_next(in, 1);
    uint64_t count = 1;

    o->datatype = 1 + (uint32_t) (how & 15) % (INF_TYPE_COUNT - 1);
    o->dim_count = (uint32_t) (how >> 4 & 3);
    o->shape = shape;
    for (uint32_t i = 0; i < o->dim_count; i++) {
        shape[i] = (int64_t) input_next(in, 1) % 12;
        count *= (uint64_t) shape[i];
    }

    uint32_t size = inf_datatype_size(o->datatype);
    return size != 0 ? count * size : count * (4 + (how >> 6) * 3);
}

/* Strings as long as the tensor has room for. */
static void
strings_fill(uint8_t *data, uint64_t len, uint64_t count)
{
    for (uint64_t i = 0; i < count && len >= 4; i++) {
        uint32_t n = (uint32_t) (len / (count - i) - 4);

        memcpy(data, &n, 4);
        data += 4 + n;
        len -= 4 + n;
    }
}

static uint64_t
elements(const inf_response_output_desc_t *o)
{
    uint64_t count = 1;

    for (uint32_t i = 0; i < o->dim_count; i++) {
        count *= (uint64_t) o->shape[i];
    }

    return count;
}

static void
memory_fill(memory_t *m, input_t *in)
{
    static const inf_slice_t labels[LABELS] = { INF_SLICE("dog"),
        INF_SLICE("cat\n"), INF_SLICE(""), INF_SLICE("\xff\"hen") };
    static const inf_slice_t names[OUTPUTS] = { INF_SLICE("A"),
        INF_SLICE("B\\"), INF_SLICE("C") };
    int64_t shapes[OUTPUTS][3];
    inf_response_output_desc_t outputs[OUTPUTS] = { 0 };
    const inf_response_parameter_desc_t parameters[2] = {
        { .name = INF_SLICE("p"), .type = INF_PARAMETER_DOUBLE, .d = 0.1 },
        { .name = INF_SLICE("q"), .text = INF_SLICE("\"\x01") }
    };
    inf_response_builder_t b = {
        .model_name = INF_SLICE("model"),
        .id = INF_SLICE("id"),
        .backend = INF_SLICE("backend"),
        .instance = INF_SLICE("instance"),
        .model_version = 3,
        .output_count = OUTPUTS,
        .outputs = outputs,
        .parameters = parameters
    };

    uint64_t how = input_next(in, 1);
    b.batch_dim = how & 1;
    b.parameter_count = how & 2 ? 2 : 0;
    b.output_count = how & 4 ? OUTPUTS : 1;
    b.status = how & 8 ? INF_STATUS(INF_ERR_INTERNAL) : INF_OK;
    b.error = how & 8 ? INF_SLICE("why") : INF_SLICE("");

    uint64_t at = 0;
    for (uint32_t i = 0; i < b.output_count; i++) {
        outputs[i].name = names[i];
        outputs[i].data_offset = at;
        outputs[i].data_length = output_describe(in, &outputs[i], shapes[i]);
        outputs[i].labels = how & 0x10 ? labels : NULL;
        outputs[i].label_count = how & 0x10 ? LABELS : 0;
        at += (outputs[i].data_length + 63) & ~UINT64_C(63);
    }

    inf_err_t *err = inf_response_builder_size(&b, &m->length);
    check(err == NULL);

    /* the record last: what runs over its end leaves the arena */
    m->record = at;
    m->size = at + m->length;
    void *p;
    check(posix_memalign(&p, 64, m->size) == 0);
    m->bytes = p;
    inf_response_builder_write(&b, m->bytes + at, m->length);

    for (uint32_t i = 0; i < b.output_count; i++) {
        uint8_t *data = m->bytes + outputs[i].data_offset;

        for (uint64_t k = 0; k < outputs[i].data_length; k++) {
            data[k] = (uint8_t) (k * 37 + how);
        }
        if (outputs[i].datatype == INF_TYPE_BYTES) {
            strings_fill(data, outputs[i].data_length,
                elements(&outputs[i]));
        }
    }
}

/* Somebody writes two bytes: into the record as often as not. */
static void
memory_change(memory_t *m, input_t *in)
{
    uint64_t where = input_next(in, 2);
    uint64_t what = input_next(in, 2);
    uint64_t at = where & 0x8000 ? (where & 0x7fff) % (m->size - 1)
        : m->record + where % (m->length - 1);

    m->bytes[at] = (uint8_t) what;
    m->bytes[at + 1] = (uint8_t) (what >> 8);
}

/* One field of an output says something near an end, or anything. */
static void
memory_lie(memory_t *m, input_t *in)
{
    inf_response_record_t *r = (void *) (m->bytes + m->record);
    inf_response_output_t *o = (void *) ((uint8_t *) r + r->output_offset);
    uint64_t how = input_next(in, 1);
    uint64_t off = input_next(in, 1);
    uint64_t value = (how & 0x80 ? m->size : m->length) - off;

    o += how % r->output_count;
    switch (how >> 2 & 7) {

    case 0:
        o->data_offset = value;
        break;

    case 1:
        o->data_length = value;
        break;

    case 2:
        o->shape_offset = (uint32_t) value & ~7u;
        break;

    case 3:
        o->label_offset = (uint32_t) value & ~7u;
        break;

    case 4:
        o->name.offset = (uint32_t) value;
        break;

    case 5:
        o->dim_count = (uint32_t) off;
        break;

    case 6:
        o->label_count = (uint32_t) off;
        break;

    default:
        o->datatype = (uint32_t) off;
        break;
    }
}

/* ---- the reader ---- */

typedef struct {
    memory_t               memory;
    input_t               *in;
    inf_response_writer_t *writer;
    size_t                 budget;
    size_t                 cap;
    uint64_t               bound;       /* bytes of JSON at most           */
    uint64_t               measured;
    bool                   restless;    /* something has been changed      */
    volatile unsigned      touched;
} reader_t;

/* One more step is due; between two of them memory changes. */
static void
reader_pause(reader_t *r, uint32_t *steps)
{
    check(++*steps < STEPS_MAX);
    if (r->restless && r->in->size > 0) {
        memory_change(&r->memory, r->in);
    }
}

static bool
ended(inf_codec_t rc, inf_err_t *err)
{
    if (rc == INF_CODEC_ERROR) {
        check(err != NULL);
        inf_err_free(err);
    }

    return rc != INF_CODEC_AGAIN;
}

static bool
reader_prepare(reader_t *r)
{
    inf_err_t *err = NULL;
    inf_codec_t rc;
    uint32_t steps = 0;

    while (!ended(rc = inf_response_prepare(r->writer, r->budget, &err), err))
    {
        reader_pause(r, &steps);
    }

    return rc == INF_CODEC_DONE;
}

static void
reader_measure(reader_t *r)
{
    inf_err_t *err = NULL;
    inf_codec_t rc;
    uint32_t steps = 0;

    while (!ended(rc = inf_response_measure(r->writer, r->budget,
            &r->measured, &err), err))
    {
        reader_pause(r, &steps);
    }

    check(r->restless || rc == INF_CODEC_DONE);
    check(rc == INF_CODEC_ERROR || r->measured <= r->bound);
}

static void
reader_fill(reader_t *r)
{
    inf_err_t *err = NULL;
    inf_codec_t rc;
    uint32_t steps = 0;
    uint64_t filled = 0;
    char *buf = malloc(r->cap);         /* its end is watched over          */

    check(buf != NULL);
    for (;;) {
        size_t written = 0;
        rc = inf_response_fill(r->writer, buf, r->cap, &written, &err);
        check(written <= r->cap);
        filled += written;
        check(filled <= r->bound);
        for (size_t i = 0; i < written; i++) {
            r->touched += (unsigned char) buf[i];
        }
        if (ended(rc, err)) {
            break;
        }
        reader_pause(r, &steps);
    }

    check(r->restless || (rc == INF_CODEC_DONE && filled == r->measured));
    free(buf);
}

static void
reader_send(reader_t *r)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < inf_response_output_count(r->writer); i++) {
        const void *data;
        uint64_t len;

        (void) inf_response_output(r->writer, i, &data, &len);
        const uint8_t *bytes = data;
        for (uint64_t k = 0; k < len; k++) {
            r->touched += bytes[k];
        }
        sum += len;
    }

    check(sum == inf_response_binary_size(r->writer));
}

/* The same as a gRPC message: no more and no less than its size says. */
static void
reader_reply(reader_t *r, const inf_response_record_t *record,
    const inf_response_options_t *options, inf_arena_t *pool)
{
    const inf_reply_options_t asked = {
        .outputs = options->outputs, .output_count = options->output_count,
        .stream = options->raw
    };
    inf_reply_t *reply;
    inf_codec_t rc;
    uint32_t steps = 0;
    uint64_t sum = 0;
    inf_err_t *err = inf_reply_new(&reply, record, r->memory.bytes, &asked,
        pool);

    if (err != NULL) {
        inf_err_free(err);
        return;
    }

    while (!ended(rc = inf_reply_prepare(reply, r->budget, &err), err)) {
        reader_pause(r, &steps);
    }

    if (rc == INF_CODEC_ERROR) {
        return;
    }

    for (uint32_t i = 0; i < inf_reply_piece_count(reply); i++) {
        inf_slice_t piece = inf_reply_piece(reply, i);

        check(piece.len != 0);
        for (size_t k = 0; k < piece.len; k++) {
            r->touched += (unsigned char) piece.data[k];
        }
        sum += piece.len;
    }

    check(sum == inf_reply_size(reply));
}

static void
reader_run(reader_t *r, const inf_response_record_t *record,
    const inf_response_options_t *options, inf_arena_t *pool)
{
    inf_err_t *err = inf_response_writer_new(&r->writer, record,
        r->memory.bytes, options, pool);

    if (err != NULL) {
        inf_err_free(err);
        return;
    }

    if (reader_prepare(r)) {
        reader_measure(r);
        reader_fill(r);
        reader_send(r);
    }

    reader_reply(r, record, options, pool);
}

/* The texts that go to logs and variables. */
static void
reader_touch(reader_t *r, const inf_response_record_t *record)
{
    const inf_ref_t refs[] = { record->error, record->model_name, record->id,
        record->backend, record->instance };

    for (size_t i = 0; i < sizeof(refs) / sizeof(refs[0]); i++) {
        inf_slice_t text = inf_response_text(record, refs[i]);

        for (size_t k = 0; k < text.len; k++) {
            r->touched += (unsigned char) text.data[k];
        }
    }
}

static void
reader_open(reader_t *r, const inf_response_options_t *options)
{
    const memory_t *m = &r->memory;
    inf_arena_t pool;

    inf_arena_init(&pool);
    void *copy = malloc(m->length);
    check(copy != NULL);
    memcpy(copy, m->bytes + m->record, m->length);

    inf_err_t *err = inf_response_record_check(copy, m->length, m->size);
    if (err == NULL) {
        const inf_response_record_t *record = copy;

        reader_touch(r, record);
        if (record->status == INF_OK) {
            reader_run(r, record, options, &pool);
        }
    }

    inf_err_free(err);
    inf_arena_fini(&pool);
    free(copy);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input_t in = { data, size < 2048 ? size : 2048 };
    reader_t r = { .in = &in };
    inf_infer_output_t asked[2] = { { .name = INF_SLICE("A") },
        { .name = INF_SLICE("C") } };
    inf_response_options_t options = { .outputs = asked };

    uint64_t how = input_next(&in, 1);
    options.output_count = how & 3 ? 2 : 0;
    options.raw = (how & 0xc) == 0xc;
    options.binary_data_output = how & 0x10;
    asked[0].binary = how & 1;
    asked[1].binary = how & 2;
    asked[0].classification = (uint32_t) input_next(&in, 1) % 16;
    asked[1].classification = (uint32_t) input_next(&in, how & 0x20 ? 4 : 1);
    r.budget = 1 + (size_t) input_next(&in, 1) * 8;
    r.cap = 1 + (size_t) input_next(&in, 1) * 4;

    memory_fill(&r.memory, &in);
    uint64_t patches = input_next(&in, 1);
    if (patches >> 5 & 3) {
        options = (inf_response_options_t) {
            .form = patches >> 5 & 1 ? INF_RESPONSE_GENERATE
                : INF_RESPONSE_EVENT
        };
    }
    for (uint64_t i = 0; i < (patches & 3); i++) {
        memory_lie(&r.memory, &in);
    }
    for (uint64_t i = 0; i < (patches >> 2 & 7); i++) {
        memory_change(&r.memory, &in);
    }

    /* as many elements as there are bytes, strings as escapes, and names */
    r.bound = (r.memory.size + 64) * TEXT_MAX;
    r.restless = how & 0xc0;
    if ((how & 0xc0) == 0xc0) {
        vandal_begin(r.memory.bytes, r.memory.size, (uint32_t) how);
    }

    reader_open(&r, &options);

    vandal_end();
    free(r.memory.bytes);
    return 0;
}
