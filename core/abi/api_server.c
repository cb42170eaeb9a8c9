/* api_server.c - a server in an embedding program: start and stop, state, and
   models as JSON. */

#include "core/abi/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/abi/metrics.h"
#include "core/abi/plugins.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/object_address.h"
#include "core/proto/config_json.h"
#include "core/proto/message.h"
#include "core/proto/message_json.h"
#include "core/sched/rate_gate.h"
#include "core/server/calls.h"
#include "core/server/model_control.h"
#include "core/server/ready_models.h"
#include "core/storage/storage.h"
#include "grpc_service.pb-c.h"

#define VERSION_SIZE 24         /* of a version's digits                     */

typedef struct {
    inf_buf_t *json;
    bool       first;
} index_rows_t;

static void changed(void *userp);
static inf_err_t *check_options(const TRITONSERVER_ServerOptions *options);
static inf_err_t *check_load_models(const NginxInference__CoreConfig *config);
static inf_err_t *check_repositories(const NginxInference__CoreConfig *config);
static inf_err_t *check_repository(const char *path);
static bool is_not_directory(const inf_storage_t *storage, const char *path);
static inf_err_t *start_models(inf_core_config_t *config, inf_server_t **out);
static inf_err_t *drain(inf_server_t *server);
static inf_err_t *check_live(inf_server_t *server);
static inf_err_t *check_ready(inf_server_t *server);
static inf_err_t *check_control(inf_server_t *server);
static inf_err_t *ask_ready(inf_server_t *server, inf_model_t *model,
    bool *ready);
static char *print_version(char text[VERSION_SIZE], int64_t version);
static inf_err_t *read_override(const TRITONSERVER_Parameter **parameters,
    uint64_t count, inf_override_t **out);
static inf_err_t *add_parameter(inf_override_t *o, const inf_parameter_t *p);
static inf_err_t *unload(inf_server_t *server, const char *name,
    bool dependents);
static inf_err_t *call_json(inf_server_t *server, uint16_t method,
    const ProtobufCMessage *question,
    const ProtobufCMessageDescriptor *answer, TRITONSERVER_Message **out);
static inf_err_t *give_json(inf_err_t *err, inf_buf_t *json,
    TRITONSERVER_Message **out);
static void index_row(void *userp, const char *name, int64_t version,
    inf_version_state_t state, const char *reason);

static const inf_server_host_t api_host = {
    .plugins = &inf_abi_plugins,
    .changed = changed,
    .cache_required = true
};

TRITONSERVER_Error *
TRITONSERVER_ServerNew(TRITONSERVER_Server **server,
    TRITONSERVER_ServerOptions *options)
{
    inf_core_config_t *config;
    inf_server_t *s;
    *server = NULL;

    inf_err_t *err = check_options(options);
    if (err == NULL) {
        err = inf_api_options_config(options, &config);
    }
    if (err != NULL) {
        return err;
    }

    if (options->exit_on_error) {
        err = check_repositories(config->values);
    }
    if (err == NULL) {
        err = start_models(config, &s);
    }
    inf_core_config_unref(config);
    if (err != NULL) {
        return err;
    }

    if (!inf_lifecycle_all_ready(s->lifecycle)) {
        err = inf_err_new(INF_ERR_INTERNAL, "failed to load all models");
        if (options->exit_on_error) {
            inf_err_t *busy = TRITONSERVER_ServerDelete(
                inf_abi_as_server(s));
            inf_err_log(busy);
            return err;
        }
        inf_err_log(err);
    }

    *server = inf_abi_as_server(s);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerDelete(TRITONSERVER_Server *server)
{
    inf_server_t *s = inf_as_server(server);
    if (s == NULL) {
        return NULL;
    }

    inf_err_t *err = drain(s);
    if (err == NULL) {
        inf_metrics_forget(s);
        inf_server_free(s);
    }
    return err;
}

TRITONSERVER_Error *
TRITONSERVER_ServerStop(TRITONSERVER_Server *server)
{
    inf_server_t *s = inf_as_server(server);
    return s == NULL ? NULL : drain(s);
}

TRITONSERVER_Error *
TRITONSERVER_ServerSetExitTimeout(TRITONSERVER_Server *server,
    unsigned int timeout)
{
    inf_server_t *s = inf_as_server(server);
    if (s != NULL) {
        atomic_store(&s->exit_timeout_ns,
            (uint64_t) timeout * UINT64_C(1000000000));
    }
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerIsLive(TRITONSERVER_Server *server, bool *live)
{
    inf_err_t *err = check_live(inf_as_server(server));
    *live = err == NULL;
    return err;
}

TRITONSERVER_Error *
TRITONSERVER_ServerIsReady(TRITONSERVER_Server *server, bool *ready)
{
    inf_server_t *s = inf_as_server(server);
    *ready = false;

    inf_err_t *err = check_live(s);
    if (err != NULL) {
        return err;
    }

    if (!inf_server_ready(s)) {
        return NULL;
    }
    if (!atomic_load(&s->strict_readiness)) {
        *ready = true;
        return NULL;
    }

    return ask_ready(s, NULL, ready);
}

TRITONSERVER_Error *
TRITONSERVER_ServerModelIsReady(TRITONSERVER_Server *server,
    const char *model_name, const int64_t model_version, bool *ready)
{
    inf_server_t *s = inf_as_server(server);
    inf_model_t *model;
    *ready = false;

    inf_err_t *err = inf_api_find_model(s, model_name, model_version, &model);
    if (err != NULL && inf_registry_lacks(err)) {
        inf_err_free(err);
        return check_ready(s);
    }
    if (err == NULL) {
        err = ask_ready(s, model, ready);
        inf_model_unref(model);
    }
    return err;
}

TRITONSERVER_Error *
TRITONSERVER_ServerModelBatchProperties(TRITONSERVER_Server *server,
    const char *model_name, const int64_t model_version, uint32_t *flags,
    void **voidp)
{
    inf_model_t *model;
    if (voidp != NULL) {
        *voidp = NULL;
    }

    inf_err_t *err = inf_api_find_model(inf_as_server(server), model_name,
        model_version, &model);
    if (err == NULL) {
        *flags = inf_config_tensors_max_batch_size(model->tensors) > 0
            ? TRITONSERVER_BATCH_FIRST_DIM : TRITONSERVER_BATCH_UNKNOWN;
        inf_model_unref(model);
    }
    return err;
}

TRITONSERVER_Error *
TRITONSERVER_ServerModelTransactionProperties(TRITONSERVER_Server *server,
    const char *model_name, const int64_t model_version, uint32_t *txn_flags,
    void **voidp)
{
    inf_model_t *model;
    if (voidp != NULL) {
        *voidp = NULL;
    }

    inf_err_t *err = inf_api_find_model(inf_as_server(server), model_name,
        model_version, &model);
    if (err == NULL) {
        *txn_flags = inf_model_is_decoupled(model)
            ? TRITONSERVER_TXN_DECOUPLED : TRITONSERVER_TXN_ONE_TO_ONE;
        inf_model_unref(model);
    }
    return err;
}

TRITONSERVER_Error *
TRITONSERVER_ServerMetadata(TRITONSERVER_Server *server,
    TRITONSERVER_Message **server_metadata)
{
    const Inference__ServerMetadataRequest q =
        INFERENCE__SERVER_METADATA_REQUEST__INIT;
    return call_json(inf_as_server(server), INF_METHOD_SERVER_METADATA,
        &q.base, &inference__server_metadata_response__descriptor,
        server_metadata);
}

TRITONSERVER_Error *
TRITONSERVER_ServerModelMetadata(TRITONSERVER_Server *server,
    const char *model_name, const int64_t model_version,
    TRITONSERVER_Message **model_metadata)
{
    Inference__ModelMetadataRequest q = INFERENCE__MODEL_METADATA_REQUEST__INIT;
    inf_server_t *s = inf_as_server(server);
    char version[VERSION_SIZE];
    inf_model_t *model;
    *model_metadata = NULL;

    inf_err_t *err = inf_api_find_model(s, model_name, model_version, &model);
    if (err != NULL) {
        return err;
    }

    inf_model_unref(model);
    q.name = (char *) model_name;
    q.version = print_version(version, model_version);
    return call_json(s, INF_METHOD_MODEL_METADATA, &q.base,
        &inference__model_metadata_response__descriptor, model_metadata);
}

TRITONSERVER_Error *
TRITONSERVER_ServerModelConfig(TRITONSERVER_Server *server,
    const char *model_name, const int64_t model_version,
    const uint32_t config_version, TRITONSERVER_Message **model_config)
{
    inf_model_t *model;
    inf_buf_t json;
    *model_config = NULL;

    inf_err_t *err = inf_api_find_model(inf_as_server(server), model_name,
        model_version, &model);
    if (err != NULL) {
        return err;
    }

    inf_buf_init(&json);
    if (config_version != 1) {
        err = inf_err_new(INF_ERR_INVALID_ARG, "model configuration version %u"
            " not supported, supported versions are: 1", config_version);
    } else {
        inf_lock(&model->config_lock);
        err = inf_model_config_to_json(model->config->msg, &json);
        inf_unlock(&model->config_lock);
    }

    inf_model_unref(model);
    return give_json(err, &json, model_config);
}

TRITONSERVER_Error *
TRITONSERVER_ServerModelIndex(TRITONSERVER_Server *server, uint32_t flags,
    TRITONSERVER_Message **model_index)
{
    inf_buf_t json;
    index_rows_t rows = {
        .json = &json,
        .first = true
    };
    inf_server_t *s = inf_as_server(server);
    *model_index = NULL;

    inf_err_t *err = check_ready(s);
    if (err != NULL) {
        return err;
    }

    inf_buf_init(&json);
    inf_buf_putc(&json, '[');
    err = inf_lifecycle_repository_index(s->lifecycle,
        (flags & TRITONSERVER_INDEX_FLAG_READY) != 0, index_row, &rows);
    inf_buf_putc(&json, ']');
    return give_json(err, &json, model_index);
}

TRITONSERVER_Error *
TRITONSERVER_ServerModelStatistics(TRITONSERVER_Server *server,
    const char *model_name, const int64_t model_version,
    TRITONSERVER_Message **model_stats)
{
    Inference__ModelStatisticsRequest q =
        INFERENCE__MODEL_STATISTICS_REQUEST__INIT;
    inf_server_t *s = inf_as_server(server);
    char version[VERSION_SIZE];
    *model_stats = NULL;

    inf_err_t *err = check_ready(s);
    if (err != NULL) {
        return err;
    }

    q.name = (char *) model_name;
    q.version = print_version(version, model_version);
    err = call_json(s, INF_METHOD_MODEL_STATISTICS, &q.base,
        &inference__model_statistics_response__descriptor, model_stats);
    if (err != NULL || model_version >= -1 || model_name[0] == '\0') {
        return err;
    }

    inf_err_free(TRITONSERVER_MessageDelete(*model_stats));
    *model_stats = NULL;
    return inf_err_new(INF_ERR_INVALID_ARG, "requested model version is not"
        " available for model '%s'", model_name);
}

/* Prints a version for a call, which knows no negative ones: "" for these. */
static char *
print_version(char text[VERSION_SIZE], int64_t version)
{
    text[0] = '\0';
    if (version >= 0) {
        snprintf(text, VERSION_SIZE, "%lld", (long long) version);
    }
    return text;
}

TRITONSERVER_Error *
TRITONSERVER_ServerPollModelRepository(TRITONSERVER_Server *server)
{
    const inf_server_t *s = inf_as_server(server);
    if (atomic_load(&s->control) != NGINX_INFERENCE__MODEL_CONTROL__POLL) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "polling is disabled");
    }

    return inf_poll_once(s->poll, true);
}

TRITONSERVER_Error *
TRITONSERVER_ServerRegisterModelRepository(TRITONSERVER_Server *server,
    const char *repository_path, const TRITONSERVER_Parameter **name_mapping,
    const uint32_t mapping_count)
{
    inf_server_t *s = inf_as_server(server);

    if (!inf_model_control_is_explicit(s)) {
        return inf_err_new(INF_ERR_UNSUPPORTED, "repository registration is"
            " not allowed if model control mode is not EXPLICIT");
    }
    if (name_mapping == NULL && mapping_count > 0) {
        return inf_err_new(INF_ERR_INVALID_ARG, "model mappings are not"
            " provided while mapping count is non-zero");
    }

    inf_scan_alias_t *aliases = calloc(mapping_count + 1u, sizeof(*aliases));
    if (aliases == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = NULL;
    for (uint32_t i = 0; err == NULL && i < mapping_count; i++) {
        const inf_parameter_t *p = (const void *) name_mapping[i];
        aliases[i] = (inf_scan_alias_t) { .dir = p->name, .name = p->text };
        if (p->type != INF_PARAMETER_STRING) {
            err = inf_err_new(INF_ERR_INVALID_ARG, "Mapped model name must be"
                " a string, found another type for %s", p->name);
        }
    }
    if (err == NULL) {
        const inf_registration_t what = {
            .address = repository_path, .aliases = aliases,
            .count = mapping_count
        };
        err = inf_repositories_add(&s->repositories, &what, NULL);
    }
    free(aliases);
    return err;
}

TRITONSERVER_Error *
TRITONSERVER_ServerUnregisterModelRepository(TRITONSERVER_Server *server,
    const char *repository_path)
{
    inf_server_t *s = inf_as_server(server);

    if (!inf_model_control_is_explicit(s)) {
        return inf_err_new(INF_ERR_UNSUPPORTED, "repository unregistration is"
            " not allowed if model control mode is not EXPLICIT");
    }

    return inf_repositories_remove(&s->repositories, repository_path);
}

TRITONSERVER_Error *
TRITONSERVER_ServerLoadModel(TRITONSERVER_Server *server,
    const char *model_name)
{
    return TRITONSERVER_ServerLoadModelWithParameters(server, model_name, NULL,
        0);
}

TRITONSERVER_Error *
TRITONSERVER_ServerLoadModelWithParameters(TRITONSERVER_Server *server,
    const char *model_name, const TRITONSERVER_Parameter **parameters,
    const uint64_t parameter_count)
{
    inf_server_t *s = inf_as_server(server);
    inf_override_t *override = NULL;

    if (parameters == NULL && parameter_count > 0) {
        return inf_err_new(INF_ERR_INVALID_ARG, "load parameters are not"
            " provided while parameter count is non-zero");
    }

    inf_err_t *err = check_control(s);
    if (err == NULL) {
        err = inf_model_control_name(model_name);
    }
    if (err == NULL && parameter_count > 0) {
        err = read_override(parameters, parameter_count, &override);
    }
    if (err != NULL) {
        return err;
    }

    inf_rate_gate_expect_calls(s->rate_gate);   /* a warm-up asks, too       */
    return inf_lifecycle_load(s->lifecycle, model_name, override);
}

TRITONSERVER_Error *
TRITONSERVER_ServerUnloadModel(TRITONSERVER_Server *server,
    const char *model_name)
{
    return unload(inf_as_server(server), model_name, false);
}

TRITONSERVER_Error *
TRITONSERVER_ServerUnloadModelAndDependents(TRITONSERVER_Server *server,
    const char *model_name)
{
    return unload(inf_as_server(server), model_name, true);
}

inf_err_t *
inf_api_find_model(inf_server_t *server, const char *name, int64_t version,
    inf_model_t **out)
{
    inf_registry_reader_t reader;

    if (atomic_load(&server->start) == INF_SERVER_SCANS) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "Server not ready");
    }

    inf_registry_reader_init(&reader, &server->registry);
    inf_err_t *err = inf_registry_find(&reader, inf_slice_str(name), version,
        out);
    inf_registry_reader_fini(&reader);
    return err;
}

/* No data read from the registry is kept here. */
static void
changed(void *userp)
{
    (void) userp;
}

/* Rejects options that no server can have. */
static inf_err_t *
check_options(const TRITONSERVER_ServerOptions *options)
{
    const NginxInference__CoreConfig *config = options->config->values;

    if (config->n_repositories == 0) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "--model-repository must be specified");
    }
    if (config->agent_directories[0][0] == '\0') {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "--repoagent-directory can not be empty");
    }
    if (config->cache_directories[0][0] == '\0') {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "cache directory can not be empty");
    }
    if (options->several_caches) {
        return inf_err_new(INF_ERR_INVALID_ARG, "found multiple cache"
            " configurations, but only a single cache is currently supported");
    }
    return check_load_models(config);
}

/* Only explicit control looks at the models to load. */
static inf_err_t *
check_load_models(const NginxInference__CoreConfig *config)
{
    if (config->model_control != NGINX_INFERENCE__MODEL_CONTROL__EXPLICIT) {
        return NULL;
    }

    for (size_t i = 0; i < config->n_load_models; i++) {
        if (strcmp(config->load_models[i], "*") == 0
            && config->n_load_models > 1)
        {
            return inf_err_new(INF_ERR_INVALID_ARG, "Wildcard model name '*'"
                " must be the ONLY startup model if specified at all.");
        }
    }

    return NULL;
}

static inf_err_t *
check_repositories(const NginxInference__CoreConfig *config)
{
    for (size_t i = 0; i < config->n_repositories; i++) {
        inf_err_t *err = check_repository(config->repositories[i]);
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

static inf_err_t *
check_repository(const char *path)
{
    inf_storage_t *storage;
    inf_entries_t entries;
    char *root;

    inf_err_t *err = inf_storage_open(path, &storage, &root);
    if (err != NULL) {
        return err;
    }

    err = inf_storage_list(storage, root, &entries);
    if (err == NULL) {
        inf_entries_fini(&entries);
    } else if (inf_err_code(err) == INF_ERR_NOT_FOUND) {
        if (is_not_directory(storage, root)) {
            inf_err_free(err);
            err = inf_err_new(INF_ERR_INVALID_ARG,
                "repository path is not a valid directory");
        } else {
            err = inf_err_recode(err, INF_ERR_INTERNAL);
        }
    }
    inf_storage_close(storage);
    free(root);
    return inf_err_add(err, "model repository '%.*s'",
        (int) inf_object_address_shown(path), path);
}

/* Whether there is something else than a directory. */
static bool
is_not_directory(const inf_storage_t *storage, const char *path)
{
    inf_entry_t entry;

    inf_err_t *err = inf_storage_stat(storage, path, &entry);
    if (err != NULL) {
        inf_err_free(err);
        return false;
    }
    return entry.kind != INF_ENTRY_DIR;
}

/* Starts a server; returns when every model to load has been loaded or has
   failed. */
static inf_err_t *
start_models(inf_core_config_t *config, inf_server_t **out)
{
    inf_err_t *err = inf_server_start(config, &api_host, NULL, NULL, out);
    if (err == NULL) {
        inf_repository_change_wait((*out)->change);
        inf_lifecycle_wait((*out)->lifecycle);
    }
    return err;
}

static inf_err_t *
drain(inf_server_t *server)
{
    uint64_t until = inf_clock_ns() + atomic_load(&server->exit_timeout_ns);

    inf_server_end_sequences(server, until);
    uint64_t now = inf_clock_ns();
    return inf_server_drain(server, until > now ? until - now : 0)
        ? NULL : inf_err_new(INF_ERR_INTERNAL,
            "Exit timeout expired. Exiting immediately.");
}

static inf_err_t *
check_live(inf_server_t *server)
{
    return atomic_load(&server->stopping)
        ? inf_err_new(INF_ERR_UNAVAILABLE, "Server exiting") : NULL;
}

/* Rejects calls that a server answers no more once it stops. */
static inf_err_t *
check_ready(inf_server_t *server)
{
    return atomic_load(&server->stopping)
        ? inf_err_new(INF_ERR_UNAVAILABLE, "Server not ready") : NULL;
}

static inf_err_t *
check_control(inf_server_t *server)
{
    inf_err_t *err = check_ready(server);
    return err != NULL ? err : inf_model_control_allowed(server);
}

/* Waits for the backends' answer; model NULL: for all models. */
static inf_err_t *
ask_ready(inf_server_t *server, inf_model_t *model, bool *ready)
{
    inf_readiness_answer_t answer;
    inf_err_t *err = NULL;

    inf_readiness_answer_init(&answer);
    if (model != NULL) {
        inf_readiness_ask(server->readiness, model, inf_readiness_answer,
            &answer);
    } else {
        err = inf_ready_models_ask(server, inf_readiness_answer, &answer);
    }
    if (err != NULL) {
        inf_readiness_answer(&answer, false);
    }

    *ready = inf_readiness_answer_wait(&answer);
    return err;
}

static inf_err_t *
read_override(const TRITONSERVER_Parameter **parameters, uint64_t count,
    inf_override_t **out)
{
    inf_override_t *o;

    inf_err_t *err = inf_override_new(&o);
    for (uint64_t i = 0; err == NULL && i < count; i++) {
        err = add_parameter(o, (const void *) parameters[i]);
    }
    if (err != NULL) {
        inf_override_free(o);
        return err;
    }

    *out = o;
    return NULL;
}

static inf_err_t *
add_parameter(inf_override_t *o, const inf_parameter_t *p)
{
    if (strcmp(p->name, "config") == 0) {
        return p->type == INF_PARAMETER_STRING
            ? inf_override_set_config(o, inf_slice(p->text, p->text_len))
            : inf_err_new(INF_ERR_INVALID_ARG,
                "Config parameter 'config' must be a string");
    }
    if (strncmp(p->name, "file:", 5) == 0) {
        return p->type == INF_PARAMETER_BYTES
            ? inf_override_add_file(o, p->name + 5,
                inf_slice(p->text, p->text_len))
            : inf_err_new(INF_ERR_INVALID_ARG,
                "File parameter '%s' must be bytes", p->name);
    }

    return inf_err_new(INF_ERR_INVALID_ARG, "Unrecognized load parameter '%s'",
        p->name);
}

static inf_err_t *
unload(inf_server_t *server, const char *name, bool dependents)
{
    inf_err_t *err = check_control(server);
    return err != NULL ? err
        : inf_lifecycle_unload(server->lifecycle, name, dependents);
}

/* Gives the answer of a worker's call as JSON. */
static inf_err_t *
call_json(inf_server_t *server, uint16_t method,
    const ProtobufCMessage *question,
    const ProtobufCMessageDescriptor *answer, TRITONSERVER_Message **out)
{
    const inf_json_options_t options = { .int64_numbers = true };
    inf_registry_reader_t reader;
    inf_buf_t packed, reply, json;
    ProtobufCMessage *message;
    *out = NULL;

    inf_buf_init(&packed);
    inf_buf_init(&reply);
    inf_buf_init(&json);
    inf_registry_reader_init(&reader, &server->registry);

    inf_err_t *err = inf_message_pack(question, &packed);
    if (err == NULL) {
        err = inf_call(server, &reader, method, inf_buf_slice(&packed), false,
            &reply);
    }
    if (err == NULL) {
        err = inf_message_unpack(answer, inf_buf_slice(&reply), &message);
    }
    if (err == NULL) {
        err = inf_message_to_json(message, &options, &json);
        inf_message_free(message);
    }

    inf_registry_reader_fini(&reader);
    inf_buf_fini(&packed);
    inf_buf_fini(&reply);
    return give_json(err, &json, out);
}

/* Passes the text to a message; takes err and the contents of json. */
static inf_err_t *
give_json(inf_err_t *err, inf_buf_t *json, TRITONSERVER_Message **out)
{
    *out = NULL;
    if (err == NULL) {
        err = inf_buf_status(json);
    }
    if (err == NULL) {
        inf_slice_t text = inf_buf_slice(json);
        inf_json_text_t *message = inf_json_text_new(text.data, text.len);
        *out = inf_abi_as_message(message);
        err = message != NULL ? NULL : inf_err_nomem();
    }

    inf_buf_fini(json);
    return err;
}

static void
index_row(void *userp, const char *name, int64_t version,
    inf_version_state_t state, const char *reason)
{
    index_rows_t *rows = userp;

    inf_buf_puts(rows->json, rows->first ? "{\"name\":" : ",{\"name\":");
    rows->first = false;
    inf_json_put_string(rows->json, inf_slice_str(name));
    if (version >= 0) {
        inf_buf_printf(rows->json, ",\"version\":\"%lld\"",
            (long long) version);
    }
    if (state != INF_VERSION_UNKNOWN) {
        inf_buf_printf(rows->json, ",\"state\":\"%s\"",
            inf_version_state_name(state));
    }
    if (reason[0] != '\0') {
        inf_buf_puts(rows->json, ",\"reason\":");
        inf_json_put_string(rows->json, inf_slice_str(reason));
    }
    inf_buf_putc(rows->json, '}');
}
