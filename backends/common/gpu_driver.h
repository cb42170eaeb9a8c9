/*
 * gpu_driver.h - the CUDA driver, opened at run time, and its devices.
 *
 * Owner    The caller closes the driver when nothing on its devices is left.
 *          The driver owns the devices.
 * Thread   open and close: one.  The rest: any; a context is entered and left
 *          by the same thread.
 * Units    bytes; compute capability 8.6 is 86.
 * Errors   NOT_FOUND: no driver, no such device.  UNAVAILABLE: no memory left,
 *          or the device has failed.  INTERNAL: the driver's other errors,
 *          with its own name for them.
 * Route    runtime -> [gpu_driver] -> libcuda.so.1
 */

#ifndef GPU_DRIVER_H
#define GPU_DRIVER_H

#include "error.h"
#include "gpu_driver_functions.h"

#include <stdatomic.h>

#define GPU_DEVICES_MAX 64

typedef struct gpu_driver_s gpu_driver_t;

typedef struct {
    gpu_driver_t          *driver;
    const gpu_functions_t *f;
    int                    ordinal;
    int                    handle;
    gpu_context_t          context;     /* primary                           */
    int                    capability;
    int                    threads_most;        /* in a block                */
    int                    grid_most[3];
    int                    shared_most;         /* in a block, by opting in  */

    _Atomic bool           opened;      /* acquire: the fields above are set */

    /* relaxed, as no other field follows from it: the first error after which
       the driver does nothing more on the device; 0: none */
    _Atomic int            failed;
} gpu_device_t;

/* Opens the library that the environment variable INFERENCE_CUDA_DRIVER names
 * (empty: none), or libcuda.so.1. */
BK_CHECK TRITONSERVER_Error *gpu_driver_open(gpu_driver_t **out);
void gpu_driver_close(gpu_driver_t *driver);

/* The driver's version of CUDA; 12040 is 12.4. */
int gpu_driver_version(const gpu_driver_t *driver);

/* The device with its context, which is made at the first call. */
BK_CHECK TRITONSERVER_Error *gpu_device_get(gpu_driver_t *driver,
    int64_t ordinal, gpu_device_t **out);

/* Makes the device's context the thread's current one, until gpu_leave. */
BK_CHECK TRITONSERVER_Error *gpu_enter(gpu_device_t *device);
void gpu_leave(gpu_device_t *device);

/* As gpu_enter, for freeing what: tries twice, and logs that what is leaked.
 * Returns whether the device was entered. */
BK_CHECK bool gpu_enter_to_free(gpu_device_t *device, const char *what);

/* NULL for success, otherwise an error that begins with the text.  Marks a
 * device that has failed. */
BK_CHECK TRITONSERVER_Error *gpu_check(gpu_device_t *device, gpu_result_t rc,
    const char *fmt, ...) BK_PRINTF(3, 4);

/* Whether the process can do no more work on the device. */
bool gpu_device_has_failed(const gpu_device_t *device);

/* The error of a device that has failed; NULL: it works. */
BK_CHECK TRITONSERVER_Error *gpu_device_state(gpu_device_t *device);

#endif /* GPU_DRIVER_H */
