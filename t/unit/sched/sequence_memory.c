/*
 * Every allocation in the life of a sequence model's own inputs fails once, in
 * turn: each time there is an error that says so, nothing is left behind, and
 * what there was before serves on.
 */

#include "scarce_memory.h"
#include "fail_each.h"

#include <stdlib.h>
#include <string.h>

#include "core/sched/sequence_inputs.h"
#include "core/tensor/response.h"
#include "core/tensor/state.h"

#include "model/config_text.h"

#define CONFIG                                                                \
    "name: 'm' backend: 'x' max_batch_size: 4"                                \
    " input { name: 'A' data_type: TYPE_UINT8 dims: -1 }"                     \
    " input { name: 'S' data_type: TYPE_INT32 dims: 1 is_shape_tensor: true }"\
    " output { name: 'B' data_type: TYPE_UINT8 dims: -1 } "                   \
    "sequence_batching {"                                                     \
    " control_input { name: 'START' control { kind: CONTROL_SEQUENCE_START"   \
    "  int32_false_true: [ 0, 1 ] } }"                                        \
    " control_input { name: 'ID' control { kind: CONTROL_SEQUENCE_CORRID"     \
    "  data_type: TYPE_STRING } }"                                            \
    " state { input_name: 'I' output_name: 'O' data_type: TYPE_UINT8"         \
    "  dims: -1 initial_state { name: 'i' data_type: TYPE_UINT8 dims: 3"      \
    "   data_file: 'f' } }"                                                   \
    " state { input_name: 'J' output_name: 'P' data_type: TYPE_STRING"        \
    "  dims: [ -1, 2 ] use_same_buffer_for_input_output: true } }"

static inf_model_t           *model;
static inf_instance_t         instance;
static inf_instance_spec_t    spec = { .name = (char *) "m_0" };

static inf_err_t *
read_file(const inf_storage_t *st, const char *path, size_t limit,
    char **data, size_t *len)
{
    (void) st;
    (void) limit;
    *data = strdup("abc");
    *len = 3;
    return strcmp(path, "m/initial_state/f") != 0
        ? inf_err_new(INF_ERR_NOT_FOUND, "%s", path)
        : *data == NULL ? inf_err_nomem() : NULL;
}

static inf_err_t *
contain(const inf_storage_t *st, const char *dir, const char *path)
{
    (void) st;
    (void) dir;
    (void) path;
    return NULL;
}

static const inf_storage_ops_t storage_ops = {
    .read = read_file, .contain = contain
};
static const inf_storage_t storage = { &storage_ops };

static inf_err_t *
make_request(inf_request_t *r, int64_t size)
{
    static const char bytes[10000];
    const inf_buffer_t data = { .base = bytes, .size = (uint64_t) size };
    const inf_buffer_t four = { .base = bytes, .size = 4 };
    int64_t shape[2] = { 1, size }, one[2] = { 1, 1 };

    inf_request_init(r);
    r->batch_size = 1;
    r->correlation_text = "text";
    inf_input_t *in = inf_request_add_input(r, "A", 1, INF_TYPE_UINT8, shape,
        2);
    inf_err_t *err = in == NULL ? inf_err_nomem()
        : inf_request_add_data(r, in, &data);
    if (err == NULL) {
        in = inf_request_add_input(r, "S", 1, INF_TYPE_INT32, one, 2);
        err = in == NULL ? inf_err_nomem()
            : inf_request_add_data(r, in, &four);
    }
    return err;
}

static inf_err_t *
write_states(const inf_request_t *r)
{
    int64_t shape[3] = { 1, 20, 1 };
    inf_err_t *err = NULL;

    for (inf_state_t *s = r->states->first; err == NULL && s != NULL;
        s = s->next)
    {
        inf_memory_type_t type = INF_MEMORY_CPU;
        int64_t id = 0;
        void *base;

        err = inf_state_describe(s, INF_TYPE_UINT8, shape, 3);
        if (err == NULL) {
            err = inf_state_reserve(s, 20, &type, &id, &base);
        }
        if (err == NULL) {
            err = inf_state_commit(s);
        }
    }

    return err;
}

/* A sequence of two requests, the start of a next one, and a padding
   request. */
static inf_err_t *
run(inf_slot_inputs_t *slot, inf_request_t *r)
{
    inf_request_t *padding;

    inf_err_t *err = inf_slot_inputs_add_controls(slot, r, true, false);
    if (err == NULL) {
        err = write_states(r);
    }
    if (err == NULL) {
        err = inf_slot_inputs_add_controls(slot, r, false, true);
    }
    if (err == NULL) {
        err = inf_slot_inputs_fill(slot, r, &padding);
        if (err == NULL) {
            inf_request_release(padding, 1);
        }
    }
    return err != NULL ? err
        : inf_slot_inputs_add_controls(slot, r, true, false);
}

static inf_err_t *
live_once(void)
{
    inf_sequence_inputs_t *inputs = NULL;
    inf_slot_inputs_t *slot = NULL;
    inf_request_t r[2];

    inf_err_t *err = inf_sequence_inputs_new(&storage, "m", model, &inputs);
    if (err == NULL) {
        err = inf_slot_inputs_open(inputs, &instance, &slot);
    }
    for (int i = 0; err == NULL && i < 2; i++) {
        err = make_request(&r[i], i == 0 ? 10 : 9000);
        if (err == NULL) {
            err = run(slot, &r[i]);
        }
        inf_request_fini(&r[i]);
    }

    inf_slot_inputs_close(slot);
    inf_sequence_inputs_free(inputs);
    assert_int_equal(model->refs, 1);
    return err;
}

/* A request that fails is tried again, in the same slot. */
static inf_err_t *
run_again(void)
{
    inf_sequence_inputs_t *inputs;
    inf_slot_inputs_t *slot;
    inf_request_t r, again;
    long at = countdown;

    countdown = 0;
    assert_ok(inf_sequence_inputs_new(&storage, "m", model, &inputs));
    assert_ok(inf_slot_inputs_open(inputs, &instance, &slot));
    assert_ok(make_request(&r, 100));
    countdown = at;
    inf_err_t *err = run(slot, &r);
    bool reached = at > 0 && countdown == 0;

    at = countdown;
    countdown = 0;
    inf_request_fini(&r);
    assert_ok(make_request(&again, 100));
    assert_ok(run(slot, &again));
    assert_int_equal(again.inputs[4].byte_size, 3);
    assert_memory_equal(again.inputs[4].buffers[0].base, "abc", 3);
    inf_request_fini(&again);
    inf_slot_inputs_close(slot);
    inf_sequence_inputs_free(inputs);
    countdown = reached ? 0 : at;
    return err;
}

static int
setup(void **state)
{
    (void) state;
    model = inf_model_new("m", 1, "m");
    assert_non_null(model);
    model->built = config_parse(CONFIG);
    assert_ok(inf_config_tensors_new(model->built, &model->tensors));
    spec.kind = INF_INSTANCE_CPU;
    instance = (inf_instance_t) { .model = model, .spec = &spec };
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    inf_model_free(model);
    return 0;
}

static void
a_life_does_without_memory(void **state)
{
    (void) state;
    fail_each(live_once, 30);
}

static void
a_slot_serves_on_when_there_is_memory_again(void **state)
{
    (void) state;
    fail_each(run_again, 20);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_life_does_without_memory),
        cmocka_unit_test(a_slot_serves_on_when_there_is_memory_again)
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
