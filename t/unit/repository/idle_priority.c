#include "repository/asked_thread.h"
#include "repository/held_process.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/repository/idle_priority.h"
#include "core/repository/loading_place.h"

#define NOBODY      65534
#define NOT_ALLOWED 12

static int
child_policy(asked_thread_t *c)
{
    asked_thread_ask(c);
    return c->policy;
}

/* Whether a process of the user nobody takes the priority: it must have it,
   then, and be able to give it up. */
static int
nobody_takes_it(rlim_t limit)
{
    pid_t pid = fork();

    if (pid == 0) {
        const struct rlimit nice = { limit, limit };
        inf_idle_priority_t p;

        if (setrlimit(RLIMIT_NICE, &nice) != 0) {
            _exit(NOT_ALLOWED);         /* root without CAP_SYS_RESOURCE     */
        }
        if (setuid(NOBODY) != 0) {
            _exit(10);
        }
        inf_idle_priority_take(&p);
        int policy = sched_getscheduler(0);
        inf_idle_priority_give_up(&p);
        if (policy != (p.taken ? SCHED_IDLE : SCHED_OTHER)
            || sched_getscheduler(0) != SCHED_OTHER)
        {
            _exit(11);
        }
        _exit(p.taken);
    }

    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* The first test: this process hasn't tried yet whether it may. */
static void
who_could_not_come_back_takes_nothing(void **state)
{
    (void) state;
    if (geteuid() != 0) {
        skip();
    }

    assert_int_equal(nobody_takes_it(0), 0);
    int found = nobody_takes_it(20);
    if (found != NOT_ALLOWED) {
        assert_int_equal(found, 1);
        assert_int_equal(nobody_takes_it(19), 0);
    }
}

static void
must_take(inf_idle_priority_t *p)
{
    inf_idle_priority_take(p);
    if (!p->taken) {
        skip();                         /* no privilege, no RLIMIT_NICE      */
    }
    assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
}

static void
threads_inherit_it_until_it_is_dropped(void **state)
{
    (void) state;
    inf_idle_priority_t p;
    asked_thread_t before, during;

    asked_thread_start(&before);
    must_take(&p);
    asked_thread_start(&during);
    assert_int_equal(child_policy(&before), SCHED_OTHER);
    assert_int_equal(child_policy(&during), SCHED_IDLE);

    inf_idle_priority_give_up(&p);
    assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
    assert_int_equal(child_policy(&during), SCHED_IDLE);
    inf_idle_priority_drop(&p, during.tid);
    assert_int_equal(child_policy(&during), SCHED_OTHER);
    asked_thread_end(&during);
    asked_thread_end(&before);
}

static void
set_policy(pid_t tid, int policy)
{
    const struct sched_param none = { .sched_priority = 0 };
    assert_int_equal(sched_setscheduler(tid, policy, &none), 0);
}

/* A program's own business, or a backend's. */
static void
who_had_it_before_keeps_it(void **state)
{
    (void) state;
    struct timespec pause = { .tv_nsec = 30000000 };    /* three ticks       */
    inf_idle_priority_t p;
    asked_thread_t before;
    int status;

    asked_thread_start(&before);
    set_policy(before.tid, SCHED_IDLE);
    nanosleep(&pause, NULL);
    must_take(&p);
    inf_idle_priority_drop(&p, before.tid);
    inf_idle_priority_give_up(&p);
    assert_int_equal(child_policy(&before), SCHED_IDLE);
    asked_thread_end(&before);

    set_policy(0, SCHED_IDLE);
    pid_t pid = fork();
    if (pid == 0) {
        _exit(sched_getscheduler(0) == SCHED_IDLE ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    set_policy(0, SCHED_OTHER);
}

static void
processes_do_not_inherit_it(void **state)
{
    (void) state;
    inf_idle_priority_t p;
    int status;

    must_take(&p);
    pid_t pid = fork();
    if (pid == 0) {
        _exit(sched_getscheduler(0) == SCHED_OTHER ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
    inf_idle_priority_give_up(&p);
}

static void
spin(uint64_t ns)
{
    struct timespec ts;
    uint64_t now, start = 0;

    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
        now = (uint64_t) ts.tv_sec * 1000000000u + (uint64_t) ts.tv_nsec;
        start = start == 0 ? now : start;
    } while (now - start < ns);
}

/* The times are told, so that nothing depends on how busy the machine is. */
static void
who_wants_a_processor_and_gets_none_is_raised(void **state)
{
    (void) state;
    inf_idle_priority_t p;

    must_take(&p);
    uint64_t at = p.looked_ns;
    inf_idle_priority_look(&p, at + INF_IDLE_LOOK_NS - 1);      /* too early */
    assert_int_equal(p.looked_ns, at);

    spin(300000000);
    inf_idle_priority_look(&p, at + INF_IDLE_LOOK_NS);
    assert_int_equal(p.looked_ns, at + INF_IDLE_LOOK_NS);
    assert_int_equal(sched_getscheduler(0), SCHED_IDLE);

    spin(300000000);                            /* of one second             */
    inf_idle_priority_look(&p, at + 2 * INF_IDLE_LOOK_NS);
    assert_int_equal(sched_getscheduler(0), SCHED_IDLE);

    inf_idle_priority_look(&p, at + 3 * INF_IDLE_LOOK_NS);
    assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
    assert_true(p.taken);
    inf_idle_priority_give_up(&p);
    assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
}

typedef struct {
    inf_idle_priority_t priority;
    sem_t               taken;
    sem_t               end;
} sleeper_t;

static void *
sleeper_main(void *arg)
{
    sleeper_t *s = arg;

    inf_idle_priority_take(&s->priority);
    sem_post(&s->taken);
    sem_wait(&s->end);
    inf_idle_priority_give_up(&s->priority);
    return NULL;
}

static void
who_waits_for_something_else_is_not(void **state)
{
    (void) state;
    inf_idle_priority_t mine;
    sleeper_t s;
    pthread_t thread;
    struct timespec pause = { .tv_nsec = 1000000 };
    char path[64], text[256] = "";

    must_take(&mine);
    inf_idle_priority_give_up(&mine);
    sem_init(&s.taken, 0, 0);
    sem_init(&s.end, 0, 0);
    assert_int_equal(pthread_create(&thread, NULL, sleeper_main, &s), 0);
    sem_wait(&s.taken);
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat",
        (int) s.priority.thread);
    while (strstr(text, ") S ") == NULL) {
        FILE *f = fopen(path, "r");
        assert_non_null(fgets(text, sizeof(text), f));
        fclose(f);
        nanosleep(&pause, NULL);
    }

    uint64_t at = s.priority.looked_ns;
    for (unsigned i = 1; i < 4; i++) {
        inf_idle_priority_look(&s.priority, at + i * INF_IDLE_LOOK_NS);
        assert_int_equal(sched_getscheduler(s.priority.thread), SCHED_IDLE);
    }
    sem_post(&s.end);
    pthread_join(thread, NULL);
    sem_destroy(&s.taken);
    sem_destroy(&s.end);
}

/* As a destroyer does, which is started with it. */
static void
who_has_inherited_it_can_take_it(void **state)
{
    (void) state;
    inf_idle_priority_t p, again;

    must_take(&p);
    inf_idle_priority_take(&again);
    assert_true(again.taken);
    inf_idle_priority_give_up(&again);
    assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
    inf_idle_priority_give_up(&p);
}

static void
a_loading_place_is_behind_requests(void **state)
{
    (void) state;
    const inf_host_policies_t none = { NULL, 0 };
    inf_idle_priority_t probe;
    inf_loading_place_t p;
    asked_thread_t during;

    must_take(&probe);
    inf_idle_priority_give_up(&probe);

    inf_loading_place_enter(&p, &none);
    assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
    asked_thread_start(&during);
    assert_int_equal(child_policy(&during), SCHED_IDLE);
    inf_loading_place_leave(&p);
    assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
    assert_int_equal(child_policy(&during), SCHED_OTHER);
    inf_loading_place_leave(&p);                    /* nothing               */
    asked_thread_end(&during);

    inf_loading_place_enter(&p, &none);
    uint64_t at = inf_clock_ns();
    inf_loading_place_look(at + INF_IDLE_LOOK_NS);
    inf_loading_place_look(at + 9 * INF_IDLE_LOOK_NS);
    assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
    inf_loading_place_end(&p);

    inf_loading_place_enter(&p, &none);
    inf_loading_place_end(&p);                      /* whoever ends, stays   */
    assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
    inf_loading_place_enter(&p, &none);
    inf_loading_place_leave(&p);
    assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
}

/* Part of a load: what it starts outlives it, and comes to the program's
   first thread. */
static void *
starter_main(void *arg)
{
    held_process_start(arg);
    return NULL;
}

static void *
load_main(void *arg)
{
    const inf_host_policies_t none = { NULL, 0 };
    held_process_t *started = arg;
    inf_loading_place_t p;
    pthread_t thread;

    inf_loading_place_enter(&p, &none);
    held_process_start(&started[0]);
    assert_int_equal(pthread_create(&thread, NULL, starter_main, &started[1]),
        0);
    pthread_join(thread, NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sched_getscheduler(started[i].pid), SCHED_IDLE);
        assert_int_equal(sched_getscheduler(held_process_child(&started[i])),
            SCHED_IDLE);
    }
    inf_loading_place_leave(&p);
    return NULL;
}

static void
started_processes_come_back_with_the_load(void **state)
{
    (void) state;
    struct timespec pause = { .tv_nsec = 30000000 };    /* three ticks       */
    held_process_t before, during[2];
    inf_idle_priority_t probe;
    pthread_t thread;

    must_take(&probe);
    held_process_start(&before);
    pid_t below = held_process_child(&before);
    inf_idle_priority_give_up(&probe);
    nanosleep(&pause, NULL);

    assert_int_equal(pthread_create(&thread, NULL, load_main, during), 0);
    pthread_join(thread, NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sched_getscheduler(during[i].pid), SCHED_OTHER);
        assert_int_equal(sched_getscheduler(held_process_child(&during[i])),
            SCHED_OTHER);
        held_process_end(&during[i]);
    }
    assert_int_equal(sched_getscheduler(before.pid), SCHED_IDLE);
    assert_int_equal(sched_getscheduler(below), SCHED_IDLE);
    held_process_end(&before);
}

static void
a_load_that_waits_for_a_process_raises_it(void **state)
{
    (void) state;
    const inf_host_policies_t none = { NULL, 0 };
    inf_idle_priority_t probe;
    inf_loading_place_t p;
    held_process_t started;

    must_take(&probe);
    inf_idle_priority_give_up(&probe);

    inf_loading_place_enter(&p, &none);
    uint64_t at = p.looked_ns;
    held_process_start(&started);
    pid_t below = held_process_child(&started);
    inf_loading_place_look(at + INF_IDLE_LOOK_NS - 1);      /* too early     */
    assert_int_equal(sched_getscheduler(started.pid), SCHED_IDLE);
    inf_loading_place_look(at + INF_IDLE_LOOK_NS);
    assert_int_equal(sched_getscheduler(started.pid), SCHED_OTHER);
    assert_int_equal(sched_getscheduler(below), SCHED_OTHER);
    inf_loading_place_leave(&p);
    held_process_end(&started);
}

/* A process that was forked has given it up: what it starts under SCHED_IDLE
   is its own choice. */
static void
what_a_process_has_chosen_stays(void **state)
{
    (void) state;
    const inf_host_policies_t none = { NULL, 0 };
    inf_idle_priority_t probe;
    inf_loading_place_t p;
    held_process_t chosen;
    int told[2], end[2];

    must_take(&probe);
    inf_idle_priority_give_up(&probe);
    assert_int_equal(pipe2(told, O_CLOEXEC), 0);
    assert_int_equal(pipe2(end, O_CLOEXEC), 0);

    inf_loading_place_enter(&p, &none);
    pid_t pid = fork();
    if (pid == 0) {
        char x;
        close(end[1]);
        set_policy(0, SCHED_IDLE);
        held_process_start(&chosen);
        set_policy(0, SCHED_OTHER);
        if (write(told[1], &chosen.pid, sizeof(pid)) < 0
            || read(end[0], &x, 1) != 0)
        {
            _exit(1);
        }
        held_process_end(&chosen);
        _exit(0);
    }
    close(end[0]);
    assert_int_equal(read(told[0], &chosen.pid, sizeof(pid)), sizeof(pid));
    inf_loading_place_leave(&p);
    assert_int_equal(sched_getscheduler(pid), SCHED_OTHER);
    assert_int_equal(sched_getscheduler(chosen.pid), SCHED_IDLE);
    close(end[1]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(told[0]);
    close(told[1]);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_could_not_come_back_takes_nothing),
        cmocka_unit_test(threads_inherit_it_until_it_is_dropped),
        cmocka_unit_test(who_had_it_before_keeps_it),
        cmocka_unit_test(processes_do_not_inherit_it),
        cmocka_unit_test(who_wants_a_processor_and_gets_none_is_raised),
        cmocka_unit_test(who_waits_for_something_else_is_not),
        cmocka_unit_test(who_has_inherited_it_can_take_it),
        cmocka_unit_test(a_loading_place_is_behind_requests),
        cmocka_unit_test(started_processes_come_back_with_the_load),
        cmocka_unit_test(a_load_that_waits_for_a_process_raises_it),
        cmocka_unit_test(what_a_process_has_chosen_stays)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
