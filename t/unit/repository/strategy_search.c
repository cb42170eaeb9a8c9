#include "model/config_text.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/repository/strategy_search.h"

static char root[64];
static inf_model_t *model;

static void
touch(const char *path)
{
    char whole[512], command[1200];
    snprintf(whole, sizeof(whole), "%s/%s", root, path);
    snprintf(command, sizeof(command), "mkdir -p $(dirname %s) && touch %s",
        whole, whole);
    assert_int_equal(system(command), 0);
}

static void
open_world(const char *more)
{
    char text[2048], dir[128];

    strcpy(root, "/tmp/inf-unit-XXXXXX");
    assert_non_null(mkdtemp(root));
    touch("m/1/model");
    snprintf(dir, sizeof(dir), "%s/m", root);
    model = inf_model_new("m", 1, dir);
    assert_non_null(model);
    snprintf(text, sizeof(text), "name: 'm' backend: 'b' max_batch_size: 2"
        " input { name: 'I' data_type: TYPE_INT32 dims: 1 }"
        " output { name: 'O' data_type: TYPE_INT32 dims: 1 } %s", more);
    model->built = config_parse_normal(text);
}

static void
close_world(void)
{
    char command[128];
    inf_model_free(model);
    snprintf(command, sizeof(command), "rm -rf %s", root);
    assert_int_equal(system(command), 0);
}

static inf_err_t *
search(char **path)
{
    char first[128], second[128];
    snprintf(first, sizeof(first), "%s/g1", root);
    snprintf(second, sizeof(second), "%s/g2", root);
    char *globals[] = { first, second };
    NginxInference__CoreConfig config = NGINX_INFERENCE__CORE_CONFIG__INIT;
    config.n_backend_directories = 2;
    config.backend_directories = globals;
    return inf_strategy_search(model, &config, path);
}

/* The path from the root on that was found. */
static void
finds(const char *want)
{
    char *path, *real, expected[PATH_MAX];

    assert_ok(search(&path));
    if (want == NULL) {
        assert_null(path);
        return;
    }
    assert_non_null(path);
    real = realpath(path, NULL);
    snprintf(expected, sizeof(expected), "%s/%s", root, want);
    assert_non_null(real);
    assert_string_equal(real, expected);
    free(real);
    free(path);
}

static void
rejects(const char *more, inf_err_code_t code, const char *text)
{
    char *path = (char *) 1;
    open_world(more);
    touch("x.so");
    touch("m/mine.so");
    char link[200];
    snprintf(link, sizeof(link), "%s/m/link.so", root);
    assert_int_equal(symlink("../x.so", link), 0);
    assert_error(search(&path), code, text);
    assert_null(path);
    close_world();
}

/* c-api-semantics, section 28a, and scheduling, section 3 */
static void
places_are_searched_in_order(void **state)
{
    (void) state;
    open_world("dynamic_batching { }");
    finds(NULL);
    touch("g2/b/batchstrategy.so");
    touch("g1/other/batchstrategy.so");
    finds("g2/b/batchstrategy.so");
    touch("g1/b/batchstrategy.so");
    finds("g1/b/batchstrategy.so");
    touch("m/batchstrategy.so");
    finds("m/batchstrategy.so");
    touch("m/1/batchstrategy.so");
    finds("m/1/batchstrategy.so");
    close_world();
}

#define NAMED(path) "parameters { key: 'TRITON_BATCH_STRATEGY_PATH'" \
    " value { string_value: '" path "' } }"

static void
a_named_library_goes_before_all_places(void **state)
{
    (void) state;
    open_world(NAMED("sub/mine.so"));
    touch("m/1/batchstrategy.so");
    touch("m/sub/mine.so");
    finds("m/sub/mine.so");

    char whole[256];                        /* the same by its whole path    */
    snprintf(whole, sizeof(whole), "%s/m/sub/mine.so", root);
    free(model->built->parameters[0]->value->string_value);
    model->built->parameters[0]->value->string_value = strdup(whole);
    finds("m/sub/mine.so");
    close_world();
}

/* As a path from the directory in which the server was started. */
static void
a_named_library_may_have_directories_above_in_its_path(void **state)
{
    (void) state;
    char path[256];

    open_world(NAMED("m/mine.so"));
    touch("m/mine.so");
    finds("m/mine.so");
    snprintf(path, sizeof(path), "%s/m/mine.so", root + 1);
    free(model->built->parameters[0]->value->string_value);
    model->built->parameters[0]->value->string_value = strdup(path);
    finds("m/mine.so");
    close_world();

    open_world(NAMED("m/mine.so"));         /* the nearer one goes before    */
    touch("m/mine.so");
    touch("m/m/mine.so");
    finds("m/m/mine.so");
    close_world();
}

static void
a_named_library_stays_in_the_models_directory(void **state)
{
    (void) state;
    rejects(NAMED("../x.so"), INF_ERR_INVALID_ARG, "is outside of the model");
    rejects(NAMED("/lib/x.so"), INF_ERR_INVALID_ARG, "is outside of the");
    rejects(NAMED("link.so"), INF_ERR_INVALID_ARG, "is outside of the model");
    rejects(NAMED(""), INF_ERR_INVALID_ARG, "is outside of the model");
    rejects(NAMED("m/../x.so"), INF_ERR_INVALID_ARG, "is outside of the");
    rejects(NAMED("m/link.so"), INF_ERR_INVALID_ARG, "is outside of the");
    rejects(NAMED("om/mine.so"), INF_ERR_NOT_FOUND, "path not found: ");
    rejects(NAMED("nothing.so"), INF_ERR_NOT_FOUND,
        "Batching library path not found: ");
    rejects(NAMED("1"), INF_ERR_NOT_FOUND, "Batching library path not found: ");
}

static void
sequences_have_no_strategy(void **state)
{
    (void) state;
    rejects(NAMED("mine.so") " sequence_batching { }", INF_ERR_INVALID_ARG,
        "TRITON_BATCH_STRATEGY_PATH cannot be specified with sequence batcher");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_searched_in_order),
        cmocka_unit_test(a_named_library_goes_before_all_places),
        cmocka_unit_test(
            a_named_library_may_have_directories_above_in_its_path),
        cmocka_unit_test(a_named_library_stays_in_the_models_directory),
        cmocka_unit_test(sequences_have_no_strategy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
