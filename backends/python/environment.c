#include "environment.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "env_archive.h"
#include "extraction.h"
#include "variables.h"

#define MODEL_DIRECTORY "$$TRITON_MODEL_DIRECTORY"
#define DEFAULT_PYTHON  "python3"
#define DEFAULT_PATH    "/usr/local/bin:/usr/bin:/bin"

struct py_environments_s {
    py_extractions_t *extractions;
    unsigned          activate_s;
};

struct py_environment_s {
    py_environments_t *set;
    py_extraction_t   *extraction;      /* NULL: not an archive              */
    char              *python;
    py_variables_t     variables;
};

static TRITONSERVER_Error *open_default(py_environment_t *e,
    const char *python);
static char *find_in_path(const char *name, const char *path);
static TRITONSERVER_Error *open_named(py_environment_t *e, const char *value,
    const char *model_directory);
static TRITONSERVER_Error *resolve(const char *value,
    const char *model_directory, char **path);
static TRITONSERVER_Error *find_directory(py_environment_t *e,
    const char *path, const char **directory);
static TRITONSERVER_Error *find_python(py_environment_t *e,
    const char *directory, const char *path);
static bool is_program(const char *path);

TRITONSERVER_Error *
py_environments_new(const py_environment_options_t *options,
    py_environments_t **out)
{
    py_environments_t *set = calloc(1, sizeof(*set));
    if (set == NULL) {
        return bk_err_nomem("the set of environments");
    }
    set->activate_s = options->activate_s;
    TRITONSERVER_Error *err = py_extractions_new(options->directory,
        options->archive_bytes, &set->extractions);
    if (err != NULL) {
        free(set);
        return err;
    }
    *out = set;
    return NULL;
}

void
py_environments_free(py_environments_t *set)
{
    if (set != NULL) {
        py_extractions_free(set->extractions);
        free(set);
    }
}

TRITONSERVER_Error *
py_environment_open(py_environments_t *set, const char *value,
    const char *model_directory, const char *python, py_environment_t **out)
{
    py_environment_t *e = calloc(1, sizeof(*e));
    if (e == NULL) {
        return bk_err_nomem("an environment");
    }
    e->set = set;
    TRITONSERVER_Error *err = value != NULL && value[0] != '\0'
        ? open_named(e, value, model_directory) : open_default(e, python);
    if (err != NULL) {
        py_environment_close(e);
        return err;
    }
    *out = e;
    return NULL;
}

void
py_environment_close(py_environment_t *e)
{
    if (e == NULL) {
        return;
    }
    if (e->extraction != NULL) {
        py_extractions_give(e->set->extractions, e->extraction);
    }
    py_variables_free(&e->variables);
    free(e->python);
    free(e);
}

const char *
py_environment_python(const py_environment_t *e)
{
    return e->python;
}

char *const *
py_environment_variables(const py_environment_t *e)
{
    return e->variables.items;
}

static TRITONSERVER_Error *
open_default(py_environment_t *e, const char *python)
{
    TRITONSERVER_Error *err = py_variables_own(&e->variables);
    if (err != NULL) {
        return err;
    }
    if (python == NULL || python[0] == '\0') {
        python = DEFAULT_PYTHON;
    }
    if (strchr(python, '/') != NULL) {
        if (python[0] != '/' || !is_program(python)) {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "interpreter "
                "\"%s\" is not the absolute path of a program", python);
        }
        e->python = strdup(python);     /* the link, which leads to packages */
        return e->python != NULL ? NULL : bk_err_nomem("a path");
    }

    const char *path = py_variables_get(&e->variables, "PATH");
    e->python = find_in_path(python, path != NULL ? path : DEFAULT_PATH);
    if (e->python == NULL) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "interpreter "
            "\"%s\" is not in the server's PATH, \"%s\"", python,
            path != NULL ? path : DEFAULT_PATH);
    }
    return NULL;
}

/* Finds a program in PATH; entries that are not absolute are ignored. */
static char *
find_in_path(const char *name, const char *path)
{
    while (*path != '\0') {
        int len = (int) strcspn(path, ":");
        char *program;
        if (path[0] == '/'
            && asprintf(&program, "%.*s/%s", len, path, name) >= 0)
        {
            if (is_program(program)) {
                return program;
            }
            free(program);
        }
        path += len;
        path += *path == ':';
    }
    return NULL;
}

static TRITONSERVER_Error *
open_named(py_environment_t *e, const char *value,
    const char *model_directory)
{
    const char *directory = NULL;
    char *path;

    TRITONSERVER_Error *err = resolve(value, model_directory, &path);
    if (err != NULL) {
        return err;
    }
    err = find_directory(e, path, &directory);
    if (err == NULL) {
        err = find_python(e, directory, path);
    }
    if (err == NULL) {
        err = py_variables_activated(&e->variables, directory,
            e->set->activate_s);
    }
    free(path);
    return err != NULL ? bk_err_add(err, "EXECUTION_ENV_PATH \"%s\"", value)
        : NULL;
}

/* Resolves value to a path. */
static TRITONSERVER_Error *
resolve(const char *value, const char *model_directory, char **path)
{
    size_t len = strlen(MODEL_DIRECTORY);
    int n;

    if (strncmp(value, MODEL_DIRECTORY, len) == 0
        && (value[len] == '/' || value[len] == '\0'))
    {
        const char *below = value + len + strspn(value + len, "/");
        if (below[0] != '\0' && !py_archive_name_stays(below)) {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "EXECUTION_ENV_PATH \"%s\" leaves the model's directory",
                value);
        }
        n = asprintf(path, "%s/%s", model_directory, below);
    } else if (value[0] == '/') {
        n = asprintf(path, "%s", value);
    } else {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "EXECUTION_ENV_PATH \"%s\" is neither an absolute path nor one "
            "below " MODEL_DIRECTORY, value);
    }
    return n >= 0 ? NULL : bk_err_nomem("the path of an environment");
}

static TRITONSERVER_Error *
find_directory(py_environment_t *e, const char *path, const char **directory)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "cannot read \"%s\": %s", path, strerror(errno));
    }
    if (S_ISDIR(st.st_mode)) {
        *directory = path;
        return NULL;
    }
    if (!S_ISREG(st.st_mode)) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "\"%s\" is neither a directory nor an archive", path);
    }
    TRITONSERVER_Error *err = py_extractions_take(e->set->extractions, path,
        &e->extraction);
    if (err == NULL) {
        *directory = py_extraction_directory(e->extraction);
    }
    return err;
}

/* Finds the interpreter; path: of the directory or archive, for errors. */
static TRITONSERVER_Error *
find_python(py_environment_t *e, const char *directory, const char *path)
{
    static const char *const names[] = { "bin/python3", "bin/python" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (asprintf(&e->python, "%s/%s", directory, names[i]) < 0) {
            e->python = NULL;
            return bk_err_nomem("the path of an interpreter");
        }
        if (is_program(e->python)) {
            return NULL;
        }
        free(e->python);
        e->python = NULL;
    }
    return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
        "\"%s\" has no interpreter bin/python3 or bin/python", path);
}

static bool
is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode)
        && access(path, X_OK) == 0;
}
