/* A thread that overflows its stack still runs the handler. */

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/base/os/signal_stack.h"

#define ON_OUR_STACK 7
#define ELSEWHERE    8

static const inf_signal_stack_t *of_thread;

static bool
is_within(const inf_signal_stack_t *s, const void *p)
{
    uintptr_t start = (uintptr_t) s->bytes;

    return (uintptr_t) p >= start
        && (uintptr_t) p < start + sizeof(s->bytes);
}

static void
on_fault(int signo)
{
    (void) signo;
    stack_t now;

    _exit(sigaltstack(NULL, &now) == 0 && (now.ss_flags & SS_ONSTACK)
        && is_within(of_thread, now.ss_sp) ? ON_OUR_STACK : ELSEWHERE);
}

static int
overflow(volatile const char *above)
{
    volatile char here[512];

    here[0] = above[0];
    return above[0] == 1 ? 0 : overflow(here) + here[0];
}

/* A sanitizer gives a thread one, and unmaps at the thread's end what there
   is. */
static void
have_no_stack(void)
{
    const stack_t none = { .ss_flags = SS_DISABLE };

    (void) sigaltstack(&none, NULL);
}

static void *
overflow_main(void *arg)
{
    inf_signal_stack_t s;

    (void) arg;
    have_no_stack();
    of_thread = &s;
    inf_signal_stack_begin(&s);
    overflow("");
    inf_signal_stack_end(&s);
    return NULL;
}

static void *
other_main(void *arg)
{
    static char other[INF_SIGNAL_STACK_SIZE];
    const stack_t others = { .ss_sp = other, .ss_size = sizeof(other) };
    bool *good = arg;
    inf_signal_stack_t s;
    stack_t now;

    have_no_stack();
    inf_signal_stack_begin(&s);
    *good = sigaltstack(NULL, &now) == 0 && now.ss_sp == s.bytes;
    inf_signal_stack_end(&s);
    *good &= sigaltstack(NULL, &now) == 0 && (now.ss_flags & SS_DISABLE);

    *good &= sigaltstack(&others, NULL) == 0;
    inf_signal_stack_begin(&s);
    inf_signal_stack_end(&s);
    *good &= sigaltstack(NULL, &now) == 0 && now.ss_sp == other;
    have_no_stack();
    return NULL;
}

/* How a process ends that runs this thread. */
static int
run(void *(*thread_main)(void *arg))
{
    int status;

    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct sigaction sa = {
            .sa_handler = on_fault, .sa_flags = SA_ONSTACK
        };
        bool good = false;
        pthread_t thread;

        alarm(60);
        if (sigaction(SIGSEGV, &sa, NULL) == 0
            && pthread_create(&thread, NULL, thread_main, &good) == 0)
        {
            pthread_join(thread, NULL);
        }
        _exit(!good);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void
the_handler_runs_though_the_stack_has_overflowed(void **state)
{
    (void) state;
    assert_int_equal(run(overflow_main), ON_OUR_STACK);
}

static void
another_stack_that_the_thread_has_stays(void **state)
{
    (void) state;
    assert_int_equal(run(other_main), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_handler_runs_though_the_stack_has_overflowed),
        cmocka_unit_test(another_stack_that_the_thread_has_stays)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
