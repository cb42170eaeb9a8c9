/* wait.c - see wait.h */

#include "wait.h"

#include "common/request.h"

#include <time.h>

#define SPIN_NS      100000     /* short batches end while the thread asks   */
#define PAUSE_NS_MAX 1000000
#define PAUSE_PART   16         /* a pause is that part of the time so far   */

static TRITONSERVER_Error *wait_by_event(gpu_device_t *device,
    gpu_stream_t stream, gpu_event_t event);
static void pause_ns(uint64_t ns);

/* A kernel that does not end cannot be waited for by the driver, which has no
   time limit: so its stream is asked, in pauses that grow with the time. */
TRITONSERVER_Error *
gpu_wait(gpu_device_t *device, gpu_stream_t stream, gpu_event_t event,
    int64_t timeout_ms, bool *in_time)
{
    uint64_t start_ns = bk_now_ns();
    uint64_t passed_ns = 0;

    *in_time = true;
    for ( ;; ) {
        gpu_result_t rc = device->f->stream_query(stream);
        if (rc != GPU_NOT_READY) {
            return gpu_check(device, rc, "the kernels");
        }

        passed_ns = bk_now_ns() - start_ns;
        if (timeout_ms > 0
            && passed_ns >= (uint64_t) timeout_ms * UINT64_C(1000000))
        {
            *in_time = false;
            return NULL;
        }

        if (passed_ns < SPIN_NS) {
            continue;
        }
        if (timeout_ms == 0) {
            return wait_by_event(device, stream, event);
        }
        passed_ns /= PAUSE_PART;
        pause_ns(passed_ns < PAUSE_NS_MAX ? passed_ns : PAUSE_NS_MAX);
    }
}

static TRITONSERVER_Error *
wait_by_event(gpu_device_t *device, gpu_stream_t stream, gpu_event_t event)
{
    gpu_result_t rc = device->f->event_record(event, stream);

    return gpu_check(device, rc != GPU_SUCCESS ? rc
        : device->f->event_sync(event), "the kernels");
}

static void
pause_ns(uint64_t ns)
{
    struct timespec t = { .tv_nsec = (long) ns };

    (void) nanosleep(&t, NULL);
}
