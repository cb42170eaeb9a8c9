/* wait.c - see wait.h */

#include "wait.h"

#include "common/request.h"

#include <time.h>

#define SPIN_NS      100000     /* short batches end while the thread asks   */
#define PAUSE_NS_MAX 1000000
#define PAUSE_PART   16         /* a pause is that part of the time so far   */

static TRITONSERVER_Error *wait_by_event(gpu_device_t *device,
    gpu_stream_t stream, gpu_event_t event, bool *ended);
static void pause_ns(uint64_t ns);

/* A kernel that does not end cannot be waited for by the driver, which has no
   time limit: so its stream is asked, in pauses that grow with the time. */
TRITONSERVER_Error *
gpu_wait(gpu_device_t *device, gpu_stream_t stream, gpu_event_t event,
    int64_t timeout_ms, bool *ended)
{
    uint64_t start_ns = bk_now_ns();

    *ended = true;
    for ( ;; ) {
        gpu_result_t rc = device->f->stream_query(stream);
        if (rc == GPU_SUCCESS) {
            return NULL;
        }
        if (rc != GPU_NOT_READY) {
            TRITONSERVER_Error *err = gpu_check(device, rc, "the kernels");
            if (gpu_device_has_failed(device)) {
                return err;
            }
            bk_err_log(err, "a stream cannot be asked");
            return gpu_wait_long(device, stream, ended);
        }

        uint64_t passed_ns = bk_now_ns() - start_ns;
        if (timeout_ms > 0
            && passed_ns >= (uint64_t) timeout_ms * UINT64_C(1000000))
        {
            *ended = false;
            return NULL;
        }

        if (passed_ns >= SPIN_NS && timeout_ms == 0) {
            return wait_by_event(device, stream, event, ended);
        }
        if (passed_ns >= SPIN_NS) {
            passed_ns /= PAUSE_PART;
            pause_ns(passed_ns < PAUSE_NS_MAX ? passed_ns : PAUSE_NS_MAX);
        }
    }
}

/* An error that does not end the device says nothing about the work, and the
   batch has failed; a second wait tells whether anything is left of it. */
TRITONSERVER_Error *
gpu_wait_long(gpu_device_t *device, gpu_stream_t stream, bool *ended)
{
    TRITONSERVER_Error *err = gpu_check(device, device->f->stream_sync(stream),
        "the kernels");

    *ended = err == NULL || gpu_device_has_failed(device);
    if (!*ended) {
        TRITONSERVER_Error *again = gpu_check(device,
            device->f->stream_sync(stream), "the kernels");
        *ended = again == NULL || gpu_device_has_failed(device);
        bk_err_drop(again);
    }
    return err;
}

static TRITONSERVER_Error *
wait_by_event(gpu_device_t *device, gpu_stream_t stream, gpu_event_t event,
    bool *ended)
{
    gpu_result_t rc = device->f->event_record(event, stream);
    if (rc == GPU_SUCCESS) {
        rc = device->f->event_sync(event);
    }

    return rc == GPU_SUCCESS ? NULL : gpu_wait_long(device, stream, ended);
}

static void
pause_ns(uint64_t ns)
{
    struct timespec t = { .tv_nsec = (long) ns };

    (void) nanosleep(&t, NULL);
}
