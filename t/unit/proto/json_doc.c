#include "proto/message_fixture.h"

#include <pthread.h>

#include "core/proto/json_doc.h"

static void
parse(inf_json_doc_t *doc, const char *text, unsigned flags)
{
    must(inf_json_doc_parse(doc, inf_slice_str(text), flags));
}

static void
a_document_is_walked_as_a_tree(void **state)
{
    (void) state;
    inf_json_doc_t doc;
    inf_slice_t s;
    uint64_t u;

    parse(&doc, "{\"a\":[1,\"two\\u0000\",null],\"b\":-1}", 0);
    json_t *a = json_object_get(doc.root, "a");
    assert_int_equal(json_array_size(a), 3);
    assert_true(inf_json_doc_uint64(json_array_get(a, 0), &u) && u == 1);
    assert_true(inf_json_doc_string(json_array_get(a, 1), &s));
    assert_int_equal(s.len, 4);
    assert_memory_equal(s.data, "two\0", 4);
    assert_false(inf_json_doc_uint64(json_object_get(doc.root, "b"), &u));
    assert_false(inf_json_doc_uint64(json_array_get(a, 1), &u));
    assert_false(inf_json_doc_string(json_array_get(a, 0), &s));
    inf_json_doc_fini(&doc);
    inf_json_doc_fini(&doc);
}

static void
an_error_names_line_column_and_offset(void **state)
{
    (void) state;
    inf_json_doc_t doc;

    must_fail(inf_json_doc_parse(&doc, INF_SLICE("{\"a\":1,\n \"b\":}"), 0),
        "JSON: line 2, column 7 (byte 14): ");
    must_fail(inf_json_doc_parse(&doc, INF_SLICE(""), 0),
        "JSON: line 1, column 1 (byte 0): ");
    must_fail(inf_json_doc_parse(&doc, INF_SLICE("{} {}"), 0), "JSON: line 1");
    must_fail(inf_json_doc_parse(&doc, INF_SLICE("18446744073709551615"), 0),
        "JSON: line 1");
}

static void
a_byte_order_mark_is_skipped(void **state)
{
    (void) state;
    inf_json_doc_t doc;

    parse(&doc, "\xef\xbb\xbf{\"a\":1}", 0);
    assert_int_equal(json_integer_value(json_object_get(doc.root, "a")), 1);
    inf_json_doc_fini(&doc);
    must_fail(inf_json_doc_parse(&doc, INF_SLICE("\xef\xbb\xbf"), 0),
        "JSON: line 1, column 4 (byte 3): ");
    must_fail(inf_json_doc_parse(&doc, INF_SLICE("\xef\xbb\xbf[}"), 0),
        "JSON: line 1, column 6 (byte 5): ");
    must_fail(inf_json_doc_parse(&doc, INF_SLICE("\xef\xbb{}"), 0), "JSON: ");
}

static void
duplicates_are_the_last_or_an_error(void **state)
{
    (void) state;
    inf_json_doc_t doc;

    parse(&doc, "{\"a\":1,\"a\":2}", 0);
    assert_int_equal(json_integer_value(json_object_get(doc.root, "a")), 2);
    inf_json_doc_fini(&doc);
    must_fail(inf_json_doc_parse(&doc, INF_SLICE("{\"a\":1,\"a\":2}"),
        INF_JSON_DOC_NO_DUPLICATES), "JSON: ");
}

static void
integers_have_sixty_three_bits(void **state)
{
    (void) state;
    inf_json_doc_t doc;
    uint64_t u;

    parse(&doc, "[9223372036854775807,1e19]", 0);
    assert_true(inf_json_doc_uint64(json_array_get(doc.root, 0), &u));
    assert_true(u == INT64_MAX);
    assert_false(inf_json_doc_uint64(json_array_get(doc.root, 1), &u));
    inf_json_doc_fini(&doc);

    must_fail(inf_json_doc_parse(&doc, INF_SLICE("[9223372036854775808]"), 0),
        "JSON: ");
}

static void
documents_may_live_side_by_side_and_end_in_any_order(void **state)
{
    (void) state;
    inf_json_doc_t docs[3];

    parse(&docs[0], "{\"n\":0,\"s\":\"zero\"}", 0);
    parse(&docs[1], "{\"n\":1,\"s\":\"one\"}", 0);
    inf_json_doc_fini(&docs[0]);
    parse(&docs[2], "{\"n\":2,\"s\":\"two\"}", 0);
    assert_string_equal(json_string_value(
        json_object_get(docs[1].root, "s")), "one");
    assert_string_equal(json_string_value(
        json_object_get(docs[2].root, "s")), "two");
    inf_json_doc_fini(&docs[1]);
    inf_json_doc_fini(&docs[2]);
}

static void
a_large_document_is_read(void **state)
{
    (void) state;
    inf_json_doc_t doc;
    inf_buf_t text;

    inf_buf_init(&text);
    inf_buf_putc(&text, '[');
    for (int i = 0; i < 30000; i++) {
        inf_buf_printf(&text, "%s{\"k%d\":\"v%d\"}", i > 0 ? "," : "", i, i);
    }
    inf_buf_putc(&text, ']');
    parse(&doc, text.data, 0);
    assert_int_equal(json_array_size(doc.root), 30000);
    assert_string_equal(json_string_value(json_object_get(
        json_array_get(doc.root, 29999), "k29999")), "v29999");
    inf_json_doc_fini(&doc);
    inf_buf_fini(&text);
}

static void
a_document_of_many_small_values_is_rejected(void **state)
{
    (void) state;
    static const char *const values[] = { "0", "[]", "{}", "\"\\\",[\"" };

    for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++) {
        inf_json_doc_t doc;
        inf_buf_t text;

        inf_buf_init(&text);
        inf_buf_putc(&text, '[');
        for (unsigned i = 0; i < INF_JSON_DOC_VALUES; i++) {
            inf_buf_printf(&text, "%s%s", i > 0 ? "," : "", values[k]);
        }
        inf_buf_putc(&text, ']');
        must_fail(inf_json_doc_parse(&doc, inf_buf_slice(&text), 0),
            "JSON: more than 65536 values");
        inf_json_doc_fini(&doc);
        inf_buf_fini(&text);
    }

    /* characters of strings are no values */
    inf_json_doc_t doc;
    inf_buf_t text;

    inf_buf_init(&text);
    inf_buf_putc(&text, '"');
    for (unsigned i = 0; i < INF_JSON_DOC_VALUES; i++) {
        inf_buf_puts(&text, "\\\",[{");
    }
    inf_buf_putc(&text, '"');
    parse(&doc, text.data, 0);
    inf_json_doc_fini(&doc);
    inf_buf_fini(&text);
}

static void *
parse_many(void *arg)
{
    inf_json_doc_t *left = arg;
    inf_json_doc_t doc;

    for (int i = 0; i < 2000; i++) {
        char text[64];
        snprintf(text, sizeof(text), "{\"a\":[%d,\"%d\"],\"b\":{}}", i, i);
        parse(&doc, text, 0);
        assert_int_equal(json_integer_value(json_array_get(
            json_object_get(doc.root, "a"), 0)), i);
        inf_json_doc_fini(&doc);
    }
    parse(left, "{\"left\":\"over\"}", 0);
    return NULL;
}

/* Threads come and go; each leaves a document to another to finish. */
static void
a_document_may_outlive_its_thread(void **state)
{
    (void) state;

    for (int round = 0; round < 4; round++) {
        pthread_t threads[4];
        inf_json_doc_t docs[4];

        for (int i = 0; i < 4; i++) {
            assert_int_equal(pthread_create(&threads[i], NULL, parse_many,
                &docs[i]), 0);
        }
        for (int i = 0; i < 4; i++) {
            pthread_join(threads[i], NULL);
            assert_string_equal(json_string_value(
                json_object_get(docs[i].root, "left")), "over");
            inf_json_doc_fini(&docs[i]);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_document_is_walked_as_a_tree),
        cmocka_unit_test(an_error_names_line_column_and_offset),
        cmocka_unit_test(a_byte_order_mark_is_skipped),
        cmocka_unit_test(duplicates_are_the_last_or_an_error),
        cmocka_unit_test(integers_have_sixty_three_bits),
        cmocka_unit_test(documents_may_live_side_by_side_and_end_in_any_order),
        cmocka_unit_test(a_large_document_is_read),
        cmocka_unit_test(a_document_of_many_small_values_is_rejected),
        cmocka_unit_test(a_document_may_outlive_its_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
