#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/include/channel.h"
#include "core/server/rest_answer.h"
#include "grpc_service.pb-c.h"

static inf_err_t *
answer(uint16_t method, const void *message)
{
    inf_buf_t text;

    inf_buf_init(&text);
    inf_err_t *err = inf_rest_answer(method, message, &text);
    assert_int_equal(text.len, 0);
    inf_buf_fini(&text);
    return err;
}

static void
what_is_ready_has_an_empty_body(void **state)
{
    (void) state;
    Inference__ServerReadyResponse server =
        INFERENCE__SERVER_READY_RESPONSE__INIT;
    Inference__ModelReadyResponse model =
        INFERENCE__MODEL_READY_RESPONSE__INIT;

    server.ready = true;
    model.ready = true;
    assert_null(answer(INF_METHOD_SERVER_READY, &server));
    assert_null(answer(INF_METHOD_MODEL_READY, &model));
}

static void
what_is_not_ready_has_a_cause_of_its_own(void **state)
{
    (void) state;
    const Inference__ServerReadyResponse server =
        INFERENCE__SERVER_READY_RESPONSE__INIT;
    const Inference__ModelReadyResponse model =
        INFERENCE__MODEL_READY_RESPONSE__INIT;

    inf_err_t *err = answer(INF_METHOD_SERVER_READY, &server);
    assert_int_equal(inf_err_cause(err), INF_CAUSE_NOT_READY);
    assert_int_equal(inf_err_code(err), INF_ERR_UNAVAILABLE);
    assert_string_equal(inf_err_msg(err), "");
    inf_err_free(err);

    err = answer(INF_METHOD_MODEL_READY, &model);
    assert_int_equal(inf_err_cause(err), INF_CAUSE_NOT_READY);
    assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
    assert_string_equal(inf_err_msg(err), "Model version not ready");
    inf_err_free(err);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_ready_has_an_empty_body),
        cmocka_unit_test(what_is_not_ready_has_a_cause_of_its_own)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
