/* capability.c - see capability.h */

#include "capability.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define DRIVER          "libcuda.so.1"
#define CAPABILITY_MAJOR 75              /* of the driver's device attributes */
#define CAPABILITY_MINOR 76

typedef struct {
    int (*init)(unsigned flags);
    int (*device)(int *device, int ordinal);
    int (*attribute)(int *value, int attribute, int device);
} functions_t;

static TRITONSERVER_Error *functions_find(functions_t *f);

TRITONSERVER_Error *
bk_capability(int32_t device_id, char *text, size_t size)
{
    functions_t f = { 0 };
    int device = 0;
    int major = 0;
    int minor = 0;

    TRITONSERVER_Error *err = functions_find(&f);
    if (err != NULL) {
        return err;
    }

    int rc = f.init(0);
    rc = rc != 0 ? rc : f.device(&device, device_id);
    rc = rc != 0 ? rc : f.attribute(&major, CAPABILITY_MAJOR, device);
    rc = rc != 0 ? rc : f.attribute(&minor, CAPABILITY_MINOR, device);
    if (rc != 0) {
        return bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE, "compute capability"
            " of GPU %" PRId32 ": the driver's error %d", device_id, rc);
    }

    snprintf(text, size, "%d.%d", major, minor);
    return NULL;
}

static TRITONSERVER_Error *
functions_find(functions_t *f)
{
    const char *name = getenv("INFERENCE_CUDA_DRIVER");

    void *library = dlopen(name != NULL ? name : DRIVER,
        RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == NULL) {
        return bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE,
            "compute capability: %s", dlerror());
    }

    f->init = (int (*)(unsigned)) dlsym(library, "cuInit");
    f->device = (int (*)(int *, int)) dlsym(library, "cuDeviceGet");
    f->attribute = (int (*)(int *, int, int)) dlsym(library,
        "cuDeviceGetAttribute");
    dlclose(library);
    if (f->init == NULL || f->device == NULL || f->attribute == NULL) {
        return bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE,
            "compute capability: \"%s\" is no driver",
            name != NULL ? name : DRIVER);
    }

    return NULL;
}
