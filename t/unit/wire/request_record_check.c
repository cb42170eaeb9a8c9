#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/include/datatype.h"
#include "core/wire/request_record.h"

/* One of everything, in an arena of its own. */
typedef struct {
    inf_infer_record_t     head;
    inf_record_input_t     input;
    inf_record_output_t    output;
    inf_record_parameter_t parameter;
    int64_t                shape[2];
    char                   texts[64];
} request_t;

typedef union {
    unsigned char bytes[4096];
    struct {
        unsigned char pad[64];
        request_t     r;
    } at;
} arena_t;

#define TEXT(at_, len_) ((inf_ref_t) {                                        \
    (uint32_t) offsetof(request_t, texts) + (at_), (len_) })

static void
fill(arena_t *a)
{
    memset(a, 0, sizeof(*a));
    request_t *r = &a->at.r;
    memcpy(r->texts, "modelid-7INoutregionparamvalue", 30);
    r->head = (inf_infer_record_t) {
        .size = sizeof(*r),
        .protocol = INF_PROTOCOL_HTTP,
        .flags = INF_REQUEST_SEQUENCE_START,
        .model_name = TEXT(0, 5),
        .model_version = -1,
        .id = TEXT(5, 4),
        .input_count = 1,
        .input_offset = offsetof(request_t, input),
        .output_count = 1,
        .output_offset = offsetof(request_t, output),
        .parameter_count = 1,
        .parameter_offset = offsetof(request_t, parameter)
    };
    r->input = (inf_record_input_t) {
        .name = TEXT(9, 2),
        .datatype = INF_TYPE_FP32,
        .dim_count = 2,
        .shape_offset = offsetof(request_t, shape),
        .data_kind = INF_DATA_ARENA,
        .data_offset = 1024,
        .data_length = 3072
    };
    r->output = (inf_record_output_t) {
        .name = TEXT(11, 3),
        .data_kind = INF_DATA_SHM_REGION,
        .shm_region = TEXT(14, 6),
        .shm_offset = 8,
        .shm_length = 16
    };
    r->parameter = (inf_record_parameter_t) {
        .name = TEXT(20, 5),
        .type = INF_PARAMETER_STRING,
        .text = TEXT(25, 5)
    };
    r->shape[0] = 3;
    r->shape[1] = -5;
}

static const inf_infer_record_t *
read_ok(arena_t *a, inf_arena_t *mem)
{
    const inf_infer_record_t *out;
    inf_err_t *err = inf_infer_record_copy_check(a, sizeof(*a), 64,
        sizeof(request_t), mem, &out);
    if (err != NULL) {
        print_error("%s\n", inf_err_msg(err));
    }
    assert_null(err);
    assert_non_null(out);
    return out;
}

static void
read_bad(arena_t *a, const char *part)
{
    inf_arena_t mem;
    const inf_infer_record_t *out = (void *) a;

    inf_arena_init(&mem);
    inf_err_t *err = inf_infer_record_copy_check(a, sizeof(*a), 64,
        sizeof(request_t), &mem, &out);
    if (err == NULL) {
        print_error("accepted, expected: %s\n", part);
    }
    assert_non_null(err);
    assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
    if (strstr(inf_err_msg(err), part) == NULL) {
        print_error("\"%s\" lacks \"%s\"\n", inf_err_msg(err), part);
    }
    assert_non_null(strstr(inf_err_msg(err), part));
    assert_null(out);
    inf_err_free(err);
    inf_arena_fini(&mem);
}

static void
good_record_is_read_back_from_a_private_copy(void **state)
{
    (void) state;
    arena_t a;
    inf_arena_t mem;
    inf_arena_init(&mem);
    fill(&a);

    const inf_infer_record_t *r = read_ok(&a, &mem);
    memset(&a, 0xff, sizeof(a));

    assert_true(inf_slice_eq(inf_infer_record_text(r, r->model_name),
        INF_SLICE("model")));
    assert_true(inf_slice_eq(inf_infer_record_text(r, r->id),
        INF_SLICE("id-7")));
    assert_int_equal(inf_infer_record_text(r, r->correlation_text).len, 0);
    const inf_record_input_t *in = inf_infer_record_inputs(r);
    assert_true(inf_slice_eq(inf_infer_record_text(r, in->name),
        INF_SLICE("IN")));
    assert_int_equal(inf_infer_record_shape(r, in)[1], -5);
    assert_true(inf_slice_eq(inf_infer_record_text(r,
        inf_infer_record_outputs(r)->shm_region), INF_SLICE("region")));
    assert_true(inf_slice_eq(inf_infer_record_text(r,
        inf_infer_record_parameters(r)->text), INF_SLICE("value")));
    inf_arena_fini(&mem);
}

static void
place_and_length_outside_the_arena_are_rejected(void **state)
{
    (void) state;
    arena_t a;
    inf_arena_t mem;
    const inf_infer_record_t *out;
    inf_arena_init(&mem);
    fill(&a);

    const uint64_t pairs[][2] = {
        { 64, 0 }, { 64, sizeof(inf_infer_record_t) - 1 },
        { 4096, sizeof(request_t) }, { 4090, sizeof(request_t) },
        { UINT64_MAX, sizeof(request_t) }, { UINT64_MAX - 100, 200 },
        { 64, UINT64_MAX }, { 64, INF_RECORD_MAX }, { 64, 4096 },
        { 0, INF_RECORD_MAX + UINT64_C(1) }
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        inf_err_t *err = inf_infer_record_copy_check(&a, sizeof(a),
            pairs[i][0], pairs[i][1], &mem, &out);
        assert_non_null(err);
        inf_err_free(err);
    }
    inf_arena_fini(&mem);
}

static void
each_field_out_of_range_is_rejected_by_name(void **state)
{
    (void) state;
    arena_t a;
    request_t *r = &a.at.r;

#define BAD(part, change)                                                     \
    do {                                                                      \
        fill(&a);                                                             \
        change;                                                               \
        read_bad(&a, part);                                                   \
    } while (0)

    BAD("size", r->head.size = sizeof(*r) + 1);
    BAD("size", r->head.size = UINT32_MAX);
    BAD("size", r->head.size = sizeof(r->head) - 1);
    BAD("model name", r->head.size = offsetof(request_t, shape));
    BAD("protocol", r->head.protocol = 0);
    BAD("protocol", r->head.protocol = 3);
    BAD("flags", r->head.flags = 0x200);
    BAD("not raw", r->head.flags = INF_REQUEST_GENERATE);
    BAD("model name", r->head.model_name.len = 0);
    BAD("model name", r->head.model_name.len = UINT32_MAX);
    BAD("model name", r->head.model_name.offset = UINT32_MAX);
    BAD("NUL", r->texts[2] = 0);
    BAD("request id", r->head.id.offset = sizeof(*r) - 3);
    BAD("correlation", r->head.correlation_text = TEXT(64, 1));
    BAD("inputs", r->head.input_count = 2000);
    BAD("inputs", r->head.input_count = UINT32_MAX);
    BAD("inputs", r->head.input_offset += 4);
    BAD("inputs", r->head.input_offset = 0);
    BAD("inputs", r->head.input_offset = UINT32_MAX - 7);
    BAD("outputs", r->head.output_count = UINT32_MAX);
    BAD("outputs", r->head.output_offset += 1);
    BAD("parameters", r->head.parameter_count = UINT32_MAX);
    BAD("parameters", r->head.parameter_offset = sizeof(*r) - 8);
    BAD("raw", r->head.flags = INF_REQUEST_RAW_INPUT;
        r->head.input_count = 0);
    BAD("input 0: name", r->input.name.len = 1000);
    BAD("datatype", r->input.datatype = INF_TYPE_INVALID);
    BAD("datatype", r->input.datatype = INF_TYPE_COUNT);
    BAD("dimensions", r->input.dim_count = INF_MAX_DIMS + 1);
    BAD("dimensions", r->input.dim_count = UINT32_MAX);
    BAD("shape", r->input.dim_count = INF_MAX_DIMS);
    BAD("shape", r->input.shape_offset += 4);
    BAD("shape", r->input.shape_offset = UINT32_MAX - 7);
    BAD("kind of data", r->input.data_kind = 2);
    BAD("outside", r->input.data_length++);
    BAD("outside", r->input.data_offset = UINT64_MAX);
    BAD("outside", r->input.data_length = UINT64_MAX - 1000);
    BAD("shared-memory", r->input.data_kind = INF_DATA_SHM_REGION);
    BAD("shared-memory", r->input.data_kind = INF_DATA_SHM_REGION;
        r->input.shm_region = TEXT(14, 6);
        r->input.shm_region.len = 0);
    BAD("output 0", r->output.name.offset = UINT32_MAX);
    BAD("output 0", r->output.data_kind = 7);
    BAD("output 0", r->output.shm_region.len = 0);
    BAD("output 0", r->output.shm_region.len = 100);
    BAD("output 0", r->output.classification = 1);
    BAD("parameter 0", r->parameter.type = 5);
    BAD("parameter 0", r->parameter.type = INF_PARAMETER_BOOL;
        r->parameter.number.i = 2);
    BAD("parameter 0", r->parameter.text.len = UINT32_MAX);
    BAD("parameter 0", r->parameter.name.offset = sizeof(*r));
}

/* Each of them fits: it is the sum that a small record makes large. */
static void
tables_and_texts_longer_than_the_record_are_rejected(void **state)
{
    (void) state;
    arena_t a;
    request_t *r = &a.at.r;
    uint32_t slack = sizeof(r->texts) - 30;

    BAD("parameter 0: text: tables and texts are longer",
        memset(r->texts, 'x', sizeof(r->texts));
        r->parameter.name = TEXT(0, 5 + slack + 1));
    BAD("parameter 0: text: tables and texts are longer",
        r->parameter.text = TEXT(0, 5 + slack + 1));
    BAD("parameters: tables and texts are longer",
        memset(r->texts, 'x', sizeof(r->texts));
        r->output.name = TEXT(0, 60));
    BAD("parameters: tables and texts are longer",
        r->head.parameter_count = 3;
        r->head.parameter_offset = offsetof(request_t, output));

    fill(&a);
    memset(r->texts, 'x', sizeof(r->texts));
    r->parameter.name = TEXT(0, 5 + slack);
    inf_arena_t mem;
    inf_arena_init(&mem);
    (void) read_ok(&a, &mem);
    inf_arena_fini(&mem);
}

static void
empty_tables_names_and_raw_input_are_accepted(void **state)
{
    (void) state;
    arena_t a;
    inf_arena_t mem;
    inf_arena_init(&mem);

    fill(&a);
    a.at.r.head.input_count = 0;
    a.at.r.head.input_offset = UINT32_MAX;
    a.at.r.head.output_count = 0;
    a.at.r.head.parameter_count = 0;
    const inf_infer_record_t *r = read_ok(&a, &mem);
    assert_ptr_equal(inf_infer_record_inputs(r), r);

    fill(&a);                   /* the model answers that it has no such */
    a.at.r.input.name.len = 0;
    a.at.r.output.name.len = 0;
    (void) read_ok(&a, &mem);

    fill(&a);
    a.at.r.head.flags = INF_REQUEST_RAW_INPUT;
    a.at.r.input.name.len = 0;
    a.at.r.input.datatype = INF_TYPE_INVALID;
    a.at.r.input.dim_count = 0;
    a.at.r.input.shape_offset = 3;
    (void) read_ok(&a, &mem);
    inf_arena_fini(&mem);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_record_is_read_back_from_a_private_copy),
        cmocka_unit_test(place_and_length_outside_the_arena_are_rejected),
        cmocka_unit_test(each_field_out_of_range_is_rejected_by_name),
        cmocka_unit_test(tables_and_texts_longer_than_the_record_are_rejected),
        cmocka_unit_test(empty_tables_names_and_raw_input_are_accepted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
