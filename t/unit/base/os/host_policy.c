#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/os/host_policy.h"

/* All of this is about the calling thread. */

static char core_text[16];      /* one that this process may use             */
static int  core;

static const inf_host_setting_t settings[] = {
    { "cpu", "cpu-cores", "0-8191" },
    { "one", "cpu-cores", "0-8191" },
    { "one", "numa-node", "0" },
    { "one", "cpu-cores", core_text },
    { "away", "cpu-cores", "8191" },
    { "nowhere", "numa-node", "1000" }
};

static const inf_host_policies_t policies = {
    settings, sizeof(settings) / sizeof(settings[0])
};

static int
find_core(void **state)
{
    (void) state;
    cpu_set_t all;

    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    while (!CPU_ISSET(core, &all)) {
        core++;
    }
    snprintf(core_text, sizeof(core_text), "%d", core);
    return 0;
}

static int
memory_mode(void)
{
    int mode = -1;
    assert_int_equal(syscall(SYS_get_mempolicy, &mode, NULL, 0ul, NULL, 0ul),
        0);
    return mode;
}

static void
the_last_value_of_a_key_counts(void **state)
{
    (void) state;

    assert_string_equal(inf_host_policy_find(&policies, "one", "cpu-cores"),
        core_text);
    assert_null(inf_host_policy_find(&policies, "cpu", "numa-node"));
    assert_null(inf_host_policy_find(&policies, "gpu_0", "cpu-cores"));
    assert_null(inf_host_policy_find(NULL, "cpu", "cpu-cores"));
}

static void *
apply_and_return(void *arg)
{
    (void) arg;
    inf_host_place_t place;
    cpu_set_t before, during, after;
    int mode = memory_mode();

    sched_getaffinity(0, sizeof(before), &before);
    inf_host_place_save(&place, &policies, "one");
    assert_null(inf_host_policy_apply(&policies, "one"));

    sched_getaffinity(0, sizeof(during), &during);
    assert_int_equal(CPU_COUNT(&during), 1);
    assert_true(CPU_ISSET(core, &during));
    assert_int_equal(memory_mode(), 2);         /* MPOL_BIND                 */

    inf_host_place_restore(&place);
    sched_getaffinity(0, sizeof(after), &after);
    assert_true(CPU_EQUAL(&before, &after));
    assert_int_equal(memory_mode(), mode);
    return NULL;
}

static void
a_thread_moves_and_returns(void **state)
{
    (void) state;
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, apply_and_return, NULL), 0);
    pthread_join(thread, NULL);
}

static void
what_is_not_here_is_an_error_with_the_policy(void **state)
{
    (void) state;
    inf_err_t *err = inf_host_policy_apply(&policies, "away");

    assert_non_null(err);
    assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
    assert_string_equal(inf_err_msg(err), "host policy 'away': none of the"
        " cores 8191 may be used here");
    inf_err_free(err);

    err = inf_host_policy_apply(&policies, "nowhere");
    assert_non_null(err);
    assert_non_null(strstr(inf_err_msg(err), "host policy 'nowhere'"));
    inf_err_free(err);
}

static void
an_undefined_policy_changes_nothing(void **state)
{
    (void) state;
    inf_host_place_t place;
    cpu_set_t before, after;

    sched_getaffinity(0, sizeof(before), &before);
    inf_host_place_save(&place, &policies, "gpu_3");
    assert_false(place.has_cores || place.has_memory);
    assert_null(inf_host_policy_apply(&policies, "gpu_3"));
    assert_null(inf_host_policy_apply(NULL, "cpu"));
    inf_host_place_restore(&place);
    sched_getaffinity(0, sizeof(after), &after);
    assert_true(CPU_EQUAL(&before, &after));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_value_of_a_key_counts),
        cmocka_unit_test(a_thread_moves_and_returns),
        cmocka_unit_test(what_is_not_here_is_an_error_with_the_policy),
        cmocka_unit_test(an_undefined_policy_changes_nothing),
    };
    return cmocka_run_group_tests(tests, find_core, NULL);
}
