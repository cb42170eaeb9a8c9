/* model_file.c - see model_file.h */

#include "model_file.h"

#include "capability.h"
#include "path.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CAPABILITY_MAX 32

static TRITONSERVER_Error *file_check(TRITONBACKEND_Model *model,
    const char *file);
static TRITONSERVER_Error *unreadable(TRITONBACKEND_Model *model,
    const char *file, int error);
static TRITONSERVER_Error *file_find(TRITONBACKEND_Model *model,
    const char *field, const char *name, char **path);

TRITONSERVER_Error *
bk_version_directory(TRITONBACKEND_Model *model, char **path)
{
    TRITONBACKEND_ArtifactType type;
    const char *directory;
    uint64_t version;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelRepository(model, &type,
        &directory);
    if (err == NULL) {
        err = TRITONBACKEND_ModelVersion(model, &version);
    }
    if (err == NULL && asprintf(path, "%s/%" PRIu64, directory, version) < 0)
    {
        err = bk_err_nomem("path of a model");
    }

    return err;
}

TRITONSERVER_Error *
bk_model_file(TRITONBACKEND_Model *model, const bk_model_config_t *config,
    const char *fallback, char **path)
{
    const char *name = bk_json_string(bk_json_member(config->root,
        "default_model_filename"), "");

    return file_find(model, "default_model_filename",
        name[0] != '\0' ? name : fallback, path);
}

TRITONSERVER_Error *
bk_model_file_of_gpu(TRITONBACKEND_Model *model,
    const bk_model_config_t *config, int32_t device_id, const char *fallback,
    char **path)
{
    const bk_json_t *names = bk_json_member(config->root,
        "cc_model_filenames");
    char capability[CAPABILITY_MAX];

    if (bk_json_count(names) == 0) {
        return bk_model_file(model, config, fallback, path);
    }

    TRITONSERVER_Error *err = bk_capability(device_id, capability,
        sizeof(capability));
    if (err != NULL) {
        return err;
    }

    const char *name = bk_json_string(bk_json_member(names, capability),
        NULL);

    return name == NULL ? bk_model_file(model, config, fallback, path)
        : file_find(model, "cc_model_filenames", name, path);
}

TRITONSERVER_Error *
bk_version_file(TRITONBACKEND_Model *model, const char *name, char **path)
{
    char *directory = NULL;
    char *file = NULL;

    TRITONSERVER_Error *err = bk_version_directory(model, &directory);
    if (err != NULL) {
        return err;
    }

    if (asprintf(&file, "%s/%s", directory, name) < 0) {
        free(directory);
        return bk_err_nomem("path of a model");
    }

    free(directory);
    err = file_check(model, file);
    if (err != NULL) {
        free(file);
        return err;
    }

    *path = file;
    return NULL;
}

/* A library would wait for a pipe's writer. */
static TRITONSERVER_Error *
file_check(TRITONBACKEND_Model *model, const char *file)
{
    struct stat st;

    if (access(file, R_OK) != 0 || stat(file, &st) != 0) {
        return unreadable(model, file, errno);
    }

    return S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) ? NULL
        : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "\"%s\" is neither a "
        "file nor a directory", file);
}

static TRITONSERVER_Error *
unreadable(TRITONBACKEND_Model *model, const char *file, int error)
{
    const char *name;
    char text[128];
    char user[1024];
    struct passwd pw;
    struct passwd *found = NULL;

    if (error == ENOENT) {
        TRITONSERVER_Error *err = TRITONBACKEND_ModelName(model, &name);
        return err != NULL ? err : bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE,
            "unable to find '%s' for model instance '%s'", file, name);
    }

    const char *why = strerror_r(error, text, sizeof(text));

    /* a user may have no name */
    (void) getpwuid_r(geteuid(), &pw, user, sizeof(user), &found);
    return found != NULL
        ? bk_err_new(TRITONSERVER_ERROR_NOT_FOUND, "cannot read \"%s\": %s;"
            " the core runs as user %s (%u)", file, why, found->pw_name,
            geteuid())
        : bk_err_new(TRITONSERVER_ERROR_NOT_FOUND, "cannot read \"%s\": %s;"
            " the core runs as user %u", file, why, geteuid());
}

static TRITONSERVER_Error *
file_find(TRITONBACKEND_Model *model, const char *field, const char *name,
    char **path)
{
    if (!bk_path_is_inner(name, strlen(name))) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "%s \"%s\" leads"
            " out of the version's directory", field, name);
    }

    return bk_version_file(model, name, path);
}
