/* BYTES tensors, element by element */

#include "common_world.h"

#include "backends/common/bytes.h"

/* So that a sanitizer sees a byte too many. */
static void *
copy_of(const void *data, size_t len)
{
    void *copy = malloc(len);

    assert_true(copy != NULL || len == 0);
    return len == 0 ? copy : memcpy(copy, data, len);
}

static void
bytes_gives_each_element_and_its_length(void **state)
{
    static const char text[] = "\3\0\0\0a\0b\0\0\0\0\1\0\0\0z";
    void *data = copy_of(text, sizeof(text) - 1);
    const char *element;
    bk_bytes_t b;
    uint32_t len;

    (void) state;
    expect_success(bk_bytes_open(&b, "input", "X", data, sizeof(text) - 1,
        3));
    expect_success(bk_bytes_next(&b, &element, &len));
    assert_int_equal(len, 3);
    assert_memory_equal(element, "a\0b", 3);
    expect_success(bk_bytes_next(&b, &element, &len));
    assert_int_equal(len, 0);
    expect_success(bk_bytes_next(&b, &element, &len));
    assert_int_equal(len, 1);
    assert_memory_equal(element, "z", 1);
    free(data);
}

static void
bytes_rejects_fewer_bytes_than_its_elements_need(void **state)
{
    bk_bytes_t b;

    (void) state;
    expect_error(bk_bytes_open(&b, "input", "X", "\0\0\0\0\0\0\0", 7, 2),
        TRITONSERVER_ERROR_INVALID_ARG, "input \"X\" has 7 bytes, too few");
    expect_error(bk_bytes_open(&b, "input", "X", "", 0, UINT64_MAX),
        TRITONSERVER_ERROR_INVALID_ARG, "too few");
    expect_error(bk_bytes_open(&b, "output", "Y", "abcd", 4, 0),
        TRITONSERVER_ERROR_INVALID_ARG,
        "output \"Y\" has 4 bytes behind its 0 elements");
    expect_success(bk_bytes_open(&b, "input", "X", NULL, 0, 0));
}

/* Lengths one byte too long, and as long as 32 bits can say. */
static void
bytes_rejects_an_element_that_ends_beyond_the_buffer(void **state)
{
    static const uint32_t lens[] = { 3, 4, 6, 7, UINT32_MAX };
    char text[6] = { 0 };
    const char *element;
    bk_bytes_t b;
    uint32_t len;

    (void) state;
    for (size_t i = 0; i < COUNT(lens); i++) {
        bk_bytes_put_len(text, lens[i]);
        void *data = copy_of(text, sizeof(text));
        expect_success(bk_bytes_open(&b, "input", "X", data, sizeof(text),
            1));
        expect_error(bk_bytes_next(&b, &element, &len),
            TRITONSERVER_ERROR_INVALID_ARG,
            "input \"X\" ends inside element 0 of 1");
        free(data);
    }
}

static void
bytes_rejects_bytes_behind_the_last_element(void **state)
{
    const char *element;
    bk_bytes_t b;
    uint32_t len;

    (void) state;
    expect_success(bk_bytes_open(&b, "input", "X", "\0\0\0\0ab", 6, 1));
    expect_error(bk_bytes_next(&b, &element, &len),
        TRITONSERVER_ERROR_INVALID_ARG, "2 bytes behind its 1 elements");
}

static void
bytes_writes_lengths_little_endian(void **state)
{
    unsigned char to[4];

    (void) state;
    bk_bytes_put_len(to, 0x01020384);
    assert_memory_equal(to, "\x84\3\2\1", 4);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_gives_each_element_and_its_length),
        cmocka_unit_test(bytes_rejects_fewer_bytes_than_its_elements_need),
        cmocka_unit_test(
            bytes_rejects_an_element_that_ends_beyond_the_buffer),
        cmocka_unit_test(bytes_rejects_bytes_behind_the_last_element),
        cmocka_unit_test(bytes_writes_lengths_little_endian)
    };

    return cmocka_run_group_tests(tests, NULL, no_leftovers);
}
