#include "core/model/warmup.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/refs.h"
#include "core/model/normalize.h"
#include "core/model/string_check.h"
#include "core/tensor/response.h"

#define WARMUP_RANK      33
#define WARMUP_FILE_MAX  ((size_t) 4 << 30)
#define WARMUP_BATCH_MAX 65536u         /* requests of one execution         */
#define WARMUP_MAX_BYTES (UINT64_C(1) << 40)
#define WARMUP_REQUEST   "[request id: <id_unknown>] "  /* as Triton's texts */

typedef Inference__ModelWarmup sample_config_t;
typedef Inference__ModelWarmup__Input input_config_t;

typedef struct {
    const char     *name;
    bool            control;    /* no input of the model, and not checked    */
    inf_datatype_t  datatype;
    int64_t         shape[INF_MAX_DIMS + 1];
    uint32_t        dim_count;
    char           *data;
    size_t          size;
} warmup_input_t;

typedef struct {
    const char     *name;
    uint32_t        batch_size;
    uint32_t        runs;
    warmup_input_t *inputs;
    size_t          input_count;
} warmup_sample_t;

struct inf_warmup_s {
    warmup_sample_t *samples;
    size_t           count;
};

/* The source of a sample's data. */
typedef struct {
    const inf_storage_t *st;
    const char          *model_dir;
    const inf_model_t   *model;
} warmup_source_t;

typedef struct warmup_batch_s warmup_batch_t;

/* A request.  It is finished when it was released and finally answered, but its
   memory stays while the backend holds its factory. */
typedef struct {
    inf_request_t   request;
    inf_factory_t   factory;
    warmup_batch_t *batch;
    bool            answered;   /* under the batch's lock, as the next two   */
    bool            released;
    bool            over;
} warmup_shot_t;

struct warmup_batch_s {
    inf_lock_t    lock;         /* rank 33; guards the next two              */
    uint32_t      waiting;      /* unfinished shots                          */
    inf_err_t    *err;          /* the first error                           */
    _Atomic uint32_t refs;      /* live factories, and the runner; acq_rel   */
    inf_cond_t    over;         /* no shot is left                           */
    uint32_t      count;        /* set in new()                              */
    warmup_shot_t shots[];      /* one request each                          */
};

static inf_err_t *sample_make(const warmup_source_t *from,
    const sample_config_t *config, warmup_sample_t *out);
static inf_err_t *input_make(const warmup_source_t *from, const char *name,
    const input_config_t *config, warmup_input_t *out);
static inf_err_t *input_shape(const warmup_source_t *from,
    const input_config_t *config, warmup_input_t *out, uint64_t *elements);
static inf_err_t *input_data(const warmup_source_t *from,
    const input_config_t *config, uint64_t size, warmup_input_t *out);
static inf_err_t *input_file(const warmup_source_t *from, const char *file,
    uint64_t size, warmup_input_t *out);
static void fill_random(char *data, size_t size);
static inf_err_t *sample_run(const warmup_sample_t *sample,
    inf_instance_t *instance, inf_warmup_execute_fn execute);
static inf_err_t *batch_new(const warmup_sample_t *sample,
    inf_instance_t *instance, warmup_batch_t **out);
static inf_err_t *shot_fill(warmup_shot_t *shot, const warmup_sample_t *sample,
    const inf_model_t *model);
static inf_err_t *shot_add(inf_request_t *r, const warmup_sample_t *sample,
    bool controls);
static inf_err_t *batch_wait(warmup_batch_t *batch);
static void batch_unref(warmup_batch_t *batch);
static void shot_progress(warmup_shot_t *shot, bool answered, bool released,
    inf_err_t *err);
static void shot_released(void *userp, inf_request_t *request,
    uint32_t flags);
static void sink_complete(void *userp, inf_response_t *response,
    uint32_t flags);
static void sink_factory_free(void *userp, inf_factory_t *factory);

static const inf_sink_ops_t warmup_sink = {
    .alloc = inf_output_alloc_heap,
    .release = inf_output_free_heap,
    .complete = sink_complete,
    .factory_free = sink_factory_free
};

static const inf_request_ops_t warmup_ops = { .released = shot_released };

inf_err_t *
inf_warmup_new(const inf_storage_t *st, const char *model_dir,
    const inf_model_t *model, inf_warmup_t **out)
{
    const Inference__ModelConfig *msg = model->built;
    const warmup_source_t from = { st, model_dir, model };

    *out = NULL;
    if (msg->n_model_warmup == 0) {
        return NULL;
    }

    inf_warmup_t *w = calloc(1, sizeof(*w));
    if (w != NULL) {
        w->samples = calloc(msg->n_model_warmup, sizeof(*w->samples));
    }
    if (w == NULL || w->samples == NULL) {
        inf_warmup_free(w);
        return inf_err_nomem();
    }

    for (size_t i = 0; i < msg->n_model_warmup; i++) {
        const sample_config_t *config = msg->model_warmup[i];
        if (config->batch_size == 0) {
            continue;
        }

        inf_err_t *err = sample_make(&from, config, &w->samples[w->count++]);
        if (err != NULL) {
            inf_warmup_free(w);
            return inf_err_note(err, "warmup sample '%s'", config->name);
        }
    }

    *out = w;
    return NULL;
}

void
inf_warmup_free(inf_warmup_t *w)
{
    if (w == NULL) {
        return;
    }

    for (size_t i = 0; i < w->count; i++) {
        warmup_sample_t *sample = &w->samples[i];
        for (size_t k = 0; k < sample->input_count; k++) {
            free(sample->inputs[k].data);
        }
        free(sample->inputs);
    }

    free(w->samples);
    free(w);
}

inf_err_t *
inf_warmup_run(const inf_warmup_t *w, inf_instance_t *instance,
    inf_warmup_execute_fn execute, const _Atomic bool *stopping)
{
    for (size_t i = 0; i < w->count; i++) {
        const warmup_sample_t *sample = &w->samples[i];
        inf_log(INF_LOG_VERBOSE, "model '%s' instance %s is running warmup"
            " sample '%s'", instance->model->name, instance->spec->name,
            sample->name);

        for (uint32_t run = 0; run < sample->runs; run++) {
            if (stopping != NULL && atomic_load(stopping)) {
                return inf_err_new(INF_ERR_UNAVAILABLE, "warmup sample '%s' is"
                    " given up: the server is stopping", sample->name);
            }
            inf_err_t *err = sample_run(sample, instance, execute);
            if (err != NULL) {
                return err;
            }
        }
    }

    return NULL;
}

static inf_err_t *
sample_make(const warmup_source_t *from, const sample_config_t *config,
    warmup_sample_t *out)
{
    out->name = config->name;
    out->batch_size = config->batch_size;
    out->runs = config->count > 0 ? config->count : 1;
    if (config->batch_size > WARMUP_BATCH_MAX) {
        return inf_err_new(INF_ERR_INVALID_ARG, "batch_size %u is more than"
            " the %u requests that one warmup execution may have",
            config->batch_size, WARMUP_BATCH_MAX);
    }

    out->inputs = calloc(config->n_inputs + 1, sizeof(*out->inputs));
    if (out->inputs == NULL) {
        return inf_err_nomem();
    }

    for (size_t i = 0; i < config->n_inputs; i++) {
        const Inference__ModelWarmup__InputsEntry *entry = config->inputs[i];
        if (entry->value == NULL || entry->value->input_data_type_case
            == INFERENCE__MODEL_WARMUP__INPUT__INPUT_DATA_TYPE__NOT_SET)
        {
            return inf_err_new(INF_ERR_INVALID_ARG, WARMUP_REQUEST "warmup"
                " setting expects input '%s' to have input_data_type set",
                entry->key);
        }

        out->input_count++;
        inf_err_t *err = input_make(from, entry->key, entry->value,
            &out->inputs[i]);
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

static inf_err_t *
input_make(const warmup_source_t *from, const char *name,
    const input_config_t *config, warmup_input_t *out)
{
    uint64_t elements = 0;

    out->name = name;
    if ((unsigned) config->data_type >= INF_TYPE_COUNT
        || config->data_type == INFERENCE__DATA_TYPE__TYPE_INVALID)
    {
        return inf_err_new(INF_ERR_INVALID_ARG, "warmup setting expects a"
            " data_type for input '%s'", name);
    }
    out->datatype = (inf_datatype_t) config->data_type;

    inf_err_t *err = input_shape(from, config, out, &elements);
    if (err != NULL) {
        return err;
    }

    /* an empty string has only its length */
    uint64_t each = out->datatype == INF_TYPE_BYTES ? sizeof(uint32_t)
        : inf_datatype_size(out->datatype);
    if (elements > WARMUP_MAX_BYTES / each) {
        return inf_err_new(INF_ERR_INVALID_ARG, "warmup setting: the dims of"
            " input '%s' make it larger than %llu bytes", name,
            (unsigned long long) WARMUP_MAX_BYTES);
    }

    return input_data(from, config, elements * each, out);
}

/* The shape of one batch item, with batch dimension 1 if the model batches. */
static inf_err_t *
input_shape(const warmup_source_t *from, const input_config_t *config,
    warmup_input_t *out, uint64_t *elements)
{
    const inf_config_tensors_t *tensors = from->model->tensors;

    if (config->n_dims > INF_MAX_DIMS) {
        return inf_err_new(INF_ERR_INVALID_ARG, "warmup setting: input '%s'"
            " has %zu dims, at most %d are possible", out->name,
            config->n_dims, INF_MAX_DIMS);
    }

    out->control = inf_config_tensors_find_input(tensors,
        inf_slice_str(out->name)) == NULL;
    if (inf_config_tensors_max_batch_size(tensors) > 0) {
        out->shape[out->dim_count++] = 1;
    }

    *elements = 1;
    for (size_t i = 0; i < config->n_dims; i++) {
        int64_t dim = config->dims[i];
        if (dim < 0) {
            return inf_err_new(INF_ERR_INVALID_ARG, "warmup setting expects"
                " all variable-size dimensions are specified for input '%s'",
                out->name);
        }

        out->shape[out->dim_count++] = dim;
        if (dim > 0 && *elements > WARMUP_MAX_BYTES / (uint64_t) dim) {
            return inf_err_new(INF_ERR_INVALID_ARG, "warmup setting: the dims"
                " of input '%s' make it larger than %llu bytes", out->name,
                (unsigned long long) WARMUP_MAX_BYTES);
        }
        *elements *= (uint64_t) dim;
    }

    return NULL;
}

/* Makes the data of the chosen kind; the value given with it is ignored. */
static inf_err_t *
input_data(const warmup_source_t *from, const input_config_t *config,
    uint64_t size, warmup_input_t *out)
{
    if (config->input_data_type_case
        == INFERENCE__MODEL_WARMUP__INPUT__INPUT_DATA_TYPE_INPUT_DATA_FILE)
    {
        return input_file(from, config->input_data_file, size, out);
    }

    out->data = calloc(1, size + 1);
    if (out->data == NULL) {
        return inf_err_nomem();
    }

    out->size = size;
    if (out->datatype != INF_TYPE_BYTES && config->input_data_type_case
        == INFERENCE__MODEL_WARMUP__INPUT__INPUT_DATA_TYPE_RANDOM_DATA)
    {
        fill_random(out->data, out->size);
    }
    return NULL;
}

static inf_err_t *
input_file(const warmup_source_t *from, const char *file, uint64_t size,
    warmup_input_t *out)
{
    size_t len = 0;

    inf_err_t *err = inf_storage_read_in(from->st, from->model_dir, "warmup",
        file, WARMUP_FILE_MAX, &out->data, &len);
    if (err != NULL) {
        return inf_err_recode(err, INF_ERR_INTERNAL);
    }

    if (out->datatype != INF_TYPE_BYTES && len < size) {
        return inf_err_new(INF_ERR_INVALID_ARG, WARMUP_REQUEST "warmup setting"
            " expects %llu bytes, but the data provided from %sonly has %zu"
            " bytes", (unsigned long long) size, file, len);
    }

    out->size = out->datatype == INF_TYPE_BYTES ? len : size;
    return NULL;
}

static void
fill_random(char *data, size_t size)
{
    uint64_t state = inf_clock_ns();

    for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
        uint64_t x = state += UINT64_C(0x9e3779b97f4a7c15);
        x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
        x ^= x >> 31;

        size_t left = size - i;
        memcpy(data + i, &x, left < sizeof(x) ? left : sizeof(x));
    }
}

/* Runs one execution of batch_size requests with one item each. */
static inf_err_t *
sample_run(const warmup_sample_t *sample, inf_instance_t *instance,
    inf_warmup_execute_fn execute)
{
    warmup_batch_t *batch = NULL;
    inf_request_t **requests = calloc(sample->batch_size,
        sizeof(inf_request_t *));
    if (requests == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = batch_new(sample, instance, &batch);
    if (err != NULL) {
        free(requests);
        return inf_err_note(err, "warmup sample '%s'", sample->name);
    }

    uint64_t now = inf_clock_ns();
    for (uint32_t i = 0; i < batch->count; i++) {
        inf_request_t *r = &batch->shots[i].request;
        r->start_ns = now;
        r->queue_ns = now;
        atomic_init(&r->exec_ns, now);
        inf_request_move(r, INF_REQUEST_EXECUTING);
        requests[i] = r;
    }

    execute(instance, requests, batch->count);
    err = batch_wait(batch);
    free(requests);
    return err == NULL ? NULL : inf_err_recode(inf_err_add(err, "failed to run"
        " warmup sample '%s'", sample->name), INF_ERR_INVALID_ARG);
}

static inf_err_t *
batch_new(const warmup_sample_t *sample, inf_instance_t *instance,
    warmup_batch_t **out)
{
    uint32_t count = sample->batch_size;
    warmup_batch_t *batch = calloc(1, sizeof(*batch)
        + count * sizeof(batch->shots[0]));
    if (batch == NULL) {
        return inf_err_nomem();
    }

    inf_lock_init(&batch->lock, WARMUP_RANK);
    inf_cond_init(&batch->over);
    batch->count = count;
    batch->waiting = count;
    batch->refs = count + 1;

    inf_err_t *err = NULL;
    for (uint32_t i = 0; i < count; i++) {
        warmup_shot_t *shot = &batch->shots[i];
        shot->batch = batch;
        inf_request_init(&shot->request);
        inf_factory_init(&shot->factory);
        if (err == NULL) {
            err = shot_fill(shot, sample, instance->model);
        }
    }

    if (err != NULL) {
        batch->refs = 1;
        batch_unref(batch);
        return err;
    }

    *out = batch;
    return NULL;
}

static inf_err_t *
shot_fill(warmup_shot_t *shot, const warmup_sample_t *sample,
    const inf_model_t *model)
{
    inf_request_t *r = &shot->request;

    inf_factory_start(&shot->factory, (inf_model_t *) model, "", &warmup_sink,
        shot);
    r->model = (inf_model_t *) model;
    r->factory = &shot->factory;
    r->ops = &warmup_ops;
    r->userp = shot;

    inf_err_t *err = shot_add(r, sample, false);
    if (err == NULL) {
        err = inf_request_normalize(model, r);
        if (err != NULL) {
            return inf_request_name_error(r, err);
        }
        err = inf_request_check_strings(r);
    }

    r->batch_size = inf_config_tensors_max_batch_size(model->tensors) > 0;
    return err != NULL ? err : shot_add(r, sample, true);
}

/* Adds the sample's controls, or its inputs of the model. */
static inf_err_t *
shot_add(inf_request_t *r, const warmup_sample_t *sample, bool controls)
{
    for (size_t i = 0; i < sample->input_count; i++) {
        const warmup_input_t *from = &sample->inputs[i];
        const inf_buffer_t data = { .base = from->data, .size = from->size };
        if (from->control != controls) {
            continue;
        }

        inf_input_t *in = inf_request_add_input(r, from->name,
            strlen(from->name), from->datatype, from->shape, from->dim_count);
        inf_err_t *err = in == NULL ? inf_err_nomem()
            : inf_request_add_data(r, in, &data);
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

/* Waits until every request is answered and released; frees the batch. */
static inf_err_t *
batch_wait(warmup_batch_t *batch)
{
    inf_lock(&batch->lock);
    while (batch->waiting > 0) {
        inf_cond_wait(&batch->over, &batch->lock);
    }
    inf_err_t *err = batch->err;
    batch->err = NULL;
    inf_unlock(&batch->lock);

    batch_unref(batch);
    return err;
}

static void
batch_unref(warmup_batch_t *batch)
{
    if (!inf_refs_drop(&batch->refs)) {
        return;
    }

    for (uint32_t i = 0; i < batch->count; i++) {
        inf_request_fini(&batch->shots[i].request);
        inf_factory_fini(&batch->shots[i].factory);
    }
    inf_err_free(batch->err);
    inf_cond_fini(&batch->over);
    inf_lock_fini(&batch->lock);
    free(batch);
}

/* Notes progress; takes err, of which a batch keeps the first. */
static void
shot_progress(warmup_shot_t *shot, bool answered, bool released,
    inf_err_t *err)
{
    warmup_batch_t *batch = shot->batch;

    inf_lock(&batch->lock);
    if (batch->err == NULL) {
        batch->err = err;
        err = NULL;
    }
    shot->answered |= answered;
    shot->released |= released;
    if (shot->answered && shot->released && !shot->over) {
        shot->over = true;
        batch->waiting--;
    }
    inf_cond_signal(&batch->over);
    inf_unlock(&batch->lock);

    inf_err_free(err);
}

static void
shot_released(void *userp, inf_request_t *request, uint32_t flags)
{
    (void) request;
    (void) flags;
    shot_progress(userp, false, true, NULL);
}

static void
sink_complete(void *userp, inf_response_t *response, uint32_t flags)
{
    inf_err_t *err = NULL;

    if (response != NULL) {
        err = response->err;
        response->err = NULL;
    }

    /* before the response's reference to the factory is released */
    shot_progress(userp, (flags & INF_SEND_FINAL) != 0, false, err);
    inf_response_free(response);
}

/* Called when no answer can follow: the backend may have forgotten it. */
static void
sink_factory_free(void *userp, inf_factory_t *factory)
{
    warmup_shot_t *shot = userp;
    warmup_batch_t *batch = shot->batch;
    (void) factory;

    inf_lock(&batch->lock);
    bool answered = shot->answered;
    inf_unlock(&batch->lock);

    shot_progress(shot, true, true, answered ? NULL
        : inf_err_new(INF_ERR_INTERNAL, "the backend released the request"
            " without a final response"));
    batch_unref(batch);
}
