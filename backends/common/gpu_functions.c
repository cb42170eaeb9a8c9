/* gpu_functions.c - see gpu_functions.h */

#include "gpu_functions.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

bool
gpu_functions_open(gpu_functions_t *f, char *why, size_t size)
{
    const char *name = getenv("INFERENCE_CUDA_DRIVER");
    if (name == NULL) {
        name = "libcuda.so.1";
    }
    if (name[0] == '\0') {
        snprintf(why, size, "INFERENCE_CUDA_DRIVER is empty");
        return false;
    }

    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == NULL) {
        snprintf(why, size, "%s", dlerror());
        return false;
    }

#define LOOK_UP(field, symbol, parameters)                                    \
    f->field = (gpu_result_t (*) parameters) dlsym(library, #symbol);         \
    missing = f->field == NULL && missing == NULL ? #symbol : missing;

    const char *missing = NULL;
    GPU_FUNCTIONS(LOOK_UP)
    GPU_IPC_FUNCTIONS(LOOK_UP)
    const char *lacking = missing;
    GPU_LATER_FUNCTIONS(LOOK_UP)
#undef LOOK_UP

    if (lacking != NULL) {
        snprintf(why, size, "%s has no function %s", name, lacking);
    }
    return lacking == NULL;
}
