#include "core/server/calls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/points.h"
#include "core/include/build_id.h"
#include "core/proto/message.h"
#include "core/server/archives.h"
#include "core/server/client_settings.h"
#include "core/server/log_message.h"
#include "core/server/metrics_text.h"
#include "core/server/model_control.h"
#include "core/server/ready_models.h"
#include "core/server/rest_answer.h"
#include "core/server/shm_calls.h"
#include "core/server/statistics_message.h"
#include "core/server/status_message.h"
#include "core/server/trace_message.h"
#include "core_calls.pb-c.h"
#include "grpc_service.pb-c.h"

typedef struct {
    inf_server_t          *server;
    inf_registry_reader_t *models;
    uint16_t               method;
    bool                   rest;        /* the answer is a REST body         */
    inf_arena_t           *arena;       /* of the answer's message           */
    inf_buf_t             *answer;
} call_t;

typedef inf_err_t *(*call_fn)(const call_t *c, const ProtobufCMessage *m);

typedef struct {
    const ProtobufCMessageDescriptor *request;
    call_fn                           run;
} call_entry_t;

static inf_err_t *server_metadata(const call_t *c, const ProtobufCMessage *m);
static inf_err_t *model_metadata(const call_t *c, const ProtobufCMessage *m);
static inf_err_t *model_config(const call_t *c, const ProtobufCMessage *m);
static inf_err_t *repository_index(const call_t *c, const ProtobufCMessage *m);

static inf_err_t *model_statistics(const call_t *c, const ProtobufCMessage *m);
static inf_err_t *metrics(const call_t *c, const ProtobufCMessage *m);
static inf_err_t *status(const call_t *c, const ProtobufCMessage *m);
static inf_err_t *archive_list(const call_t *c, const ProtobufCMessage *m);
static inf_err_t *trace_setting(const call_t *c, const ProtobufCMessage *m);
static inf_err_t *find_model(const call_t *c, const char *name,
    const char *version, inf_model_t **out);
static bool is_starting(const call_t *c, const char *name);
static inf_err_t *find_any_version(const call_t *c, const char *name);
static inf_err_t *log_settings(const call_t *c, const ProtobufCMessage *m);
static inf_err_t *system_status(const call_t *c, const ProtobufCMessage *m);
static inf_err_t *cuda_status(const call_t *c, const ProtobufCMessage *m);
static inf_err_t *region_status(const call_t *c, inf_shm_kind_t kind,
    const char *name);
static inf_err_t *change_regions(const call_t *c, const ProtobufCMessage *m);
static inf_err_t *read_version(const char *text, int64_t *version);
static inf_err_t *pack(const call_t *c, const void *message);

static const call_entry_t calls[] = {
    [INF_METHOD_SERVER_METADATA] =
        { &inference__server_metadata_request__descriptor, server_metadata },
    [INF_METHOD_MODEL_METADATA] =
        { &inference__model_metadata_request__descriptor, model_metadata },
    [INF_METHOD_MODEL_CONFIG] =
        { &inference__model_config_request__descriptor, model_config },
    [INF_METHOD_REPOSITORY_INDEX] =
        { &inference__repository_index_request__descriptor, repository_index },
    [INF_METHOD_MODEL_STATISTICS] =
        { &inference__model_statistics_request__descriptor, model_statistics },
    [INF_METHOD_METRICS] =
        { &nginx_inference__metrics_request__descriptor, metrics },
    [INF_METHOD_STATUS] =
        { &nginx_inference__status_request__descriptor, status },
    [INF_METHOD_ARCHIVE_LIST] =
        { &nginx_inference__archive_list_request__descriptor, archive_list },
    [INF_METHOD_TRACE_SETTING] =
        { &inference__trace_setting_request__descriptor, trace_setting },
    [INF_METHOD_LOG_SETTINGS] =
        { &inference__log_settings_request__descriptor, log_settings },
    [INF_METHOD_SYSTEM_SHM_STATUS] =
        { &inference__system_shared_memory_status_request__descriptor,
          system_status },
    [INF_METHOD_SYSTEM_SHM_REGISTER] =
        { &inference__system_shared_memory_register_request__descriptor,
          change_regions },
    [INF_METHOD_SYSTEM_SHM_UNREGISTER] =
        { &inference__system_shared_memory_unregister_request__descriptor,
          change_regions },
    [INF_METHOD_CUDA_SHM_STATUS] =
        { &inference__cuda_shared_memory_status_request__descriptor,
          cuda_status },
    [INF_METHOD_CUDA_SHM_REGISTER] =
        { &inference__cuda_shared_memory_register_request__descriptor,
          change_regions },
    [INF_METHOD_CUDA_SHM_UNREGISTER] =
        { &inference__cuda_shared_memory_unregister_request__descriptor,
          change_regions },
};

inf_err_t *
inf_call_request(uint16_t method, const ProtobufCMessageDescriptor **out)
{
    if (method >= sizeof(calls) / sizeof(calls[0])
        || calls[method].run == NULL)
    {
        return inf_err_new(INF_ERR_UNSUPPORTED,
            "method %u is not supported by this version of the core", method);
    }

    *out = calls[method].request;
    return NULL;
}

inf_err_t *
inf_call(inf_server_t *server, inf_registry_reader_t *models, uint16_t method,
    inf_slice_t request, bool rest, inf_buf_t *answer)
{
    const ProtobufCMessageDescriptor *desc = NULL;
    ProtobufCMessage *message;
    inf_arena_t arena;

    inf_err_t *err = inf_call_request(method, &desc);
    if (err == NULL) {
        err = inf_message_unpack_request(desc, request, &message);
    }
    if (err != NULL) {
        return err;
    }

    inf_arena_init(&arena);
    const call_t call = { server, models, method, rest, &arena, answer };
    err = calls[method].run(&call, message);
    if (err == NULL) {
        inf_client_settings_note(server, method, message);
        INF_POINT(SETTING_NOTED);
    }
    inf_arena_fini(&arena);
    inf_message_free(message);
    return err;
}

inf_err_t *
inf_call_find_model(inf_registry_reader_t *models, const char *name,
    const char *version, inf_model_t **out)
{
    int64_t number;

    inf_err_t *err = read_version(version, &number);
    return err != NULL ? err : inf_registry_find(models, inf_slice_str(name),
        number, out);
}

static inf_err_t *
server_metadata(const call_t *c, const ProtobufCMessage *m)
{
    (void) m;
    /* the last two if clients may have shared memory */
    static const char *const extensions[] = {
        "classification", "sequence", "model_repository",
        "model_repository(unload_dependents)", "schedule_policy",
        "model_configuration", "binary_tensor_data", "parameters",
        "statistics", "trace", "logging", "system_shared_memory",
        "cuda_shared_memory"
    };
    Inference__ServerMetadataResponse r =
        INFERENCE__SERVER_METADATA_RESPONSE__INIT;
    const char *id = c->server->config->values->server_id;

    r.name = (char *) (id[0] != '\0' ? id : "triton");
    r.version = (char *) INF_VERSION;
    r.extensions = (char **) (void *) extensions;
    r.n_extensions = sizeof(extensions) / sizeof(extensions[0])
        - (inf_shm_regions_are_on(c->server->regions) ? 0 : 2);
    return pack(c, &r);
}

typedef Inference__ModelMetadataResponse__TensorMetadata tensor_metadata_t;

/* Describes one tensor as clients see it: with a leading -1 if the model
   batches. */
static inf_err_t *
describe_tensor(const inf_model_t *model, const inf_config_tensor_t *t,
    inf_arena_t *arena, tensor_metadata_t **out)
{
    uint32_t batched = inf_config_tensors_max_batch_size(model->tensors) > 0;
    tensor_metadata_t *d = inf_arena_alloc(arena, sizeof(*d));
    int64_t *shape = inf_arena_alloc(arena,
        (t->dim_count + batched) * sizeof(*shape));
    if (d == NULL || shape == NULL) {
        return inf_err_nomem();
    }

    inference__model_metadata_response__tensor_metadata__init(d);
    if (batched) {
        shape[0] = -1;
    }
    if (t->dim_count > 0) {
        memcpy(shape + batched, t->dims, t->dim_count * sizeof(*shape));
    }

    d->name = (char *) t->name.data;
    d->datatype = (char *) inf_datatype_name(t->datatype);
    d->n_shape = t->dim_count + batched;
    d->shape = shape;
    *out = d;
    return NULL;
}

static inf_err_t *
describe_versions(const call_t *c, const inf_model_t *model, bool one,
    Inference__ModelMetadataResponse *r)
{
    int64_t *versions = NULL;
    uint32_t count = 0;
    inf_err_t *err = NULL;

    if (!one) {
        err = inf_registry_versions(c->models, inf_slice_str(model->name),
            c->arena, &versions, &count);
    } else {
        versions = inf_arena_alloc(c->arena, sizeof(*versions));
        if (versions != NULL) {
            versions[count++] = model->version;
        }
    }
    if (err != NULL) {
        return err;
    }

    r->versions = inf_arena_alloc(c->arena, (count + 1) * sizeof(char *));
    for (uint32_t i = 0; r->versions != NULL && i < count; i++) {
        char text[24];
        int n = snprintf(text, sizeof(text), "%lld", (long long) versions[i]);
        r->versions[i] = inf_arena_strdup(c->arena, text, (size_t) n);
        if (r->versions[i] == NULL) {
            return inf_err_nomem();
        }
        r->n_versions++;
    }

    return r->versions != NULL ? NULL : inf_err_nomem();
}

static inf_err_t *
describe_tensors(const inf_model_t *model, inf_arena_t *arena,
    Inference__ModelMetadataResponse *r)
{
    uint32_t in = inf_config_tensors_input_count(model->tensors);
    uint32_t out = inf_config_tensors_output_count(model->tensors);
    inf_err_t *err = NULL;

    r->inputs = inf_arena_alloc(arena, (in + 1) * sizeof(*r->inputs));
    r->outputs = inf_arena_alloc(arena, (out + 1) * sizeof(*r->outputs));
    if (r->inputs == NULL || r->outputs == NULL) {
        return inf_err_nomem();
    }

    for (uint32_t i = 0; err == NULL && i < in; i++) {
        err = describe_tensor(model, inf_config_tensors_input(model->tensors,
            i), arena, &r->inputs[i]);
        r->n_inputs = i + 1;
    }
    for (uint32_t i = 0; err == NULL && i < out; i++) {
        err = describe_tensor(model, inf_config_tensors_output(model->tensors,
            i), arena, &r->outputs[i]);
        r->n_outputs = i + 1;
    }

    return err;
}

static inf_err_t *
model_metadata(const call_t *c, const ProtobufCMessage *m)
{
    const Inference__ModelMetadataRequest *q = (const void *) m;
    Inference__ModelMetadataResponse r =
        INFERENCE__MODEL_METADATA_RESPONSE__INIT;
    inf_model_t *model;

    inf_err_t *err = find_model(c, q->name, q->version, &model);
    if (err != NULL) {
        return err;
    }

    const Inference__ModelConfig *config = model->built;
    r.name = model->name;
    r.platform = config->platform[0] != '\0' ? config->platform
        : config->backend;

    err = describe_versions(c, model, q->version[0] != '\0', &r);
    if (err == NULL) {
        err = describe_tensors(model, c->arena, &r);
    }
    if (err == NULL) {
        err = pack(c, &r);
    }

    inf_model_unref(model);
    return err;
}

static inf_err_t *
model_config(const call_t *c, const ProtobufCMessage *m)
{
    const Inference__ModelConfigRequest *q = (const void *) m;
    Inference__ModelConfigResponse r = INFERENCE__MODEL_CONFIG_RESPONSE__INIT;
    inf_model_t *model;

    inf_err_t *err = find_model(c, q->name, q->version, &model);
    if (err != NULL) {
        return err;
    }

    inf_lock(&model->config_lock);
    r.config = model->config->msg;
    err = pack(c, &r);
    inf_unlock(&model->config_lock);

    inf_model_unref(model);
    return err;
}

typedef Inference__RepositoryIndexResponse__ModelIndex model_index_t;

typedef struct {
    inf_arena_t    *arena;
    bool            failed;
    model_index_t **rows;
    size_t          count;
    size_t          cap;
} index_rows_t;

static void
index_row(void *userp, const char *name, int64_t version,
    inf_version_state_t state, const char *reason)
{
    index_rows_t *rows = userp;
    char text[24] = "";

    if (rows->failed) {
        return;
    }
    if (rows->count == rows->cap) {
        size_t cap = rows->cap == 0 ? 64 : rows->cap * 2;
        model_index_t **grown = realloc(rows->rows, cap * sizeof(*grown));
        if (grown == NULL) {
            rows->failed = true;
            return;
        }
        rows->rows = grown;
        rows->cap = cap;
    }
    if (version >= 0) {
        snprintf(text, sizeof(text), "%lld", (long long) version);
    }

    model_index_t *row = inf_arena_alloc(rows->arena, sizeof(*row));
    if (row == NULL) {
        rows->failed = true;
        return;
    }
    inference__repository_index_response__model_index__init(row);
    row->name = inf_arena_strdup(rows->arena, name, strlen(name));
    row->version = inf_arena_strdup(rows->arena, text, strlen(text));
    row->reason = inf_arena_strdup(rows->arena, reason, strlen(reason));
    row->state = state == INF_VERSION_UNKNOWN ? (char *) ""
        : (char *) (uintptr_t) inf_version_state_name(state);
    rows->failed = row->name == NULL || row->version == NULL
        || row->reason == NULL;
    rows->rows[rows->count++] = row;
}

static inf_err_t *
repository_index(const call_t *c, const ProtobufCMessage *m)
{
    const Inference__RepositoryIndexRequest *q = (const void *) m;
    Inference__RepositoryIndexResponse r =
        INFERENCE__REPOSITORY_INDEX_RESPONSE__INIT;
    index_rows_t rows = { .arena = c->arena };

    inf_err_t *err = inf_model_control_repository(q->repository_name);
    if (err != NULL) {
        return err;
    }

    err = inf_lifecycle_repository_index(c->server->lifecycle,
        q->ready, index_row, &rows);

    r.models = rows.rows;
    r.n_models = rows.count;
    if (err == NULL) {
        err = rows.failed ? inf_err_nomem() : pack(c, &r);
    }

    free(rows.rows);
    return err;
}

static inf_err_t *
model_statistics(const call_t *c, const ProtobufCMessage *m)
{
    const Inference__ModelStatisticsRequest *q = (const void *) m;
    Inference__ModelStatisticsResponse r;
    inf_ready_models_t ready;
    int64_t version;
    bool starting = q->name[0] != '\0' && is_starting(c, q->name);

    inf_err_t *err = read_version(q->version, &version);
    if (err == NULL) {
        err = inf_registry_unique(c->models, inf_slice_str(q->name));
    }
    if (err == NULL) {
        err = inf_ready_models_init(&ready, c->server);
    }
    if (err != NULL) {
        return err;
    }

    err = inf_statistics_message(&ready, q->name, version, c->arena, &r);
    if (err == NULL) {
        err = pack(c, &r);
    }
    inf_ready_models_fini(&ready);
    return err != NULL && starting ? inf_err_because(err, INF_CAUSE_STARTING)
        : err;
}

static inf_err_t *
metrics(const call_t *c, const ProtobufCMessage *m)
{
    (void) m;
    NginxInference__MetricsResponse r = NGINX_INFERENCE__METRICS_RESPONSE__INIT;
    inf_buf_t text;

    inf_buf_init(&text);
    inf_err_t *err = inf_metrics_text(c->server, &text);
    if (err == NULL) {
        r.text.data = (uint8_t *) inf_buf_slice(&text).data;
        r.text.len = text.len;
        err = pack(c, &r);
    }

    inf_buf_fini(&text);
    return err;
}

static inf_err_t *
status(const call_t *c, const ProtobufCMessage *m)
{
    (void) m;
    NginxInference__StatusResponse r;

    inf_err_t *err = inf_status_message(c->server, c->arena, &r);
    return err != NULL ? err : pack(c, &r);
}

static inf_err_t *
archive_list(const call_t *c, const ProtobufCMessage *m)
{
    const NginxInference__ArchiveListRequest *q = (const void *) m;
    NginxInference__ArchiveListResponse r;

    inf_err_t *err = inf_archive_list(c->server, c->models, q->name, c->arena,
        &r);
    return err != NULL ? err : pack(c, &r);
}

static inf_err_t *
trace_setting(const call_t *c, const ProtobufCMessage *m)
{
    const Inference__TraceSettingRequest *q = (const void *) m;
    Inference__TraceSettingResponse r;

    inf_err_t *err = q->model_name[0] != '\0'
        ? find_any_version(c, q->model_name) : NULL;
    if (err == NULL) {
        err = inf_trace_message(inf_tracer_settings(c->server->tracer), q,
            c->arena, &r);
    }
    return err != NULL ? err : pack(c, &r);
}

static inf_err_t *
find_model(const call_t *c, const char *name, const char *version,
    inf_model_t **out)
{
    bool starting = is_starting(c, name);

    inf_err_t *err = inf_call_find_model(c->models, name, version, out);
    return err != NULL && starting ? inf_err_because(err, INF_CAUSE_STARTING)
        : err;
}

/* Whether the start has still to load the model, so that a later try can find
   it.  Called before the model is looked up. */
static bool
is_starting(const call_t *c, const char *name)
{
    return inf_server_restoring(c->server)
        && inf_server_restores(c->server, inf_slice_str(name));
}

static inf_err_t *
find_any_version(const call_t *c, const char *name)
{
    inf_model_t *model;

    inf_err_t *err = find_model(c, name, "", &model);
    if (err == NULL) {
        inf_model_unref(model);
    }
    return err;
}

static inf_err_t *
log_settings(const call_t *c, const ProtobufCMessage *m)
{
    Inference__LogSettingsResponse r;

    inf_err_t *err = inf_log_message((const void *) m, c->arena, &r);
    return err != NULL ? err : pack(c, &r);
}

static inf_err_t *
system_status(const call_t *c, const ProtobufCMessage *m)
{
    const Inference__SystemSharedMemoryStatusRequest *q = (const void *) m;
    return region_status(c, INF_SHM_SYSTEM, q->name);
}

static inf_err_t *
cuda_status(const call_t *c, const ProtobufCMessage *m)
{
    const Inference__CudaSharedMemoryStatusRequest *q = (const void *) m;
    return region_status(c, INF_SHM_CUDA, q->name);
}

static inf_err_t *
region_status(const call_t *c, inf_shm_kind_t kind, const char *name)
{
    union {
        Inference__SystemSharedMemoryStatusResponse system;
        Inference__CudaSharedMemoryStatusResponse   cuda;
    } r;
    inf_shm_region_t **list;
    size_t count;

    inf_err_t *err = inf_shm_regions_list(c->server->regions, kind, name,
        &list, &count);
    if (err != NULL) {
        return err;
    }

    err = kind == INF_SHM_SYSTEM
        ? inf_shm_system_status(list, count, c->arena, &r.system)
        : inf_shm_cuda_status(list, count, c->arena, &r.cuda);
    if (err == NULL) {
        err = pack(c, &r);
    }
    inf_shm_regions_list_free(list, count);
    return err;
}

/* The answer has no fields, and in REST no body. */
static inf_err_t *
change_regions(const call_t *c, const ProtobufCMessage *m)
{
    return inf_shm_call(c->server->regions, c->method, m);
}

/* Parses a version; "" gives -1, the newest. */
static inf_err_t *
read_version(const char *text, int64_t *version)
{
    char *end;

    *version = -1;
    if (text[0] == '\0') {
        return NULL;
    }

    errno = 0;
    *version = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0') {
        return inf_err_new(INF_ERR_INVALID_ARG, "failed to get model version"
            " from specified version string '%s' (details: %s), version should"
            " be an integral value > 0", text, errno == ERANGE ? "out of range"
            : "not a number");
    }

    return *version >= 0 ? NULL : inf_err_new(INF_ERR_INVALID_ARG, "invalid"
        " model version specified '%s' , version should be an integral value"
        " > 0", text);
}

/* Packs a message; invalid UTF-8, which may come from files, is repaired. */
static inf_err_t *
pack(const call_t *c, const void *message)
{
    const ProtobufCMessage *m = message;
    ProtobufCMessage *repaired;
    size_t start = c->answer->len;

    inf_err_t *err = inf_message_pack(m, c->answer);
    if (err == NULL) {
        err = inf_message_repair(m->descriptor, c->answer->data + start,
            c->answer->len - start);
    }
    if (err != NULL || !c->rest) {
        return err;
    }

    err = inf_message_unpack(m->descriptor, inf_slice(c->answer->data + start,
        c->answer->len - start), &repaired);
    if (err != NULL) {
        return err;
    }

    c->answer->len = start;
    err = inf_rest_answer(c->method, repaired, c->answer);
    inf_message_free(repaired);
    return err;
}
