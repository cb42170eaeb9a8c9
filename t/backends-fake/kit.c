/* kit.c - backends/common alone, by the backend of kit_backend.c */

#include "fakecore.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WRONG(how) "{\"name\":\"fake\",\"max_batch_size\":8,\"input\":[{" \
    "\"name\":\"WORDS\",\"data_type\":\"TYPE_STRING\",\"dims\":[-1]}]," \
    "\"output\":[{\"name\":\"TEXT\",\"data_type\":\"TYPE_STRING\"," \
    "\"dims\":[-1]},{\"name\":\"COUNT\",\"data_type\":\"TYPE_INT32\"," \
    "\"dims\":[1]}],\"parameters\":{\"wrong\":{\"string_value\":\"" how "\"}}}"

static fake_backend_t backend;

static fake_model_t *
load(fake_model_t *m, const char *config)
{
    TRITONSERVER_Error *err = fake_model_load(m, &backend, "/nowhere", config,
        true, TRITONSERVER_INSTANCEGROUPKIND_CPU);

    if (err != NULL) {
        fail_msg("%s", TRITONSERVER_ErrorMessage(err));
    }
    return m;
}

/* Rows of two words: letter, and letter so often as the row's number says. */
static uint64_t
words_write(char *to, char letter, int rows)
{
    char *p = to;

    for (int row = 0; row < rows; row++) {
        memcpy(p, "\1\0\0\0", 4);
        p[4] = letter;
        p += 5;
        memcpy(p, &(uint32_t) { (uint32_t) row }, 4);
        memset(p + 4, letter, (size_t) row);
        p += 4 + row;
    }
    return (uint64_t) (p - to);
}

static fake_request_t *
ask(fake_model_t *m, char letter, int rows)
{
    const int64_t shape[] = { rows, 2 };
    char text[256];

    fake_request_t *r = fake_request_new(m);
    fake_request_input(r, "WORDS", TRITONSERVER_TYPE_BYTES, shape, 2, text,
        words_write(text, letter, rows));
    return r;
}

static void
check_text(const fake_request_t *r, char letter, int rows)
{
    const fake_tensor_t *t = fake_request_output(r, "TEXT");
    char text[256];
    uint64_t len = words_write(text, letter, rows);

    assert_int_equal(t->dims_count, 2);
    assert_int_equal(t->shape[0], rows);
    assert_int_equal(t->shape[1], 2);
    assert_int_equal(t->chunk_lens[0], len);
    assert_memory_equal(t->chunks[0], text, len);
}

static void
check_count(const fake_request_t *r, int rows)
{
    const fake_tensor_t *t = fake_request_output(r, "COUNT");

    assert_int_equal(t->shape[0], rows);
    assert_int_equal(t->chunk_lens[0], 4 * rows);
    for (int i = 0; i < rows; i++) {
        assert_int_equal(((const int32_t *) t->chunks[0])[i], 2);
    }
}

/* Parts of a text in one piece, of requests that want it and others. */
static void
kit_splits_texts_by_their_elements(void **state)
{
    fake_request_t *r[4];
    fake_model_t m;

    (void) state;
    load(&m, "{\"name\":\"fake\"}");
    for (int wanted = 0; wanted < 16; wanted++) {
        for (int i = 0; i < 4; i++) {
            r[i] = ask(&m, (char) ('a' + i), 1 + i % 3);
            if (wanted >> i & 1) {
                fake_request_want(r[i], "TEXT");
            }
            fake_request_want(r[i], "COUNT");
        }
        fake_execute(&m, r, 4);
        for (int i = 0; i < 4; i++) {
            assert_false(r[i]->failed);
            check_count(r[i], 1 + i % 3);
            if (wanted >> i & 1) {
                check_text(r[i], (char) ('a' + i), 1 + i % 3);
            } else {
                assert_int_equal(r[i]->output_count, 1);
            }
            fake_request_free(r[i]);
        }
    }
    assert_int_equal(m.batches, 16);
    assert_int_equal(m.rows, 16 * (1 + 2 + 3 + 1));
    fake_model_unload(&m);
}

static void
kit_completes_a_configuration(void **state)
{
    fake_model_t m;

    (void) state;
    load(&m, "{\"name\":\"fake\"}");
    assert_non_null(strstr(m.config, "\"max_batch_size\":8"));
    assert_non_null(strstr(m.config, "\"dynamic_batching\""));
    assert_non_null(strstr(m.config, "\"COUNT\""));
    fake_model_unload(&m);
}

/* The runtime's own mistakes: an error, and no byte beyond what is there. */
static void
kit_rejects_outputs_that_are_not_as_they_say(void **state)
{
    static const struct {
        const char *config;
        const char *words;
    } cases[] = {
        { WRONG("rows"), "output \"TEXT\": its first dimension is 5, the batch"
            " has 4 rows" },
        { WRONG("words"), "too few for its 44 elements" },
        { WRONG("rank"), "65 dimensions, more than 64" },
        { WRONG("negative"), "more elements than can be counted" },
        { WRONG("short"), "output \"TEXT\" ends inside element" },
        { WRONG("run"), "no run today" }
    };

    (void) state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fake_request_t *r[2];
        fake_model_t m;

        load(&m, cases[i].config);
        for (int k = 0; k < 2; k++) {
            r[k] = ask(&m, 'x', 2);
            fake_request_want(r[k], "TEXT");
        }
        fake_execute(&m, r, 2);
        assert_true(r[1]->failed);
        if (strstr(r[1]->error, cases[i].words) == NULL) {
            fail_msg("%s", r[1]->error);
        }
        fake_request_free(r[0]);
        fake_request_free(r[1]);
        fake_model_unload(&m);
    }
}

/* A runtime's error has no row: the others of the batch have their answers. */
static void
kit_gives_a_runtime_s_error_to_the_request_that_has_it(void **state)
{
    fake_request_t *r[4];
    fake_model_t m;

    (void) state;
    load(&m, WRONG("letter"));
    for (int bad = 0; bad < 4; bad++) {
        for (int i = 0; i < 4; i++) {
            r[i] = ask(&m, i == bad ? 'z' : (char) ('a' + i), 1 + i % 3);
            fake_request_want(r[i], "TEXT");
            fake_request_want(r[i], "COUNT");
        }
        fake_execute(&m, r, 4);
        for (int i = 0; i < 4; i++) {
            if (i == bad) {
                assert_true(r[i]->failed);
                assert_non_null(strstr(r[i]->error, "a \"z\""));
            } else {
                assert_false(r[i]->failed);
                check_text(r[i], (char) ('a' + i), 1 + i % 3);
                check_count(r[i], 1 + i % 3);
            }
            fake_request_free(r[i]);
        }
    }
    assert_int_equal(m.batches, 4);
    fake_model_unload(&m);
}

static void
kit_asks_the_instance_whether_it_is_ready(void **state)
{
    TRITONSERVER_Error *(*ready)(TRITONBACKEND_ModelInstance *);
    fake_model_t m;

    (void) state;
    *(void **) &ready = dlsym(backend.library,
        "TRITONBACKEND_ModelInstanceReady");
    load(&m, WRONG(""));
    assert_null(ready((TRITONBACKEND_ModelInstance *) &m));
    fake_model_unload(&m);
    load(&m, WRONG("ready"));
    TRITONSERVER_Error *err = ready((TRITONBACKEND_ModelInstance *) &m);
    assert_non_null(err);
    assert_string_equal(TRITONSERVER_ErrorMessage(err), "not ready");
    TRITONSERVER_ErrorDelete(err);
    fake_model_unload(&m);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kit_splits_texts_by_their_elements),
        cmocka_unit_test(kit_completes_a_configuration),
        cmocka_unit_test(kit_rejects_outputs_that_are_not_as_they_say),
        cmocka_unit_test(
            kit_gives_a_runtime_s_error_to_the_request_that_has_it),
        cmocka_unit_test(kit_asks_the_instance_whether_it_is_ready)
    };

    if (argc != 2) {
        fprintf(stderr, "usage: %s LIBRARY\n", argv[0]);
        return 2;
    }

    TRITONSERVER_Error *err = fake_backend_open(&backend, argv[1], NULL);
    if (err != NULL) {
        fprintf(stderr, "%s\n", TRITONSERVER_ErrorMessage(err));
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fake_backend_close(&backend);
    return failed != 0 || fake_leftovers() != 0;
}
