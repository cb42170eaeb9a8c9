/* fakecore.c - see fakecore.h */

#include "fakecore.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define EXPORT __attribute__((visibility("default")))
#define AS(type, p) ((type *) (void *) (p))

struct TRITONSERVER_Error {
    TRITONSERVER_Error_Code code;
    char                    text[1024];
};

struct TRITONSERVER_Message {
    char *text;
    bool  borrowed;         /* the core keeps it                             */
};

typedef struct {
    fake_request_t   *request;
    fake_tensor_t     outputs[FAKE_MAX_TENSORS];
    uint32_t          output_count;
    fake_parameter_t  parameters[FAKE_MAX_TENSORS];
    uint32_t          parameter_count;
} fake_response_t;

static _Atomic int live;    /* errors, messages and responses that exist     */
static unsigned logged[TRITONSERVER_LOG_VERBOSE + 1];
static char last_log[2048];
static TRITONSERVER_Message settings_message;
static struct {
    void *(*alloc)(uint64_t size);
    void (*free)(void *p);
    int32_t next;
} device;

static void *entry(const fake_backend_t *b, const char *name);
static void put_text(char *to, size_t size, const char *from);
static void tensors_free(fake_tensor_t *list, uint32_t count);
static fake_parameter_t *response_parameter(TRITONBACKEND_Response *response,
    const char *name, TRITONSERVER_ParameterType type);

/* ---- the test's side */

TRITONSERVER_Error *
fake_backend_open(fake_backend_t *b, const char *path, const char *settings)
{
    *b = (fake_backend_t) { 0 };
    b->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (b->library == NULL) {
        fail_msg("%s", dlerror());
    }

    b->settings = strdup(settings == NULL ? "{\"cmdline\":{}}" : settings);
    TRITONSERVER_Error *(*init)(TRITONBACKEND_Backend *) = (void *) entry(b,
        "TRITONBACKEND_Initialize");
    TRITONSERVER_Error *err = init(AS(TRITONBACKEND_Backend, b));
    if (err != NULL) {
        fake_backend_close(b);
        return err;
    }

    TRITONSERVER_Error *(*attributes)(TRITONBACKEND_Backend *,
        TRITONBACKEND_BackendAttribute *) = (void *) entry(b,
        "TRITONBACKEND_GetBackendAttribute");
    return attributes(AS(TRITONBACKEND_Backend, b),
        AS(TRITONBACKEND_BackendAttribute, b));
}

void
fake_backend_close(fake_backend_t *b)
{
    TRITONSERVER_Error *(*fini)(TRITONBACKEND_Backend *) = dlsym(b->library,
        "TRITONBACKEND_Finalize");
    if (fini != NULL) {
        assert_null(fini(AS(TRITONBACKEND_Backend, b)));
    }

    free(b->settings);
    b->settings = NULL;
}

TRITONSERVER_Error *
fake_model_load(fake_model_t *m, fake_backend_t *b, const char *folder,
    const char *config, bool may_complete, TRITONSERVER_InstanceGroupKind kind)
{
    *m = (fake_model_t) {
        .backend = b, .version = 1, .config = strdup(config),
        .may_complete = may_complete, .kind = kind,
        .device_id = device.next
    };
    device.next = 0;
    put_text(m->name, sizeof(m->name), "fake");
    put_text(m->folder, sizeof(m->folder), folder);

    TRITONSERVER_Error *(*init)(TRITONBACKEND_Model *) = (void *) entry(b,
        "TRITONBACKEND_ModelInitialize");
    TRITONSERVER_Error *err = init(AS(TRITONBACKEND_Model, m));
    TRITONSERVER_Error *(*instance)(TRITONBACKEND_ModelInstance *) = dlsym(
        b->library, "TRITONBACKEND_ModelInstanceInitialize");
    if (err == NULL) {
        m->instance_up = true;
        if (instance != NULL) {
            err = instance(AS(TRITONBACKEND_ModelInstance, m));
        }
    }

    if (err != NULL) {
        fake_model_unload(m);
    }

    return err;
}

void
fake_model_unload(fake_model_t *m)
{
    TRITONSERVER_Error *(*instance)(TRITONBACKEND_ModelInstance *) = dlsym(
        m->backend->library, "TRITONBACKEND_ModelInstanceFinalize");
    if (m->instance_up && instance != NULL) {
        assert_null(instance(AS(TRITONBACKEND_ModelInstance, m)));
    }

    TRITONSERVER_Error *(*fini)(TRITONBACKEND_Model *) = (void *) entry(
        m->backend, "TRITONBACKEND_ModelFinalize");
    assert_null(fini(AS(TRITONBACKEND_Model, m)));
    free(m->config);
    m->config = NULL;
}

fake_request_t *
fake_request_new(fake_model_t *m)
{
    fake_request_t *r = calloc(1, sizeof(*r));

    assert_non_null(r);
    r->model = m;
    return r;
}

void
fake_request_free(fake_request_t *r)
{
    tensors_free(r->inputs, r->input_count);
    tensors_free(r->outputs, r->output_count);
    tensors_free(r->states, r->state_count);
    free(r);
}

fake_tensor_t *
fake_request_input(fake_request_t *r, const char *name,
    TRITONSERVER_DataType datatype, const int64_t *shape, uint32_t dims_count,
    const void *data, uint64_t len_bytes)
{
    fake_tensor_t *t = &r->inputs[r->input_count++];

    put_text(t->name, sizeof(t->name), name);
    t->datatype = datatype;
    t->dims_count = dims_count;
    memcpy(t->shape, shape, dims_count * sizeof(*shape));
    if (data != NULL) {
        fake_tensor_append(t, data, len_bytes);
    }

    return t;
}

void
fake_next_device(int32_t id)
{
    device.next = id;
}

void
fake_device_memory(void *(*alloc)(uint64_t size), void (*free)(void *p))
{
    device.alloc = alloc;
    device.free = free;
}

void
fake_tensor_on_gpu(fake_tensor_t *t, void *data, uint64_t len_bytes,
    int64_t id)
{
    t->memory = TRITONSERVER_MEMORY_GPU;
    t->memory_id = id;
    t->chunks[t->chunk_count] = data;
    t->chunk_lens[t->chunk_count] = len_bytes;
    t->chunk_count++;
}

void
fake_tensor_append(fake_tensor_t *t, const void *data, uint64_t len_bytes)
{
    /* exactly this size, so that a sanitizer sees one byte too many */
    void *copy = malloc(len_bytes);

    assert_true(copy != NULL || len_bytes == 0);
    memcpy(copy, data, len_bytes);
    t->chunks[t->chunk_count] = copy;
    t->chunk_lens[t->chunk_count] = len_bytes;
    t->chunk_count++;
}

void
fake_request_want(fake_request_t *r, const char *output)
{
    put_text(r->wanted[r->wanted_count++], sizeof(r->wanted[0]), output);
}

fake_parameter_t *
fake_request_parameter(fake_request_t *r, const char *key,
    TRITONSERVER_ParameterType type)
{
    fake_parameter_t *p = &r->parameters[r->parameter_count++];

    put_text(p->key, sizeof(p->key), key);
    p->type = type;
    return p;
}

void
fake_execute(fake_model_t *m, fake_request_t **requests, uint32_t count)
{
    TRITONSERVER_Error *(*run)(TRITONBACKEND_ModelInstance *,
        TRITONBACKEND_Request **, uint32_t) = (void *) entry(m->backend,
        "TRITONBACKEND_ModelInstanceExecute");

    TRITONSERVER_Error *err = run(AS(TRITONBACKEND_ModelInstance, m),
        AS(TRITONBACKEND_Request *, requests), count);
    if (err != NULL) {
        fail_msg("Execute failed: %s", err->text);
    }

    for (uint32_t i = 0; i < count; i++) {
        assert_true(requests[i]->final);
        assert_true(requests[i]->released);
        assert_int_equal(requests[i]->reported, 1);
        assert_int_equal(requests[i]->reported_success, !requests[i]->failed);
        for (int k = 0; k < 3; k++) {
            assert_true(requests[i]->times[k] <= requests[i]->times[k + 1]);
        }
    }
}

const fake_tensor_t *
fake_request_output(const fake_request_t *r, const char *name)
{
    if (r->failed) {
        fail_msg("request failed: %s", r->error);
    }

    for (uint32_t i = 0; i < r->output_count; i++) {
        if (strcmp(r->outputs[i].name, name) == 0) {
            return &r->outputs[i];
        }
    }

    fail_msg("no output \"%s\"", name);
    return NULL;
}

int
fake_leftovers(void)
{
    return live;
}

static void *
entry(const fake_backend_t *b, const char *name)
{
    void *p = dlsym(b->library, name);

    if (p == NULL) {
        fail_msg("the backend lacks %s", name);
    }

    return p;
}

static void
put_text(char *to, size_t size, const char *from)
{
    assert_true(strlen(from) < size);
    strcpy(to, from);
}

static void
tensors_free(fake_tensor_t *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < list[i].chunk_count; k++) {
            if (list[i].memory == TRITONSERVER_MEMORY_GPU
                && device.free != NULL)
            {
                device.free(list[i].chunks[k]);
            } else {
                free(list[i].chunks[k]);
            }
        }
    }
}

/* ---- errors, messages, log */

EXPORT TRITONSERVER_Error *
TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code, const char *msg)
{
    TRITONSERVER_Error *err = calloc(1, sizeof(*err));

    err->code = code;
    snprintf(err->text, sizeof(err->text), "%s", msg);
    live++;
    return err;
}

EXPORT void
TRITONSERVER_ErrorDelete(TRITONSERVER_Error *error)
{
    if (error != NULL) {
        free(error);
        live--;
    }
}

EXPORT TRITONSERVER_Error_Code
TRITONSERVER_ErrorCode(TRITONSERVER_Error *error)
{
    return error->code;
}

EXPORT const char *
TRITONSERVER_ErrorMessage(TRITONSERVER_Error *error)
{
    return error->text;
}

EXPORT bool
TRITONSERVER_LogIsEnabled(TRITONSERVER_LogLevel level)
{
    return level != TRITONSERVER_LOG_VERBOSE;
}

EXPORT TRITONSERVER_Error *
TRITONSERVER_LogMessage(TRITONSERVER_LogLevel level, const char *filename,
    const int line, const char *msg)
{
    printf("log %d %s:%d %s\n", (int) level, filename, line, msg);
    logged[level]++;
    put_text(last_log, sizeof(last_log), msg);
    return NULL;
}

const char *
fake_last_log(void)
{
    return last_log;
}

unsigned
fake_logged(TRITONSERVER_LogLevel level)
{
    return logged[level];
}

EXPORT const char *
TRITONSERVER_MemoryTypeString(TRITONSERVER_MemoryType memtype)
{
    return memtype == TRITONSERVER_MEMORY_GPU ? "GPU"
        : memtype == TRITONSERVER_MEMORY_CPU ? "CPU" : "CPU_PINNED";
}

EXPORT uint32_t
TRITONSERVER_DataTypeByteSize(TRITONSERVER_DataType t)
{
    static const uint32_t sizes[] = {
        0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 0, 2
    };

    return sizes[t];
}

EXPORT const char *
TRITONSERVER_DataTypeString(TRITONSERVER_DataType t)
{
    static const char *const names[] = {
        "<invalid>", "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8",
        "INT16", "INT32", "INT64", "FP16", "FP32", "FP64", "BYTES", "BF16"
    };

    return names[t];
}

EXPORT TRITONSERVER_Error *
TRITONSERVER_MessageNewFromSerializedJson(TRITONSERVER_Message **message,
    const char *base, size_t byte_size)
{
    TRITONSERVER_Message *m = calloc(1, sizeof(*m));

    m->text = strndup(base, byte_size);
    live++;
    *message = m;
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONSERVER_MessageSerializeToJson(TRITONSERVER_Message *message,
    const char **base, size_t *byte_size)
{
    *base = message->text;
    *byte_size = strlen(message->text);
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONSERVER_MessageDelete(TRITONSERVER_Message *message)
{
    assert_false(message->borrowed);
    free(message->text);
    free(message);
    live--;
    return NULL;
}

/* ---- backend, model, instance */

EXPORT TRITONSERVER_Error *
TRITONBACKEND_ApiVersion(uint32_t *major, uint32_t *minor)
{
    *major = TRITONBACKEND_API_VERSION_MAJOR;
    *minor = TRITONBACKEND_API_VERSION_MINOR;
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
    TRITONBACKEND_BackendAttribute *backend_attributes,
    const TRITONSERVER_InstanceGroupKind kind, const uint64_t count,
    const uint64_t *device_ids, const uint64_t id_count)
{
    (void) backend_attributes;
    (void) count;
    assert_true(kind == TRITONSERVER_INSTANCEGROUPKIND_GPU
        || (device_ids == NULL && id_count == 0));
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_BackendSetExecutionPolicy(TRITONBACKEND_Backend *backend,
    TRITONBACKEND_ExecutionPolicy policy)
{
    (void) backend;
    assert_int_equal(policy, TRITONBACKEND_EXECUTION_DEVICE_BLOCKING);
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(
    TRITONBACKEND_BackendAttribute *backend_attributes, bool enabled)
{
    AS(fake_backend_t, backend_attributes)->parallel = enabled;
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_BackendConfig(TRITONBACKEND_Backend *backend,
    TRITONSERVER_Message **backend_config)
{
    settings_message.text = AS(fake_backend_t, backend)->settings;
    settings_message.borrowed = true;
    *backend_config = &settings_message;
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_BackendState(TRITONBACKEND_Backend *backend, void **state)
{
    *state = AS(fake_backend_t, backend)->state;
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_BackendSetState(TRITONBACKEND_Backend *backend, void *state)
{
    AS(fake_backend_t, backend)->state = state;
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_ModelBackend(TRITONBACKEND_Model *model,
    TRITONBACKEND_Backend **backend)
{
    *backend = AS(TRITONBACKEND_Backend, AS(fake_model_t, model)->backend);
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_ModelName(TRITONBACKEND_Model *model, const char **name)
{
    (void) model;
    *name = "m";
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_ModelVersion(TRITONBACKEND_Model *model, uint64_t *version)
{
    *version = AS(fake_model_t, model)->version;
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_ModelRepository(TRITONBACKEND_Model *model,
    TRITONBACKEND_ArtifactType *artifact_type, const char **location)
{
    *artifact_type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
    *location = AS(fake_model_t, model)->folder;
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_ModelConfig(TRITONBACKEND_Model *model,
    const uint32_t config_version, TRITONSERVER_Message **model_config)
{
    const char *text = AS(fake_model_t, model)->config;

    assert_int_equal(config_version, 1);
    return TRITONSERVER_MessageNewFromSerializedJson(model_config, text,
        strlen(text));
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_ModelSetConfig(TRITONBACKEND_Model *model,
    const uint32_t config_version, TRITONSERVER_Message *model_config)
{
    fake_model_t *m = AS(fake_model_t, model);

    assert_int_equal(config_version, 1);
    free(m->config);
    m->config = strdup(model_config->text);
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_ModelAutoCompleteConfig(TRITONBACKEND_Model *model,
    bool *auto_complete_config)
{
    *auto_complete_config = AS(fake_model_t, model)->may_complete;
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_ModelState(TRITONBACKEND_Model *model, void **state)
{
    *state = AS(fake_model_t, model)->state;
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_ModelSetState(TRITONBACKEND_Model *model, void *state)
{
    AS(fake_model_t, model)->state = state;
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceModel(TRITONBACKEND_ModelInstance *instance,
    TRITONBACKEND_Model **model)
{
    *model = AS(TRITONBACKEND_Model, instance);
    return NULL;
}

EXPORT const char *
TRITONSERVER_InstanceGroupKindString(TRITONSERVER_InstanceGroupKind kind)
{
    return kind == TRITONSERVER_INSTANCEGROUPKIND_GPU ? "GPU" : "CPU";
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceKind(TRITONBACKEND_ModelInstance *instance,
    TRITONSERVER_InstanceGroupKind *kind)
{
    *kind = AS(fake_model_t, instance)->kind;
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceDeviceId(TRITONBACKEND_ModelInstance *instance,
    int32_t *device_id)
{
    *device_id = AS(fake_model_t, instance)->device_id;
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceState(TRITONBACKEND_ModelInstance *instance,
    void **state)
{
    *state = AS(fake_model_t, instance)->instance_state;
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceSetState(TRITONBACKEND_ModelInstance *instance,
    void *state)
{
    AS(fake_model_t, instance)->instance_state = state;
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceReportStatistics(
    TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request *request,
    const bool success, const uint64_t exec_start_ns,
    const uint64_t compute_start_ns, const uint64_t compute_end_ns,
    const uint64_t exec_end_ns)
{
    fake_request_t *r = AS(fake_request_t, request);

    (void) instance;
    assert_false(r->released);
    r->reported++;
    r->reported_success = success;
    r->times[0] = exec_start_ns;
    r->times[1] = compute_start_ns;
    r->times[2] = compute_end_ns;
    r->times[3] = exec_end_ns;
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceReportBatchStatistics(
    TRITONBACKEND_ModelInstance *instance, const uint64_t batch_size,
    const uint64_t exec_start_ns, const uint64_t compute_start_ns,
    const uint64_t compute_end_ns, const uint64_t exec_end_ns)
{
    fake_model_t *m = AS(fake_model_t, instance);

    assert_true(exec_start_ns <= compute_start_ns);
    assert_true(compute_start_ns <= compute_end_ns);
    assert_true(compute_end_ns <= exec_end_ns);
    m->batches++;
    m->rows += batch_size;
    return NULL;
}

/* ---- request and inputs */

EXPORT TRITONSERVER_Error *
TRITONBACKEND_RequestInputCount(TRITONBACKEND_Request *request,
    uint32_t *count)
{
    *count = AS(fake_request_t, request)->input_count;
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_RequestInput(TRITONBACKEND_Request *request, const char *name,
    TRITONBACKEND_Input **input)
{
    fake_request_t *r = AS(fake_request_t, request);

    assert_false(r->released);
    *input = NULL;
    for (uint32_t i = 0; i < r->input_count; i++) {
        if (strcmp(r->inputs[i].name, name) == 0) {
            *input = AS(TRITONBACKEND_Input, &r->inputs[i]);
            return NULL;
        }
    }

    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG,
        "unknown request input name");
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_RequestInputByIndex(TRITONBACKEND_Request *request,
    const uint32_t index, TRITONBACKEND_Input **input)
{
    fake_request_t *r = AS(fake_request_t, request);

    assert_true(index < r->input_count);
    *input = AS(TRITONBACKEND_Input, &r->inputs[index]);
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_InputProperties(TRITONBACKEND_Input *input, const char **name,
    TRITONSERVER_DataType *datatype, const int64_t **shape,
    uint32_t *dims_count, uint64_t *byte_size, uint32_t *buffer_count)
{
    fake_tensor_t *t = AS(fake_tensor_t, input);

    *name = t->name;
    *datatype = t->datatype;
    *shape = t->shape;
    *dims_count = t->dims_count;
    *buffer_count = t->chunk_count;
    *byte_size = 0;
    for (uint32_t i = 0; i < t->chunk_count; i++) {
        *byte_size += t->chunk_lens[i];
    }

    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_InputBuffer(TRITONBACKEND_Input *input, const uint32_t index,
    const void **buffer, uint64_t *buffer_byte_size,
    TRITONSERVER_MemoryType *memory_type, int64_t *memory_type_id)
{
    fake_tensor_t *t = AS(fake_tensor_t, input);

    *memory_type = t->memory;
    *memory_type_id = t->memory_id;
    *buffer = index < t->chunk_count ? t->chunks[index] : NULL;
    *buffer_byte_size = index < t->chunk_count ? t->chunk_lens[index] : 0;
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_RequestOutputCount(TRITONBACKEND_Request *request,
    uint32_t *count)
{
    *count = AS(fake_request_t, request)->wanted_count;
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_RequestOutputName(TRITONBACKEND_Request *request,
    const uint32_t index, const char **output_name)
{
    assert_true(index < AS(fake_request_t, request)->wanted_count);
    *output_name = AS(fake_request_t, request)->wanted[index];
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_RequestOutputBufferProperties(TRITONBACKEND_Request *request,
    const char *name, size_t *byte_size, TRITONSERVER_MemoryType *memory_type,
    int64_t *memory_type_id)
{
    fake_request_t *r = AS(fake_request_t, request);

    (void) name;
    (void) byte_size;
    if (!r->queried) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE,
            "Output properties are not available");
    }

    *memory_type = r->outputs_on_gpu ? TRITONSERVER_MEMORY_GPU
        : TRITONSERVER_MEMORY_CPU;
    *memory_type_id = 0;
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_RequestIsCancelled(TRITONBACKEND_Request *request,
    bool *is_cancelled)
{
    const fake_request_t *r = AS(fake_request_t, request);

    *is_cancelled = r->cancelled || (r->cancelled_after != 0
        && r->model->batches >= r->cancelled_after);
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_RequestParameterCount(TRITONBACKEND_Request *request,
    uint32_t *count)
{
    *count = AS(fake_request_t, request)->parameter_count;
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_RequestParameter(TRITONBACKEND_Request *request,
    const uint32_t index, const char **key, TRITONSERVER_ParameterType *type,
    const void **vvalue)
{
    fake_parameter_t *p = &AS(fake_request_t, request)->parameters[index];

    *key = p->key;
    *type = p->type;
    *vvalue = p->type == TRITONSERVER_PARAMETER_INT ? (void *) &p->number
        : p->type == TRITONSERVER_PARAMETER_BOOL ? (void *) &p->flag
        : p->type == TRITONSERVER_PARAMETER_DOUBLE ? (void *) &p->real
        : (void *) p->text;
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_RequestRelease(TRITONBACKEND_Request *request,
    uint32_t release_flags)
{
    fake_request_t *r = AS(fake_request_t, request);

    assert_int_equal(release_flags, TRITONSERVER_REQUEST_RELEASE_ALL);
    assert_false(r->released);
    r->released = true;
    return NULL;
}

/* ---- response and outputs */

EXPORT TRITONSERVER_Error *
TRITONBACKEND_ResponseNew(TRITONBACKEND_Response **response,
    TRITONBACKEND_Request *request)
{
    fake_response_t *p = calloc(1, sizeof(*p));

    p->request = AS(fake_request_t, request);
    assert_false(p->request->released);
    live++;
    *response = AS(TRITONBACKEND_Response, p);
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_ResponseDelete(TRITONBACKEND_Response *response)
{
    fake_response_t *p = AS(fake_response_t, response);

    tensors_free(p->outputs, p->output_count);
    free(p);
    live--;
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response *response,
    TRITONBACKEND_Output **output, const char *name,
    const TRITONSERVER_DataType datatype, const int64_t *shape,
    const uint32_t dims_count)
{
    fake_response_t *p = AS(fake_response_t, response);

    /* how a test asks for outputs that the core rejects, or has no room for */
    if (strncmp(name, "REJECTED", 8) == 0) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG,
            "the model has no such output");
    }
    assert_true(p->output_count < FAKE_MAX_TENSORS);
    assert_true(dims_count <= FAKE_MAX_DIMS);
    for (uint32_t i = 0; i < p->output_count; i++) {
        assert_string_not_equal(p->outputs[i].name, name);
    }

    fake_tensor_t *t = &p->outputs[p->output_count++];
    put_text(t->name, sizeof(t->name), name);
    t->datatype = datatype;
    t->dims_count = dims_count;
    memcpy(t->shape, shape, dims_count * sizeof(*shape));
    t->may_be_gpu = p->request->model->kind
        == TRITONSERVER_INSTANCEGROUPKIND_GPU;
    if (p->request->outputs_on_gpu) {
        t->memory = TRITONSERVER_MEMORY_GPU;
    }
    *output = AS(TRITONBACKEND_Output, t);
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output *output, void **buffer,
    const uint64_t buffer_byte_size, TRITONSERVER_MemoryType *memory_type,
    int64_t *memory_type_id)
{
    fake_tensor_t *t = AS(fake_tensor_t, output);

    assert_false(t->allocated);
    assert_true(*memory_type == TRITONSERVER_MEMORY_CPU || t->may_be_gpu);
    t->allocated = true;
    t->chunk_count = 1;
    t->chunk_lens[0] = buffer_byte_size;
    if (t->memory == TRITONSERVER_MEMORY_GPU) {
        t->chunks[0] = device.alloc(buffer_byte_size);
        *buffer = t->chunks[0];
        *memory_type = t->memory;
        *memory_type_id = t->memory_id;
        return NULL;
    }

    t->chunks[0] = buffer_byte_size == 0 ? NULL : malloc(buffer_byte_size);
    if (t->chunks[0] != NULL) {
        memset(t->chunks[0], 0xa5, buffer_byte_size);
    }
    *buffer = t->chunks[0];
    *memory_type = TRITONSERVER_MEMORY_CPU;
    *memory_type_id = 0;
    if (strncmp(t->name, "FULL", 4) == 0) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE,
            "the arena is full");
    }

    /* how a test asks for memory that the CPU cannot reach */
    if (strncmp(t->name, "GPU", 3) == 0) {
        *memory_type = TRITONSERVER_MEMORY_GPU;
        *memory_type_id = 3;
    }

    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_ResponseSend(TRITONBACKEND_Response *response,
    const uint32_t send_flags, TRITONSERVER_Error *error)
{
    fake_response_t *p = AS(fake_response_t, response);
    fake_request_t *r = p->request;

    assert_int_equal(send_flags, TRITONSERVER_RESPONSE_COMPLETE_FINAL);
    assert_false(r->final);
    r->final = true;

    if (error != NULL) {
        r->failed = true;
        r->error_code = error->code;
        put_text(r->error, sizeof(r->error), error->text);
        tensors_free(p->outputs, p->output_count);

    } else {
        for (uint32_t i = 0; i < p->output_count; i++) {
            assert_true(p->outputs[i].allocated);
        }
        memcpy(r->outputs, p->outputs, sizeof(r->outputs));
        r->output_count = p->output_count;
        memcpy(r->answered, p->parameters, sizeof(r->answered));
        r->answered_count = p->parameter_count;
    }

    free(p);
    live--;
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_ResponseSetStringParameter(TRITONBACKEND_Response *response,
    const char *name, const char *value)
{
    put_text(response_parameter(response, name,
        TRITONSERVER_PARAMETER_STRING)->text, 64, value);
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_ResponseSetIntParameter(TRITONBACKEND_Response *response,
    const char *name, const int64_t value)
{
    response_parameter(response, name, TRITONSERVER_PARAMETER_INT)->number
        = value;
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_ResponseSetBoolParameter(TRITONBACKEND_Response *response,
    const char *name, const bool value)
{
    response_parameter(response, name, TRITONSERVER_PARAMETER_BOOL)->flag
        = value;
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_ResponseSetDoubleParameter(TRITONBACKEND_Response *response,
    const char *name, const double value)
{
    response_parameter(response, name, TRITONSERVER_PARAMETER_DOUBLE)->real
        = value;
    return NULL;
}

static fake_parameter_t *
response_parameter(TRITONBACKEND_Response *response, const char *name,
    TRITONSERVER_ParameterType type)
{
    fake_response_t *p = AS(fake_response_t, response);
    fake_parameter_t *one = &p->parameters[p->parameter_count++];

    put_text(one->key, sizeof(one->key), name);
    one->type = type;
    return one;
}

/* ---- states */

const fake_tensor_t *
fake_request_state(const fake_request_t *r, const char *name)
{
    for (uint32_t i = 0; i < r->state_count; i++) {
        if (r->states[i].allocated && strcmp(r->states[i].name, name) == 0) {
            return &r->states[i];
        }
    }

    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_StateNew(TRITONBACKEND_State **state,
    TRITONBACKEND_Request *request, const char *name,
    const TRITONSERVER_DataType datatype, const int64_t *shape,
    const uint32_t dims_count)
{
    fake_request_t *r = AS(fake_request_t, request);

    assert_false(r->released);
    if (!r->has_states) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG,
            "unable to add state");
    }

    fake_tensor_t *t = &r->states[r->state_count++];
    put_text(t->name, sizeof(t->name), name);
    t->datatype = datatype;
    t->dims_count = dims_count;
    memcpy(t->shape, shape, dims_count * sizeof(*shape));
    *state = AS(TRITONBACKEND_State, t);
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_StateBuffer(TRITONBACKEND_State *state, void **buffer,
    const uint64_t buffer_byte_size, TRITONSERVER_MemoryType *memory_type,
    int64_t *memory_type_id)
{
    fake_tensor_t *t = AS(fake_tensor_t, state);

    assert_int_equal(*memory_type, TRITONSERVER_MEMORY_CPU);
    t->chunk_count = 1;
    t->chunk_lens[0] = buffer_byte_size;
    t->chunks[0] = malloc(buffer_byte_size + 1);
    *buffer = t->chunks[0];
    *memory_type_id = 0;
    /* how a test asks for memory that the CPU cannot reach */
    if (strncmp(t->name, "GPU", 3) == 0) {
        *memory_type = TRITONSERVER_MEMORY_GPU;
    }
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_StateUpdate(TRITONBACKEND_State *state)
{
    AS(fake_tensor_t, state)->allocated = true;
    return NULL;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_RequestCorrelationId(TRITONBACKEND_Request *request,
    uint64_t *id)
{
    *id = AS(fake_request_t, request)->correlation_id;
    return NULL;
}
