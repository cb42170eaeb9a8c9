/* model_path.c - see model_path.h */

#include "model_path.h"

#include "common/model_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FIRST_NAME "model.xml"
#define NAMES FIRST_NAME ", model.onnx, model.tflite, model.saved_model or" \
    " model.pdmodel"
#define CHUNK 65536

static TRITONSERVER_Error *find_in(const char *directory, char **path);
static bool is_there(const char *directory, const char *name, char **path);
static bool is_directory(const char *path);
static bool contains(FILE *f, const char *const *words, char *chunk);

TRITONSERVER_Error *
vino_model_path_find(TRITONBACKEND_Model *model,
    const bk_model_config_t *config, char **path)
{
    const char *name = bk_json_string(bk_json_member(config->root,
        "default_model_filename"), "");
    char *found = NULL;

    /* the core writes the first of the names where none is configured */
    bool chosen = name[0] != '\0' && strcmp(name, FIRST_NAME) != 0;
    TRITONSERVER_Error *err = chosen
        ? bk_model_file(model, config, NULL, &found)
        : bk_version_directory(model, &found);
    if (err != NULL) {
        return err;
    }

    if (!is_directory(found)) {
        *path = found;
        return NULL;
    }

    err = find_in(found, path);
    free(found);
    return err;
}

TRITONSERVER_Error *
vino_model_path_check(const char *path)
{
    static const char *const words[] = {
        "type=\"ReadValue\"", "type=\"Assign\"", NULL
    };
    size_t len = strlen(path);

    if (len < 4 || strcmp(path + len - 4, ".xml") != 0) {
        return NULL;
    }

    FILE *f = fopen(path, "re");
    char *chunk = malloc(CHUNK);
    bool found = f != NULL && chunk != NULL && contains(f, words, chunk);
    free(chunk);
    if (f != NULL) {
        fclose(f);                      /* the library reports a failure     */
    }

    return !found ? NULL : bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
        "\"%s\" has operators that keep state from one request to the next "
        "(ReadValue, Assign); requests of different clients would share it",
        path);
}

/* A directory that is a SavedModel is the model itself. */
static TRITONSERVER_Error *
find_in(const char *directory, char **path)
{
    static const char *const names[] = {
        FIRST_NAME, "model.onnx", "model.tflite", "model.saved_model",
        "model.pdmodel"
    };
    char *saved = NULL;

    if (is_there(directory, "saved_model.pb", &saved)) {
        free(saved);
        *path = strdup(directory);
        return *path == NULL ? bk_err_nomem("path of a model") : NULL;
    }

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char *found = NULL;

        if (!is_there(directory, names[i], &found)) {
            continue;
        }
        if (is_directory(found) && strcmp(names[i], "model.saved_model")
            != 0)
        {
            TRITONSERVER_Error *err = find_in(found, path);
            free(found);
            return err;
        }

        *path = found;
        return NULL;
    }

    return bk_err_new(TRITONSERVER_ERROR_NOT_FOUND, "there is no file " NAMES
        " in \"%s\"", directory);
}

static bool
is_there(const char *directory, const char *name, char **path)
{
    struct stat st;

    if (asprintf(path, "%s/%s", directory, name) < 0) {
        *path = NULL;
        return false;
    }

    if (stat(*path, &st) == 0) {
        return true;
    }

    free(*path);
    *path = NULL;
    return false;
}

static bool
is_directory(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Words may lie across two chunks: the end of one is kept for the next. */
static bool
contains(FILE *f, const char *const *words, char *chunk)
{
    size_t kept = 0;
    size_t got;

    while ((got = fread(chunk + kept, 1, CHUNK - kept, f)) > 0) {
        size_t len = kept + got;

        for (size_t i = 0; words[i] != NULL; i++) {
            if (memmem(chunk, len, words[i], strlen(words[i])) != NULL) {
                return true;
            }
        }

        kept = len < 32 ? len : 32;
        memmove(chunk, chunk + len - kept, kept);
    }

    return false;
}
