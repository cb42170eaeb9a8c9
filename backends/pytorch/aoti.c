/* aoti.c - see aoti.h */

#include "aoti.h"

#include "call_spec.h"
#include "element_type.h"
#include "shim.h"

#include "common/tensors.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIMS_MAX  64
#define ALIGNMENT 64u
#define SHAPE_MAX 256

typedef struct {
    void          *handle;      /* of dlopen                                 */
    pt_library_t   library;
    pt_container_t container;
    int            device;
    bool           batching;
    _Atomic bool   doubles;     /* relaxed: a single row runs as two         */
    uint32_t       input_count;
    uint32_t       output_count;
} aoti_t;

/* Tensors of one run; those of the results live until they are released. */
typedef struct {
    pt_tensor_t *inputs;
    pt_tensor_t *outputs;
    void        *rows;          /* of inputs that have been doubled          */
    int64_t     *dims;          /* of outputs that have been halved, each
                                 * with room for DIMS_MAX                    */
} tensors_t;

/* A model that is being opened. */
typedef struct {
    aoti_t              *model;
    const pt_package_t  *package;
    uint32_t             runs;
    pt_signature_t      *signature;
} opening_t;

/* How a rejection of an input begins, and what is said of too few rows. */
#define REJECTED "input_handles["
#define TOO_FEW  "dim value is too small at 0, expected it to be >= 2"

static TRITONSERVER_Error *aoti_run(void *self,
    const pt_argument_t *arguments, uint32_t count, pt_results_t *results);
static void aoti_release(void *self, pt_results_t *results);
static void aoti_free(void *self);

static TRITONSERVER_Error *attempt(const aoti_t *m,
    const pt_argument_t *arguments, bool doubled, tensors_t *t,
    bool *too_few);
static bool is_single(const aoti_t *m, const pt_argument_t *arguments);
static TRITONSERVER_Error *on_thread(void *(*main)(void *arg), void *arg);
static void *open_main(void *arg);
static void *close_main(void *arg);
static TRITONSERVER_Error *device_check(const pt_package_t *package,
    int device);
static TRITONSERVER_Error *library_open(aoti_t *m,
    const pt_package_t *package);
static TRITONSERVER_Error *functions_find(aoti_t *m);
static TRITONSERVER_Error *container_make(aoti_t *m,
    const pt_package_t *package, uint32_t runs);
static TRITONSERVER_Error *signature_read(aoti_t *m, pt_signature_t *s);
static TRITONSERVER_Error *model_error(const aoti_t *m, const char *what);
static TRITONSERVER_Error *rejection(const aoti_t *m,
    const pt_argument_t *arguments);
static const char *last_error(const aoti_t *m);
static TRITONSERVER_Error *inputs_make(const aoti_t *m,
    const pt_argument_t *arguments, bool doubled, tensors_t *t);
static TRITONSERVER_Error *input_make(const aoti_t *m,
    const pt_argument_t *a, pt_tensor_t *out);
static TRITONSERVER_Error *result_read(pt_tensor_t *t, pt_result_t *r);
static TRITONSERVER_Error *result_halve(tensors_t *t, uint32_t i,
    pt_result_t *r);
static bool tensor_is_plain(pt_tensor_t t);
static TRITONSERVER_Error *tensor_move(pt_tensor_t *t, int device);
static bool strides_fill(const int64_t *dims, uint32_t count,
    int64_t *strides);
static void tensors_delete(pt_tensor_t *list, uint32_t count);

static const pt_engine_functions_t aoti_functions = {
    .run = aoti_run,
    .release = aoti_release,
    .free = aoti_free
};

TRITONSERVER_Error *
pt_aoti_open(pt_engine_t **out, const pt_package_t *package, int device,
    bool batching, uint32_t runs)
{
    pt_engine_t *engine = calloc(1, sizeof(*engine));
    aoti_t *m = calloc(1, sizeof(*m));
    if (engine == NULL || m == NULL) {
        free(engine);
        free(m);
        return bk_err_nomem("state of a compiled model");
    }

    m->device = device;
    m->batching = batching;
    engine->functions = &aoti_functions;
    engine->self = m;

    opening_t o = { m, package, runs, &engine->signature };
    TRITONSERVER_Error *err = device_check(package, device);
    if (err == NULL) {
        err = on_thread(open_main, &o);
    }
    if (err != NULL) {
        pt_engine_free(engine);
        return bk_err_add(err, "\"%s\"", package->path);
    }

    *out = engine;
    return NULL;
}

static TRITONSERVER_Error *
aoti_run(void *self, const pt_argument_t *arguments, uint32_t count,
    pt_results_t *results)
{
    aoti_t *m = self;

    if (count != m->input_count) {
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL, "%" PRIu32 " inputs "
            "for a model of %" PRIu32, count, m->input_count);
    }

    size_t all = (size_t) m->input_count + m->output_count;
    tensors_t *t = calloc(1, sizeof(*t) + all * sizeof(pt_tensor_t));
    if (t == NULL) {
        return bk_err_nomem("tensors of a run");
    }
    t->inputs = (pt_tensor_t *) (t + 1);
    t->outputs = t->inputs + m->input_count;
    results->held = t;

    bool single = is_single(m, arguments);
    bool doubled = single && atomic_load_explicit(&m->doubles,
        memory_order_relaxed);
    bool too_few = false;
    TRITONSERVER_Error *err = attempt(m, arguments, doubled, t, &too_few);
    if (too_few && single && !doubled) {
        atomic_store_explicit(&m->doubles, true, memory_order_relaxed);
        bk_log(TRITONSERVER_LOG_WARN, "a single row runs as two from now on, "
            "compiling with aot_inductor.check_lowerbound off avoids that: "
            "%s", TRITONSERVER_ErrorMessage(err));
        bk_err_drop(err);
        doubled = true;
        err = attempt(m, arguments, doubled, t, &too_few);
    }

    for (uint32_t i = 0; err == NULL && i < m->output_count; i++) {
        err = result_read(&t->outputs[i], &results->items[i]);
        if (err == NULL && doubled) {
            err = result_halve(t, i, &results->items[i]);
        }
    }

    return err;
}

/* Inputs that the model rejects are still ours afterwards, others are not. */
static TRITONSERVER_Error *
attempt(const aoti_t *m, const pt_argument_t *arguments, bool doubled,
    tensors_t *t, bool *too_few)
{
    TRITONSERVER_Error *err = inputs_make(m, arguments, doubled, t);
    if (err != NULL) {
        return err;
    }

    *too_few = false;
    aoti_torch_grad_mode_set_enabled(false);
    if (m->library.ModelContainerRun(m->container, t->inputs, m->input_count,
        t->outputs, m->output_count, NULL, NULL) == 0)
    {
        memset(t->inputs, 0, m->input_count * sizeof(*t->inputs));
        return NULL;
    }

    const char *why = last_error(m);
    if (strncmp(why, REJECTED, strlen(REJECTED)) == 0) {
        *too_few = strstr(why, TOO_FEW) != NULL;
        err = rejection(m, arguments);
        tensors_delete(t->inputs, m->input_count);
        return err;
    }

    memset(t->inputs, 0, m->input_count * sizeof(*t->inputs));
    return model_error(m, "PyTorch execute failure");
}

/*
 * PyTorch compiles an open dimension for sizes from 2 on, and such a model
 * rejects a batch of one row.  Rows are independent of each other: the row is
 * given twice, and the second half of the outputs is left out.
 */
static bool
is_single(const aoti_t *m, const pt_argument_t *arguments)
{
    bool single = m->batching;

    for (uint32_t i = 0; single && i < m->input_count; i++) {
        single = arguments[i].given && arguments[i].dims_count > 0
            && arguments[i].dims[0] == 1;
    }

    return single;
}

static void
aoti_release(void *self, pt_results_t *results)
{
    const aoti_t *m = self;
    tensors_t *t = results->held;

    tensors_delete(t->inputs, m->input_count);
    tensors_delete(t->outputs, m->output_count);
    free(t->rows);
    free(t->dims);
    free(t);
    results->held = NULL;
}

static void
aoti_free(void *self)
{
    aoti_t *m = self;

    if (m->container != NULL) {
        bk_err_log(on_thread(close_main, m), "end of a compiled model");
    }
    if (m->handle != NULL) {
        dlclose(m->handle);
    }
    free(m);
}

/*
 * A compiled model keeps an error's text for each thread that has called it,
 * and stays mapped until these threads end.  A loader's may never end: its
 * calls are made by a thread of their own.
 */
static TRITONSERVER_Error *
on_thread(void *(*main)(void *arg), void *arg)
{
    pthread_t thread;

    int rc = pthread_create(&thread, NULL, main, arg);
    if (rc != 0) {
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
            "cannot start a thread: error %d", rc);
    }

    void *err;
    pthread_join(thread, &err);
    return err;
}

static void *
open_main(void *arg)
{
    const opening_t *o = arg;

    TRITONSERVER_Error *err = library_open(o->model, o->package);
    if (err == NULL) {
        err = container_make(o->model, o->package, o->runs);
    }
    if (err == NULL) {
        err = signature_read(o->model, o->signature);
    }

    return err;
}

static void *
close_main(void *arg)
{
    const aoti_t *m = arg;

    (void) m->library.ModelContainerDelete(m->container);
    return NULL;
}

static TRITONSERVER_Error *
device_check(const pt_package_t *package, int device)
{
    const char *here = device == PT_CPU ? "cpu" : "cuda";

    if (device == PT_ANY_DEVICE) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
            "a compiled model has no instances of KIND_MODEL");
    }

    return package->device == NULL || strcmp(package->device, here) == 0
        ? NULL : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
        "package was compiled for device \"%s\", its instance is of %s",
        package->device, device == PT_CPU ? "KIND_CPU" : "KIND_GPU");
}

static TRITONSERVER_Error *
library_open(aoti_t *m, const pt_package_t *package)
{
    m->handle = dlopen(package->library, RTLD_NOW | RTLD_LOCAL);
    if (m->handle == NULL) {
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
            "cannot load the library in it, which needs the version of "
            "PyTorch that has compiled it: %s", dlerror());
    }

    return functions_find(m);
}

static TRITONSERVER_Error *
functions_find(aoti_t *m)
{
    pt_library_t *l = &m->library;
    const struct {
        const char *name;
        void       *at;
    } functions[] = {
        { "AOTInductorModelContainerCreateWithDevice",
          &l->ModelContainerCreateWithDevice },
        { "AOTInductorModelContainerDelete", &l->ModelContainerDelete },
        { "AOTInductorModelContainerRun", &l->ModelContainerRun },
        { "AOTInductorModelContainerGetNumInputs",
          &l->ModelContainerGetNumInputs },
        { "AOTInductorModelContainerGetNumOutputs",
          &l->ModelContainerGetNumOutputs },
        { "AOTInductorModelContainerGetCallSpec",
          &l->ModelContainerGetCallSpec }
    };

    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *f = dlsym(m->handle, functions[i].name);
        if (f == NULL) {
            return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
                "the library in it has no function %s; was it compiled by a "
                "much older PyTorch?", functions[i].name);
        }
        memcpy(functions[i].at, &f, sizeof(f));
    }

    void *f = dlsym(m->handle, "AOTInductorGetLastError");
    memcpy(&l->GetLastError, &f, sizeof(f));
    return NULL;
}

static TRITONSERVER_Error *
container_make(aoti_t *m, const pt_package_t *package, uint32_t runs)
{
    char device[32] = "cpu";

    if (m->device >= 0) {
        snprintf(device, sizeof(device), "cuda:%d", m->device);
    }

    return m->library.ModelContainerCreateWithDevice(&m->container, runs,
        device, package->directory.path) == 0 ? NULL
        : model_error(m, "cannot start the model");
}

static TRITONSERVER_Error *
signature_read(aoti_t *m, pt_signature_t *s)
{
    const char *in = NULL;
    const char *out = NULL;
    size_t inputs = 0;
    size_t outputs = 0;

    if (m->library.ModelContainerGetNumInputs(m->container, &inputs) != 0
        || m->library.ModelContainerGetNumOutputs(m->container, &outputs) != 0
        || m->library.ModelContainerGetCallSpec(m->container, &in, &out) != 0
        || in == NULL || out == NULL)
    {
        return model_error(m, "cannot read its inputs and outputs");
    }

    TRITONSERVER_Error *err = pt_call_spec_read(s, in, out);
    if (err == NULL && (s->parameter_count != inputs
        || s->output_count != outputs))
    {
        err = bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED, "its description has "
            "%" PRIu32 " inputs and %" PRIu32 " outputs, its library takes "
            "%zu and gives %zu: values other than tensors are not supported",
            s->parameter_count, s->output_count, inputs, outputs);
    }

    m->input_count = s->parameter_count;
    m->output_count = s->output_count;
    return err;
}

static TRITONSERVER_Error *
model_error(const aoti_t *m, const char *what)
{
    const char *why = last_error(m);
    size_t len = strlen(why);

    while (len > 0 && why[len - 1] == '\n') {
        len--;
    }

    return bk_err_new(TRITONSERVER_ERROR_INTERNAL, "%s: %.*s", what,
        (int) len, why);
}

/* with the input that the text has by its number, as it was given */
static TRITONSERVER_Error *
rejection(const aoti_t *m, const pt_argument_t *arguments)
{
    unsigned long number = strtoul(last_error(m) + strlen(REJECTED), NULL, 10);
    char shape[SHAPE_MAX];

    TRITONSERVER_Error *err = model_error(m, "PyTorch execute failure");
    if (number >= m->input_count || !arguments[number].given) {
        return err;
    }

    const pt_argument_t *a = &arguments[number];
    TRITONSERVER_Error *more = bk_err_new(TRITONSERVER_ERROR_INTERNAL,
        "%s (input \"%s\" has TYPE_%s and shape %s)",
        TRITONSERVER_ErrorMessage(err), a->name,
        TRITONSERVER_DataTypeString(pt_datatype_of(a->type)),
        bk_dims_text(a->dims, a->dims_count, shape, sizeof(shape)));
    bk_err_drop(err);
    return more;
}

static const char *
last_error(const aoti_t *m)
{
    const char *text = NULL;

    if (m->library.GetLastError != NULL) {
        (void) m->library.GetLastError(&text);
    }

    return text != NULL && text[0] != '\0' ? text
        : "PyTorch has written the reason to the log";
}

static TRITONSERVER_Error *
inputs_make(const aoti_t *m, const pt_argument_t *arguments, bool doubled,
    tensors_t *t)
{
    char *rows = NULL;

    if (doubled) {
        uint64_t sum = 0;

        for (uint32_t i = 0; i < m->input_count; i++) {
            sum += 2 * (arguments[i].len_bytes + ALIGNMENT);
        }
        t->rows = rows = aligned_alloc(ALIGNMENT, (sum / ALIGNMENT + 1)
            * ALIGNMENT);
        t->dims = calloc(m->output_count, DIMS_MAX * sizeof(*t->dims));
        if (rows == NULL || t->dims == NULL) {
            return bk_err_nomem("inputs of a run");
        }
    }

    for (uint32_t i = 0; i < m->input_count; i++) {
        pt_argument_t a = arguments[i];
        int64_t dims[DIMS_MAX];

        if (doubled && a.dims_count <= DIMS_MAX) {
            memcpy(dims, a.dims, a.dims_count * sizeof(*dims));
            dims[0] = 2;
            a.dims = dims;
            a.data = rows;
            if (a.len_bytes > 0) {
                memcpy(rows, arguments[i].data, a.len_bytes);
                memcpy(rows + a.len_bytes, arguments[i].data, a.len_bytes);
            }
            rows += (2 * a.len_bytes / ALIGNMENT + 1) * ALIGNMENT;
        }

        TRITONSERVER_Error *err = input_make(m, &a, &t->inputs[i]);
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

/* a tensor over the request's memory, on a GPU a copy of it */
static TRITONSERVER_Error *
input_make(const aoti_t *m, const pt_argument_t *a, pt_tensor_t *out)
{
    static char nothing;

    int64_t strides[DIMS_MAX];

    if (!strides_fill(a->dims, a->dims_count, strides)
        || aoti_torch_create_tensor_from_blob(a->len_bytes == 0 ? &nothing
        : a->data, a->dims_count, a->dims, strides, 0, a->type,
        aoti_torch_device_type_cpu(), 0, out) != 0)
    {
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
            "input \"%s\": no tensor could be made", a->name);
    }

    return m->device < 0 ? NULL : tensor_move(out, m->device);
}

static TRITONSERVER_Error *
result_read(pt_tensor_t *t, pt_result_t *r)
{
    int64_t dims_count = 0;
    int64_t elements = 0;
    int64_t *sizes = NULL;
    void *data = NULL;
    int32_t type = 0;

    if (*t == NULL) {
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
            "the model gave no tensor");
    }

    TRITONSERVER_Error *err = tensor_is_plain(*t) ? NULL
        : tensor_move(t, PT_CPU);
    if (err != NULL) {
        return err;
    }

    if (aoti_torch_get_dim(*t, &dims_count) != 0
        || aoti_torch_get_sizes(*t, &sizes) != 0
        || aoti_torch_get_numel(*t, &elements) != 0
        || aoti_torch_get_dtype(*t, &type) != 0
        || aoti_torch_get_data_ptr(*t, &data) != 0)
    {
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
            "an output could not be read");
    }

    *r = (pt_result_t) {
        .dims = sizes,
        .data = data,
        .len_bytes = (uint64_t) elements
            * aoti_torch_dtype_element_size(type),
        .dims_count = (uint32_t) dims_count,
        .type = type
    };
    return NULL;
}

/* the first of two rows */
static TRITONSERVER_Error *
result_halve(tensors_t *t, uint32_t i, pt_result_t *r)
{
    if (r->dims_count == 0 || r->dims_count > DIMS_MAX || r->dims[0] != 2) {
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
            "output %" PRIu32 " has no two rows for two rows of inputs", i);
    }

    int64_t *dims = t->dims + (size_t) i * DIMS_MAX;
    memcpy(dims, r->dims, r->dims_count * sizeof(*dims));
    dims[0] = 1;
    r->dims = dims;
    r->len_bytes /= 2;
    return NULL;
}

/* one element behind the other, on the host */
static bool
tensor_is_plain(pt_tensor_t t)
{
    bool contiguous = false;
    int32_t device_type = -1;

    return aoti_torch_is_contiguous(t, &contiguous) == 0 && contiguous
        && aoti_torch_get_device_type(t, &device_type) == 0
        && device_type == aoti_torch_device_type_cpu();
}

/* *t becomes a copy on that device, one element behind the other */
static TRITONSERVER_Error *
tensor_move(pt_tensor_t *t, int device)
{
    int64_t strides[DIMS_MAX];
    int64_t dims_count = 0;
    int64_t *sizes = NULL;
    int32_t type = 0;
    pt_tensor_t copy = NULL;

    if (aoti_torch_get_dim(*t, &dims_count) != 0
        || aoti_torch_get_sizes(*t, &sizes) != 0
        || aoti_torch_get_dtype(*t, &type) != 0
        || !strides_fill(sizes, (uint32_t) dims_count, strides)
        || aoti_torch_empty_strided(dims_count, sizes, strides, type,
        device >= 0 ? aoti_torch_device_type_cuda()
        : aoti_torch_device_type_cpu(), device >= 0 ? device : 0, &copy) != 0
        || aoti_torch_copy_(copy, *t, 0) != 0)
    {
        tensors_delete(&copy, 1);
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
            "a tensor could not be copied");
    }

    tensors_delete(t, 1);
    *t = copy;
    return NULL;
}

static bool
strides_fill(const int64_t *dims, uint32_t count, int64_t *strides)
{
    int64_t step = 1;

    if (count > DIMS_MAX) {
        return false;
    }

    for (uint32_t i = count; i-- > 0; ) {
        strides[i] = step;
        step *= dims[i] > 0 ? dims[i] : 1;
    }

    return true;
}

static void
tensors_delete(pt_tensor_t *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (list[i] != NULL) {
            (void) aoti_torch_delete_tensor_object(list[i]);
            list[i] = NULL;
        }
    }
}
