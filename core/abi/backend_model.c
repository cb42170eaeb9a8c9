/* backend_model.c - functions of backends on backend, model and instance
   objects. */

#include "core/abi/objects.h"
#include "core/abi/trace.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/proto/config_json.h"

static void note_latencies(inf_instance_t *instance, const inf_request_t *r,
    uint64_t now_ns);

TRITONSERVER_Error *
TRITONBACKEND_ApiVersion(uint32_t *major, uint32_t *minor)
{
    *major = TRITONBACKEND_API_VERSION_MAJOR;
    *minor = TRITONBACKEND_API_VERSION_MINOR;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_BackendName(TRITONBACKEND_Backend *backend, const char **name)
{
    *name = inf_as_backend(backend)->name;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_BackendConfig(TRITONBACKEND_Backend *backend,
    TRITONSERVER_Message **backend_config)
{
    *backend_config = inf_abi_as_message(
        inf_as_backend(backend)->abi.config);
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_BackendExecutionPolicy(TRITONBACKEND_Backend *backend,
    TRITONBACKEND_ExecutionPolicy *policy)
{
    *policy = (TRITONBACKEND_ExecutionPolicy)
        inf_as_backend(backend)->execution_policy;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_BackendSetExecutionPolicy(TRITONBACKEND_Backend *backend,
    TRITONBACKEND_ExecutionPolicy policy)
{
    inf_as_backend(backend)->execution_policy = (uint32_t) policy;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_BackendArtifacts(TRITONBACKEND_Backend *backend,
    TRITONBACKEND_ArtifactType *artifact_type, const char **location)
{
    *artifact_type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
    *location = inf_as_backend(backend)->dir;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_BackendState(TRITONBACKEND_Backend *backend, void **state)
{
    *state = inf_as_backend(backend)->state;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_BackendSetState(TRITONBACKEND_Backend *backend, void *state)
{
    inf_as_backend(backend)->state = state;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
    TRITONBACKEND_BackendAttribute *backend_attributes,
    const TRITONSERVER_InstanceGroupKind kind, const uint64_t count,
    const uint64_t *device_ids, const uint64_t id_count)
{
    inf_backend_t *b = (inf_backend_t *) (void *) backend_attributes;
    inf_preferred_group_t *groups = realloc(b->preferred,
        (b->preferred_count + 1) * sizeof(*groups));
    if (groups == NULL) {
        return inf_err_nomem();
    }
    b->preferred = groups;

    uint64_t *gpus = NULL;
    if (id_count > 0) {
        gpus = calloc(id_count, sizeof(*gpus));
        if (gpus == NULL) {
            return inf_err_nomem();
        }
        memcpy(gpus, device_ids, id_count * sizeof(*gpus));
    }

    groups[b->preferred_count++] = (inf_preferred_group_t) {
        .kind = (inf_instance_kind_t) kind,
        .count = count,
        .gpus = gpus,
        .gpu_count = id_count
    };
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(
    TRITONBACKEND_BackendAttribute *backend_attributes, bool enabled)
{
    ((inf_backend_t *) (void *) backend_attributes)->parallel_loading =
        enabled;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelName(TRITONBACKEND_Model *model, const char **name)
{
    *name = inf_as_model(model)->name;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelVersion(TRITONBACKEND_Model *model, uint64_t *version)
{
    *version = (uint64_t) inf_as_model(model)->version;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelRepository(TRITONBACKEND_Model *model,
    TRITONBACKEND_ArtifactType *artifact_type, const char **location)
{
    *artifact_type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
    *location = inf_as_model(model)->dir;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelConfig(TRITONBACKEND_Model *model,
    const uint32_t config_version, TRITONSERVER_Message **model_config)
{
    *model_config = NULL;
    if (config_version != 1) {
        return inf_err_new(INF_ERR_INVALID_ARG, "model configuration version"
            " %u not supported, supported versions are: 1", config_version);
    }

    inf_model_t *m = inf_as_model(model);
    inf_buf_t json;
    inf_buf_init(&json);

    inf_lock(&m->config_lock);
    inf_err_t *err = inf_model_config_to_json(m->config->msg, &json);
    inf_unlock(&m->config_lock);

    if (err == NULL) {
        err = TRITONSERVER_MessageNewFromSerializedJson(model_config,
            inf_buf_slice(&json).data, json.len);
    }

    inf_buf_fini(&json);
    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelAutoCompleteConfig(TRITONBACKEND_Model *model,
    bool *auto_complete_config)
{
    *auto_complete_config = inf_as_model(model)->auto_complete;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelSetConfig(TRITONBACKEND_Model *model,
    const uint32_t config_version, TRITONSERVER_Message *model_config)
{
    if (config_version != 1) {
        return inf_err_new(INF_ERR_INVALID_ARG, "model configuration version"
            " %u not supported, supported versions are: 1", config_version);
    }

    inf_model_t *m = inf_as_model(model);
    const inf_json_text_t *message = inf_as_message(model_config);

    inf_lock(&m->config_lock);
    inf_err_t *err = inf_model_config_merge_json(m->config, message->json,
        message->len);
    if (err == NULL) {
        m->completed = true;
    }
    inf_unlock(&m->config_lock);
    return inf_err_add(err, "configuration that backend '%s' sets for model"
        " '%s'", m->backend->name, m->name);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelServer(TRITONBACKEND_Model *model,
    TRITONSERVER_Server **server)
{
    *server = (TRITONSERVER_Server *) (void *) inf_as_model(model)->server;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelBackend(TRITONBACKEND_Model *model,
    TRITONBACKEND_Backend **backend)
{
    *backend = inf_abi_as_backend(inf_as_model(model)->backend);
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelState(TRITONBACKEND_Model *model, void **state)
{
    *state = inf_as_model(model)->state;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelSetState(TRITONBACKEND_Model *model, void *state)
{
    inf_as_model(model)->state = state;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceName(TRITONBACKEND_ModelInstance *instance,
    const char **name)
{
    *name = inf_as_instance(instance)->spec->name;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceKind(TRITONBACKEND_ModelInstance *instance,
    TRITONSERVER_InstanceGroupKind *kind)
{
    *kind = (TRITONSERVER_InstanceGroupKind)
        inf_as_instance(instance)->spec->kind;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceDeviceId(TRITONBACKEND_ModelInstance *instance,
    int32_t *device_id)
{
    *device_id = inf_as_instance(instance)->spec->device_id;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceHostPolicy(TRITONBACKEND_ModelInstance *instance,
    TRITONSERVER_Message **host_policy)
{
    *host_policy = inf_abi_as_message(
        inf_as_instance(instance)->abi.host_policy);
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceIsPassive(TRITONBACKEND_ModelInstance *instance,
    bool *is_passive)
{
    *is_passive = inf_as_instance(instance)->spec->passive;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceProfileCount(TRITONBACKEND_ModelInstance *instance,
    uint32_t *count)
{
    *count = (uint32_t) inf_as_instance(instance)->spec->profile_count;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceProfileName(TRITONBACKEND_ModelInstance *instance,
    const uint32_t index, const char **profile_name)
{
    const inf_instance_spec_t *spec = inf_as_instance(instance)->spec;
    *profile_name = NULL;
    if (index >= spec->profile_count) {
        return inf_err_new(INF_ERR_INVALID_ARG, "out of bounds index %u:"
            " instance is configured with %zu profiles", index,
            spec->profile_count);
    }

    *profile_name = spec->profiles[index];
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceSecondaryDeviceCount(
    TRITONBACKEND_ModelInstance *instance, uint32_t *count)
{
    *count = (uint32_t) inf_as_instance(instance)->spec->secondary_count;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(
    TRITONBACKEND_ModelInstance *instance, uint32_t index, const char **kind,
    int64_t *id)
{
    const inf_instance_spec_t *spec = inf_as_instance(instance)->spec;
    if (index >= spec->secondary_count) {
        return inf_err_new(INF_ERR_INVALID_ARG, "out of bounds index %u:"
            " instance is configured with %zu secondary devices", index,
            spec->secondary_count);
    }

    *kind = spec->secondary[index].kind;
    *id = spec->secondary[index].id;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceModel(TRITONBACKEND_ModelInstance *instance,
    TRITONBACKEND_Model **model)
{
    *model = inf_abi_as_model(inf_as_instance(instance)->model);
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceState(TRITONBACKEND_ModelInstance *instance,
    void **state)
{
    *state = inf_as_instance(instance)->state;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceSetState(TRITONBACKEND_ModelInstance *instance,
    void *state)
{
    inf_as_instance(instance)->state = state;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceReportStatistics(
    TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request *request,
    const bool success, const uint64_t exec_start_ns,
    const uint64_t compute_start_ns, const uint64_t compute_end_ns,
    const uint64_t exec_end_ns)
{
    inf_request_t *r = inf_as_request(request);
    inf_instance_t *i = inf_as_instance(instance);
    inf_statistics_t *s = &i->statistics;

    if (r->padding) {
        return NULL;
    }

    r->backend_ns[0] = exec_start_ns;
    r->backend_ns[1] = compute_start_ns;
    r->backend_ns[2] = compute_end_ns;
    r->backend_ns[3] = exec_end_ns;
    r->outcome = INF_OUTCOME_REPORTED;
    if (r->abi.trace != NULL) {
        inf_trace_report_compute(r->abi.trace, r->backend_ns);
    }

    uint64_t now = inf_clock_ns();
    if (success) {
        inf_statistics_success(s, r->batch_size > 0 ? r->batch_size : 1,
            r->start_ns, r->queue_ns, r->backend_ns, now);
        if (i->model->latencies != NULL) {
            note_latencies(i, r, now);
        }
    } else {
        inf_statistics_failure_for(s, INF_FAILURE_BACKEND, r->start_ns, now);
    }
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceReportBatchStatistics(
    TRITONBACKEND_ModelInstance *instance, const uint64_t batch_size,
    const uint64_t exec_start_ns, const uint64_t compute_start_ns,
    const uint64_t compute_end_ns, const uint64_t exec_end_ns)
{
    const uint64_t stamps[4] = {
        exec_start_ns, compute_start_ns, compute_end_ns, exec_end_ns
    };

    inf_statistics_batch(&inf_as_instance(instance)->statistics,
        batch_size > 0 ? batch_size : 1, stamps, inf_clock_wall_ms());
    return NULL;
}

static void
note_latencies(inf_instance_t *instance, const inf_request_t *r,
    uint64_t now_ns)
{
    inf_latencies_t *l = instance->model->latencies;

    if (l->histogram) {
        inf_statistics_observe(&instance->statistics, r->queue_ns,
            r->backend_ns);
    }
    if (instance->spec->kind == INF_INSTANCE_GPU) {
        l = inf_latencies_of_gpu(l, instance->spec->device_id);
    }
    inf_latencies_success(l, r->start_ns, r->queue_ns, r->backend_ns, now_ns);
}
