/*
 * identity.c - a backend whose outputs are its inputs.
 *
 * Owner    as common/entry.h has it; an instance borrows its model.
 * Thread   Execute runs on one thread per instance; the state is read-only.
 * Units    times in ns on the monotonic clock; parameters name theirs.
 * Errors   A request that cannot be answered gets an error response; Execute
 *          itself always succeeds.
 * Route    instance thread -> [identity] -> response -> release
 */

#include "common/entry.h"
#include "common/request.h"
#include "common/tensors.h"
#include "pairs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_CREATION_DELAY_S 3600
#define MAX_DELAY_MS 3600000
#define MAX_MULTIPLIER 1000
#define MAX_ROW_DELAY_US 1000000

typedef struct {
    bk_model_config_t config;
    bk_pairs_t        pairs;
    uint64_t          delay_ns;
    uint64_t          multiplier;       /* of the delay, for each instance   */
    _Atomic uint64_t  instances;        /* relaxed: made so far              */
    uint64_t          row_delay_ns;
    const char       *fail_execute;     /* NULL, or the text to fail with    */
    bool              echo_parameters;
} identity_model_t;

typedef struct {
    TRITONBACKEND_ModelInstance *handle;
    const identity_model_t      *model;
    uint64_t                     delay_ns;
} identity_instance_t;

typedef struct {
    bk_times_t times;
    uint64_t   rows;                    /* batch rows seen so far            */
} identity_run_t;

static TRITONSERVER_Error *model_new(void **model,
    TRITONBACKEND_Model *handle, void *runtime);
static TRITONSERVER_Error *model_setup(identity_model_t *m,
    TRITONBACKEND_Model *handle);
static void model_free(void *model);
static TRITONSERVER_Error *instance_new(void **instance,
    TRITONBACKEND_ModelInstance *handle, void *model);
static TRITONSERVER_Error *execute(void *instance,
    TRITONBACKEND_Request **requests, uint32_t count);
static TRITONSERVER_Error *read_delays(identity_model_t *m);
static uint64_t execution_delay(const identity_instance_t *inst,
    TRITONBACKEND_Request **requests, uint32_t count);
static void sleep_until(uint64_t ns);
static void request_run(const identity_instance_t *inst,
    TRITONBACKEND_Request *request, identity_run_t *run, bool last);
static TRITONSERVER_Error *request_answer(const identity_model_t *m,
    TRITONBACKEND_Request *request, TRITONBACKEND_Response *response,
    uint64_t *rows);
static TRITONSERVER_Error *request_rows(const identity_model_t *m,
    TRITONBACKEND_Request *request, uint64_t *rows);
static TRITONSERVER_Error *output_repeat(const bk_pair_t *pair,
    TRITONBACKEND_Request *request, TRITONBACKEND_Response *response,
    const uint64_t *rows);
static TRITONSERVER_Error *output_zeros(const bk_pair_t *pair,
    TRITONBACKEND_Response *response, const uint64_t *rows);
static TRITONSERVER_Error *parameters_echo(TRITONBACKEND_Request *request,
    TRITONBACKEND_Response *response);
static TRITONSERVER_Error *parameter_echo(TRITONBACKEND_Response *response,
    const char *key, TRITONSERVER_ParameterType type, const void *value);

const bk_backend_t bk_backend = {
    .model_new = model_new,
    .model_free = model_free,
    .instance_new = instance_new,
    .instance_free = free,
    .execute = execute,
    .cpu_only = true
};

static TRITONSERVER_Error *
model_new(void **model, TRITONBACKEND_Model *handle, void *runtime)
{
    (void) runtime;
    identity_model_t *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return bk_err_nomem("state of an identity model");
    }

    TRITONSERVER_Error *err = model_setup(m, handle);
    if (err != NULL) {
        model_free(m);
        return err;
    }

    *model = m;
    return NULL;
}

static TRITONSERVER_Error *
model_setup(identity_model_t *m, TRITONBACKEND_Model *handle)
{
    TRITONSERVER_Error *err = bk_model_config_init(&m->config, handle);
    if (err != NULL) {
        return err;
    }

    const char *fail = bk_model_config_parameter(&m->config,
        "fail_initialize");
    if (fail != NULL) {
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL, "%s", fail);
    }

    err = bk_model_config_parameter_bool(&m->config, "echo_parameters",
        &m->echo_parameters);
    if (err == NULL) {
        err = bk_pairs_init(&m->pairs, &m->config);
    }
    if (err != NULL) {
        return err;
    }

    m->fail_execute = bk_model_config_parameter(&m->config, "fail_execute");
    return read_delays(m);
}

/* That of the creation is over afterwards. */
static TRITONSERVER_Error *
read_delays(identity_model_t *m)
{
    int64_t creation_s = 0, delay_ms = 0, multiplier = 0, row_delay_us = 0;
    const struct {
        const char *name;
        int64_t     max;
        int64_t    *value;
    } delays[] = {
        { "creation_delay_sec", MAX_CREATION_DELAY_S, &creation_s },
        { "execute_delay_ms", MAX_DELAY_MS, &delay_ms },
        { "instance_wise_delay_multiplier", MAX_MULTIPLIER, &multiplier },
        { "row_delay_us", MAX_ROW_DELAY_US, &row_delay_us }
    };

    for (size_t i = 0; i < sizeof(delays) / sizeof(delays[0]); i++) {
        TRITONSERVER_Error *err = bk_model_config_parameter_int(&m->config,
            delays[i].name, 0, delays[i].max, delays[i].value);
        if (err != NULL) {
            return err;
        }
    }

    m->delay_ns = (uint64_t) delay_ms * 1000000u;
    m->multiplier = (uint64_t) multiplier;
    m->row_delay_ns = (uint64_t) row_delay_us * 1000u;
    if (creation_s > 0) {
        sleep_until(bk_now_ns() + (uint64_t) creation_s * 1000000000u);
    }
    return NULL;
}

static void
model_free(void *model)
{
    identity_model_t *m = model;

    bk_pairs_fini(&m->pairs);
    bk_model_config_fini(&m->config);
    free(m);
}

static TRITONSERVER_Error *
instance_new(void **instance, TRITONBACKEND_ModelInstance *handle,
    void *model)
{
    identity_instance_t *inst = calloc(1, sizeof(*inst));
    if (inst == NULL) {
        return bk_err_nomem("state of an identity instance");
    }

    /* instance 0 has the delay itself, as Triton's has */
    identity_model_t *m = model;
    uint64_t times = m->multiplier * atomic_fetch_add_explicit(
        &m->instances, 1, memory_order_relaxed);

    *inst = (identity_instance_t) {
        .handle = handle, .model = m,
        .delay_ns = m->delay_ns * (times > 1 ? times : 1)
    };
    *instance = inst;
    return NULL;
}

static TRITONSERVER_Error *
execute(void *instance, TRITONBACKEND_Request **requests, uint32_t count)
{
    const identity_instance_t *inst = instance;
    identity_run_t run = { .times.start_ns = bk_now_ns() };

    run.times.compute_start_ns = run.times.start_ns;
    run.times.compute_end_ns = run.times.start_ns;
    uint64_t delay_ns = execution_delay(inst, requests, count);
    if (delay_ns != 0) {
        sleep_until(run.times.start_ns + delay_ns);
        run.times.compute_end_ns = bk_now_ns();
    }

    for (uint32_t i = 0; i < count; i++) {
        request_run(inst, requests[i], &run, i + 1 == count);
    }

    return NULL;
}

/* A request whose rows can't be told counts as one; it is answered with the
   error later. */
static uint64_t
execution_delay(const identity_instance_t *inst,
    TRITONBACKEND_Request **requests, uint32_t count)
{
    const identity_model_t *m = inst->model;
    uint64_t delay_ns = inst->delay_ns;

    for (uint32_t i = 0; m->row_delay_ns != 0 && i < count; i++) {
        uint64_t rows = 1;
        bk_err_drop(request_rows(m, requests[i], &rows));
        rows = rows < (uint64_t) m->config.max_batch_size ? rows
            : (uint64_t) m->config.max_batch_size;
        delay_ns += m->row_delay_ns * (rows > 0 ? rows : 1);
    }

    return delay_ns;
}

static void
sleep_until(uint64_t ns)
{
    struct timespec t = {
        .tv_sec = (time_t) (ns / 1000000000u),
        .tv_nsec = (long) (ns % 1000000000u)
    };

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL)
        == EINTR)
    {
        /* a signal for some other thread's sake */
    }
}

/* The batch is counted before its last response leaves. */
static void
request_run(const identity_instance_t *inst, TRITONBACKEND_Request *request,
    identity_run_t *run, bool last)
{
    TRITONBACKEND_Response *response = NULL;
    uint64_t rows = 1;

    TRITONSERVER_Error *err = TRITONBACKEND_ResponseNew(&response, request);
    if (err == NULL) {
        err = request_answer(inst->model, request, response, &rows);
    }

    run->rows += rows;
    run->times.end_ns = bk_now_ns();
    if (last) {
        bk_err_log(TRITONBACKEND_ModelInstanceReportBatchStatistics(
            inst->handle, run->rows, run->times.start_ns,
            run->times.compute_start_ns, run->times.compute_end_ns,
            run->times.end_ns), "batch statistics");
    }

    bk_request_finish(request, response, err, inst->handle, &run->times);
}

static TRITONSERVER_Error *
request_answer(const identity_model_t *m, TRITONBACKEND_Request *request,
    TRITONBACKEND_Response *response, uint64_t *rows)
{
    uint32_t count;
    uint32_t hint = 0;

    TRITONSERVER_Error *err = request_rows(m, request, rows);
    if (err != NULL) {
        return err;
    }

    if (m->fail_execute != NULL) {
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL, "%s", m->fail_execute);
    }

    err = bk_request_check_cancelled(request);
    if (err != NULL) {
        return err;
    }

    err = TRITONBACKEND_RequestOutputCount(request, &count);
    if (err != NULL) {
        return err;
    }

    for (uint32_t i = 0; i < count; i++) {
        const char *name;

        err = TRITONBACKEND_RequestOutputName(request, i, &name);
        if (err != NULL) {
            return err;
        }

        const bk_pair_t *pair = bk_pairs_find(&m->pairs, name, &hint);
        if (pair == NULL) {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "model \"%s\" has no output \"%s\"", m->config.name, name);
        }

        err = output_repeat(pair, request, response,
            m->config.max_batch_size > 0 ? rows : NULL);
        if (err != NULL) {
            return err;
        }
    }

    return m->echo_parameters ? parameters_echo(request, response) : NULL;
}

static TRITONSERVER_Error *
request_rows(const identity_model_t *m, TRITONBACKEND_Request *request,
    uint64_t *rows)
{
    bk_input_t in;
    uint32_t count;

    if (m->config.max_batch_size == 0) {
        return NULL;
    }

    TRITONSERVER_Error *err = TRITONBACKEND_RequestInputCount(request,
        &count);
    if (err != NULL || count == 0) {
        return err;
    }

    err = bk_input_open_at(&in, request, 0);
    if (err == NULL && in.dims_count > 0 && in.shape[0] > 0) {
        *rows = (uint64_t) in.shape[0];
    }

    return err;
}

/* rows: NULL where the model does not batch */
static TRITONSERVER_Error *
output_repeat(const bk_pair_t *pair, TRITONBACKEND_Request *request,
    TRITONBACKEND_Response *response, const uint64_t *rows)
{
    bk_input_t in;
    void *data;

    TRITONSERVER_Error *err = bk_input_open(&in, request, pair->input);
    if (err != NULL && pair->optional) {
        bk_err_drop(err);
        return pair->fixed == NULL ? NULL : output_zeros(pair, response,
            rows);
    }
    if (err != NULL) {
        return bk_err_add(err, "input of output \"%s\"", pair->output);
    }

    err = bk_output_new(response, pair->output, in.datatype, in.shape,
        in.dims_count, in.len_bytes, &data);
    if (err != NULL) {
        return err;
    }

    return bk_input_copy(&in, data);
}

/* As Triton's backend has it; strings are empty. */
static TRITONSERVER_Error *
output_zeros(const bk_pair_t *pair, TRITONBACKEND_Response *response,
    const uint64_t *rows)
{
    const bk_tensor_config_t *t = pair->fixed;
    uint32_t count = t->model_dims_count + (rows != NULL ? 1 : 0);
    uint32_t size = TRITONSERVER_DataTypeByteSize(t->datatype);
    uint64_t elements, len_bytes = 0;
    TRITONSERVER_Error *err;
    void *data;

    int64_t *shape = calloc(count + 1, sizeof(*shape));
    if (shape == NULL) {
        return bk_err_nomem("shape of an output");
    }

    if (rows != NULL) {
        shape[0] = (int64_t) *rows;
    }
    for (uint32_t i = 0; i < t->model_dims_count; i++) {
        shape[count - t->model_dims_count + i] = t->model_dims[i];
    }

    if (!bk_elements(shape, count, &elements)
        || __builtin_mul_overflow(elements,
            size != 0 ? size : sizeof(uint32_t), &len_bytes))
    {
        err = bk_err_nomem(pair->output);
    } else {
        err = bk_output_new(response, pair->output, t->datatype, shape, count,
            len_bytes, &data);
    }
    if (err == NULL && len_bytes > 0) {
        memset(data, 0, len_bytes);
    }

    free(shape);
    return err;
}

static TRITONSERVER_Error *
parameters_echo(TRITONBACKEND_Request *request,
    TRITONBACKEND_Response *response)
{
    uint32_t count;

    TRITONSERVER_Error *err = TRITONBACKEND_RequestParameterCount(request,
        &count);

    for (uint32_t i = 0; err == NULL && i < count; i++) {
        TRITONSERVER_ParameterType type;
        const void *value;
        const char *key;

        err = TRITONBACKEND_RequestParameter(request, i, &key, &type, &value);
        if (err == NULL) {
            err = parameter_echo(response, key, type, value);
        }
    }

    return err;
}

static TRITONSERVER_Error *
parameter_echo(TRITONBACKEND_Response *response, const char *key,
    TRITONSERVER_ParameterType type, const void *value)
{
    switch (type) {

    case TRITONSERVER_PARAMETER_STRING:
        return TRITONBACKEND_ResponseSetStringParameter(response, key, value);

    case TRITONSERVER_PARAMETER_INT:
        return TRITONBACKEND_ResponseSetIntParameter(response, key,
            *(const int64_t *) value);

    case TRITONSERVER_PARAMETER_BOOL:
        return TRITONBACKEND_ResponseSetBoolParameter(response, key,
            *(const bool *) value);

    case TRITONSERVER_PARAMETER_DOUBLE:
        return TRITONBACKEND_ResponseSetDoubleParameter(response, key,
            *(const double *) value);

    case TRITONSERVER_PARAMETER_BYTES:
        break;
    }

    return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
        "parameter \"%s\" has a type that a response cannot carry", key);
}
