#include "core/server/client_settings.h"

#include <unistd.h>

#include "core/include/channel.h"
#include "core/proto/message.h"
#include "core/server/core_config.h"
#include "core/server/journal.h"
#include "core/server/log_message.h"
#include "core/server/shm_calls.h"
#include "core/server/trace_message.h"
#include "core_calls.pb-c.h"

static void set_regions(inf_server_t *server,
    const NginxInference__CoreConfig *config);
static void note_system_region(inf_server_t *server, const char *name);
static void note_cuda_region(inf_server_t *server,
    const Inference__CudaSharedMemoryRegisterRequest *m);
static void note_log(inf_server_t *server);
static void note_trace(inf_server_t *server, const char *model);
static inf_err_t *restore_one(void *userp, uint16_t method,
    inf_slice_t message);
static inf_err_t *restore_system_region(inf_server_t *server,
    const NginxInference__SystemRegion *m);
static const ProtobufCMessageDescriptor *kept_message(uint16_t method);

bool
inf_client_settings_have(uint16_t method)
{
    switch (method) {
    case INF_METHOD_LOG_SETTINGS:
    case INF_METHOD_TRACE_SETTING:
    case INF_METHOD_SYSTEM_SHM_STATUS:
    case INF_METHOD_SYSTEM_SHM_REGISTER:
    case INF_METHOD_SYSTEM_SHM_UNREGISTER:
    case INF_METHOD_CUDA_SHM_STATUS:
    case INF_METHOD_CUDA_SHM_REGISTER:
    case INF_METHOD_CUDA_SHM_UNREGISTER:
        return true;
    default:
        return false;
    }
}

void
inf_client_settings_note(inf_server_t *server, uint16_t method,
    const ProtobufCMessage *m)
{
    const Inference__LogSettingsRequest *log = (const void *) m;
    const Inference__TraceSettingRequest *trace = (const void *) m;
    const Inference__SystemSharedMemoryRegisterRequest *system =
        (const void *) m;
    const Inference__CudaSharedMemoryRegisterRequest *cuda = (const void *) m;
    const Inference__SystemSharedMemoryUnregisterRequest *system_gone =
        (const void *) m;
    const Inference__CudaSharedMemoryUnregisterRequest *cuda_gone =
        (const void *) m;

    if (server->journal == NULL) {
        return;
    }

    switch (method) {
    case INF_METHOD_LOG_SETTINGS:
        if (log->n_settings > 0) {
            note_log(server);
        }
        return;
    case INF_METHOD_TRACE_SETTING:
        if (trace->n_settings > 0) {
            note_trace(server, trace->model_name);
        }
        return;
    case INF_METHOD_SYSTEM_SHM_REGISTER:
        note_system_region(server, system->name);
        return;
    case INF_METHOD_CUDA_SHM_REGISTER:
        note_cuda_region(server, cuda);
        return;
    case INF_METHOD_SYSTEM_SHM_UNREGISTER:
        inf_journal_forget(server->journal, INF_METHOD_SYSTEM_SHM_REGISTER,
            system_gone->name[0] != '\0' ? system_gone->name : NULL);
        return;
    case INF_METHOD_CUDA_SHM_UNREGISTER:
        inf_journal_forget(server->journal, INF_METHOD_CUDA_SHM_REGISTER,
            cuda_gone->name[0] != '\0' ? cuda_gone->name : NULL);
        return;
    default:
        break;                          /* nothing was changed               */
    }
}

void
inf_client_settings_open(inf_server_t *server)
{
    set_regions(server, server->config->values);
    inf_shm_regions_set_restoring(server->regions, server->journal != NULL);
    inf_journal_replay(server->journal, INF_METHOD_LOG_SETTINGS, restore_one,
        server);
    inf_journal_replay(server->journal, INF_METHOD_TRACE_SETTING, restore_one,
        server);
}

void
inf_client_settings_restore_regions(inf_server_t *server)
{
    inf_journal_replay(server->journal, INF_METHOD_SYSTEM_SHM_REGISTER,
        restore_one, server);
    inf_journal_replay(server->journal, INF_METHOD_CUDA_SHM_REGISTER,
        restore_one, server);
    inf_shm_regions_set_restoring(server->regions, false);
}

void
inf_client_settings_configure(inf_server_t *server,
    const inf_core_config_t *config, bool log)
{
    if (log) {
        inf_core_config_apply_log(config);
        inf_journal_forget(server->journal, INF_METHOD_LOG_SETTINGS, NULL);
    }

    set_regions(server, config->values);
    if (!config->values->client_shared_memory) {
        inf_journal_forget(server->journal, INF_METHOD_SYSTEM_SHM_REGISTER,
            NULL);
        inf_journal_forget(server->journal, INF_METHOD_CUDA_SHM_REGISTER,
            NULL);
    }
}

static void
set_regions(inf_server_t *server, const NginxInference__CoreConfig *config)
{
    uint64_t bytes = config->shared_memory_region_bytes;

    if (bytes == 0) {
        bytes = (uint64_t) sysconf(_SC_PHYS_PAGES) / 4
            * (uint64_t) sysconf(_SC_PAGESIZE);
    }
    inf_shm_regions_bound(server->regions, bytes,
        config->shared_memory_copy_bytes);
    inf_shm_regions_switch(server->regions, config->client_shared_memory);
}

/* Notes the region with the identity of its object. */
static void
note_system_region(inf_server_t *server, const char *name)
{
    NginxInference__SystemRegion q = NGINX_INFERENCE__SYSTEM_REGION__INIT;
    inf_shm_region_t *region;

    inf_err_t *err = inf_shm_region_find(server->regions, inf_slice_str(name),
        0, 0, &region);
    if (err != NULL) {
        inf_err_log(inf_err_add(err, "a region will not come back should the"
            " core die"));
        return;
    }

    q.name = region->name;
    q.key = region->key;
    q.offset = region->offset;
    q.byte_size = region->byte_size;
    q.device = region->object.identity.device;
    q.inode = region->object.identity.inode;
    q.owner = region->object.identity.owner;
    inf_journal_keep_message(server->journal, INF_METHOD_SYSTEM_SHM_REGISTER,
        q.name, &q.base);
    inf_shm_region_unref(region);
}

/* Notes the fields known here; unknown fields of the message are dropped. */
static void
note_cuda_region(inf_server_t *server,
    const Inference__CudaSharedMemoryRegisterRequest *m)
{
    Inference__CudaSharedMemoryRegisterRequest q =
        INFERENCE__CUDA_SHARED_MEMORY_REGISTER_REQUEST__INIT;

    q.name = m->name;
    q.raw_handle = m->raw_handle;
    q.device_id = m->device_id;
    q.byte_size = m->byte_size;
    inf_journal_keep_message(server->journal, INF_METHOD_CUDA_SHM_REGISTER,
        q.name, &q.base);
}

static void
note_log(inf_server_t *server)
{
    Inference__LogSettingsRequest q;
    inf_arena_t arena;

    inf_arena_init(&arena);
    inf_err_t *err = inf_log_message_now(&arena, &q);
    if (err == NULL) {
        inf_journal_keep_message(server->journal, INF_METHOD_LOG_SETTINGS, "",
            &q.base);
    }
    inf_err_log(err);
    inf_arena_fini(&arena);
}

/* Notes the scope's own settings; without any, forgets the scope. */
static void
note_trace(inf_server_t *server, const char *model)
{
    Inference__TraceSettingRequest q;
    inf_arena_t arena;

    inf_arena_init(&arena);
    inf_err_t *err = inf_trace_message_own(inf_tracer_settings(server->tracer),
        model, &arena, &q);
    if (err == NULL && q.n_settings > 0) {
        inf_journal_keep_message(server->journal, INF_METHOD_TRACE_SETTING,
            model, &q.base);
    } else if (err == NULL) {
        inf_journal_forget(server->journal, INF_METHOD_TRACE_SETTING, model);
    }
    inf_err_log(err);
    inf_arena_fini(&arena);
}

static inf_err_t *
restore_one(void *userp, uint16_t method, inf_slice_t bytes)
{
    inf_server_t *server = userp;
    const ProtobufCMessageDescriptor *desc = kept_message(method);
    Inference__LogSettingsResponse answer;
    ProtobufCMessage *m;
    inf_arena_t arena;

    inf_err_t *err = desc != NULL ? inf_message_unpack(desc, bytes, &m)
        : inf_err_new(INF_ERR_INTERNAL, "method %u", method);
    if (err != NULL) {
        return err;
    }

    inf_arena_init(&arena);
    switch (method) {
    case INF_METHOD_LOG_SETTINGS:
        err = inf_log_message((const void *) m, &arena, &answer);
        break;
    case INF_METHOD_TRACE_SETTING:
        err = inf_trace_message_restore(inf_tracer_settings(server->tracer),
            (const void *) m);
        break;
    case INF_METHOD_SYSTEM_SHM_REGISTER:
        err = restore_system_region(server, (const void *) m);
        break;
    default:
        err = inf_shm_call(server->regions, method, m);
    }
    inf_arena_fini(&arena);
    inf_message_free(m);
    return err;
}

static inf_err_t *
restore_system_region(inf_server_t *server,
    const NginxInference__SystemRegion *m)
{
    const inf_shm_identity_t identity = { m->device, m->inode, m->owner };

    return inf_shm_restore_system(server->regions, m->name, m->key, m->offset,
        m->byte_size, &identity);
}

/* NULL: nothing is kept of this method. */
static const ProtobufCMessageDescriptor *
kept_message(uint16_t method)
{
    switch (method) {
    case INF_METHOD_LOG_SETTINGS:
        return &inference__log_settings_request__descriptor;
    case INF_METHOD_TRACE_SETTING:
        return &inference__trace_setting_request__descriptor;
    case INF_METHOD_SYSTEM_SHM_REGISTER:
        return &nginx_inference__system_region__descriptor;
    case INF_METHOD_CUDA_SHM_REGISTER:
        return &inference__cuda_shared_memory_register_request__descriptor;
    default:
        return NULL;
    }
}
