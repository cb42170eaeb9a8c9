#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/service/response_flow.h"

#define HALF (INF_RESPONSE_FLOW_MAX / 2)
#define LONG (UINT64_C(60) * 1000000000)

static void *
releases(void *userp)
{
    inf_response_flow_give(userp, HALF);
    return NULL;
}

static void
a_backend_waits_until_its_worker_has_released(void **state)
{
    (void) state;
    inf_response_flow_t *flow = inf_response_flow_new();
    pthread_t thread;

    assert_non_null(flow);
    assert_true(inf_response_flow_admit(flow, 0));
    inf_response_flow_take(flow, HALF);
    assert_true(inf_response_flow_admit(flow, 0));
    inf_response_flow_take(flow, HALF);

    assert_int_equal(pthread_create(&thread, NULL, releases, flow), 0);
    assert_true(inf_response_flow_admit(flow, LONG));
    pthread_join(thread, NULL);

    inf_response_flow_unref(flow);
    inf_response_flow_give(flow, HALF);     /* the last reference            */
}

static void *
waits(void *userp)
{
    return inf_response_flow_admit(userp, LONG) ? userp : NULL;
}

static void
a_worker_that_releases_nothing_stalls_the_call(void **state)
{
    (void) state;
    inf_response_flow_t *flow = inf_response_flow_new();
    pthread_t thread;
    void *admitted;

    /* the flow stalls for all that wait, and for those that come later */
    inf_response_flow_take(flow, HALF);
    inf_response_flow_take(flow, HALF);
    assert_int_equal(pthread_create(&thread, NULL, waits, flow), 0);
    assert_false(inf_response_flow_admit(flow, 1000));
    pthread_join(thread, &admitted);
    assert_null(admitted);
    assert_false(inf_response_flow_admit(flow, LONG));

    /* it goes on when the client has taken some of it */
    inf_response_flow_give(flow, HALF);
    assert_true(inf_response_flow_admit(flow, LONG));
    inf_response_flow_give(flow, HALF);
    inf_response_flow_unref(flow);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_backend_waits_until_its_worker_has_released),
        cmocka_unit_test(a_worker_that_releases_nothing_stalls_the_call)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
