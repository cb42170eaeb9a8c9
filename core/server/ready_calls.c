#include "core/server/ready_calls.h"

#include <stdlib.h>

#include "core/base/buf.h"
#include "core/include/channel.h"
#include "core/proto/message.h"
#include "core/server/calls.h"
#include "core/server/ready_models.h"
#include "core/server/rest_answer.h"
#include "grpc_service.pb-c.h"

typedef struct {
    uint16_t          method;
    bool              rest;         /* the answer is a REST body             */
    inf_ready_call_fn done;
    void             *userp;
} call_t;

static inf_err_t *ask_server(inf_server_t *server, call_t *call);
static inf_err_t *ask_model(inf_server_t *server,
    inf_registry_reader_t *models, const ProtobufCMessage *m, call_t *call);
static void server_answer(void *userp, bool ready);
static void model_answer(void *userp, bool ready);
static void answer(call_t *call, const void *message);

bool
inf_ready_calls_have(uint16_t method)
{
    return method == INF_METHOD_SERVER_READY
        || method == INF_METHOD_MODEL_READY;
}

void
inf_ready_call(inf_server_t *server, inf_registry_reader_t *models,
    uint16_t method, inf_slice_t request, bool rest, inf_ready_call_fn done,
    void *userp)
{
    bool of_server = method == INF_METHOD_SERVER_READY;
    ProtobufCMessage *m = NULL;
    call_t *call = malloc(sizeof(*call));
    if (call == NULL) {
        done(userp, inf_err_nomem(), inf_slice(NULL, 0));
        return;
    }

    *call = (call_t) { method, rest, done, userp };
    inf_err_t *err = inf_message_unpack_request(of_server
        ? &inference__server_ready_request__descriptor
        : &inference__model_ready_request__descriptor, request, &m);
    if (err == NULL) {
        err = of_server ? ask_server(server, call)
            : ask_model(server, models, m, call);
        inf_message_free(m);
    }
    if (err != NULL) {
        free(call);
        done(userp, err, inf_slice(NULL, 0));
    }
}

/* NULL: the call is answered, now or later; likewise ask_model. */
static inf_err_t *
ask_server(inf_server_t *server, call_t *call)
{
    bool ready = inf_server_ready(server);

    if (ready && atomic_load(&server->strict_readiness)) {
        return inf_ready_models_ask(server, server_answer, call);
    }

    server_answer(call, ready);
    return NULL;
}

static inf_err_t *
ask_model(inf_server_t *server, inf_registry_reader_t *models,
    const ProtobufCMessage *m, call_t *call)
{
    const Inference__ModelReadyRequest *q = (const void *) m;
    inf_model_t *model;

    inf_err_t *err = inf_call_find_model(models, q->name, q->version, &model);
    if (err != NULL) {
        /* REST tells why by its status */
        return inf_registry_lacks(err) && !call->rest
            ? inf_err_because(err, INF_CAUSE_NOT_READY) : err;
    }

    inf_readiness_ask(server->readiness, model, model_answer, call);
    inf_model_unref(model);
    return NULL;
}

static void
server_answer(void *userp, bool ready)
{
    Inference__ServerReadyResponse r = INFERENCE__SERVER_READY_RESPONSE__INIT;
    r.ready = ready;
    answer(userp, &r);
}

static void
model_answer(void *userp, bool ready)
{
    Inference__ModelReadyResponse r = INFERENCE__MODEL_READY_RESPONSE__INIT;
    r.ready = ready;
    answer(userp, &r);
}

static void
answer(call_t *call, const void *message)
{
    inf_buf_t bytes;

    inf_buf_init(&bytes);
    inf_err_t *err = call->rest
        ? inf_rest_answer(call->method, message, &bytes)
        : inf_message_pack(message, &bytes);
    if (err == NULL) {
        err = inf_buf_status(&bytes);
    }
    call->done(call->userp, err, inf_buf_slice(&bytes));
    inf_buf_fini(&bytes);
    free(call);
}
