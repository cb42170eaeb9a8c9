/* Each thread of the core has its name and a stack for handlers of signals. */

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/base/lock.h"
#include "core/base/os/thread.h"

typedef struct {
    inf_lock_t lock;
    inf_cond_t changed;
    bool       over;
    char       name[16];
    bool       has_stack;
} seen_t;

static void
begin(seen_t *seen)
{
    memset(seen, 0, sizeof(*seen));
    inf_lock_init(&seen->lock, 1);
    inf_cond_init(&seen->changed);
}

static void
end(seen_t *seen)
{
    inf_cond_fini(&seen->changed);
    inf_lock_fini(&seen->lock);
}

static void *
look_main(void *arg)
{
    seen_t *seen = arg;
    stack_t now;

    pthread_getname_np(pthread_self(), seen->name, sizeof(seen->name));
    seen->has_stack = sigaltstack(NULL, &now) == 0
        && !(now.ss_flags & SS_DISABLE);

    inf_lock(&seen->lock);
    seen->over = true;
    inf_cond_broadcast(&seen->changed);
    inf_unlock(&seen->lock);
    return seen->name;
}

static void
a_thread_has_a_name_and_a_signal_stack(void **state)
{
    (void) state;
    char name[] = "a name that is longer than the kernel's";
    pthread_t thread;
    void *result;
    seen_t seen;
    begin(&seen);

    assert_null(inf_thread_start(&thread, name, look_main, &seen));
    memset(name, 'x', sizeof(name) - 1);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, seen.name);
    assert_string_equal(seen.name, "a name that is ");
    assert_true(seen.has_stack);
    end(&seen);
}

static void
a_detached_thread_needs_nobody(void **state)
{
    (void) state;
    seen_t seen;
    begin(&seen);

    assert_null(inf_thread_start(NULL, "alone", look_main, &seen));
    inf_lock(&seen.lock);
    while (!seen.over) {
        inf_cond_wait(&seen.changed, &seen.lock);
    }
    inf_unlock(&seen.lock);
    assert_string_equal(seen.name, "alone");
    assert_true(seen.has_stack);
    end(&seen);
}

/* In a process of its own, which has no address space for another stack. */
static void
a_thread_that_cannot_start_is_named(void **state)
{
    (void) state;
    int status;

    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        pthread_attr_t attr;
        pthread_t thread;
        seen_t seen;
        begin(&seen);

        /* more than addresses, for every thread that has no size of its own */
        pthread_attr_init(&attr);
        pthread_attr_setstacksize(&attr, (size_t) 1 << 48);
        if (pthread_setattr_default_np(&attr) != 0) {
            _exit(2);
        }
        inf_err_t *err = inf_thread_start(&thread, "late", look_main, &seen);
        bool good = err != NULL && strncmp(inf_err_msg(err),
            "cannot start thread \"late\": ", 28) == 0;
        inf_err_free(err);
        err = inf_thread_start(NULL, "later", look_main, &seen);
        good = good && err != NULL;
        inf_err_free(err);
        _exit(good ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_has_a_name_and_a_signal_stack),
        cmocka_unit_test(a_detached_thread_needs_nobody),
        cmocka_unit_test(a_thread_that_cannot_start_is_named)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
