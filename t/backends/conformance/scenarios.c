/*
 * scenarios.c - how a request is answered: its parameter "scenario" says.
 *
 *   (none)          every check, then X = A on the instance's thread
 *   texts           Z = what the core says of backend, model and instance
 *   later           released at once, answered by another thread
 *   stream          three responses and FINAL by flags, by another thread
 *   cancel          answers CANCELLED once the client has cancelled
 *   error           an error response
 *   silent          no response at all
 *   half            one response, never FINAL
 *   set-config      ModelSetConfig long after ModelInitialize, then X = A
 */

#include "conformance.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RESPONSES 3

/* Responses of a thread of ours after the request is gone. */
typedef struct {
    cf_report_t                    report;
    TRITONBACKEND_ResponseFactory *factory;
    float                          value;       /* A's first                 */
    bool                           stream;
} later_t;

static TRITONSERVER_Error *check_all(const cf_instance_t *i,
    TRITONBACKEND_Request *q);
static TRITONSERVER_Error *texts(const cf_instance_t *i,
    TRITONBACKEND_Request *q);
static TRITONSERVER_Error *later(TRITONBACKEND_Request *q, bool stream);
static void *later_main(void *arg);
static void later_answer(later_t *l, int n, bool final);
static TRITONSERVER_Error *wait_for_cancel(TRITONBACKEND_Request *q);
static TRITONSERVER_Error *no_final(TRITONBACKEND_Request *q, bool half);
static TRITONSERVER_Error *set_config(const cf_instance_t *i,
    TRITONBACKEND_Request *q);
static TRITONSERVER_Error *put_texts(TRITONBACKEND_Response *response,
    const char *const *list, int count);
static TRITONSERVER_Error *finish(TRITONBACKEND_Request *q,
    TRITONBACKEND_Response *response, TRITONSERVER_Error *err);
static const char *scenario_of(TRITONBACKEND_Request *q);

TRITONSERVER_Error *
cf_scenario_run(const cf_instance_t *i, TRITONBACKEND_Request *q)
{
    const char *name = scenario_of(q);

    if (strcmp(name, "texts") == 0) {
        return texts(i, q);
    }
    if (strcmp(name, "later") == 0 || strcmp(name, "stream") == 0) {
        return later(q, name[0] == 's');
    }
    if (strcmp(name, "cancel") == 0) {
        return wait_for_cancel(q);
    }
    if (strcmp(name, "error") == 0) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_ALREADY_EXISTS,
            "an error on purpose");
    }
    if (strcmp(name, "silent") == 0 || strcmp(name, "half") == 0) {
        return no_final(q, name[0] == 'h');
    }
    if (strcmp(name, "set-config") == 0) {
        return set_config(i, q);
    }
    if (name[0] != '\0') {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG,
            "unknown scenario");
    }
    return check_all(i, q);
}

static TRITONSERVER_Error *
check_all(const cf_instance_t *i, TRITONBACKEND_Request *q)
{
    cf_report_t             r = { .len = 0 };
    TRITONBACKEND_Response *answer = NULL;

    cf_request_check(&r, i, q);
    cf_response_check(&r, q, &answer);
    cf_answer_fill(&r, q, answer);
    cf_statistics_report(&r, i->handle, q, r.len == 0);
    if (answer == NULL) {
        return cf_report_error(&r);
    }

    TRITONSERVER_Error *err = cf_report_error(&r);

    return finish(q, answer, err);
}

static TRITONSERVER_Error *
texts(const cf_instance_t *i, TRITONBACKEND_Request *q)
{
    TRITONBACKEND_Response    *answer = NULL;
    TRITONBACKEND_ArtifactType type;
    TRITONSERVER_Message      *policy = NULL;
    const char                *list[6] = { "", "", "", "", "", i->name };
    size_t                     size;

    TRITONSERVER_Error *err = TRITONBACKEND_ResponseNew(&answer, q);
    if (err != NULL) {
        return err;
    }

    char *config = cf_model_config(i->model->handle);

    list[0] = config != NULL ? config : "";
    TRITONSERVER_MessageSerializeToJson(i->model->backend->config, &list[1],
        &size);
    TRITONBACKEND_ModelInstanceHostPolicy(i->handle, &policy);
    TRITONSERVER_MessageSerializeToJson(policy, &list[2], &size);
    TRITONBACKEND_BackendArtifacts(i->model->backend->handle, &type,
        &list[3]);
    TRITONBACKEND_ModelRepository(i->model->handle, &type, &list[4]);

    err = put_texts(answer, list, 6);
    free(config);
    return finish(q, answer, err);
}

/* The factory outlives its request. */
static TRITONSERVER_Error *
later(TRITONBACKEND_Request *q, bool stream)
{
    TRITONBACKEND_ResponseFactory *spare = NULL;
    TRITONBACKEND_Input           *in;
    TRITONSERVER_MemoryType        type;
    const void                    *base = NULL;
    uint64_t                       size = 0;
    int64_t                        id;
    pthread_t                      thread;
    later_t                       *l = calloc(1, sizeof(*l));

    if (l == NULL) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE,
            "memory");
    }
    l->stream = stream;
    TRITONSERVER_ErrorDelete(TRITONBACKEND_RequestInput(q, "A", &in));
    TRITONBACKEND_InputBuffer(in, 0, &base, &size, &type, &id);
    if (size >= sizeof(l->value)) {
        memcpy(&l->value, base, sizeof(l->value));
    }

    cf_succeeds(&l->report, TRITONBACKEND_ResponseFactoryNew(&spare, q),
        "23: several handles are allowed");
    cf_succeeds(&l->report, TRITONBACKEND_ResponseFactoryNew(&l->factory, q),
        "23: several handles are allowed");
    cf_succeeds(&l->report, TRITONBACKEND_ResponseFactoryDelete(spare),
        "23: each handle is deleted");
    TRITONSERVER_ErrorDelete(TRITONBACKEND_RequestRelease(q,
        TRITONSERVER_REQUEST_RELEASE_ALL));

    if (pthread_create(&thread, NULL, later_main, l) != 0) {
        later_main(l);
        return NULL;
    }
    pthread_detach(thread);
    return NULL;
}

static void *
later_main(void *arg)
{
    later_t *l = arg;
    bool     cancelled = true;

    usleep(2000);           /* Execute has long returned                     */
    cf_succeeds(&l->report, TRITONBACKEND_ResponseFactoryIsCancelled(
        l->factory, &cancelled), "24: a factory knows of a cancel");
    cf_check(&l->report, !cancelled, "24: nobody has cancelled");

    if (l->stream) {
        for (int n = 0; n < RESPONSES; n++) {
            later_answer(l, n, false);
        }
        cf_succeeds(&l->report, TRITONBACKEND_ResponseFactorySendFlags(
            l->factory, TRITONSERVER_RESPONSE_COMPLETE_FINAL),
            "23: flags may be sent alone");
    } else {
        later_answer(l, 0, true);
    }
    cf_succeeds(&l->report, TRITONBACKEND_ResponseFactoryDelete(l->factory),
        "23: a factory is deleted after FINAL");
    free(l);
    return NULL;
}

static void
later_answer(later_t *l, int n, bool final)
{
    TRITONBACKEND_Response *answer = NULL;
    TRITONBACKEND_Output   *out = NULL;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    const int64_t           shape[2] = { 1, 1 };
    void                   *to = NULL;
    int64_t                 id = 0;
    float                   value = l->value + (float) n;

    cf_succeeds(&l->report, TRITONBACKEND_ResponseNewFromFactory(&answer,
        l->factory), "23: a factory makes responses after the release");
    cf_succeeds(&l->report, TRITONBACKEND_ResponseOutput(answer, &out, "X",
        TRITONSERVER_TYPE_FP32, shape, 2), "22: an output can be made");
    if (out != NULL) {
        cf_succeeds(&l->report, TRITONBACKEND_OutputBuffer(out, &to,
            sizeof(value), &type, &id), "22: an output has a buffer");
    }
    if (to != NULL) {
        memcpy(to, &value, sizeof(value));
    }

    TRITONSERVER_Error *err = cf_report_error(&l->report);

    TRITONSERVER_ErrorDelete(TRITONBACKEND_ResponseSend(answer, final
        ? TRITONSERVER_RESPONSE_COMPLETE_FINAL : 0, err));
    TRITONSERVER_ErrorDelete(err);
}

static TRITONSERVER_Error *
wait_for_cancel(TRITONBACKEND_Request *q)
{
    bool cancelled = false;

    cf_event("waiting", "for a cancel");
    for (int n = 0; !cancelled && n < 10000; n++) {
        TRITONSERVER_ErrorDelete(TRITONBACKEND_RequestIsCancelled(q,
            &cancelled));
        usleep(1000);
    }
    cf_event(cancelled ? "cancelled" : "FAILED",
        "24: an executing request hears of its cancel");
    return TRITONSERVER_ErrorNew(cancelled ? TRITONSERVER_ERROR_CANCELLED
        : TRITONSERVER_ERROR_INTERNAL, cancelled ? "as the client wished"
        : "24: an executing request hears of its cancel");
}

/* The one thing that this backend must not do. */
static TRITONSERVER_Error *
no_final(TRITONBACKEND_Request *q, bool half)
{
    TRITONBACKEND_Response *answer = NULL;

    if (half) {
        TRITONSERVER_ErrorDelete(TRITONBACKEND_ResponseNew(&answer, q));
        TRITONSERVER_ErrorDelete(TRITONBACKEND_ResponseSend(answer, 0,
            NULL));
    }
    return TRITONBACKEND_RequestRelease(q, TRITONSERVER_REQUEST_RELEASE_ALL);
}

/* Changes what is reported, not what was built. */
static TRITONSERVER_Error *
set_config(const cf_instance_t *i, TRITONBACKEND_Request *q)
{
    static const char       late[] = "{\"max_batch_size\":2}";
    cf_report_t             r = { .len = 0 };
    TRITONSERVER_Message   *message = NULL;
    TRITONBACKEND_Response *answer = NULL;
    TRITONBACKEND_Model    *model = i->model->handle;

    TRITONSERVER_ErrorDelete(TRITONSERVER_MessageNewFromSerializedJson(
        &message, late, sizeof(late) - 1));
    cf_succeeds(&r, TRITONBACKEND_ModelSetConfig(model, 1, message),
        "18: ModelSetConfig after ModelInitialize is not rejected");
    TRITONSERVER_ErrorDelete(TRITONSERVER_MessageDelete(message));

    char *config = cf_model_config(model);

    cf_check(&r, config != NULL
        && strstr(config, "\"max_batch_size\":2,\"input\":[]") != NULL,
        "18: a late ModelSetConfig changes what is reported");
    free(config);

    TRITONSERVER_Error *err = TRITONBACKEND_ResponseNew(&answer, q);
    if (err != NULL) {
        return err;
    }
    cf_answer_fill(&r, q, answer);      /* X is still an output              */
    return finish(q, answer, cf_report_error(&r));
}

static TRITONSERVER_Error *
put_texts(TRITONBACKEND_Response *response, const char *const *list,
    int count)
{
    TRITONBACKEND_Output   *out = NULL;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    const int64_t           shape[2] = { 1, count };
    void                   *to = NULL;
    uint64_t                size = 0;
    int64_t                 id = 0;

    for (int n = 0; n < count; n++) {
        size += 4 + strlen(list[n]);
    }

    TRITONSERVER_Error *err = TRITONBACKEND_ResponseOutput(response, &out,
        "Z", TRITONSERVER_TYPE_BYTES, shape, 2);
    if (err == NULL) {
        err = TRITONBACKEND_OutputBuffer(out, &to, size, &type, &id);
    }
    if (err != NULL) {
        return err;
    }

    char *p = to;

    for (int n = 0; n < count; n++) {
        uint32_t len = (uint32_t) strlen(list[n]);

        memcpy(p, &len, 4);
        memcpy(p + 4, list[n], len);
        p += 4 + len;
    }
    return NULL;
}

/* Sends, takes err, releases. */
static TRITONSERVER_Error *
finish(TRITONBACKEND_Request *q, TRITONBACKEND_Response *response,
    TRITONSERVER_Error *err)
{
    TRITONSERVER_ErrorDelete(TRITONBACKEND_ResponseSend(response,
        TRITONSERVER_RESPONSE_COMPLETE_FINAL, err));
    TRITONSERVER_ErrorDelete(err);      /* it stayed ours                    */
    return TRITONBACKEND_RequestRelease(q, TRITONSERVER_REQUEST_RELEASE_ALL);
}

/* "" when the request has no such parameter. */
static const char *
scenario_of(TRITONBACKEND_Request *q)
{
    TRITONSERVER_ParameterType type;
    const char                *key;
    const void                *value;
    uint32_t                   count = 0;

    TRITONSERVER_ErrorDelete(TRITONBACKEND_RequestParameterCount(q, &count));
    for (uint32_t n = 0; n < count; n++) {
        TRITONSERVER_Error *err = TRITONBACKEND_RequestParameter(q, n, &key,
            &type, &value);

        if (err == NULL && type == TRITONSERVER_PARAMETER_STRING
            && strcmp(key, "scenario") == 0)
        {
            return value;
        }
        TRITONSERVER_ErrorDelete(err);
    }
    return "";
}
