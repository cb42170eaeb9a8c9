#include "core/abi/execute.h"

#include "core/abi/plugin.h"
#include "core/base/clock.h"
#include "core/tensor/response.h"

static void execute(inf_instance_t *instance, inf_request_t **requests,
    uint32_t count);
static void fail_all(inf_instance_t *instance, inf_request_t **requests,
    uint32_t count, inf_err_t *err);

const inf_executor_t inf_backend_executor = { .execute = execute };

static void
execute(inf_instance_t *instance, inf_request_t **requests, uint32_t count)
{
    uint32_t rows = 0;
    for (uint32_t i = 0; i < count; i++) {
        rows += requests[i]->batch_size > 0 ? requests[i]->batch_size : 1;
    }
    for (uint32_t i = 0; i < count; i++) {
        requests[i]->payload_rows = rows;
        requests[i]->instance = instance->spec->name;
    }

    inf_err_t *err = inf_plugin_execute(instance, requests, count);
    if (err != NULL) {
        fail_all(instance, requests, count, err);
    }
}

/* The backend gave the requests back: each gets the error and is released. */
static void
fail_all(inf_instance_t *instance, inf_request_t **requests, uint32_t count,
    inf_err_t *err)
{
    uint64_t now = inf_clock_ns();

    for (uint32_t i = 0; i < count; i++) {
        inf_request_t *r = requests[i];
        inf_statistics_failure_for(&instance->statistics, INF_FAILURE_BACKEND,
            r->start_ns, now);
        inf_factory_send_error(r->factory, inf_err_new(inf_err_code(err), "%s",
            inf_err_msg(err)));
        inf_request_release(r, 1);
    }

    inf_err_free(err);
}
