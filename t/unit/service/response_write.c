#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/service/response_write.h"

/* A sender of the first execution answers while the request waits for its
   second one, which began to wait later. */
static void
times_are_those_of_an_execution_that_began(void **state)
{
    (void) state;
    inf_in_flight_t *in_flight = calloc(1, sizeof(*in_flight));
    const inf_response_t response = { .output_ns = 650, .sent_ns = 2700 };
    inf_completion_t c = { .cause = INF_CAUSE_NONE };

    assert_non_null(in_flight);
    inf_request_t *req = &in_flight->request;
    atomic_init(&req->exec_ns, 500);
    atomic_init(&req->queued_ns, 40);
    atomic_init(&req->payload_rows, 3);
    atomic_init(&req->instance, "m_0");
    atomic_init(&in_flight->factory.gpu, -1);
    req->queue_ns = 600;

    inf_response_describe(in_flight, &response, &c);
    assert_int_equal(c.queue_ns, 40);
    assert_int_equal(c.compute_ns, 2200);
    assert_int_equal(c.compute_output_us, 2);
    assert_int_equal(c.batch_size, 3);
    assert_int_equal(c.device, INF_DEVICE_CPU);
    free(in_flight);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_those_of_an_execution_that_began)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
