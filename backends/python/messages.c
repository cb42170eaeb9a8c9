/* messages.c - see messages.h */

#include "messages.h"

#include <inttypes.h>

#include "arenas.h"
#include "gpu_inputs.h"
#include "requests.h"

static void write_correlation(py_writer_t *w, TRITONBACKEND_Request *request);
static TRITONSERVER_Error *write_parameters(py_writer_t *w,
    TRITONBACKEND_Request *request);
static TRITONSERVER_Error *write_outputs(py_writer_t *w,
    TRITONBACKEND_Request *request);
static TRITONSERVER_Error *write_inputs(py_writer_t *w,
    const py_way_t *way, TRITONBACKEND_Request *request);
static TRITONSERVER_Error *write_input(py_writer_t *w, const py_way_t *way,
    const bk_input_t *in);
static TRITONSERVER_Error *write_data(py_writer_t *w, const py_way_t *way,
    const bk_input_t *in);
static TRITONSERVER_Error *write_on_gpu(py_writer_t *w, const py_way_t *way,
    const bk_input_t *in, bool *written);
static void write_trace(py_writer_t *w, TRITONBACKEND_Request *request);
static TRITONSERVER_Error *fill_output(TRITONBACKEND_Response *response,
    py_link_t *link, py_reader_t *r);
static TRITONSERVER_Error *fill_from_gpu(TRITONBACKEND_Response *response,
    py_link_t *link, const py_tensor_t *t);
static TRITONSERVER_Error *fill_parameter(TRITONBACKEND_Response *response,
    py_reader_t *r);

TRITONSERVER_Error *
py_request_write(py_writer_t *w, const py_way_t *way,
    TRITONBACKEND_Request *request, uint64_t id)
{
    const char *text = "";
    uint32_t flags = 0;
    uint64_t timeout = 0;

    TRITONSERVER_Error *err = TRITONBACKEND_RequestId(request, &text);
    if (err == NULL) {
        err = TRITONBACKEND_RequestFlags(request, &flags);
    }
    if (err == NULL) {
        err = TRITONBACKEND_InferenceRequestTimeoutMicroseconds(request,
            &timeout);
    }
    if (err != NULL) {
        return err;
    }

    py_write_list(w, 9);
    py_write_uint(w, id);
    py_write_string(w, text);
    write_correlation(w, request);
    py_write_int(w, flags);
    py_write_uint(w, timeout);
    err = write_parameters(w, request);
    if (err == NULL) {
        err = write_outputs(w, request);
    }
    if (err == NULL) {
        err = write_inputs(w, way, request);
    }
    if (err == NULL) {
        write_trace(w, request);
        err = w->failed ? bk_err_nomem("a request's message") : NULL;
    }
    return err;
}

void
py_blocks_free(py_link_t *link, const void *message, size_t len)
{
    py_reader_t r;
    py_data_t data;
    uint32_t count;
    bool read = true;

    py_reader_init(&r, message, len);
    while (read) {
        if (py_read_tag(&r) == PY_TAG_BLOCK) {
            read = py_read_data(&r, &data);
            if (read) {
                py_link_free(link, data.id);
            }
        } else if (py_read_tag(&r) == PY_TAG_GPU) {
            read = py_read_data(&r, &data);
            if (read) {
                py_gpu_give_back(&link->gpu, data.id);
            }
        } else {
            read = py_read_list(&r, &count) || py_read_skip(&r);
        }
    }
}

TRITONSERVER_Error *
py_response_fill(TRITONBACKEND_Response *response, py_link_t *link,
    py_reader_t *r)
{
    TRITONSERVER_Error *err = NULL;
    uint32_t count;

    if (!py_read_list_of(r, 3) || !py_error_read(r, &err)) {
        return py_error_message("response");
    }
    if (err != NULL) {
        return err;
    }

    if (!py_read_list(r, &count)) {
        return py_error_message("list of outputs");
    }
    for (uint32_t i = 0; i < count && err == NULL; i++) {
        err = fill_output(response, link, r);
    }
    if (err != NULL) {
        return err;
    }

    if (!py_read_list(r, &count)) {
        return py_error_message("list of parameters");
    }
    for (uint32_t i = 0; i < count && err == NULL; i++) {
        err = fill_parameter(response, r);
    }
    return err;
}

TRITONSERVER_Error *
py_tensor_read(py_tensor_t *t, py_reader_t *r)
{
    uint64_t elements = 1;
    int64_t datatype;
    uint64_t bytes;

    if (!py_read_list_of(r, 4) || !py_read_text(r, &t->name, NULL)
        || !py_read_int(r, &datatype) || !py_read_list(r, &t->dims_count))
    {
        return py_error_message("tensor");
    }
    if (datatype <= TRITONSERVER_TYPE_INVALID
        || datatype > TRITONSERVER_TYPE_BF16)
    {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "tensor \"%s\" has datatype %" PRId64 ", which is none", t->name,
            datatype);
    }
    if (t->dims_count > PY_DIMS_MAX) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "tensor \"%s\" has %u dimensions; %u are possible", t->name,
            t->dims_count, PY_DIMS_MAX);
    }

    t->datatype = (TRITONSERVER_DataType) datatype;
    for (uint32_t i = 0; i < t->dims_count; i++) {
        if (!py_read_int(r, &t->dims[i])) {
            return py_error_message("shape");
        }
        if (t->dims[i] < 0 || __builtin_mul_overflow(elements,
            (uint64_t) t->dims[i], &elements))
        {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "tensor \"%s\" has a shape of no size", t->name);
        }
    }
    if (!py_read_data(r, &t->data)) {
        return py_error_message("tensor's data");
    }

    uint32_t size = TRITONSERVER_DataTypeByteSize(t->datatype);
    if (size == 0 && t->data.tag == PY_TAG_GPU) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "tensor \"%s\" has strings in memory of a GPU", t->name);
    }
    if (size != 0 && (__builtin_mul_overflow(elements, size, &bytes)
        || bytes != t->data.length))
    {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "tensor \"%s\" has %" PRIu64 " bytes, which don't fit its shape",
            t->name, t->data.length);
    }
    return NULL;
}

bool
py_error_read(py_reader_t *r, TRITONSERVER_Error **err)
{
    const char *text;
    int64_t code;

    *err = NULL;
    if (py_read_none(r)) {
        return true;
    }
    if (!py_read_list_of(r, 2) || !py_read_int(r, &code)
        || !py_read_text(r, &text, NULL))
    {
        return false;
    }

    if (code < TRITONSERVER_ERROR_UNKNOWN
        || code > TRITONSERVER_ERROR_CANCELLED)
    {
        code = TRITONSERVER_ERROR_INTERNAL;
    }
    *err = TRITONSERVER_ErrorNew((TRITONSERVER_Error_Code) code, text);
    return true;
}

void
py_error_write(py_writer_t *w, TRITONSERVER_Error *err)
{
    if (err == NULL) {
        py_write_none(w);
        return;
    }

    py_write_list(w, 2);
    py_write_int(w, TRITONSERVER_ErrorCode(err));
    py_write_string(w, TRITONSERVER_ErrorMessage(err));
}

void
py_reply(py_link_t *link, uint32_t slot, TRITONSERVER_Error *err,
    const py_writer_t *value)
{
    py_writer_t w = { 0 };

    py_write_list(&w, 2);
    py_error_write(&w, err);
    if (err != NULL || value == NULL || value->len == 0) {
        py_write_none(&w);
    } else {
        py_write_value(&w, value);
    }

    py_link_reply(link, slot, &w);
    py_writer_fini(&w);
}

void
py_parameter_write(py_writer_t *w, TRITONSERVER_ParameterType type,
    const void *value)
{
    switch (type) {
    case TRITONSERVER_PARAMETER_STRING:
        py_write_string(w, value);
        break;
    case TRITONSERVER_PARAMETER_INT:
        py_write_int(w, *(const int64_t *) value);
        break;
    case TRITONSERVER_PARAMETER_BOOL:
        py_write_bool(w, *(const bool *) value);
        break;
    case TRITONSERVER_PARAMETER_DOUBLE:
        py_write_double(w, *(const double *) value);
        break;
    case TRITONSERVER_PARAMETER_BYTES:
        py_write_string(w, "");        /* its length is unknown             */
        break;
    }
}

TRITONSERVER_Error *
py_error_message(const char *what)
{
    return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
        "the interpreter has sent a %s that is none", what);
}

/* Writes a number, a text or 0. */
static void
write_correlation(py_writer_t *w, TRITONBACKEND_Request *request)
{
    const char *text = NULL;
    uint64_t id = 0;

    TRITONSERVER_Error *err = TRITONBACKEND_RequestCorrelationId(request,
        &id);
    if (err != NULL) {
        bk_err_drop(err);
        err = TRITONBACKEND_RequestCorrelationIdString(request, &text);
    }

    if (err == NULL && text != NULL) {
        py_write_string(w, text);
    } else {
        py_write_uint(w, id);
    }
    bk_err_drop(err);
}

static TRITONSERVER_Error *
write_parameters(py_writer_t *w, TRITONBACKEND_Request *request)
{
    uint32_t count = 0;

    TRITONSERVER_Error *err = TRITONBACKEND_RequestParameterCount(request,
        &count);
    if (err != NULL) {
        return err;
    }

    py_write_list(w, count);
    for (uint32_t i = 0; i < count; i++) {
        TRITONSERVER_ParameterType type;
        const void *value;
        const char *key;

        err = TRITONBACKEND_RequestParameter(request, i, &key, &type, &value);
        if (err != NULL) {
            return err;
        }

        py_write_list(w, 2);
        py_write_string(w, key);
        py_parameter_write(w, type, value);
    }
    return NULL;
}

static TRITONSERVER_Error *
write_outputs(py_writer_t *w, TRITONBACKEND_Request *request)
{
    uint32_t count = 0;

    TRITONSERVER_Error *err = TRITONBACKEND_RequestOutputCount(request,
        &count);
    if (err != NULL) {
        return err;
    }

    py_write_list(w, count);
    for (uint32_t i = 0; i < count; i++) {
        const char *name;

        err = TRITONBACKEND_RequestOutputName(request, i, &name);
        if (err != NULL) {
            return err;
        }
        py_write_string(w, name);
    }
    return NULL;
}

static TRITONSERVER_Error *
write_inputs(py_writer_t *w, const py_way_t *way,
    TRITONBACKEND_Request *request)
{
    uint32_t count = 0;
    bk_input_t in;

    TRITONSERVER_Error *err = TRITONBACKEND_RequestInputCount(request, &count);
    if (err != NULL) {
        return err;
    }

    py_write_list(w, count);
    for (uint32_t i = 0; i < count && err == NULL; i++) {
        err = bk_input_open_at(&in, request, i);
        if (err == NULL) {
            err = write_input(w, way, &in);
        }
    }
    return err;
}

static TRITONSERVER_Error *
write_input(py_writer_t *w, const py_way_t *way, const bk_input_t *in)
{
    py_write_list(w, 4);
    py_write_string(w, in->name);
    py_write_int(w, in->datatype);
    py_write_list(w, in->dims_count);
    for (uint32_t i = 0; i < in->dims_count; i++) {
        py_write_int(w, in->shape[i]);
    }
    return write_data(w, way, in);
}

/* Writes data: in the message, as a view, or copied into a block; those on a
   GPU also into memory there. */
static TRITONSERVER_Error *
write_data(py_writer_t *w, const py_way_t *way, const bk_input_t *in)
{
    bk_buffer_t cpu = { .len_bytes = in->len_bytes };
    const void *data = NULL;
    py_arena_place_t place;
    bool written = false;
    uint64_t offset;
    uint32_t id;

    if (way->on_gpu) {
        TRITONSERVER_Error *err = write_on_gpu(w, way, in, &written);
        if (err != NULL || written) {
            return err;
        }
    }

    if (in->len_bytes <= PY_INLINE_MAX) {
        cpu.base = py_write_space(w, in->len_bytes);
        return cpu.base == NULL ? bk_err_nomem("an input")
            : py_input_copy(way->gpus, in, &cpu);
    }

    if (way->zero_copy) {
        TRITONSERVER_Error *err = py_input_view(in, &data);
        if (err != NULL) {
            return err;
        }
        if (data != NULL && py_arenas_find(way->arenas, way->socket_fd, data,
            in->len_bytes, &place))
        {
            py_write_arena(w, place.id, place.offset, in->len_bytes);
            return NULL;
        }
    }

    cpu.base = py_link_alloc(way->link, in->len_bytes, &id, &offset);
    if (cpu.base == NULL) {
        return bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE, "no room for the %"
            PRIu64 " bytes of input \"%s\" in the memory shared with the "
            "interpreter", in->len_bytes, in->name);
    }

    TRITONSERVER_Error *err = py_input_copy(way->gpus, in, &cpu);
    if (err == NULL) {
        py_write_block(w, id, offset, in->len_bytes);
        err = w->failed ? bk_err_nomem("an input") : NULL;
    }
    if (err != NULL) {
        py_link_free(way->link, id);
    }
    return err;
}

/* Copies an input that lies on a GPU into memory there; not written: it lies on
   none, or there is no memory.  Strings are for the CPU. */
static TRITONSERVER_Error *
write_on_gpu(py_writer_t *w, const py_way_t *way, const bk_input_t *in,
    bool *written)
{
    py_gpu_place_t place;
    bk_buffer_t to;
    int64_t gpu;

    TRITONSERVER_Error *err = py_input_gpu(in, &gpu);
    if (err != NULL || gpu < 0 || in->datatype == TRITONSERVER_TYPE_BYTES) {
        return err;
    }

    err = py_gpu_alloc(&way->link->gpu, gpu, in->len_bytes, &place, &to);
    if (err != NULL) {
        py_gpu_tell(&way->link->gpu, err);
        return NULL;
    }

    err = py_input_copy(way->gpus, in, &to);
    if (err == NULL) {
        py_write_gpu(w, &place);
        *written = true;
        err = w->failed ? bk_err_nomem("an input") : NULL;
    }
    if (err != NULL) {
        py_gpu_give_back(&way->link->gpu, place.piece);
    }
    py_gpu_unref(&way->link->gpu, place.piece);
    return err;
}

static void
write_trace(py_writer_t *w, TRITONBACKEND_Request *request)
{
    TRITONSERVER_InferenceTrace *trace = NULL;
    const char *context = NULL;

    TRITONSERVER_Error *err = TRITONBACKEND_RequestTrace(request, &trace);
    if (err == NULL && trace != NULL) {
        err = TRITONSERVER_InferenceTraceContext(trace, &context);
        context = context == NULL ? "" : context;
    }
    py_write_string(w, err == NULL ? context : NULL);
    bk_err_drop(err);
}

static TRITONSERVER_Error *
fill_output(TRITONBACKEND_Response *response, py_link_t *link,
    py_reader_t *r)
{
    py_tensor_t t;
    void *to;

    TRITONSERVER_Error *err = py_tensor_read(&t, r);
    if (err == NULL && t.data.tag == PY_TAG_GPU) {
        return fill_from_gpu(response, link, &t);
    }
    if (err == NULL) {
        err = bk_output_new(response, t.name, t.datatype, t.dims,
            t.dims_count, t.data.length, &to);
    }
    if (err == NULL && t.data.length > 0) {
        err = py_link_read(link, &t.data, to);
    }
    return err;
}

/* The response says whether it takes the output on that GPU. */
static TRITONSERVER_Error *
fill_from_gpu(TRITONBACKEND_Response *response, py_link_t *link,
    const py_tensor_t *t)
{
    bk_buffer_t from;

    TRITONSERVER_Error *err = py_gpu_ref(&link->gpu, t->data.id,
        t->data.length, &from);
    if (err != NULL) {
        return bk_err_add(err, "output \"%s\"", t->name);
    }

    bk_buffer_t to = from;
    err = bk_output_buffer(response, t->name, t->datatype, t->dims,
        t->dims_count, &to);
    if (err == NULL && to.len_bytes > 0) {
        err = py_gpus_copy(link->gpu.gpus, &to, &from);
        link->read += to.len_bytes;
    }
    py_gpu_unref(&link->gpu, t->data.id);
    return err;
}

static TRITONSERVER_Error *
fill_parameter(TRITONBACKEND_Response *response, py_reader_t *r)
{
    const char *key, *text;
    int64_t number;
    double real;
    bool flag;

    if (!py_read_list_of(r, 2) || !py_read_text(r, &key, NULL)) {
        return py_error_message("parameter");
    }
    if (py_read_bool(r, &flag)) {
        return TRITONBACKEND_ResponseSetBoolParameter(response, key, flag);
    }
    if (py_read_int(r, &number)) {
        return TRITONBACKEND_ResponseSetIntParameter(response, key, number);
    }
    if (py_read_text(r, &text, NULL)) {
        return TRITONBACKEND_ResponseSetStringParameter(response, key, text);
    }
    if (py_read_double(r, &real)) {
        return TRITONBACKEND_ResponseSetDoubleParameter(response, key, real);
    }
    return py_error_message("parameter's value");
}
