/*
 * throwing.cc - a batch strategy whose functions throw, all but the first;
 * it too where the model's parameters say "batcher-throws".
 */

#include <cstring>
#include <stdexcept>

#include "triton/core/tritonbackend.h"

static int state;

static bool
told(TRITONBACKEND_Model *model)
{
    TRITONSERVER_Message *message;
    const char *text;
    size_t size;

    if (TRITONBACKEND_ModelConfig(model, 1, &message) != nullptr) {
        return false;
    }
    TRITONSERVER_MessageSerializeToJson(message, &text, &size);
    bool hit = memmem(text, size, "batcher-throws", 14) != nullptr;
    TRITONSERVER_MessageDelete(message);
    return hit;
}

extern "C" {

TRITONSERVER_Error *
TRITONBACKEND_ModelBatcherInitialize(TRITONBACKEND_Batcher **batcher,
    TRITONBACKEND_Model *model)
{
    if (told(model)) {
        throw std::runtime_error("not today");
    }
    *batcher = reinterpret_cast<TRITONBACKEND_Batcher *>(&state);
    return nullptr;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelBatcherFinalize(TRITONBACKEND_Batcher *)
{
    throw 1;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelBatchInitialize(const TRITONBACKEND_Batcher *,
    void **userp)
{
    *userp = &state;
    return nullptr;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelBatchIncludeRequest(TRITONBACKEND_Request *, void *,
    bool *should_include)
{
    *should_include = true;
    throw std::runtime_error("cannot judge");
}

TRITONSERVER_Error *
TRITONBACKEND_ModelBatchFinalize(void *)
{
    throw std::runtime_error("never ends");
}

}
