/*
 * common_world.h - a model's configuration and tensors for tests of
 *                  backends/common, on the fake core of t/backends-fake.
 *
 * Owner    The test ends what it reads or makes here.
 * Thread   one.
 * Units    none.
 * Errors   An error that a test does not expect fails the test.
 * Route    test -> [common_world] -> backends/common -> fakecore
 */

#ifndef COMMON_WORLD_H
#define COMMON_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/common/tensors.h"
#include "t/backends-fake/fakecore.h"

#define COUNT(a)   (sizeof(a) / sizeof((a)[0]))
#define DIMS(...)  (const int64_t[]) { __VA_ARGS__ }, \
    (uint32_t) COUNT(((const int64_t[]) { __VA_ARGS__ }))
#define MODEL(m)    ((TRITONBACKEND_Model *) (void *) (m))
#define INSTANCE(m) ((TRITONBACKEND_ModelInstance *) (void *) (m))
#define REQUEST(r)  ((TRITONBACKEND_Request *) (void *) (r))

static inline void
expect_success(TRITONSERVER_Error *err)
{
    if (err != NULL) {
        fail_msg("%s", TRITONSERVER_ErrorMessage(err));
    }
}

/* Takes err, which has that code and these words. */
static inline void
expect_error(TRITONSERVER_Error *err, TRITONSERVER_Error_Code code,
    const char *words)
{
    if (err == NULL) {
        fail_msg("no error: %s", words);
        return;
    }
    if (strstr(TRITONSERVER_ErrorMessage(err), words) == NULL) {
        fail_msg("\"%s\" is not in: %s", words,
            TRITONSERVER_ErrorMessage(err));
    }
    assert_int_equal(TRITONSERVER_ErrorCode(err), code);
    TRITONSERVER_ErrorDelete(err);
}

static inline TRITONSERVER_Error *
config_load(bk_model_config_t *c, const char *json)
{
    fake_model_t m = { .config = (char *) (uintptr_t) json };

    return bk_model_config_init(c, MODEL(&m));
}

static inline void
config_read(bk_model_config_t *c, const char *json)
{
    expect_success(config_load(c, json));
}

/* As the model's file would have it; its open first dimension is "n". */
static inline void
describe(bk_tensor_t *t, const char *name, TRITONSERVER_DataType datatype,
    const int64_t *dims, uint32_t dims_count)
{
    expect_success(bk_tensor_set(t, name, datatype, dims, dims_count));
    if (dims_count > 0 && dims[0] == -1) {
        t->symbol = strdup("n");
    }
}

/* A model whose file has exactly the tensors of the configuration. */
static inline void
tensors_of_config(bk_tensors_t *t, const bk_model_config_t *c)
{
    static const int64_t open[] = { -1, -1 };
    const bk_sequence_tensors_t *s = &c->sequence;
    bool batching = c->max_batch_size > 0;
    uint32_t i = 0, o = 0;

    expect_success(bk_tensors_init(t, c->input_count + s->control_count
        + s->state_count + c->batch.input_count, 0,
        c->output_count + s->state_count));
    for (uint32_t k = 0; k < c->input_count; k++) {
        if (c->inputs[k].ragged) {
            describe(&t->inputs[i++], c->inputs[k].name,
                c->inputs[k].datatype, DIMS(-1));
            continue;
        }
        expect_success(bk_tensor_set_configured(&t->inputs[i], &c->inputs[k],
            batching));
        t->inputs[i++].symbol = strdup("n");
    }
    for (uint32_t k = 0; k < s->control_count; k++) {
        describe(&t->inputs[i++], s->controls[k].name,
            s->controls[k].datatype, DIMS(-1, 1));
    }
    for (uint32_t k = 0; k < s->state_count; k++) {
        const bk_state_t *state = &s->states[k];
        bk_tensor_config_t one = {
            .name = state->input, .datatype = state->datatype,
            .model_dims = state->dims, .model_dims_count = state->dims_count
        };

        expect_success(bk_tensor_set_configured(&t->inputs[i++], &one,
            batching));
        one.name = state->output;
        expect_success(bk_tensor_set_configured(&t->outputs[o], &one,
            batching));
        t->outputs[o++].symbol = strdup("n");
    }
    for (uint32_t k = 0; k < c->batch.input_count; k++) {
        describe(&t->inputs[i++], c->batch.inputs[k].target,
            c->batch.inputs[k].datatype, open,
            bk_batch_input_rank(&c->batch.inputs[k]));
    }
    for (uint32_t k = 0; k < c->output_count; k++) {
        expect_success(bk_tensor_set_configured(&t->outputs[o],
            &c->outputs[k], batching));
        t->outputs[o++].symbol = strdup("n");
    }
    bk_tensors_apply_config(t, c);
}

/* Nothing of the fake core is left over after a test. */
static inline int
no_leftovers(void **state)
{
    (void) state;

    return fake_leftovers();
}

#endif /* COMMON_WORLD_H */
