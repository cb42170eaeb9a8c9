#include "base/os/asked_thread.h"
#include "base/os/held_process.h"

#include "core/base/os/loading_place.h"

static cpu_set_t everywhere;
static int first, last;

static bool
child_is_on(asked_thread_t *c, int core)
{
    asked_thread_ask(c);
    return core < 0 ? CPU_EQUAL(&c->cores, &everywhere)
        : CPU_COUNT(&c->cores) == 1 && CPU_ISSET((size_t) core, &c->cores);
}

static bool
is_on(pid_t process, int core)
{
    cpu_set_t now;

    assert_int_equal(sched_getaffinity(process, sizeof(now), &now), 0);
    return core < 0 ? CPU_EQUAL(&now, &everywhere)
        : CPU_COUNT(&now) == 1 && CPU_ISSET((size_t) core, &now);
}

static bool
am_on(int core)
{
    return is_on(0, core);
}

static void
without_the_policy_nothing_moves(void **state)
{
    (void) state;
    inf_host_setting_t items[] = {
        { "cpu", INF_HOST_CPU_CORES, "0" },
        { INF_LOADING_POLICY, INF_HOST_NUMA_NODE, "0" }
    };
    const inf_host_policies_t policies = { items, 2 };
    inf_loading_place_t p;

    inf_loading_place_enter(&p, &policies);
    assert_true(am_on(-1));
    inf_loading_place_leave(&p);
    assert_true(am_on(-1));
}

static void
what_a_load_starts_comes_home_with_it(void **state)
{
    (void) state;
    char text[16];
    snprintf(text, sizeof(text), "%d", last);
    inf_host_setting_t items[] = {
        { INF_LOADING_POLICY, INF_HOST_CPU_CORES, text }
    };
    const inf_host_policies_t policies = { items, 1 };
    inf_loading_place_t p, other;
    asked_thread_t before, during;
    held_process_t process;

    asked_thread_start(&before);
    inf_loading_place_enter(&p, &policies);
    assert_true(am_on(last));
    asked_thread_start(&during);
    held_process_start(&process);
    pid_t below = held_process_child(&process);
    assert_true(child_is_on(&during, last));
    assert_true(child_is_on(&before, -1));
    assert_true(is_on(process.pid, last));
    assert_true(is_on(below, last));

    inf_loading_place_leave(&p);
    assert_true(am_on(-1));
    assert_true(child_is_on(&during, -1));
    assert_true(is_on(process.pid, -1));
    assert_true(is_on(below, -1));
    asked_thread_end(&during);
    held_process_end(&process);

    inf_loading_place_enter(&other, &policies);     /* and once more         */
    assert_true(am_on(last));
    inf_loading_place_leave(&other);
    assert_true(am_on(-1));
    asked_thread_end(&before);
}

static void
who_was_put_there_stays(void **state)
{
    (void) state;
    char text[16];
    snprintf(text, sizeof(text), "%d", last);
    inf_host_setting_t items[] = {
        { INF_LOADING_POLICY, INF_HOST_CPU_CORES, text },
        { "cpu", INF_HOST_CPU_CORES, text }
    };
    const inf_host_policies_t policies = { items, 2 };
    inf_loading_place_t p;
    asked_thread_t during;

    inf_loading_place_enter(&p, &policies);
    asked_thread_start(&during);
    inf_loading_place_leave(&p);
    assert_true(am_on(-1));
    assert_true(child_is_on(&during, last));
    asked_thread_end(&during);
}

static void *
other_loader(void *arg)
{
    const inf_host_policies_t *policies = arg;
    inf_loading_place_t p;

    inf_loading_place_enter(&p, policies);
    inf_loading_place_leave(&p);
    return NULL;
}

static void
another_load_that_ends_moves_no_loader(void **state)
{
    (void) state;
    char text[16];
    snprintf(text, sizeof(text), "%d", last);
    inf_host_setting_t items[] = {
        { INF_LOADING_POLICY, INF_HOST_CPU_CORES, text }
    };
    inf_host_policies_t policies = { items, 1 };
    inf_loading_place_t p;
    pthread_t thread;

    inf_loading_place_enter(&p, &policies);
    assert_int_equal(pthread_create(&thread, NULL, other_loader, &policies),
        0);
    pthread_join(thread, NULL);
    assert_true(am_on(last));
    inf_loading_place_leave(&p);
    assert_true(am_on(-1));
}

static void
cores_that_are_not_here_are_logged(void **state)
{
    (void) state;
    inf_host_setting_t items[] = {
        { INF_LOADING_POLICY, INF_HOST_CPU_CORES, "8000" }
    };
    const inf_host_policies_t policies = { items, 1 };
    inf_loading_place_t p;

    inf_loading_place_enter(&p, &policies);
    assert_true(am_on(-1));
    inf_loading_place_leave(&p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_the_policy_nothing_moves),
        cmocka_unit_test(what_a_load_starts_comes_home_with_it),
        cmocka_unit_test(who_was_put_there_stays),
        cmocka_unit_test(another_load_that_ends_moves_no_loader),
        cmocka_unit_test(cores_that_are_not_here_are_logged)
    };

    sched_getaffinity(0, sizeof(everywhere), &everywhere);
    for (first = 0; !CPU_ISSET((size_t) first, &everywhere); first++) {
        continue;
    }
    for (last = CPU_SETSIZE - 1; !CPU_ISSET((size_t) last, &everywhere);
        last--)
    {
        continue;
    }
    if (first == last) {
        return 0;                       /* one core: nowhere to go           */
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
