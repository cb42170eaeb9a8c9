/* runtime.c - see runtime.h */

#include "runtime.h"

#include "common/config_json.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct gpu_runtime_s {
    gpu_driver_t   *driver;             /* NULL: none                        */
    char           *driver_error;       /* why                               */
    bk_json_t      *settings;           /* set in open                       */
    pthread_mutex_t lock;               /* guards compiler and cache         */
    gpu_compiler_t *compiler;           /* NULL: not opened yet              */
    gpu_cache_t     cache;              /* opened with it                    */
};

static TRITONSERVER_Error *read_settings(gpu_runtime_t *rt,
    TRITONBACKEND_Backend *backend);
static const char *setting(const gpu_runtime_t *rt, const char *key);
static TRITONSERVER_Error *set_policy(const gpu_runtime_t *rt,
    TRITONBACKEND_Backend *backend);
static TRITONSERVER_Error *find_driver(gpu_runtime_t *rt);

TRITONSERVER_Error *
gpu_runtime_open(void **out, TRITONBACKEND_Backend *backend)
{
    gpu_runtime_t *rt = calloc(1, sizeof(*rt));
    if (rt == NULL) {
        return bk_err_nomem("state of backend cuda");
    }

    rt->cache.directory = -1;
    pthread_mutex_init(&rt->lock, NULL);
    TRITONSERVER_Error *err = read_settings(rt, backend);
    if (err == NULL) {
        err = set_policy(rt, backend);
    }
    if (err == NULL) {
        err = find_driver(rt);
    }
    if (err != NULL) {
        gpu_runtime_close(rt);
        return err;
    }

    *out = rt;
    return NULL;
}

void
gpu_runtime_close(void *runtime)
{
    gpu_runtime_t *rt = runtime;

    if (rt == NULL) {
        return;
    }

    gpu_compiler_close(rt->compiler);
    gpu_cache_close(&rt->cache);
    gpu_driver_close(rt->driver);
    if (rt->settings != NULL) {
        bk_json_free(rt->settings);
    }
    pthread_mutex_destroy(&rt->lock);
    free(rt->driver_error);
    free(rt);
}

TRITONSERVER_Error *
gpu_runtime_driver(const gpu_runtime_t *rt, gpu_driver_t **out)
{
    *out = rt->driver;
    return rt->driver != NULL ? NULL
        : bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE, "%s", rt->driver_error);
}

/* The lock is held while the library is opened: models that are loaded beside
   each other wait for one attempt. */
TRITONSERVER_Error *
gpu_runtime_compiler(gpu_runtime_t *rt, gpu_compiler_t **compiler,
    gpu_cache_t **cache)
{
    TRITONSERVER_Error *err = NULL;

    pthread_mutex_lock(&rt->lock);
    if (rt->compiler == NULL) {
        err = gpu_compiler_open(&rt->compiler, setting(rt, "nvrtc-library"),
            gpu_driver_version(rt->driver));
        if (err == NULL) {
            gpu_cache_open(&rt->cache, setting(rt, "cache-directory"));
        }
    }
    *compiler = rt->compiler;
    pthread_mutex_unlock(&rt->lock);

    *cache = &rt->cache;
    return err;
}

static TRITONSERVER_Error *
read_settings(gpu_runtime_t *rt, TRITONBACKEND_Backend *backend)
{
    TRITONSERVER_Message *message;
    const char *text;
    size_t len;

    TRITONSERVER_Error *err = TRITONBACKEND_BackendConfig(backend, &message);
    if (err == NULL) {
        err = TRITONSERVER_MessageSerializeToJson(message, &text, &len);
    }
    return err != NULL ? err : bk_json_parse(text, len, &rt->settings);
}

/* NULL: not set, or empty. */
static const char *
setting(const gpu_runtime_t *rt, const char *key)
{
    const char *text = bk_json_string(bk_json_member(bk_json_member(
        rt->settings, "cmdline"), key), "");

    return text[0] != '\0' ? text : NULL;
}

/* Without it each instance has a thread of its own, so that several overlap
   on a device (docs/decisions/0069-a-thread-for-each-instance.md). */
static TRITONSERVER_Error *
set_policy(const gpu_runtime_t *rt, TRITONBACKEND_Backend *backend)
{
    const char *text = setting(rt, "device-blocking");

    if (text == NULL || strcmp(text, "false") == 0) {
        return NULL;
    }
    if (strcmp(text, "true") != 0) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "setting"
            " device-blocking is \"%s\"; it must be true or false", text);
    }

    return TRITONBACKEND_BackendSetExecutionPolicy(backend,
        TRITONBACKEND_EXECUTION_DEVICE_BLOCKING);
}

static TRITONSERVER_Error *
find_driver(gpu_runtime_t *rt)
{
    TRITONSERVER_Error *err = gpu_driver_open(&rt->driver);
    if (err == NULL) {
        return NULL;
    }

    rt->driver_error = strdup(TRITONSERVER_ErrorMessage(err));
    bk_err_drop(err);
    return rt->driver_error == NULL ? bk_err_nomem("an error text") : NULL;
}
