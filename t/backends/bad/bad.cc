/*
 * bad.cc - a backend that breaks the rules where it is told to.
 *
 * The word after `bad` in the backend's settings or in the model's parameters
 * says how; t/34-bad-plugins has one test for each.  A fault of the library
 * itself is a macro: BAD_NO_EXECUTE, BAD_CONSTRUCTOR, BAD_UNDEFINED, BAD_MAJOR
 * and BAD_MINOR (what it was compiled for).
 */

#include <climits>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

#include "triton/core/tritonbackend.h"

#ifndef BAD_MAJOR
#define BAD_MAJOR TRITONBACKEND_API_VERSION_MAJOR
#endif
#ifndef BAD_MINOR
#define BAD_MINOR TRITONBACKEND_API_VERSION_MINOR
#endif

#define FINAL TRITONSERVER_RESPONSE_COMPLETE_FINAL

namespace {

struct Answer {
    TRITONBACKEND_Response *response;
    TRITONSERVER_Error     *err;
};

bool
has(TRITONSERVER_Message *message, const char *word)
{
    const char *text;
    size_t      size;

    TRITONSERVER_MessageSerializeToJson(message, &text, &size);
    return strstr(text, (std::string("\"bad\":\"") + word + "\"").c_str())
        || strstr(text, (std::string("\"bad\":{\"string_value\":\"") + word
            + "\"}").c_str());
}

bool
told(TRITONBACKEND_Backend *backend, const char *word)
{
    TRITONSERVER_Message *message;

    return TRITONBACKEND_BackendConfig(backend, &message) == nullptr
        && has(message, word);
}

bool
told(TRITONBACKEND_Model *model, const char *word)
{
    TRITONSERVER_Message *message;

    if (TRITONBACKEND_ModelConfig(model, 1, &message) != nullptr) {
        return false;
    }

    bool yes = has(message, word);

    TRITONSERVER_MessageDelete(message);
    return yes;
}

TRITONBACKEND_Model *
model_of(TRITONBACKEND_ModelInstance *instance)
{
    TRITONBACKEND_Model *model = nullptr;

    TRITONBACKEND_ModelInstanceModel(instance, &model);
    return model;
}

TRITONSERVER_Error *
set_config(TRITONBACKEND_Model *model, const std::string &json)
{
    TRITONSERVER_Message *message;

    TRITONSERVER_MessageNewFromSerializedJson(&message, json.data(),
        json.size());
    TRITONSERVER_Error *err = TRITONBACKEND_ModelSetConfig(model, 1, message);
    TRITONSERVER_MessageDelete(message);
    return err;
}

void
send(TRITONBACKEND_Response *response, TRITONSERVER_Error *err,
    uint32_t flags = FINAL)
{
    TRITONSERVER_ErrorDelete(TRITONBACKEND_ResponseSend(response, flags,
        err));
    TRITONSERVER_ErrorDelete(err);
}

/* An output OUT with that shape, and size bytes of zeros (0: none asked). */
TRITONSERVER_Error *
put(TRITONBACKEND_Response *response, const char *name,
    TRITONSERVER_DataType type, const int64_t *shape, uint32_t dims,
    uint64_t size)
{
    TRITONBACKEND_Output   *out;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t                 id = 0;
    void                   *to;

    TRITONSERVER_Error *err = TRITONBACKEND_ResponseOutput(response, &out,
        name, type, shape, dims);
    if (err != nullptr || size == 0) {
        return err;
    }

    err = TRITONBACKEND_OutputBuffer(out, &to, size, &memory, &id);
    if (err == nullptr) {
        memset(to, type == TRITONSERVER_TYPE_BYTES ? 0xff : 0, size);
    }
    return err;
}

/* The fault of the answer. */
TRITONSERVER_Error *
fill(TRITONBACKEND_Model *model, TRITONBACKEND_Response *response)
{
    const int64_t four[1] = { 4 };
    const int64_t minus[1] = { -1 };
    const int64_t huge[2] = { INT64_MAX, INT64_MAX };
    int64_t       deep[100] = { 0 };
    const auto    fp32 = TRITONSERVER_TYPE_FP32;

    if (told(model, "unknown-output")) {
        return put(response, "NOBODY", fp32, four, 1, 16);
    }
    if (told(model, "negative-shape")) {
        return put(response, "OUT", fp32, minus, 1, 16);
    }
    if (told(model, "huge-shape")) {
        return put(response, "OUT", fp32, huge, 2, 16);
    }
    if (told(model, "deep-shape")) {
        return put(response, "OUT", fp32, deep, 100, 16);
    }
    if (told(model, "short-data")) {
        return put(response, "OUT", fp32, four, 1, 4);
    }
    if (told(model, "long-data")) {
        return put(response, "OUT", fp32, four, 1, 64);
    }
    if (told(model, "no-buffer")) {
        return put(response, "OUT", fp32, four, 1, 0);
    }
    if (told(model, "huge-data")) {
        return put(response, "OUT", fp32, four, 1, UINT64_MAX - 7);
    }
    if (told(model, "large-data")) {
        return put(response, "OUT", fp32, four, 1, UINT64_C(1) << 44);
    }
    if (told(model, "no-datatype")) {
        return put(response, "OUT", static_cast<TRITONSERVER_DataType>(99),
            four, 1, 16);
    }
    if (told(model, "invalid-datatype")) {
        return put(response, "OUT", TRITONSERVER_TYPE_INVALID, four, 1, 16);
    }
    if (told(model, "broken-bytes")) {
        return put(response, "OUT", TRITONSERVER_TYPE_BYTES, four, 1, 16);
    }
    if (told(model, "output-twice")) {
        TRITONSERVER_ErrorDelete(put(response, "OUT", fp32, four, 1, 16));
        return put(response, "OUT", fp32, four, 1, 16);
    }
    if (told(model, "binary-error")) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL,
            "not \xff\xfe a text \" \\ \n");
    }
    if (told(model, "binary-parameter")) {
        TRITONBACKEND_ResponseSetStringParameter(response, "a\xff\"",
            "\x01\xfe\"\\");
    }
    return put(response, "OUT", fp32, four, 1, 16);
}

[[maybe_unused]] void
answer(TRITONBACKEND_Model *model, TRITONBACKEND_Request *request)
{
    TRITONBACKEND_Response *response, *other;

    TRITONBACKEND_ResponseNew(&response, request);
    if (told(model, "after-final")) {
        TRITONBACKEND_ResponseNew(&other, request);
        send(response, fill(model, response));
        send(other, fill(model, other), 0);
        return;
    }
    if (told(model, "final-twice")) {
        TRITONBACKEND_ResponseFactory *factory;

        TRITONBACKEND_ResponseFactoryNew(&factory, request);
        send(response, fill(model, response));
        TRITONBACKEND_ResponseFactorySendFlags(factory, FINAL);
        TRITONBACKEND_ResponseFactoryDelete(factory);
        return;
    }

    send(response, fill(model, response));
    if (told(model, "send-twice")) {
        TRITONSERVER_Error *err = TRITONBACKEND_ResponseSend(response, FINAL,
            nullptr);
        TRITONSERVER_LogMessage(TRITONSERVER_LOG_WARN, __FILE__, __LINE__,
            err != nullptr ? "rejected" : "taken twice");
        TRITONSERVER_ErrorDelete(err);
    }
}

[[maybe_unused]] void
release(TRITONBACKEND_Model *model, TRITONBACKEND_Request *request)
{
    if (told(model, "release-flags")) {
        TRITONSERVER_Error *err = TRITONBACKEND_RequestRelease(request, 0);
        TRITONSERVER_Error *too = TRITONBACKEND_RequestRelease(request, 64);

        TRITONSERVER_LogMessage(TRITONSERVER_LOG_WARN, __FILE__, __LINE__,
            err == nullptr && too != nullptr ? "released once" : "otherwise");
        TRITONSERVER_ErrorDelete(err);
        TRITONSERVER_ErrorDelete(too);
        return;
    }
    TRITONSERVER_ErrorDelete(TRITONBACKEND_RequestRelease(request,
        TRITONSERVER_REQUEST_RELEASE_ALL));
}

#ifdef BAD_CONSTRUCTOR
struct Constructed {
    Constructed() { throw std::runtime_error("thrown by a constructor"); }
} constructed;
#endif

}  // namespace

extern "C" {

#ifdef BAD_UNDEFINED
TRITONSERVER_Error *TRITONBACKEND_NoSuchFunction(void);
#endif

TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend)
{
    uint32_t major, minor;

    TRITONBACKEND_ApiVersion(&major, &minor);
    if (major != BAD_MAJOR || minor < BAD_MINOR) {
        char text[128];

        snprintf(text, sizeof(text), "compiled for version %u.%u of the"
            " interface, the core has %u.%u", static_cast<unsigned>(BAD_MAJOR),
            static_cast<unsigned>(BAD_MINOR), major, minor);
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED, text);
    }
#ifdef BAD_UNDEFINED
    return TRITONBACKEND_NoSuchFunction();
#endif
    if (told(backend, "initialize-error")) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL,
            "no licence was found");
    }
    if (told(backend, "initialize-throw")) {
        throw std::runtime_error("thrown by Initialize");
    }
    return nullptr;
}

TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend *backend,
    TRITONBACKEND_BackendAttribute *attributes)
{
    if (told(backend, "unknown-kind")) {
        TRITONSERVER_ErrorDelete(
            TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(attributes,
            static_cast<TRITONSERVER_InstanceGroupKind>(99), 1, nullptr, 0));
    }
    if (told(backend, "endless-group")) {
        TRITONSERVER_ErrorDelete(
            TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(attributes,
            TRITONSERVER_INSTANCEGROUPKIND_CPU, UINT64_MAX, nullptr, 0));
    }
    if (told(backend, "attribute-throw")) {
        throw std::out_of_range("thrown by GetBackendAttribute");
    }
    return nullptr;
}

TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_Finalize(TRITONBACKEND_Backend *backend)
{
    if (told(backend, "finalize-throw")) {
        throw std::logic_error("thrown by Finalize");
    }
    return nullptr;
}

TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model)
{
    if (told(model, "model-throw")) {
        throw std::invalid_argument("thrown by ModelInitialize");
    }
    if (told(model, "model-throw-number")) {
        throw 42;
    }
    if (told(model, "malformed-config")) {
        return set_config(model, "{\"max_batch_size\":");
    }
    if (told(model, "empty-config")) {
        return set_config(model, "");
    }
    if (told(model, "unknown-field")) {
        return set_config(model, "{\"max_batch_sighs\":1}");
    }
    if (told(model, "deep-config")) {
        return set_config(model, std::string(100000, '['));
    }
    if (told(model, "absurd-memory")) {
        TRITONSERVER_BufferAttributes *rows[2];

        for (auto &row : rows) {
            TRITONSERVER_BufferAttributesNew(&row);
            TRITONSERVER_BufferAttributesSetByteSize(row, UINT64_MAX);
            TRITONSERVER_BufferAttributesSetMemoryType(row,
                static_cast<TRITONSERVER_MemoryType>(77));
        }
        TRITONSERVER_Error *err = TRITONBACKEND_ModelReportMemoryUsage(model,
            rows, 2);
        for (auto row : rows) {
            TRITONSERVER_BufferAttributesDelete(row);
        }
        return err;
    }
    if (told(model, "absurd-config")) {
        return set_config(model, "{\"max_batch_size\":-3,\"input\":[{"
            "\"name\":\"IN\",\"data_type\":\"TYPE_FP32\",\"dims\":[0]}]}");
    }
    return nullptr;
}

TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model)
{
    if (told(model, "model-finalize-throw")) {
        throw std::logic_error("thrown by ModelFinalize");
    }
    return nullptr;
}

TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance)
{
    if (told(model_of(instance), "instance-throw")) {
        throw std::runtime_error("thrown by ModelInstanceInitialize");
    }
    return nullptr;
}

TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance)
{
    if (told(model_of(instance), "instance-finalize-throw")) {
        throw std::logic_error("thrown by ModelInstanceFinalize");
    }
    return nullptr;
}

TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceReady(TRITONBACKEND_ModelInstance *instance)
{
    if (told(model_of(instance), "ready-throw")) {
        throw std::runtime_error("thrown by ModelInstanceReady");
    }
    return nullptr;
}

#ifndef BAD_NO_EXECUTE
TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
    TRITONBACKEND_Request **requests, const uint32_t count)
{
    TRITONBACKEND_Model *model = model_of(instance);

    if (told(model, "execute-throw")) {
        throw std::runtime_error("thrown by Execute");
    }
    if (told(model, "execute-throw-number")) {
        throw 42;
    }

    for (uint32_t i = 0; i < count; i++) {
        if (!told(model, "no-response")) {
            answer(model, requests[i]);
        }
        if (!told(model, "throw-after-answer")
            && !told(model, "error-after-answer"))
        {
            release(model, requests[i]);
            requests[i] = nullptr;      /* as many do                        */
        }
    }

    if (told(model, "throw-after-answer") || told(model,
        "throw-after-release"))
    {
        throw std::runtime_error("thrown after the answer");
    }
    if (told(model, "error-after-answer") || told(model,
        "error-after-release"))
    {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL,
            "failed after the answer");
    }
    return nullptr;
}
#endif

}  // extern "C"
