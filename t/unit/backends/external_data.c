#include <stdarg.h>
#include <stdio.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/common/error.c"
#include "backends/common/path.c"
#include "backends/onnxruntime/external_data.c"

/* A message that grows; each wrap puts it into a field of another. */
typedef struct {
    uint8_t data[8192];
    size_t  len;
} packed_t;

static void
put_varint(packed_t *p, uint64_t v)
{
    for (; v >= 0x80; v >>= 7) {
        p->data[p->len++] = (uint8_t) (v | 0x80);
    }
    p->data[p->len++] = (uint8_t) v;
}

static void
put(packed_t *p, unsigned number, const void *data, size_t len)
{
    put_varint(p, (number << 3) | LEN);
    put_varint(p, len);
    memcpy(p->data + p->len, data, len);
    p->len += len;
}

static void
wrap(packed_t *p, unsigned number)
{
    const packed_t inner = *p;

    p->len = 0;
    put(p, number, inner.data, inner.len);
}

/* location NULL: the entry has no value. */
static packed_t
tensor_with(const char *key, const char *location, size_t len)
{
    packed_t entry = { .len = 0 };
    packed_t tensor = { .len = 0 };

    put(&entry, 1, key, strlen(key));
    if (location != NULL) {
        put(&entry, 2, location, len);
    }
    put(&tensor, 8, "W", 1);
    put(&tensor, 13, entry.data, entry.len);
    return tensor;
}

static packed_t
tensor_at(const char *location)
{
    return tensor_with("location", location, strlen(location));
}

/* Takes the fields from the tensor outwards, the last one is the model's. */
static packed_t
wrapped(packed_t p, const unsigned *path, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        wrap(&p, path[i]);
    }
    return p;
}

static packed_t
initializer(packed_t tensor)
{
    static const unsigned path[] = { 5, 7 };
    return wrapped(tensor, path, 2);
}

static void
taken(const packed_t *p)
{
    TRITONSERVER_Error *err = ort_external_data_check(p->data, p->len);
    if (err != NULL) {
        fail_msg("%s", TRITONSERVER_ErrorMessage(err));
    }
}

static void
rejected(const packed_t *p, const char *words)
{
    /* no byte behind it may be read */
    uint8_t *exact = malloc(p->len + (p->len == 0));
    memcpy(exact, p->data, p->len);
    TRITONSERVER_Error *err = ort_external_data_check(exact, p->len);

    free(exact);
    if (err == NULL) {
        fail_msg("taken, expected \"%s\"", words);
    }
    if (strstr(TRITONSERVER_ErrorMessage(err), words) == NULL) {
        fail_msg("\"%s\" lacks \"%s\"", TRITONSERVER_ErrorMessage(err),
            words);
    }
    assert_int_equal(TRITONSERVER_ErrorCode(err),
        TRITONSERVER_ERROR_INVALID_ARG);
    TRITONSERVER_ErrorDelete(err);
}

static void
a_location_stays_below_the_model_files_directory(void **state)
{
    (void) state;
    static const char *const inner[] = {
        "weights", "a/b/weights.bin", "./weights", "..weights", "a..", "a/...",
        "a//b", "a/"
    };
    static const char *const outer[] = {
        "/", "/etc/passwd", "..", "../weights", "a/..", "a/../b", "a//../b",
        "./..", "*/_ORT_MEM_ADDR_/*", "./*/_ORT_MEM_ADDR_/*"
    };

    for (size_t i = 0; i < sizeof(inner) / sizeof(inner[0]); i++) {
        packed_t p = initializer(tensor_at(inner[i]));
        taken(&p);
    }
    for (size_t i = 0; i < sizeof(outer) / sizeof(outer[0]); i++) {
        char words[64];
        snprintf(words, sizeof(words), "\"W\" has its external data at \"%s\"",
            outer[i]);
        packed_t p = initializer(tensor_at(outer[i]));
        rejected(&p, words);
    }
}

static void
a_location_without_a_value_or_with_a_nul_is_none(void **state)
{
    (void) state;
    packed_t p = initializer(tensor_at(""));
    rejected(&p, "at \"\"");
    p = initializer(tensor_with("location", NULL, 0));
    rejected(&p, "at \"\"");
    p = initializer(tensor_with("location", "a\0b", 3));
    rejected(&p, "at \"a?b\"");
}

static void
other_entries_may_say_anything(void **state)
{
    (void) state;
    static const char *const keys[] = { "offset", "Location", "locations" };

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        packed_t p = initializer(tensor_with(keys[i], "/../", 4));
        taken(&p);
    }
}

/* The last one counts, in whichever order they come. */
static void
a_key_or_a_value_that_is_there_twice_hides_nothing(void **state)
{
    (void) state;
    static const struct {
        unsigned    number;
        const char *text;
    } orders[][4] = {
        { { 1, "x" }, { 1, "location" }, { 2, "/a" }, { 0, NULL } },
        { { 2, "/a" }, { 1, "x" }, { 1, "location" }, { 0, NULL } },
        { { 1, "location" }, { 2, "a" }, { 2, "/a" }, { 0, NULL } },
        { { 2, "a" }, { 2, "/a" }, { 1, "location" }, { 0, NULL } }
    };

    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        packed_t p = { .len = 0 };
        for (size_t k = 0; orders[i][k].text != NULL; k++) {
            put(&p, orders[i][k].number, orders[i][k].text,
                strlen(orders[i][k].text));
        }
        wrap(&p, 13);
        p = initializer(p);
        rejected(&p, "at \"/a\"");
    }
}

/* From the tensor outwards. */
static void
tensors_are_found_wherever_a_model_has_them(void **state)
{
    (void) state;
    static const unsigned paths[][8] = {
        { 5, 7 },                       /* initializer of the graph          */
        { 1, 15, 7 }, { 2, 15, 7 },     /* sparse: values, indices           */
        { 5, 5, 1, 7 },                 /* t of a node's attribute           */
        { 10, 5, 1, 7 },                /* tensors                           */
        { 5, 6, 5, 1, 7 },              /* initializer of a subgraph         */
        { 5, 11, 5, 1, 7 },             /* of one of several                 */
        { 1, 22, 5, 1, 7 }, { 2, 23, 5, 1, 7 },
        { 5, 5, 7, 25 },                /* node of a function                */
        { 5, 11, 25 },                  /* default of a function's attribute */
        { 5, 1, 20 }, { 5, 2, 20 }      /* graphs for training               */
    };

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        size_t count = 0;
        while (paths[i][count] != 0) {
            count++;
        }
        packed_t p = wrapped(tensor_at("/a"), paths[i], count);
        rejected(&p, "\"W\" has its external data at \"/a\"");
        p = wrapped(tensor_at("a"), paths[i], count);
        taken(&p);
    }
}

static void
what_follows_another_part_is_read_too(void **state)
{
    (void) state;
    packed_t p = initializer(tensor_at("a"));
    const packed_t bad = initializer(tensor_at("/a"));

    put_varint(&p, (1 << 3) | VARINT);
    put_varint(&p, 9);
    put(&p, 2, "who", 3);
    memcpy(p.data + p.len, bad.data, bad.len);     /* graph comes again      */
    p.len += bad.len;
    rejected(&p, "at \"/a\"");
}

static void
nesting_has_an_end(void **state)
{
    (void) state;
    packed_t p = tensor_at("a");

    wrap(&p, 5);                        /* depths: model, graph, tensor      */
    for (int depth = 3; depth + 3 <= MAX_DEPTH; depth += 3) {
        wrap(&p, 6);                    /* attribute, node, graph            */
        wrap(&p, 5);
        wrap(&p, 1);
    }
    packed_t deep = p;
    wrap(&p, 7);
    taken(&p);
    wrap(&deep, 6);
    wrap(&deep, 5);
    wrap(&deep, 1);
    wrap(&deep, 7);
    rejected(&deep, "nested deeper than 100");
}

static void
every_end_is_checked(void **state)
{
    (void) state;
    static const struct {
        const char *bytes;
        size_t      len;
    } rows[] = {
        { "\x3a", 1 },                  /* no length                         */
        { "\x3a\x01", 2 },              /* longer than what is left          */
        { "\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11 },
        { "\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11 },
        { "\x3a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 12 },
        { "\x08", 1 }, { "\x08\x80", 2 },
        { "\x09" "1234567", 8 }, { "\x0d" "123", 4 },
        { "\x00\x00", 2 },              /* field number 0                    */
        { "\x3b", 1 }, { "\x3c", 1 },   /* groups                            */
        { "\x3e\x00", 2 }, { "\x3f\x00", 2 },
        { "\xba\x80\x80\x80\x10\x00", 6 },      /* a tag of 33 bits          */
        { "\x3a\x02\x2a\x01", 4 },      /* an initializer beyond its graph   */
        { "\x3a\x06\x2a\x04\x6a\x02\x0a\x01", 8 }
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        packed_t p = { .len = rows[i].len };
        memcpy(p.data, rows[i].bytes, rows[i].len);
        rejected(&p, "it is not an ONNX file, or cut off: no field at byte");
    }

    packed_t p = { .len = 0 };
    taken(&p);
    memcpy(p.data, "\x09" "12345678" "\x0d" "1234" "\x08\x7f", 16);
    p.len = 16;
    taken(&p);
}

static void
check_file(const packed_t *p, const char *format, const char *words)
{
    char path[] = "/tmp/t_onnx_XXXXXX";
    const char *found = NULL;
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, p->data, p->len), p->len);
    close(fd);
    TRITONSERVER_Error *err = ort_external_data_check_file(path, &found);
    unlink(path);
    if (words == NULL) {
        assert_null(err);
        assert_string_equal(found, format);
        return;
    }

    assert_non_null(err);
    assert_non_null(strstr(TRITONSERVER_ErrorMessage(err), words));
    assert_non_null(strstr(TRITONSERVER_ErrorMessage(err), path));
    TRITONSERVER_ErrorDelete(err);
}

static void
a_file_is_what_its_first_bytes_say(void **state)
{
    (void) state;
    packed_t p = initializer(tensor_at("a"));

    check_file(&p, "ONNX", NULL);
    p = initializer(tensor_at("/a"));
    check_file(&p, NULL, "tensor \"W\"");
    p.len = 0;
    check_file(&p, NULL, "it is empty");
    memcpy(p.data, "\x10\0\0\0ORTM\xff", 9);
    p.len = 9;
    check_file(&p, "ORT", NULL);
    p.len = 7;
    check_file(&p, NULL, "not an ONNX file");
}

static void
files_that_cannot_be_read_are_named(void **state)
{
    (void) state;
    const char *format;

    TRITONSERVER_Error *err = ort_external_data_check_file("/tmp", &format);
    assert_non_null(strstr(TRITONSERVER_ErrorMessage(err), "\"/tmp\""));
    assert_non_null(strstr(TRITONSERVER_ErrorMessage(err), "not a file"));
    TRITONSERVER_ErrorDelete(err);

    err = ort_external_data_check_file("/nowhere/x", &format);
    assert_int_equal(TRITONSERVER_ErrorCode(err),
        TRITONSERVER_ERROR_NOT_FOUND);
    assert_non_null(strstr(TRITONSERVER_ErrorMessage(err), "\"/nowhere/x\""));
    TRITONSERVER_ErrorDelete(err);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_location_stays_below_the_model_files_directory),
        cmocka_unit_test(a_location_without_a_value_or_with_a_nul_is_none),
        cmocka_unit_test(other_entries_may_say_anything),
        cmocka_unit_test(a_key_or_a_value_that_is_there_twice_hides_nothing),
        cmocka_unit_test(tensors_are_found_wherever_a_model_has_them),
        cmocka_unit_test(what_follows_another_part_is_read_too),
        cmocka_unit_test(nesting_has_an_end),
        cmocka_unit_test(every_end_is_checked),
        cmocka_unit_test(a_file_is_what_its_first_bytes_say),
        cmocka_unit_test(files_that_cannot_be_read_are_named)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
