#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/tensor/shm_fault.h"

#define PAGES 8

static size_t           page;
static struct sigaction ours;       /* cmocka has its own for each test      */
static int              earlier;    /* status of the process that had a
                                       handler before there was ours         */

/* A mapping of an object with so many pages, of which some exist. */
static char *
map(int pages, int exist)
{
    int fd = memfd_create("shm_fault", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, exist * (off_t) page), 0);

    char *p = mmap(NULL, (size_t) pages * page, PROT_READ | PROT_WRITE,
        MAP_SHARED, fd, 0);
    assert_true(p != MAP_FAILED);
    close(fd);
    return p;
}

static void
handle(void)
{
    assert_int_equal(sigaction(SIGBUS, &ours, NULL), 0);
}

static uint32_t
enter(char *p, int pages, ino_t inode)
{
    uint32_t place;
    assert_null(inf_shm_fault_enter(p, (size_t) pages * page, 1, inode,
        &place));
    return place;
}

static void
reading_behind_the_end_gives_zeros(void **state)
{
    (void) state;
    handle();
    char *p = map(PAGES, 2);
    uint32_t place = enter(p, PAGES, 1);

    p[0] = 'a';
    p[2 * page - 1] = 'b';
    assert_false(inf_shm_fault_seen(place));
    assert_int_equal(*(volatile char *) &p[PAGES * page - 1], 0);
    assert_true(inf_shm_fault_seen(place));

    /* all of it is other memory now, so that one fault is enough */
    assert_int_equal(p[0], 0);
    memset(p, 'x', PAGES * page);
    assert_int_equal(p[PAGES * page - 1], 'x');

    inf_shm_fault_remove(place);
    munmap(p, PAGES * page);
}

static void
writing_behind_the_end_harms_nobody(void **state)
{
    (void) state;
    handle();
    char *sound = map(PAGES, PAGES);
    char *p = map(PAGES, 0);
    uint32_t there = enter(sound, PAGES, 1);
    uint32_t place = enter(p, PAGES, 2);

    memset(sound, 's', PAGES * page);
    memset(p, 'x', PAGES * page);
    assert_true(inf_shm_fault_seen(place));
    assert_false(inf_shm_fault_seen(there));
    assert_int_equal(sound[0], 's');
    assert_int_equal(sound[PAGES * page - 1], 's');

    inf_shm_fault_remove(place);
    inf_shm_fault_remove(there);
    munmap(p, PAGES * page);
    munmap(sound, PAGES * page);
}

static void
objects_are_known_while_they_are_mapped(void **state)
{
    (void) state;
    char *p = map(PAGES, PAGES);
    uint32_t first = enter(p, 1, 77);
    uint32_t second = enter(p + page, 1, 77);

    assert_true(inf_shm_fault_knows(1, 77));
    assert_false(inf_shm_fault_knows(2, 77));
    assert_false(inf_shm_fault_knows(1, 78));
    inf_shm_fault_remove(first);
    assert_true(inf_shm_fault_knows(1, 77));
    inf_shm_fault_remove(second);
    assert_false(inf_shm_fault_knows(1, 77));
    munmap(p, PAGES * page);
}

static void
there_are_so_many_and_no_more(void **state)
{
    (void) state;
    static uint32_t places[INF_SHM_MAPPINGS_MAX];
    char *p = map(PAGES, PAGES);
    uint32_t more;

    for (uint32_t i = 0; i < INF_SHM_MAPPINGS_MAX; i++) {
        assert_null(inf_shm_fault_enter(p, page, 1, 1, &places[i]));
    }
    inf_err_t *err = inf_shm_fault_enter(p, page, 1, 1, &more);
    assert_non_null(err);
    assert_int_equal(inf_err_code(err), INF_ERR_UNAVAILABLE);
    inf_err_free(err);

    inf_shm_fault_remove(places[17]);
    assert_null(inf_shm_fault_enter(p, page, 1, 1, &places[17]));
    for (uint32_t i = 0; i < INF_SHM_MAPPINGS_MAX; i++) {
        inf_shm_fault_remove(places[i]);
    }
    munmap(p, PAGES * page);
}

/* How a child ends that does this. */
static int
end_of(void (*does)(char *), char *p)
{
    int status;
    fflush(NULL);
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        does(p);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void
reads_elsewhere(char *p)
{
    char *other = map(PAGES, 0);
    uint32_t place;

    inf_err_free(inf_shm_fault_enter(p, page, 1, 1, &place));
    _exit(*(volatile char *) other);
}

static void
is_sent_one(char *p)
{
    uint32_t place;
    inf_err_free(inf_shm_fault_enter(p, page, 1, 1, &place));
    raise(SIGBUS);
}

static void
every_other_fault_ends_the_process(void **state)
{
    (void) state;
    handle();
    char *p = map(PAGES, PAGES);

    assert_int_equal(end_of(reads_elsewhere, p), SIGBUS);
    assert_int_equal(end_of(is_sent_one, p), SIGBUS);
    munmap(p, PAGES * page);
}

static volatile sig_atomic_t others;

static void
on_other(int signo)
{
    others++;
    signal(signo, SIG_DFL);
}

/* Before the tests: a handler is installed once. */
static int
with_a_handler_of_before(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        signal(SIGBUS, on_other);
        char *p = map(PAGES, PAGES);
        enter(p, PAGES, 1);
        raise(SIGBUS);
        _exit(others == 1 ? 0 : 1);
    }
    return waitpid(pid, &status, 0) == pid ? status : -1;
}

static void
the_action_of_before_is_taken(void **state)
{
    (void) state;
    assert_true(WIFEXITED(earlier));
    assert_int_equal(WEXITSTATUS(earlier), 0);
}

static void *
come_and_go(void *arg)
{
    _Atomic bool *stop = arg;
    char *p = map(PAGES, PAGES);

    while (!atomic_load(stop)) {
        for (int n = 1; n <= PAGES; n++) {
            inf_shm_fault_remove(enter(p, n, (ino_t) n));
        }
    }
    munmap(p, PAGES * page);
    return NULL;
}

static void
mappings_come_and_go_beside_a_fault(void **state)
{
    (void) state;
    _Atomic bool stop = false;
    pthread_t threads[2];

    handle();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go,
            &stop), 0);
    }
    for (int i = 0; i < 300; i++) {
        char *p = map(PAGES, 1);
        uint32_t place = enter(p, PAGES, 1000);
        assert_int_equal(*(volatile char *) &p[3 * page], 0);
        assert_true(inf_shm_fault_seen(place));
        inf_shm_fault_remove(place);
        munmap(p, PAGES * page);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
}

/* Where the thread has one: its own may be at its end. */
static void
its_handler_has_a_stack_of_its_own(void **state)
{
    (void) state;
    assert_true(ours.sa_flags & SA_ONSTACK);
}

int
main(void)
{
    page = (size_t) sysconf(_SC_PAGESIZE);

    signal(SIGBUS, SIG_DFL);            /* a sanitizer handles it            */
    earlier = with_a_handler_of_before();

    char *p = map(PAGES, PAGES);
    inf_shm_fault_remove(enter(p, PAGES, 1));
    munmap(p, PAGES * page);
    sigaction(SIGBUS, NULL, &ours);

    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_other_fault_ends_the_process),
        cmocka_unit_test(the_action_of_before_is_taken),
        cmocka_unit_test(reading_behind_the_end_gives_zeros),
        cmocka_unit_test(writing_behind_the_end_harms_nobody),
        cmocka_unit_test(objects_are_known_while_they_are_mapped),
        cmocka_unit_test(there_are_so_many_and_no_more),
        cmocka_unit_test(mappings_come_and_go_beside_a_fault),
        cmocka_unit_test(its_handler_has_a_stack_of_its_own)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
