/* The check of nginx -t: what it reports of a tree, and that nothing is left
   behind, whichever allocation fails. */

#define SHRINKING_SUCCEEDS
#include "scarce_memory.h"

#include "temp_tree.h"

#include "core/proto/message.h"
#include "core/proto/text_format.h"
#include "core/repository/check.h"

#define IN  "input { name: 'IN' data_type: TYPE_FP32 dims: 4 } "
#define OUT "output { name: 'OUT' data_type: TYPE_FP32 dims: 4 } "
#define STEP(model, from, to) "step { model_name: '" model "' model_version:" \
    " -1 input_map { key: 'IN' value: '" from "' } output_map {"             \
    " key: 'OUT' value: '" to "' } } "
#define ENSEMBLE(steps) "platform: 'ensemble' " IN OUT                       \
    "ensemble_scheduling { " steps "}"
#define STATE "sequence_batching { state { input_name: 'A' output_name: 'B'" \
    " data_type: TYPE_INT32 dims: 1 initial_state { name: 's'"               \
    " data_type: TYPE_INT32 dims: 1 data_file: 'missing' } } }"

static char *tree;
static inf_core_config_t *config;
static unsigned reports;
static char report[8192];

static void
note(void *userp, inf_log_level_t level, const char *text)
{
    (void) userp;
    assert_int_equal(level, INF_LOG_ERROR);
    size_t len = strlen(report);
    snprintf(report + len, sizeof(report) - len, "%s\n", text);
    reports++;
}

static inf_err_t *
check(void)
{
    reports = 0;
    report[0] = '\0';
    return inf_repository_check(config, note, NULL);
}

static void
add_model(const char *name, const char *config)
{
    char path[256];

    snprintf(path, sizeof(path), "models/%s/config.pbtxt", name);
    tree_file(tree, path, config);
    for (int version = 1; version <= 2; version++) {
        snprintf(path, sizeof(path), "models/%s/%d/model", name, version);
        tree_file(tree, path, "");
    }
}

static void
reported(const char *part)
{
    if (strstr(report, part) == NULL) {
        fail_msg("\"%s\" is not reported:\n%s", part, report);
    }
}

static int
make_good(void **state)
{
    (void) state;
    ProtobufCMessage *values;
    char text[1200];

    tree = tree_new();
    snprintf(text, sizeof(text), "repositories: '%s/models'"
        " backend_directories: '%s' rate_limit: RATE_LIMIT_EXECUTION_COUNT"
        " rate_limit_resources { name: 'R' count: 4 device: -1 }"
        " named_models { place: 'nginx.conf:7' name: 'm' version: 2 }"
        " named_models { place: 'nginx.conf:8' name: 'm' }", tree, tree);
    assert_ok(inf_text_parse(&nginx_inference__core_config__descriptor,
        inf_slice_str(text), "", &values));
    assert_ok(inf_core_config_new((NginxInference__CoreConfig *) (void *)
        values, &config));
    inf_message_free(values);
    tree_file(tree, "b/libtriton_b.so", "not a library");
    add_model("m", "backend: 'b' " IN OUT "version_policy { all { } }"
        " instance_group { kind: KIND_CPU rate_limiter { resources {"
        " name: 'R' count: 4 } } }");
    add_model("e", ENSEMBLE(STEP("m", "IN", "x") STEP("m", "x", "OUT")));
    add_model("f", ENSEMBLE(STEP("e", "IN", "OUT")));
    return 0;
}

static int
remove_all(void **state)
{
    (void) state;
    inf_core_config_unref(config);
    tree_free(tree);
    return 0;
}

static void
good_models_are_not_reported(void **state)
{
    (void) state;

    assert_ok(check());
    assert_string_equal(report, "");
}

static void
each_file_that_a_load_needs_is_reported(void **state)
{
    (void) state;

    add_model("files", "backend: 'b' " IN "output { name: 'OUT' data_type:"
        " TYPE_FP32 dims: 4 label_filename: 'gone.txt' } " STATE
        " parameters { key: 'TRITON_BATCH_STRATEGY_PATH' value {"
        " string_value: 'none.so' } }");
    assert_ok(check());
    reported("files/config.pbtxt: ");
    reported("gone.txt");
    reported("missing");
    reported("none.so");
    assert_int_equal(reports, 3);
}

static void
every_version_needs_its_backend(void **state)
{
    (void) state;

    add_model("two", "backend: 'none' version_policy { all { } } " IN OUT);
    assert_ok(check());
    assert_int_equal(reports, 2);
    reported("two/config.pbtxt:1:1: backend)");
    reported("two/1");
    reported("two/2");
}

/* Asked for by directives: version 9 of m, and a model M. */
static void
name_what_is_not_there(void)
{
    NginxInference__NamedModel **named = config->values->named_models;

    named[0]->version = 9;
    named[1]->name[0] = 'M';
}

static void
a_model_and_a_version_that_directives_name_are_missed(void **state)
{
    (void) state;

    name_what_is_not_there();
    assert_ok(check());
    assert_int_equal(reports, 2);
    reported("\"inference_model m\" in nginx.conf:7: the model has no version"
        " 9; it has 1, 2\n");
    reported("\"inference_model M\" in nginx.conf:8: no repository has a model"
        " of that name; did you mean \"m\"?\n");
}

static void
all_models_that_an_ensemble_lacks_are_one_report(void **state)
{
    (void) state;

    add_model("lacks", ENSEMBLE(STEP("m", "IN", "x") STEP("one", "x", "y")
        STEP("two", "y", "OUT")));
    assert_ok(check());
    assert_int_equal(reports, 1);
    reported("ensemble lacks contains models that are not available or"
        " ambiguous: one, two (");
    reported("ensemble_scheduling.step[1].model_name)\n");
}

static void
a_step_that_reads_of_two_decoupled_models_is_named(void **state)
{
    (void) state;

    add_model("many", "backend: 'b' " IN OUT "model_transaction_policy {"
        " decoupled: true }");
    add_model("join", "backend: 'b' " IN "input { name: 'OTHER' data_type:"
        " TYPE_FP32 dims: 4 } " OUT);
    add_model("meet", ENSEMBLE(STEP("many", "IN", "x") STEP("many", "IN", "y")
        "step { model_name: 'join' model_version: -1 input_map { key: 'IN'"
        " value: 'x' } input_map { key: 'OTHER' value: 'y' } output_map {"
        " key: 'OUT' value: 'OUT' } }"));
    assert_ok(check());
    assert_int_equal(reports, 1);
    reported("in ensemble meet, step of model 'join' receives inputs"
        " originated from different decoupled models (");
    reported("ensemble_scheduling.step[2])\n");
}

static void
a_failed_allocation_leaves_nothing_behind(void **state)
{
    (void) state;
#if OWN_MALLOC
    long n = 1;

    name_what_is_not_there();
    add_model("lacks", ENSEMBLE(STEP("one", "IN", "OUT")));
    add_model("limited", "backend: 'b' " IN OUT "instance_group { kind:"
        " KIND_CPU rate_limiter { resources { name: 'R' count: 5 } } }");
    for (bool reached = true; reached; n++) {
        long before = live;

        countdown = n;
        inf_err_t *err = check();
        reached = countdown == 0;
        countdown = 0;
        if (err != NULL) {
            assert_non_null(strstr(inf_err_msg(err), "memory"));
            inf_err_free(err);
        }
        if (live != before) {
            fail_msg("allocation %ld failed and left %ld behind", n,
                live - before);
        }
    }
    assert_true(n > 300);
#else
    print_message("skipped: a sanitizer's allocator can't be replaced\n");
    skip();
#endif
}

int
main(void)
{
    inf_log_set_levels(false, false, false, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(good_models_are_not_reported,
            make_good, remove_all),
        cmocka_unit_test_setup_teardown(
            each_file_that_a_load_needs_is_reported, make_good, remove_all),
        cmocka_unit_test_setup_teardown(every_version_needs_its_backend,
            make_good, remove_all),
        cmocka_unit_test_setup_teardown(
            a_model_and_a_version_that_directives_name_are_missed, make_good,
            remove_all),
        cmocka_unit_test_setup_teardown(
            all_models_that_an_ensemble_lacks_are_one_report, make_good,
            remove_all),
        cmocka_unit_test_setup_teardown(
            a_step_that_reads_of_two_decoupled_models_is_named, make_good,
            remove_all),
        cmocka_unit_test_setup_teardown(
            a_failed_allocation_leaves_nothing_behind, make_good, remove_all)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
