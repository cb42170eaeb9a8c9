#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/tensor/response.h"

#define FACTORIES 200

/* A request's factory and what its client saw, in one log for all. */
typedef struct {
    inf_factory_t factory;
    int           number;
    uint32_t      seen;         /* responses                                 */
    bool          final;
    _Atomic bool  freed;
} client_t;

static client_t clients[FACTORIES];
static inf_response_order_t *order;
static _Atomic int sending;     /* threads in the sink: one at most          */
static char history[4096];
static int head;                /* first client whose FINAL is not there     */
static bool noting;

static void
note(const char *fmt, int number)
{
    if (noting) {
        size_t len = strlen(history);
        snprintf(history + len, sizeof(history) - len, fmt, number);
    }
}

static void
on_complete(void *userp, inf_response_t *response, uint32_t flags)
{
    client_t *c = userp;

    assert_int_equal(atomic_fetch_add(&sending, 1), 0);
    assert_false(c->final);
    assert_int_equal(c->number, head);      /* nobody before is unfinished   */
    if (response != NULL) {
        c->seen++;
        note(response->err != NULL ? "%d! " : "%d ", c->number);
    }
    if (flags & INF_SEND_FINAL) {
        c->final = true;
        head++;
        note("%d. ", c->number);
    }
    atomic_fetch_sub(&sending, 1);
    inf_response_free(response);
}

static void
on_free(void *userp, inf_factory_t *f)
{
    client_t *c = userp;

    if (!c->final) {                        /* as infer.c: the core answers  */
        assert_int_equal(c->number, head);
        head++;
        note("%d? ", c->number);
    }
    inf_factory_fini(f);
    atomic_store(&c->freed, true);
}

static const inf_sink_ops_t ops = {
    .complete = on_complete, .factory_free = on_free
};

static void
enter(int count)
{
    order = inf_response_order_new();
    assert_non_null(order);
    head = 0;
    history[0] = '\0';
    noting = count < 20;
    for (int i = 0; i < count; i++) {
        client_t *c = &clients[i];
        memset(c, 0, sizeof(*c));
        c->number = i;
        inf_factory_init(&c->factory);
        inf_factory_start(&c->factory, NULL, "id", &ops, c);
        inf_response_order_enter(order, &c->factory);
    }
}

/* flags < 0: an error, FINAL */
static void
respond(int i, int flags)
{
    inf_response_t *r;

    if (flags < 0) {
        inf_factory_send_error(&clients[i].factory,
            inf_err_new(INF_ERR_INTERNAL, "no"));
        return;
    }
    assert_null(inf_response_new(&clients[i].factory, &r));
    inf_response_send(r, (uint32_t) flags, NULL);
}

static void
release(int i)
{
    inf_factory_unref(&clients[i].factory);
}

static void
leave(int count)
{
    for (int i = 0; i < count; i++) {
        assert_true(clients[i].freed);
    }
    assert_int_equal(head, count);
    inf_response_order_unref(order);
}

/* scheduling.md 3.15 */
static void
responses_leave_in_the_order_of_arrival(void **state)
{
    (void) state;
    enter(4);
    respond(2, INF_SEND_FINAL);
    respond(1, -1);
    release(1);
    release(2);
    assert_string_equal(history, "");
    assert_false(clients[1].freed);
    respond(0, INF_SEND_FINAL);
    assert_string_equal(history, "0 0. 1! 1. 2 2. ");
    assert_true(clients[1].freed && clients[2].freed);
    assert_false(clients[0].freed);
    release(0);
    respond(3, INF_SEND_FINAL);             /* first in line: at once        */
    assert_string_equal(history, "0 0. 1! 1. 2 2. 3 3. ");
    release(3);
    leave(4);
}

/* section 1, "Decoupled flow": a place is left at FINAL */
static void
a_stream_holds_those_behind_until_its_final(void **state)
{
    (void) state;
    enter(3);
    respond(1, 0);
    respond(0, 0);
    respond(1, 0);
    respond(2, INF_SEND_FINAL);
    assert_string_equal(history, "0 ");
    respond(0, 0);
    inf_factory_send_flags(&clients[1].factory, INF_SEND_FINAL);
    inf_factory_send_flags(&clients[0].factory, INF_SEND_FINAL);
    assert_string_equal(history, "0 0 0. 1 1 1. 2 2. ");
    for (int i = 0; i < 3; i++) {
        release(i);
    }
    leave(3);
}

static void
a_request_without_final_holds_nobody_for_ever(void **state)
{
    (void) state;
    enter(4);
    respond(1, 0);
    release(1);
    release(2);
    respond(3, INF_SEND_FINAL);
    release(3);
    assert_string_equal(history, "");
    release(0);
    assert_string_equal(history, "0? 1 1? 2? 3 3. ");
    leave(4);
}

static void
flags_that_say_nothing_change_nothing(void **state)
{
    (void) state;
    enter(2);
    inf_factory_send_flags(&clients[1].factory, 0);
    inf_factory_send_flags(&clients[0].factory, 0);
    assert_string_equal(history, "");
    respond(0, INF_SEND_FINAL);
    respond(1, INF_SEND_FINAL);
    assert_string_equal(history, "0 0. 1 1. ");
    release(0);
    release(1);
    leave(2);
}

/* The runner goes while responses are still on their way. */
/* Taken once more for its next step. */
static void
who_comes_again_keeps_its_place(void **state)
{
    (void) state;
    enter(3);
    inf_response_order_enter(order, &clients[0].factory);
    respond(1, 0);
    inf_response_order_enter(order, &clients[1].factory);
    respond(1, INF_SEND_FINAL);
    respond(2, INF_SEND_FINAL);
    assert_string_equal(history, "");
    respond(0, 0);
    inf_response_order_enter(order, &clients[0].factory);
    assert_string_equal(history, "0 ");
    respond(0, INF_SEND_FINAL);
    assert_string_equal(history, "0 0 0. 1 1 1. 2 2. ");
    for (int i = 0; i < 3; i++) {
        release(i);
        assert_true(atomic_load(&clients[i].freed));
    }
    inf_response_order_unref(order);
}

static void
the_order_outlives_the_runner(void **state)
{
    (void) state;
    enter(2);
    inf_response_order_unref(order);
    respond(1, INF_SEND_FINAL);
    respond(0, INF_SEND_FINAL);
    assert_string_equal(history, "0 0. 1 1. ");
    release(0);
    release(1);
    assert_true(clients[0].freed && clients[1].freed);
}

static void *
backend_main(void *arg)
{
    unsigned seed = (unsigned) (uintptr_t) arg;

    for (int i = (int) (seed % 4); i < FACTORIES; i += 4) {
        int how = rand_r(&seed) % 5;
        if (how == 0) {
            respond(i, 0);
        }
        if (how <= 1) {
            inf_factory_send_flags(&clients[i].factory, INF_SEND_FINAL);
        } else if (how <= 3) {
            respond(i, how == 2 ? (int) INF_SEND_FINAL : -1);
        }
        if (rand_r(&seed) % 4 == 0) {
            sched_yield();
        }
        release(i);
    }
    return NULL;
}

static void
threads_keep_the_order_too(void **state)
{
    (void) state;

    for (unsigned round = 0; round < 50; round++) {
        pthread_t threads[4];

        enter(FACTORIES);
        for (unsigned i = 0; i < 4; i++) {
            assert_int_equal(pthread_create(&threads[i], NULL, backend_main,
                (void *) (uintptr_t) (round * 4 + i)), 0);
        }
        for (unsigned i = 0; i < 4; i++) {
            pthread_join(threads[i], NULL);
        }
        leave(FACTORIES);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(responses_leave_in_the_order_of_arrival),
        cmocka_unit_test(a_stream_holds_those_behind_until_its_final),
        cmocka_unit_test(a_request_without_final_holds_nobody_for_ever),
        cmocka_unit_test(flags_that_say_nothing_change_nothing),
        cmocka_unit_test(who_comes_again_keeps_its_place),
        cmocka_unit_test(the_order_outlives_the_runner),
        cmocka_unit_test(threads_keep_the_order_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
