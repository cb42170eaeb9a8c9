#include "core/service/response_write.h"

#include "core/base/clock.h"
#include "core/server/load_report.h"
#include "core/service/request_regions.h"
#include "core/service/response_check.h"
#include "core/service/response_labels.h"

static void report_load(inf_in_flight_t *in_flight,
    inf_response_builder_t *b);
static inf_err_t *write_region(inf_channel_t *channel,
    const inf_response_builder_t *b, inf_channel_region_t **parts,
    uint32_t part_count, uint64_t *size, inf_channel_region_t **out);
static void describe_outputs(inf_in_flight_t *in_flight,
    inf_response_t *response, inf_response_output_desc_t *outputs,
    inf_channel_region_t **parts, uint32_t *part_count);
static void describe_parameters(const inf_response_t *response,
    inf_response_parameter_desc_t *list);
static uint32_t device_of(const inf_in_flight_t *in_flight);
static uint32_t microseconds(uint64_t from_ns, uint64_t to_ns);

inf_channel_region_t *
inf_response_write(inf_in_flight_t *in_flight, inf_response_t *response,
    uint64_t *size)
{
    const inf_model_t *model = in_flight->factory.model;
    const char *instance = atomic_load_explicit(&in_flight->request.instance,
        memory_order_relaxed);
    inf_arena_t *arena = &response->arena;
    inf_channel_region_t *region = NULL;
    uint32_t n = response->err == NULL ? response->output_count : 0;
    uint32_t part_count = 0;

    inf_response_output_desc_t *outputs = inf_arena_calloc(arena, n + 1,
        sizeof(*outputs));
    inf_response_parameter_desc_t *parameters = inf_arena_calloc(arena,
        response->parameters.count + 1, sizeof(*parameters));
    inf_channel_region_t **parts = inf_arena_calloc(arena, n + 1,
        sizeof(inf_channel_region_t *));
    if (outputs == NULL || parameters == NULL || parts == NULL) {
        return NULL;
    }

    if (response->err == NULL) {
        response->err = inf_response_check(model, response);
    }
    if (response->err == NULL) {
        describe_outputs(in_flight, response, outputs, parts, &part_count);
        describe_parameters(response, parameters);
    } else {
        n = 0;
    }

    inf_response_builder_t b = {
        .status = response->err != NULL
            ? INF_STATUS(inf_err_code(response->err)) : INF_OK,
        .error = response->err != NULL ? inf_response_readable(arena,
            inf_err_msg(response->err)) : inf_slice_str(""),
        .model_name = inf_slice_str(model != NULL ? model->name : ""),
        .model_version = model != NULL ? model->version : -1,
        .id = inf_slice_str(in_flight->factory.id),
        .backend = inf_slice_str(inf_model_backend_name(model)),
        .instance = inf_slice_str(instance != NULL ? instance : ""),
        .batch_dim = model != NULL
            && inf_config_tensors_max_batch_size(model->tensors) > 0,
        .ranked = 1,
        .output_count = n,
        .outputs = outputs,
        .parameter_count = response->err == NULL
            ? response->parameters.count : 0,
        .parameters = parameters
    };
    report_load(in_flight, &b);

    inf_err_t *err = write_region(in_flight->session->channel, &b, parts,
        part_count, size, &region);
    if (err != NULL) {
        inf_err_log(inf_err_add(err, "response to request \"%s\" is lost",
            in_flight->factory.id));
    }

    return region;
}

/* Adds the load report, once for each request that asks for it. */
static void
report_load(inf_in_flight_t *in_flight, inf_response_builder_t *b)
{
    if (in_flight->record != NULL
        && (in_flight->record->flags & INF_REQUEST_LOAD_REPORT)
        && !atomic_exchange_explicit(&in_flight->reported, true,
            memory_order_relaxed))
    {
        b->kv_reported = inf_load_report(&b->kv_utilization,
            &b->kv_max_tokens);
    }
}

/* Writes the record's region.  *out NULL: after an error, or without one if the
   arena is full. */
static inf_err_t *
write_region(inf_channel_t *channel, const inf_response_builder_t *b,
    inf_channel_region_t **parts, uint32_t part_count, uint64_t *size,
    inf_channel_region_t **out)
{
    *out = NULL;

    inf_err_t *err = inf_response_builder_size(b, size);
    if (err != NULL) {
        return err;
    }

    inf_channel_region_t *region = inf_channel_alloc(channel, *size);
    if (region == NULL) {
        return NULL;
    }

    inf_response_builder_write(b, inf_channel_region_data(region), *size);
    if (part_count > 0) {
        err = inf_channel_region_attach(region, parts, part_count);
    }
    if (err != NULL) {
        inf_channel_region_unref(region);
        return err;
    }

    *out = region;
    return NULL;
}

static void
describe_outputs(inf_in_flight_t *in_flight, inf_response_t *response,
    inf_response_output_desc_t *outputs, inf_channel_region_t **parts,
    uint32_t *part_count)
{
    const inf_model_t *model = in_flight->factory.model;
    uint32_t i = 0;

    for (inf_output_t *out = response->first; out != NULL; out = out->next) {
        inf_response_output_desc_t *d = &outputs[i++];
        d->name = inf_slice_str(out->name);
        d->datatype = out->datatype;
        d->dim_count = out->dim_count;
        d->shape = out->shape;
        d->data_kind = inf_request_regions_place(in_flight, out->name) != NULL
            ? INF_DATA_SHM_REGION : INF_DATA_ARENA;

        if (out->base != NULL && d->data_kind == INF_DATA_ARENA) {
            inf_channel_region_t *region = out->sink_userp;
            d->data_offset = inf_channel_region_offset(region);
            d->data_length = out->byte_size;
            parts[(*part_count)++] = region;
        }

        inf_response_labels(model, in_flight->record, response, out, d);
    }
}

static void
describe_parameters(const inf_response_t *response,
    inf_response_parameter_desc_t *list)
{
    for (uint32_t i = 0; i < response->parameters.count; i++) {
        const inf_parameter_t *p = response->parameters.items[i];
        *list++ = (inf_response_parameter_desc_t) {
            .name = inf_slice_str(p->name),
            .type = p->type,
            .text = inf_slice(p->text, p->text_len),
            .i = p->type == INF_PARAMETER_BOOL ? p->b : p->i,
            .d = p->d
        };
    }
}

void
inf_response_describe(const inf_in_flight_t *in_flight,
    const inf_response_t *response, inf_completion_t *c)
{
    const inf_request_t *req = &in_flight->request;
    uint64_t exec = atomic_load_explicit(&req->exec_ns, memory_order_relaxed);

    c->lookup = (uint8_t) req->cache.lookup;
    if (c->cause == INF_CAUSE_TIMED_OUT && exec == 0) {
        c->queue_ns = inf_clock_ns() - req->queue_ns;
    } else if (exec != 0) {
        uint64_t now = response->sent_ns != 0 ? response->sent_ns
            : inf_clock_ns();
        c->queue_ns = atomic_load_explicit(&req->queued_ns,
            memory_order_relaxed);
        c->compute_ns = now > exec ? now - exec : 0;
        c->batch_size = atomic_load_explicit(&req->payload_rows,
            memory_order_relaxed);
        c->device = device_of(in_flight);

        /* an input may be read after the first output was made */
        uint64_t output = response->output_ns != 0 ? response->output_ns : now;
        uint64_t input = atomic_load_explicit(&req->input_ns,
            memory_order_relaxed);
        c->compute_input_us = microseconds(exec,
            input < output ? input : output);
        c->compute_output_us = microseconds(output, now);
    }
}

/* The device of the execution; none for an ensemble. */
static uint32_t
device_of(const inf_in_flight_t *in_flight)
{
    int64_t gpu = atomic_load_explicit(&in_flight->factory.gpu,
        memory_order_relaxed);
    const char *instance = atomic_load_explicit(&in_flight->request.instance,
        memory_order_relaxed);

    return instance == NULL || gpu == INF_GPU_GUILTY
        ? INF_DEVICE_NONE
        : gpu >= 0 ? INF_DEVICE_GPU + (uint32_t) gpu : INF_DEVICE_CPU;
}

static uint32_t
microseconds(uint64_t from_ns, uint64_t to_ns)
{
    uint64_t us = to_ns > from_ns ? (to_ns - from_ns) / 1000 : 0;
    return us < UINT32_MAX ? (uint32_t) us : UINT32_MAX;
}
