#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/base/heap.h"

#define NODES 500

static inf_heap_node_t nodes[NODES];

static uint64_t
least(void)
{
    uint64_t key = UINT64_MAX;
    for (int i = 0; i < NODES; i++) {
        key = nodes[i].queued && nodes[i].key < key ? nodes[i].key : key;
    }
    return key;
}

static void
nodes_leave_in_order_of_their_keys(void **state)
{
    (void) state;
    inf_heap_t h = { 0 };
    uint64_t before = 0;

    for (int i = 0; i < NODES; i++) {
        inf_heap_push(&h, &nodes[i], (uint64_t) (i * 7919 % 100));
    }
    for (int i = 0; i < NODES; i++) {
        inf_heap_node_t *top = h.top;
        assert_true(top->key >= before);
        before = top->key;
        inf_heap_remove(&h, top);
        assert_false(top->queued);
        inf_heap_remove(&h, top);           /* twice is harmless             */
    }
    assert_null(h.top);
}

static void
any_node_may_leave_at_any_time(void **state)
{
    (void) state;
    inf_heap_t h = { 0 };
    unsigned seed = 7;
    int queued = 0;

    for (int step = 0; step < 20000; step++) {
        inf_heap_node_t *n = &nodes[rand_r(&seed) % NODES];
        if (n->queued) {
            inf_heap_remove(&h, n);
            queued--;
        } else {
            inf_heap_push(&h, n, (uint64_t) rand_r(&seed) % 1000);
            queued++;
        }
        if (step % 16 == 0 && queued > 0) {
            assert_int_equal(h.top->key, least());
        }
        assert_int_equal(h.top == NULL, queued == 0);
    }
    while (h.top != NULL) {
        inf_heap_remove(&h, h.top);
        queued--;
    }
    assert_int_equal(queued, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_leave_in_order_of_their_keys),
        cmocka_unit_test(any_node_may_leave_at_any_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
