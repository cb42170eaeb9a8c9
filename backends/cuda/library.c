/* library.c - see library.h */

#include "library.h"

#include "library_check.h"

#include <dlfcn.h>

#define TEXT_MAX 1024

static TRITONSERVER_Error *said(int rc, char text[TEXT_MAX],
    const char *function);

TRITONSERVER_Error *
gpu_library_open(gpu_library_t *l, const char *path)
{
    *l = (gpu_library_t) { 0 };
    TRITONSERVER_Error *err = gpu_library_check(path);
    if (err != NULL) {
        return err;
    }

    l->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (l->handle == NULL) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "%s", dlerror());
    }

    uint32_t (*version)(void) = (uint32_t (*)(void)) dlsym(l->handle,
        "gpu_model_version");
    l->init = (__typeof__(l->init)) dlsym(l->handle, "gpu_model_init");
    l->execute = (__typeof__(l->execute)) dlsym(l->handle,
        "gpu_model_execute");
    l->fini = (__typeof__(l->fini)) dlsym(l->handle, "gpu_model_fini");
    if (version == NULL || l->init == NULL || l->execute == NULL
        || l->fini == NULL)
    {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "it must export"
            " gpu_model_version, gpu_model_init, gpu_model_execute and"
            " gpu_model_fini");
    }

    return version() == GPU_MODEL_VERSION ? NULL
        : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "it was made for version"
            " %u of gpu_model.h, the backend has %d", version(),
            GPU_MODEL_VERSION);
}

void
gpu_library_close(gpu_library_t *l)
{
    if (l->handle != NULL) {
        dlclose(l->handle);
    }
    *l = (gpu_library_t) { 0 };
}

TRITONSERVER_Error *
gpu_library_init(const gpu_library_t *l, void **state,
    const gpu_model_options_t *options)
{
    char text[TEXT_MAX] = "";

    return said(l->init(state, options, text, sizeof(text)), text,
        "gpu_model_init");
}

TRITONSERVER_Error *
gpu_library_execute(const gpu_library_t *l, void *state,
    const gpu_model_tensor_t *inputs, uint32_t input_count,
    const gpu_model_tensor_t *outputs, uint32_t output_count, void *stream)
{
    char text[TEXT_MAX] = "";

    return said(l->execute(state, inputs, input_count, outputs, output_count,
        stream, text, sizeof(text)), text, "gpu_model_execute");
}

static TRITONSERVER_Error *
said(int rc, char text[TEXT_MAX], const char *function)
{
    text[TEXT_MAX - 1] = '\0';
    return rc == 0 ? NULL : bk_err_new(TRITONSERVER_ERROR_INTERNAL,
        "%s: %s", function, text[0] != '\0' ? text : "failed without a word");
}
