/*
 * request_world.h - one request to one model, to be normalised.
 *
 * Owner    the test that includes it.
 * Thread   one.
 * Units    none.
 * Errors   the test fails.
 * Route    unit tests only
 */

#ifndef INF_T_MODEL_REQUEST_WORLD_H
#define INF_T_MODEL_REQUEST_WORLD_H

#include "model/config_text.h"

#include "core/include/datatype.h"
#include "core/model/model.h"
#include "core/model/normalize.h"
#include "core/model/string_check.h"

/* One request to one model; data is zeroes unless a test says otherwise. */
typedef struct {
    inf_model_t  *model;
    inf_request_t req;
} world_t;

static const char zeroes[4096];

static inline void
world_open(world_t *w, const char *config)
{
    Inference__ModelConfig *msg = config_parse_normal(config);

    w->model = inf_model_new("m", 1, "/models/m");
    assert_non_null(w->model);
    assert_ok(inf_config_tensors_new(msg, &w->model->tensors));
    inf_message_free(&msg->base);
    inf_request_init(&w->req);
    w->req.model = w->model;
}

static inline void
world_close(world_t *w)
{
    inf_request_fini(&w->req);
    inf_model_free(w->model);
}

static inline inf_input_t *
add(world_t *w, const char *name, inf_datatype_t type, uint32_t dims,
    const int64_t *shape)
{
    inf_input_t *in = inf_request_add_input(&w->req, name, strlen(name), type,
        shape, dims);
    assert_non_null(in);
    return in;
}

static inline void
add_data(world_t *w, inf_input_t *in, const void *base, uint64_t size)
{
    assert_ok(inf_request_add_data(&w->req, in, &(inf_buffer_t) {
        .base = base, .size = size }));
}

#define SHAPE(...)                                                           \
    (uint32_t) (sizeof((int64_t[]) { __VA_ARGS__ }) / sizeof(int64_t)),      \
    (const int64_t[]) { __VA_ARGS__ }

static inline void
again(world_t *w)
{
    inf_request_reset(&w->req);
    w->req.model = w->model;
}

/* All checks, as the intake and the thread that takes the payload make them. */
static inline inf_err_t *
check(world_t *w)
{
    inf_err_t *err = inf_request_normalize(w->model, &w->req);
    return err != NULL ? err : inf_request_check_strings(&w->req);
}

static inline void
rejected(world_t *w, const char *text)
{
    assert_error(check(w), INF_ERR_INVALID_ARG, text);
    again(w);
}

#endif /* INF_T_MODEL_REQUEST_WORLD_H */
