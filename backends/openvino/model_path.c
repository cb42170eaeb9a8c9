/* model_path.c - see model_path.h */

#include "model_path.h"

#include "common/model_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_NAME "model.xml"
#define NAMES FIRST_NAME ", model.onnx, model.tflite, model.saved_model or" \
    " model.pdmodel"

static TRITONSERVER_Error *find_in(const char *directory, const char *model,
    char **path);
static bool is_there(const char *directory, const char *name, char **path);
static bool is_directory(const char *path);
static TRITONSERVER_Error *check_fd(int fd, const char *path);
static bool is_xml(const char *at, const char *end);
static bool has_state(const char *at, const char *end);
static bool is_of_state(const char *at, const char *end);
static const char *skip_blanks(const char *at, const char *end);
static bool is_blank(char c);

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

    err = find_in(found, config->name, path);
    free(found);
    return err;
}

TRITONSERVER_Error *
vino_model_path_check(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return NULL;                    /* the library says why              */
    }

    TRITONSERVER_Error *err = check_fd(fd, path);
    close(fd);
    return err;
}

static TRITONSERVER_Error *
check_fd(int fd, const char *path)
{
    struct stat st;

    if (fstat(fd, &st) != 0 || S_ISDIR(st.st_mode)) {
        return NULL;
    }
    if (!S_ISREG(st.st_mode)) {         /* the library would wait for a pipe */
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "\"%s\" is neither "
            "a file nor a directory", path);
    }
    if (st.st_size == 0) {
        return NULL;
    }

    size_t len = (size_t) st.st_size;
    char *text = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
    if (text == MAP_FAILED) {
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL, "cannot map \"%s\":"
            " %s", path, strerror(errno));
    }

    bool found = is_xml(text, text + len) && has_state(text, text + len);
    munmap(text, len);
    return !found ? NULL : bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
        "\"%s\" has operators that keep state from one request to the next "
        "(ReadValue, Assign); requests of different clients would share it",
        path);
}

/* A directory that is a SavedModel is the model itself. */
static TRITONSERVER_Error *
find_in(const char *directory, const char *model, char **path)
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
            TRITONSERVER_Error *err = find_in(found, model, path);
            free(found);
            return err;
        }

        *path = found;
        return NULL;
    }

    return bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE, "unable to find '%s/"
        FIRST_NAME "' for model '%s'; it may be " NAMES, directory, model);
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

/* The library goes by the content and not by the name. */
static bool
is_xml(const char *at, const char *end)
{
    static const char mark[] = { '\xef', '\xbb', '\xbf' };

    if ((size_t) (end - at) > sizeof(mark)
        && memcmp(at, mark, sizeof(mark)) == 0)
    {
        at += sizeof(mark);
    }

    at = skip_blanks(at, end);
    return at < end && *at == '<';
}

static bool
has_state(const char *at, const char *end)
{
    static const char name[] = "type";
    const size_t len = sizeof(name) - 1;
    const char *start = at;
    bool found = false;

    while (!found && (at = memmem(at, (size_t) (end - at), name, len))
        != NULL)
    {
        bool whole = at > start && is_blank(at[-1]);

        at += len;
        found = whole && is_of_state(at, end);
    }

    return found;
}

/* An attribute's value behind its name. */
static bool
is_of_state(const char *at, const char *end)
{
    static const char *const types[] = { "ReadValue", "Assign" };

    at = skip_blanks(at, end);
    if (at == end || *at != '=') {
        return false;
    }

    at = skip_blanks(at + 1, end);
    if (at == end || (*at != '"' && *at != '\'')) {
        return false;
    }

    const char *quote = memchr(at + 1, *at, (size_t) (end - at - 1));
    size_t len = quote == NULL ? 0 : (size_t) (quote - at - 1);
    bool found = memchr(at + 1, '&', len) != NULL;  /* spelled another way   */

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        found = found || (len == strlen(types[i])
            && memcmp(at + 1, types[i], len) == 0);
    }

    return found;
}

static const char *
skip_blanks(const char *at, const char *end)
{
    while (at < end && is_blank(*at)) {
        at++;
    }

    return at;
}

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}
