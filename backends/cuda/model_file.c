/* model_file.c - see model_file.h */

#include "model_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MOST (INT64_C(1) << 36)

/* By gpu_file_kind_t. */
static const char *const extensions[] = {
    ".so", ".cu", ".fatbin", ".cubin", ".ptx"
};

#define KINDS (sizeof(extensions) / sizeof(extensions[0]))

static TRITONSERVER_Error *find_directory(gpu_model_file_t *f,
    TRITONBACKEND_Model *model);
static TRITONSERVER_Error *use_name(gpu_model_file_t *f, const char *name);
static TRITONSERVER_Error *search(gpu_model_file_t *f);
static bool is_inner(const char *name);
static TRITONSERVER_Error *open_regular(const char *path, int *out,
    int64_t *len);
static TRITONSERVER_Error *read_bytes(int fd, const char *path, char *data,
    size_t len);

TRITONSERVER_Error *
gpu_model_file_find(gpu_model_file_t *f, TRITONBACKEND_Model *model,
    const bk_model_config_t *config)
{
    const char *name = bk_json_string(bk_json_member(config->root,
        "default_model_filename"), "");

    *f = (gpu_model_file_t) { 0 };
    TRITONSERVER_Error *err = find_directory(f, model);
    if (err == NULL) {
        err = name[0] != '\0' ? use_name(f, name) : search(f);
    }
    return err;
}

void
gpu_model_file_fini(gpu_model_file_t *f)
{
    free(f->directory);
    free(f->path);
    *f = (gpu_model_file_t) { 0 };
}

TRITONSERVER_Error *
gpu_model_file_beside(const gpu_model_file_t *f, const char *name,
    char **path)
{
    if (!is_inner(name)) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "the file name"
            " \"%s\" leads out of the version's directory", name);
    }

    return asprintf(path, "%s/%s", f->directory, name) >= 0 ? NULL
        : bk_err_nomem("path of a model");
}

TRITONSERVER_Error *
gpu_model_file_size(const gpu_model_file_t *f, const char *name, int64_t *len)
{
    char *path = NULL;
    int fd;

    TRITONSERVER_Error *err = gpu_model_file_beside(f, name, &path);
    if (err == NULL) {
        err = open_regular(path, &fd, len);
    }
    if (err == NULL) {
        close(fd);
    }
    free(path);
    return err;
}

TRITONSERVER_Error *
gpu_file_read(const char *path, char **data, size_t *len)
{
    int64_t size;
    int fd;

    *data = NULL;
    TRITONSERVER_Error *err = open_regular(path, &fd, &size);
    if (err != NULL) {
        return err;
    }

    *len = (size_t) size;
    *data = malloc(*len + 1);
    err = *data == NULL ? bk_err_nomem("content of a file")
        : read_bytes(fd, path, *data, *len);
    close(fd);
    if (err != NULL) {
        free(*data);
        *data = NULL;
    }
    return err;
}

static TRITONSERVER_Error *
open_regular(const char *path, int *out, int64_t *len)
{
    struct stat st;

    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0) {
        int rc = errno;
        if (fd >= 0) {
            close(fd);
        }
        return bk_err_new(TRITONSERVER_ERROR_NOT_FOUND, "cannot read \"%s\":"
            " %s", path, strerror(rc));
    }
    if (!S_ISREG(st.st_mode) || st.st_size > FILE_MOST) {
        close(fd);
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "\"%s\" is no"
            " regular file, or larger than %" PRId64 " bytes", path,
            FILE_MOST);
    }

    *out = fd;
    *len = st.st_size;
    return NULL;
}

static TRITONSERVER_Error *
find_directory(gpu_model_file_t *f, TRITONBACKEND_Model *model)
{
    TRITONBACKEND_ArtifactType type;
    const char *directory;
    uint64_t version;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelRepository(model, &type,
        &directory);
    if (err == NULL) {
        err = TRITONBACKEND_ModelVersion(model, &version);
    }
    if (err != NULL) {
        return err;
    }

    if (asprintf(&f->directory, "%s/%" PRIu64, directory, version) < 0) {
        f->directory = NULL;
        return bk_err_nomem("path of a model");
    }
    return NULL;
}

static TRITONSERVER_Error *
use_name(gpu_model_file_t *f, const char *name)
{
    const char *dot = strrchr(name, '.');
    size_t kind = 0;

    while (kind < KINDS
        && (dot == NULL || strcmp(dot, extensions[kind]) != 0))
    {
        kind++;
    }
    if (kind == KINDS) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "default_model_filename \"%s\" does not end with .cu, .ptx,"
            " .cubin, .fatbin or .so", name);
    }

    f->kind = (gpu_file_kind_t) kind;
    TRITONSERVER_Error *err = gpu_model_file_beside(f, name, &f->path);
    if (err == NULL && access(f->path, R_OK) != 0) {
        err = bk_err_new(TRITONSERVER_ERROR_NOT_FOUND, "cannot read \"%s\":"
            " %s", f->path, strerror(errno));
    }
    return err;
}

static TRITONSERVER_Error *
search(gpu_model_file_t *f)
{
    for (size_t kind = 0; kind < KINDS; kind++) {
        if (asprintf(&f->path, "%s/model%s", f->directory, extensions[kind])
            < 0)
        {
            f->path = NULL;
            return bk_err_nomem("path of a model");
        }
        if (access(f->path, R_OK) == 0) {
            f->kind = (gpu_file_kind_t) kind;
            return NULL;
        }
        free(f->path);
        f->path = NULL;
    }

    return bk_err_new(TRITONSERVER_ERROR_NOT_FOUND, "there is no model.cu,"
        " model.ptx, model.cubin, model.fatbin or model.so in \"%s\"",
        f->directory);
}

/* Neither absolute nor upwards. */
static bool
is_inner(const char *name)
{
    if (name[0] == '\0' || name[0] == '/') {
        return false;
    }

    for (const char *part = name; part != NULL; ) {
        const char *slash = strchr(part, '/');
        size_t len = slash != NULL ? (size_t) (slash - part) : strlen(part);
        if (len == 2 && memcmp(part, "..", 2) == 0) {
            return false;
        }
        part = slash != NULL ? slash + 1 : NULL;
    }
    return true;
}

static TRITONSERVER_Error *
read_bytes(int fd, const char *path, char *data, size_t len)
{
    for (size_t done = 0; done < len; ) {
        ssize_t n = read(fd, data + done, len - done);
        if (n == 0 || (n < 0 && errno != EINTR)) {
            return bk_err_new(TRITONSERVER_ERROR_INTERNAL, "cannot read"
                " \"%s\": %s", path, n == 0 ? "it has become shorter"
                : strerror(errno));
        }
        done += n > 0 ? (size_t) n : 0;
    }

    data[len] = '\0';
    return NULL;
}
