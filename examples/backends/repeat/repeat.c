/*
 * repeat.c - a decoupled backend: one request, as many responses as IN has
 *            numbers, each after a delay of its own.
 *
 * Execute returns (after WAIT) before the answers are there: it makes a
 * response factory, which outlives the request, releases the request and lets
 * a thread send the rest.  The thread ends with a flag instead of a response,
 * because the client has had everything by then, and looks between responses
 * whether the client still wants them.
 *
 *   IN     INT32  [n]      what to send
 *   DELAY  UINT32 [n]      ms before each response
 *   WAIT   UINT32 [1]      ms until Execute returns and the instance is free
 *   OUT    INT32  [1]      IN[IDX]
 *   IDX    UINT32 [1]
 *
 * Owner    A job owns its numbers and its factory; it frees itself.
 * Thread   Execute on the instance's thread, one detached thread a job.
 * Units    ms, ns where a name says so.
 * Errors   bad inputs: an error response.  A cancelled job: CANCELLED.
 */

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "triton/core/tritonbackend.h"

#define LOOK_MS 5u              /* between two looks for a cancel            */

/* Of an instance: the jobs that finalizing it has to wait for. */
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t  idle;
    unsigned        running;
} threads_t;

typedef struct {
    threads_t                     *threads;
    TRITONBACKEND_ModelInstance   *instance;
    TRITONBACKEND_ResponseFactory *factory;
    uint32_t                       count;
    int32_t                       *numbers;
    uint32_t                      *delays;
} job_t;

static TRITONSERVER_Error *reject(const char *text);
static uint64_t now_ns(void);
static void sleep_ms(uint32_t ms);
static void begin(TRITONBACKEND_ModelInstance *instance, threads_t *threads,
    TRITONBACKEND_Request *request);
static TRITONSERVER_Error *start_job(job_t *job);
static TRITONSERVER_Error *read_inputs(TRITONBACKEND_Request *request,
    job_t *job, uint32_t *wait_ms);
static TRITONSERVER_Error *read_input(TRITONBACKEND_Request *request,
    const char *name, TRITONSERVER_DataType datatype, void **data,
    uint32_t *count);
static void answer_error(TRITONBACKEND_Request *request,
    TRITONSERVER_Error *err);
static void *job_main(void *arg);
static bool job_wait(const job_t *job, uint32_t ms);
static TRITONSERVER_Error *job_send(const job_t *job, uint32_t index);
static void job_fail(const job_t *job, TRITONSERVER_Error_Code code,
    const char *text);
static void report(const job_t *job, uint64_t start_ns, uint64_t output_ns,
    TRITONSERVER_Error *err);
static TRITONSERVER_Error *put_number(TRITONBACKEND_Response *response,
    const char *name, TRITONSERVER_DataType datatype, const void *number);
static void job_free(job_t *job);
static void finish(TRITONSERVER_Error *err);

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance)
{
    threads_t *threads = calloc(1, sizeof(*threads));
    if (threads == NULL) {
        return reject("out of memory");
    }

    pthread_mutex_init(&threads->lock, NULL);
    pthread_cond_init(&threads->idle, NULL);
    return TRITONBACKEND_ModelInstanceSetState(instance, threads);
}

/* A finalizer may block: it runs on no thread that answers requests. */
TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance)
{
    void *state = NULL;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceState(instance,
        &state);
    threads_t *threads = state;
    if (err != NULL || threads == NULL) {
        return err;
    }

    pthread_mutex_lock(&threads->lock);
    while (threads->running > 0) {
        pthread_cond_wait(&threads->idle, &threads->lock);
    }
    pthread_mutex_unlock(&threads->lock);

    pthread_cond_destroy(&threads->idle);
    pthread_mutex_destroy(&threads->lock);
    free(threads);
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
    TRITONBACKEND_Request **requests, const uint32_t request_count)
{
    void *state = NULL;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceState(instance,
        &state);
    if (err != NULL) {
        return err;
    }

    for (uint32_t i = 0; i < request_count; i++) {
        begin(instance, state, requests[i]);
    }

    return NULL;
}

static TRITONSERVER_Error *
reject(const char *text)
{
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, text);
}

static uint64_t
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

static void
sleep_ms(uint32_t ms)
{
    struct timespec t = {
        .tv_sec = (time_t) (ms / 1000),
        .tv_nsec = (long) (ms % 1000) * 1000000
    };

    while (nanosleep(&t, &t) != 0 && errno == EINTR) {
        continue;
    }
}

/* Takes the request: answered at once if its inputs are wrong, else by a
   thread. */
static void
begin(TRITONBACKEND_ModelInstance *instance, threads_t *threads,
    TRITONBACKEND_Request *request)
{
    uint64_t start_ns = now_ns();
    uint32_t wait_ms = 0;
    TRITONSERVER_Error *err = NULL;

    job_t *job = calloc(1, sizeof(*job));
    if (job == NULL) {
        err = reject("out of memory");
    } else {
        job->threads = threads;
        job->instance = instance;
        err = read_inputs(request, job, &wait_ms);
    }
    if (err == NULL) {
        err = TRITONBACKEND_ResponseFactoryNew(&job->factory, request);
    }
    if (err == NULL) {
        err = start_job(job);
    }

    bool failed = err != NULL;
    if (failed) {
        job_free(job);
        answer_error(request, err);
    }

    uint64_t end_ns = now_ns();
    finish(TRITONBACKEND_ModelInstanceReportStatistics(instance, request,
        !failed, start_ns, start_ns, end_ns, end_ns));
    finish(TRITONBACKEND_ModelInstanceReportBatchStatistics(instance, 1,
        start_ns, start_ns, end_ns, end_ns));

    /* inputs are copied: the request may go, its answers come later          */
    finish(TRITONBACKEND_RequestRelease(request,
        TRITONSERVER_REQUEST_RELEASE_ALL));
    sleep_ms(wait_ms);
}

/* The job is its thread's then. */
static TRITONSERVER_Error *
start_job(job_t *job)
{
    threads_t *threads = job->threads;
    pthread_t thread;

    pthread_mutex_lock(&threads->lock);
    threads->running++;
    pthread_mutex_unlock(&threads->lock);

    if (pthread_create(&thread, NULL, job_main, job) == 0) {
        pthread_detach(thread);
        return NULL;
    }

    pthread_mutex_lock(&threads->lock);
    threads->running--;
    pthread_mutex_unlock(&threads->lock);
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE,
        "no thread can be started to answer");
}

static TRITONSERVER_Error *
read_inputs(TRITONBACKEND_Request *request, job_t *job, uint32_t *wait_ms)
{
    uint32_t delay_count = 0;
    uint32_t wait_count = 0;
    void *numbers = NULL;
    void *delays = NULL;
    void *wait = NULL;

    TRITONSERVER_Error *err = read_input(request, "IN",
        TRITONSERVER_TYPE_INT32, &numbers, &job->count);
    if (err == NULL) {
        err = read_input(request, "DELAY", TRITONSERVER_TYPE_UINT32, &delays,
            &delay_count);
    }
    if (err == NULL) {
        err = read_input(request, "WAIT", TRITONSERVER_TYPE_UINT32, &wait,
            &wait_count);
    }
    if (err == NULL && delay_count != job->count) {
        char text[80];
        snprintf(text, sizeof(text), "expected IN and DELAY shape to match,"
            " got [%u] and [%u]", job->count, delay_count);
        err = reject(text);
    }
    if (err == NULL && wait_count != 1) {
        err = reject("WAIT is one number");
    }

    job->numbers = numbers;
    job->delays = delays;
    if (err == NULL) {
        memcpy(wait_ms, wait, sizeof(*wait_ms));
    }
    free(wait);
    return err;
}

/* A copy of the input's numbers, all buffers in one; the caller frees it. */
static TRITONSERVER_Error *
read_input(TRITONBACKEND_Request *request, const char *name,
    TRITONSERVER_DataType datatype, void **data, uint32_t *count)
{
    TRITONBACKEND_Input *input;
    TRITONSERVER_DataType actual;
    uint64_t size;
    uint32_t buffers;

    TRITONSERVER_Error *err = TRITONBACKEND_RequestInput(request, name,
        &input);
    if (err == NULL) {
        err = TRITONBACKEND_InputProperties(input, NULL, &actual, NULL, NULL,
            &size, &buffers);
    }
    if (err != NULL) {
        return err;
    }
    if (actual != datatype) {
        return reject("IN is INT32, DELAY and WAIT are UINT32");
    }
    if (size > UINT32_MAX) {
        return reject("an input of over 4 GiB");
    }

    char *copy = malloc(size + 1);
    if (copy == NULL) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE,
            "out of memory");
    }
    *data = copy;

    for (uint32_t i = 0; i < buffers; i++) {
        TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
        int64_t device = 0;
        const void *from;
        uint64_t length;

        err = TRITONBACKEND_InputBuffer(input, i, &from, &length, &memory,
            &device);
        if (err != NULL) {
            return err;
        }
        if (length > 0 && memory == TRITONSERVER_MEMORY_GPU) {
            return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED,
                "this backend reads CPU memory only");
        }
        if (length > 0) {
            memcpy(copy, from, length);
            copy += length;
        }
    }

    *count = (uint32_t) (size / sizeof(int32_t));
    return NULL;
}

/* Takes err. */
static void
answer_error(TRITONBACKEND_Request *request, TRITONSERVER_Error *err)
{
    TRITONBACKEND_Response *response;
    TRITONSERVER_Error *none = TRITONBACKEND_ResponseNew(&response, request);

    if (none == NULL) {
        none = TRITONBACKEND_ResponseSend(response,
            TRITONSERVER_RESPONSE_COMPLETE_FINAL, err);
    }
    finish(none);
    TRITONSERVER_ErrorDelete(err);
}

static void *
job_main(void *arg)
{
    job_t *job = arg;
    threads_t *threads = job->threads;
    TRITONSERVER_Error *err = NULL;
    uint32_t sent = 0;

    while (sent < job->count && job_wait(job, job->delays[sent])) {
        err = job_send(job, sent);
        if (err != NULL) {
            break;
        }
        sent++;
    }

    if (err != NULL) {
        job_fail(job, TRITONSERVER_ErrorCode(err),
            TRITONSERVER_ErrorMessage(err));
        TRITONSERVER_ErrorDelete(err);
    } else if (sent < job->count) {
        job_fail(job, TRITONSERVER_ERROR_CANCELLED, "cancelled");
    } else {
        finish(TRITONBACKEND_ResponseFactorySendFlags(job->factory,
            TRITONSERVER_RESPONSE_COMPLETE_FINAL));
    }

    /* the factory first: it keeps the model, and with it threads */
    job_free(job);
    pthread_mutex_lock(&threads->lock);
    if (--threads->running == 0) {
        pthread_cond_signal(&threads->idle);
    }
    pthread_mutex_unlock(&threads->lock);
    return NULL;
}

/* false: the client has given up. */
static bool
job_wait(const job_t *job, uint32_t ms)
{
    for (;;) {
        bool cancelled = false;
        finish(TRITONBACKEND_ResponseFactoryIsCancelled(job->factory,
            &cancelled));
        if (cancelled || ms == 0) {
            return !cancelled;
        }

        uint32_t step = ms < LOOK_MS ? ms : LOOK_MS;
        sleep_ms(step);
        ms -= step;
    }
}

static TRITONSERVER_Error *
job_send(const job_t *job, uint32_t index)
{
    uint64_t start_ns = now_ns();
    TRITONBACKEND_Response *response;

    TRITONSERVER_Error *err = TRITONBACKEND_ResponseNewFromFactory(&response,
        job->factory);
    if (err != NULL) {
        return err;
    }

    uint64_t output_ns = now_ns();
    err = put_number(response, "OUT", TRITONSERVER_TYPE_INT32,
        &job->numbers[index]);
    if (err == NULL) {
        err = put_number(response, "IDX", TRITONSERVER_TYPE_UINT32, &index);
    }
    if (err != NULL) {
        finish(TRITONBACKEND_ResponseDelete(response));
        return err;
    }

    err = TRITONBACKEND_ResponseSend(response, 0, NULL);
    report(job, start_ns, output_ns, err);
    return err;
}

/* The last response: an error. */
static void
job_fail(const job_t *job, TRITONSERVER_Error_Code code, const char *text)
{
    uint64_t start_ns = now_ns();
    TRITONBACKEND_Response *response;
    TRITONSERVER_Error *why = TRITONSERVER_ErrorNew(code, text);
    TRITONSERVER_Error *err = TRITONBACKEND_ResponseNewFromFactory(&response,
        job->factory);

    if (err == NULL) {
        err = TRITONBACKEND_ResponseSend(response,
            TRITONSERVER_RESPONSE_COMPLETE_FINAL, why);
    } else {
        finish(TRITONBACKEND_ResponseFactorySendFlags(job->factory,
            TRITONSERVER_RESPONSE_COMPLETE_FINAL));
    }
    finish(err);
    report(job, start_ns, 0, why);
    TRITONSERVER_ErrorDelete(why);
}

/* For the statistics of each response; output_ns 0: it had no outputs. */
static void
report(const job_t *job, uint64_t start_ns, uint64_t output_ns,
    TRITONSERVER_Error *err)
{
    TRITONBACKEND_ModelInstanceResponseStatistics *s;
    TRITONSERVER_Error *failed =
        TRITONBACKEND_ModelInstanceResponseStatisticsNew(&s);
    if (failed != NULL) {
        finish(failed);
        return;
    }

    finish(TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(s,
        job->instance));
    finish(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(s,
        job->factory));
    finish(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart(s,
        start_ns));
    finish(TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(
        s, output_ns));
    finish(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(s,
        now_ns()));
    finish(TRITONBACKEND_ModelInstanceResponseStatisticsSetError(s, err));
    /* of very many responses to one request not all are counted              */
    TRITONSERVER_ErrorDelete(
        TRITONBACKEND_ModelInstanceReportResponseStatistics(s));
    finish(TRITONBACKEND_ModelInstanceResponseStatisticsDelete(s));
}

static TRITONSERVER_Error *
put_number(TRITONBACKEND_Response *response, const char *name,
    TRITONSERVER_DataType datatype, const void *number)
{
    const int64_t shape = 1;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    TRITONBACKEND_Output *output;
    int64_t device = 0;
    void *to = NULL;

    TRITONSERVER_Error *err = TRITONBACKEND_ResponseOutput(response, &output,
        name, datatype, &shape, 1);
    if (err == NULL) {
        err = TRITONBACKEND_OutputBuffer(output, &to, sizeof(int32_t),
            &memory, &device);
    }
    if (err != NULL) {
        return err;
    }
    if (memory == TRITONSERVER_MEMORY_GPU) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED,
            "this backend writes CPU memory only");
    }

    memcpy(to, number, sizeof(int32_t));
    return NULL;
}

static void
job_free(job_t *job)
{
    if (job == NULL) {
        return;
    }

    if (job->factory != NULL) {
        finish(TRITONBACKEND_ResponseFactoryDelete(job->factory));
    }
    free(job->numbers);
    free(job->delays);
    free(job);
}

/* An error that can only be logged. */
static void
finish(TRITONSERVER_Error *err)
{
    if (err == NULL) {
        return;
    }

    TRITONSERVER_ErrorDelete(TRITONSERVER_LogMessage(TRITONSERVER_LOG_ERROR,
        __FILE__, __LINE__, TRITONSERVER_ErrorMessage(err)));
    TRITONSERVER_ErrorDelete(err);
}
