#include "core/service/request_log.h"

#include "core/base/log.h"
#include "core/model/model.h"

void
inf_request_log_taken(const inf_in_flight_t *in_flight)
{
    const inf_infer_record_t *rec = in_flight->record;
    inf_slice_t name = inf_infer_record_text(rec, rec->model_name);

    inf_log(INF_LOG_VERBOSE, "%s request: model=%.*s version=%lld request=%s"
        " inputs=%u", rec->protocol == INF_PROTOCOL_GRPC ? "gRPC" : "HTTP",
        (int) name.len, name.data, (long long) rec->model_version,
        in_flight->request.id, rec->input_count);
}

void
inf_request_log_cancelled(const inf_in_flight_t *in_flight)
{
    const inf_model_t *model = in_flight->factory.model;

    if (model != NULL && !atomic_load(&in_flight->reading)) {
        inf_log(INF_LOG_VERBOSE, "Cancellation notification received for"
            " model=%s version=%lld request=%s", model->name,
            (long long) model->version, in_flight->request.id);
    } else {
        inf_log(INF_LOG_VERBOSE, "Cancellation notification received for a"
            " request that is being read");
    }
}
