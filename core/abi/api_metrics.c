/* api_metrics.c - the metrics of a server inside another program. */

#include "core/abi/api.h"

#include "core/abi/metrics.h"
#include "core/server/metrics_text.h"

static void write_server(void *userp, inf_buf_t *out);

TRITONSERVER_Error *
TRITONSERVER_ServerMetrics(TRITONSERVER_Server *server,
    TRITONSERVER_Metrics **metrics)
{
    *metrics = inf_metrics_new(write_server, inf_as_server(server));
    return *metrics != NULL ? NULL : inf_err_nomem();
}

static void
write_server(void *userp, inf_buf_t *out)
{
    inf_metrics_text_server(userp, out);
}
