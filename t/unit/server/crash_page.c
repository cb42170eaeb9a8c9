/* Cores one after another over one page: who is loaded alone, and who no more,
   after a core has died in the midst of loading. */

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/base/log.h"
#include "core/server/crash_page.h"

#define SIZE (1u << 20)

static struct {
    int               fd;
    inf_crash_page_t *page;     /* of the core that runs                     */
} w;

/* How much later it is than the system's clock says. */
static time_t later;

int
clock_gettime(clockid_t clock, struct timespec *now)
{
    int rc = (int) syscall(SYS_clock_gettime, clock, now);

    now->tv_sec += later;
    return rc;
}

static void
core_starts(void)
{
    assert_null(inf_crash_page_open(w.fd, &w.page));
}

static void
core_ends(void)
{
    inf_crash_page_close(w.page);
}

/* A core that does this and dies of that signal; 0: it is killed from
   outside. */
static void
core_dies(void (*work)(void), int signo)
{
    int status;

    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(30);
        core_starts();
        work();
        if (signo != 0) {
            inf_crash_page_note_signal(w.page, signo);
        }
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void
core_before(void **state)
{
    (void) state;
    core_starts();
    assert_false(inf_crash_page_restarted(w.page));
    core_ends();
    core_starts();
    assert_true(inf_crash_page_restarted(w.page));
    core_ends();
    assert_false(inf_crash_page_restarted(NULL));
}

static void
a_page_of_another_version_tells_of_a_core_before(void **state)
{
    (void) state;
    const uint64_t magic = UINT64_C(0x3247505f464e49);

    assert_int_equal(pwrite(w.fd, &magic, sizeof(magic), 0),
        (ssize_t) sizeof(magic));
    core_starts();
    assert_true(inf_crash_page_restarted(w.page));
    core_ends();
}

static int
setup(void **state)
{
    (void) state;
    later = 0;
    w.fd = memfd_create("crash page", MFD_CLOEXEC);
    assert_true(w.fd >= 0);
    assert_int_equal(ftruncate(w.fd, SIZE), 0);
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    close(w.fd);
    return 0;
}

static inf_err_t *
begin(const char *name, int64_t version, uint64_t stamp, bool requested,
    void **mark)
{
    const inf_load_attempt_t load = {
        .name = name, .version = version, .stamp = stamp,
        .requested = requested
    };
    return inf_crash_page_watch.begin(w.page, &load, mark);
}

/* The mark of a load that has begun. */
static void *
load_begins(const char *name, int64_t version)
{
    void *mark;

    assert_null(begin(name, version, 1, false, &mark));
    return mark;
}

typedef struct {
    const char *name;
    int64_t     version;
    void       *mark;
} elsewhere_t;

static void *
begin_there(void *arg)
{
    elsewhere_t *e = arg;

    e->mark = load_begins(e->name, e->version);
    return NULL;
}

/* In another thread than the one that crashes. */
static void *
load_begins_elsewhere(const char *name, int64_t version)
{
    elsewhere_t e = { .name = name, .version = version };
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, begin_there, &e), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return e.mark;
}

static void
load_ends(void *mark)
{
    inf_crash_page_watch.end(w.page, mark, false);
}

static void
is_rejected(const char *name, int64_t version, const char *what)
{
    void *mark;

    inf_err_t *err = begin(name, version, 1, false, &mark);
    assert_non_null(err);
    assert_int_equal(inf_err_code(err), INF_ERR_UNAVAILABLE);
    assert_int_equal(inf_err_cause(err), INF_CAUSE_QUARANTINED);
    assert_non_null(strstr(inf_err_msg(err), what));
    inf_err_free(err);
}

static void
is_quarantined(const char *name, int64_t version)
{
    is_rejected(name, version, "the core died 2 times while this model was"
        " loading");
}

static void
execute_other(void)
{
    inf_crash_page_note_execution(w.page, "other", 2, true);
}

static void
begin_other(void)
{
    load_begins("other", 1);
}

static void
begin_bad(void)
{
    load_begins("bad", 1);
}

static void
who_kills_two_cores_is_loaded_no_more(void **state)
{
    (void) state;
    core_dies(begin_bad, SIGSEGV);
    core_dies(begin_bad, SIGABRT);
    for (int i = 0; i < 2; i++) {       /* nor by the cores after that       */
        core_starts();
        is_quarantined("bad", 1);
        load_ends(load_begins("bad", 2));
        load_ends(load_begins("good", 1));
        core_ends();
    }
}

static void
load_bad(void)
{
    load_ends(load_begins("bad", 1));
}

static atomic_bool good_has_ended;

static void *
load_bad_alone(void *arg)
{
    bool *alone = arg;

    void *mark = load_begins("bad", 1);
    *alone = atomic_load(&good_has_ended);
    load_ends(mark);
    return NULL;
}

/* It waits for the loads that run. */
static void
a_version_that_has_crashed_loads_alone(void **state)
{
    (void) state;
    pthread_t thread;
    bool alone = false;

    core_dies(begin_bad, SIGSEGV);
    core_starts();
    void *good = load_begins("good", 1);
    atomic_store(&good_has_ended, false);
    assert_int_equal(pthread_create(&thread, NULL, load_bad_alone, &alone), 0);
    usleep(50000);              /* enough for a load that doesn't wait       */
    atomic_store(&good_has_ended, true);
    load_ends(good);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(alone);
    core_ends();
}

static void
a_load_that_has_ended_does_not_count(void **state)
{
    (void) state;
    core_dies(load_bad, SIGSEGV);
    core_dies(load_bad, SIGSEGV);
    core_dies(begin_bad, SIGSEGV);
    core_dies(load_bad, SIGSEGV);       /* cleared: it starts anew           */
    core_dies(begin_bad, SIGSEGV);
    core_starts();
    load_bad();
    core_ends();
}

static void
a_kill_from_outside_counts_against_nobody(void **state)
{
    (void) state;
    for (int i = 0; i < 5; i++) {
        core_dies(begin_bad, 0);
    }
    core_starts();
    load_bad();
    core_ends();
}

/* A load that has not returned: others go on beside it. */
static void
load_beside_late_bad(void)
{
    inf_crash_page_watch.late(w.page, load_begins_elsewhere("bad", 1));
    load_ends(load_begins("good", 1));
    load_begins_elsewhere("bad", 2);
}

static void
a_late_load_holds_up_nobody_and_still_counts(void **state)
{
    (void) state;
    core_dies(load_beside_late_bad, SIGSEGV);
    core_dies(load_beside_late_bad, SIGSEGV);   /* it would load alone       */
    core_starts();
    is_quarantined("bad", 1);
    load_ends(load_begins("good", 1));
    core_ends();
}

static void
a_late_load_that_returns_is_cleared(void **state)
{
    (void) state;
    core_starts();
    void *mark = load_begins("bad", 1);
    inf_crash_page_watch.late(w.page, mark);
    inf_crash_page_watch.end(w.page, mark, true);
    core_ends();
    core_dies(load_bad, SIGSEGV);
    core_dies(load_bad, SIGSEGV);
    core_starts();
    load_bad();
    core_ends();
}

static void
begin_both(void)
{
    load_begins_elsewhere("bad", 1);
    load_begins_elsewhere("good", 1);
}

static void
load_good_and_begin_bad(void)
{
    load_ends(load_begins("good", 1));
    load_begins("bad", 1);
}

static void
the_innocent_of_two_is_cleared(void **state)
{
    (void) state;
    core_dies(begin_both, SIGSEGV);
    core_dies(load_good_and_begin_bad, SIGSEGV);
    core_starts();
    is_quarantined("bad", 1);
    load_ends(load_begins("good", 1));
    core_ends();
}

static void
begin_bad_beside_good(void)
{
    load_begins_elsewhere("good", 1);
    load_begins("bad", 1);
}

static void
begin_good(void)
{
    load_begins("good", 1);
}

static void
the_load_of_the_thread_that_crashes_counts_alone(void **state)
{
    (void) state;
    core_dies(begin_bad_beside_good, SIGSEGV);
    core_dies(begin_good, SIGSEGV);     /* the first that counts against it  */
    core_starts();
    load_ends(load_begins("good", 1));
    core_ends();
    core_dies(begin_bad, SIGSEGV);
    core_starts();
    is_quarantined("bad", 1);
    core_ends();
}

static void
the_load_is_named_by_its_own_thread(void **state)
{
    (void) state;
    char text[64];
    inf_signal_text_t t;

    core_starts();
    inf_signal_text_init(&t, text, sizeof(text));
    void *there = load_begins_elsewhere("good", 1);
    assert_false(inf_crash_page_loading(w.page, &t));
    void *here = load_begins("bad", 12);
    assert_true(inf_crash_page_loading(w.page, &t));
    assert_string_equal(text, "model=bad version=12");
    load_ends(here);
    assert_false(inf_crash_page_loading(w.page, &t));
    load_ends(there);
    core_ends();
}

/* ---- executions ----------------------------------------------------------- */

static void
execute_bad(void)
{
    inf_crash_page_note_execution(w.page, "bad", 1, true);
}

static void
perhaps_execute_bad(void)
{
    inf_crash_page_note_execution(w.page, "bad", 1, false);
}

static void
execute_bad_and_load_good(void)
{
    load_begins("good", 1);
    execute_bad();
}

static void
perhaps_execute_bad_and_load_good(void)
{
    load_begins("good", 1);
    perhaps_execute_bad();
}

static void
is_quarantined_for_executing(const char *name)
{
    is_rejected(name, 1, "the core died 5 times while this model was"
        " executing");
}

static void
a_version_that_ends_five_cores_is_quarantined(void **state)
{
    (void) state;
    const int signals[] = { SIGSEGV, SIGABRT, SIGBUS, SIGFPE };

    for (int i = 0; i < 4; i++) {
        core_dies(execute_bad, signals[i]);
        core_dies(execute_bad, 0);              /* from outside              */
        core_starts();
        load_bad();
        core_ends();
    }
    core_dies(execute_bad, SIGILL);
    for (int i = 0; i < 2; i++) {
        core_starts();
        is_quarantined_for_executing("bad");
        load_ends(load_begins("bad", 2));
        load_ends(load_begins("good", 1));
        core_ends();
    }
}

/* Five in ten minutes each are needed; loads count whenever they were. */
static void
executions_count_if_they_follow_each_other_soon(void **state)
{
    (void) state;
    for (int i = 0; i < 4; i++) {
        core_dies(execute_bad, SIGSEGV);
        later += 590;
    }
    core_starts();                              /* notes the fourth          */
    core_ends();
    later += 610;
    core_dies(execute_bad, SIGSEGV);
    core_starts();
    load_bad();
    core_ends();

    core_dies(begin_bad, SIGSEGV);
    later += 3600;
    core_dies(begin_bad, SIGSEGV);
    core_starts();
    is_quarantined("bad", 1);
    core_ends();
}

/* A version that executes in the thread that crashes is to blame alone; one that
   may be to blame is not where something loads. */
static void
loads_and_executions_share_no_blame(void **state)
{
    (void) state;
    for (int i = 0; i < 5; i++) {
        core_dies(i % 2 ? execute_bad_and_load_good : perhaps_execute_bad,
            SIGSEGV);
    }
    core_starts();
    is_quarantined_for_executing("bad");
    load_ends(load_begins("good", 1));
    core_ends();

    core_dies(perhaps_execute_bad_and_load_good, SIGSEGV);
    core_dies(perhaps_execute_bad_and_load_good, SIGSEGV);
    core_starts();
    is_quarantined("good", 1);
    core_ends();
}

static void
leaves_with(uint64_t stamp, bool requested)
{
    void *mark;

    core_starts();
    is_rejected("bad", 1, "quarantined");       /* stamp 1                   */
    is_rejected("bad", 1, "quarantined");
    assert_null(begin("bad", 1, stamp, requested, &mark));
    load_ends(mark);
    load_bad();                                 /* for good                  */
    core_ends();
}

static void
break_gpu_while_loading(void)
{
    load_begins("bad", 1);
    inf_crash_page_note_gpu(w.page, true);
}

static void
break_gpu_beside_a_load(void)
{
    load_begins("innocent", 1);
    inf_crash_page_note_gpu(w.page, false);
}

static void
break_gpu_by_executing(void)
{
    load_begins("innocent", 1);
    inf_crash_page_note_gpu(w.page, false);
    inf_crash_page_note_execution(w.page, "bad", 2, true);
}

static void
perhaps_break_gpu_by_executing(void)
{
    load_begins("innocent", 1);
    inf_crash_page_note_gpu(w.page, false);
    inf_crash_page_note_execution(w.page, "likely", 1, false);
}

static void
a_core_that_ends_for_a_gpu_counts_as_a_crash(void **state)
{
    (void) state;
    for (int i = 0; i < 2; i++) {
        core_dies(break_gpu_while_loading, 0);
        core_dies(break_gpu_beside_a_load, 0);
    }
    for (int i = 0; i < 5; i++) {
        core_dies(break_gpu_by_executing, 0);
        core_dies(perhaps_break_gpu_by_executing, 0);
    }
    core_starts();
    is_quarantined("bad", 1);
    is_rejected("bad", 2, "the core died 5 times while this model was"
        " executing");
    load_ends(load_begins("innocent", 1));
    load_ends(load_begins("likely", 1));
    core_ends();
}

static void
a_request_or_other_files_end_a_quarantine(void **state)
{
    (void) state;
    for (int i = 0; i < 2; i++) {
        core_dies(begin_bad, SIGSEGV);
        core_dies(begin_bad, SIGSEGV);
        leaves_with(i == 0 ? 1 : 2, i == 0);
        for (int k = 0; k < 5; k++) {
            core_dies(execute_bad, SIGSEGV);
        }
        leaves_with(i == 0 ? 1 : 2, i == 0);
    }

    /* files that a core finds when it starts are those that it died with */
    core_dies(begin_bad, SIGSEGV);
    core_dies(begin_bad, SIGSEGV);
    core_starts();
    is_quarantined("bad", 1);
    core_ends();
    core_starts();
    void *mark;
    inf_err_t *err = begin("bad", 1, 7, false, &mark);
    assert_non_null(err);
    inf_err_free(err);
    core_ends();
}

static void
begin_requested_bad(void)
{
    void *mark;

    assert_null(begin("bad", 1, 1, true, &mark));
}

/* The request that each core gets again after the one before counts as a request
   once. */
static void
a_request_that_ends_two_cores_ends_no_quarantine(void **state)
{
    (void) state;
    core_dies(begin_requested_bad, SIGSEGV);
    core_dies(begin_bad, SIGSEGV);
    core_starts();
    is_quarantined("bad", 1);
    core_ends();
    core_dies(begin_requested_bad, SIGSEGV);    /* a new one: counted anew   */
    core_starts();
    load_bad();
    core_ends();
}

static void
begin_too_many(void)
{
    static char name[4096];

    memset(name, 'x', sizeof(name) - 1);
    load_begins(name, 1);
    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof(name), "m%d", i);
        load_begins(name, 1);
    }
}

/* It loads, though nothing can be noted of it. */
static void
a_full_page_and_a_long_name_hold_up_nobody(void **state)
{
    (void) state;
    core_dies(begin_too_many, SIGSEGV);
    core_starts();
    load_ends(load_begins("m0", 1));
    load_ends(load_begins("m1999", 1));
    core_ends();
}

/* The oldest crash gives way, but nothing that is quarantined. */
static void
a_full_page_still_quarantines(void **state)
{
    (void) state;
    core_dies(begin_bad, SIGSEGV);
    core_dies(begin_bad, SIGSEGV);
    core_dies(begin_too_many, SIGSEGV);
    core_starts();
    is_quarantined("bad", 1);
    core_ends();
    for (int i = 0; i < 2; i++) {
        core_dies(begin_other, SIGSEGV);
    }
    for (uint32_t i = 0; i < 5; i++) {
        core_dies(execute_other, SIGSEGV);
    }
    core_starts();
    is_quarantined("bad", 1);
    is_quarantined("other", 1);
    is_rejected("other", 2, "the core died 5 times while this model was"
        " executing");
    core_ends();
}

static void
begin_third(void)
{
    load_begins("third", 1);
}

/* In a full page a new crash takes the place of the oldest one. */
static void
a_full_page_forgets_the_oldest_crash(void **state)
{
    (void) state;
    core_dies(begin_too_many, SIGSEGV);
    core_dies(begin_other, SIGSEGV);
    core_dies(begin_third, SIGSEGV);
    core_dies(begin_other, SIGSEGV);
    core_starts();
    is_quarantined("other", 1);
    core_ends();
}

static void
a_page_that_is_too_small_is_none(void **state)
{
    (void) state;
    inf_crash_page_t *page;
    int fd = memfd_create("crash page", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 4096), 0);
    inf_err_t *err = inf_crash_page_open(fd, &page);
    assert_non_null(err);
    assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
    inf_err_free(err);
    close(fd);
    inf_crash_page_note_signal(NULL, SIGSEGV);
    inf_crash_page_close(NULL);
}

int
main(void)
{
    alarm(60);
    inf_log_set_levels(false, false, false, 0);
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(core_before),
        T(a_page_of_another_version_tells_of_a_core_before),
        T(who_kills_two_cores_is_loaded_no_more),
        T(a_load_that_has_ended_does_not_count),
        T(a_kill_from_outside_counts_against_nobody),
        T(a_late_load_holds_up_nobody_and_still_counts),
        T(a_full_page_still_quarantines),
        T(a_late_load_that_returns_is_cleared),
        T(the_innocent_of_two_is_cleared),
        T(the_load_of_the_thread_that_crashes_counts_alone),
        T(the_load_is_named_by_its_own_thread),
        T(a_version_that_ends_five_cores_is_quarantined),
        T(loads_and_executions_share_no_blame),
        T(a_core_that_ends_for_a_gpu_counts_as_a_crash),
        T(a_request_or_other_files_end_a_quarantine),
        T(a_request_that_ends_two_cores_ends_no_quarantine),
        T(a_full_page_and_a_long_name_hold_up_nobody),
        T(a_full_page_forgets_the_oldest_crash),
        T(executions_count_if_they_follow_each_other_soon),
        T(a_version_that_has_crashed_loads_alone),
        T(a_page_that_is_too_small_is_none)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
