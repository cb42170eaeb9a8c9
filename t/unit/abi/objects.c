#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/abi/objects.h"
#include "core/proto/message.h"
#include "core/proto/text_format.h"

/* One model, one request, one sink: what a backend sees, without a core. */
typedef struct {
    inf_model_t         *model;
    inf_instance_spec_t  spec;
    inf_instance_t       instance;
    inf_request_t        request;
    inf_factory_t        factory;
    int                  released;
    int                  freed;
    int                  bare;
    uint32_t             flags;
    inf_err_code_t       code;
    char                 text[128];
    bool                 fail_alloc;
    int                  buffers;       /* allocated, not yet released       */
} world_t;

static world_t w;

static void
on_released(void *userp, inf_request_t *r, uint32_t flags)
{
    (void) userp;
    (void) r;
    (void) flags;
    w.released++;
}

static inf_err_t *
sink_alloc(void *userp, inf_output_t *out, size_t size)
{
    (void) userp;
    if (w.fail_alloc) {
        out->base = (void *) 1;
        return inf_err_new(INF_ERR_UNAVAILABLE, "arena is full");
    }

    out->memory_type = INF_MEMORY_CPU;      /* the preference does not count */
    out->memory_id = 0;
    out->base = size > 0 ? malloc(size) : NULL;
    w.buffers += out->base != NULL;
    return NULL;
}

static void
sink_release(void *userp, inf_output_t *out)
{
    (void) userp;
    w.buffers--;
    free(out->base);
}

static void
sink_complete(void *userp, inf_response_t *response, uint32_t flags)
{
    (void) userp;
    w.flags |= flags;
    if (response == NULL) {
        w.bare++;
        return;
    }
    if (response->err != NULL) {
        w.code = inf_err_code(response->err);
        strncpy(w.text, inf_err_msg(response->err), sizeof(w.text) - 1);
    }
    inf_response_free(response);
}

static void
sink_factory_free(void *userp, inf_factory_t *f)
{
    (void) userp;
    (void) f;
    w.freed++;
}

static const inf_sink_ops_t sink = {
    .alloc = sink_alloc, .release = sink_release, .complete = sink_complete,
    .factory_free = sink_factory_free
};
static const inf_request_ops_t request_ops = { .released = on_released };

static const char config[] =
    "name: 'm' max_batch_size: 8\n"
    "input { name: 'A' data_type: TYPE_FP32 dims: [ -1, 2 ] }\n"
    "output [ { name: 'O' data_type: TYPE_FP32 dims: -1 },\n"
    "  { name: 'R' data_type: TYPE_FP32 dims: [ 2, -1, 3 ]\n"
    "    reshape { shape: [ -1, 6 ] } },\n"
    "  { name: 'E' data_type: TYPE_FP32 dims: 1 reshape { shape: [ ] } } ]\n";

static int
setup(void **state)
{
    (void) state;
    ProtobufCMessage *msg;

    memset(&w, 0, sizeof(w));
    assert_null(inf_text_parse(&inference__model_config__descriptor,
        inf_slice_str(config), "test", &msg));
    w.model = inf_model_new("m", 4, "/models/m");
    assert_null(inf_model_config_new((void *) msg, NULL, "test",
        &w.model->config));
    assert_null(inf_config_tensors_new((const void *) msg,
        &w.model->tensors));
    w.spec.name = (char []) { "m_0" };
    w.instance.model = w.model;
    w.instance.spec = &w.spec;
    inf_request_init(&w.request);
    inf_factory_init(&w.factory);
    inf_factory_start(&w.factory, w.model, "id", &sink, NULL);
    w.request.factory = &w.factory;
    w.request.ops = &request_ops;
    w.request.model = w.model;
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    if (w.request.factory != NULL) {
        inf_request_release(&w.request, 1);
    }
    assert_int_equal(w.released, 1);
    assert_int_equal(w.freed, 1);
    assert_int_equal(w.buffers, 0);
    inf_request_fini(&w.request);
    inf_factory_fini(&w.factory);
    inf_model_free(w.model);
    return 0;
}

static TRITONBACKEND_Request *
request(void)
{
    return inf_abi_as_request(&w.request);
}

static void
fails(TRITONSERVER_Error *err, TRITONSERVER_Error_Code code, const char *text)
{
    assert_non_null(err);
    assert_int_equal(TRITONSERVER_ErrorCode(err), code);
    if (strstr(TRITONSERVER_ErrorMessage(err), text) == NULL) {
        fail_msg("\"%s\" not in \"%s\"", text,
            TRITONSERVER_ErrorMessage(err));
    }
    TRITONSERVER_ErrorDelete(err);
}

/* ---- request ------------------------------------------------------------- */

static void
input_buffers_beyond_the_last_are_empty_not_errors(void **state)
{
    (void) state;
    static const char bytes[24];
    int64_t shape[3] = { 1, 3, 2 };
    const void *buffer;
    uint64_t size;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_GPU;
    int64_t id = 9;
    TRITONBACKEND_Input *input;

    inf_input_t *in = inf_request_add_input(&w.request, "A", 1, INF_TYPE_FP32,
        shape, 3);
    assert_null(TRITONBACKEND_RequestInput(request(), "A", &input));
    assert_null(TRITONBACKEND_InputBuffer(input, 0, &buffer, &size, &type,
        &id));                                  /* no data at all            */
    assert_null(buffer);
    assert_int_equal(size, 0);
    assert_int_equal(type, TRITONSERVER_MEMORY_CPU);
    assert_int_equal(id, 0);

    for (int i = 0; i < 2; i++) {
        assert_null(inf_request_add_data(&w.request, in, &(inf_buffer_t) {
            .base = bytes + 8 * i, .size = 8, .memory_id = i }));
    }
    assert_null(TRITONBACKEND_InputBuffer(input, 1, &buffer, &size, &type,
        &id));
    assert_ptr_equal(buffer, bytes + 8);
    assert_int_equal(size, 8);
    assert_int_equal(id, 1);
    type = TRITONSERVER_MEMORY_GPU;
    assert_null(TRITONBACKEND_InputBufferForHostPolicy(input, NULL,
        UINT32_MAX, &buffer, &size, &type, &id));
    assert_null(buffer);
    assert_int_equal(size, 0);
    assert_int_equal(type, TRITONSERVER_MEMORY_CPU);
}

static void
any_input_property_may_be_left_out(void **state)
{
    (void) state;
    int64_t shape[3] = { 1, 3, 2 };
    const char *name;
    TRITONSERVER_DataType type;
    const int64_t *dims;
    uint32_t count, buffers;
    uint64_t size;
    TRITONBACKEND_Input *input;

    inf_input_t *in = inf_request_add_input(&w.request, "A", 1, INF_TYPE_FP32,
        shape, 3);
    static const int64_t reshaped[2] = { 1, 6 };
    in->model_shape = reshaped;
    in->model_dim_count = 2;
    assert_null(TRITONBACKEND_RequestInputByIndex(request(), 0, &input));
    assert_null(TRITONBACKEND_InputProperties(input, NULL, NULL, NULL, NULL,
        NULL, NULL));
    assert_null(TRITONBACKEND_InputPropertiesForHostPolicy(input, NULL, &name,
        &type, &dims, &count, &size, &buffers));
    assert_string_equal(name, "A");
    assert_int_equal(type, TRITONSERVER_TYPE_FP32);
    assert_int_equal(count, 2);
    assert_int_equal(dims[1], 6);
    assert_int_equal(size, 0);
    assert_int_equal(buffers, 0);
}

static void
unknown_names_and_indexes_are_invalid(void **state)
{
    (void) state;
    TRITONBACKEND_Input *input = (void *) 1;
    const char *name;
    const void *value;
    TRITONSERVER_ParameterType type;
    uint32_t count;

    fails(TRITONBACKEND_RequestInput(request(), "X", &input),
        TRITONSERVER_ERROR_INVALID_ARG,
        "[request id: <id_unknown>] unknown request input name X");
    assert_null(input);
    fails(TRITONBACKEND_RequestInputByIndex(request(), 0, &input),
        TRITONSERVER_ERROR_INVALID_ARG, "[request id: <id_unknown>] out of"
        " bounds index 0: request has 0 inputs");
    fails(TRITONBACKEND_RequestInputName(request(), 7, &name),
        TRITONSERVER_ERROR_INVALID_ARG, "[request id: <id_unknown>] out of"
        " bounds index 7: request has 0 inputs");
    fails(TRITONBACKEND_RequestOutputName(request(), 0, &name),
        TRITONSERVER_ERROR_INVALID_ARG, "[request id: <id_unknown>] out of"
        " bounds index 0: request has 0 requested outputs");
    fails(TRITONBACKEND_RequestParameter(request(), 0, &name, &type, &value),
        TRITONSERVER_ERROR_INVALID_ARG,
        "out of bounds index 0: request has 0 parameters");

    assert_null(inf_request_add_output(&w.request, "O", 1));
    assert_null(inf_request_add_output(&w.request, "R", 1));
    assert_null(TRITONBACKEND_RequestOutputCount(request(), &count));
    assert_int_equal(count, 2);
    assert_null(TRITONBACKEND_RequestOutputName(request(), 0, &name));
    assert_string_equal(name, "O");             /* normalising sorts them    */
}

static void
identity_and_correlation_of_a_request(void **state)
{
    (void) state;
    const char *id = NULL, *text;
    uint64_t number;
    bool cancelled = true;
    TRITONSERVER_InferenceTrace *trace = (void *) 1;
    uint32_t flags;

    assert_null(TRITONBACKEND_RequestId(request(), &id));
    assert_string_equal(id, "");
    w.request.correlation_id = 42;
    assert_null(TRITONBACKEND_RequestCorrelationId(request(), &number));
    assert_int_equal(number, 42);
    fails(TRITONBACKEND_RequestCorrelationIdString(request(), &text),
        TRITONSERVER_ERROR_INVALID_ARG, "[request id: <id_unknown>]"
        " correlation ID in request is not a string, id: 42");
    w.request.correlation_text = "abc";
    fails(TRITONBACKEND_RequestCorrelationId(request(), &number),
        TRITONSERVER_ERROR_INVALID_ARG, "[request id: <id_unknown>]"
        " correlation ID in request is not an unsigned int, id: abc");
    assert_null(TRITONBACKEND_RequestCorrelationIdString(request(), &text));
    assert_string_equal(text, "abc");
    w.request.flags = TRITONSERVER_REQUEST_FLAG_SEQUENCE_END;
    assert_null(TRITONBACKEND_RequestFlags(request(), &flags));
    assert_int_equal(flags, TRITONSERVER_REQUEST_FLAG_SEQUENCE_END);

    assert_null(TRITONBACKEND_RequestIsCancelled(request(), &cancelled));
    assert_false(cancelled);
    atomic_store(&w.factory.cancelled, true);
    assert_null(TRITONBACKEND_RequestIsCancelled(request(), &cancelled));
    assert_true(cancelled);
    assert_null(TRITONBACKEND_RequestTrace(request(), &trace));
    assert_null(trace);
}

static void
parameters_of_a_request_have_their_types(void **state)
{
    (void) state;
    inf_parameter_list_t *list = &w.request.parameters;
    const char *key;
    TRITONSERVER_ParameterType type;
    const void *value;
    uint32_t count;

    inf_parameter_add(list, &w.request.arena, "s", 1,
        INF_PARAMETER_STRING)->text = "text";
    inf_parameter_add(list, &w.request.arena, "i", 1,
        INF_PARAMETER_INT)->i = -5;
    inf_parameter_add(list, &w.request.arena, "i", 1,
        INF_PARAMETER_BOOL)->b = true;
    inf_parameter_add(list, &w.request.arena, "d", 1,
        INF_PARAMETER_DOUBLE)->d = 1.5;

    assert_null(TRITONBACKEND_RequestParameterCount(request(), &count));
    assert_int_equal(count, 4);
    assert_null(TRITONBACKEND_RequestParameter(request(), 0, &key, &type,
        &value));
    assert_int_equal(type, TRITONSERVER_PARAMETER_STRING);
    assert_string_equal(value, "text");
    assert_null(TRITONBACKEND_RequestParameter(request(), 1, &key, &type,
        &value));
    assert_int_equal(type, TRITONSERVER_PARAMETER_INT);
    assert_int_equal(*(const int64_t *) value, -5);
    assert_null(TRITONBACKEND_RequestParameter(request(), 2, &key, &type,
        &value));
    assert_string_equal(key, "i");
    assert_true(*(const bool *) value);
    assert_null(TRITONBACKEND_RequestParameter(request(), 3, &key, &type,
        &value));
    assert_float_equal(*(const double *) value, 1.5, 0);
}

/* scheduling.md 1.8 */
static void
a_reschedule_is_rejected_and_the_backend_keeps_the_request(void **state)
{
    (void) state;
    fails(TRITONBACKEND_RequestRelease(request(),
        TRITONSERVER_REQUEST_RELEASE_RESCHEDULE),
        TRITONSERVER_ERROR_INVALID_ARG, "RELEASE_RESCHEDULE");
    fails(TRITONBACKEND_RequestRelease(request(),
        TRITONSERVER_REQUEST_RELEASE_ALL
        | TRITONSERVER_REQUEST_RELEASE_RESCHEDULE),
        TRITONSERVER_ERROR_INVALID_ARG, "RELEASE_RESCHEDULE");
    assert_int_equal(w.released, 0);
    assert_null(TRITONBACKEND_RequestRelease(request(),
        TRITONSERVER_REQUEST_RELEASE_ALL));
    assert_int_equal(w.released, 1);
}

static void
a_release_without_flags_is_a_release(void **state)
{
    (void) state;
    assert_null(TRITONBACKEND_RequestRelease(request(), 0));
    assert_int_equal(w.released, 1);
}

static void
output_properties_are_unknown_without_a_client_that_knows(void **state)
{
    (void) state;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    int64_t id = 0;

    fails(TRITONBACKEND_RequestOutputBufferProperties(request(), "O", NULL,
        &type, &id), TRITONSERVER_ERROR_UNAVAILABLE, "");
}

/* ---- response ------------------------------------------------------------ */

static TRITONBACKEND_Response *
response(void)
{
    TRITONBACKEND_Response *r;
    assert_null(TRITONBACKEND_ResponseNew(&r, request()));
    return r;
}

static void
null_responses_are_rejected_or_ignored(void **state)
{
    (void) state;
    TRITONBACKEND_Output *out;
    int64_t dim = 1;

    fails(TRITONBACKEND_ResponseOutput(NULL, &out, "O",
        TRITONSERVER_TYPE_FP32, &dim, 1), TRITONSERVER_ERROR_INVALID_ARG, "");
    fails(TRITONBACKEND_ResponseSend(NULL, 1, NULL),
        TRITONSERVER_ERROR_INVALID_ARG, "");
    fails(TRITONBACKEND_ResponseSetStringParameter(NULL, "n", "v"),
        TRITONSERVER_ERROR_INVALID_ARG, "n");
    fails(TRITONBACKEND_ResponseSetIntParameter(NULL, "n", 1),
        TRITONSERVER_ERROR_INVALID_ARG, "n");
    fails(TRITONBACKEND_ResponseSetBoolParameter(NULL, "n", true),
        TRITONSERVER_ERROR_INVALID_ARG, "n");
    fails(TRITONBACKEND_ResponseSetDoubleParameter(NULL, "n", 1),
        TRITONSERVER_ERROR_INVALID_ARG, "n");
    assert_null(TRITONBACKEND_ResponseDelete(NULL));
    assert_null(TRITONBACKEND_ResponseFactoryDelete(NULL));
    TRITONSERVER_ErrorDelete(NULL);
    TRITONSERVER_ParameterDelete(NULL);
    assert_null(TRITONSERVER_MessageDelete(NULL));
    assert_null(TRITONSERVER_BufferAttributesDelete(NULL));
}

static void
only_the_models_outputs_can_be_made(void **state)
{
    (void) state;
    TRITONBACKEND_Response *r = response();
    TRITONBACKEND_Output *out = (void *) 1;
    int64_t dims[100] = { 1, 1 };

    fails(TRITONBACKEND_ResponseOutput(r, &out, "X", TRITONSERVER_TYPE_FP32,
        dims, 2), TRITONSERVER_ERROR_INVALID_ARG,
        "unexpected inference output 'X' for model 'm'");
    assert_null(out);
    fails(TRITONBACKEND_ResponseOutput(r, &out, "O", TRITONSERVER_TYPE_FP32,
        dims, 100), TRITONSERVER_ERROR_INVALID_ARG, "100 dimensions");
    fails(TRITONBACKEND_ResponseOutput(r, &out, "O",
        (TRITONSERVER_DataType) 77, dims, 2), TRITONSERVER_ERROR_INVALID_ARG,
        "datatype 77");
    assert_null(TRITONBACKEND_ResponseOutput(r, &out, "O",
        TRITONSERVER_TYPE_FP32, dims, 2));
    assert_null(TRITONBACKEND_ResponseOutput(r, &out, "O",
        TRITONSERVER_TYPE_FP32, dims, 2));      /* twice is accepted         */
    assert_int_equal(inf_as_response(r)->output_count, 2);
    assert_null(TRITONBACKEND_ResponseDelete(r));
}

static void
an_outputs_buffer_is_given_once(void **state)
{
    (void) state;
    TRITONBACKEND_Response *r = response();
    TRITONBACKEND_Output *out;
    void *buffer;
    int64_t dims[2] = { 1, 4 };
    int64_t id = 3;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_GPU;

    assert_null(TRITONBACKEND_ResponseOutput(r, &out, "O",
        TRITONSERVER_TYPE_FP32, dims, 2));
    assert_null(TRITONBACKEND_OutputBuffer(out, &buffer, 0, &type, &id));
    assert_null(buffer);                        /* size 0 may give NULL      */
    assert_null(TRITONBACKEND_OutputBuffer(out, &buffer, 16, &type, &id));
    assert_non_null(buffer);                    /* and may be asked again    */
    assert_int_equal(type, TRITONSERVER_MEMORY_CPU);
    assert_int_equal(id, 0);
    memset(buffer, 1, 16);
    fails(TRITONBACKEND_OutputBuffer(out, &buffer, 16, &type, &id),
        TRITONSERVER_ERROR_ALREADY_EXISTS, "output 'O'");
    assert_null(buffer);
    assert_int_equal(w.buffers, 1);

    assert_null(TRITONBACKEND_ResponseOutput(r, &out, "O",
        TRITONSERVER_TYPE_FP32, dims, 2));
    w.fail_alloc = true;
    fails(TRITONBACKEND_OutputBuffer(out, &buffer, 16, &type, &id),
        TRITONSERVER_ERROR_UNAVAILABLE, "arena is full");
    assert_null(buffer);
    w.fail_alloc = false;
    assert_null(TRITONBACKEND_OutputBuffer(out, &buffer, 16, &type, &id));
    assert_null(TRITONBACKEND_ResponseDelete(r));
    assert_int_equal(w.buffers, 0);
}

static void
the_client_reads_dims_not_reshape(void **state)
{
    (void) state;
    TRITONBACKEND_Response *r = response();
    TRITONBACKEND_Output *out;
    const int64_t shape[3] = { 3, 5, 6 };       /* batch, -1, 6              */
    const inf_output_t *o;

    assert_null(TRITONBACKEND_ResponseOutput(r, &out, "R",
        TRITONSERVER_TYPE_FP32, shape, 3));
    o = inf_as_output(out);
    assert_int_equal(o->dim_count, 4);
    assert_memory_equal(o->shape, ((int64_t[]) { 3, 2, 5, 3 }),
        4 * sizeof(int64_t));
    assert_null(TRITONBACKEND_ResponseOutput(r, &out, "E",
        TRITONSERVER_TYPE_FP32, shape, 1));     /* scalar per batch item     */
    o = inf_as_output(out);
    assert_int_equal(o->dim_count, 2);
    assert_memory_equal(o->shape, ((int64_t[]) { 3, 1 }),
        2 * sizeof(int64_t));
    fails(TRITONBACKEND_ResponseOutput(r, &out, "R", TRITONSERVER_TYPE_FP32,
        shape, 2), TRITONSERVER_ERROR_INVALID_ARG, "reshape says 3");
    fails(TRITONBACKEND_ResponseOutput(r, &out, "R", TRITONSERVER_TYPE_FP32,
        shape, 0), TRITONSERVER_ERROR_INVALID_ARG, "0 dimensions");

    const char *name;
    const int64_t *dims;
    uint64_t count;
    TRITONSERVER_DataType type;
    assert_null(TRITONBACKEND_InferenceResponseOutput(r, 1, &name, &type,
        &dims, &count));
    assert_string_equal(name, "E");
    assert_null(TRITONBACKEND_InferenceResponseOutputByName(r, "R", &type,
        &dims, &count));
    assert_int_equal(count, 4);
    fails(TRITONBACKEND_InferenceResponseOutput(r, 2, &name, &type, &dims,
        &count), TRITONSERVER_ERROR_INVALID_ARG, "index 2");
    fails(TRITONBACKEND_InferenceResponseOutputByName(r, "O", &type, &dims,
        &count), TRITONSERVER_ERROR_NOT_FOUND, "O");
    assert_null(TRITONBACKEND_ResponseDelete(r));
}

static void
parameters_of_a_response_keep_order_and_repeats(void **state)
{
    (void) state;
    TRITONBACKEND_Response *r = response();
    const inf_parameter_list_t *list = &inf_as_response(r)->parameters;
    char value[] = "value";

    assert_null(TRITONBACKEND_ResponseSetStringParameter(r, "s", value));
    value[0] = '?';
    assert_null(TRITONBACKEND_ResponseSetIntParameter(r, "s", -1));
    assert_null(TRITONBACKEND_ResponseSetBoolParameter(r, "b", true));
    assert_null(TRITONBACKEND_ResponseSetDoubleParameter(r, "d", 0.25));
    assert_int_equal(list->count, 4);
    assert_string_equal(inf_parameter_at(list, 0)->text, "value");
    assert_int_equal(inf_parameter_at(list, 0)->text_len, 5);
    assert_int_equal(inf_parameter_at(list, 1)->i, -1);
    assert_true(inf_parameter_at(list, 2)->b);
    assert_float_equal(inf_parameter_at(list, 3)->d, 0.25, 0);
    assert_null(TRITONBACKEND_ResponseDelete(r));
}

static void
sending_consumes_the_response_and_not_the_error(void **state)
{
    (void) state;
    TRITONBACKEND_Response *r = response();
    TRITONSERVER_Error *err = TRITONSERVER_ErrorNew(
        TRITONSERVER_ERROR_UNSUPPORTED, "100%s");

    assert_null(TRITONBACKEND_ResponseSend(r, 0, err));
    assert_string_equal(TRITONSERVER_ErrorMessage(err), "100%s");
    assert_string_equal(TRITONSERVER_ErrorCodeString(err), "Unsupported");
    TRITONSERVER_ErrorDelete(err);
    assert_int_equal(w.code, INF_ERR_UNSUPPORTED);
    assert_string_equal(w.text, "100%s");
    assert_int_equal(w.flags, 0);
}

/* A decoupled backend: releases first, answers through its factory later. */
static void
a_factory_answers_after_the_release(void **state)
{
    (void) state;
    TRITONBACKEND_ResponseFactory *a, *b;
    TRITONBACKEND_Response *r;
    bool cancelled = true;

    assert_null(TRITONBACKEND_ResponseFactoryNew(&a, request()));
    assert_null(TRITONBACKEND_ResponseFactoryNew(&b, request()));
    assert_null(TRITONBACKEND_RequestRelease(request(),
        TRITONSERVER_REQUEST_RELEASE_ALL));
    assert_int_equal(w.released, 1);
    assert_int_equal(w.freed, 0);
    assert_null(TRITONBACKEND_ResponseFactoryIsCancelled(a, &cancelled));
    assert_false(cancelled);
    for (int i = 0; i < 3; i++) {
        assert_null(TRITONBACKEND_ResponseNewFromFactory(&r, i % 2 ? a : b));
        assert_null(TRITONBACKEND_ResponseSend(r, 0, NULL));
    }
    assert_null(TRITONBACKEND_ResponseFactoryDelete(b));
    assert_int_equal(w.bare, 0);            /* deleting does not send FINAL  */
    assert_null(TRITONBACKEND_ResponseFactorySendFlags(a,
        TRITONSERVER_RESPONSE_COMPLETE_FINAL));
    assert_int_equal(w.bare, 1);
    assert_int_equal(w.flags, 1);
    assert_int_equal(w.freed, 0);
    assert_null(TRITONBACKEND_ResponseFactoryDelete(a));
    assert_int_equal(w.freed, 1);
}

/* ---- model and instance -------------------------------------------------- */

static void
state_is_null_until_it_is_set(void **state)
{
    (void) state;
    TRITONBACKEND_Model *m = inf_abi_as_model(w.model);
    TRITONBACKEND_ModelInstance *i = inf_abi_as_instance(&w.instance);
    void *p = (void *) 1;

    assert_null(TRITONBACKEND_ModelState(m, &p));
    assert_null(p);
    assert_null(TRITONBACKEND_ModelSetState(m, &w));
    assert_null(TRITONBACKEND_ModelState(m, &p));
    assert_ptr_equal(p, &w);
    assert_null(TRITONBACKEND_ModelInstanceState(i, &p));
    assert_null(p);
    assert_null(TRITONBACKEND_ModelInstanceSetState(i, &w));
    assert_null(TRITONBACKEND_ModelInstanceState(i, &p));
    assert_ptr_equal(p, &w);
}

static void
a_model_says_who_it_is(void **state)
{
    (void) state;
    TRITONBACKEND_Model *m = inf_abi_as_model(w.model);
    const char *name, *where, *json;
    uint64_t version;
    TRITONBACKEND_ArtifactType type;
    TRITONSERVER_Message *message = NULL;
    size_t size;

    assert_null(TRITONBACKEND_ModelName(m, &name));
    assert_string_equal(name, "m");
    assert_null(TRITONBACKEND_ModelVersion(m, &version));
    assert_int_equal(version, 4);
    assert_null(TRITONBACKEND_ModelRepository(m, &type, &where));
    assert_int_equal(type, TRITONBACKEND_ARTIFACT_FILESYSTEM);
    assert_string_equal(where, "/models/m");

    fails(TRITONBACKEND_ModelConfig(m, 2, &message),
        TRITONSERVER_ERROR_INVALID_ARG, "model configuration version 2 not"
        " supported, supported versions are: 1");
    assert_null(message);
    assert_null(TRITONBACKEND_ModelConfig(m, 1, &message));
    assert_null(TRITONSERVER_MessageSerializeToJson(message, &json, &size));
    assert_int_equal(strlen(json), size);
    assert_non_null(strstr(json, "\"max_batch_size\":8"));
    assert_null(TRITONSERVER_MessageDelete(message));
}

static void
a_backend_completes_the_configuration(void **state)
{
    (void) state;
    static const char good[] = "{\"max_batch_size\":3,\"input\":[{\"name\":"
        "\"N\",\"data_type\":\"TYPE_INT8\",\"dims\":[4]}],\"output\":[]}";
    static const char *const bad[] = {
        "", "{", "[]", "{\"no_such_field\":1}", "{\"max_batch_size\":\"x\"}"
    };
    inf_backend_t backend = { .name = "b" };
    TRITONBACKEND_Model *m = inf_abi_as_model(w.model);
    TRITONSERVER_Message *message;

    w.model->backend = &backend;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_null(TRITONSERVER_MessageNewFromSerializedJson(&message,
            bad[i], strlen(bad[i])));       /* never parsed here             */
        fails(TRITONBACKEND_ModelSetConfig(m, 1, message),
            TRITONSERVER_ERROR_INVALID_ARG,
            "configuration that backend 'b' sets for model '");
        assert_false(w.model->completed);
        assert_null(TRITONSERVER_MessageDelete(message));
    }
    assert_int_equal(w.model->config->msg->max_batch_size, 8);

    assert_null(TRITONSERVER_MessageNewFromSerializedJson(&message, good,
        sizeof(good) - 1));
    fails(TRITONBACKEND_ModelSetConfig(m, 2, message),
        TRITONSERVER_ERROR_INVALID_ARG, "version 2");
    assert_null(TRITONBACKEND_ModelSetConfig(m, 1, message));
    assert_null(TRITONSERVER_MessageDelete(message));
    assert_true(w.model->completed);
    assert_int_equal(w.model->config->msg->max_batch_size, 3);
    assert_int_equal(w.model->config->msg->n_input, 1);
    assert_string_equal(w.model->config->msg->input[0]->name, "N");
    w.model->backend = NULL;
}

static void
instances_answer_within_their_lists(void **state)
{
    (void) state;
    TRITONBACKEND_ModelInstance *i = inf_abi_as_instance(&w.instance);
    char *profiles[] = { "p0" };
    const char *text;
    int64_t id;
    uint32_t count;

    w.spec.profiles = profiles;
    w.spec.profile_count = 1;
    assert_null(TRITONBACKEND_ModelInstanceProfileName(i, 0, &text));
    assert_string_equal(text, "p0");
    fails(TRITONBACKEND_ModelInstanceProfileName(i, 1, &text),
        TRITONSERVER_ERROR_INVALID_ARG, "index 1");
    assert_null(TRITONBACKEND_ModelInstanceSecondaryDeviceCount(i, &count));
    assert_int_equal(count, 0);
    fails(TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(i, 0, &text,
        &id), TRITONSERVER_ERROR_INVALID_ARG, "index 0");
}

static void
reported_statistics_are_counted(void **state)
{
    (void) state;
    TRITONBACKEND_ModelInstance *i = inf_abi_as_instance(&w.instance);
    const inf_statistics_t *s = &w.instance.statistics;

    w.request.batch_size = 4;
    assert_null(TRITONBACKEND_ModelInstanceReportStatistics(i, request(),
        true, 10, 20, 50, 60));
    assert_null(TRITONBACKEND_ModelInstanceReportBatchStatistics(i, 4, 10, 20,
        50, 60));
    assert_int_equal(s->inference_count, 4);
    assert_int_equal(s->execution_count, 1);
    assert_int_equal(s->compute_infer.ns, 30);
    w.request.batch_size = 0;               /* a model without batching      */
    assert_null(TRITONBACKEND_ModelInstanceReportStatistics(i, request(),
        true, 10, 20, 50, 60));
    assert_int_equal(s->inference_count, 5);
    assert_null(TRITONBACKEND_ModelInstanceReportStatistics(i, request(),
        false, 10, 20, 50, 60));
    assert_int_equal(s->fail.count, 1);
    assert_int_equal(s->inference_count, 5);
}

static void
cpu_memory_comes_and_other_kinds_are_rejected(void **state)
{
    (void) state;
    void *p;

    assert_null(TRITONBACKEND_MemoryManagerAllocate(NULL, &p,
        TRITONSERVER_MEMORY_CPU, 0, 0));
    assert_non_null(p);                     /* size 0 is a valid pointer     */
    assert_null(TRITONBACKEND_MemoryManagerFree(NULL, p,
        TRITONSERVER_MEMORY_CPU, 0));
    fails(TRITONBACKEND_MemoryManagerAllocate(NULL, &p,
        TRITONSERVER_MEMORY_CPU_PINNED, 0, 8), TRITONSERVER_ERROR_UNSUPPORTED,
        "CPU_PINNED");
    assert_null(p);
    fails(TRITONBACKEND_MemoryManagerAllocate(NULL, &p,
        TRITONSERVER_MEMORY_GPU, 0, 8), TRITONSERVER_ERROR_UNSUPPORTED,
        "GPU");
}

/* ---- values -------------------------------------------------------------- */

static void
messages_keep_any_bytes(void **state)
{
    (void) state;
    TRITONSERVER_Message *m;
    const char *base, *twice;
    size_t size;

    assert_null(TRITONSERVER_MessageNewFromSerializedJson(&m, "{bad\0x}", 7));
    assert_null(TRITONSERVER_MessageSerializeToJson(m, &base, &size));
    assert_int_equal(size, 7);
    assert_memory_equal(base, "{bad\0x}", 8);       /* NUL-terminated        */
    assert_null(TRITONSERVER_MessageSerializeToJson(m, &twice, &size));
    assert_ptr_equal(base, twice);
    assert_null(TRITONSERVER_MessageDelete(m));
    assert_null(TRITONSERVER_MessageNewFromSerializedJson(&m, NULL, 0));
    assert_null(TRITONSERVER_MessageSerializeToJson(m, &base, &size));
    assert_int_equal(size, 0);
    assert_string_equal(base, "");
    assert_null(TRITONSERVER_MessageDelete(m));
}

static void
parameters_copy_all_but_bytes(void **state)
{
    (void) state;
    char text[] = "text";
    int64_t i = 7;
    bool b = true;
    double d = 2.5;

    inf_parameter_t *p = inf_as_parameter(TRITONSERVER_ParameterNew("n",
        TRITONSERVER_PARAMETER_STRING, text));
    text[0] = '?';
    assert_string_equal(p->name, "n");
    assert_string_equal(inf_parameter_value(p), "text");
    TRITONSERVER_ParameterDelete(inf_abi_as_parameter(p));
    p = inf_as_parameter(TRITONSERVER_ParameterNew("n",
        TRITONSERVER_PARAMETER_INT, &i));
    assert_int_equal(*(const int64_t *) inf_parameter_value(p), 7);
    TRITONSERVER_ParameterDelete(inf_abi_as_parameter(p));
    p = inf_as_parameter(TRITONSERVER_ParameterNew("n",
        TRITONSERVER_PARAMETER_BOOL, &b));
    assert_true(*(const bool *) inf_parameter_value(p));
    TRITONSERVER_ParameterDelete(inf_abi_as_parameter(p));
    p = inf_as_parameter(TRITONSERVER_ParameterNew("n",
        TRITONSERVER_PARAMETER_DOUBLE, &d));
    assert_float_equal(*(const double *) inf_parameter_value(p), 2.5, 0);
    TRITONSERVER_ParameterDelete(inf_abi_as_parameter(p));

    assert_null(TRITONSERVER_ParameterNew("n", TRITONSERVER_PARAMETER_BYTES,
        text));
    assert_null(TRITONSERVER_ParameterNew("n",
        (TRITONSERVER_ParameterType) 50, text));
    p = inf_as_parameter(TRITONSERVER_ParameterBytesNew("n", text, 3));
    assert_ptr_equal(inf_parameter_value(p), text);
    assert_int_equal(p->text_len, 3);
    TRITONSERVER_ParameterDelete(inf_abi_as_parameter(p));
}

static void
buffer_attributes_start_empty_and_keep_what_is_set(void **state)
{
    (void) state;
    TRITONSERVER_BufferAttributes *a;
    size_t size = 1;
    int64_t id = 1;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_GPU;
    void *handle = &size;
    char ipc[64] = "handle";

    assert_null(TRITONSERVER_BufferAttributesNew(&a));
    assert_null(TRITONSERVER_BufferAttributesByteSize(a, &size));
    assert_null(TRITONSERVER_BufferAttributesMemoryType(a, &type));
    assert_null(TRITONSERVER_BufferAttributesMemoryTypeId(a, &id));
    assert_null(TRITONSERVER_BufferAttributesCudaIpcHandle(a, &handle));
    assert_int_equal(size, 0);
    assert_int_equal(type, TRITONSERVER_MEMORY_CPU);
    assert_int_equal(id, 0);
    assert_null(handle);

    assert_null(TRITONSERVER_BufferAttributesSetByteSize(a, 99));
    assert_null(TRITONSERVER_BufferAttributesSetMemoryType(a,
        TRITONSERVER_MEMORY_GPU));
    assert_null(TRITONSERVER_BufferAttributesSetMemoryTypeId(a, -2));
    assert_null(TRITONSERVER_BufferAttributesSetCudaIpcHandle(a, ipc));
    ipc[0] = '?';
    assert_null(TRITONSERVER_BufferAttributesByteSize(a, &size));
    assert_null(TRITONSERVER_BufferAttributesMemoryType(a, &type));
    assert_null(TRITONSERVER_BufferAttributesMemoryTypeId(a, &id));
    assert_null(TRITONSERVER_BufferAttributesCudaIpcHandle(a, &handle));
    assert_int_equal(size, 99);
    assert_int_equal(type, TRITONSERVER_MEMORY_GPU);
    assert_int_equal(id, -2);
    assert_string_equal(handle, "handle");
    assert_null(TRITONSERVER_BufferAttributesSetCudaIpcHandle(a, NULL));
    assert_null(TRITONSERVER_BufferAttributesCudaIpcHandle(a, &handle));
    assert_null(handle);
    assert_null(TRITONSERVER_BufferAttributesDelete(a));
}

static void
names_of_values_have_an_answer_for_nonsense(void **state)
{
    (void) state;
    uint32_t major = 0, minor = 0;
    TRITONSERVER_Error *err = TRITONSERVER_ErrorNew(
        (TRITONSERVER_Error_Code) 55, NULL);

    assert_int_equal(TRITONSERVER_ErrorCode(err), 55);
    assert_string_equal(TRITONSERVER_ErrorCodeString(err), "Unknown");
    assert_string_equal(TRITONSERVER_ErrorMessage(err), "");
    TRITONSERVER_ErrorDelete(err);
    assert_string_equal(TRITONSERVER_DataTypeString(
        (TRITONSERVER_DataType) 77), "<invalid>");
    assert_int_equal(TRITONSERVER_StringToDataType("fp32"),
        TRITONSERVER_TYPE_INVALID);
    assert_int_equal(TRITONSERVER_StringToDataType("BF16"),
        TRITONSERVER_TYPE_BF16);
    assert_int_equal(TRITONSERVER_DataTypeByteSize(TRITONSERVER_TYPE_BYTES),
        0);
    assert_string_equal(TRITONSERVER_MemoryTypeString(
        (TRITONSERVER_MemoryType) 9), "<invalid>");
    for (int type = 0; type < 6; type++) {
        static const char *const names[] = { "STRING", "INT", "BOOL", "DOUBLE",
            "BYTES", "<invalid>" };
        assert_string_equal(TRITONSERVER_ParameterTypeString(
            (TRITONSERVER_ParameterType) type), names[type]);
    }
    for (int kind = 0; kind < 5; kind++) {
        static const char *const names[] = { "AUTO", "CPU", "GPU", "MODEL",
            "<invalid>" };
        assert_string_equal(TRITONSERVER_InstanceGroupKindString(
            (TRITONSERVER_InstanceGroupKind) kind), names[kind]);
    }
    assert_null(TRITONBACKEND_ApiVersion(&major, &minor));
    assert_int_equal(major, 1);
    assert_true(minor >= 19);
    fails(TRITONSERVER_LogMessage((TRITONSERVER_LogLevel) 12, "f", 1, "m"),
        TRITONSERVER_ERROR_INVALID_ARG, "12");
    assert_false(TRITONSERVER_LogIsEnabled((TRITONSERVER_LogLevel) 12));
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(input_buffers_beyond_the_last_are_empty_not_errors),
        T(any_input_property_may_be_left_out),
        T(unknown_names_and_indexes_are_invalid),
        T(identity_and_correlation_of_a_request),
        T(parameters_of_a_request_have_their_types),
        T(a_reschedule_is_rejected_and_the_backend_keeps_the_request),
        T(a_release_without_flags_is_a_release),
        T(output_properties_are_unknown_without_a_client_that_knows),
        T(null_responses_are_rejected_or_ignored),
        T(only_the_models_outputs_can_be_made),
        T(an_outputs_buffer_is_given_once),
        T(the_client_reads_dims_not_reshape),
        T(parameters_of_a_response_keep_order_and_repeats),
        T(sending_consumes_the_response_and_not_the_error),
        T(a_factory_answers_after_the_release),
        T(state_is_null_until_it_is_set),
        T(a_model_says_who_it_is),
        T(a_backend_completes_the_configuration),
        T(instances_answer_within_their_lists),
        T(reported_statistics_are_counted),
        T(cpu_memory_comes_and_other_kinds_are_rejected),
        cmocka_unit_test(messages_keep_any_bytes),
        cmocka_unit_test(parameters_copy_all_but_bytes),
        cmocka_unit_test(buffer_attributes_start_empty_and_keep_what_is_set),
        cmocka_unit_test(names_of_values_have_an_answer_for_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
