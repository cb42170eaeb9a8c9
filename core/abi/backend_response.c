/* backend_response.c - functions of backends on responses, outputs and
   factories. */

#include "core/abi/backend_attributes.h"
#include "core/abi/execute.h"
#include "core/abi/objects.h"

#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/model/reshape.h"
#include "core/sched/ensemble_pause.h"

static TRITONSERVER_Error *factory_of(TRITONBACKEND_Request *request,
    inf_factory_t **factory);
static void note_first(inf_response_t *response);
static bool after_final(inf_factory_t *f, uint32_t send_flags);
static TRITONSERVER_Error *set_parameter(TRITONBACKEND_Response *response,
    const char *name, inf_parameter_type_t type, inf_parameter_t **out);

TRITONSERVER_Error *
TRITONBACKEND_ResponseFactoryNew(TRITONBACKEND_ResponseFactory **factory,
    TRITONBACKEND_Request *request)
{
    inf_factory_t *f = NULL;
    TRITONSERVER_Error *err = factory_of(request, &f);
    if (err != NULL) {
        return err;
    }

    inf_factory_ref_handle(f);
    *factory = inf_abi_as_factory(f);
    return NULL;
}

/* Finds the factory; a request has none before its submit and after its
   release, as long as its memory is valid. */
static TRITONSERVER_Error *
factory_of(TRITONBACKEND_Request *request, inf_factory_t **factory)
{
    const inf_request_t *r = inf_as_request(request);
    if (r->factory == NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG, "request '%s' has been"
            " released: it can have no response any more", r->id);
    }

    *factory = r->factory;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ResponseFactoryDelete(TRITONBACKEND_ResponseFactory *factory)
{
    inf_factory_unref_handle(inf_as_factory(factory));
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ResponseFactorySendFlags(TRITONBACKEND_ResponseFactory *factory,
    const uint32_t send_flags)
{
    inf_factory_t *f = inf_as_factory(factory);

    if (!after_final(f, send_flags)) {
        inf_factory_send_flags(f, send_flags);
    }
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ResponseFactoryIsCancelled(
    TRITONBACKEND_ResponseFactory *factory, bool *is_cancelled)
{
    *is_cancelled = atomic_load_explicit(&inf_as_factory(factory)->cancelled,
        memory_order_relaxed);
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ResponseNew(TRITONBACKEND_Response **response,
    TRITONBACKEND_Request *request)
{
    inf_response_t *made = NULL;
    inf_factory_t *f = NULL;
    TRITONSERVER_Error *err = factory_of(request, &f);
    if (err == NULL) {
        err = inf_response_new(f, &made);
    }
    *response = inf_abi_as_response(made);
    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_ResponseNewFromFactory(TRITONBACKEND_Response **response,
    TRITONBACKEND_ResponseFactory *factory)
{
    inf_response_t *made;
    inf_err_t *err = inf_response_new(inf_as_factory(factory), &made);
    *response = inf_abi_as_response(made);
    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_ResponseDelete(TRITONBACKEND_Response *response)
{
    inf_response_free(inf_as_response(response));
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ResponseSetStringParameter(TRITONBACKEND_Response *response,
    const char *name, const char *value)
{
    inf_parameter_t *p;
    TRITONSERVER_Error *err = set_parameter(response, name,
        INF_PARAMETER_STRING, &p);
    if (err != NULL) {
        return err;
    }

    p->text_len = strlen(value);
    p->text = inf_arena_strdup(&inf_as_response(response)->arena, value,
        p->text_len);
    if (p->text == NULL) {
        p->text = "";
        p->text_len = 0;
        return inf_err_nomem();
    }
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ResponseSetIntParameter(TRITONBACKEND_Response *response,
    const char *name, const int64_t value)
{
    inf_parameter_t *p;
    TRITONSERVER_Error *err = set_parameter(response, name, INF_PARAMETER_INT,
        &p);
    if (err == NULL) {
        p->i = value;
    }
    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_ResponseSetBoolParameter(TRITONBACKEND_Response *response,
    const char *name, const bool value)
{
    inf_parameter_t *p;
    TRITONSERVER_Error *err = set_parameter(response, name,
        INF_PARAMETER_BOOL, &p);
    if (err == NULL) {
        p->b = value;
    }
    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_ResponseSetDoubleParameter(TRITONBACKEND_Response *response,
    const char *name, const double value)
{
    inf_parameter_t *p;
    TRITONSERVER_Error *err = set_parameter(response, name,
        INF_PARAMETER_DOUBLE, &p);
    if (err == NULL) {
        p->d = value;
    }
    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response *response,
    TRITONBACKEND_Output **output, const char *name,
    const TRITONSERVER_DataType datatype, const int64_t *shape,
    const uint32_t dims_count)
{
    *output = NULL;
    if (response == NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "cannot add output '%s' to a response that is NULL", name);
    }

    inf_response_t *r = inf_as_response(response);
    const inf_model_t *model = r->factory->model;
    const inf_config_tensor_t *t = inf_config_tensors_find_output(
        model->tensors, inf_slice_str(name));

    if (t == NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "unexpected inference output '%s' for model '%s'", name,
            model->name);
    }
    if (dims_count > INF_MAX_DIMS) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "output '%s' has %u dimensions, at most %d are possible", name,
            dims_count, INF_MAX_DIMS);
    }
    if ((unsigned) datatype >= INF_TYPE_COUNT) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "output '%s' has unknown datatype %d", name, (int) datatype);
    }

    const int64_t *client = shape;
    uint32_t client_dims = dims_count;
    int64_t undone[2 * INF_MAX_DIMS];

    if (t->has_reshape) {
        TRITONSERVER_Error *err = inf_output_undo_reshape(model, t, shape,
            dims_count, undone, &client_dims);
        if (err != NULL) {
            return err;
        }
        client = undone;
    }

    if (r->output_ns == 0) {
        r->output_ns = inf_clock_ns();
    }
    inf_output_t *out = inf_response_add_output(r, t->name.data,
        (inf_datatype_t) datatype, client, client_dims);
    *output = inf_abi_as_output(out);
    return out != NULL ? NULL : inf_err_nomem();
}

TRITONSERVER_Error *
TRITONBACKEND_ResponseSend(TRITONBACKEND_Response *response,
    const uint32_t send_flags, TRITONSERVER_Error *error)
{
    if (response == NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "cannot send a response that is NULL");
    }

    inf_response_t *r = inf_as_response(response);
    if (r->sent) {
        return inf_execution_complain("a response is sent a second time");
    }

    r->sent = true;
    if (after_final(r->factory, send_flags)) {
        inf_response_free(r);
        return NULL;
    }

    const inf_model_t *model = r->factory->model;
    if (model != NULL && model->latencies != NULL
        && model->latencies->histogram)
    {
        note_first(r);
    }

    if (error != NULL) {
        inf_execution_judge(r->factory);
    }
    inf_response_send(r, send_flags, error);
    inf_pause_wait();           /* an ensemble may delay its steps           */
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output *output, void **buffer,
    const uint64_t buffer_byte_size, TRITONSERVER_MemoryType *memory_type,
    int64_t *memory_type_id)
{
    inf_output_t *out = inf_as_output(output);
    *buffer = NULL;

    if (out->base != NULL) {
        return inf_err_new(INF_ERR_ALREADY_EXISTS,
            "allocated buffer for output '%s' already exists", out->name);
    }

    out->memory_type = (inf_memory_type_t) *memory_type;
    out->memory_id = *memory_type_id;

    inf_err_t *err = inf_output_alloc(out, buffer_byte_size);
    if (err != NULL) {
        return err;
    }

    if (out->abi.attributes != NULL) {
        inf_output_attributes_fill(out);
    }
    *buffer = out->base;
    *memory_type = (TRITONSERVER_MemoryType) out->memory_type;
    *memory_type_id = out->memory_id;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_InferenceResponseOutputByName(TRITONBACKEND_Response *response,
    const char *name, TRITONSERVER_DataType *datatype, const int64_t **shape,
    uint64_t *dim_count)
{
    const inf_response_t *r = inf_as_response(response);

    for (inf_output_t *out = r->first; out != NULL; out = out->next) {
        if (strcmp(out->name, name) == 0) {
            *datatype = (TRITONSERVER_DataType) out->datatype;
            *shape = out->shape;
            *dim_count = out->dim_count;
            return NULL;
        }
    }

    return inf_err_new(INF_ERR_NOT_FOUND, "Output name %s not found.", name);
}

TRITONSERVER_Error *
TRITONBACKEND_InferenceResponseOutput(TRITONBACKEND_Response *response,
    const uint32_t index, const char **name, TRITONSERVER_DataType *datatype,
    const int64_t **shape, uint64_t *dim_count)
{
    const inf_response_t *r = inf_as_response(response);
    if (index >= r->output_count) {
        return inf_err_new(INF_ERR_INVALID_ARG, "out of bounds index %u:"
            " response has %u outputs", index, r->output_count);
    }

    const inf_output_t *out = r->first;
    for (uint32_t i = 0; i < index; i++) {
        out = out->next;
    }

    *name = out->name;
    *datatype = (TRITONSERVER_DataType) out->datatype;
    *shape = out->shape;
    *dim_count = out->dim_count;
    return NULL;
}

/* Notes the time of each request's first response. */
static void
note_first(inf_response_t *response)
{
    inf_factory_t *f = response->factory;

    uint64_t start_ns = inf_factory_take_start(f);

    if (start_ns != 0) {
        response->sent_ns = inf_clock_ns();
        inf_latencies_first_response(f->model->latencies, start_ns,
            response->sent_ns);
    }
}

/* Whether a response comes after FINAL and is dropped, since its receiver may
   be gone.  Two threads that send FINAL at once are not detected. */
static bool
after_final(inf_factory_t *f, uint32_t send_flags)
{
    if (!atomic_load_explicit(&f->final, memory_order_relaxed)) {
        if (send_flags & INF_SEND_FINAL) {
            atomic_store_explicit(&f->final, true, memory_order_relaxed);
        }
        return false;
    }

    inf_log(INF_LOG_WARN, "model=%s request=%s: the backend \"%s\" sent a"
        " response after the final one; it is dropped",
        f->model != NULL ? f->model->name : "", f->id,
        inf_model_backend_name(f->model));
    return true;
}

static TRITONSERVER_Error *
set_parameter(TRITONBACKEND_Response *response, const char *name,
    inf_parameter_type_t type, inf_parameter_t **out)
{
    if (response == NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "cannot set parameter '%s' on a response that is NULL", name);
    }

    inf_response_t *r = inf_as_response(response);
    *out = inf_parameter_add(&r->parameters, &r->arena, name, strlen(name),
        type);
    return *out != NULL ? NULL : inf_err_nomem();
}
