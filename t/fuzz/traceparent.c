/* Any header as a client's context: what is taken as one reads the same when
   it is written again. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/proto/trace_context.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char trace[2 * INF_TRACE_ID + 1], span[2 * INF_SPAN_ID + 1], text[64];
    inf_trace_context_t c, again;

    inf_trace_state_valid(inf_slice((const char *) data, size));
    if (!inf_trace_context_read(inf_slice((const char *) data, size), &c)) {
        return 0;
    }

    inf_trace_hex(c.trace_id, INF_TRACE_ID, trace);
    inf_trace_hex(c.span_id, INF_SPAN_ID, span);
    snprintf(text, sizeof(text), "00-%s-%s-%02x", trace, span, c.sampled);
    if (memcmp(text + 2, data + 2, INF_TRACEPARENT_LEN - 4) != 0
        || !inf_trace_context_read(inf_slice_str(text), &again)
        || memcmp(c.trace_id, again.trace_id, INF_TRACE_ID) != 0
        || memcmp(c.span_id, again.span_id, INF_SPAN_ID) != 0
        || c.sampled != again.sampled)
    {
        abort();
    }
    return 0;
}
