/* Sequences through the C API, with a real backend: requests of several
   executions, many clients at once, cancels, the server's stop. */

#include "abi/client_fixture.h"

#include <stdatomic.h>

#define LONG     64                 /* responses that are kept               */
#define THREADS  6
#define ROUNDS   12
#define REQUESTS 8

typedef struct {
    TRITONSERVER_InferenceRequest *request;
    int32_t                        in;
    int32_t                        got[LONG];
    int                            count;
    int                            errors;
    int                            finals;
    int                            released;
    int                            after_final;
    TRITONSERVER_Error_Code        code;
    char                           error[256];
} ask_t;

static TRITONSERVER_ResponseAllocator *allocator;

#define BATCHING                                                              \
    "backend: \"sequences\" max_batch_size: 4\n"                              \
    "input { name: \"IN\" data_type: TYPE_INT32 dims: [ 1 ] }\n"              \
    "output { name: \"OUT\" data_type: TYPE_INT32 dims: [ 1 ] }\n"            \
    "instance_group [ { count: 2 kind: KIND_CPU } ]\n"
#define CONTROLS                                                              \
    "control_input [ { name: \"START\" control { kind:"                       \
    " CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } },"                 \
    " { name: \"READY\" control { kind: CONTROL_SEQUENCE_READY"               \
    " int32_false_true: [ 0, 1 ] } } ]\n"                                     \
    "max_sequence_idle_microseconds: 600000000\n"
#define STATE                                                                 \
    "state { input_name: \"STATE_IN\" output_name: \"STATE_OUT\""             \
    " data_type: TYPE_INT32 dims: [ 1 ] }\n"
#define PARAMETER(key, value)                                                 \
    "parameters { key: \"" key "\" value { string_value: \"" value "\" } }\n"
#define DECOUPLED "model_transaction_policy { decoupled: true }\n"

static void
make_models(void)
{
    static const char steps[] = BATCHING "sequence_batching { "
        "iterative_sequence: true " CONTROLS "}\n" DECOUPLED
        PARAMETER("does", "steps");
    char later[2048];

    make_model("sum", BATCHING "sequence_batching { " CONTROLS STATE "}\n"
        PARAMETER("does", "sum"));
    make_model("oldest", BATCHING "sequence_batching { " CONTROLS STATE
        "oldest { max_candidate_sequences: 3 } }\n" PARAMETER("does", "sum"));
    make_model("steps", steps);
    snprintf(later, sizeof(later), "%s%s", steps, PARAMETER("later_ms", "1"));
    make_model("later", later);
    make_model("turns", BATCHING "sequence_batching { "
        "iterative_sequence: true " CONTROLS
        "oldest { max_candidate_sequences: 2 } }\n" DECOUPLED
        PARAMETER("does", "steps"));
}

static TRITONSERVER_Error *
give_buffer(TRITONSERVER_ResponseAllocator *a, const char *name, size_t size,
    TRITONSERVER_MemoryType type, int64_t id, void *userp, void **buffer,
    void **buffer_userp, TRITONSERVER_MemoryType *actual, int64_t *actual_id)
{
    (void) a;
    (void) name;
    (void) type;
    (void) id;
    *buffer = malloc(size + 1);
    *buffer_userp = userp;
    *actual = TRITONSERVER_MEMORY_CPU;
    *actual_id = 0;
    return NULL;
}

static TRITONSERVER_Error *
take_buffer(TRITONSERVER_ResponseAllocator *a, void *buffer, void *userp,
    size_t size, TRITONSERVER_MemoryType type, int64_t id)
{
    (void) a;
    (void) userp;
    (void) size;
    (void) type;
    (void) id;
    free(buffer);
    return NULL;
}

static int32_t
value_of(TRITONSERVER_InferenceResponse *response)
{
    const char *name;
    TRITONSERVER_DataType datatype;
    const int64_t *shape;
    uint64_t dims;
    const void *base;
    size_t size;
    TRITONSERVER_MemoryType type;
    int64_t id;
    void *userp;
    int32_t value;

    succeeds(TRITONSERVER_InferenceResponseOutput(response, 0, &name,
        &datatype, &shape, &dims, &base, &size, &type, &id, &userp));
    assert_int_equal(size, 4);
    memcpy(&value, base, 4);
    return value;
}

static void
answered(TRITONSERVER_InferenceResponse *response, const uint32_t flags,
    void *userp)
{
    ask_t *a = userp;
    TRITONSERVER_Error *err = response == NULL ? NULL
        : TRITONSERVER_InferenceResponseError(response);
    int32_t value = response != NULL && err == NULL ? value_of(response) : -1;

    pthread_mutex_lock(&lock);
    a->after_final += a->finals > 0;
    if (err != NULL) {
        a->errors++;
        a->code = TRITONSERVER_ErrorCode(err);
        snprintf(a->error, sizeof(a->error), "error: %s",
            TRITONSERVER_ErrorMessage(err));
    } else if (response != NULL) {
        a->got[a->count++ % LONG] = value;
    }
    a->finals += (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) != 0;
    pthread_cond_broadcast(&arrived);
    pthread_mutex_unlock(&lock);

    TRITONSERVER_ErrorDelete(err);
    if (response != NULL) {
        TRITONSERVER_InferenceResponseDelete(response);
    }
}

static void
released(TRITONSERVER_InferenceRequest *request, const uint32_t flags,
    void *userp)
{
    (void) request;
    assert_int_equal(flags, TRITONSERVER_REQUEST_RELEASE_ALL);
    pthread_mutex_lock(&lock);
    ((ask_t *) userp)->released++;
    pthread_cond_broadcast(&arrived);
    pthread_mutex_unlock(&lock);
}

static TRITONSERVER_Error *
ask(ask_t *a, const char *model, uint64_t id, uint32_t flags, int32_t value)
{
    static const int64_t shape[2] = { 1, 1 };

    memset(a, 0, sizeof(*a));
    a->in = value;
    succeeds(TRITONSERVER_InferenceRequestNew(&a->request, world.server,
        model, -1));
    succeeds(TRITONSERVER_InferenceRequestAddInput(a->request, "IN",
        TRITONSERVER_TYPE_INT32, shape, 2));
    succeeds(TRITONSERVER_InferenceRequestAppendInputData(a->request, "IN",
        &a->in, 4, TRITONSERVER_MEMORY_CPU, 0));
    succeeds(TRITONSERVER_InferenceRequestSetCorrelationId(a->request, id));
    succeeds(TRITONSERVER_InferenceRequestSetFlags(a->request, flags));
    succeeds(TRITONSERVER_InferenceRequestSetReleaseCallback(a->request,
        released, a));
    succeeds(TRITONSERVER_InferenceRequestSetResponseCallback(a->request,
        allocator, a, answered, a));
    return TRITONSERVER_ServerInferAsync(world.server, a->request, NULL);
}

static void
finish(ask_t *a)
{
    pthread_mutex_lock(&lock);
    while (a->finals == 0 || a->released == 0) {
        pthread_cond_wait(&arrived, &lock);
    }
    pthread_mutex_unlock(&lock);
    succeeds(TRITONSERVER_InferenceRequestDelete(a->request));
    assert_int_equal(a->finals, 1);
    assert_int_equal(a->released, 1);
    assert_int_equal(a->after_final, 0);
}

static void
wait_count(ask_t *a, int count)
{
    pthread_mutex_lock(&lock);
    while (a->count < count && a->finals == 0) {
        pthread_cond_wait(&arrived, &lock);
    }
    pthread_mutex_unlock(&lock);
}

/* scheduling.md 4.18 */
static void
each_step_has_its_response(void **state)
{
    (void) state;
    static const char *const models[] = { "steps", "later", "turns" };
    static ask_t asks[20];

    for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++) {
        for (int i = 0; i < 20; i++) {
            succeeds(ask(&asks[i], models[m], 0, 0, 1 + i));
        }
        for (int i = 0; i < 20; i++) {
            finish(&asks[i]);
            assert_string_equal(asks[i].error, "");
            assert_int_equal(asks[i].count, 1 + i);
            for (int k = 0; k <= i; k++) {
                assert_int_equal(asks[i].got[k], k + 1);
            }
        }
    }
}

/* However it meets the cancel: queued between two steps, or in one. */
static void
a_cancel_ends_the_steps(void **state)
{
    (void) state;
    static const char *const models[] = { "steps", "later", "turns" };
    static ask_t asks[10];

    for (int i = 0; i < 30; i++) {
        const char *model = models[i % 3];
        for (int k = 0; k < 10; k++) {      /* some have no slot             */
            succeeds(ask(&asks[k], model, 0, 0, 1000000000));
        }
        wait_count(&asks[0], 1 + i);
        for (int k = 0; k < 10; k++) {
            succeeds(TRITONSERVER_InferenceRequestCancel(asks[k].request));
        }
        for (int k = 0; k < 10; k++) {
            finish(&asks[k]);
            assert_int_equal(asks[k].errors, 1);
            assert_int_equal(asks[k].code, TRITONSERVER_ERROR_CANCELLED);
        }
    }
    succeeds(ask(&asks[0], "steps", 0, 0, 3));
    finish(&asks[0]);
    assert_int_equal(asks[0].count, 3);
}

typedef struct {
    const char *model;
    uint64_t    first;              /* id                                    */
    pthread_t   thread;
} client_t;

static uint32_t
flags_of(int n)
{
    return (n == 0 ? TRITONSERVER_REQUEST_FLAG_SEQUENCE_START : 0)
        | (n == REQUESTS - 1 ? TRITONSERVER_REQUEST_FLAG_SEQUENCE_END : 0u);
}

/* Two sequences side by side, all requests of a round sent at once; every
   other one of the second is broken off. */
static void *
client_main(void *arg)
{
    const client_t *c = arg;
    static _Thread_local ask_t asks[2][REQUESTS];

    for (int round = 0; round < ROUNDS; round++) {
        for (int n = 0; n < REQUESTS; n++) {
            for (int k = 0; k < 2; k++) {
                succeeds(ask(&asks[k][n], c->model, c->first + (uint64_t) k,
                    flags_of(n), (int32_t) c->first * (n + 1)));
            }
        }
        if (round % 2 == 1) {
            succeeds(TRITONSERVER_InferenceRequestCancel(
                asks[1][REQUESTS / 2].request));
        }

        int32_t sum = 0;
        for (int n = 0; n < REQUESTS; n++) {
            sum += (int32_t) c->first * (n + 1);
            for (int k = 0; k < 2; k++) {
                finish(&asks[k][n]);
                if (k == 0 || round % 2 == 0 || asks[k][n].errors == 0) {
                    assert_string_equal(asks[k][n].error, "");
                    assert_int_equal(asks[k][n].got[0], sum);
                }
            }
        }
    }
    return NULL;
}

static void
clients_side_by_side_keep_their_sums(void **state)
{
    (void) state;
    static client_t clients[2 * THREADS];

    for (int i = 0; i < 2 * THREADS; i++) {
        clients[i] = (client_t) { i % 2 == 0 ? "sum" : "oldest",
            (uint64_t) (100 + 2 * i), 0 };
        assert_int_equal(pthread_create(&clients[i].thread, NULL, client_main,
            &clients[i]), 0);
    }
    for (int i = 0; i < 2 * THREADS; i++) {
        pthread_join(clients[i].thread, NULL);
    }
}

/* scheduling.md 1.1 */
static void
a_rejected_request_is_the_callers_still(void **state)
{
    (void) state;
    ask_t a;

    fails(ask(&a, "sum", 5, 0, 1), TRITONSERVER_ERROR_INVALID_ARG,
        "inference request for sequence 5 to model 'sum' must specify the"
        " START flag on the first request of the sequence");
    assert_int_equal(a.finals + a.released + a.errors, 0);
    succeeds(TRITONSERVER_InferenceRequestSetFlags(a.request,
        TRITONSERVER_REQUEST_FLAG_SEQUENCE_START
        | TRITONSERVER_REQUEST_FLAG_SEQUENCE_END));
    succeeds(TRITONSERVER_ServerInferAsync(world.server, a.request, NULL));
    finish(&a);
    assert_int_equal(a.got[0], 1);
}

static void *
stop_main(void *arg)
{
    (void) arg;
    succeeds(TRITONSERVER_ServerStop(world.server));
    return NULL;
}

/* scheduling.md 9.2 and 9.10; the last test */
static void
a_stopping_server_lets_sequences_end(void **state)
{
    (void) state;
    static ask_t steps, a;
    pthread_t stopper;

    succeeds(ask(&a, "sum", 7, TRITONSERVER_REQUEST_FLAG_SEQUENCE_START, 1));
    finish(&a);
    succeeds(ask(&steps, "later", 0, 0, 60));
    wait_count(&steps, 1);
    assert_int_equal(pthread_create(&stopper, NULL, stop_main, NULL), 0);

    TRITONSERVER_Error *err;
    for (;;) {
        err = ask(&a, "oldest", 8, flags_of(0) | flags_of(REQUESTS - 1), 1);
        if (err != NULL) {
            break;
        }
        finish(&a);
        usleep(1000);
    }
    fails(err, TRITONSERVER_ERROR_UNAVAILABLE, "");
    succeeds(TRITONSERVER_InferenceRequestDelete(a.request));

    succeeds(ask(&a, "sum", 7, 0, 10));
    finish(&a);
    assert_int_equal(a.got[0], 11);
    finish(&steps);
    assert_int_equal(steps.count, 60);
    succeeds(ask(&a, "sum", 7, TRITONSERVER_REQUEST_FLAG_SEQUENCE_END, 100));
    finish(&a);
    assert_int_equal(a.got[0], 111);
    pthread_join(stopper, NULL);
}

static int
begin(void **state)
{
    (void) state;
    make_world();
    make_models();
    TRITONSERVER_ServerOptions *o = new_options("t-backends", true);
    succeeds(TRITONSERVER_ServerOptionsSetExitTimeout(o, 60));
    succeeds(TRITONSERVER_ServerNew(&world.server, o));
    succeeds(TRITONSERVER_ServerOptionsDelete(o));
    succeeds(TRITONSERVER_ResponseAllocatorNew(&allocator, give_buffer,
        take_buffer, NULL));
    return 0;
}

static int
end(void **state)
{
    (void) state;
    succeeds(TRITONSERVER_ServerDelete(world.server));
    succeeds(TRITONSERVER_ResponseAllocatorDelete(allocator));
    end_world();
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_step_has_its_response),
        cmocka_unit_test(a_cancel_ends_the_steps),
        cmocka_unit_test(a_rejected_request_is_the_callers_still),
        cmocka_unit_test(clients_side_by_side_keep_their_sums),
        cmocka_unit_test(a_stopping_server_lets_sequences_end)
    };
    return cmocka_run_group_tests(tests, begin, end);
}
