#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/base/clock.h"
#include "core/sched/waiter.h"
#include "core/wire/sockets.h"

#define SECOND UINT64_C(1000000000)

static bool
notified(int eventfd)
{
    struct pollfd p = { .fd = eventfd, .events = POLLIN };
    return poll(&p, 1, 0) == 1;
}

/* A wait that would never end fails the test by its time limit. */
static void
a_wake_before_the_wait_is_kept(void **state)
{
    (void) state;
    inf_waiter_t w;

    inf_waiter_init(&w);
    assert_false(inf_waiter_woken(&w));
    inf_waiter_wake(&w);
    inf_waiter_wake(&w);                /* two are as good as one            */
    assert_true(inf_waiter_woken(&w));
    inf_waiter_wait(&w, 0);
    assert_false(inf_waiter_woken(&w));

    inf_waiter_wake(&w);
    uint64_t start = inf_clock_ns();
    inf_waiter_wait(&w, SECOND * 60);   /* the spin sees it too              */
    assert_true(inf_clock_ns() - start < SECOND * 30);
    assert_false(inf_waiter_woken(&w));
}

static void
a_timeout_ends_the_wait_and_leaves_no_wake(void **state)
{
    (void) state;
    inf_waiter_t w;

    inf_waiter_init(&w);
    uint64_t start = inf_clock_ns();
    inf_waiter_wait_for(&w, 2000000);
    uint64_t took = inf_clock_ns() - start;
    assert_true(took >= 1900000);
    assert_false(inf_waiter_woken(&w));

    inf_waiter_wake(&w);                /* nobody sleeps: it is remembered   */
    start = inf_clock_ns();
    inf_waiter_wait_for(&w, 60 * SECOND);
    assert_true(inf_clock_ns() - start < 30 * SECOND);
    assert_false(inf_waiter_woken(&w));
}

static void
a_cleared_wake_is_forgotten(void **state)
{
    (void) state;
    inf_waiter_t w;

    inf_waiter_init(&w);
    inf_waiter_wake(&w);
    inf_waiter_clear(&w);
    assert_false(inf_waiter_woken(&w));
    uint64_t start = inf_clock_ns();
    inf_waiter_wait_for(&w, 2000000);
    assert_true(inf_clock_ns() - start >= 1900000);
}

static void
a_wake_while_polling_notifies_the_eventfd(void **state)
{
    (void) state;
    inf_waiter_t w;
    int eventfd;

    assert_null(inf_eventfd_new(&eventfd));
    inf_waiter_init(&w);

    assert_true(inf_waiter_poll_begin(&w, eventfd));
    assert_false(notified(eventfd));
    inf_waiter_wake(&w);
    assert_true(notified(eventfd));
    assert_true(inf_waiter_poll_end(&w));
    assert_true(inf_waiter_woken(&w));
    inf_waiter_clear(&w);
    inf_eventfd_clear(eventfd);

    assert_true(inf_waiter_poll_begin(&w, eventfd));
    assert_false(inf_waiter_poll_end(&w));
    assert_false(inf_waiter_woken(&w));
    assert_false(notified(eventfd));

    inf_waiter_wake(&w);                /* after: no eventfd, no poll        */
    assert_false(notified(eventfd));
    assert_false(inf_waiter_poll_begin(&w, eventfd));
    assert_true(inf_waiter_woken(&w));
    inf_waiter_wait(&w, 0);
    assert_true(inf_waiter_poll_begin(&w, eventfd));
    assert_false(inf_waiter_poll_end(&w));
    close(eventfd);
}

/* ---- two threads pass a ball; a lost wake-up would hang ------------------ */

typedef struct {
    inf_waiter_t     me, you;
    _Atomic uint64_t ball;          /* odd: yours                            */
    int              eventfd;
    int              mode;          /* how the player waits                  */
} game_t;

enum { ROUNDS = 20000 };

static void
wait_some_way(game_t *g, uint64_t round)
{
    switch ((uint64_t) g->mode + round % 3) {
    case 0:
        inf_waiter_wait(&g->you, 0);
        return;
    case 1:
        inf_waiter_wait(&g->you, 2000);
        return;
    case 2:
        inf_waiter_wait_for(&g->you, SECOND);
        return;
    default:
        if (inf_waiter_poll_begin(&g->you, g->eventfd)) {
            struct pollfd p = { .fd = g->eventfd, .events = POLLIN };
            poll(&p, 1, -1);
            inf_eventfd_clear(g->eventfd);
            inf_waiter_poll_end(&g->you);
        }
        inf_waiter_clear(&g->you);
    }
}

static void *
player(void *arg)
{
    game_t *g = arg;

    for (uint64_t round = 0; round < ROUNDS; round++) {
        while (atomic_load(&g->ball) != 2 * round + 1) {
            wait_some_way(g, round);
        }
        atomic_store(&g->ball, 2 * round + 2);
        inf_waiter_wake(&g->me);
    }
    return NULL;
}

static void
no_wake_is_lost_between_two_threads(void **state)
{
    (void) state;
    static game_t g;
    pthread_t thread;

    for (g.mode = 0; g.mode < 2; g.mode++) {
        inf_waiter_init(&g.me);
        inf_waiter_init(&g.you);
        atomic_store(&g.ball, 0);
        assert_null(inf_eventfd_new(&g.eventfd));
        assert_int_equal(pthread_create(&thread, NULL, player, &g), 0);
        for (uint64_t round = 0; round < ROUNDS; round++) {
            atomic_store(&g.ball, 2 * round + 1);
            inf_waiter_wake(&g.you);
            while (atomic_load(&g.ball) != 2 * round + 2) {
                inf_waiter_wait(&g.me, 0);
            }
        }
        pthread_join(thread, NULL);
        close(g.eventfd);
    }
}

int
main(void)
{
    alarm(300);                         /* a lost wake-up ends here          */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wake_before_the_wait_is_kept),
        cmocka_unit_test(a_timeout_ends_the_wait_and_leaves_no_wake),
        cmocka_unit_test(a_cleared_wake_is_forgotten),
        cmocka_unit_test(a_wake_while_polling_notifies_the_eventfd),
        cmocka_unit_test(no_wake_is_lost_between_two_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
