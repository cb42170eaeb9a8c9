/* A model's directory on disk, read as a loader does. */

#include "temp_tree.h"

#include <time.h>

#include "core/model/config_load.h"
#include "core/model/labels.h"
#include "core/repository/scan.h"
#include "core/storage/storage_local.h"

static inf_storage_t *storage;

static int
open_storage(void **state)
{
    (void) state;
    assert_ok(inf_storage_local_open(&storage));
    return 0;
}

static int
close_storage(void **state)
{
    (void) state;
    inf_storage_close(storage);
    return 0;
}

static inf_err_t *
read_model(const char *tree, const char *name, bool auto_complete,
    inf_model_config_t **out)
{
    inf_config_options_t opt = { .auto_complete = auto_complete };
    char *dir = strdup(tree_path(tree, name));

    *out = NULL;
    inf_err_t *err = inf_model_config_read(storage, dir, name, &opt, out);
    free(dir);
    return err;
}

static void
labels_come_from_the_model_directory_only(void **state)
{
    (void) state;
    char *tree = tree_new();
    static const struct {
        const char *file;
        const char *part;       /* NULL: loads                             */
    } rows[] = {
        { "labels.txt", NULL },
        { "sub/labels.txt", NULL },
        { "sub/../labels.txt", NULL },
        { "inner_link.txt", NULL },
        { "/labels.txt", NULL },        /* joined, so it stays inside      */
        { "../secret.txt", "is outside model directory" },
        { "link.txt", "is outside model directory" },
        { "dangling.txt", "is outside model directory" },
        { "gone.txt", "No such file or directory" },
        { "sub", "is not a regular file" },
    };

    tree_file(tree, "m/labels.txt", "cat\ndog\n");
    tree_file(tree, "m/sub/labels.txt", "cat\ndog");
    tree_file(tree, "secret.txt", "password\n");
    tree_link(tree, "labels.txt", "m/inner_link.txt");
    tree_link(tree, "../secret.txt", "m/link.txt");
    tree_link(tree, "../later.txt", "m/dangling.txt");

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[256];
        snprintf(text, sizeof(text), "backend: \"x\" output { name: \"O\" "
            "data_type: TYPE_FP32 dims: 2 label_filename: \"%s\" }",
            rows[i].file);
        tree_file(tree, "m/config.pbtxt", text);

        inf_model_config_t *c;
        inf_labels_t *labels = NULL;
        assert_ok(read_model(tree, "m", false, &c));

        inf_err_t *err = inf_labels_load(storage, tree_path(tree, "m"),
            c->msg, &labels);
        if (rows[i].part == NULL) {
            assert_ok(err);
            assert_int_equal(inf_labels_find(labels, INF_SLICE("O"))->count,
                2);

        } else {
            assert_non_null(err);
            assert_non_null(strstr(inf_err_msg(err), rows[i].part));
            inf_err_free(err);
        }

        inf_labels_unref(labels);
        inf_model_config_free(c);
    }

    tree_free(tree);
}

static void
a_config_that_cannot_be_read_is_never_taken_for_none(void **state)
{
    (void) state;
    char *tree = tree_new();
    inf_model_config_t *c;

    tree_file(tree, "a/1/model.onnx", "");
    tree_link(tree, "nowhere", "a/config.pbtxt");
    assert_error(read_model(tree, "a", true, &c), INF_ERR_INTERNAL,
        "failed to follow link");

    tree_file(tree, "b/1/model.onnx", "");
    tree_dir(tree, "b/config.pbtxt");
    assert_error(read_model(tree, "b", true, &c), INF_ERR_INTERNAL,
        "is not a regular file");

    tree_file(tree, "c/1/model.onnx", "");
    tree_file(tree, "c/config.pbtxt", "");
    assert_int_equal(truncate(tree_path(tree, "c/config.pbtxt"),
        (off_t) 1 << 40), 0);
    assert_error(read_model(tree, "c", true, &c), INF_ERR_INTERNAL,
        "larger than the limit of 16777216 bytes");

    tree_file(tree, "d/1/model.onnx", "");
    assert_ok(read_model(tree, "d", true, &c));
    assert_string_equal(c->msg->backend, "onnxruntime");
    inf_model_config_free(c);
    tree_free(tree);
}

static void
dangling_links_do_not_disturb_inference(void **state)
{
    (void) state;
    char *tree = tree_new();
    inf_model_config_t *c;

    tree_file(tree, "m/2/model.py", "");
    tree_link(tree, "nowhere", "m/1");
    tree_link(tree, "nowhere", "m/2/model.onnx");
    assert_ok(read_model(tree, "m", true, &c));
    assert_string_equal(c->msg->backend, "python");
    inf_model_config_free(c);
    tree_free(tree);
}

/* Of this thread: others may need the processors. */
static uint64_t
processor_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t) t.tv_sec * 1000 + (uint64_t) t.tv_nsec / 1000000;
}

static void
a_thousand_models_are_checked_in_under_a_second(void **state)
{
    (void) state;
    char *tree = tree_new();
    char name[64];

    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "m%d/1/model.onnx", i);
        tree_file(tree, name, "");
        snprintf(name, sizeof(name), "m%d/config.pbtxt", i);
        tree_file(tree, name, i % 2 == 0
            ? "max_batch_size: 8 dynamic_batching { } "
              "input [ { name: \"I\" data_type: TYPE_FP32 dims: [ 8, 8 ] } ] "
              "output [ { name: \"O\" data_type: TYPE_FP32 dims: [ 10 ] } ]"
            : "max_batch_size: -1 input { name: \"I\" }");
    }

    inf_config_options_t opt = { .auto_complete = false };
    inf_scan_root_t roots[] = { { .storage = storage, .root = tree } };
    inf_scan_t scan;
    size_t findings = 0;

    uint64_t start = processor_ms();
    assert_ok(inf_scan(roots, 1, &scan));
    for (size_t i = 0; i < scan.model_count; i++) {
        inf_model_config_t *c;
        inf_findings_t f;

        inf_findings_init(&f);
        inf_model_config_check(storage, scan.models[i].dir,
            scan.models[i].name, &opt, &f, &c);
        findings += f.count;
        inf_model_config_free(c);
        inf_findings_fini(&f);
    }

    uint64_t spent_ms = processor_ms() - start;
    inf_scan_fini(&scan);

    print_message("1000 models checked in %u ms\n", (unsigned) spent_ms);
    assert_int_equal(findings, 500 * 3);
    assert_true(spent_ms < 1000);
    tree_free(tree);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_come_from_the_model_directory_only),
        cmocka_unit_test(a_config_that_cannot_be_read_is_never_taken_for_none),
        cmocka_unit_test(dangling_links_do_not_disturb_inference),
        cmocka_unit_test(a_thousand_models_are_checked_in_under_a_second),
    };

    return cmocka_run_group_tests(tests, open_storage, close_storage);
}
