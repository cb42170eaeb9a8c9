/* runtime.c - see model.h: the state that all models of the backend share */

#include "model.h"

#include <dlfcn.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_MAX_BATCH_SIZE 4
#define TRITONS_NAME           "fil"

static char *own_directory(void);

TRITONSERVER_Error *
trees_runtime_open(void **out, TRITONBACKEND_Backend *backend)
{
    const bk_json_t *settings;
    bk_json_t *root = NULL;
    const char *name;

    TRITONSERVER_Error *err = TRITONBACKEND_BackendName(backend, &name);
    if (err == NULL) {
        err = bk_backend_settings(backend, &root, &settings);
    }
    if (err != NULL) {
        return err;
    }

    trees_runtime_t *rt = calloc(1, sizeof(*rt));
    char *directory = own_directory();
    if (rt == NULL || directory == NULL) {
        err = bk_err_nomem("state of the trees backend");
    } else {
        const char *nvrtc = bk_json_string(bk_json_member(settings,
            "nvrtc-library"), NULL);

        pthread_mutex_init(&rt->lock, NULL);
        rt->nvrtc = nvrtc == NULL ? NULL : strdup(nvrtc);
        rt->fil = strcmp(name, TRITONS_NAME) == 0;
        rt->default_max_batch_size = DEFAULT_MAX_BATCH_SIZE;
        err = bk_backend_setting_int(settings, "default-max-batch-size",
            INT32_MIN, INT32_MAX, &rt->default_max_batch_size);
    }
    if (err == NULL) {
        err = treelite_open(&rt->treelite, bk_json_string(
            bk_json_member(settings, "treelite-library"), NULL), directory);
    }

    bk_json_free(root);
    free(directory);
    if (err != NULL) {
        trees_runtime_close(rt);
        return err;
    }

    *out = rt;
    return NULL;
}

void
trees_runtime_close(void *runtime)
{
    trees_runtime_t *rt = runtime;

    if (rt == NULL) {
        return;
    }

    gpu_compiler_close(rt->compiler);
    gpu_driver_close(rt->driver);
    pthread_mutex_destroy(&rt->lock);
    free(rt->nvrtc);
    free(rt);
}

TRITONSERVER_Error *
trees_runtime_gpu(trees_runtime_t *rt, int32_t device_id,
    gpu_device_t **device, const gpu_compiler_t **compiler)
{
    TRITONSERVER_Error *err = NULL;

    pthread_mutex_lock(&rt->lock);
    if (rt->driver == NULL) {
        err = gpu_driver_open(&rt->driver);
    }
    if (err == NULL && rt->compiler == NULL) {
        err = gpu_compiler_open(&rt->compiler, rt->nvrtc,
            gpu_driver_version(rt->driver));
    }
    pthread_mutex_unlock(&rt->lock);
    if (err != NULL) {
        return err;
    }

    *compiler = rt->compiler;
    return gpu_device_get(rt->driver, device_id, device);
}

/* Where this library's file is, with links followed: one that has another
 * backend's name leads here. */
static char *
own_directory(void)
{
    Dl_info info;

    if (dladdr(own_directory, &info) == 0) {
        return NULL;
    }

    char *path = realpath(info.dli_fname, NULL);
    return path == NULL ? NULL : dirname(path);
}
