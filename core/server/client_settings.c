#include "core/server/client_settings.h"

#include <assert.h>

#include "core/include/channel.h"
#include "core/proto/message.h"
#include "core/server/journal.h"
#include "core/server/log_message.h"
#include "core/server/shm_calls.h"
#include "core/server/trace_message.h"

static void note_system_region(inf_server_t *server,
    const Inference__SystemSharedMemoryRegisterRequest *m);
static void note_cuda_region(inf_server_t *server,
    const Inference__CudaSharedMemoryRegisterRequest *m);
static void note_log(inf_server_t *server);
static void note_trace(inf_server_t *server, const char *model);
static void keep(inf_server_t *server, uint16_t method, const char *name,
    const ProtobufCMessage *m);
static inf_err_t *restore_one(void *userp, uint16_t method,
    inf_slice_t message);
static const ProtobufCMessageDescriptor *kept_message(uint16_t method);

bool
inf_client_settings_have(uint16_t method)
{
    return kept_message(method) != NULL
        || method == INF_METHOD_SYSTEM_SHM_UNREGISTER
        || method == INF_METHOD_CUDA_SHM_UNREGISTER;
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
        note_system_region(server, system);
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
        assert(!inf_client_settings_have(method));
    }
}

void
inf_client_settings_configured(inf_server_t *server, bool log, bool regions)
{
    if (log) {
        inf_journal_forget(server->journal, INF_METHOD_LOG_SETTINGS, NULL);
    }
    if (!regions) {
        inf_journal_forget(server->journal, INF_METHOD_SYSTEM_SHM_REGISTER,
            NULL);
        inf_journal_forget(server->journal, INF_METHOD_CUDA_SHM_REGISTER,
            NULL);
    }
}

void
inf_client_settings_restore(inf_server_t *server)
{
    static const uint16_t methods[] = {
        INF_METHOD_LOG_SETTINGS, INF_METHOD_TRACE_SETTING,
        INF_METHOD_SYSTEM_SHM_REGISTER, INF_METHOD_CUDA_SHM_REGISTER
    };

    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        inf_journal_replay(server->journal, methods[i], restore_one, server);
    }
}

/* Unknown fields of a client's message are not kept. */
static void
note_system_region(inf_server_t *server,
    const Inference__SystemSharedMemoryRegisterRequest *m)
{
    Inference__SystemSharedMemoryRegisterRequest q =
        INFERENCE__SYSTEM_SHARED_MEMORY_REGISTER_REQUEST__INIT;

    q.name = m->name;
    q.key = m->key;
    q.offset = m->offset;
    q.byte_size = m->byte_size;
    keep(server, INF_METHOD_SYSTEM_SHM_REGISTER, q.name, &q.base);
}

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
    keep(server, INF_METHOD_CUDA_SHM_REGISTER, q.name, &q.base);
}

static void
note_log(inf_server_t *server)
{
    Inference__LogSettingsRequest q;
    inf_arena_t arena;

    inf_arena_init(&arena);
    inf_err_t *err = inf_log_message_now(&arena, &q);
    if (err == NULL) {
        keep(server, INF_METHOD_LOG_SETTINGS, "", &q.base);
    }
    inf_err_log(err);
    inf_arena_fini(&arena);
}

/* The scope's own settings; none: it is as configured again. */
static void
note_trace(inf_server_t *server, const char *model)
{
    Inference__TraceSettingRequest q;
    inf_arena_t arena;

    inf_arena_init(&arena);
    inf_err_t *err = inf_trace_message_own(inf_tracer_settings(server->tracer),
        model, &arena, &q);
    if (err == NULL && q.n_settings > 0) {
        keep(server, INF_METHOD_TRACE_SETTING, model, &q.base);
    } else if (err == NULL) {
        inf_journal_forget(server->journal, INF_METHOD_TRACE_SETTING, model);
    }
    inf_err_log(err);
    inf_arena_fini(&arena);
}

static void
keep(inf_server_t *server, uint16_t method, const char *name,
    const ProtobufCMessage *m)
{
    inf_buf_t bytes;

    inf_buf_init(&bytes);
    inf_err_t *err = inf_message_pack(m, &bytes);
    if (err == NULL) {
        err = inf_buf_status(&bytes);
    }
    if (err == NULL) {
        inf_journal_keep(server->journal, method, name,
            inf_buf_slice(&bytes));
    }
    inf_err_log(err);
    inf_buf_fini(&bytes);
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
    default:
        err = inf_shm_call(server->regions, method, m);
    }
    inf_arena_fini(&arena);
    inf_message_free(m);
    return err;
}

/* NULL: of this method nothing is kept. */
static const ProtobufCMessageDescriptor *
kept_message(uint16_t method)
{
    switch (method) {
    case INF_METHOD_LOG_SETTINGS:
        return &inference__log_settings_request__descriptor;
    case INF_METHOD_TRACE_SETTING:
        return &inference__trace_setting_request__descriptor;
    case INF_METHOD_SYSTEM_SHM_REGISTER:
        return &inference__system_shared_memory_register_request__descriptor;
    case INF_METHOD_CUDA_SHM_REGISTER:
        return &inference__cuda_shared_memory_register_request__descriptor;
    default:
        return NULL;
    }
}
