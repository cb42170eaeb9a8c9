#include "temp_tree.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/file.h>

#include "python/environment.h"
#include "python/extraction.h"
#include "python/variables.h"

#define VALUE "$$TRITON_MODEL_DIRECTORY"

/* A directory for models and one for environments. */
typedef struct {
    char              *tree;
    py_environments_t *set;
} world_t;

static int
make_world(void **state)
{
    static world_t w;

    w.tree = tree_new();
    tree_dir(w.tree, "model");
    tree_dir(w.tree, "envs");
    const py_environment_options_t options = {
        .directory = tree_path(w.tree, "envs"), .archive_bytes = 1 << 20,
        .activate_s = 600
    };
    if (py_environments_new(&options, &w.set) != NULL) {
        return -1;
    }
    *state = &w;
    return 0;
}

static int
end_world(void **state)
{
    world_t *w = *state;

    py_environments_free(w->set);
    tree_free(w->tree);
    return 0;
}

static void
program(const char *tree, const char *name, const char *text)
{
    tree_file(tree, name, text);
    assert_int_equal(chmod(tree_path(tree, name), 0755), 0);
}

/* tree/model/env.tar from tree/packed. */
static void
pack(const char *tree)
{
    char command[9000];

    snprintf(command, sizeof(command), "tar -C %s -cf %s .",
        tree_path(tree, "packed"), tree_path(tree, "model/env.tar"));
    assert_int_equal(system(command), 0);
}

static py_environment_t *
opened(world_t *w, const char *value)
{
    py_environment_t *e = NULL;
    TRITONSERVER_Error *err = py_environment_open(w->set, value,
        tree_path(w->tree, "model"), NULL, &e);

    if (err != NULL) {
        fail_msg("%s", TRITONSERVER_ErrorMessage(err));
    }
    return e;
}

static void
assert_fails(world_t *w, const char *value, const char *python,
    const char *why)
{
    py_environment_t *e = NULL;
    TRITONSERVER_Error *err = py_environment_open(w->set, value,
        tree_path(w->tree, "model"), python, &e);

    assert_non_null(err);
    if (strstr(TRITONSERVER_ErrorMessage(err), why) == NULL) {
        fail_msg("no \"%s\" in \"%s\"", why, TRITONSERVER_ErrorMessage(err));
    }
    bk_err_drop(err);
}

static const char *
variable(const py_environment_t *e, const char *name)
{
    size_t len = strlen(name);

    for (char *const *v = py_environment_variables(e); *v != NULL; v++) {
        if (strncmp(*v, name, len) == 0 && (*v)[len] == '=') {
            return *v + len + 1;
        }
    }
    return NULL;
}

/* How many there are in the directory of environments. */
static int
extracted(world_t *w)
{
    char command[4200];

    snprintf(command, sizeof(command), "exit $(ls %s | wc -l)",
        tree_path(w->tree, "envs"));
    return WEXITSTATUS(system(command));
}

static void
default_interpreter_is_the_first_of_the_path(void **state)
{
    world_t *w = *state;
    char path[8192];

    program(w->tree, "bin/python3", "#!/bin/sh\n");
    snprintf(path, sizeof(path), "nowhere:%s:%s:/usr/bin:/bin",
        tree_path(w->tree, "absent"), tree_path(w->tree, "bin"));
    char *old = strdup(getenv("PATH"));
    assert_int_equal(setenv("PATH", path, 1), 0);
    py_environment_t *e = opened(w, NULL);
    assert_string_equal(py_environment_python(e),
        tree_path(w->tree, "bin/python3"));
    assert_string_equal(variable(e, "PATH"), path);
    py_environment_close(e);

    assert_int_equal(setenv("PATH", "/absent", 1), 0);
    assert_fails(w, "", NULL, "\"python3\" is not in the server's PATH");
    assert_int_equal(setenv("PATH", old, 1), 0);
    free(old);
}

static void
interpreter_of_the_setting_is_taken(void **state)
{
    world_t *w = *state;
    py_environment_t *e = NULL;

    program(w->tree, "bin/python3.x", "#!/bin/sh\n");
    TRITONSERVER_Error *err = py_environment_open(w->set, NULL,
        tree_path(w->tree, "model"), tree_path(w->tree, "bin/python3.x"), &e);
    assert_null(err);
    assert_string_equal(py_environment_python(e),
        tree_path(w->tree, "bin/python3.x"));
    py_environment_close(e);
    assert_fails(w, NULL, tree_path(w->tree, "bin/absent"),
        "not the absolute path of a program");
    assert_fails(w, NULL, "bin/python3.x",
        "not the absolute path of a program");
    assert_fails(w, NULL, tree_path(w->tree, "bin"),
        "not the absolute path of a program");
}

static void
virtual_environment_sets_its_variables(void **state)
{
    world_t *w = *state;

    program(w->tree, "model/venv/bin/python", "#!/bin/sh\n");
    program(w->tree, "model/venv/bin/activate", "exit 9\n");
    tree_file(w->tree, "model/venv/pyvenv.cfg", "home = /usr/bin\n");
    assert_int_equal(setenv("PYTHONHOME", "/usr", 1), 0);
    py_environment_t *e = opened(w, VALUE "/venv");
    const char *bin = tree_path(w->tree, "model/venv/bin");
    assert_string_equal(py_environment_python(e),
        tree_path(w->tree, "model/venv/bin/python"));
    assert_string_equal(variable(e, "VIRTUAL_ENV"),
        tree_path(w->tree, "model/venv"));
    assert_memory_equal(variable(e, "PATH"), bin, strlen(bin));
    assert_int_equal(variable(e, "PATH")[strlen(bin)], ':');
    assert_null(variable(e, "PYTHONHOME"));
    py_environment_close(e);
    assert_int_equal(unsetenv("PYTHONHOME"), 0);
}

static void
activate_of_a_conda_environment_is_run(void **state)
{
    world_t *w = *state;

    program(w->tree, "model/conda/bin/python3", "#!/bin/sh\n");
    tree_dir(w->tree, "model/conda/conda-meta");
    tree_file(w->tree, "model/conda/bin/activate",
        "echo noise; export GDAL_DATA=\"a\nb=c\" LD_LIBRARY_PATH=/x\n");
    py_environment_t *e = opened(w, VALUE "/conda");
    assert_string_equal(variable(e, "GDAL_DATA"), "a\nb=c");
    assert_string_equal(variable(e, "LD_LIBRARY_PATH"), "/x");
    assert_string_equal(variable(e, "CONDA_PREFIX"),
        tree_path(w->tree, "model/conda"));
    assert_null(variable(e, "VIRTUAL_ENV"));
    assert_null(variable(e, "noise"));
    py_environment_close(e);

    tree_file(w->tree, "model/conda/bin/activate",
        "echo no such licence >&2; exit 7\n");
    assert_fails(w, VALUE "/conda", NULL,
        "bin/activate\" ended with status 7: no such licence");
    tree_file(w->tree, "model/conda/bin/activate", "kill -9 $$\n");
    assert_fails(w, VALUE "/conda", NULL, "was ended by signal 9");
}

static void
activate_that_does_not_end_is_killed(void **state)
{
    world_t *w = *state;
    const py_environment_options_t options = {
        .directory = tree_path(w->tree, "envs"), .activate_s = 1
    };

    py_environments_free(w->set);
    assert_null(py_environments_new(&options, &w->set));
    program(w->tree, "model/conda/bin/python3", "#!/bin/sh\n");
    tree_file(w->tree, "model/conda/bin/activate", "sleep 600\n");
    assert_fails(w, VALUE "/conda", NULL, "bin/activate\" has not ended within"
        " the 1 s of stub-timeout-seconds");
}

static void
archive_is_extracted_once_and_removed(void **state)
{
    world_t *w = *state;

    program(w->tree, "packed/bin/python3", "#!/bin/sh\necho of the archive\n");
    pack(w->tree);
    py_environment_t *first = opened(w, VALUE "/env.tar");
    py_environment_t *second = opened(w, tree_path(w->tree, "model/env.tar"));
    assert_int_equal(extracted(w), 1);
    assert_string_equal(py_environment_python(first),
        py_environment_python(second));
    assert_int_equal(access(py_environment_python(first), X_OK), 0);
    assert_non_null(strstr(py_environment_python(first),
        tree_path(w->tree, "envs/")));
    py_environment_close(first);
    assert_int_equal(access(py_environment_python(second), X_OK), 0);
    py_environment_close(second);
    assert_int_equal(extracted(w), 0);
}

static void
changed_archive_is_extracted_again(void **state)
{
    world_t *w = *state;

    program(w->tree, "packed/bin/python3", "#!/bin/sh\n");
    pack(w->tree);
    py_environment_t *before = opened(w, VALUE "/env.tar");
    program(w->tree, "packed/lib/more", "more");
    pack(w->tree);
    py_environment_t *after = opened(w, VALUE "/env.tar");
    assert_int_equal(extracted(w), 2);
    assert_string_not_equal(py_environment_python(before),
        py_environment_python(after));
    py_environment_close(before);
    py_environment_close(after);
    assert_int_equal(extracted(w), 0);
}

static void *
open_and_close(void *data)
{
    world_t *w = data;

    for (int i = 0; i < 5; i++) {
        py_environment_t *e = NULL;
        TRITONSERVER_Error *err = py_environment_open(w->set,
            VALUE "/env.tar", tree_path(w->tree, "model"), NULL, &e);
        if (err != NULL || access(py_environment_python(e), X_OK) != 0) {
            bk_err_drop(err);
            return "failed";
        }
        py_environment_close(e);
    }
    return NULL;
}

static void
several_threads_share_an_archive(void **state)
{
    world_t *w = *state;
    pthread_t threads[4];

    program(w->tree, "packed/bin/python3", "#!/bin/sh\n");
    pack(w->tree);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, w),
            0);
    }
    for (size_t i = 0; i < 4; i++) {
        void *why;
        assert_int_equal(pthread_join(threads[i], &why), 0);
        assert_null(why);
    }
    assert_int_equal(extracted(w), 0);
}

static void
failed_archive_leaves_nothing(void **state)
{
    world_t *w = *state;

    tree_file(w->tree, "model/env.tar", "no archive");
    assert_fails(w, VALUE "/env.tar", NULL, "env.tar");
    tree_file(w->tree, "packed/bin/other", "x");
    pack(w->tree);
    assert_fails(w, VALUE "/env.tar", NULL, "has no interpreter");
    assert_int_equal(extracted(w), 0);
}

static void
values_that_lead_elsewhere_are_rejected(void **state)
{
    world_t *w = *state;

    program(w->tree, "env/bin/python3", "#!/bin/sh\n");
    assert_fails(w, VALUE "/../env", NULL, "leaves the model's directory");
    assert_fails(w, VALUE "/a/../../env", NULL,
        "leaves the model's directory");
    assert_fails(w, "env", NULL, "neither an absolute path");
    assert_fails(w, "$$TRITON_MODEL_DIRECTORYS/env", NULL,
        "neither an absolute path");
    assert_fails(w, VALUE "/absent.tar.gz", NULL, "absent.tar.gz");
    assert_fails(w, "/dev/null", NULL, "neither a directory nor an archive");
}

static void
directories_of_a_killed_process_are_removed(void **state)
{
    world_t *w = *state;
    py_extractions_t *set = NULL;
    py_extraction_t *kept = NULL;

    tree_dir(w->tree, "envs/inference-python-env-ABCDEF/bin");
    tree_dir(w->tree, "envs/other/bin");
    tree_file(w->tree, "packed/bin/python3", "x");
    pack(w->tree);
    assert_null(py_extractions_new(tree_path(w->tree, "envs"), 1 << 20,
        &set));
    assert_null(py_extractions_take(set, tree_path(w->tree, "model/env.tar"),
        &kept));
    assert_int_equal(extracted(w), 3);      /* the first one is too young    */

    py_extractions_clean(tree_path(w->tree, "envs"), 0);
    assert_int_equal(extracted(w), 2);
    assert_int_equal(access(py_extraction_directory(kept), F_OK), 0);
    py_extractions_give(set, kept);
    py_extractions_free(set);
    assert_int_equal(extracted(w), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_world, end_world)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(default_interpreter_is_the_first_of_the_path),
        TEST(interpreter_of_the_setting_is_taken),
        TEST(virtual_environment_sets_its_variables),
        TEST(activate_of_a_conda_environment_is_run),
        TEST(activate_that_does_not_end_is_killed),
        TEST(archive_is_extracted_once_and_removed),
        TEST(changed_archive_is_extracted_again),
        TEST(several_threads_share_an_archive),
        TEST(failed_archive_leaves_nothing),
        TEST(values_that_lead_elsewhere_are_rejected),
        TEST(directories_of_a_killed_process_are_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
