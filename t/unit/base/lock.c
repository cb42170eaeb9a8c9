#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/base/clock.h"
#include "core/base/lock.h"

typedef struct {
    inf_lock_t lock;
    inf_cond_t cond;
    uint64_t   count;
    bool       go;
} shared_t;

static void *
add_many(void *arg)
{
    shared_t *s = arg;

    inf_lock(&s->lock);
    while (!s->go) {
        inf_cond_wait(&s->cond, &s->lock);
    }
    inf_unlock(&s->lock);

    for (int i = 0; i < 20000; i++) {
        inf_lock(&s->lock);
        s->count++;
        inf_unlock(&s->lock);
    }

    return NULL;
}

static void
lock_excludes_and_condition_wakes_all(void **state)
{
    (void) state;
    shared_t s = { .count = 0 };
    pthread_t threads[4];

    inf_lock_init(&s.lock, 10);
    inf_cond_init(&s.cond);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, &s), 0);
    }

    inf_lock(&s.lock);
    s.go = true;
    inf_cond_broadcast(&s.cond);
    inf_unlock(&s.lock);

    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }

    assert_int_equal(s.count, 80000);
    inf_cond_fini(&s.cond);
    inf_lock_fini(&s.lock);
}

static void
wait_until_ends_at_a_deadline_in_the_past(void **state)
{
    (void) state;
    inf_lock_t lock;
    inf_cond_t cond;

    inf_lock_init(&lock, 10);
    inf_cond_init(&cond);
    inf_lock(&lock);
    assert_false(inf_cond_wait_until(&cond, &lock, inf_clock_ns()));
    inf_unlock(&lock);
    inf_cond_fini(&cond);
    inf_lock_fini(&lock);
}

static void
ranks_may_rise_and_be_given_up_in_any_order(void **state)
{
    (void) state;
    inf_lock_t a, b;

    inf_lock_init(&a, 10);
    inf_lock_init(&b, 20);
    for (int i = 0; i < 20; i++) {
        inf_lock(&a);
        inf_lock(&b);
        inf_unlock(&a);
        inf_unlock(&b);
    }
    inf_lock_fini(&a);
    inf_lock_fini(&b);
}

static void
falling_rank_aborts(void **state)
{
    (void) state;
    pid_t pid = fork();
    assert_true(pid >= 0);

    if (pid == 0) {
        inf_lock_t a, b;
        close(2);
        inf_lock_init(&a, 20);
        inf_lock_init(&b, 20);
        inf_lock(&a);
        inf_lock(&b);
        _exit(0);
    }

    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lock_excludes_and_condition_wakes_all),
        cmocka_unit_test(wait_until_ends_at_a_deadline_in_the_past),
        cmocka_unit_test(ranks_may_rise_and_be_given_up_in_any_order),
        cmocka_unit_test(falling_rank_aborts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
