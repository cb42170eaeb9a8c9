#include "core/server/trace_activity.h"

#include <string.h>

typedef struct {
    const char          *name;
    inf_activity_part_t  part;
} activity_t;

static const activity_t activities[] = {
    [TRITONSERVER_TRACE_REQUEST_START] =
        { "REQUEST_START", INF_ACTIVITY_MODEL },
    [TRITONSERVER_TRACE_QUEUE_START] =
        { "QUEUE_START", INF_ACTIVITY_MODEL },
    [TRITONSERVER_TRACE_COMPUTE_START] =
        { "COMPUTE_START", INF_ACTIVITY_COMPUTE },
    [TRITONSERVER_TRACE_COMPUTE_INPUT_END] =
        { "COMPUTE_INPUT_END", INF_ACTIVITY_COMPUTE },
    [TRITONSERVER_TRACE_COMPUTE_OUTPUT_START] =
        { "COMPUTE_OUTPUT_START", INF_ACTIVITY_COMPUTE },
    [TRITONSERVER_TRACE_COMPUTE_END] =
        { "COMPUTE_END", INF_ACTIVITY_COMPUTE },
    [TRITONSERVER_TRACE_REQUEST_END] =
        { "REQUEST_END", INF_ACTIVITY_MODEL },
    [TRITONSERVER_TRACE_TENSOR_QUEUE_INPUT] =
        { "TENSOR_QUEUE_INPUT", INF_ACTIVITY_TENSOR },
    [TRITONSERVER_TRACE_TENSOR_BACKEND_INPUT] =
        { "TENSOR_BACKEND_INPUT", INF_ACTIVITY_TENSOR },
    [TRITONSERVER_TRACE_TENSOR_BACKEND_OUTPUT] =
        { "TENSOR_BACKEND_OUTPUT", INF_ACTIVITY_TENSOR },
    [TRITONSERVER_TRACE_CUSTOM_ACTIVITY] =
        { "CUSTOM_ACTIVITY", INF_ACTIVITY_CUSTOM }
};

#define ACTIVITIES (sizeof(activities) / sizeof(activities[0]))

const char *
inf_trace_activity_name(TRITONSERVER_InferenceTraceActivity activity)
{
    return (unsigned) activity < ACTIVITIES ? activities[activity].name
        : "<unknown>";
}

inf_activity_part_t
inf_trace_activity_part(const char *name)
{
    for (size_t i = 0; i < ACTIVITIES; i++) {
        if (strcmp(activities[i].name, name) == 0) {
            return activities[i].part;
        }
    }
    return INF_ACTIVITY_CUSTOM;
}
