/* infer_generate.c - generate requests: converts their JSON to tensors. */

#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/model/generate_request.h"
#include "core/model/normalize.h"
#include "core/sched/rejection.h"
#include "core/service/infer_parts.h"

void
inf_infer_read(inf_in_flight_t *in_flight, inf_err_t *err)
{
    inf_factory_t *factory = &in_flight->factory;
    bool queued = false;
    inf_infer_fed_t fed;

    inf_factory_ref(factory);       /* the request may end before this call
                                       does                                  */
    if (err == NULL && !atomic_load(&factory->cancelled)) {
        err = inf_infer_generate(in_flight);
    }
    if (err == NULL && atomic_load(&factory->cancelled)) {
        inf_reject_cancelled(&in_flight->request);
    } else if (err == NULL) {
        err = inf_infer_queue(in_flight, inf_clock_ns(), false, &fed);
        queued = err == NULL;
    }
    if (err != NULL) {
        inf_infer_reject(in_flight, err);
    }

    /* A cancel stores cancelled and then loads reading: either the cancel
       finds the request queued, or the load below sees the cancel. */
    atomic_store(&in_flight->reading, false);
    if (queued && atomic_load(&factory->cancelled)) {
        inf_infer_unqueue(in_flight);
    }
    inf_factory_unref(factory);
}

/* Parses a copy, because the worker can still write to the JSON. */
inf_err_t *
inf_infer_generate(inf_in_flight_t *in_flight)
{
    const inf_record_input_t *in = inf_infer_record_inputs(in_flight->record);
    inf_request_t *req = &in_flight->request;
    uint64_t max_bytes = atomic_load_explicit(
        in_flight->session->max_json_bytes, memory_order_relaxed);
    inf_buf_t copy;

    if (in->data_length > max_bytes) {
        return inf_infer_json_long(max_bytes, INF_INFER_MAX_JSON_SETTING);
    }

    inf_buf_init(&copy);
    inf_buf_put(&copy, inf_channel_request(in_flight->session->channel,
        in->data_offset, in->data_length), in->data_length);
    inf_err_t *err = inf_buf_status(&copy);
    if (err == NULL) {
        err = inf_generate_request(req->model, req, inf_buf_slice(&copy),
            max_bytes);
        in_flight->factory.id = req->id;
    }
    inf_buf_fini(&copy);
    if (err != NULL) {
        return err;
    }

    err = inf_request_normalize(req->model, req);
    inf_request_move_inputs(req, INF_INPUTS_PRIVATE);
    return err == NULL ? NULL : inf_request_name_error(req, err);
}
