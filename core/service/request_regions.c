#include "core/service/request_regions.h"

#include <string.h>

#include "core/model/model.h"
#include "core/service/infer_parts.h"
#include "core/tensor/copy.h"

static inf_err_t *find_places(inf_in_flight_t *in_flight);
static inf_err_t *add_region(inf_in_flight_t *in_flight, inf_ref_t name,
    uint64_t offset, uint64_t size);

/* For the inputs and outputs that infer.c reads. */
inf_err_t *
inf_request_regions_find(inf_in_flight_t *in_flight)
{
    const inf_record_input_t *inputs = inf_infer_record_inputs(
        in_flight->record);
    uint32_t count = inf_infer_input_count(in_flight);

    for (uint32_t i = 0; i < count; i++) {
        const inf_record_input_t *in = &inputs[i];
        inf_err_t *err = in->data_kind == INF_DATA_SHM_REGION
            ? add_region(in_flight, in->shm_region, in->data_offset,
                in->data_length)
            : NULL;
        if (err != NULL) {
            return err;
        }
    }

    return find_places(in_flight);
}

static inf_err_t *
find_places(inf_in_flight_t *in_flight)
{
    const inf_infer_record_t *rec = in_flight->record;
    inf_request_t *req = &in_flight->request;
    const inf_record_output_t *outputs = inf_infer_record_outputs(rec);
    uint32_t most = inf_config_tensors_output_count(req->model->tensors)
        + 1;
    uint32_t count = 0;
    inf_err_t *err = NULL;

    most = rec->output_count < most ? rec->output_count : most;
    for (uint32_t i = 0; i < most; i++) {
        count += outputs[i].data_kind == INF_DATA_SHM_REGION;
    }
    if (count == 0) {
        return NULL;
    }

    in_flight->places = inf_arena_alloc(&req->arena, count
        * sizeof(*in_flight->places));
    if (in_flight->places == NULL) {
        return inf_err_nomem();
    }

    for (uint32_t i = 0; i < most && err == NULL; i++) {
        const inf_record_output_t *out = &outputs[i];
        if (out->data_kind != INF_DATA_SHM_REGION) {
            continue;
        }

        err = add_region(in_flight, out->shm_region, out->shm_offset,
            out->shm_length);
        if (err != NULL) {
            break;
        }

        inf_slice_t name = inf_infer_record_text(rec, out->name);
        inf_in_flight_place_t *place =
            &in_flight->places[in_flight->place_count++];
        *place = (inf_in_flight_place_t) {
            .name = inf_arena_strdup(&req->arena, name.data, name.len),
            .region = in_flight->regions[in_flight->region_count - 1],
            .offset = out->shm_offset,
            .size = out->shm_length
        };
        if (place->name == NULL) {
            err = inf_err_nomem();
        }
    }

    return err;
}

inf_buffer_t
inf_request_regions_input(const inf_in_flight_t *in_flight, uint32_t nth,
    const inf_record_input_t *in)
{
    const inf_shm_region_t *region = in_flight->regions[nth];

    return (inf_buffer_t) {
        .base = region->base + in->data_offset,
        .size = in->data_length,
        .memory_type = inf_shm_region_memory(region),
        .memory_id = region->device,
        .ipc_handle = region->kind == INF_SHM_CUDA ? region->handle : NULL
    };
}

/* Adds a region; the first call allocates the list for all regions that the
   record may name. */
static inf_err_t *
add_region(inf_in_flight_t *in_flight, inf_ref_t name, uint64_t offset,
    uint64_t size)
{
    const inf_infer_record_t *rec = in_flight->record;
    inf_request_t *req = &in_flight->request;

    if (in_flight->regions == NULL) {
        in_flight->regions = inf_arena_calloc(&req->arena, (size_t)
            rec->input_count + rec->output_count, sizeof(inf_shm_region_t *));
        if (in_flight->regions == NULL) {
            return inf_err_nomem();
        }
        req->uses_regions = true;
        req->copies = inf_shm_regions_copies(in_flight->session->regions);
    }

    inf_err_t *err = inf_shm_region_find(in_flight->session->regions,
        inf_infer_record_text(rec, name), offset, size,
        &in_flight->regions[in_flight->region_count]);
    if (err == NULL) {
        in_flight->region_count++;
    }
    return err;
}

const inf_in_flight_place_t *
inf_request_regions_place(const inf_in_flight_t *in_flight, const char *name)
{
    for (uint32_t i = 0; i < in_flight->place_count; i++) {
        if (strcmp(in_flight->places[i].name, name) == 0) {
            return &in_flight->places[i];
        }
    }

    return NULL;
}

inf_err_t *
inf_request_regions_alloc(const inf_in_flight_place_t *place,
    inf_memory_type_t preferred, inf_output_t *out, size_t size)
{
    const inf_shm_region_t *region = place->region;

    if (size > place->size) {
        return inf_err_new(INF_ERR_INTERNAL, "shared memory size specified"
            " with the request for output '%s' (%llu bytes) should be at least"
            " %zu bytes to hold the results", out->name,
            (unsigned long long) place->size, size);
    }

    if (region->kind == INF_SHM_CUDA && preferred != INF_MEMORY_GPU) {
        return NULL;
    }

    out->base = region->base + place->offset;
    out->memory_type = inf_shm_region_memory(region);
    out->memory_id = region->device;
    out->sink_userp = NULL;
    if (region->kind == INF_SHM_CUDA) {
        memcpy(out->ipc_handle, region->handle, sizeof(out->ipc_handle));
        out->has_ipc_handle = true;
    }
    return NULL;
}

inf_err_t *
inf_request_regions_fill(const inf_in_flight_t *in_flight,
    const inf_response_t *response)
{
    inf_err_t *err = NULL;
    inf_copies_t copies;

    inf_copies_init(&copies, inf_memory_shared());
    for (const inf_output_t *out = response->first; out != NULL && err == NULL;
        out = out->next)
    {
        const inf_in_flight_place_t *place = out->sink_userp != NULL
            ? inf_request_regions_place(in_flight, out->name) : NULL;
        if (place != NULL) {
            err = inf_copies_add(&copies, &(inf_place_t) {
                    place->region->base + place->offset, INF_MEMORY_GPU,
                    place->region->device
                }, &(inf_place_t) { out->base, out->memory_type, 0 },
                out->byte_size);
        }
    }

    inf_err_t *late = inf_copies_finish(&copies);
    if (err == NULL) {
        return late;
    }
    inf_err_log(late);
    return err;
}

inf_err_t *
inf_request_regions_check(const inf_in_flight_t *in_flight)
{
    inf_err_t *err = NULL;

    for (uint32_t i = 0; i < in_flight->region_count && err == NULL; i++) {
        err = inf_shm_region_check(in_flight->regions[i]);
    }

    return err;
}
