/* Records of gRPC requests. */

#include "proto/message_fixture.h"

#include "core/wire/request_record.h"
#include "t/unit/proto/call_read.h"

#define T(name) cmocka_unit_test(name)

static void
a_record_can_be_made_of_it(void **state)
{
    inf_buf_t bytes;
    call_read_t c;
    inf_arena_t mem;
    size_t size;
    uint64_t offsets[] = { 64, 128, 0 };

    (void) state;
    pack_call(&bytes,
        "{model_name: 'm', id: 'i', parameters: {k: {string_param: 'v'}},"
        " inputs: [{name: 'A', datatype: 'INT8', shape: [2]},"
        "  {name: 'B', datatype: 'INT32', shape: [1]},"
        "  {name: 'S', datatype: 'FP32', shape: [1], parameters: {"
        "   shared_memory_region: {string_param: 'r'},"
        "   shared_memory_byte_size: {int64_param: 4},"
        "   shared_memory_offset: {int64_param: 16}}}],"
        " outputs: [{name: 'X', parameters: {"
        "   shared_memory_region: {string_param: 'q'},"
        "   shared_memory_byte_size: {int64_param: 40}}}],"
        " raw_input_contents: ['AQI=', 'AQIDBA==']}");
    call_read(&c, bytes.data, bytes.len, SIZE_MAX, SIZE_MAX, NULL);
    must(c.err);

    inf_infer_target_t target = {
        c.call->model_name, c.call->model_version, INF_PROTOCOL_GRPC, offsets
    };
    must(inf_infer_record_size(&c.call->infer, &target, &size));
    char *base = calloc(1, size + 256);
    const inf_infer_record_t *r;

    assert_non_null(base);
    inf_infer_record_write(&c.call->infer, &target, base, size);
    inf_arena_init(&mem);
    must(inf_infer_record_copy_check(base, size + 256, 0, size, &mem, &r));
    assert_int_equal(r->protocol, INF_PROTOCOL_GRPC);
    assert_int_equal(r->input_count, 3);
    assert_int_equal(inf_infer_record_inputs(r)[1].data_offset, 128);
    assert_int_equal(inf_infer_record_inputs(r)[1].data_length, 4);
    assert_int_equal(inf_infer_record_inputs(r)[2].data_kind,
                     INF_DATA_SHM_REGION);
    assert_int_equal(inf_infer_record_inputs(r)[2].data_offset, 16);
    assert_int_equal(inf_infer_record_outputs(r)[0].shm_length, 40);
    assert_int_equal(r->parameter_count, 1);
    inf_arena_fini(&mem);
    free(base);
    call_read_fini(&c);
    inf_buf_fini(&bytes);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_record_can_be_made_of_it)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
