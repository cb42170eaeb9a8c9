/* checks_response.c - responses, outputs and what is reported of them. */

#include "conformance.h"

#include <stdlib.h>
#include <string.h>

static void check_null(cf_report_t *r);
static void check_probe(cf_report_t *r, TRITONBACKEND_Request *q);
static void check_outputs(cf_report_t *r, TRITONBACKEND_Response *p);
static void check_buffer(cf_report_t *r, TRITONBACKEND_Output *out);
static void check_reading(cf_report_t *r, TRITONBACKEND_Response *p);
static void report_response(cf_report_t *r, TRITONBACKEND_ModelInstance *i,
    TRITONBACKEND_ResponseFactory *factory, const uint64_t stamps[3],
    TRITONSERVER_Error *error);

void
cf_response_check(cf_report_t *r, TRITONBACKEND_Request *q,
    TRITONBACKEND_Response **answer)
{
    check_null(r);
    check_probe(r, q);

    *answer = NULL;
    cf_succeeds(r, TRITONBACKEND_ResponseNew(answer, q),
        "22: a response can be made");
    cf_succeeds(r, TRITONBACKEND_ResponseSetStringParameter(*answer, "text",
        "a \"quoted\" text"), "22: a response takes a text");
    cf_succeeds(r, TRITONBACKEND_ResponseSetIntParameter(*answer, "number",
        INT64_MIN), "22: a response takes a number");
    cf_succeeds(r, TRITONBACKEND_ResponseSetBoolParameter(*answer, "yes",
        true), "22: a response takes a truth value");
    cf_succeeds(r, TRITONBACKEND_ResponseSetDoubleParameter(*answer, "half",
        0.5), "22: a response takes a double");
    cf_succeeds(r, TRITONBACKEND_ResponseSetIntParameter(*answer, "number",
        2), "6: the same name twice keeps both");
}

static void
check_null(cf_report_t *r)
{
    const int64_t         shape[1] = { 1 };
    TRITONBACKEND_Output *out = (void *) r;

    cf_fails(r, TRITONBACKEND_ResponseSend(NULL, 1, NULL),
        TRITONSERVER_ERROR_INVALID_ARG,
        "22: ResponseSend of NULL is INVALID_ARG");
    cf_fails(r, TRITONBACKEND_ResponseOutput(NULL, &out, "X",
        TRITONSERVER_TYPE_FP32, shape, 1), TRITONSERVER_ERROR_INVALID_ARG,
        "22: ResponseOutput on NULL is INVALID_ARG");
    cf_check(r, out == NULL, "1: ResponseOutput sets NULL on error");
    cf_fails(r, TRITONBACKEND_ResponseSetStringParameter(NULL, "a", "b"),
        TRITONSERVER_ERROR_INVALID_ARG, "22: a text on NULL is INVALID_ARG");
    cf_fails(r, TRITONBACKEND_ResponseSetIntParameter(NULL, "a", 1),
        TRITONSERVER_ERROR_INVALID_ARG,
        "22: a number on NULL is INVALID_ARG");
    cf_fails(r, TRITONBACKEND_ResponseSetBoolParameter(NULL, "a", true),
        TRITONSERVER_ERROR_INVALID_ARG,
        "22: a truth value on NULL is INVALID_ARG");
    cf_fails(r, TRITONBACKEND_ResponseSetDoubleParameter(NULL, "a", 1.0),
        TRITONSERVER_ERROR_INVALID_ARG,
        "22: a double on NULL is INVALID_ARG");
}

/* A response that is made, filled and deleted: nothing is sent. */
static void
check_probe(cf_report_t *r, TRITONBACKEND_Request *q)
{
    TRITONBACKEND_Response *p = NULL;
    TRITONBACKEND_Output   *out = (void *) r;
    const int64_t           shape[2] = { 1, 4 };

    cf_succeeds(r, TRITONBACKEND_ResponseNew(&p, q),
        "22: a response can be made");
    if (p == NULL) {
        return;
    }

    check_outputs(r, p);
    check_reading(r, p);
    cf_fails(r, TRITONBACKEND_ResponseOutput(p, &out, "no such output",
        TRITONSERVER_TYPE_FP32, shape, 2), TRITONSERVER_ERROR_INVALID_ARG,
        "22: an output that is not configured is INVALID_ARG");
    cf_check(r, out == NULL, "1: ResponseOutput sets NULL on error");
    cf_succeeds(r, TRITONBACKEND_ResponseDelete(p),
        "22: an unsent response can be deleted");
}

static void
check_outputs(cf_report_t *r, TRITONBACKEND_Response *p)
{
    TRITONBACKEND_Output   *first = NULL, *more = NULL;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    const int64_t           shape[2] = { 1, 4 };
    void                   *buffer = r;
    int64_t                 id = 0;

    cf_succeeds(r, TRITONBACKEND_ResponseOutput(p, &first, "X",
        TRITONSERVER_TYPE_FP32, shape, 2), "22: an output can be made");
    if (first == NULL) {
        return;
    }
    for (int n = 0; n < 100; n++) {
        cf_succeeds(r, TRITONBACKEND_ResponseOutput(p, &more, n % 2 == 0
            ? "Y" : "X", n % 2 == 0 ? TRITONSERVER_TYPE_INT32
            : TRITONSERVER_TYPE_FP32, shape, 2),
            "22: outputs may be repeated and unrequested");
    }
    check_buffer(r, first);             /* its address is still good         */

    cf_succeeds(r, TRITONBACKEND_OutputBuffer(more, &buffer, 0, &type, &id),
        "29: OutputBuffer takes size 0");
}

static void
check_buffer(cf_report_t *r, TRITONBACKEND_Output *out)
{
    TRITONSERVER_BufferAttributes *a = NULL;
    TRITONSERVER_MemoryType        type = TRITONSERVER_MEMORY_CPU, seen;
    void                          *buffer = NULL, *again = r;
    size_t                         size = 0;
    int64_t                        id = 0;

    cf_succeeds(r, TRITONBACKEND_OutputBuffer(out, &buffer, 16, &type, &id),
        "22: an output has a buffer");
    cf_check(r, buffer != NULL && type == TRITONSERVER_MEMORY_CPU,
        "22: OutputBuffer says what kind it gave");
    if (buffer == NULL) {
        return;
    }

    memset(buffer, 0, 16);
    cf_fails(r, TRITONBACKEND_OutputBuffer(out, &again, 16, &type, &id),
        TRITONSERVER_ERROR_ALREADY_EXISTS,
        "22: a second OutputBuffer is ALREADY_EXISTS");
    cf_check(r, again == NULL, "1: OutputBuffer sets NULL on error");
    cf_succeeds(r, TRITONBACKEND_OutputBufferAttributes(out, &a),
        "22: an output has buffer attributes");
    if (a != NULL) {
        TRITONSERVER_BufferAttributesByteSize(a, &size);
        TRITONSERVER_BufferAttributesMemoryType(a, &seen);
        cf_check(r, size == 16 && seen == type,
            "22: attributes say what OutputBuffer gave");
    }
}

static void
check_reading(cf_report_t *r, TRITONBACKEND_Response *p)
{
    TRITONSERVER_DataType type = TRITONSERVER_TYPE_INVALID;
    const char           *name = NULL;
    const int64_t        *shape = NULL;
    uint64_t              dims = 0;

    cf_succeeds(r, TRITONBACKEND_InferenceResponseOutput(p, 0, &name, &type,
        &shape, &dims), "22: an output is found by its index");
    cf_check(r, name != NULL && strcmp(name, "X") == 0 && dims == 2
        && shape[1] == 4 && type == TRITONSERVER_TYPE_FP32,
        "22: an output is as it was made");
    cf_succeeds(r, TRITONBACKEND_InferenceResponseOutputByName(p, "Y", &type,
        &shape, &dims), "22: an output is found by its name");
    cf_check(r, dims == 3 && shape[1] == 2 && shape[2] == 2,
        "22: the configuration's reshape is undone");
    cf_fails(r, TRITONBACKEND_InferenceResponseOutput(p, 101, &name, &type,
        &shape, &dims), TRITONSERVER_ERROR_INVALID_ARG,
        "22: an output's index out of range is INVALID_ARG");
    cf_fails(r, TRITONBACKEND_InferenceResponseOutputByName(p, "Q", &type,
        &shape, &dims), TRITONSERVER_ERROR_NOT_FOUND,
        "22: an unknown output is NOT_FOUND");
}

void
cf_answer_fill(cf_report_t *r, TRITONBACKEND_Request *q,
    TRITONBACKEND_Response *answer)
{
    TRITONBACKEND_Input    *in = NULL;
    TRITONBACKEND_Output   *out = NULL;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    const int64_t          *shape;
    uint32_t                dims, count;
    uint64_t                size, at = 0;
    void                   *to = NULL;
    int64_t                 id = 0;

    cf_succeeds(r, TRITONBACKEND_RequestInput(q, "A", &in),
        "20: a required input is there");
    if (in == NULL) {
        return;
    }
    TRITONBACKEND_InputProperties(in, NULL, NULL, &shape, &dims, &size,
        &count);
    cf_succeeds(r, TRITONBACKEND_ResponseOutput(answer, &out, "X",
        TRITONSERVER_TYPE_FP32, shape, dims), "22: an output can be made");
    cf_succeeds(r, TRITONBACKEND_OutputBuffer(out, &to, size, &type, &id),
        "22: an output has a buffer");
    for (uint32_t n = 0; to != NULL && n < count; n++) {
        const void *from = NULL;
        uint64_t    bytes = 0;

        TRITONBACKEND_InputBuffer(in, n, &from, &bytes, &type, &id);
        memcpy((char *) to + at, from, bytes);
        at += bytes;
    }
}

void
cf_statistics_report(cf_report_t *r, TRITONBACKEND_ModelInstance *i,
    TRITONBACKEND_Request *q, bool success)
{
    TRITONBACKEND_ResponseFactory *factory = NULL;
    uint64_t                       now = cf_now_ns();
    const uint64_t                 good[3] = { now - 300, now - 100, now };
    const uint64_t                 empty[3] = { now - 300, 0, now };
    const uint64_t                 bad[3] = { now, now - 100, now - 300 };

    cf_succeeds(r, TRITONBACKEND_ResponseFactoryNew(&factory, q),
        "23: a request has a factory");
    report_response(r, i, factory, good, NULL);
    report_response(r, i, factory, empty, NULL);
    report_response(r, i, factory, bad, (void *) r);

    TRITONSERVER_Error *gone = TRITONSERVER_ErrorNew(
        TRITONSERVER_ERROR_CANCELLED, "gone");

    report_response(r, i, factory, good, gone);
    TRITONSERVER_ErrorDelete(gone);     /* it stayed ours                    */
    cf_succeeds(r, TRITONBACKEND_ResponseFactoryDelete(factory),
        "23: each handle is deleted");

    cf_succeeds(r, TRITONBACKEND_ModelInstanceReportStatistics(i, q, success,
        now - 300, now - 200, now - 100, now),
        "27: statistics are reported before the release");
    cf_succeeds(r, TRITONBACKEND_ModelInstanceReportBatchStatistics(i, 1,
        now - 300, now - 200, now - 100, now),
        "27: batch statistics are reported");
}

/* error == r: the stamps are out of order, which is rejected. */
static void
report_response(cf_report_t *r, TRITONBACKEND_ModelInstance *i,
    TRITONBACKEND_ResponseFactory *factory, const uint64_t stamps[3],
    TRITONSERVER_Error *error)
{
    TRITONBACKEND_ModelInstanceResponseStatistics *s = NULL;
    bool rejected = error == (void *) r;

    cf_succeeds(r, TRITONBACKEND_ModelInstanceResponseStatisticsNew(&s),
        "27: response statistics can be made");
    if (s == NULL) {
        return;
    }
    cf_succeeds(r,
        TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(s, i),
        "27: setters only store");
    cf_succeeds(r,
        TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(s,
        factory), "27: setters only store");
    cf_succeeds(r,
        TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart(s,
        stamps[0]), "27: setters only store");
    cf_succeeds(r,
        TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(s,
        stamps[1]), "27: setters only store");
    cf_succeeds(r,
        TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(s,
        stamps[2]), "27: setters only store");
    cf_succeeds(r,
        TRITONBACKEND_ModelInstanceResponseStatisticsSetError(s, rejected
        ? NULL : error), "27: setters only store");
    if (rejected) {
        cf_fails(r, TRITONBACKEND_ModelInstanceReportResponseStatistics(s),
            TRITONSERVER_ERROR_INVALID_ARG,
            "27: timestamps out of order are INVALID_ARG");
    } else {
        cf_succeeds(r, TRITONBACKEND_ModelInstanceReportResponseStatistics(s),
            "27: response statistics are reported");
    }
    cf_succeeds(r, TRITONBACKEND_ModelInstanceResponseStatisticsDelete(s),
        "27: response statistics are deleted");
}
