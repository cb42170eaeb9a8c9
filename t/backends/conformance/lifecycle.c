/*
 * lifecycle.c - the entry points: order, states, and where to go wrong.
 *
 * A setting `fail` of the backend, or a parameter `fail` of the model, names
 * the entry point that returns an error: Initialize, ModelInitialize,
 * ModelInstanceInitialize, ModelInstanceExecute.  `unready` makes
 * ModelInstanceReady say no.
 */

#include "conformance.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void check_alone(cf_report_t *r);
static bool told(const char *config, const char *word);
static TRITONSERVER_Error *on_purpose(const char *what);
static void send_error(TRITONBACKEND_Request *request,
    TRITONSERVER_Error *err);

TRITONSERVER_Error *
TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend)
{
    cf_report_t           r = { .len = 0 };
    void                 *state = &r;
    TRITONSERVER_Message *message = NULL;
    const char           *text = "";
    size_t                size;

    cf_event("Initialize", "backend");
    check_alone(&r);
    cf_succeeds(&r, TRITONBACKEND_BackendState(backend, &state),
        "17: BackendState gives what was set");
    cf_check(&r, state == NULL, "17: a backend's state is NULL at first");
    cf_succeeds(&r, TRITONBACKEND_BackendConfig(backend, &message),
        "17: BackendConfig is there in Initialize");
    if (message != NULL) {
        TRITONSERVER_MessageSerializeToJson(message, &text, &size);
    }
    if (told(text, "Initialize")) {
        return on_purpose("Initialize");
    }

    cf_backend_t *b = calloc(1, sizeof(*b));

    if (b == NULL) {
        return on_purpose("memory");
    }
    b->handle = backend;
    cf_backend_check(&r, b);
    cf_memory_check(&r, b->manager);
    cf_succeeds(&r, TRITONBACKEND_BackendSetState(backend, b),
        "17: a backend's state can be set");
    state = NULL;
    cf_succeeds(&r, TRITONBACKEND_BackendState(backend, &state),
        "17: BackendState gives what was set");
    cf_check(&r, state == b, "17: BackendState gives what was set");
    return cf_report_error(&r);
}

TRITONSERVER_Error *
TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend *backend,
    TRITONBACKEND_BackendAttribute *attributes)
{
    cf_report_t r = { .len = 0 };
    void       *state = NULL;

    cf_event("GetBackendAttribute", "backend");
    cf_succeeds(&r, TRITONBACKEND_BackendState(backend, &state),
        "3: GetBackendAttribute comes after Initialize");
    cf_check(&r, state != NULL,
        "3: GetBackendAttribute comes after Initialize");
    cf_attributes_check(&r, attributes);
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL,
        "3: the result of GetBackendAttribute is ignored");
}

TRITONSERVER_Error *
TRITONBACKEND_Finalize(TRITONBACKEND_Backend *backend)
{
    void *state = NULL;

    TRITONSERVER_ErrorDelete(TRITONBACKEND_BackendState(backend, &state));
    cf_event("Finalize", state != NULL ? "backend" : "backend (no state)");
    free(state);
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model)
{
    cf_report_t            r = { .len = 0 };
    void                  *state = &r;
    const char            *name = "";
    TRITONBACKEND_Backend *backend = NULL;

    cf_succeeds(&r, TRITONBACKEND_ModelName(model, &name),
        "18: ModelName is there in ModelInitialize");
    cf_event("ModelInitialize", name);
    cf_succeeds(&r, TRITONBACKEND_ModelState(model, &state),
        "18: ModelState gives what was set");
    cf_check(&r, state == NULL, "18: a model's state is NULL at first");

    char *config = cf_model_config(model);

    if (config != NULL && told(config, "ModelInitialize")) {
        free(config);
        return on_purpose("ModelInitialize");
    }

    cf_model_t *m = calloc(1, sizeof(*m));

    if (m == NULL) {
        free(config);
        return on_purpose("memory");
    }
    m->handle = model;
    m->config = config;
    snprintf(m->name, sizeof(m->name), "%s", name);
    TRITONSERVER_ErrorDelete(TRITONBACKEND_ModelSetState(model, m));
    cf_succeeds(&r, TRITONBACKEND_ModelState(model, &state),
        "18: ModelState gives what was set");
    cf_check(&r, state == m, "18: ModelState gives what was set");

    cf_succeeds(&r, TRITONBACKEND_ModelBackend(model, &backend),
        "18: ModelBackend gives the backend");
    TRITONSERVER_ErrorDelete(TRITONBACKEND_BackendState(backend, &state));
    m->backend = state;
    cf_check(&r, m->backend != NULL && m->backend->handle == backend,
        "18: ModelBackend gives the backend that was initialised");
    cf_model_check(&r, m);
    return cf_report_error(&r);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model)
{
    void       *state = NULL;
    const char *name = "";

    TRITONSERVER_ErrorDelete(TRITONBACKEND_ModelState(model, &state));
    TRITONSERVER_ErrorDelete(TRITONBACKEND_ModelName(model, &name));
    cf_event("ModelFinalize", name);
    if (state != NULL) {
        free(((cf_model_t *) state)->config);
    }
    free(state);
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance)
{
    cf_report_t          r = { .len = 0 };
    void                *state = &r;
    const char          *name = "";
    TRITONBACKEND_Model *model = NULL;

    cf_succeeds(&r, TRITONBACKEND_ModelInstanceName(instance, &name),
        "19: ModelInstanceName is there in ModelInstanceInitialize");
    cf_event("ModelInstanceInitialize", name);
    cf_succeeds(&r, TRITONBACKEND_ModelInstanceState(instance, &state),
        "19: ModelInstanceState gives what was set");
    cf_check(&r, state == NULL, "19: an instance's state is NULL at first");
    cf_succeeds(&r, TRITONBACKEND_ModelInstanceModel(instance, &model),
        "19: ModelInstanceModel gives the model");
    TRITONSERVER_ErrorDelete(TRITONBACKEND_ModelState(model, &state));
    cf_check(&r, state != NULL && ((cf_model_t *) state)->handle == model,
        "19: ModelInstanceModel gives the model that was initialised");

    cf_model_t *m = state;

    /* the first of several: the others are still made */
    if (m != NULL && told(m->config, "ModelInstanceInitialize")
        && strstr(name, "_0") != NULL)
    {
        return on_purpose("ModelInstanceInitialize");
    }

    cf_instance_t *i = calloc(1, sizeof(*i));

    if (i == NULL) {
        return on_purpose("memory");
    }
    i->handle = instance;
    i->model = m;
    snprintf(i->name, sizeof(i->name), "%s", name);
    TRITONSERVER_ErrorDelete(TRITONBACKEND_ModelInstanceSetState(instance,
        i));
    cf_succeeds(&r, TRITONBACKEND_ModelInstanceState(instance, &state),
        "19: ModelInstanceState gives what was set");
    cf_check(&r, state == i, "19: ModelInstanceState gives what was set");
    cf_instance_check(&r, i);
    cf_statistics_check(&r, instance);
    return cf_report_error(&r);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance)
{
    void       *state = NULL;
    const char *name = "";

    TRITONSERVER_ErrorDelete(TRITONBACKEND_ModelInstanceState(instance,
        &state));
    TRITONSERVER_ErrorDelete(TRITONBACKEND_ModelInstanceName(instance,
        &name));
    cf_event("ModelInstanceFinalize", name);
    free(state);
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceReady(TRITONBACKEND_ModelInstance *instance)
{
    void *state = NULL;

    TRITONSERVER_ErrorDelete(TRITONBACKEND_ModelInstanceState(instance,
        &state));
    return state != NULL && told(((cf_instance_t *) state)->model->config,
        "unready") ? on_purpose("ModelInstanceReady") : NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
    TRITONBACKEND_Request **requests, const uint32_t count)
{
    void *state = NULL;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceState(instance,
        &state);
    if (err != NULL) {
        return err;
    }

    cf_instance_t *i = state;

    cf_event("ModelInstanceExecute", i->name);
    if (told(i->model->config, "ModelInstanceExecute")) {
        return on_purpose("ModelInstanceExecute");
    }

    for (uint32_t n = 0; n < count; n++) {
        err = cf_scenario_run(i, requests[n]);
        if (err != NULL) {
            send_error(requests[n], err);
        }
    }
    return NULL;
}

uint64_t
cf_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

/* Of all servers of the process. */
static void
check_alone(cf_report_t *r)
{
    static _Atomic int inside;

    cf_check(r, atomic_fetch_add(&inside, 1) == 0,
        "2: no two libraries initialise at once");
    usleep(2000);
    atomic_fetch_sub(&inside, 1);
}

static bool
told(const char *config, const char *word)
{
    char member[128], setting[128];

    snprintf(member, sizeof(member), "\"fail\":{\"string_value\":\"%s\"}",
        word);
    snprintf(setting, sizeof(setting), "\"fail\":\"%s\"", word);
    return strstr(config, member) != NULL || strstr(config, setting) != NULL;
}

static TRITONSERVER_Error *
on_purpose(const char *what)
{
    char text[128];

    snprintf(text, sizeof(text), "failing on purpose in %s", what);
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, text);
}

static void
send_error(TRITONBACKEND_Request *request, TRITONSERVER_Error *err)
{
    TRITONBACKEND_Response *response = NULL;

    TRITONSERVER_ErrorDelete(TRITONBACKEND_ResponseNew(&response, request));
    TRITONSERVER_ErrorDelete(TRITONBACKEND_ResponseSend(response,
        TRITONSERVER_RESPONSE_COMPLETE_FINAL, err));
    TRITONSERVER_ErrorDelete(err);
    TRITONSERVER_ErrorDelete(TRITONBACKEND_RequestRelease(request,
        TRITONSERVER_REQUEST_RELEASE_ALL));
}
