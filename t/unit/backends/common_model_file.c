/* the file of a model's version, and names that lead out of its directory */

#include "common_world.h"

#include "backends/common/model_file.h"
#include "backends/common/path.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    fake_model_t model;
    char         version[600];
    char         file[700];
} world_t;

/* <directory>/1/model.bin */
static void
world_init(world_t *w)
{
    *w = (world_t) { .model = { .version = 1 } };
    strcpy(w->model.folder, "/tmp/common_model_file_XXXXXX");
    assert_non_null(mkdtemp(w->model.folder));
    snprintf(w->version, sizeof(w->version), "%s/1", w->model.folder);
    assert_int_equal(mkdir(w->version, 0700), 0);
    snprintf(w->file, sizeof(w->file), "%s/model.bin", w->version);
    FILE *f = fopen(w->file, "w");
    assert_non_null(f);
    fclose(f);
}

static void
world_fini(world_t *w)
{
    assert_int_equal(unlink(w->file), 0);
    assert_int_equal(rmdir(w->version), 0);
    assert_int_equal(rmdir(w->model.folder), 0);
}

static TRITONSERVER_Error *
find(world_t *w, const char *json, const char *fallback, char **path)
{
    bk_model_config_t c;

    config_read(&c, json);
    TRITONSERVER_Error *err = bk_model_file(MODEL(&w->model), &c, fallback,
        path);
    bk_model_config_fini(&c);
    return err;
}

static void
file_is_the_configured_one_or_the_usual(void **state)
{
    world_t w;
    char *path;

    (void) state;
    world_init(&w);
    expect_success(find(&w, "{}", "model.bin", &path));
    assert_string_equal(path, w.file);
    free(path);
    expect_success(find(&w, "{\"default_model_filename\":\"\"}", "model.bin",
        &path));
    free(path);
    expect_success(find(&w, "{\"default_model_filename\":\"model.bin\"}",
        "other", &path));
    assert_string_equal(path, w.file);
    free(path);
    expect_success(bk_version_directory(MODEL(&w.model), &path));
    assert_string_equal(path, w.version);
    free(path);
    world_fini(&w);
}

static void
file_that_may_not_be_read_is_named_with_the_user(void **state)
{
    static const uid_t nameless = 54321;
    world_t w;
    char *path;

    (void) state;
    if (geteuid() != 0 || getpwuid(nameless) != NULL) {
        skip();
    }

    world_init(&w);
    /* access() goes by the real user */
    assert_int_equal(setresuid(nameless, nameless, 0), 0);
    TRITONSERVER_Error *err = find(&w, "{}", "model.bin", &path);
    assert_int_equal(setresuid(0, 0, 0), 0);
    expect_error(err, TRITONSERVER_ERROR_NOT_FOUND,
        "Permission denied; the core runs as user 54321");
    world_fini(&w);
}

static void
file_that_is_not_there_is_named(void **state)
{
    world_t w;
    char *path;

    (void) state;
    world_init(&w);
    expect_error(find(&w, "{\"name\":\"m\"}", "other", &path),
        TRITONSERVER_ERROR_UNAVAILABLE, "/1/other' for model instance 'm'");
    world_fini(&w);
}

static void
name_that_leads_out_is_rejected(void **state)
{
    world_t w;
    char *path;

    (void) state;
    world_init(&w);
    expect_error(find(&w, "{\"name\":\"m\",\"default_model_filename\":"
        "\"../1/model.bin\"}", "model.bin", &path),
        TRITONSERVER_ERROR_INVALID_ARG, "default_model_filename"
        " \"../1/model.bin\" leads out of the version's directory");
    world_fini(&w);
}

static void
pipe_is_rejected(void **state)
{
    world_t w;
    char *path;

    (void) state;
    world_init(&w);
    assert_int_equal(unlink(w.file), 0);
    assert_int_equal(mkfifo(w.file, 0600), 0);
    expect_error(find(&w, "{}", "model.bin", &path),
        TRITONSERVER_ERROR_INVALID_ARG, "/1/model.bin\" is neither a file nor"
        " a directory");
    world_fini(&w);
}

/* One for each compute capability, and where none is named the usual. */
static void
file_of_a_gpu_needs_its_driver(void **state)
{
    bk_model_config_t c;
    world_t w;
    char *path;

    (void) state;
    world_init(&w);
    config_read(&c, "{\"name\":\"m\",\"cc_model_filenames\":{}}");
    expect_success(bk_model_file_of_gpu(MODEL(&w.model), &c, 0, "model.bin",
        &path));
    assert_string_equal(path, w.file);
    free(path);
    bk_model_config_fini(&c);

    assert_int_equal(setenv("INFERENCE_CUDA_DRIVER", "/no/driver", 1), 0);
    config_read(&c, "{\"name\":\"m\",\"cc_model_filenames\":{\"8.6\":"
        "\"model.bin\"}}");
    expect_error(bk_model_file_of_gpu(MODEL(&w.model), &c, 0, "model.bin",
        &path), TRITONSERVER_ERROR_UNAVAILABLE,
        "compute capability: ");
    bk_model_config_fini(&c);
    world_fini(&w);
}

static void
path_is_inner_without_dots_stars_and_roots(void **state)
{
    static const char *const inner[] = {
        "a", "a/b", "a/", "a//b", ".", "...", "a..", "..a", "a*", "*a/b", "./a"
    }, *const outer[] = {
        "", "/", "/a", "..", "../a", "a/..", "a/../b", "*", "a/*", "a//.."
    };

    (void) state;
    for (size_t i = 0; i < COUNT(inner); i++) {
        if (!bk_path_is_inner(inner[i], strlen(inner[i]))) {
            fail_msg("%s", inner[i]);
        }
    }
    for (size_t i = 0; i < COUNT(outer); i++) {
        if (bk_path_is_inner(outer[i], strlen(outer[i]))) {
            fail_msg("%s", outer[i]);
        }
    }
    assert_false(bk_path_is_inner("a\0b", 3));
    assert_true(bk_path_is_inner("a/..", 3));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_is_the_configured_one_or_the_usual),
        cmocka_unit_test(file_that_is_not_there_is_named),
        cmocka_unit_test(file_that_may_not_be_read_is_named_with_the_user),
        cmocka_unit_test(pipe_is_rejected),
        cmocka_unit_test(name_that_leads_out_is_rejected),
        cmocka_unit_test(file_of_a_gpu_needs_its_driver),
        cmocka_unit_test(path_is_inner_without_dots_stars_and_roots)
    };

    return cmocka_run_group_tests(tests, NULL, no_leftovers);
}
