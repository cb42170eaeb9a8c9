/* Loads and unloads by request, in both of their forms: what they do, and what
   they say when they can't. */

#include "temp_tree.h"

#include <pthread.h>
#include <unistd.h>

#include "core/abi/plugins.h"
#include "core/base/log.h"
#include "core/include/channel.h"
#include "core/proto/message.h"
#include "core/server/model_control.h"
#include "core_config_of.h"

#define MINUTE_NS UINT64_C(60000000000)

#define LOAD   INF_METHOD_REPOSITORY_MODEL_LOAD
#define UNLOAD INF_METHOD_REPOSITORY_MODEL_UNLOAD

#define FORM "backend: 'identity'"                                           \
    " input { name: 'IN' data_type: TYPE_FP32 dims: -1 }"                    \
    " output { name: 'OUT' data_type: TYPE_FP32 dims: -1 }"

typedef Inference__ModelRepositoryParameter parameter_t;

/* How a call ended. */
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t  came;
    bool            done;
    inf_err_t      *err;
} answer_t;

static struct {
    char                       *tree;
    char                       *repository;
    char                        backends[4200];
    inf_server_t               *server;
} w;

static void
changed(void *userp)
{
    (void) userp;
}

static const inf_server_host_t host = {
    .plugins = &inf_abi_plugins, .changed = changed
};

static void
start(NginxInference__ModelControl control)
{
    inf_core_config_t *config = core_config_of("repositories: '%s'"
        " backend_directories: '%s'", w.repository, w.backends);

    config->values->model_control = control;
    assert_ok(inf_server_start(config, &host, NULL, NULL, &w.server));
    inf_core_config_unref(config);
}

static int
setup(void **state)
{
    (void) state;
    memset(&w, 0, sizeof(w));
    w.tree = tree_new();
    tree_file(w.tree, "models/echo/config.pbtxt", FORM);
    tree_file(w.tree, "models/echo/1/data", "");
    w.repository = strdup(tree_path(w.tree, "models"));

    ssize_t len = readlink("/proc/self/exe", w.backends, 4096);
    assert_true(len > 0);
    w.backends[len] = '\0';
    strcpy(strrchr(w.backends, '/'), "/backends");
    start(NGINX_INFERENCE__MODEL_CONTROL__EXPLICIT);
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    assert_true(inf_server_stop(w.server, MINUTE_NS));
    tree_free(w.tree);
    free(w.repository);
    return 0;
}

static void
on_done(void *userp, inf_err_t *err)
{
    answer_t *a = userp;

    pthread_mutex_lock(&a->lock);
    assert_false(a->done);
    a->done = true;
    a->err = err;
    pthread_cond_signal(&a->came);
    pthread_mutex_unlock(&a->lock);
}

static inf_err_t *
call(uint16_t method, bool rest, inf_slice_t request)
{
    answer_t a = {
        .lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER
    };

    inf_model_control_call(w.server, method, rest, false, request, on_done,
        &a);
    pthread_mutex_lock(&a.lock);
    while (!a.done) {
        pthread_cond_wait(&a.came, &a.lock);
    }
    pthread_mutex_unlock(&a.lock);
    return a.err;
}

static inf_err_t *
call_packed(uint16_t method, const ProtobufCMessage *m)
{
    inf_buf_t bytes;

    inf_buf_init(&bytes);
    assert_ok(inf_message_pack(m, &bytes));
    inf_err_t *err = call(method, false, inf_buf_slice(&bytes));
    inf_buf_fini(&bytes);
    return err;
}

/* With one parameter; NULL: none. */
static inf_err_t *
load(const char *name, const char *key, parameter_t *value)
{
    Inference__RepositoryModelLoadRequest q =
        INFERENCE__REPOSITORY_MODEL_LOAD_REQUEST__INIT;
    Inference__RepositoryModelLoadRequest__ParametersEntry entry =
        INFERENCE__REPOSITORY_MODEL_LOAD_REQUEST__PARAMETERS_ENTRY__INIT;
    Inference__RepositoryModelLoadRequest__ParametersEntry *list = &entry;

    q.model_name = (char *) (uintptr_t) name;
    entry.key = (char *) (uintptr_t) key;
    entry.value = value;
    q.parameters = &list;
    q.n_parameters = key != NULL;
    return call_packed(LOAD, &q.base);
}

static inf_err_t *
unload(const char *name, const char *key, parameter_t *value)
{
    Inference__RepositoryModelUnloadRequest q =
        INFERENCE__REPOSITORY_MODEL_UNLOAD_REQUEST__INIT;
    Inference__RepositoryModelUnloadRequest__ParametersEntry entry =
        INFERENCE__REPOSITORY_MODEL_UNLOAD_REQUEST__PARAMETERS_ENTRY__INIT;
    Inference__RepositoryModelUnloadRequest__ParametersEntry *list = &entry;

    q.model_name = (char *) (uintptr_t) name;
    entry.key = (char *) (uintptr_t) key;
    entry.value = value;
    q.parameters = &list;
    q.n_parameters = key != NULL;
    return call_packed(UNLOAD, &q.base);
}

/* body, name and the name's length, as channel.h has it. */
static inf_err_t *
call_rest(uint16_t method, const char *name, const char *body)
{
    uint32_t name_len = (uint32_t) strlen(name);
    inf_buf_t record;

    inf_buf_init(&record);
    inf_buf_puts(&record, body);
    inf_buf_puts(&record, name);
    inf_buf_put(&record, &name_len, sizeof(name_len));
    inf_err_t *err = call(method, true, inf_buf_slice(&record));
    inf_buf_fini(&record);
    return err;
}

static parameter_t
text(const char *value)
{
    parameter_t p = INFERENCE__MODEL_REPOSITORY_PARAMETER__INIT;

    p.parameter_choice_case =
        INFERENCE__MODEL_REPOSITORY_PARAMETER__PARAMETER_CHOICE_STRING_PARAM;
    p.string_param = (char *) (uintptr_t) value;
    return p;
}

static bool
serves(const char *name)
{
    inf_registry_reader_t reader;
    inf_model_t *model = NULL;

    inf_registry_reader_init(&reader, &w.server->registry);
    inf_err_free(inf_registry_find(&reader, inf_slice_str(name), -1, &model));
    inf_registry_reader_fini(&reader);
    inf_model_unref(model);
    return model != NULL;
}

static void
a_model_comes_and_goes_in_either_form(void **state)
{
    (void) state;
    assert_false(serves("echo"));
    assert_ok(load("echo", NULL, NULL));
    assert_true(serves("echo"));
    assert_ok(unload("echo", NULL, NULL));
    assert_false(serves("echo"));

    assert_ok(call_rest(LOAD, "echo", ""));
    assert_true(serves("echo"));
    assert_ok(call_rest(UNLOAD, "echo",
        "{\"parameters\":{\"unload_dependents\":true}}"));
    assert_false(serves("echo"));
}

static void
a_request_may_bring_the_configuration(void **state)
{
    (void) state;
    parameter_t config = text("{\"backend\":\"identity\",\"max_batch_size\":3,"
        "\"input\":[{\"name\":\"IN\",\"data_type\":\"TYPE_FP32\",\"dims\":[1]}"
        "],\"output\":[{\"name\":\"OUT\",\"data_type\":\"TYPE_FP32\","
        "\"dims\":[1]}]}");
    inf_registry_reader_t reader;
    inf_model_t *model;

    assert_ok(load("echo", "config", &config));
    inf_registry_reader_init(&reader, &w.server->registry);
    assert_ok(inf_registry_find(&reader, inf_slice_str("echo"), -1, &model));
    inf_registry_reader_fini(&reader);
    assert_int_equal(model->built->max_batch_size, 3);
    inf_model_unref(model);
}

static void
what_cannot_be_done_says_why(void **state)
{
    (void) state;
    parameter_t number = INFERENCE__MODEL_REPOSITORY_PARAMETER__INIT;
    parameter_t word = text("yes");

    number.parameter_choice_case =
        INFERENCE__MODEL_REPOSITORY_PARAMETER__PARAMETER_CHOICE_INT64_PARAM;
    number.int64_param = 1;
    assert_error(call(LOAD, false, inf_slice("\xff\xff", 2)),
        INF_ERR_INTERNAL, "RepositoryModelLoad");
    assert_error(call(UNLOAD, false, inf_slice("\xff\xff", 2)),
        INF_ERR_INTERNAL, "RepositoryModelUnload");
    assert_error(call_rest(LOAD, "echo", "{"), INF_ERR_INVALID_ARG, "");
    assert_error(load(" \t", NULL, NULL), INF_ERR_INVALID_ARG,
        "cannot be empty");
    assert_error(load("..", NULL, NULL), INF_ERR_INVALID_ARG,
        "path traversal");
    assert_error(load("a/b", NULL, NULL), INF_ERR_INVALID_ARG,
        "path traversal");
    assert_error(load("echo", "config", &number), INF_ERR_INVALID_ARG,
        "load parameter 'config', expected string_param");
    assert_error(load("echo", "config", NULL), INF_ERR_INVALID_ARG,
        "load parameter 'config', expected string_param");
    assert_error(load("echo", "file:1/data", &word), INF_ERR_INVALID_ARG,
        "load parameter 'file:1/data', expected bytes_param");
    assert_error(load("echo", "wish", &word), INF_ERR_INVALID_ARG,
        "unrecognized load parameter 'wish'");
    assert_error(unload("echo", "unload_dependents", &word),
        INF_ERR_INVALID_ARG, "'unload_dependents' parameter, expected"
        " bool_param");
    assert_error(load("nowhere", NULL, NULL), INF_ERR_INTERNAL,
        "failed to load 'nowhere'");
    assert_false(serves("echo"));
}

static void
without_explicit_control_nobody_may_ask(void **state)
{
    (void) state;
    assert_true(inf_server_stop(w.server, MINUTE_NS));
    start(NGINX_INFERENCE__MODEL_CONTROL__NONE);
    inf_lifecycle_wait(w.server->lifecycle);
    assert_true(serves("echo"));
    assert_error(load("echo", NULL, NULL), INF_ERR_UNAVAILABLE,
        "explicit model load / unload is not allowed");
    assert_error(call_rest(UNLOAD, "echo", ""), INF_ERR_UNAVAILABLE,
        "explicit model load / unload is not allowed");
    assert_true(serves("echo"));
}

int
main(void)
{
    alarm(120);
    inf_log_set_levels(false, false, false, 0);
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_model_comes_and_goes_in_either_form),
        T(a_request_may_bring_the_configuration),
        T(what_cannot_be_done_says_why),
        T(without_explicit_control_nobody_may_ask)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
