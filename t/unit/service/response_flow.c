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
    assert_int_equal(inf_response_flow_admit(flow, 0, false),
        INF_RESPONSE_ADMITTED);
    inf_response_flow_take(flow, HALF);
    assert_int_equal(inf_response_flow_admit(flow, 0, false),
        INF_RESPONSE_ADMITTED);
    inf_response_flow_take(flow, HALF);

    assert_int_equal(pthread_create(&thread, NULL, releases, flow), 0);
    assert_int_equal(inf_response_flow_admit(flow, LONG, false),
        INF_RESPONSE_ADMITTED);
    pthread_join(thread, NULL);

    inf_response_flow_unref(flow);
    inf_response_flow_give(flow, HALF);     /* the last reference            */
}

static void
a_worker_that_releases_nothing_stalls_the_request(void **state)
{
    (void) state;
    inf_response_flow_t *flow = inf_response_flow_new();

    inf_response_flow_take(flow, INF_RESPONSE_FLOW_MAX);
    assert_int_equal(inf_response_flow_admit(flow, 0, true),
        INF_RESPONSE_ADMITTED);     /* the last one does not wait            */
    assert_int_equal(inf_response_flow_admit(flow, 1000, false),
        INF_RESPONSE_STALLED);

    /* what comes later is too late */
    inf_response_flow_give(flow, INF_RESPONSE_FLOW_MAX);
    assert_int_equal(inf_response_flow_admit(flow, LONG, false),
        INF_RESPONSE_DROPPED);
    assert_int_equal(inf_response_flow_admit(flow, LONG, true),
        INF_RESPONSE_DROPPED);
    inf_response_flow_unref(flow);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_backend_waits_until_its_worker_has_released),
        cmocka_unit_test(a_worker_that_releases_nothing_stalls_the_request)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
