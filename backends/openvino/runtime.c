/* runtime.c - see runtime.h */

#include "runtime.h"

#include "common/model_config.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_MAX_BATCH_SIZE 4

/* Begins a line that names the place of an exception in the library. */
#define PLACE_START "Exception from "

static const struct {
    ov_element_type_e     type;
    TRITONSERVER_DataType datatype;
} types[] = {
    { BOOLEAN, TRITONSERVER_TYPE_BOOL },
    { U8, TRITONSERVER_TYPE_UINT8 },
    { U16, TRITONSERVER_TYPE_UINT16 },
    { U32, TRITONSERVER_TYPE_UINT32 },
    { U64, TRITONSERVER_TYPE_UINT64 },
    { I8, TRITONSERVER_TYPE_INT8 },
    { I16, TRITONSERVER_TYPE_INT16 },
    { I32, TRITONSERVER_TYPE_INT32 },
    { I64, TRITONSERVER_TYPE_INT64 },
    { F16, TRITONSERVER_TYPE_FP16 },
    { BF16, TRITONSERVER_TYPE_BF16 },
    { F32, TRITONSERVER_TYPE_FP32 },
    { F64, TRITONSERVER_TYPE_FP64 },
    { STRING, TRITONSERVER_TYPE_BYTES }
};

static TRITONSERVER_Error *read_settings(vino_runtime_t *rt,
    TRITONBACKEND_Backend *backend);
static TRITONSERVER_Error *library_open(vino_runtime_t *rt);
static void *library_find(char *tried, size_t size);
static TRITONSERVER_Error *library_look_up(vino_runtime_t *rt,
    void *library);
static void version_log(const vino_runtime_t *rt);
static TRITONSERVER_Error_Code code_of(ov_status_e status);
static void text_flatten(const char *message, char *line, size_t size);

TRITONSERVER_Error *
vino_runtime_open(vino_runtime_t **out, TRITONBACKEND_Backend *backend)
{
    vino_runtime_t *rt = calloc(1, sizeof(*rt));
    if (rt == NULL) {
        return bk_err_nomem("state of backend openvino");
    }

    TRITONSERVER_Error *err = read_settings(rt, backend);
    if (err == NULL) {
        err = library_open(rt);
    }
    if (err == NULL) {
        err = vino_err(rt, rt->f.ov_core_create(&rt->core), "core object");
    }
    if (err != NULL) {
        vino_runtime_close(rt);
        return bk_err_add(err, "cannot start OpenVINO");
    }

    version_log(rt);
    *out = rt;
    return NULL;
}

void
vino_runtime_close(vino_runtime_t *rt)
{
    if (rt == NULL) {
        return;
    }

    if (rt->core != NULL) {
        rt->f.ov_core_free(rt->core);
    }
    free(rt);
}

/*
 * The library keeps one message for all threads.  A failure of another thread
 * can replace it between the failed call and this one; the status is then the
 * only reliable part.
 */
TRITONSERVER_Error *
vino_err(const vino_runtime_t *rt, ov_status_e status, const char *fmt, ...)
{
    char what[BK_ERR_MAX];
    char why[BK_ERR_MAX];
    va_list args;

    if (status == OK) {
        return NULL;
    }

    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);

    const char *message = rt->f.ov_get_last_err_msg();
    text_flatten(message != NULL ? message : rt->f.ov_get_error_info(status),
        why, sizeof(why));
    rt->f.ov_free(message);

    return bk_err_new(code_of(status), "%s: %s", what, why);
}

TRITONSERVER_DataType
vino_datatype(ov_element_type_e type)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (types[i].type == type) {
            return types[i].datatype;
        }
    }

    return TRITONSERVER_TYPE_INVALID;
}

ov_element_type_e
vino_element_type(TRITONSERVER_DataType datatype)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (types[i].datatype == datatype) {
            return types[i].type;
        }
    }

    return DYNAMIC;
}

static TRITONSERVER_Error *
read_settings(vino_runtime_t *rt, TRITONBACKEND_Backend *backend)
{
    const bk_json_t *settings = NULL;
    bk_json_t *root = NULL;

    TRITONSERVER_Error *err = bk_backend_settings(backend, &root, &settings);
    if (err == NULL) {
        rt->default_max_batch_size = DEFAULT_MAX_BATCH_SIZE;
        err = bk_backend_setting_int(settings, "default-max-batch-size",
            INT32_MIN, INT32_MAX, &rt->default_max_batch_size);
        bk_json_free(root);
    }

    return err;
}

static TRITONSERVER_Error *
library_open(vino_runtime_t *rt)
{
    char tried[BK_ERR_MAX] = "";

    void *library = library_find(tried, sizeof(tried));
    if (library == NULL) {
        return bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE, "no %s (%s); "
            "install the package openvino==%s from PyPI and put its libs/ "
            "beside this backend or into the library path",
            VINO_LIBRARY, tried, VINO_PACKAGE_VERSION);
    }

    return library_look_up(rt, library);
}

/* Searches beside the backend, then in the loader's directories. */
static void *
library_find(char *tried, size_t size)
{
    static const char here;
    char beside[4096] = "";
    Dl_info info;
    const char *const paths[] = { beside, VINO_LIBRARY };

    if (dladdr(&here, &info) != 0 && info.dli_fname != NULL) {
        const char *slash = strrchr(info.dli_fname, '/');
        if (slash != NULL) {
            snprintf(beside, sizeof(beside), "%.*s/%s",
                (int) (slash - info.dli_fname), info.dli_fname,
                VINO_LIBRARY);
        }
    }

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        if (paths[i][0] == '\0') {
            continue;
        }

        void *library = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL
            | RTLD_NODELETE);
        if (library != NULL) {
            return library;
        }
        size_t len = strlen(tried);
        snprintf(tried + len, size - len, "%s%s", len == 0 ? "" : "; ",
            dlerror());
    }

    return NULL;
}

static TRITONSERVER_Error *
library_look_up(vino_runtime_t *rt, void *library)
{
    const struct {
        const char *name;
        void      **to;
    } functions[] = {
#define VINO_ENTRY(name) { #name, (void **) &rt->f.name },
        VINO_FUNCTIONS(VINO_ENTRY)
#undef VINO_ENTRY
    };

    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        *functions[i].to = dlsym(library, functions[i].name);
        if (*functions[i].to == NULL) {
            return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
                "%s has no function %s; it is not the library of version %s",
                VINO_LIBRARY, functions[i].name, VINO_PACKAGE_VERSION);
        }
    }

    return NULL;
}

static void
version_log(const vino_runtime_t *rt)
{
    ov_version_t version = { 0 };

    if (rt->f.ov_get_openvino_version(&version) == OK) {
        bk_log(TRITONSERVER_LOG_INFO, "%s %s", version.description,
            version.buildNumber);
        rt->f.ov_version_free(&version);
    }
}

static TRITONSERVER_Error_Code
code_of(ov_status_e status)
{
    switch (status) {

    case PARAMETER_MISMATCH:
    case OUT_OF_BOUNDS:
    case INVALID_C_PARAM:
        return TRITONSERVER_ERROR_INVALID_ARG;

    case NOT_FOUND:
        return TRITONSERVER_ERROR_NOT_FOUND;

    case NOT_IMPLEMENTED:
    case NOT_IMPLEMENT_C_METHOD:
        return TRITONSERVER_ERROR_UNSUPPORTED;

    case INFER_CANCELLED:
        return TRITONSERVER_ERROR_CANCELLED;

    default:
        return TRITONSERVER_ERROR_INTERNAL;
    }
}

/* Joins the lines by blanks, without empty ones and those about places. */
static void
text_flatten(const char *message, char *line, size_t size)
{
    size_t len = 0;

    line[0] = '\0';
    while (*message != '\0') {
        size_t n = strcspn(message, "\n");
        size_t skip = strspn(message, " \t\r");

        if (skip < n && strncmp(message, PLACE_START, strlen(PLACE_START))
            != 0 && len < size)
        {
            len += (size_t) snprintf(line + len, size - len, "%s%.*s",
                len == 0 ? "" : " ", (int) (n - skip), message + skip);
        }
        message += n;
        message += *message == '\n';
    }
}
