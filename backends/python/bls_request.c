/* bls_request.c - see bls_request.h */

#include "bls_request.h"

#include <inttypes.h>
#include <stdlib.h>

#include "messages.h"

struct py_bls_input_s {
    py_bls_input_t *next;
    py_link_t      *link;       /* a reference, or NULL: a copy of the data  */
    uint64_t        piece;      /* then: in use, of that link                */
    char            data[];
};

static TRITONSERVER_Error *request_make(py_bls_request_t *q,
    TRITONSERVER_Server *server, py_reader_t *r);
static TRITONSERVER_Error *request_new(py_bls_request_t *q,
    TRITONSERVER_Server *server, py_reader_t *r, const char **model,
    int64_t *version);
static TRITONSERVER_Error *read_id(py_bls_request_t *q, py_reader_t *r);
static TRITONSERVER_Error *read_options(py_bls_request_t *q, py_reader_t *r);
static TRITONSERVER_Error *check_policy(const py_bls_request_t *q,
    TRITONSERVER_Server *server, const char *model, int64_t version);
static TRITONSERVER_Error *not_ready(TRITONSERVER_Error *err,
    const char *model);
static TRITONSERVER_Error *read_correlation(py_bls_request_t *q,
    py_reader_t *r);
static TRITONSERVER_Error *read_inputs(py_bls_request_t *q, py_reader_t *r);
static TRITONSERVER_Error *read_input(py_bls_request_t *q, py_reader_t *r);
static TRITONSERVER_Error *add_copy(py_bls_request_t *q,
    const py_tensor_t *t);
static TRITONSERVER_Error *add_gpu(py_bls_request_t *q, const py_tensor_t *t);
static TRITONSERVER_Error *read_outputs(py_bls_request_t *q, py_reader_t *r);
static TRITONSERVER_Error *read_parameters(py_bls_request_t *q,
    py_reader_t *r);

/* Parses [id, correlation id, inputs, outputs, model, version, flags, timeout,
   parameters, decoupled, GPU for outputs, request whose trace continues]. */
TRITONSERVER_Error *
py_bls_request_read(py_bls_request_t *q, TRITONSERVER_Server *server,
    py_requests_t *requests, py_reader_t *r)
{
    TRITONSERVER_InferenceTrace *parent = NULL;
    uint64_t id;

    TRITONSERVER_Error *err = !py_read_list_of(r, 12)
        ? py_error_message("request") : request_make(q, server, r);
    if (err != NULL || py_read_none(r)) {
        return err;
    }
    if (!py_read_uint(r, &id)) {
        return py_error_message("trace");
    }

    py_live_t *live = py_requests_find(requests, id);
    if (live == NULL || live->request == NULL) {
        return NULL;
    }

    err = TRITONBACKEND_RequestTrace(live->request, &parent);
    return err != NULL || parent == NULL ? err
        : TRITONSERVER_InferenceTraceSpawnChildTrace(parent, &q->trace);
}

void
py_bls_inputs_free(py_bls_input_t *inputs)
{
    while (inputs != NULL) {
        py_bls_input_t *input = inputs;
        inputs = input->next;
        if (input->link != NULL) {
            py_gpu_unref(&input->link->gpu, input->piece);
            py_link_unref(input->link);
        }
        free(input);
    }
}

static TRITONSERVER_Error *
request_make(py_bls_request_t *q, TRITONSERVER_Server *server, py_reader_t *r)
{
    const char *model = NULL;
    int64_t version = 0;

    /* the model's name follows inputs and outputs */
    py_reader_t start = *r;
    TRITONSERVER_Error *err = request_new(q, server, r, &model, &version);
    if (err == NULL) {
        err = read_id(q, &start);
    }
    if (err == NULL) {
        err = read_correlation(q, &start);
    }
    if (err == NULL) {
        err = read_inputs(q, &start);
    }
    if (err == NULL) {
        err = read_outputs(q, &start);
    }
    if (err == NULL) {
        err = read_options(q, r);
    }
    if (err == NULL) {
        err = check_policy(q, server, model, version);
    }
    return err;
}

/* Creates the request; parses to the end of the version. */
static TRITONSERVER_Error *
request_new(py_bls_request_t *q, TRITONSERVER_Server *server, py_reader_t *r,
    const char **model, int64_t *version)
{
    bool read = true;

    for (int i = 0; i < 4 && read; i++) {
        read = py_read_skip(r);
    }
    if (!read || !py_read_text(r, model, NULL) || !py_read_int(r, version)) {
        return py_error_message("request");
    }

    TRITONSERVER_Error *err = TRITONSERVER_InferenceRequestNew(&q->request,
        server, *model, *version);

    return err == NULL ? NULL : not_ready(err, *model);
}

static TRITONSERVER_Error *
read_id(py_bls_request_t *q, py_reader_t *r)
{
    const char *id;

    return py_read_text(r, &id, NULL)
        ? TRITONSERVER_InferenceRequestSetId(q->request, id)
        : py_error_message("request's id");
}

/* Parses [..., flags, timeout, parameters, decoupled, GPU or none, ...]. */
static TRITONSERVER_Error *
read_options(py_bls_request_t *q, py_reader_t *r)
{
    uint64_t timeout;
    int64_t flags;

    if (!py_read_int(r, &flags) || !py_read_uint(r, &timeout)) {
        return py_error_message("request");
    }

    TRITONSERVER_Error *err = TRITONSERVER_InferenceRequestSetFlags(
        q->request, (uint32_t) flags);
    if (err == NULL) {
        err = TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(q->request,
            timeout);
    }
    if (err == NULL) {
        err = read_parameters(q, r);
    }
    q->gpu = -1;
    if (err == NULL && (!py_read_bool(r, &q->decoupled)
        || (!py_read_none(r) && !py_read_int(r, &q->gpu))))
    {
        err = py_error_message("request");
    }
    return err;
}

static TRITONSERVER_Error *
check_policy(const py_bls_request_t *q, TRITONSERVER_Server *server,
    const char *model, int64_t version)
{
    uint32_t properties;

    TRITONSERVER_Error *err = TRITONSERVER_ServerModelTransactionProperties(
        server, model, version, &properties, NULL);
    if (err != NULL || properties != TRITONSERVER_TXN_DECOUPLED
        || q->decoupled)
    {
        return err;
    }

    return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED, "Model %s is using "
        "the decoupled. The current BLS request call doesn't support "
        "models using the decoupled transaction policy. Please use "
        "'decoupled=True' argument to the 'exec' or 'async_exec' calls "
        "for decoupled models.'", model);
}

/* Prefixes the error with Triton's text, which models compare. */
static TRITONSERVER_Error *
not_ready(TRITONSERVER_Error *err, const char *model)
{
    TRITONSERVER_Error_Code code = TRITONSERVER_ErrorCode(err);

    if (code != TRITONSERVER_ERROR_NOT_FOUND
        && code != TRITONSERVER_ERROR_UNAVAILABLE)
    {
        return err;
    }

    TRITONSERVER_Error *longer = bk_err_new(code, "Failed for execute the "
        "inference request. Model '%s' is not ready. %s", model,
        TRITONSERVER_ErrorMessage(err));
    bk_err_drop(err);

    return longer;
}

static TRITONSERVER_Error *
read_correlation(py_bls_request_t *q, py_reader_t *r)
{
    const char *text;
    uint64_t number;

    if (py_read_uint(r, &number)) {
        return TRITONSERVER_InferenceRequestSetCorrelationId(q->request,
            number);
    }
    if (py_read_text(r, &text, NULL)) {
        return TRITONSERVER_InferenceRequestSetCorrelationIdString(q->request,
            text);
    }
    return py_error_message("correlation id");
}

static TRITONSERVER_Error *
read_inputs(py_bls_request_t *q, py_reader_t *r)
{
    TRITONSERVER_Error *err = NULL;
    uint32_t count;

    if (!py_read_list(r, &count)) {
        return py_error_message("list of inputs");
    }
    for (uint32_t i = 0; i < count && err == NULL; i++) {
        err = read_input(q, r);
    }
    return err;
}

static TRITONSERVER_Error *
read_input(py_bls_request_t *q, py_reader_t *r)
{
    py_tensor_t t;

    TRITONSERVER_Error *err = py_tensor_read(&t, r);
    if (err == NULL) {
        err = TRITONSERVER_InferenceRequestAddInput(q->request, t.name,
            t.datatype, t.dims, t.dims_count);
    }
    if (err != NULL || t.data.length == 0) {
        return err;
    }

    return t.data.tag == PY_TAG_GPU ? add_gpu(q, &t) : add_copy(q, &t);
}

static TRITONSERVER_Error *
add_copy(py_bls_request_t *q, const py_tensor_t *t)
{
    if (t->data.length > PY_COPY_MAX - q->copied) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "input \"%s\" has %"
            PRIu64 " bytes; %" PRIu64 " are possible for all inputs of a"
            " request", t->name, t->data.length, PY_COPY_MAX);
    }

    py_bls_input_t *input = malloc(sizeof(*input) + t->data.length);
    if (input == NULL) {
        return bk_err_nomem("an input for another model");
    }

    input->link = NULL;
    input->next = q->inputs;
    q->inputs = input;
    q->copied += t->data.length;
    TRITONSERVER_Error *err = py_link_read(q->link, &t->data, input->data);
    return err != NULL ? err
        : TRITONSERVER_InferenceRequestAppendInputData(q->request, t->name,
            input->data, t->data.length, TRITONSERVER_MEMORY_CPU, 0);
}

/* The other model reads the memory that the interpreter has. */
static TRITONSERVER_Error *
add_gpu(py_bls_request_t *q, const py_tensor_t *t)
{
    bk_buffer_t at;

    py_bls_input_t *input = malloc(sizeof(*input));
    if (input == NULL) {
        return bk_err_nomem("an input for another model");
    }

    TRITONSERVER_Error *err = py_gpu_ref(&q->link->gpu, t->data.id,
        t->data.length, &at);
    if (err != NULL) {
        free(input);
        return bk_err_add(err, "input \"%s\"", t->name);
    }

    input->link = py_link_ref(q->link);
    input->piece = t->data.id;
    input->next = q->inputs;
    q->inputs = input;
    return TRITONSERVER_InferenceRequestAppendInputData(q->request, t->name,
        at.base, at.len_bytes, at.type, at.id);
}

static TRITONSERVER_Error *
read_outputs(py_bls_request_t *q, py_reader_t *r)
{
    TRITONSERVER_Error *err = NULL;
    const char *name;
    uint32_t count;

    if (!py_read_list(r, &count)) {
        return py_error_message("list of outputs");
    }
    for (uint32_t i = 0; i < count && err == NULL; i++) {
        err = !py_read_text(r, &name, NULL) ? py_error_message("name")
            : TRITONSERVER_InferenceRequestAddRequestedOutput(q->request,
                name);
    }
    return err;
}

static TRITONSERVER_Error *
read_parameters(py_bls_request_t *q, py_reader_t *r)
{
    TRITONSERVER_Error *err = NULL;
    const char *key, *text;
    int64_t number;
    uint32_t count;
    double real;
    bool flag;

    if (!py_read_list(r, &count)) {
        return py_error_message("list of parameters");
    }
    for (uint32_t i = 0; i < count && err == NULL; i++) {
        if (!py_read_list_of(r, 2) || !py_read_text(r, &key, NULL)) {
            return py_error_message("parameter");
        }
        if (py_read_bool(r, &flag)) {
            err = TRITONSERVER_InferenceRequestSetBoolParameter(q->request,
                key, flag);
        } else if (py_read_int(r, &number)) {
            err = TRITONSERVER_InferenceRequestSetIntParameter(q->request,
                key, number);
        } else if (py_read_text(r, &text, NULL)) {
            err = TRITONSERVER_InferenceRequestSetStringParameter(q->request,
                key, text);
        } else if (py_read_double(r, &real)) {
            err = TRITONSERVER_InferenceRequestSetDoubleParameter(q->request,
                key, real);
        } else {
            err = py_error_message("parameter's value");
        }
    }
    return err;
}
