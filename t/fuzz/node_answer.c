/* Any bytes as a node's answer about its readiness: the state only changes from
   partial, a queue is in range, and what is read lies within the bytes. */
#include <stdint.h>
#include <stdlib.h>

#include "core/proto/node_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *) data;
    inf_node_answer_t whole, part;

    inf_node_answer_state_t state = inf_node_answer_read(
        inf_slice(bytes, size), &whole);

    for (size_t n = 0; n < size; n += 1 + n / 8) {
        inf_node_answer_state_t early = inf_node_answer_read(
            inf_slice(bytes, n), &part);
        if (early != INF_NODE_ANSWER_PARTIAL && early != state) {
            abort();
        }
        if (early == INF_NODE_ANSWER_COMPLETE
            && (part.status != whole.status || part.queue != whole.queue
                || part.queue_state != whole.queue_state))
        {
            abort();
        }
    }

    if (state != INF_NODE_ANSWER_COMPLETE) {
        return 0;
    }

    if (whole.status < 100 || whole.status > 999
        || whole.queue > INF_NODE_QUEUE_MAX
        || (whole.report.len > 0
            && (whole.report.data < bytes
                || whole.report.data + whole.report.len > bytes + size))
        || (whole.report.len == 0
            && whole.queue_state != INF_NODE_QUEUE_NONE))
    {
        abort();
    }
    return 0;
}
