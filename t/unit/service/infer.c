/* The core in this process: a worker's channel, the identity backend. */

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/proto/infer_response.h"
#include "core/proto/message.h"
#include "core/sched/entrance.h"
#include "core/service/intake.h"
#include "core/wire/client.h"
#include "core/wire/request_record.h"
#include "core/wire/response_record.h"
#include "core/wire/sockets.h"
#include "core_config_of.h"
#include "grpc_service.pb-c.h"

#define FLOATS    16
#define RESPONSES (4u << 20)        /* bytes of the arena                    */

typedef struct {
    char                        repository[64];
    char                        backend_dir[512];
    inf_intake_t               *intake;
    inf_server_t               *server;
    pthread_t                   thread;
    int                         registration[2];
    int                         configure[2];
    inf_client_t               *client;
} world_t;

/* One request in flight, as a worker keeps it. */
typedef struct {
    inf_slot_id_t     id;
    inf_region_t     *region;
    uint8_t           flags;        /* of all completions seen               */
    inf_status_t      status;
    uint64_t          offset;
    uint64_t          length;
    char              text[2048];
    float             first;
} shot_t;

static world_t world;

static const char echo_config[] = "backend: 'identity' max_batch_size: 8\n"
    "input { name: 'INPUT0' data_type: TYPE_FP32 dims: -1 }\n"
    "output { name: 'OUTPUT0' data_type: TYPE_FP32 dims: -1 }\n";

static void
write_file(const char *dir, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void
make_model(const char *name, const char *config)
{
    char dir[256], version[300];
    snprintf(dir, sizeof(dir), "%s/%s", world.repository, name);
    assert_int_equal(mkdir(dir, 0755), 0);
    snprintf(version, sizeof(version), "%s/1", dir);
    assert_int_equal(mkdir(version, 0755), 0);
    write_file(dir, "config.pbtxt", config);
}

static void *
intake_main(void *arg)
{
    inf_intake_run(arg);
    return NULL;
}

/* The backends are built beside the test programs. */
static void
find_backends(void)
{
    char exe[400];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    assert_true(n > 0);
    exe[n] = '\0';
    *strrchr(exe, '/') = '\0';
    snprintf(world.backend_dir, sizeof(world.backend_dir), "%s/backends", exe);
}

static void
connect_client(void)
{
    const inf_client_conf_t conf = { .arena_bound = 64u << 20 };
    bool again = false;

    assert_null(inf_client_new(&conf, &world.client));
    assert_null(inf_client_hello(world.client, world.registration[0],
        &again));
    assert_false(again);

    do {
        struct pollfd p = {
            .fd = inf_client_control_fd(world.client), .events = POLLIN
        };
        assert_int_equal(poll(&p, 1, 10000), 1);
        assert_null(inf_client_welcome(world.client, &again));
    } while (again);
}

static int
setup(void **state)
{
    (void) state;
    find_backends();

    strcpy(world.repository, "/tmp/inf-unit-XXXXXX");
    assert_non_null(mkdtemp(world.repository));
    make_model("echo", echo_config);
    make_model("other", echo_config);
    make_model("third", echo_config);
    make_model("mirror", "backend: 'identity' max_batch_size: 8\n"
        "input { name: 'INPUT0' data_type: TYPE_FP32 dims: -1 }\n"
        "output { name: 'OUTPUT0' data_type: TYPE_FP32 dims: -1 }\n"
        "parameters { key: 'echo_parameters'\n"
        "  value { string_value: 'true' } }\n");
    make_model("slow", "backend: 'identity'\n"
        "input { name: 'INPUT0' data_type: TYPE_FP32 dims: -1 }\n"
        "output { name: 'OUTPUT0' data_type: TYPE_FP32 dims: -1 }\n"
        "parameters { key: 'execute_delay_ms' value { string_value: '150' } }\n");
    make_model("long", "backend: 'identity'\n"
        "input { name: 'INPUT0' data_type: TYPE_FP32 dims: -1 }\n"
        "output { name: 'OUTPUT0' data_type: TYPE_FP32 dims: -1 }\n"
        "parameters { key: 'execute_delay_ms' value { string_value: '3000' } }\n");
    make_model("gather", "backend: 'identity' max_batch_size: 8\n"
        "input { name: 'INPUT0' data_type: TYPE_FP32 dims: 1 }\n"
        "output { name: 'OUTPUT0' data_type: TYPE_FP32 dims: 1 }\n"
        "dynamic_batching { preferred_batch_size: 8\n"
        "  max_queue_delay_microseconds: 20000000 }\n");
    make_model("broken", "backend: 'no_such_backend'\n"
        "input { name: 'A' data_type: TYPE_FP32 dims: 1 }\n"
        "output { name: 'B' data_type: TYPE_FP32 dims: 1 }\n");

    inf_core_config_t *config = core_config_of("repositories: '%s'"
        " backend_directories: '%s'", world.repository, world.backend_dir);

    assert_null(inf_socket_pair(world.registration));
    assert_null(inf_socket_pair(world.configure));
    const inf_intake_options_t options = {
        .registration_fd = world.registration[1],
        .configure_fd = world.configure[1],
        .listen_fd = -1,
        .response_bound = RESPONSES
    };
    assert_null(inf_intake_new(&options, &world.intake));
    assert_null(inf_server_start(config, &inf_intake_host, world.intake, NULL,
        &world.server));
    inf_core_config_unref(config);
    assert_null(inf_intake_attach(world.intake, world.server));
    inf_lifecycle_wait(world.server->lifecycle);
    assert_int_equal(pthread_create(&world.thread, NULL, intake_main,
        world.intake), 0);
    connect_client();
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    char command[128];

    inf_client_free(world.client);
    close(world.registration[0]);       /* no nginx process is left          */
    close(world.configure[0]);
    pthread_join(world.thread, NULL);
    inf_intake_close(world.intake);
    inf_server_stop(world.server, UINT64_C(5000000000));
    inf_intake_free(world.intake);
    close(world.registration[1]);
    close(world.configure[1]);

    snprintf(command, sizeof(command), "rm -rf %s", world.repository);
    return system(command);
}

static void
on_completion(const inf_completion_t *cpl, void *userp)
{
    shot_t *shot = userp;
    shot->flags |= cpl->flags;

    if (cpl->flags & INF_COMPLETE_RESPONSE) {
        shot->status = cpl->status;
        shot->offset = cpl->offset;
        shot->length = cpl->length;
    }
    if ((shot->flags & (INF_COMPLETE_FINAL | INF_COMPLETE_RELEASED))
        == (INF_COMPLETE_FINAL | INF_COMPLETE_RELEASED))
    {
        inf_client_free_region(world.client, shot->region);
        shot->region = NULL;
        inf_client_give(world.client, shot->id);
    }
}

/* Until shot->flags has all of wanted. */
static void
wait_for(const shot_t *shot, uint8_t wanted)
{
    uint64_t until = inf_clock_ns() + UINT64_C(10000000000);

    while ((shot->flags & wanted) != wanted) {
        assert_true(inf_clock_ns() < until);
        inf_client_drain(world.client, 64, on_completion);
        if ((shot->flags & wanted) == wanted) {
            break;
        }
        if (inf_client_arm(world.client)) {
            struct pollfd p = {
                .fd = inf_client_event_fd(world.client), .events = POLLIN
            };
            poll(&p, 1, 100);
            inf_eventfd_watch_clear(inf_client_event_fd(world.client));
        }
    }
}

static uint8_t submit_flags;        /* of submissions to come                */

/* All its inputs are the len bytes of data. */
static void
submit_data(shot_t *shot, const char *model, const inf_infer_request_t *req,
    const void *data, size_t len)
{
    size_t at = (len + 63) / 64 * 64;           /* of the record             */
    uint64_t *offsets = calloc(req->input_count, sizeof(*offsets));
    inf_infer_target_t target = {
        .model_name = inf_slice_str(model), .model_version = -1,
        .protocol = INF_PROTOCOL_HTTP, .data_offsets = offsets
    };
    size_t size;

    *shot = (shot_t) { 0 };
    assert_true(inf_client_take(world.client, shot, &shot->id));
    assert_null(inf_infer_record_size(req, &target, &size));
    shot->region = inf_client_alloc(world.client, at + size);
    assert_non_null(shot->region);

    char *base = inf_client_data(world.client, shot->region);
    memcpy(base, data, len);
    for (uint32_t i = 0; i < req->input_count; i++) {
        offsets[i] = shot->region->offset;
    }
    inf_infer_record_write(req, &target, base + at, size);
    free(offsets);

    const inf_submission_t s = {
        .op = INF_SUBMIT_INFER,
        .flags = submit_flags,
        .slot = shot->id.slot,
        .generation = shot->id.generation,
        .offset = shot->region->offset + at,
        .length = size
    };
    assert_int_equal(inf_client_submit(world.client, &s), INF_CLIENT_OK);
}

/* All its inputs are FLOATS floats. */
static void
submit_request(shot_t *shot, const char *model, const inf_infer_request_t *req)
{
    float floats[FLOATS];

    for (int i = 0; i < FLOATS; i++) {
        floats[i] = (float) i + 0.5f;
    }
    submit_data(shot, model, req, floats, sizeof(floats));
}

/* Submits FLOATS floats; shape_len is what the shape says. */
static void
submit(shot_t *shot, const char *model, bool batched, int64_t shape_len)
{
    const int64_t shape[2] = { batched ? 1 : shape_len, shape_len };
    const inf_infer_input_t input = {
        .name = INF_SLICE("INPUT0"),
        .datatype = INF_TYPE_FP32,
        .dim_count = batched ? 2 : 1,
        .shape = shape,
        .source = INF_SOURCE_BINARY,
        .byte_size = FLOATS * sizeof(float)
    };
    const inf_infer_request_t req = {
        .id = INF_SLICE("r1"), .inputs = &input, .input_count = 1
    };

    submit_request(shot, model, &req);
}

/* Reads what came and gives it back. */
static void
read_response(shot_t *shot, const char **error)
{
    static _Alignas(8) char copy[65536];
    assert_true(shot->length > 0 && shot->length < sizeof(copy));
    memcpy(copy, inf_client_response(world.client, shot->offset,
        shot->length), shot->length);
    assert_null(inf_response_record_check(copy, shot->length,
        inf_client_response_size(world.client)));

    const inf_response_record_t *rec = (const void *) copy;
    if (rec->output_count > 0) {
        const inf_response_output_t *out =
            (const void *) (copy + rec->output_offset);
        assert_int_equal(out->data_length, FLOATS * sizeof(float));
        memcpy(&shot->first, inf_client_response(world.client,
            out->data_offset, out->data_length), sizeof(float));
    }

    inf_slice_t text = inf_response_text(rec, rec->error);
    snprintf(shot->text, sizeof(shot->text), "%.*s", (int) text.len,
        text.data);
    *error = shot->text;
    inf_client_release(world.client, shot->offset);
}

#define ALL (INF_COMPLETE_RESPONSE | INF_COMPLETE_FINAL                      \
    | INF_COMPLETE_RELEASED)

static void
identity_answers_what_it_was_sent(void **state)
{
    (void) state;
    shot_t shot;
    const char *error;

    submit(&shot, "echo", true, FLOATS);
    wait_for(&shot, ALL);
    assert_int_equal(shot.status, INF_OK);
    read_response(&shot, &error);
    assert_float_equal(shot.first, 0.5f, 0);
    assert_int_equal(inf_client_arena_stats(world.client)->in_use, 0);
}

/* Of all types, each with its name. */
static void
a_response_has_its_parameters_in_their_order(void **state)
{
    (void) state;
    static _Alignas(8) char copy[4096];
    static const int64_t shape[2] = { 1, FLOATS };
    static const inf_infer_input_t input = {
        .name = INF_SLICE("INPUT0"), .datatype = INF_TYPE_FP32,
        .dim_count = 2, .shape = shape, .source = INF_SOURCE_BINARY,
        .byte_size = FLOATS * sizeof(float)
    };
    static const inf_infer_parameter_t sent[] = {
        { .name = INF_SLICE("word"), .type = INF_PARAMETER_STRING,
          .text = INF_SLICE("yes") },
        { .name = INF_SLICE("number"), .type = INF_PARAMETER_INT,
          .integer = -7 },
        { .name = INF_SLICE("truth"), .type = INF_PARAMETER_BOOL,
          .integer = 1 },
        { .name = INF_SLICE("share"), .type = INF_PARAMETER_DOUBLE,
          .real = 1.5 }
    };
    const inf_infer_request_t req = {
        .id = INF_SLICE("r1"), .inputs = &input, .input_count = 1,
        .parameters = sent, .parameter_count = 4
    };
    shot_t shot;
    const char *error;

    submit_request(&shot, "mirror", &req);
    wait_for(&shot, ALL);
    assert_int_equal(shot.status, INF_OK);
    assert_true(shot.length < sizeof(copy));
    memcpy(copy, inf_client_response(world.client, shot.offset, shot.length),
        shot.length);

    const inf_response_record_t *rec = (const void *) copy;
    const inf_record_parameter_t *list = (const void *) (copy
        + rec->parameter_offset);
    assert_int_equal(rec->parameter_count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(inf_slice_eq(inf_response_text(rec, list[i].name),
            sent[i].name));
        assert_int_equal(list[i].type, sent[i].type);
    }
    assert_true(inf_slice_eq(inf_response_text(rec, list[0].text),
        sent[0].text));
    assert_int_equal(list[1].number.i, -7);
    assert_int_equal(list[2].number.i, 1);
    assert_float_equal(list[3].number.d, 1.5, 0);
    read_response(&shot, &error);
}

static void
expect_error(const char *model, bool batched, int64_t shape_len,
    inf_err_code_t code, const char *text)
{
    shot_t shot;
    const char *error;

    submit(&shot, model, batched, shape_len);
    wait_for(&shot, ALL);
    assert_int_equal(shot.status, INF_STATUS(code));
    read_response(&shot, &error);
    assert_non_null(strstr(error, text));
}

static void
an_unknown_model_is_not_found(void **state)
{
    (void) state;
    expect_error("ghost", true, FLOATS, INF_ERR_NOT_FOUND,
        "Request for unknown model: 'ghost' is not found");
}

static void
a_model_that_failed_to_load_is_unavailable(void **state)
{
    (void) state;
    expect_error("broken", true, FLOATS, INF_ERR_NOT_FOUND,
        "has no available versions");
}

static void
a_shape_that_does_not_fit_its_bytes_is_rejected(void **state)
{
    (void) state;
    expect_error("echo", true, FLOATS + 1, INF_ERR_INVALID_ARG,
        "input byte size mismatch for input 'INPUT0' for model 'echo'."
        " Expected 68, got 64");
}

static void
a_missing_batch_dimension_is_named(void **state)
{
    (void) state;
    expect_error("echo", false, FLOATS, INF_ERR_INVALID_ARG,
        "inference request batch-size must be <= 8");
}

/* ---- more names than a model has ----------------------------------------- */

static _Atomic uint32_t added_inputs, added_outputs;

inf_input_t *__real_inf_request_add_input(inf_request_t *r, const char *name,
    size_t name_len, inf_datatype_t datatype, const int64_t *shape,
    uint32_t dim_count);
inf_input_t *__wrap_inf_request_add_input(inf_request_t *r, const char *name,
    size_t name_len, inf_datatype_t datatype, const int64_t *shape,
    uint32_t dim_count);
inf_err_t *__real_inf_request_add_output(inf_request_t *r, const char *name,
    size_t name_len);
inf_err_t *__wrap_inf_request_add_output(inf_request_t *r, const char *name,
    size_t name_len);

inf_input_t *
__wrap_inf_request_add_input(inf_request_t *r, const char *name,
    size_t name_len, inf_datatype_t datatype, const int64_t *shape,
    uint32_t dim_count)
{
    added_inputs++;
    return __real_inf_request_add_input(r, name, name_len, datatype, shape,
        dim_count);
}

inf_err_t *
__wrap_inf_request_add_output(inf_request_t *r, const char *name,
    size_t name_len)
{
    added_outputs++;
    return __real_inf_request_add_output(r, name, name_len);
}

/* How many the intake took into the request until it rejected it. */
static void
names_fail(const inf_infer_request_t *req, uint32_t inputs, uint32_t outputs,
    const char *text)
{
    const char *error;
    shot_t shot;

    added_inputs = added_outputs = 0;
    submit_request(&shot, "echo", req);
    wait_for(&shot, ALL);
    assert_int_equal(shot.status, INF_STATUS(INF_ERR_INVALID_ARG));
    read_response(&shot, &error);
    assert_string_equal(error, text);
    assert_int_equal(added_inputs, inputs);
    assert_int_equal(added_outputs, outputs);
}

static void
names_that_a_model_lacks_cost_little(void **state)
{
    (void) state;
    enum { MANY = INF_INFER_MAX_TENSORS, TOLD = 64 };
    char all[TOLD * 9 + 1] = "", text[sizeof(all) * 2 + 256];
    static char names[MANY][8];
    static inf_infer_input_t inputs[MANY];
    static inf_infer_output_t outputs[MANY];
    static const int64_t shape[2] = { 1, FLOATS };
    inf_infer_request_t req = {
        .id = INF_SLICE("r1"), .inputs = inputs, .input_count = 1,
        .outputs = outputs, .output_count = MANY
    };

    for (int i = 0; i < MANY; i++) {    /* in falling order                  */
        snprintf(names[i], sizeof(names[i]), "X%05d", MANY - i);
        outputs[i].name = inf_slice_str(names[i]);
        inputs[i] = (inf_infer_input_t) {
            .name = i == 0 ? inf_slice_str("INPUT0") : inf_slice_str(names[i]),
            .datatype = INF_TYPE_FP32, .dim_count = 2, .shape = shape,
            .source = INF_SOURCE_BINARY, .byte_size = FLOATS * sizeof(float)
        };
    }
    names_fail(&req, 1, 0, "unexpected inference output"
        " 'X16384' for model 'echo'");
    for (int i = 0; i < MANY; i++) {
        outputs[i].name = inf_slice_str("OUTPUT0");
    }
    names_fail(&req, 1, 2, "[request id: r1] output 'OUTPUT0' already"
        " requested");

    req.output_count = 0;
    req.input_count = MANY;
    for (int i = TOLD; i > 0; i--) {
        snprintf(all + strlen(all), 10, ",'%s'", names[i]);
    }
    snprintf(text, sizeof(text), "[request id: r1] expected 1 inputs but got"
        " %d inputs for model 'echo'. Got input(s) ['INPUT0'%s], but missing"
        " required input(s) []. Please provide all required input(s). The"
        " model has no input(s) [%s].", TOLD + 1, all, all + 1);
    names_fail(&req, TOLD + 1, 0, text);
    for (int i = 1; i < MANY; i++) {
        inputs[i].name = inf_slice_str("INPUT0");
    }
    names_fail(&req, TOLD + 1, 0, "[request id: r1] input 'INPUT0' already"
        " exists in request");
}

static void
a_queued_request_is_cancelled_at_once(void **state)
{
    (void) state;
    shot_t running, queued;
    const char *error;

    submit(&running, "slow", false, FLOATS);
    submit(&queued, "slow", false, FLOATS);
    usleep(20000);
    inf_client_cancel(world.client, queued.id);
    wait_for(&queued, ALL);
    assert_int_equal(queued.status, INF_STATUS(INF_ERR_CANCELLED));
    assert_int_equal(running.flags & INF_COMPLETE_FINAL, 0);
    read_response(&queued, &error);

    wait_for(&running, ALL);
    assert_int_equal(running.status, INF_OK);
    read_response(&running, &error);
}

static void
submit_suspect(shot_t *shot, const char *model, bool batched)
{
    submit_flags = INF_SUBMIT_FLAG_SUSPECT;
    submit(shot, model, batched, FLOATS);
    submit_flags = 0;
}

/* The core has said so. */
static void
wait_for_suspect(bool under_way)
{
    uint64_t until = inf_clock_ns() + UINT64_C(10000000000);

    while (inf_client_has_suspect(world.client) != under_way) {
        assert_true(inf_clock_ns() < until);
        usleep(1000);
    }
}

/* Others pass; all workers are told. */
static void
suspects_are_under_way_one_at_a_time(void **state)
{
    (void) state;
    shot_t first, cancelled, second, other;
    const char *error;

    assert_false(inf_client_has_suspect(world.client));
    submit_suspect(&first, "long", false);
    wait_for_suspect(true);
    submit_suspect(&cancelled, "other", true);
    submit_suspect(&second, "third", true);
    submit(&other, "third", true, FLOATS);
    wait_for(&other, ALL);
    assert_int_equal(other.status, INF_OK);
    read_response(&other, &error);
    assert_true(inf_client_has_suspect(world.client));
    assert_int_equal(first.flags, 0);           /* it executes               */
    assert_int_equal(second.flags, 0);          /* it waits                  */
    assert_int_equal(inf_client_slot_state(world.client, second.id),
        INF_SLOT_QUEUED | INF_SLOT_RETRYABLE);

    inf_client_cancel(world.client, cancelled.id);
    wait_for(&cancelled, ALL);
    assert_int_equal(cancelled.status, INF_STATUS(INF_ERR_CANCELLED));
    read_response(&cancelled, &error);
    assert_int_equal(first.flags, 0);

    wait_for(&second, ALL);
    assert_int_equal(second.status, INF_OK);
    read_response(&second, &error);
    assert_true(first.flags & INF_COMPLETE_FINAL);
    wait_for(&first, ALL);
    assert_int_equal(first.status, INF_OK);
    read_response(&first, &error);

    wait_for_suspect(false);
}

static _Atomic bool hold_next;      /* the next request of "gather"          */
static _Atomic bool held;           /* it has arrived                        */

inf_err_t *__real_inf_entrance_submit(inf_model_t *model, inf_request_t *req,
    uint64_t now_ns, bool nonblocking, bool *queued);
inf_err_t *__wrap_inf_entrance_submit(inf_model_t *model, inf_request_t *req,
    uint64_t now_ns, bool nonblocking, bool *queued);

inf_err_t *
__wrap_inf_entrance_submit(inf_model_t *model, inf_request_t *req,
    uint64_t now_ns, bool nonblocking, bool *queued)
{
    if (strcmp(model->name, "gather") == 0 && atomic_load(&hold_next)) {
        atomic_store(&held, true);
        while (atomic_load(&hold_next)) {
            usleep(1000);
        }
    }

    return __real_inf_entrance_submit(model, req, now_ns, nonblocking, queued);
}

/* A long JSON of generate: a control thread reads and queues it. */
static void
a_cancel_just_before_queueing_is_not_lost(void **state)
{
    (void) state;
    static char json[20000];
    const inf_infer_input_t input = {
        .name = INF_SLICE(""), .source = INF_SOURCE_BINARY,
        .byte_size = sizeof(json)
    };
    const inf_infer_request_t req = {
        .flags = INF_REQUEST_RAW_INPUT | INF_REQUEST_GENERATE
            | INF_REQUEST_STREAM,
        .inputs = &input, .input_count = 1
    };
    uint64_t until = inf_clock_ns() + UINT64_C(10000000000);
    shot_t shot, other;
    const char *error;

    memset(json, ' ', sizeof(json));
    memcpy(json, "{\"INPUT0\": [1]", 14);
    json[sizeof(json) - 1] = '}';

    atomic_store(&hold_next, true);
    submit_data(&shot, "gather", &req, json, sizeof(json));
    while (!atomic_load(&held)) {
        assert_true(inf_clock_ns() < until);
        usleep(1000);
    }

    inf_client_cancel(world.client, shot.id);
    submit(&other, "echo", true, FLOATS);
    wait_for(&other, ALL);              /* so the cancel was taken, too      */
    read_response(&other, &error);
    atomic_store(&hold_next, false);

    wait_for(&shot, ALL);
    assert_int_equal(shot.status, INF_STATUS(INF_ERR_CANCELLED));
    read_response(&shot, &error);
}

static void
calls_answer_in_protobuf(void **state)
{
    (void) state;
    shot_t shot = { 0 };
    ProtobufCMessage *m;

    assert_true(inf_client_take(world.client, &shot, &shot.id));
    const inf_submission_t s = {
        .op = INF_SUBMIT_CALL,
        .method = INF_METHOD_SERVER_METADATA,
        .slot = shot.id.slot,
        .generation = shot.id.generation
    };
    assert_int_equal(inf_client_submit(world.client, &s), INF_CLIENT_OK);
    wait_for(&shot, ALL);
    assert_int_equal(shot.status, INF_OK);

    const char *bytes = inf_client_response(world.client, shot.offset,
        shot.length);
    assert_null(inf_message_unpack(
        &inference__server_metadata_response__descriptor,
        inf_slice(bytes, shot.length), &m));
    assert_string_equal(((Inference__ServerMetadataResponse *) m)->name,
        "triton");
    inf_message_free(m);
    inf_client_release(world.client, shot.offset);
}

static void
submit_call(shot_t *shot, inf_method_t method, const inf_region_t *region,
    size_t len)
{
    *shot = (shot_t) { 0 };
    assert_true(inf_client_take(world.client, shot, &shot->id));
    const inf_submission_t s = {
        .op = INF_SUBMIT_CALL,
        .method = (uint16_t) method,
        .slot = shot->id.slot,
        .generation = shot->id.generation,
        .offset = region != NULL ? region->offset : 0,
        .length = len
    };
    assert_int_equal(inf_client_submit(world.client, &s), INF_CLIENT_OK);
}

/* The first of them waits for a lock, and the others for it; one worker may
   have no more. */
static void
readiness_waits_for_no_other_calls(void **state)
{
    (void) state;
    enum { CALLS = 1200 };
    static shot_t shots[CALLS];
    Inference__ModelConfigRequest q = INFERENCE__MODEL_CONFIG_REQUEST__INIT;
    inf_registry_reader_t models;
    inf_model_t *model;
    shot_t ready;

    inf_registry_reader_init(&models, &world.server->registry);
    assert_null(inf_registry_find(&models, INF_SLICE("echo"), -1, &model));
    q.name = (char *) (uintptr_t) "echo";
    size_t len = inference__model_config_request__get_packed_size(&q);
    inf_region_t *region = inf_client_alloc(world.client, len);
    assert_non_null(region);
    inference__model_config_request__pack(&q,
        inf_client_data(world.client, region));

    inf_lock(&model->config_lock);
    for (int i = 0; i < CALLS; i++) {
        submit_call(&shots[i], INF_METHOD_MODEL_CONFIG, region, len);
    }
    wait_for(&shots[CALLS - 1], ALL);
    assert_int_equal(shots[CALLS - 1].status, INF_STATUS(INF_ERR_UNAVAILABLE));
    assert_int_equal(shots[0].flags, 0);
    submit_call(&ready, INF_METHOD_SERVER_READY, NULL, 0);
    wait_for(&ready, ALL);
    inf_unlock(&model->config_lock);

    assert_int_equal(ready.status, INF_OK);
    assert_int_equal(ready.length, 0);  /* it isn't: a model has failed      */
    for (int i = 0; i < CALLS; i++) {
        wait_for(&shots[i], ALL);
        inf_client_release(world.client, shots[i].offset);
    }
    assert_int_equal(shots[0].status, INF_OK);
    inf_client_free_region(world.client, region);
    inf_model_unref(model);
    inf_registry_reader_fini(&models);
}

/* So that a call for its configuration waits until it is unlocked.  Past the
   ranks of locks: of two models at a time. */
static inf_model_t *
lock_config(inf_registry_reader_t *models, const char *name)
{
    inf_model_t *model;

    assert_null(inf_registry_find(models, inf_slice_str(name), -1, &model));
    assert_int_equal(pthread_mutex_lock(&model->config_lock.mutex), 0);
    return model;
}

static void
unlock_config(inf_model_t *model)
{
    assert_int_equal(pthread_mutex_unlock(&model->config_lock.mutex), 0);
    inf_model_unref(model);
}

static inf_region_t *
ask_config(shot_t *shot, const char *name)
{
    Inference__ModelConfigRequest q = INFERENCE__MODEL_CONFIG_REQUEST__INIT;
    q.name = (char *) (uintptr_t) name;

    size_t len = inference__model_config_request__get_packed_size(&q);
    inf_region_t *region = inf_client_alloc(world.client, len);
    assert_non_null(region);
    inference__model_config_request__pack(&q,
        inf_client_data(world.client, region));
    submit_call(shot, INF_METHOD_MODEL_CONFIG, region, len);
    return region;
}

/* The last call of one worker waits for a lock; it came before the other's. */
static void
calls_of_workers_are_run_in_turn(void **state)
{
    (void) state;
    inf_client_t *many = world.client;
    inf_registry_reader_t models;
    shot_t shots[3], ready, other;
    inf_region_t *regions[3];

    connect_client();
    inf_client_t *few = world.client;

    inf_registry_reader_init(&models, &world.server->registry);
    inf_model_t *echo = lock_config(&models, "echo");
    inf_model_t *third = lock_config(&models, "third");
    world.client = many;
    regions[0] = ask_config(&shots[0], "echo");
    regions[1] = ask_config(&shots[1], "other");
    regions[2] = ask_config(&shots[2], "third");
    submit_call(&ready, INF_METHOD_SERVER_READY, NULL, 0);
    wait_for(&ready, ALL);              /* those before it are queued        */
    world.client = few;
    inf_region_t *region = ask_config(&other, "other");
    submit_call(&ready, INF_METHOD_SERVER_READY, NULL, 0);
    wait_for(&ready, ALL);
    unlock_config(echo);
    wait_for(&other, ALL);
    assert_int_equal(other.status, INF_OK);
    assert_int_equal(shots[2].flags, 0);
    inf_client_release(few, other.offset);
    inf_client_free_region(few, region);

    world.client = many;
    unlock_config(third);
    for (int i = 0; i < 3; i++) {
        wait_for(&shots[i], ALL);
        assert_int_equal(shots[i].status, INF_OK);
        inf_client_release(world.client, shots[i].offset);
        inf_client_free_region(world.client, regions[i]);
    }
    inf_registry_reader_fini(&models);
    inf_client_free(few);
}

/* Its responses are not given back: outputs have no room any more, but what
   is asked beside them is answered. */
static void
a_reader_that_stalls_leaves_calls_their_answers(void **state)
{
    (void) state;
    static uint64_t offsets[RESPONSES / (FLOATS * sizeof(float))];
    const char *error;
    size_t held = 0;
    shot_t shot;

    for (;;) {
        submit(&shot, "echo", true, FLOATS);
        wait_for(&shot, ALL);
        if (shot.length == 0) {
            break;
        }
        offsets[held++] = shot.offset;
    }
    assert_int_equal(shot.status, INF_STATUS(INF_ERR_UNAVAILABLE));
    assert_true(held > 100);
    calls_answer_in_protobuf(state);

    while (held > 0) {
        inf_client_release(world.client, offsets[--held]);
        if (held % 1000 == 0) {         /* the ring has taken them           */
            calls_answer_in_protobuf(state);
        }
    }
    submit(&shot, "echo", true, FLOATS);
    wait_for(&shot, ALL);
    assert_int_equal(shot.status, INF_OK);
    read_response(&shot, &error);
}

static void
ten_thousand_requests_leave_nothing_behind(void **state)
{
    (void) state;
    enum { IN_FLIGHT = 64, ROUNDS = 160 };
    static shot_t shots[IN_FLIGHT];
    const char *error;

    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < IN_FLIGHT; i++) {
            submit(&shots[i], "echo", true, FLOATS);
        }
        for (int i = 0; i < IN_FLIGHT; i++) {
            wait_for(&shots[i], ALL);
            assert_int_equal(shots[i].status, INF_OK);
            read_response(&shots[i], &error);
        }
    }

    assert_int_equal(inf_client_slots_taken(world.client), 0);
    assert_int_equal(inf_client_arena_stats(world.client)->in_use, 0);
}

/* The intake role changes hands between the models' threads, and the main
   thread sleeps deeply in each pause: no request may meet nobody. */
static void
a_quiet_core_wakes_for_either_model(void **state)
{
    (void) state;
    static const char *const names[] = { "echo", "other", "third" };
    shot_t shots[8];
    const char *error;
    unsigned seed = 7;

    for (int round = 0; round < 60; round++) {
        int count = 1 + (int) (rand_r(&seed) % 8);

        for (int i = 0; i < count; i++) {
            submit(&shots[i], names[rand_r(&seed) % 3], true, FLOATS);
        }
        for (int i = 0; i < count; i++) {
            wait_for(&shots[i], ALL);
            assert_int_equal(shots[i].status, INF_OK);
            read_response(&shots[i], &error);
        }
        usleep(rand_r(&seed) % 40000);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identity_answers_what_it_was_sent),
        cmocka_unit_test(a_response_has_its_parameters_in_their_order),
        cmocka_unit_test(an_unknown_model_is_not_found),
        cmocka_unit_test(a_model_that_failed_to_load_is_unavailable),
        cmocka_unit_test(a_shape_that_does_not_fit_its_bytes_is_rejected),
        cmocka_unit_test(a_missing_batch_dimension_is_named),
        cmocka_unit_test(names_that_a_model_lacks_cost_little),
        cmocka_unit_test(a_queued_request_is_cancelled_at_once),
        cmocka_unit_test(suspects_are_under_way_one_at_a_time),
        cmocka_unit_test(a_cancel_just_before_queueing_is_not_lost),
        cmocka_unit_test(calls_answer_in_protobuf),
        cmocka_unit_test(readiness_waits_for_no_other_calls),
        cmocka_unit_test(calls_of_workers_are_run_in_turn),
        cmocka_unit_test(a_reader_that_stalls_leaves_calls_their_answers),
        cmocka_unit_test(ten_thousand_requests_leave_nothing_behind),
        cmocka_unit_test(a_quiet_core_wakes_for_either_model),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
