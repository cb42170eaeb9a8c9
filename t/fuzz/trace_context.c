/* Any text as a trace's context: an activity is added to an object and to
   nothing else, and what comes of it is an object again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/slice.h"
#include "core/proto/json_doc.h"
#include "triton/core/tritonserver.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TRITONSERVER_InferenceTrace *trace;
    const char *context;
    inf_json_doc_t doc = { 0 };

    char *text = malloc(size + 1);
    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, size);
    text[size] = '\0';

    if (TRITONSERVER_InferenceTraceNew(&trace,
            TRITONSERVER_TRACE_LEVEL_TIMESTAMPS, 0, NULL, NULL, NULL) != NULL
        || TRITONSERVER_InferenceTraceSetContext(trace, text) != NULL)
    {
        abort();
    }

    TRITONSERVER_Error *err = TRITONSERVER_InferenceTraceReportActivity(trace,
        UINT64_MAX, size > 0 && data[0] > 127 ? "plain" : text);
    TRITONSERVER_InferenceTraceContext(trace, &context);
    if (err != NULL) {
        if (strcmp(context, text) != 0) {
            abort();                    /* an error changes nothing          */
        }
        TRITONSERVER_ErrorDelete(err);
    } else {
        inf_err_t *bad = inf_json_doc_parse(&doc, inf_slice_str(context), 0);
        if (bad != NULL) {
            abort();
        }
        inf_json_doc_fini(&doc);
    }

    TRITONSERVER_InferenceTraceDelete(trace);
    free(text);
    return 0;
}
