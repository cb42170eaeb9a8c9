/* driver.c - see driver.h */

#include "driver.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "../../common/gpu_functions.h"

#define LEGACY    NULL                  /* the stream that others wait for   */
#define NO_DRIVER "no CUDA driver: "

static struct {
    bool            tried;
    char            why[256];           /* empty: open                       */
    gpu_functions_t f;
    gpu_context_t   contexts[PY_GPUS];
} driver;

static void library_open(void);
static gpu_result_t enter(int gpu);
static gpu_result_t finish(gpu_result_t rc);
static gpu_result_t leave(gpu_result_t rc);

const char *
py_driver_open(int64_t gpu)
{
    static char text[256];
    int handle;

    if (!driver.tried) {
        driver.tried = true;
        library_open();
    }
    if (driver.why[0] != '\0') {
        return driver.why;
    }
    if (gpu < 0 || gpu >= PY_GPUS) {
        return "there is no such GPU";
    }
    if (driver.contexts[gpu] != NULL) {
        return NULL;
    }

    gpu_result_t rc = driver.f.device_get(&handle, (int) gpu);
    if (rc == GPU_SUCCESS) {
        rc = driver.f.context_retain(&driver.contexts[gpu], handle);
    }
    if (rc != GPU_SUCCESS) {
        driver.contexts[gpu] = NULL;
        snprintf(text, sizeof(text), "GPU %d: %s", (int) gpu,
            py_driver_error(rc));
        return text;
    }
    return NULL;
}

gpu_result_t
py_driver_wait(int gpu)
{
    gpu_result_t rc = enter(gpu);

    return rc != GPU_SUCCESS ? rc : leave(driver.f.stream_sync(LEGACY));
}

gpu_result_t
py_driver_wait_all(int gpu)
{
    gpu_result_t rc = enter(gpu);

    return rc != GPU_SUCCESS ? rc : leave(driver.f.context_sync());
}

gpu_result_t
py_driver_copy(int gpu, gpu_ptr_t to, gpu_ptr_t from, uint64_t size)
{
    gpu_result_t rc = enter(gpu);

    return rc != GPU_SUCCESS ? rc
        : finish(driver.f.copy_on_device(to, from, size, LEGACY));
}

gpu_result_t
py_driver_read(int gpu, void *to, gpu_ptr_t from, uint64_t size)
{
    gpu_result_t rc = enter(gpu);

    return rc != GPU_SUCCESS ? rc
        : finish(driver.f.copy_to_host(to, from, size, LEGACY));
}

gpu_result_t
py_driver_map(int gpu, const uint8_t *handle, gpu_ptr_t *base)
{
    gpu_ipc_t h;

    memcpy(&h, handle, sizeof(h));
    gpu_result_t rc = enter(gpu);
    return rc != GPU_SUCCESS ? rc
        : leave(driver.f.ipc_open(base, h, GPU_IPC_LAZY_PEER));
}

void
py_driver_unmap(int gpu, gpu_ptr_t base)
{
    if (enter(gpu) == GPU_SUCCESS) {
        (void) leave(driver.f.ipc_close(base));
    }
}

const char *
py_driver_error(gpu_result_t rc)
{
    const char *name = NULL;

    return driver.f.error_name(rc, &name) == GPU_SUCCESS && name != NULL
        ? name : "CUDA error";
}

static void
library_open(void)
{
    char why[sizeof(driver.why) - sizeof(NO_DRIVER)];

    if (!gpu_functions_open(&driver.f, why, sizeof(why))) {
        snprintf(driver.why, sizeof(driver.why), NO_DRIVER "%s", why);
        return;
    }

    gpu_result_t rc = driver.f.init(0);
    if (rc != GPU_SUCCESS) {
        snprintf(driver.why, sizeof(driver.why), NO_DRIVER "%s",
            py_driver_error(rc));
    }
}

static gpu_result_t
enter(int gpu)
{
    return driver.f.context_push(driver.contexts[gpu]);
}

/* Waits for what was queued, also after an error. */
static gpu_result_t
finish(gpu_result_t rc)
{
    gpu_result_t late = driver.f.stream_sync(LEGACY);

    return leave(rc != GPU_SUCCESS ? rc : late);
}

static gpu_result_t
leave(gpu_result_t rc)
{
    gpu_context_t left;

    (void) driver.f.context_pop(&left);
    return rc;
}
