/* Names of cached objects. */

#include "temp_tree.h"

#include "core/storage/object_name.h"

static char *
name_of(const char *address, const char *key, const char *etag, uint64_t size)
{
    inf_object_address_t a;
    const inf_object_t o = { (char *) key, (char *) etag, size, 0 };
    inf_buf_t name;

    assert_ok(inf_object_address_parse(address, &a));
    inf_buf_init(&name);
    assert_ok(inf_object_name_put(&name, &a, &o));
    inf_object_address_fini(&a);
    return inf_buf_give(&name, NULL);
}

/* printf '%s\0' http://h:1 "" b k e | sha256sum */
static void
a_name_is_a_sha_256_and_the_size(void **state)
{
    (void) state;
    static const struct {
        const char *address;
        const char *name;
    } rows[] = {
        { "s3://h:1/b/prefix", "70b16aa966edf5e9ddedd1a6dd29e042"
          "a5a0540481394dabe2e18ac68ce82b9b-18446744073709551615" },
        { "as://acc/b", "779ac7182765bd0279851063cb54315a"
          "ed757368973681f7d0a41066d82b1f21-18446744073709551615" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *name = name_of(rows[i].address, "k", "e", UINT64_MAX);
        assert_string_equal(name, rows[i].name);
        free(name);
    }
}

static void
each_part_of_a_name_counts(void **state)
{
    (void) state;
    static const struct {
        const char *address, *key, *etag;
        uint64_t    size;
    } rows[] = {
        { "s3://b", "key", "etag", 5 },
        { "s3://c", "key", "etag", 5 },
        { "s3://b", "keye", "tag", 5 },
        { "s3://b", "key", "etah", 5 },
        { "s3://b", "key", "etag", 6 },
        { "s3://h:1/b", "key", "etag", 5 },
        { "s3://h:2/b", "key", "etag", 5 },
        { "s3://https://h:1/b", "key", "etag", 5 },
        { "as://h/b", "key", "etag", 5 },
        { "as://i/b", "key", "etag", 5 },
    };
    enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
    char *names[ROWS];

    for (size_t i = 0; i < ROWS; i++) {
        names[i] = name_of(rows[i].address, rows[i].key, rows[i].etag,
            rows[i].size);
        for (size_t k = 0; k < i; k++) {
            assert_string_not_equal(names[i], names[k]);
        }
    }
    for (size_t i = 0; i < ROWS; i++) {
        free(names[i]);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_is_a_sha_256_and_the_size),
        cmocka_unit_test(each_part_of_a_name_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
