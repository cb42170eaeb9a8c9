/* treelite.c - see treelite.h */

#include "treelite.h"

#include "checkpoint.h"
#include "file.h"
#include "lightgbm.h"
#include "xgboost_binary.h"
#include "xgboost_json.h"
#include "xgboost_ubj.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PACKAGE "treelite==4.8.1"

static TRITONSERVER_Error *open_library(const char *library,
    const char *directory, void **out);
static void open_openmp_beside(const char *path);
static TRITONSERVER_Error *look_up(treelite_functions_t *f, void *library);
static void take_log(const char *text);
static void take_warning(const char *text);
static TRITONSERVER_Error *load_model(const treelite_functions_t *f,
    const char *path, trees_format_t format, bool unknown,
    treelite_model_t *out);
static TRITONSERVER_Error *check_file(const char *path,
    trees_format_t format);
static TRITONSERVER_Error *check_binary(const trees_file_t *file);
static bool begins_with(const trees_file_t *file, const char *text,
    size_t len);
static TRITONSERVER_Error *failed(const treelite_functions_t *f, int rc);
static TRITONSERVER_Error *copy_forest(const treelite_functions_t *f,
    treelite_model_t model, trees_forest_t **out);
static TRITONSERVER_Error *read_header(const treelite_functions_t *f,
    treelite_model_t model, trees_header_t *out);
static TRITONSERVER_Error *read_tree(const treelite_functions_t *f,
    treelite_model_t model, uint32_t index, trees_source_tree_t *out);
static trees_array_t array_of(const treelite_frame_t *frame,
    const char *name);

TRITONSERVER_Error *
treelite_open(treelite_functions_t *out, const char *library,
    const char *directory)
{
    void *handle = NULL;

    TRITONSERVER_Error *err = open_library(library, directory, &handle);
    if (err == NULL) {
        err = look_up(out, handle);
    }
    if (err == NULL) {
        (void) out->set_log(take_log);
        (void) out->set_warning(take_warning);
    }

    return err == NULL ? NULL : bk_err_add(err, "cannot load treelite, which"
        " reads the models of this backend (Python package " PACKAGE
        " has it: put its libtreelite.so and libgomp into %s)", directory);
}

TRITONSERVER_Error *
treelite_load(const treelite_functions_t *f, const char *path,
    trees_format_t format, bool unknown, trees_forest_t **out)
{
    treelite_model_t model = NULL;

    TRITONSERVER_Error *err = load_model(f, path, format, unknown, &model);
    if (err == NULL) {
        err = copy_forest(f, model, out);
        (void) f->free_model(model);
    }

    return err == NULL ? NULL : bk_err_add(err, "file \"%s\"", path);
}

static TRITONSERVER_Error *
open_library(const char *library, const char *directory, void **out)
{
    const int flags = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
    char *beside = NULL;

    if (library == NULL && asprintf(&beside, "%s/libtreelite.so",
        directory) < 0)
    {
        return bk_err_nomem("path of treelite");
    }

    /* the library's own way to libgomp begins where the file really is */
    char *path = realpath(library != NULL ? library : beside, NULL);
    free(beside);
    if (path != NULL) {
        open_openmp_beside(path);
        *out = dlopen(path, flags);
    } else {
        *out = dlopen(library != NULL ? library : "libtreelite.so", flags);
    }

    free(path);
    return *out != NULL ? NULL : bk_err_new(TRITONSERVER_ERROR_NOT_FOUND,
        "%s", dlerror());
}

/* The package's libgomp has a name of its own; where it was copied beside the
 * library, it is loaded first, and the library then finds it by name. */
static void
open_openmp_beside(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *pattern = NULL;
    glob_t found;

    if (slash == NULL || asprintf(&pattern, "%.*s/libgomp*.so*",
        (int) (slash - path), path) < 0)
    {
        return;
    }

    if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            (void) dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL
                | RTLD_NODELETE);
        }
        globfree(&found);
    }
    free(pattern);
}

static TRITONSERVER_Error *
look_up(treelite_functions_t *f, void *library)
{
    const char *missing = NULL;

#define LOOK_UP(field, symbol, parameters)                                    \
    f->field = (int (*) parameters) dlsym(library, #symbol);                  \
    missing = f->field == NULL && missing == NULL ? #symbol : missing;

    TREELITE_FUNCTIONS(LOOK_UP)
#undef LOOK_UP

    f->last_error = (const char *(*)(void)) dlsym(library,
        "TreeliteGetLastError");
    if (f->last_error == NULL) {
        missing = "TreeliteGetLastError";
    }

    return missing == NULL ? NULL : bk_err_new(TRITONSERVER_ERROR_NOT_FOUND,
        "the library has no function %s", missing);
}

static void
take_log(const char *text)
{
    bk_log(TRITONSERVER_LOG_VERBOSE, "treelite: %s", text);
}

static void
take_warning(const char *text)
{
    bk_log(TRITONSERVER_LOG_WARN, "treelite: %s", text);
}

static TRITONSERVER_Error *
load_model(const treelite_functions_t *f, const char *path,
    trees_format_t format, bool unknown, treelite_model_t *out)
{
    const char *options = unknown ? "{\"allow_unknown_field\": true}" : "{}";

    TRITONSERVER_Error *err = check_file(path, format);
    if (err != NULL) {
        return err;
    }

    switch (format) {

    case TREES_XGBOOST:
        return failed(f, f->load_xgboost(path, options, out));

    case TREES_XGBOOST_JSON:
        return failed(f, f->load_xgboost_json(path, options, out));

    case TREES_XGBOOST_UBJ:
        return failed(f, f->load_xgboost_ubj(path, options, out));

    case TREES_LIGHTGBM:
        return failed(f, f->load_lightgbm(path, options, out));

    case TREES_CHECKPOINT:
        break;
    }

    return failed(f, f->load_checkpoint(path, out));
}

static TRITONSERVER_Error *
check_file(const char *path, trees_format_t format)
{
    trees_file_t file;

    TRITONSERVER_Error *err = trees_file_open(&file, path);
    if (err != NULL) {
        return err;
    }

    switch (format) {

    case TREES_XGBOOST_JSON:
        err = trees_xgboost_json_check(file.data, file.len);
        break;

    case TREES_LIGHTGBM:
        err = trees_lightgbm_check(file.data, file.len);
        break;

    case TREES_CHECKPOINT:
        err = trees_checkpoint_check(file.data, file.len);
        break;

    case TREES_XGBOOST:
        err = check_binary(&file);
        break;

    case TREES_XGBOOST_UBJ:
        err = trees_xgboost_ubj_check(file.data, file.len);
        break;
    }

    trees_file_close(&file);
    return err;
}

/* XGBoost 3 writes UBJSON into a file of any name but .json. */
static TRITONSERVER_Error *
check_binary(const trees_file_t *file)
{
    static const char ubjson[] = "{L\0\0\0\0\0\0\0";
    const char *kind = begins_with(file, ubjson, sizeof(ubjson) - 1)
        ? "UBJSON (xgboost.ubj, model_type xgboost_ubj)"
        : begins_with(file, "{\"", 2)
        ? "JSON (xgboost.json, model_type xgboost_json)" : NULL;

    TRITONSERVER_Error *err = trees_xgboost_binary_check(file->data,
        file->len);
    return err == NULL || kind == NULL ? err
        : bk_err_add(err, "this is XGBoost's %s", kind);
}

static bool
begins_with(const trees_file_t *file, const char *text, size_t len)
{
    return file->len >= len && memcmp(file->data, text, len) == 0;
}

static TRITONSERVER_Error *
failed(const treelite_functions_t *f, int rc)
{
    return rc == 0 ? NULL : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "%s",
        f->last_error());
}

static TRITONSERVER_Error *
copy_forest(const treelite_functions_t *f, treelite_model_t model,
    trees_forest_t **out)
{
    trees_header_t header;
    trees_source_tree_t tree;
    trees_forest_t *forest = NULL;

    TRITONSERVER_Error *err = read_header(f, model, &header);
    if (err == NULL) {
        err = trees_forest_new(&forest, &header);
    }

    for (uint32_t i = 0; err == NULL && i < forest->tree_count; i++) {
        err = read_tree(f, model, i, &tree);
        if (err == NULL) {
            err = trees_forest_add(forest, i, &header, &tree);
        }
    }

    if (err != NULL) {
        trees_forest_free(forest);
        return err;
    }

    trees_forest_finish(forest);
    *out = forest;
    return NULL;
}

static TRITONSERVER_Error *
read_header(const treelite_functions_t *f, treelite_model_t model,
    trees_header_t *out)
{
    static const char *const names[] = {
#define NAME(field, name, size) name,
        TREES_HEADER_FIELDS(NAME)
#undef NAME
    };

    for (int i = 0; i < TREES_HEADER_COUNT; i++) {
        treelite_frame_t frame = { 0 };

        TRITONSERVER_Error *err = failed(f, f->header_field(model, names[i],
            &frame));
        if (err != NULL) {
            return err;
        }
        out->arrays[i] = array_of(&frame, names[i]);
    }

    return NULL;
}

static TRITONSERVER_Error *
read_tree(const treelite_functions_t *f, treelite_model_t model,
    uint32_t index, trees_source_tree_t *out)
{
    static const char *const names[] = {
#define NAME(field, name, size) name,
        TREES_TREE_FIELDS(NAME)
#undef NAME
    };

    for (int i = 0; i < TREES_TREE_COUNT; i++) {
        treelite_frame_t frame = { 0 };

        TRITONSERVER_Error *err = failed(f, f->tree_field(model, index,
            names[i], &frame));
        if (err != NULL) {
            return err;
        }
        out->arrays[i] = array_of(&frame, names[i]);
    }

    return NULL;
}

static trees_array_t
array_of(const treelite_frame_t *frame, const char *name)
{
    return (trees_array_t) {
        .name = name, .data = frame->data, .count = frame->count,
        .size = frame->size
    };
}
