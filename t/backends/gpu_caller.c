/*
 * gpu_caller.c - a backend that calls the CUDA driver by itself, as backends
 * with kernels do.
 *
 * IN and OUT are INT32.  A request is a copy to the GPU, the kernel "keep", and
 * a copy back, so OUT is IN.  -1: the kernel is "fault", and the error of the
 * driver is sent as a response; -2: the same, returned by Execute; -3: the
 * request executes while there is the file that the parameter "gate" names, and
 * says so by that name with ".waits" behind it; -4: another thread executes it,
 * and if there is that file, removes it and runs the kernel "fault".
 * The parameter "load" of the model: a kernel that each instance runs at once;
 * "wait": its initialisation waits as -3 does.
 */

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../backends/common/gpu_driver_functions.h"
#include "answer.h"

/* A request that another thread executes. */
typedef struct {
    void                  *caller;
    TRITONBACKEND_Request *request;
} errand_t;

typedef struct {
    gpu_functions_t f;
    int32_t         device;
    gpu_context_t   context;
    gpu_stream_t    stream;
    gpu_module_t    module;
    gpu_ptr_t       memory;
    char            gate[256];
    char            load[64];
} caller_t;

static const char image[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry keep(.param .u64 values)\n{\n    ret;\n}\n"
    ".visible .entry fault(.param .u64 values)\n{\n    ret;\n}\n";

static TRITONSERVER_Error *
failed(const caller_t *c, gpu_result_t rc, const char *what)
{
    const char *name = NULL;
    char        text[160];

    if (rc == GPU_SUCCESS) {
        return NULL;
    }
    c->f.error_name(rc, &name);
    snprintf(text, sizeof(text), "%s on GPU %d: %s (%d)", what,
        (int) c->device, name != NULL ? name : "?", rc);
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, text);
}

static TRITONSERVER_Error *
find_driver(caller_t *c)
{
    static const struct {
        const char *symbol;
        size_t      offset;
    } rows[] = {
#define ROW(field, name, parameters)                                         \
        { #name, offsetof(gpu_functions_t, field) },
        GPU_FUNCTIONS(ROW)
#undef ROW
    };
    const char *path = getenv("INFERENCE_CUDA_DRIVER");
    void       *library = dlopen(path != NULL ? path : "libcuda.so.1",
        RTLD_NOW | RTLD_LOCAL);

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        void *function = library != NULL ? dlsym(library, rows[i].symbol)
            : NULL;
        if (function == NULL) {
            return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE,
                                         "no CUDA driver");
        }
        memcpy((char *) &c->f + rows[i].offset, &function, sizeof(function));
    }
    return NULL;
}

/* The value of a parameter of the model's configuration, "" without one. */
static void
read_parameter(const char *json, const char *key, char *value, size_t cap)
{
    char        pattern[64];
    const char *at;

    snprintf(pattern, sizeof(pattern), "\"%s\":{\"string_value\":\"", key);
    at = strstr(json, pattern);
    value[0] = '\0';
    if (at != NULL) {
        at += strlen(pattern);
        snprintf(value, cap, "%.*s", (int) strcspn(at, "\""), at);
    }
}

static TRITONSERVER_Error *
read_parameters(caller_t *c, TRITONBACKEND_ModelInstance *instance)
{
    TRITONBACKEND_Model  *model;
    TRITONSERVER_Message *message;
    const char           *json;
    size_t                size;
    TRITONSERVER_Error   *err;

    err = TRITONBACKEND_ModelInstanceModel(instance, &model);
    if (err == NULL) {
        err = TRITONBACKEND_ModelConfig(model, 1, &message);
    }
    if (err == NULL) {
        err = TRITONSERVER_MessageSerializeToJson(message, &json, &size);
        if (err == NULL) {
            char *text = strndup(json, size);
            read_parameter(text, "gate", c->gate, sizeof(c->gate));
            read_parameter(text, "load", c->load, sizeof(c->load));
            free(text);
        }
        TRITONSERVER_MessageDelete(message);
    }
    return err;
}

/* In the context. */
static gpu_result_t
run(caller_t *c, const char *kernel, int32_t *value)
{
    gpu_function_t function;
    void          *arguments[] = { &c->memory };
    gpu_result_t   rc, late;

    rc = c->f.module_function(&function, c->module, kernel);
    if (rc == GPU_SUCCESS) {
        rc = c->f.copy_to_device(c->memory, value, sizeof(*value), c->stream);
    }
    if (rc == GPU_SUCCESS) {
        rc = c->f.launch(function, 1, 1, 1, 1, 1, 1, 0, c->stream, arguments,
                         NULL);
    }
    if (rc == GPU_SUCCESS) {
        rc = c->f.copy_to_host(value, c->memory, sizeof(*value), c->stream);
    }
    late = c->f.stream_sync(c->stream);
    return rc != GPU_SUCCESS ? rc : late;
}

static void
wait_at_gate(const caller_t *c)
{
    char  waits[sizeof(c->gate) + 8];
    FILE *f;

    snprintf(waits, sizeof(waits), "%s.waits", c->gate);
    f = fopen(waits, "w");
    if (f != NULL) {
        fclose(f);
    }
    while (access(c->gate, F_OK) == 0) {
        usleep(2000);
    }
}

static gpu_result_t
open_device(caller_t *c)
{
    gpu_context_t popped;
    int           device = 0;
    int32_t       value = 0;
    gpu_result_t  rc;

    rc = c->f.init(0);
    if (rc == GPU_SUCCESS) {
        rc = c->f.device_get(&device, c->device);
    }
    if (rc == GPU_SUCCESS) {
        rc = c->f.context_retain(&c->context, device);
    }
    if (rc == GPU_SUCCESS) {
        rc = c->f.context_push(c->context);
    }
    if (rc != GPU_SUCCESS) {
        return rc;
    }

    rc = c->f.stream_create(&c->stream, GPU_STREAM_NON_BLOCKING);
    if (rc == GPU_SUCCESS) {
        rc = c->f.module_load(&c->module, image, 0, NULL, NULL);
    }
    if (rc == GPU_SUCCESS) {
        rc = c->f.alloc(&c->memory, sizeof(int32_t));
    }
    if (strcmp(c->load, "wait") == 0) {
        wait_at_gate(c);
    } else if (rc == GPU_SUCCESS && c->load[0] != '\0') {
        rc = run(c, c->load, &value);
    }
    c->f.context_pop(&popped);
    return rc;
}

static void
close_device(caller_t *c)
{
    gpu_context_t popped;

    /* a call that fails once leaves nothing behind */
    if (c->context == NULL
        || (c->f.context_push(c->context) != GPU_SUCCESS
            && c->f.context_push(c->context) != GPU_SUCCESS))
    {
        return;
    }
    if (c->memory != 0) {
        c->f.free(c->memory);
    }
    if (c->module != NULL) {
        c->f.module_unload(c->module);
    }
    if (c->stream != NULL) {
        c->f.stream_destroy(c->stream);
    }
    c->f.context_pop(&popped);
    c->f.context_release(c->device);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance)
{
    caller_t           *c = calloc(1, sizeof(*c));
    TRITONSERVER_Error *err;

    err = TRITONBACKEND_ModelInstanceDeviceId(instance, &c->device);
    if (err == NULL) {
        err = read_parameters(c, instance);
    }
    if (err == NULL) {
        err = find_driver(c);
    }
    if (err == NULL) {
        err = failed(c, open_device(c), "cannot begin");
    }
    if (err == NULL) {
        err = TRITONBACKEND_ModelInstanceSetState(instance, c);
    }
    if (err != NULL) {
        close_device(c);
        free(c);
    }
    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance)
{
    void *state = NULL;

    TRITONSERVER_ErrorDelete(TRITONBACKEND_ModelInstanceState(instance,
                                                              &state));
    if (state != NULL) {
        close_device(state);
        free(state);
    }
    return NULL;
}

static const char *
kernel_of(const caller_t *c, int32_t value)
{
    return value == -1 || value == -2
        || (value == -4 && unlink(c->gate) == 0) ? "fault" : "keep";
}

static TRITONSERVER_Error *
answer(TRITONBACKEND_Request *request, TRITONBACKEND_Response *response,
    void *userp)
{
    caller_t           *c = userp;
    gpu_context_t       popped;
    const void         *data;
    uint64_t            size;
    int32_t             value, sent;
    TRITONSERVER_Error *err;

    err = answer_read(request, "IN", &data, &size);
    if (err != NULL) {
        return err;
    }
    memcpy(&value, data, sizeof(value));
    sent = value;
    if (value == -3) {
        wait_at_gate(c);
    }

    err = failed(c, c->f.context_push(c->context), "no context");
    if (err == NULL) {
        err = failed(c, run(c, kernel_of(c, value), &sent),
                     "the kernel failed");
        c->f.context_pop(&popped);
    }
    return err != NULL ? err : answer_int32(response, "OUT", sent);
}

static void *
run_errand(void *userp)
{
    errand_t *errand = userp;

    answer_one(errand->request, NULL, answer, errand->caller);
    free(errand);
    return NULL;
}

static TRITONSERVER_Error *
send_elsewhere(caller_t *c, TRITONBACKEND_Request *request)
{
    errand_t *errand = malloc(sizeof(*errand));
    pthread_t thread;

    if (errand != NULL) {
        *errand = (errand_t) { .caller = c, .request = request };
        if (pthread_create(&thread, NULL, run_errand, errand) == 0) {
            pthread_detach(thread);
            return NULL;
        }
    }
    free(errand);
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, "no thread");
}

/* Whether one of the requests is that number. */
static int
any_is(TRITONBACKEND_Request **requests, uint32_t count, int32_t number)
{
    for (uint32_t i = 0; i < count; i++) {
        const void *data;
        uint64_t    size;
        int32_t     value = 0;

        TRITONSERVER_Error *err = answer_read(requests[i], "IN", &data, &size);
        if (err == NULL) {
            memcpy(&value, data, sizeof(value));
        }
        TRITONSERVER_ErrorDelete(err);
        if (value == number) {
            return 1;
        }
    }
    return 0;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
    TRITONBACKEND_Request **requests, const uint32_t count)
{
    void               *state;
    caller_t           *c;
    gpu_context_t       popped;
    int32_t             value = -2;
    TRITONSERVER_Error *err;

    err = TRITONBACKEND_ModelInstanceState(instance, &state);
    if (err != NULL) {
        return err;
    }
    c = state;
    if (count == 1 && any_is(requests, 1, -4)) {
        return send_elsewhere(c, requests[0]);
    }
    if (!any_is(requests, count, -2)) {
        return answer_each(requests, count, answer, c);
    }

    c->f.context_push(c->context);
    err = failed(c, run(c, "fault", &value), "the kernel failed");
    c->f.context_pop(&popped);
    return err;
}
