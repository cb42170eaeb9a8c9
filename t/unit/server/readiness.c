/* Backends are asked whether they are ready: what one that says nothing costs,
   and whom. */

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "model/instance_array.h"

#include "core/base/log.h"
#include "core/server/readiness.h"

#define HOUR_NS UINT64_C(3600000000000)

enum { MODELS = 60, HUNG = 3, THREADS = 16 };

/* Of a model: what its backend does when it is asked. */
typedef struct {
    inf_model_t    *model;
    inf_instance_t  instances[2];
    bool            silent;         /* it has no such entry point            */
    bool            unready[2];     /* its instances; under the lock, these  */
    bool            hangs;
    useconds_t      slow;           /* takes so long                         */
    uint32_t        asked;
    uint32_t        inside;
    uint32_t        most_inside;
} backend_t;

typedef struct {
    uint32_t answers;
    bool     ready;
} told_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static backend_t backends[MODELS];
static inf_readiness_t *readiness;
static uint32_t inside;             /* all of them; under the lock           */
static uint32_t most_inside;

static inf_err_t *
instance_ready(inf_instance_t *instance)
{
    backend_t *b = instance->model->state;

    pthread_mutex_lock(&lock);
    b->asked++;
    b->inside++;
    inside++;
    if (inside > most_inside) {
        most_inside = inside;
    }
    if (b->inside > b->most_inside) {
        b->most_inside = b->inside;
    }
    pthread_cond_broadcast(&changed);
    while (b->hangs) {
        pthread_cond_wait(&changed, &lock);
    }
    if (b->slow > 0) {
        pthread_mutex_unlock(&lock);
        usleep(b->slow);
        pthread_mutex_lock(&lock);
    }
    b->inside--;
    inside--;
    bool unready = b->unready[instance - b->instances];
    pthread_mutex_unlock(&lock);
    return unready ? inf_err_new(INF_ERR_UNAVAILABLE, "asleep") : NULL;
}

static bool
has_ready_check(const inf_model_t *model)
{
    return !((const backend_t *) model->state)->silent;
}

static const inf_plugin_ops_t ops = {
    .instance_ready = instance_ready, .has_ready_check = has_ready_check
};

static void
on_answer(void *userp, bool ready)
{
    told_t *told = userp;

    pthread_mutex_lock(&lock);
    told->answers++;
    told->ready = ready;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void
ask(int i, told_t *told)
{
    *told = (told_t) { 0 };
    inf_readiness_ask(readiness, backends[i].model, on_answer, told);
}

static bool
wait_told(told_t *told)
{
    pthread_mutex_lock(&lock);
    while (told->answers == 0) {
        pthread_cond_wait(&changed, &lock);
    }
    assert_int_equal(told->answers, 1);
    bool ready = told->ready;
    pthread_mutex_unlock(&lock);
    return ready;
}

static bool
is_ready(int i)
{
    told_t told;
    ask(i, &told);
    return wait_told(&told);
}

static void
set_hangs(int i, bool hangs)
{
    pthread_mutex_lock(&lock);
    backends[i].hangs = hangs;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void
wait_inside(int i)
{
    pthread_mutex_lock(&lock);
    while (backends[i].inside == 0) {
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
}

static void
open_with(uint64_t limit_ns)
{
    memset(backends, 0, sizeof(backends));
    inside = most_inside = 0;
    for (int i = 0; i < MODELS; i++) {
        backend_t *b = &backends[i];
        b->model = inf_model_new("m", i, "/m");
        assert_non_null(b->model);
        b->model->state = b;
        instances_listed(b->model, b->instances, 2);
        b->instances[0].number = 1;
        b->instances[1].number = 2;
    }
    assert_null(inf_readiness_new(&ops, limit_ns, &readiness));
}

static void
shut(void)
{
    inf_readiness_free(readiness);
    for (int i = 0; i < MODELS; i++) {
        assert_int_equal(backends[i].model->refs, 1);
        assert_int_equal(backends[i].model->visitors, 0);
        instances_unlisted(backends[i].model);
        inf_model_free(backends[i].model);
    }
}

static void
every_instance_is_asked(void **state)
{
    (void) state;
    open_with(HOUR_NS);
    assert_true(is_ready(0));
    assert_int_equal(backends[0].asked, 2);
    backends[0].unready[1] = true;
    assert_false(is_ready(0));
    assert_true(is_ready(1));
    backends[0].unready[1] = false;
    assert_true(is_ready(0));
    shut();
}

static void
who_has_nothing_to_say_is_asked_at_once(void **state)
{
    (void) state;
    told_t told;

    open_with(HOUR_NS);
    backends[0].silent = true;
    ask(0, &told);
    assert_int_equal(told.answers, 1);
    assert_true(told.ready);
    inf_model_close(backends[0].model);         /* its backend is done       */
    ask(0, &told);
    assert_int_equal(told.answers, 1);
    assert_false(told.ready);
    shut();
}

/* However long they hang: the limit is far away. */
static void
those_behind_one_that_hangs_are_answered(void **state)
{
    (void) state;
    told_t hung[HUNG];

    open_with(HOUR_NS);
    for (int i = 0; i < HUNG; i++) {
        set_hangs(i, true);
        ask(i, &hung[i]);
    }
    assert_true(is_ready(HUNG));
    for (int i = 0; i < HUNG; i++) {
        wait_inside(i);
        assert_int_equal(hung[i].answers, 0);
        set_hangs(i, false);
        assert_true(wait_told(&hung[i]));
    }
    shut();
}

/* One after the other they would take longer than the limit. */
static void
models_that_wait_for_slow_ones_are_not_late(void **state)
{
    (void) state;
    told_t told[MODELS];

    open_with(UINT64_C(1000000000));
    for (int i = 0; i < MODELS; i++) {
        backends[i].slow = 12000;               /* an instance; it has two   */
    }
    for (int i = 0; i < MODELS; i++) {
        ask(i, &told[i]);
    }
    for (int i = 0; i < MODELS; i++) {
        assert_true(wait_told(&told[i]));
        assert_int_equal(backends[i].asked, 2);
    }
    shut();
}

static void
many_slow_models_spread_over_a_bounded_number_of_threads(void **state)
{
    (void) state;
    told_t told[MODELS];

    open_with(HOUR_NS);
    for (int i = 0; i < MODELS; i++) {
        set_hangs(i, true);
        ask(i, &told[i]);
    }
    pthread_mutex_lock(&lock);
    while (inside < THREADS) {
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
    usleep(200000);                             /* there would be more       */
    for (int i = 0; i < MODELS; i++) {
        set_hangs(i, false);
    }
    for (int i = 0; i < MODELS; i++) {
        assert_true(wait_told(&told[i]));
    }
    assert_int_equal(most_inside, THREADS);
    shut();
}

/* They were asked first, and are more than the threads of one moment. */
static void
models_behind_many_that_hang_are_asked_in_the_end(void **state)
{
    (void) state;
    told_t told[2 * THREADS];

    open_with(UINT64_C(1000000000));
    for (int i = 0; i < 2 * THREADS; i++) {
        set_hangs(i, i < 2 * THREADS - 1);
        ask(i, &told[i]);
    }
    assert_true(wait_told(&told[2 * THREADS - 1]));
    for (int i = 0; i < 2 * THREADS - 1; i++) {
        assert_false(wait_told(&told[i]));
        set_hangs(i, false);
    }
    shut();
}

static void
whoever_asks_meanwhile_gets_the_same_answer(void **state)
{
    (void) state;
    told_t told[5];

    open_with(HOUR_NS);
    set_hangs(0, true);
    backends[0].unready[0] = true;
    for (int i = 0; i < 5; i++) {
        ask(0, &told[i]);
    }
    wait_inside(0);
    set_hangs(0, false);
    for (int i = 0; i < 5; i++) {
        assert_false(wait_told(&told[i]));
    }
    assert_int_equal(backends[0].most_inside, 1);
    assert_int_equal(backends[0].asked, 1);
    shut();
}

static void
beyond_the_limit_it_is_not_ready_and_nobody_waits(void **state)
{
    (void) state;
    told_t told;

    open_with(UINT64_C(1000000));
    set_hangs(0, true);
    assert_false(is_ready(0));
    wait_inside(0);
    for (int i = 0; i < 100; i++) {
        ask(0, &told);
        assert_int_equal(told.answers, 1);      /* before ask returned       */
        assert_false(told.ready);
    }
    assert_int_equal(backends[0].asked, 1);

    set_hangs(0, false);                        /* it has come to itself     */
    while (!is_ready(0)) {
        usleep(1000);
    }
    shut();
}

static void
an_answer_can_be_waited_for(void **state)
{
    (void) state;
    inf_readiness_answer_t answer;

    open_with(HOUR_NS);
    for (int i = 0; i < 100; i++) {
        backends[0].unready[0] = i % 2;
        inf_readiness_answer_init(&answer);
        inf_readiness_ask(readiness, backends[0].model, inf_readiness_answer,
            &answer);
        assert_int_equal(inf_readiness_answer_wait(&answer), i % 2 == 0);
    }
    shut();
    inf_readiness_free(NULL);
}

int
main(void)
{
    alarm(120);
    inf_log_set_levels(false, false, false, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_instance_is_asked),
        cmocka_unit_test(who_has_nothing_to_say_is_asked_at_once),
        cmocka_unit_test(those_behind_one_that_hangs_are_answered),
        cmocka_unit_test(models_that_wait_for_slow_ones_are_not_late),
        cmocka_unit_test(
            many_slow_models_spread_over_a_bounded_number_of_threads),
        cmocka_unit_test(models_behind_many_that_hang_are_asked_in_the_end),
        cmocka_unit_test(whoever_asks_meanwhile_gets_the_same_answer),
        cmocka_unit_test(beyond_the_limit_it_is_not_ready_and_nobody_waits),
        cmocka_unit_test(an_answer_can_be_waited_for)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
