#include "core/repository/code_upload.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define HOW "; a load request may bring code only with" \
    " \"inference_code_upload on\""

static bool has_code_name(const char *name);
static bool is_library_name(const char *name);
static const char *code_content(const char *data, size_t len);

/* Sources, bytecode, machine code of CPUs and GPUs, serialized programs, and
   archives, whose content is not examined. */
static const char *const code_extensions[] = {
    "py", "pyc", "pyo", "pyd", "pyx", "pth", "pt", "pt2", "pkl", "pickle",
    "joblib", "whl", "egg", "sh", "bash", "lua", "js", "jar", "class",
    "c", "cc", "cpp", "cu", "ptx", "cubin", "fatbin", "plan", "engine",
    "a", "o", "dll", "dylib", "wasm", "bc", "ll",
    "zip", "tar", "tgz", "gz", "bz2", "xz", "zst"
};

static const struct {
    size_t      offset;
    size_t      len;
    const char *bytes;
    const char *what;
} code_starts[] = {
    { 0, 4, "\177ELF", "a program or library by its first bytes" },
    { 0, 2, "#!", "a script by its first bytes" },
    { 0, 4, "\x50\xed\x55\xba", "GPU code by its first bytes" },
    { 0, 4, "BC\xc0\xde", "bitcode by its first bytes" },
    { 0, 4, "PK\3\4", "an archive by its first bytes" },
    { 0, 3, "\x1f\x8b\x08", "an archive by its first bytes" },
    { 0, 4, "BZh9", "an archive by its first bytes" },
    { 0, 6, "\xfd" "7zXZ\0", "an archive by its first bytes" },
    { 0, 4, "\x28\xb5\x2f\xfd", "an archive by its first bytes" },
    { 257, 5, "ustar", "an archive by its first bytes" }
};

/* These read their models' files as data. */
static const char *const data_backends[] = {
    "identity", "onnxruntime", "openvino"
};

const char *
inf_code_upload_is_code(const char *path, const char *data, size_t len)
{
    char *inner = strdup(path);
    if (inner == NULL) {
        return "unknown: out of memory";
    }

    const char *what = NULL;
    if (inf_override_normalize(inner)) {
        const char *slash = strrchr(inner, '/');
        if (has_code_name(slash != NULL ? slash + 1 : inner)) {
            what = "code by its name";
        }
    }
    free(inner);
    return what != NULL ? what : code_content(data, len);
}

inf_err_t *
inf_code_upload_check_files(const inf_override_t *o)
{
    for (size_t i = 0; o != NULL && i < o->file_count; i++) {
        const inf_override_file_t *f = &o->files[i];
        const char *what = inf_code_upload_is_code(f->path, f->data, f->len);
        if (what != NULL) {
            return inf_err_new(INF_ERR_INVALID_ARG, "file parameter 'file:%s'"
                " is not accepted: it is %s" HOW, f->path, what);
        }
    }

    return NULL;
}

inf_err_t *
inf_code_upload_check_backend(const inf_override_t *o, const char *backend)
{
    if (o == NULL || o->file_count == 0 || backend[0] == '\0') {
        return NULL;
    }

    for (size_t i = 0; i < sizeof(data_backends) / sizeof(data_backends[0]);
        i++)
    {
        if (strcmp(backend, data_backends[i]) == 0) {
            return NULL;
        }
    }

    return inf_err_new(INF_ERR_INVALID_ARG, "file parameter 'file:%s' is not"
        " accepted: backend '%s' is not known to read files as data only" HOW,
        o->files[0].path, backend);
}

static bool
has_code_name(const char *name)
{
    const char *dot = strrchr(name, '.');
    if (dot == NULL) {
        return false;
    }

    for (size_t i = 0; i < sizeof(code_extensions)
        / sizeof(code_extensions[0]); i++)
    {
        if (strcasecmp(dot + 1, code_extensions[i]) == 0) {
            return true;
        }
    }

    return is_library_name(name);
}

/* name.so, name.so.1.2 */
static bool
is_library_name(const char *name)
{
    for (const char *so = name; (so = strcasestr(so, ".so")) != NULL; so++) {
        if (so[3] == '\0' || so[3] == '.') {
            return true;
        }
    }

    return false;
}

static const char *
code_content(const char *data, size_t len)
{
    for (size_t i = 0; i < sizeof(code_starts) / sizeof(code_starts[0]); i++) {
        size_t end = code_starts[i].offset + code_starts[i].len;
        if (len >= end && memcmp(data + code_starts[i].offset,
                code_starts[i].bytes, code_starts[i].len) == 0)
        {
            return code_starts[i].what;
        }
    }

    return NULL;
}
