#include "model/config_text.h"
#include "model/memory_storage.h"

#include "core/model/labels.h"

#define OUTPUT(name, file)                                                   \
    "output { name: \"" name "\" label_filename: \"" file "\" } "

static inf_err_t *
load(const memory_file_t *files, const char *outside, const char *config,
    inf_labels_t **out)
{
    memory_storage_t st = memory_storage(files);
    Inference__ModelConfig *msg = config_parse(config);

    st.outside = outside;
    *out = NULL;
    inf_err_t *err = inf_labels_load(&st.base, "m", msg, out);
    inf_message_free(&msg->base);
    return err;
}

static void
assert_label(const inf_labels_t *l, const char *output, size_t index,
    const char *expected)
{
    inf_slice_t label = inf_labels_get(l, inf_slice_str(output), index);
    assert_true(inf_slice_eq(label, inf_slice_str(expected)));
}

static void
lines_are_labels_by_output(void **state)
{
    (void) state;
    static const memory_file_t files[] = {
        { "m/a.txt", "cat\ndog\n\nlast" },
        { "m/b.txt", "one\r\ntwo\r\n" },
        { "m/empty.txt", "" },
        { NULL, NULL },
    };
    inf_labels_t *l;

    assert_ok(load(files, NULL, OUTPUT("A", "a.txt") OUTPUT("B", "b.txt")
        OUTPUT("E", "empty.txt") "output { name: \"N\" }", &l));

    assert_int_equal(inf_labels_find(l, INF_SLICE("A"))->count, 4);
    assert_label(l, "A", 0, "cat");
    assert_label(l, "A", 1, "dog");
    assert_label(l, "A", 2, "");
    assert_label(l, "A", 3, "last");
    assert_label(l, "A", 4, "");
    assert_label(l, "A", SIZE_MAX, "");

    assert_int_equal(inf_labels_find(l, INF_SLICE("B"))->count, 2);
    assert_label(l, "B", 0, "one\r");
    assert_label(l, "B", 1, "two\r");

    assert_int_equal(inf_labels_find(l, INF_SLICE("E"))->count, 0);
    assert_label(l, "E", 0, "");
    assert_null(inf_labels_find(l, INF_SLICE("N")));
    assert_label(l, "N", 0, "");

    inf_labels_t *again = inf_labels_ref(l);
    inf_labels_unref(l);
    assert_label(again, "A", 0, "cat");
    inf_labels_unref(again);
}

static void
no_label_files_make_an_empty_table(void **state)
{
    (void) state;
    static const memory_file_t files[] = { { NULL, NULL } };
    inf_labels_t *l;

    assert_ok(load(files, NULL, "output { name: \"A\" }", &l));
    assert_non_null(l);
    assert_null(inf_labels_find(l, INF_SLICE("A")));
    inf_labels_unref(l);
    assert_null(inf_labels_find(NULL, INF_SLICE("A")));
    inf_labels_unref(NULL);
}

static void
files_that_cannot_be_used_fail_the_load(void **state)
{
    (void) state;
    static const memory_file_t files[] = {
        { "m/a.txt", "x\n" }, { "m/locked.txt", NULL }, { NULL, NULL },
    };
    inf_labels_t *l;

    assert_error(load(files, NULL, OUTPUT("A", "gone.txt"), &l),
        INF_ERR_INTERNAL, "m/gone.txt (output[0].label_filename)");
    assert_error(load(files, NULL, OUTPUT("B", "a.txt")
        OUTPUT("A", "locked.txt"), &l), INF_ERR_INTERNAL,
        "m/locked.txt: Permission denied (output[1].label_filename)");
    assert_error(load(files, "m/../../etc/passwd",
        OUTPUT("A", "../../etc/passwd"), &l), INF_ERR_UNSUPPORTED,
        "label file path 'm/../../etc/passwd' is outside model directory "
        "'m'");
    assert_error(load(files, NULL, OUTPUT("A", "a.txt")
        OUTPUT("A", "a.txt"), &l), INF_ERR_INTERNAL, "multiple label files "
        "for 'A' (output[1].label_filename of model");
    assert_null(l);
}

static void
outputs_inherit_what_they_have_not_themselves(void **state)
{
    (void) state;
    static const memory_file_t files[] = {
        { "m/a.txt", "cat\ndog\n" },
        { "m/b.txt", "own\n" },
        { NULL, NULL },
    };
    inf_labels_t *from;
    inf_labels_t *l;

    assert_ok(load(files, NULL, OUTPUT("A", "a.txt"), &from));
    assert_ok(load(files, NULL, "output { name: \"X\" } output { name: \"Y\""
        " } output { name: \"Z\" }" OUTPUT("B", "b.txt"), &l));
    assert_ok(inf_labels_inherit(l, INF_SLICE("X"), from, INF_SLICE("A")));
    assert_ok(inf_labels_inherit(l, INF_SLICE("Y"), from, INF_SLICE("N")));
    assert_ok(inf_labels_inherit(l, INF_SLICE("Z"), NULL, INF_SLICE("A")));
    assert_ok(inf_labels_inherit(l, INF_SLICE("B"), from, INF_SLICE("A")));
    inf_labels_unref(from);             /* they stay as long as they are used */

    assert_label(l, "X", 1, "dog");
    assert_null(inf_labels_find(l, INF_SLICE("Y")));
    assert_null(inf_labels_find(l, INF_SLICE("Z")));
    assert_label(l, "B", 0, "own");
    inf_labels_unref(l);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_labels_by_output),
        cmocka_unit_test(no_label_files_make_an_empty_table),
        cmocka_unit_test(files_that_cannot_be_used_fail_the_load),
        cmocka_unit_test(outputs_inherit_what_they_have_not_themselves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
