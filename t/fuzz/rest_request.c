/* Any body of a call that REST spells its own way: an error, or a message that
   packs and unpacks. */
#include <stdint.h>
#include <stdlib.h>

#include "core/include/channel.h"
#include "core/proto/message.h"
#include "core/server/model_control.h"
#include "core/server/rest_request.h"
#include "core_calls.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
need(inf_err_t *err)
{
    if (err != NULL) {
        abort();
    }
}

static void
try_override(const ProtobufCMessage *m)
{
    inf_override_t *o = NULL;

    inf_err_t *err = inf_model_control_override((const void *) m, &o);
    if (err == NULL && o != NULL) {
        inf_override_free(o);
    }
    inf_err_free(err);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct {
        uint16_t                          method;
        const ProtobufCMessageDescriptor *message;
    } calls[] = {
        { INF_METHOD_REPOSITORY_INDEX,
          &inference__repository_index_request__descriptor },
        { INF_METHOD_REPOSITORY_MODEL_LOAD,
          &inference__repository_model_load_request__descriptor },
        { INF_METHOD_REPOSITORY_MODEL_UNLOAD,
          &inference__repository_model_unload_request__descriptor },
        { INF_METHOD_TRACE_SETTING,
          &inference__trace_setting_request__descriptor },
        { INF_METHOD_LOG_SETTINGS,
          &inference__log_settings_request__descriptor },
        { INF_METHOD_SYSTEM_SHM_REGISTER,
          &inference__system_shared_memory_register_request__descriptor },
        { INF_METHOD_SYSTEM_SHM_UNREGISTER,
          &inference__system_shared_memory_unregister_request__descriptor },
        { INF_METHOD_CUDA_SHM_REGISTER,
          &inference__cuda_shared_memory_register_request__descriptor },
        { INF_METHOD_CUDA_SHM_UNREGISTER,
          &inference__cuda_shared_memory_unregister_request__descriptor },
        { INF_METHOD_ARCHIVE_LOAD,
          &nginx_inference__archive_load_request__descriptor },
        { INF_METHOD_ARCHIVE_UNLOAD,
          &nginx_inference__archive_unload_request__descriptor }
    };

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        ProtobufCMessage *m;
        ProtobufCMessage *again;
        inf_buf_t bytes;

        inf_err_t *err = inf_rest_request(calls[i].method,
            calls[i].message, inf_slice((const char *) data, size), &m);
        if (err != NULL) {
            inf_err_free(err);
            continue;
        }

        if (calls[i].method == INF_METHOD_REPOSITORY_MODEL_LOAD) {
            try_override(m);
        }
        inf_buf_init(&bytes);
        need(inf_message_pack(m, &bytes));
        need(inf_message_unpack(m->descriptor, inf_buf_slice(&bytes),
            &again));
        inf_message_free(again);
        inf_message_free(m);
        inf_buf_fini(&bytes);
    }
    return 0;
}
