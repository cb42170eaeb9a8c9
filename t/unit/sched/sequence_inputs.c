/* Controls, states and padding requests of sequence models, as a backend gets
   them. */

#include "model/config_text.h"
#include "model/memory_storage.h"
#include "fake_cuda.h"
#include "tensor/cuda.h"

#include <pthread.h>
#include <stdio.h>

#include "core/sched/compatibility.h"
#include "core/sched/rejection.h"
#include "core/sched/sequence_inputs.h"
#include "core/tensor/response.h"
#include "core/tensor/state.h"

typedef struct {
    inf_model_t           *model;
    inf_instance_t         instance;
    inf_instance_spec_t    spec;
    inf_sequence_inputs_t *inputs;
    inf_slot_inputs_t   *slot;
} world_t;

static world_t w;

static const memory_file_t files[] = {
    { "m/initial_state/eight", "abcdefgh" },
    { "m/initial_state/three", "abc" },
    { "m/initial_state/away", "abcdefgh" },
    { NULL, NULL },
};

/* Files with NULs in them. */
static const struct {
    const char *path;
    const char *data;
    size_t      len;
} strings[] = {
    { "m/initial_state/two", "\1\0\0\0x\3\0\0\0abc", 12 },
    { "m/initial_state/cut", "\1\0\0\0x\3\0", 7 },
    { "m/initial_state/long", "\1\0\0\0x\377\377\377\377abc", 12 },
    { "m/initial_state/one", "\1\0\0\0x", 5 }
};

static inf_err_t *
read_file(const inf_storage_t *st, const char *path, size_t limit,
    char **data, size_t *len)
{
    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
        if (strcmp(strings[i].path, path) == 0) {
            *len = strings[i].len;
            *data = malloc(*len + 1);
            assert_non_null(*data);
            memcpy(*data, strings[i].data, *len);
            return NULL;
        }
    }

    return memory_read(st, path, limit, data, len);
}

static void
close_world(void)
{
    inf_slot_inputs_close(w.slot);
    inf_sequence_inputs_free(w.inputs);
    if (w.model != NULL) {
        assert_int_equal(w.model->refs, 1);
    }
    inf_model_free(w.model);
    memset(&w, 0, sizeof(w));
}

/* A model of the text; what stands in it is checked elsewhere. */
static inf_err_t *
make_inputs(const char *config)
{
    static const inf_storage_ops_t ops = {
        .list = memory_list, .stat = memory_stat, .read = read_file,
        .contain = memory_contain
    };
    const memory_storage_t st = {
        { &ops }, files, "m/initial_state/away"
    };

    close_world();
    w.model = inf_model_new("m", 1, "m");
    assert_non_null(w.model);
    w.model->built = config_parse(config);
    assert_ok(inf_config_tensors_new(w.model->built, &w.model->tensors));
    w.spec = (inf_instance_spec_t) {
        .name = (char *) "m_0", .kind = INF_INSTANCE_CPU
    };
    w.instance.model = w.model;
    w.instance.spec = &w.spec;
    return inf_sequence_inputs_new(&st.base, "m", w.model, &w.inputs);
}

static void
open_world(const char *config)
{
    assert_ok(make_inputs(config));
    assert_non_null(w.inputs);
    assert_ok(inf_slot_inputs_open(w.inputs, &w.instance, &w.slot));
}

static int
setup(void **state)
{
    (void) state;
    memset(&w, 0, sizeof(w));
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    close_world();
    return 0;
}

#define MODEL(batch, more)                                                    \
    "name: 'm' backend: 'x' max_batch_size: " batch                           \
    " input { name: 'A' data_type: TYPE_INT32 dims: -1 }"                     \
    " output { name: 'B' data_type: TYPE_INT32 dims: -1 } "                   \
    "sequence_batching { " more " }"
#define CONTROL(name, more)                                                   \
    "control_input { name: '" name "' control { " more " } } "
#define CORRID(type)                                                          \
    CONTROL("ID", "kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_" type)
#define FLAGS(list)                                                           \
    CONTROL("START", "kind: CONTROL_SEQUENCE_START " list)                    \
    CONTROL("END", "kind: CONTROL_SEQUENCE_END " list)                        \
    CONTROL("READY", "kind: CONTROL_SEQUENCE_READY " list)
#define STATE(in, out, type, dims, more)                                      \
    "state { input_name: '" in "' output_name: '" out "' data_type: TYPE_"    \
    type " dims: " dims " " more " } "
#define INITIAL(type, dims, data)                                             \
    "initial_state { name: 'i' data_type: TYPE_" type " dims: " dims " "      \
    data " } "

/* With input A, [1, 2]. */
static void
make_request(inf_request_t *r, uint64_t id, const char *text)
{
    static const int32_t values[2] = { 17, 18 };
    int64_t shape[2] = { 1, 2 };

    inf_request_init(r);
    r->model = w.model;
    r->batch_size = 1;
    r->correlation_id = id;
    r->correlation_text = text;
    inf_input_t *in = inf_request_add_input(r, "A", 1, INF_TYPE_INT32, shape,
        2);
    assert_non_null(in);
    assert_ok(inf_request_add_data(r, in, &(inf_buffer_t) {
        .base = values, .size = sizeof(values) }));
}

static const inf_input_t *
input_of(const inf_request_t *r, const char *name)
{
    const inf_input_t *in = inf_request_find_input(r, name);

    if (in == NULL) {
        fail_msg("no input %s", name);
    }
    return in;
}

static void
assert_input(const inf_request_t *r, const char *name,
    inf_datatype_t datatype, const void *bytes, size_t size)
{
    const inf_input_t *in = input_of(r, name);

    assert_int_equal(in->datatype, datatype);
    assert_int_equal(in->byte_size, size);
    assert_int_equal(in->buffer_count, 1);
    assert_int_equal(in->buffers[0].size, size);
    assert_int_equal(in->buffers[0].memory_type, INF_MEMORY_CPU);
    assert_memory_equal(in->buffers[0].base, bytes, size);
}

static void
assert_shape(const inf_request_t *r, const char *name, uint32_t dim_count,
    const int64_t *shape)
{
    const inf_input_t *in = input_of(r, name);

    assert_int_equal(in->dim_count, dim_count);
    assert_int_equal(in->model_dim_count, dim_count);
    assert_memory_equal(in->shape, shape, dim_count * sizeof(*shape));
    assert_memory_equal(in->model_shape, shape, dim_count * sizeof(*shape));
}

#define SHAPE(...)                                                            \
    sizeof((int64_t[]) { __VA_ARGS__ }) / sizeof(int64_t),                    \
    (int64_t[]) { __VA_ARGS__ }

/* Scenario 14: start, middle, end, both at once, and an empty slot. */
static void
flags_follow_the_table(inf_datatype_t datatype, const void *no,
    const void *yes, size_t size)
{
    for (int step = 0; step < 4; step++) {
        bool start = (step & 1) != 0;
        bool end = (step & 2) != 0;
        inf_request_t r;

        make_request(&r, 7, NULL);
        assert_ok(inf_slot_inputs_add_controls(w.slot, &r, start, end));
        assert_int_equal(r.input_count, 4);
        assert_int_equal(r.inputs_added, 3);
        assert_input(&r, "START", datatype, start ? yes : no, size);
        assert_input(&r, "END", datatype, end ? yes : no, size);
        assert_input(&r, "READY", datatype, yes, size);

        inf_request_t *padding;
        assert_ok(inf_slot_inputs_fill(w.slot, &r, &padding));
        assert_input(padding, "START", datatype, no, size);
        assert_input(padding, "END", datatype, no, size);
        assert_input(padding, "READY", datatype, no, size);
        inf_request_release(padding, 1);
        inf_request_fini(&r);
    }
}

static void
flags_have_the_values_of_their_step_14(void **state)
{
    (void) state;
    const int32_t i[2] = { -3, 70000 };
    const float f[2] = { 0.5f, -1.0f };

    open_world(MODEL("4", FLAGS("int32_false_true: [ -3, 70000 ]")));
    flags_follow_the_table(INF_TYPE_INT32, &i[0], &i[1], 4);
    open_world(MODEL("4", FLAGS("fp32_false_true: [ 0.5, -1 ]")));
    flags_follow_the_table(INF_TYPE_FP32, &f[0], &f[1], 4);
    open_world(MODEL("4", FLAGS("bool_false_true: [ false, true ]")));
    flags_follow_the_table(INF_TYPE_BOOL, "\0", "\1", 1);
    open_world(MODEL("4", FLAGS("bool_false_true: [ true, false ]")));
    flags_follow_the_table(INF_TYPE_BOOL, "\1", "\0", 1);
}

static void
a_control_has_one_element_and_a_batch_dimension_where_there_is_one(
    void **state)
{
    (void) state;
    inf_request_t r;

    open_world(MODEL("0", FLAGS("int32_false_true: [ 0, 1 ]")
        CORRID("UINT64") STATE("I", "O", "INT32", "[ 3 ]", "")));
    make_request(&r, 7, NULL);
    assert_ok(inf_slot_inputs_add_controls(w.slot, &r, true, false));
    assert_shape(&r, "START", SHAPE(1));
    assert_shape(&r, "ID", SHAPE(1));
    assert_shape(&r, "I", SHAPE(3));
    inf_request_fini(&r);

    open_world(MODEL("1", FLAGS("int32_false_true: [ 0, 1 ]")
        CORRID("UINT64") STATE("I", "O", "INT32", "[ 3 ]", "")));
    make_request(&r, 7, NULL);
    assert_ok(inf_slot_inputs_add_controls(w.slot, &r, true, false));
    assert_shape(&r, "START", SHAPE(1, 1));
    assert_shape(&r, "END", SHAPE(1, 1));
    assert_shape(&r, "READY", SHAPE(1, 1));
    assert_shape(&r, "ID", SHAPE(1, 1));
    assert_shape(&r, "I", SHAPE(1, 3));
    inf_request_fini(&r);
}

static void
assert_id(const char *config, inf_datatype_t datatype, uint64_t id,
    const char *text, const void *bytes, size_t size)
{
    inf_request_t r;
    inf_request_t *padding;

    open_world(config);
    make_request(&r, id, text);
    assert_ok(inf_sequence_inputs_check(w.inputs, &r));
    assert_ok(inf_slot_inputs_add_controls(w.slot, &r, true, false));
    assert_input(&r, "ID", datatype, bytes, size);

    assert_ok(inf_slot_inputs_fill(w.slot, &r, &padding));
    assert_input(padding, "ID", datatype, "\0\0\0\0\0\0\0\0",
        text != NULL ? 4 : size);
    assert_int_equal(padding->correlation_id, 0);
    assert_null(padding->correlation_text);
    inf_request_release(padding, 1);
    inf_request_fini(&r);
}

/* Scenarios 14 and 15. */
static void
ids_are_given_as_configured_14_15(void **state)
{
    (void) state;
    const uint64_t id = (UINT64_C(1) << 32) + 7;

    assert_id(MODEL("4", CORRID("UINT64")), INF_TYPE_UINT64, id, NULL, &id, 8);
    assert_id(MODEL("4", CORRID("INT64")), INF_TYPE_INT64, id, NULL, &id, 8);
    assert_id(MODEL("4", CORRID("UINT32")), INF_TYPE_UINT32, id, NULL,
        "\7\0\0\0", 4);
    assert_id(MODEL("4", CORRID("INT32")), INF_TYPE_INT32, id, NULL,
        "\7\0\0\0", 4);
    assert_id(MODEL("4", CORRID("STRING")), INF_TYPE_BYTES, 0, "call-17",
        "\7\0\0\0call-17", 11);
}

static void
assert_rejected(const char *config, uint64_t id, const char *text,
    const char *message)
{
    inf_request_t r;

    open_world(config);
    make_request(&r, id, text);
    assert_error(inf_sequence_inputs_check(w.inputs, &r), INF_ERR_INVALID_ARG,
        message);
    assert_error(inf_slot_inputs_add_controls(w.slot, &r, true, false),
        INF_ERR_INVALID_ARG, message);
    inf_request_fini(&r);
}

static void
an_id_of_the_wrong_kind_is_rejected_15(void **state)
{
    (void) state;
    inf_request_t r;

    assert_rejected(MODEL("4", CORRID("STRING")), 7, NULL, "sequence batching"
        " control 'ID' data-type is 'UINT64', but model 'm' expects 'BYTES'");
    assert_rejected(MODEL("4", CORRID("UINT64")), 0, "x", "sequence batching"
        " control 'ID' data-type is 'BYTES', but model 'm' expects 'UINT64'");
    assert_rejected(MODEL("4", CORRID("INT32")), 0, "x", "sequence batching"
        " control 'ID' data-type is 'BYTES', but model 'm' expects 'INT32'");

    open_world(MODEL("4", FLAGS("int32_false_true: [ 0, 1 ]")));
    make_request(&r, 0, "x");
    assert_ok(inf_sequence_inputs_check(w.inputs, &r));
    inf_request_fini(&r);
}

static void
requests_share_the_values_of_their_flags(void **state)
{
    (void) state;
    inf_request_t a, b;

    open_world(MODEL("4", FLAGS("int32_false_true: [ 0, 1 ]")));
    make_request(&a, 1, NULL);
    make_request(&b, 2, NULL);
    assert_ok(inf_slot_inputs_add_controls(w.slot, &a, true, false));
    assert_ok(inf_slot_inputs_add_controls(w.slot, &b, true, true));
    assert_ptr_equal(input_of(&a, "START")->buffers[0].base,
        input_of(&b, "START")->buffers[0].base);
    assert_ptr_not_equal(input_of(&a, "END")->buffers[0].base,
        input_of(&b, "END")->buffers[0].base);
    inf_request_fini(&a);
    inf_request_fini(&b);
}

/* An iterative sequence's request runs again and again. */
static void
a_later_step_sets_what_an_earlier_one_added(void **state)
{
    (void) state;
    inf_request_t r, other;
    const int32_t no = 0, yes = 1;

    open_world(MODEL("4", FLAGS("int32_false_true: [ 0, 1 ]") CORRID("UINT64")
        STATE("I", "O", "INT32", "[ -1 ]", "")));
    make_request(&r, 5, NULL);
    make_request(&other, 6, NULL);
    assert_ok(inf_slot_inputs_add_controls(w.slot, &r, true, false));
    assert_int_equal(r.input_count, 6);
    assert_input(&r, "START", INF_TYPE_INT32, &yes, 4);
    assert_true(inf_compatible(w.model->tensors, &r, &other));

    const void *id = input_of(&r, "ID")->buffers[0].base;
    size_t used = r.arena.used;
    for (int step = 0; step < 1000; step++) {
        r.inputs[1].abi.attribute_count = 1;    /* a backend asked for them  */
        assert_ok(inf_slot_inputs_add_controls(w.slot, &r, false,
            step == 999));
        assert_int_equal(r.inputs[1].abi.attribute_count, 0);
    }
    assert_int_equal(r.input_count, 6);
    assert_int_equal(r.inputs_added, 5);
    assert_input(&r, "START", INF_TYPE_INT32, &no, 4);
    assert_input(&r, "END", INF_TYPE_INT32, &yes, 4);
    assert_input(&r, "ID", INF_TYPE_UINT64, "\5\0\0\0\0\0\0\0", 8);
    assert_ptr_equal(input_of(&r, "ID")->buffers[0].base, id);
    assert_int_equal(r.arena.used, used);
    inf_request_fini(&r);
    inf_request_fini(&other);
}

/* A control that is listed as an input too: the client's bytes stay. */
static void
what_a_client_sent_under_a_controls_name_is_replaced(void **state)
{
    (void) state;
    inf_request_t r;
    int64_t shape[1] = { 1 };
    char sent[9] = "clients!";

    open_world(MODEL("4", CORRID("UINT64")));
    make_request(&r, 5, NULL);
    inf_input_t *in = inf_request_add_input(&r, "ID", 2, INF_TYPE_UINT8,
        shape, 1);
    assert_ok(inf_request_add_data(&r, in, &(inf_buffer_t) {
        .base = sent, .size = 5 }));
    assert_ok(inf_request_add_data(&r, in, &(inf_buffer_t) {
        .base = sent + 5, .size = 3 }));
    inf_buffer_t buffers[2];
    memcpy(buffers, in->buffers, sizeof(buffers));
    in->buffers = buffers;                      /* an array of its own       */

    for (int step = 0; step < 2; step++) {
        assert_ok(inf_slot_inputs_add_controls(w.slot, &r, false, false));
        assert_int_equal(r.input_count, 2);
        assert_int_equal(r.inputs_added, 0);
        assert_input(&r, "ID", INF_TYPE_UINT64, "\5\0\0\0\0\0\0\0", 8);
        assert_shape(&r, "ID", SHAPE(1, 1));
        assert_string_equal(sent, "clients!");
        assert_ptr_equal(buffers[0].base, sent);
    }
    inf_request_fini(&r);
}

/* The work of a backend: StateNew, StateBuffer, StateUpdate. */
static void
write_state(const inf_request_t *r, const char *output, int64_t elements,
    int32_t first, bool update)
{
    inf_state_t *s = inf_states_find(r->states, output);
    inf_memory_type_t type = INF_MEMORY_CPU;
    int64_t id = 0;
    void *base;

    assert_non_null(s);
    assert_ok(inf_state_describe(s, INF_TYPE_INT32,
        (int64_t[]) { 1, elements }, 2));
    assert_ok(inf_state_reserve(s, (size_t) elements * 4, &type, &id, &base));
    for (int64_t i = 0; i < elements; i++) {
        memcpy((char *) base + i * 4, &first, 4);
        first++;
    }
    if (update) {
        assert_ok(inf_state_commit(s));
    }
}

/* Scenario 17. */
static void
a_state_is_what_the_last_update_left_17(void **state)
{
    (void) state;
    inf_request_t r;
    const int32_t five[2] = { 5, 6 };

    open_world(MODEL("4", STATE("I", "O", "INT32", "[ -1 ]", "")));
    make_request(&r, 7, NULL);
    assert_ok(inf_slot_inputs_add_controls(w.slot, &r, true, false));
    assert_input(&r, "I", INF_TYPE_INT32, "\0\0\0\0", 4);
    assert_shape(&r, "I", SHAPE(1, 1));
    inf_request_fini(&r);

    for (int i = 0; i < 10; i++) {              /* nothing is committed      */
        make_request(&r, 7, NULL);
        assert_ok(inf_slot_inputs_add_controls(w.slot, &r, false, false));
        assert_input(&r, "I", INF_TYPE_INT32, "\0\0\0\0", 4);
        write_state(&r, "O", 1, 99, false);
        inf_request_fini(&r);
    }

    make_request(&r, 7, NULL);
    assert_ok(inf_slot_inputs_add_controls(w.slot, &r, false, false));
    write_state(&r, "O", 2, 5, true);
    assert_ok(inf_slot_inputs_add_controls(w.slot, &r, false, false));
    assert_input(&r, "I", INF_TYPE_INT32, five, 8);
    assert_shape(&r, "I", SHAPE(1, 2));
    inf_request_fini(&r);

    make_request(&r, 8, NULL);                  /* the next sequence         */
    assert_ok(inf_slot_inputs_add_controls(w.slot, &r, true, false));
    assert_input(&r, "I", INF_TYPE_INT32, "\0\0\0\0", 4);
    assert_shape(&r, "I", SHAPE(1, 1));
    const inf_state_t *s = inf_states_find(r.states, "O");
    for (size_t i = 0; i < s->output.size; i++) {
        assert_int_equal(((char *) s->output.base)[i], 0);
    }
    inf_request_fini(&r);
}

static void
each_slot_has_states_of_its_own(void **state)
{
    (void) state;
    inf_request_t r;
    inf_slot_inputs_t *second;

    open_world(MODEL("4", STATE("I", "O", "INT32", "[ 1 ]", "")));
    assert_ok(inf_slot_inputs_open(w.inputs, &w.instance, &second));
    make_request(&r, 7, NULL);
    assert_ok(inf_slot_inputs_add_controls(w.slot, &r, true, false));
    write_state(&r, "O", 1, 5, true);
    assert_ok(inf_slot_inputs_add_controls(second, &r, false, false));
    assert_input(&r, "I", INF_TYPE_INT32, "\0\0\0\0", 4);
    assert_ok(inf_slot_inputs_add_controls(w.slot, &r, false, false));
    assert_input(&r, "I", INF_TYPE_INT32, "\5\0\0\0", 4);
    inf_request_fini(&r);
    inf_slot_inputs_close(second);
}

/* By entry, in any order of the names. */
static void
an_output_state_is_the_input_of_its_own_entry(void **state)
{
    (void) state;
    inf_request_t r;

    open_world(MODEL("4", STATE("A_IN", "Z_OUT", "INT32", "[ 1 ]", "")
        STATE("Z_IN", "A_OUT", "INT32", "[ 1 ]",
        "use_same_buffer_for_input_output: true")));
    make_request(&r, 7, NULL);
    assert_ok(inf_slot_inputs_add_controls(w.slot, &r, true, false));
    write_state(&r, "Z_OUT", 1, 1, true);
    write_state(&r, "A_OUT", 1, 2, false);      /* in place                  */
    assert_ok(inf_slot_inputs_add_controls(w.slot, &r, false, false));
    assert_input(&r, "A_IN", INF_TYPE_INT32, "\1\0\0\0", 4);
    assert_input(&r, "Z_IN", INF_TYPE_INT32, "\2\0\0\0", 4);
    inf_request_fini(&r);
}

static void
an_initial_state_has_its_own_dims_and_data(void **state)
{
    (void) state;
    inf_request_t r;

    open_world(MODEL("4",
        STATE("I", "O", "INT32", "[ -1 ]", INITIAL("INT32", "[ 2 ]",
            "data_file: 'eight'"))
        STATE("J", "P", "INT16", "[ -1, 2 ]", INITIAL("INT16", "[ 3, 2 ]",
            "zero_data: true"))
        STATE("K", "Q", "STRING", "[ -1 ]", INITIAL("STRING", "[ 2 ]",
            "data_file: 'two'"))
        STATE("L", "R", "STRING", "[ -1, 3 ]", "")));
    make_request(&r, 7, NULL);
    for (int i = 0; i < 2; i++) {
        assert_ok(inf_slot_inputs_add_controls(w.slot, &r, true, false));
        assert_input(&r, "I", INF_TYPE_INT32, "abcdefgh", 8);
        assert_shape(&r, "I", SHAPE(1, 2));
        assert_input(&r, "J", INF_TYPE_INT16, (char[12]) { 0 }, 12);
        assert_shape(&r, "J", SHAPE(1, 3, 2));
        assert_input(&r, "K", INF_TYPE_BYTES, strings[0].data, 12);
        assert_shape(&r, "K", SHAPE(1, 2));
        assert_input(&r, "L", INF_TYPE_BYTES, (char[12]) { 0 }, 12);
        assert_shape(&r, "L", SHAPE(1, 1, 3));
        write_state(&r, "O", 3, 99, true);
    }
    inf_request_fini(&r);
}

static void
assert_no_inputs(const char *config, const char *text)
{
    assert_error(make_inputs(config), INF_ERR_INVALID_ARG, text);
    assert_null(w.inputs);
}

#define STATE_OF(type, dims, data)                                            \
    MODEL("4", STATE("I", "O", type, "[ -1 ]", INITIAL(type, dims, data)))

static void
data_that_cannot_be_had_fails_the_load(void **state)
{
    (void) state;

    assert_no_inputs(STATE_OF("INT32", "[ 1 ]", "data_file: 'three'"),
        "initial_state setting expects 4 bytes, but the data"
        " provided from threeonly has 3 bytes. (state 'I')");
    assert_error(make_inputs(STATE_OF("INT32", "[ 1 ]", "data_file: 'gone'")),
        INF_ERR_INTERNAL, "m/initial_state/gone (state 'I')");
    assert_error(make_inputs(STATE_OF("INT32", "[ 1 ]", "data_file: 'away'")),
        INF_ERR_INTERNAL, "outside");
    assert_no_inputs(STATE_OF("STRING", "[ 3 ]", "data_file: 'two'"),
        "m/initial_state/two: expected 3 string elements, got 2");
    assert_no_inputs(STATE_OF("STRING", "[ 1 ]", "data_file: 'two'"),
        "expected 1 string elements, got 2");
    assert_no_inputs(STATE_OF("STRING", "[ 2 ]", "data_file: 'cut'"),
        "the length of string element 1 is cut off");
    assert_no_inputs(STATE_OF("STRING", "[ 2 ]", "data_file: 'long'"),
        "string element 1 has 4294967295 bytes, 3 are there");
    assert_ok(make_inputs(STATE_OF("STRING", "[ 1 ]", "data_file: 'one'")));
}

static void
a_state_that_cannot_be_fails_the_load(void **state)
{
    (void) state;

    assert_no_inputs(MODEL("4", STATE("", "O", "INT32", "[ 1 ]", "")),
        "must have an input_name");
    assert_no_inputs(MODEL("4", STATE("I", "", "INT32", "[ 1 ]", "")),
        "output_name");
    assert_no_inputs(MODEL("4", "state { input_name: 'I' output_name: 'O' }"),
        "must have a data_type");
    assert_no_inputs(MODEL("4", STATE("I", "O", "INT32", "[ -2 ]", "")),
        "dims are negative");
    assert_no_inputs(MODEL("4", STATE("I", "O", "INT32",
        "[ 4294967296, 4294967296, 4 ]", "")), "larger than");
}

static void
memory_grows_in_one_buffer_or_the_load_fails(void **state)
{
    (void) state;
#define GROWS "use_growable_memory: true "
#define SAME  "use_same_buffer_for_input_output: true "

    assert_no_inputs(MODEL("4", STATE("I", "O", "INT32", "[ 1 ]", GROWS)),
        "use_growable_memory requires"
        " use_same_buffer_for_input_output");
}

static void
memory_grows_beside_an_instance_without_a_gpu(void **state)
{
    (void) state;
    static const inf_instance_kind_t kinds[] = {
        INF_INSTANCE_CPU, INF_INSTANCE_MODEL
    };
    inf_request_t r;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        void *first = NULL;

        assert_ok(make_inputs(MODEL("4", STATE("I", "O", "INT32", "[ -1 ]",
            GROWS SAME))
            "instance_group [ { kind: KIND_GPU }, { kind: KIND_CPU } ]"));
        w.spec.kind = kinds[i];
        assert_ok(inf_slot_inputs_open(w.inputs, &w.instance, &w.slot));
        make_request(&r, 7, NULL);

        for (int32_t n = 0; n < 1000; n++) {
            assert_ok(inf_slot_inputs_add_controls(w.slot, &r, n == 0,
                false));

            const inf_buffer_t *b = &input_of(&r, "I")->buffers[0];
            inf_state_t *s = inf_states_find(r.states, "O");
            inf_memory_type_t type = INF_MEMORY_GPU;
            size_t size = (size_t) (n + 1) * 4096;
            int64_t id = 0;
            void *base;

            first = n == 0 ? (void *) b->base : first;
            assert_int_equal(b->memory_type, INF_MEMORY_CPU);
            assert_ptr_equal(b->base, first);
            assert_ok(inf_state_describe(s, INF_TYPE_INT32,
                (int64_t[]) { 1, (n + 1) * 1024 }, 2));
            assert_ok(inf_state_reserve(s, size, &type, &id, &base));
            assert_ptr_equal(base, first);
            assert_int_equal(type, INF_MEMORY_CPU);
            for (int32_t k = 0; k < n; k += 97) {
                assert_int_equal(((int32_t *) base)[k * 1024], k + 1);
            }
            assert_int_equal(((int32_t *) base)[n * 1024], 0);
            ((int32_t *) base)[n * 1024] = n + 1;
            assert_ok(inf_state_commit(s));
        }
        inf_request_fini(&r);
        close_world();
    }
}

static void
memory_that_grows_lies_on_the_instances_gpu(void **state)
{
    inf_request_t r;
    inf_request_t *padding;

    fake_setup(state);
    assert_ok(inf_memory_share(&(inf_memory_options_t) {
        .driver = FAKE_CUDA_LIBRARY, .pinned_bytes = 1 << 20 }));
    assert_ok(make_inputs(MODEL("4", STATE("I", "O", "INT32", "[ -1 ]", GROWS
        SAME)) "instance_group { kind: KIND_GPU }"));
    w.spec.kind = INF_INSTANCE_GPU;
    w.spec.device_id = 1;
    assert_ok(inf_slot_inputs_open(w.inputs, &w.instance, &w.slot));

    make_request(&r, 7, NULL);
    for (int i = 0; i < 2; i++) {
        assert_ok(inf_slot_inputs_add_controls(w.slot, &r, true, false));
        const inf_buffer_t *b = &input_of(&r, "I")->buffers[0];
        assert_int_equal(b->memory_type, INF_MEMORY_GPU);
        assert_int_equal(b->memory_id, 1);
        assert_int_equal(b->size, 4);
        assert_memory_equal(fake_cuda_bytes(b->base), "\0\0\0\0", 4);

        inf_state_t *s = inf_states_find(r.states, "O");
        inf_memory_type_t type = INF_MEMORY_GPU;
        int64_t id = 1;
        void *base;
        assert_ok(inf_state_describe(s, INF_TYPE_INT32, (int64_t[]) { 1, 2 },
            2));
        assert_ok(inf_state_reserve(s, 8, &type, &id, &base));
        assert_ptr_equal(base, b->base);
        memset(fake_cuda_bytes(base), 1, 8);
        assert_ok(inf_state_commit(s));
    }

    assert_ok(inf_slot_inputs_add_controls(w.slot, &r, false, false));
    assert_int_equal(input_of(&r, "I")->byte_size, 8);
    assert_ok(inf_slot_inputs_fill(w.slot, &r, &padding));
    assert_int_equal(input_of(padding, "I")->buffers[0].memory_type,
        INF_MEMORY_CPU_PINNED);
    assert_memory_equal(input_of(padding, "I")->buffers[0].base,
        "\0\0\0\0\0\0\0\0", 8);
    inf_request_release(padding, 1);
    inf_request_fini(&r);
    close_world();
    inf_memory_unshare();
    fake_teardown(state);
}

static void
a_state_that_is_there_already_is_ignored(void **state)
{
    (void) state;
    inf_request_t r;

    open_world(MODEL("4", STATE("I", "O", "INT32", "[ 1 ]", "")
        STATE("I", "P", "INT64", "[ 2 ]", "")
        STATE("J", "O", "INT64", "[ 2 ]", "")
        STATE("K", "Q", "INT64", "[ 1 ]", "")));
    make_request(&r, 7, NULL);
    assert_ok(inf_slot_inputs_add_controls(w.slot, &r, true, false));
    assert_int_equal(r.input_count, 3);
    assert_input(&r, "I", INF_TYPE_INT32, "\0\0\0\0", 4);
    assert_input(&r, "K", INF_TYPE_INT64, "\0\0\0\0\0\0\0\0", 8);
    assert_null(inf_states_find(r.states, "P"));
    inf_request_fini(&r);
}

static void
a_model_without_sequences_has_no_inputs_of_its_own(void **state)
{
    (void) state;
    inf_request_t r;

    assert_ok(make_inputs("name: 'm' backend: 'x' dynamic_batching { }"));
    assert_null(w.inputs);

    open_world(MODEL("4", ""));                 /* nothing to add            */
    make_request(&r, 7, NULL);
    assert_ok(inf_slot_inputs_add_controls(w.slot, &r, true, true));
    assert_int_equal(r.input_count, 1);
    assert_null(r.states);
    inf_request_fini(&r);
}

#define PADDED                                                                \
    "name: 'm' backend: 'x' max_batch_size: 4"                                \
    " input { name: 'A' data_type: TYPE_INT32 dims: -1 }"                     \
    " input { name: 'T' data_type: TYPE_STRING dims: -1 }"                    \
    " input { name: 'S' data_type: TYPE_INT32 dims: 2 is_shape_tensor: true }"\
    " output { name: 'B' data_type: TYPE_INT32 dims: -1 } "                   \
    "sequence_batching { " FLAGS("int32_false_true: [ 0, 1 ]")                \
    CORRID("UINT64") STATE("I", "O", "INT32", "[ -1 ]", "")                   \
    STATE("J", "P", "STRING", "[ -1 ]", "") " }"

/* Of PADDED: A is reshaped, S lies in two pieces. */
static void
make_like(inf_request_t *r)
{
    static const int32_t pieces[2] = { 41, 42 };

    make_request(r, 9, NULL);
    static const int64_t reshaped[3] = { 1, 2, 1 };
    r->inputs[0].model_shape = reshaped;
    r->inputs[0].model_dim_count = 3;

    inf_input_t *in = inf_request_add_input(r, "T", 1, INF_TYPE_BYTES,
        (int64_t[]) { 1, 2 }, 2);
    assert_ok(inf_request_add_data(r, in, &(inf_buffer_t) {
        .base = strings[0].data, .size = 12 }));
    in = inf_request_add_input(r, "S", 1, INF_TYPE_INT32,
        (int64_t[]) { 1, 2 }, 2);
    for (int i = 0; i < 2; i++) {
        assert_ok(inf_request_add_data(r, in, &(inf_buffer_t) {
            .base = &pieces[i], .size = 4 }));
    }
}

static void
assert_is_padding(const inf_request_t *padding)
{
    assert_true(padding->padding);
    assert_int_equal(padding->state, INF_REQUEST_IDLE);
    assert_int_equal(padding->output_count, 0);
    assert_int_equal(padding->batch_size, 1);
    assert_int_equal(padding->flags, 0);
    assert_string_equal(padding->id, "");
    assert_null(padding->abi.trace);
    assert_true(padding->factory->padding);
    assert_int_equal(padding->factory->start_ns, 0);
    assert_ptr_equal(padding->model, w.model);

    static const char *const names[] = {
        "A", "T", "S", "START", "END", "READY", "ID", "I", "J"
    };
    assert_int_equal(padding->input_count, 9);
    assert_int_equal(padding->inputs_added, 6);
    for (uint32_t i = 0; i < 9; i++) {
        assert_string_equal(padding->inputs[i].name, names[i]);
    }
    assert_input(padding, "A", INF_TYPE_INT32, "\0\0\0\0\0\0\0\0", 8);
    assert_memory_equal(padding->inputs[0].shape, ((int64_t[]) { 1, 2 }), 16);
    assert_int_equal(padding->inputs[0].model_dim_count, 3);
    assert_memory_equal(padding->inputs[0].model_shape,
        ((int64_t[]) { 1, 2, 1 }), 24);
    assert_input(padding, "T", INF_TYPE_BYTES, "\0\0\0\0\0\0\0\0", 8);
    assert_shape(padding, "T", SHAPE(1, 2));
    assert_input(padding, "S", INF_TYPE_INT32, "\51\0\0\0\52\0\0\0", 8);
    assert_input(padding, "READY", INF_TYPE_INT32, "\0\0\0\0", 4);
    assert_input(padding, "ID", INF_TYPE_UINT64, "\0\0\0\0\0\0\0\0", 8);
}

/* Scenario 14's padding rows. */
static void
a_padding_request_looks_like_the_request_and_is_zeros_14(void **state)
{
    (void) state;
    inf_request_t r;
    inf_request_t *padding;

    open_world(PADDED);
    make_like(&r);
    assert_ok(inf_slot_inputs_fill(w.slot, &r, &padding));       /* plain    */
    assert_is_padding(padding);
    assert_input(padding, "I", INF_TYPE_INT32, "\0\0\0\0", 4);
    assert_input(padding, "J", INF_TYPE_BYTES, "\0\0\0\0", 4);
    inf_request_release(padding, 1);

    assert_ok(inf_slot_inputs_add_controls(w.slot, &r, true, false));
    write_state(&r, "O", 3, 5, true);
    assert_ok(inf_slot_inputs_add_controls(w.slot, &r, false, true));
    assert_input(&r, "I", INF_TYPE_INT32, "\5\0\0\0\6\0\0\0\7\0\0\0", 12);

    for (int i = 0; i < 3; i++) {       /* its states are not r's            */
        assert_ok(inf_slot_inputs_fill(w.slot, &r, &padding));
        assert_is_padding(padding);
        assert_input(padding, "I", INF_TYPE_INT32, (char[12]) { 0 }, 12);
        assert_shape(padding, "I", SHAPE(1, 3));
        assert_input(padding, "J", INF_TYPE_BYTES, "\0\0\0\0", 4);
        write_state(padding, "O", 3, 77, i != 1);
        inf_request_release(padding, 1);
    }
    assert_ok(inf_slot_inputs_add_controls(w.slot, &r, false, true));
    assert_input(&r, "I", INF_TYPE_INT32, "\5\0\0\0\6\0\0\0\7\0\0\0", 12);
    inf_request_fini(&r);
}

static void
a_padding_request_is_used_again_when_it_is_back(void **state)
{
    (void) state;
    inf_request_t r;
    inf_request_t *a, *b, *c;

    open_world(PADDED);
    make_like(&r);
    assert_ok(inf_slot_inputs_fill(w.slot, &r, &a));
    assert_ok(inf_slot_inputs_fill(w.slot, &r, &b));    /* a is still out    */
    assert_ptr_not_equal(a, b);
    assert_is_padding(a);
    assert_is_padding(b);
    assert_int_equal(w.model->refs, 3);

    inf_request_move(a, INF_REQUEST_EXECUTING);
    inf_request_release(a, 1);
    assert_ok(inf_slot_inputs_fill(w.slot, &r, &c));
    assert_ptr_equal(c, a);
    assert_is_padding(c);
    inf_request_release(b, 1);
    inf_request_release(c, 1);
    inf_request_fini(&r);
}

/* The backend keeps a handle: what it may still answer is not used again. */
static void
a_padding_request_is_back_when_nothing_of_it_is_the_backends(void **state)
{
    (void) state;
    inf_request_t r;
    inf_request_t *a, *b;

    open_world(PADDED);
    make_like(&r);
    assert_ok(inf_slot_inputs_fill(w.slot, &r, &a));
    inf_factory_t *f = a->factory;
    inf_factory_ref_handle(f);
    inf_request_release(a, 1);
    assert_ok(inf_slot_inputs_fill(w.slot, &r, &b));
    assert_ptr_not_equal(a, b);
    inf_request_release(b, 1);

    inf_factory_send_flags(f, INF_SEND_FINAL);
    inf_factory_unref_handle(f);
    assert_int_equal(w.model->refs, 1);
    inf_request_fini(&r);
}

static void
what_is_answered_to_a_padding_request_is_thrown_away(void **state)
{
    (void) state;
    inf_request_t r;
    inf_request_t *padding;
    inf_response_t *response;

    open_world(PADDED);
    make_like(&r);
    for (int i = 0; i < 2; i++) {
        assert_ok(inf_slot_inputs_fill(w.slot, &r, &padding));
        inf_factory_t *f = padding->factory;
        assert_false(inf_request_wants_output(padding, "B"));
        assert_ok(inf_response_new(f, &response));
        inf_output_t *out = inf_response_add_output(response, "B",
            INF_TYPE_INT32, (int64_t[]) { 1, 2 }, 2);
        assert_non_null(out);
        assert_ok(f->sink->alloc(f->userp, out, 8));
        memset(out->base, 1, 8);
        inf_response_send(response, INF_SEND_FINAL, NULL);
        inf_request_release(padding, 1);
    }

    assert_ok(inf_slot_inputs_fill(w.slot, &r, &padding));
    inf_factory_send_error(padding->factory, inf_err_new(INF_ERR_INTERNAL,
        "no"));
    inf_request_release(padding, 1);
    inf_request_fini(&r);
}

static void
a_padding_request_that_is_rejected_counts_nowhere(void **state)
{
    (void) state;
    inf_request_t r;
    inf_request_t *padding;

    open_world(PADDED);
    make_like(&r);
    assert_ok(inf_slot_inputs_fill(w.slot, &r, &padding));
    inf_reject_cancelled(padding);
    assert_ok(inf_slot_inputs_fill(w.slot, &r, &padding));
    inf_reject_timed_out(padding);
    assert_int_equal(w.model->statistics.fail.count, 0);
    inf_request_fini(&r);
}

static void
a_slot_that_is_closed_waits_for_its_padding_requests(void **state)
{
    (void) state;
    inf_request_t r;
    inf_request_t *a, *b, *c;

    open_world(PADDED);
    make_like(&r);
    assert_ok(inf_slot_inputs_fill(w.slot, &r, &a));
    assert_ok(inf_slot_inputs_fill(w.slot, &r, &b));
    assert_ok(inf_slot_inputs_fill(w.slot, &r, &c));
    inf_request_release(b, 1);
    inf_slot_inputs_close(w.slot);
    w.slot = NULL;

    assert_is_padding(a);
    assert_int_equal(w.model->refs, 3);
    inf_request_release(a, 1);
    assert_is_padding(c);
    write_state(c, "O", 3, 77, true);
    inf_request_release(c, 1);
    assert_int_equal(w.model->refs, 1);
    inf_request_fini(&r);
}

static void *
release_later(void *arg)
{
    inf_request_release(arg, 1);
    return NULL;
}

static void
padding_requests_come_back_from_any_thread(void **state)
{
    (void) state;
    inf_request_t r;
    pthread_t threads[4];

    open_world(PADDED);
    make_like(&r);
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 4; i++) {
            inf_request_t *padding;
            assert_ok(inf_slot_inputs_fill(w.slot, &r, &padding));
            assert_is_padding(padding);
            assert_int_equal(pthread_create(&threads[i], NULL, release_later,
                padding), 0);
        }
        if (round == 49) {
            inf_slot_inputs_close(w.slot);
            w.slot = NULL;
        }
        for (int i = 0; i < 4; i++) {
            pthread_join(threads[i], NULL);
        }
    }
    assert_int_equal(w.model->refs, 1);
    inf_request_fini(&r);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(flags_have_the_values_of_their_step_14),
        T(a_control_has_one_element_and_a_batch_dimension_where_there_is_one),
        T(ids_are_given_as_configured_14_15),
        T(an_id_of_the_wrong_kind_is_rejected_15),
        T(requests_share_the_values_of_their_flags),
        T(a_later_step_sets_what_an_earlier_one_added),
        T(what_a_client_sent_under_a_controls_name_is_replaced),
        T(a_state_is_what_the_last_update_left_17),
        T(each_slot_has_states_of_its_own),
        T(an_output_state_is_the_input_of_its_own_entry),
        T(an_initial_state_has_its_own_dims_and_data),
        T(data_that_cannot_be_had_fails_the_load),
        T(a_state_that_cannot_be_fails_the_load),
        T(memory_grows_in_one_buffer_or_the_load_fails),
        T(memory_grows_beside_an_instance_without_a_gpu),
        T(memory_that_grows_lies_on_the_instances_gpu),
        T(a_state_that_is_there_already_is_ignored),
        T(a_model_without_sequences_has_no_inputs_of_its_own),
        T(a_padding_request_looks_like_the_request_and_is_zeros_14),
        T(a_padding_request_is_used_again_when_it_is_back),
        T(a_padding_request_is_back_when_nothing_of_it_is_the_backends),
        T(what_is_answered_to_a_padding_request_is_thrown_away),
        T(a_padding_request_that_is_rejected_counts_nowhere),
        T(a_slot_that_is_closed_waits_for_its_padding_requests),
        T(padding_requests_come_back_from_any_thread)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
