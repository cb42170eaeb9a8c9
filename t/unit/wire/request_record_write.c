/*
 * request_record_write.c - a request as a flat record, read back field by field.
 */

#include "proto/infer_fixture.h"

#include "core/wire/request_record.h"

static const char *
text_at(const char *record, inf_ref_t ref)
{
    static char text[64];

    assert_true(ref.len < sizeof(text));
    memcpy(text, record + ref.offset, ref.len);
    text[ref.len] = '\0';
    return text;
}

/* The worker's record passes the core's check. */
static void
check_accepts(const char *record, size_t size)
{
    static _Alignas(8) char arena[8192];
    const uint64_t at = 2048;
    const inf_infer_record_t *copy;
    inf_arena_t mem;

    assert_true(at + size <= sizeof(arena));
    memcpy(arena + at, record, size);
    inf_arena_init(&mem);
    assert_null(inf_infer_record_copy_check(arena, sizeof(arena), at, size,
        &mem, &copy));
    assert_memory_equal(copy, record, size);
    inf_arena_fini(&mem);
}

static void
everything_in_a_request_is_in_its_record(void **state)
{
    static const char json[] =
        "{\"id\":\"req-7\",\"parameters\":{\"sequence_id\":\"s1\","
        "\"sequence_end\":true,\"priority\":9,\"timeout\":1000,\"k\":\"v\","
        "\"d\":2.5,\"i\":-9},\"inputs\":[{\"name\":\"A\",\"datatype\":"
        "\"INT32\",\"shape\":[2,1],\"data\":[1,2]},{\"name\":\"Bee\","
        "\"datatype\":\"FP16\",\"shape\":[3],\"parameters\":"
        "{\"binary_data_size\":6}},{\"name\":\"S\",\"datatype\":\"BOOL\","
        "\"shape\":[1,1,4],\"parameters\":{\"shared_memory_region\":\"reg\","
        "\"shared_memory_offset\":64,\"shared_memory_byte_size\":4}}],"
        "\"outputs\":[{\"name\":\"O\",\"parameters\":{\"classification\":5}},"
        "{\"name\":\"P\",\"parameters\":{\"shared_memory_region\":\"out\","
        "\"shared_memory_offset\":8,\"shared_memory_byte_size\":16}}]}";
    static const uint64_t offsets[] = { 640, 1280, 0 };
    inf_infer_target_t target = {
        INF_SLICE("model"), 3, INF_PROTOCOL_HTTP, NULL
    };
    fixture_t f;
    size_t size;

    (void) state;
    assert_null(fixture_read(&f, json, sizeof(json) - 1, 10, 10, NULL));
    assert_null(inf_infer_record_size(&f.request, &target, &size));
    assert_int_equal(size % 8, 0);

    target.data_offsets = offsets;
    char *r = malloc(size);
    assert_non_null(r);
    inf_infer_record_write(&f.request, &target, r, size);
    fixture_fini(&f);           /* the record stands alone */

    const inf_infer_record_t *h = (const void *) r;
    assert_int_equal(h->size, size);
    assert_int_equal(h->protocol, INF_PROTOCOL_HTTP);
    assert_int_equal(h->flags, INF_REQUEST_SEQUENCE_END
                               | INF_REQUEST_CORRELATION_STR);
    assert_string_equal(text_at(r, h->model_name), "model");
    assert_int_equal(h->model_version, 3);
    assert_string_equal(text_at(r, h->id), "req-7");
    assert_string_equal(text_at(r, h->correlation_text), "s1");
    assert_int_equal(h->priority, 9);
    assert_int_equal(h->timeout_us, 1000);

    assert_int_equal(h->input_count, 3);
    assert_int_equal(h->input_offset % 8, 0);
    const inf_record_input_t *in = (const void *) (r + h->input_offset);
    assert_string_equal(text_at(r, in[0].name), "A");
    assert_int_equal(in[0].datatype, INF_TYPE_INT32);
    assert_int_equal(in[0].data_kind, INF_DATA_ARENA);
    assert_int_equal(in[0].data_offset, 640);
    assert_int_equal(in[0].data_length, 8);
    assert_int_equal(in[0].dim_count, 2);
    assert_int_equal(in[0].shape_offset % 8, 0);
    const int64_t *shape = (const void *) (r + in[0].shape_offset);
    assert_true(shape[0] == 2 && shape[1] == 1);
    assert_string_equal(text_at(r, in[1].name), "Bee");
    assert_int_equal(in[1].data_offset, 1280);
    assert_int_equal(in[1].data_length, 6);
    assert_int_equal(in[2].data_kind, INF_DATA_SHM_REGION);
    assert_string_equal(text_at(r, in[2].shm_region), "reg");
    assert_int_equal(in[2].data_offset, 64);
    assert_int_equal(in[2].data_length, 4);
    shape = (const void *) (r + in[2].shape_offset);
    assert_true(shape[0] == 1 && shape[1] == 1 && shape[2] == 4);

    assert_int_equal(h->output_count, 2);
    const inf_record_output_t *out = (const void *) (r + h->output_offset);
    assert_string_equal(text_at(r, out[0].name), "O");
    assert_int_equal(out[0].classification, 5);
    assert_int_equal(out[0].data_kind, INF_DATA_ARENA);
    assert_int_equal(out[1].data_kind, INF_DATA_SHM_REGION);
    assert_string_equal(text_at(r, out[1].shm_region), "out");
    assert_int_equal(out[1].shm_offset, 8);
    assert_int_equal(out[1].shm_length, 16);

    assert_int_equal(h->parameter_count, 3);
    const inf_record_parameter_t *p = (const void *) (r + h->parameter_offset);
    for (int i = 0; i < 3; i++) {
        const char *name = text_at(r, p[i].name);
        if (name[0] == 'k') {
            assert_int_equal(p[i].type, INF_PARAMETER_STRING);
            assert_string_equal(text_at(r, p[i].text), "v");
        } else if (name[0] == 'd') {
            assert_int_equal(p[i].type, INF_PARAMETER_DOUBLE);
            assert_true(p[i].number.d == 2.5);
        } else {
            assert_string_equal(name, "i");
            assert_int_equal(p[i].type, INF_PARAMETER_INT);
            assert_int_equal(p[i].number.i, -9);
        }
    }

    check_accepts(r, size);
    free(r);
}

static void
a_raw_request_has_a_record_too(void **state)
{
    static const uint64_t offset = 4096;
    inf_infer_target_t target = {
        INF_SLICE("m"), -1, INF_PROTOCOL_HTTP, &offset
    };
    inf_infer_request_t q;
    inf_arena_t arena;
    size_t size;

    (void) state;
    inf_arena_init(&arena);
    assert_null(inf_infer_request_raw(&q, &arena, 99));
    assert_null(inf_infer_record_size(&q, &target, &size));
    char *r = malloc(size);
    assert_non_null(r);
    inf_infer_record_write(&q, &target, r, size);

    const inf_infer_record_t *h = (const void *) r;
    const inf_record_input_t *in = (const void *) (r + h->input_offset);
    assert_int_equal(h->flags, INF_REQUEST_RAW_INPUT);
    assert_int_equal(h->model_version, -1);
    assert_int_equal(in->data_offset, 4096);
    assert_int_equal(in->data_length, 99);
    assert_int_equal(in->name.len, 0);
    free(r);
    inf_arena_fini(&arena);
}

static void
a_record_has_a_largest_size(void **state)
{
    inf_infer_target_t target = { INF_SLICE("m"), -1, INF_PROTOCOL_HTTP, NULL };
    inf_infer_request_t q = { .id = { "", 0 } };
    size_t size;

    (void) state;
    char *id = calloc(1, INF_RECORD_MAX);
    assert_non_null(id);
    q.id = inf_slice(id, INF_RECORD_MAX);
    inf_err_t *err = inf_infer_record_size(&q, &target, &size);
    assert_non_null(err);
    assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
    inf_err_free(err);
    free(id);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_in_a_request_is_in_its_record),
        cmocka_unit_test(a_raw_request_has_a_record_too),
        cmocka_unit_test(a_record_has_a_largest_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
