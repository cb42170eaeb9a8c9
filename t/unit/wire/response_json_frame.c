/*
 * response_json_frame.c - the JSON around the values is whole at any
 *                          length: below, at and above the short cut's.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "core/proto/infer_response.h"
#include "core/wire/response_record.h"

#define BEFORE "{\"model_name\":\""
#define AFTER  "\",\"model_version\":\"1\",\"outputs\":[]}"
#define ROOM   4096u

/* A response of a model with a name of so many bytes, the last escaped. */
static void
check_frame(size_t name_len)
{
    static union {
        inf_response_record_t head;
        char                  bytes[ROOM];
    } record;
    static char out[ROOM];
    inf_response_writer_t *w;
    inf_arena_t pool;
    inf_err_t *err;
    uint64_t json_len;
    size_t written;

    memset(&record, 0, sizeof(record));
    memset(record.bytes + sizeof(record.head), 'm', name_len - 1);
    record.bytes[sizeof(record.head) + name_len - 1] = '"';
    record.head.size = (uint32_t) (sizeof(record.head) + name_len);
    record.head.model_name = (inf_ref_t) {
        sizeof(record.head), (uint32_t) name_len
    };
    record.head.model_version = 1;

    inf_arena_init(&pool);
    assert_null(inf_response_record_check(&record, record.head.size, 0));
    assert_null(inf_response_writer_new(&w, &record.head, NULL, NULL, &pool));
    assert_int_equal(inf_response_prepare(w, SIZE_MAX, &err), INF_CODEC_DONE);
    assert_int_equal(inf_response_measure(w, SIZE_MAX, &json_len, &err),
                     INF_CODEC_DONE);
    assert_int_equal(inf_response_fill(w, out, sizeof(out), &written, &err),
                     INF_CODEC_DONE);

    size_t before = sizeof(BEFORE) - 1;
    assert_int_equal(written, json_len);
    assert_int_equal(written, before + name_len + 1 + sizeof(AFTER) - 1);
    assert_memory_equal(out, BEFORE, before);
    for (size_t i = 0; i < name_len - 1; i++) {
        assert_int_equal(out[before + i], 'm');
    }

    assert_memory_equal(out + before + name_len - 1, "\\\"" AFTER,
                        sizeof(AFTER) + 1);
    inf_arena_fini(&pool);
}

static void
frame_of_any_length_is_whole(void **state)
{
    (void) state;
    for (size_t len = 1; len < 3000; len += len < 940 || len > 1030 ? 53 : 1) {
        check_frame(len);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frame_of_any_length_is_whole)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
