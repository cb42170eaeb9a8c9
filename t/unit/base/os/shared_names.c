#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/log.h"
#include "core/base/os/shared_names.h"

#define SIZE 4096

static char said[INF_LOG_MAX + 1];

static void
keep_line(void *userp, inf_log_level_t level, const char *file, int line_no,
    const char *line)
{
    (void) userp;
    (void) level;
    (void) file;
    (void) line_no;
    snprintf(said, sizeof(said), "%s", line);
}

/* A new object of one page, and its name is gone already. */
static int
object(struct stat *st)
{
    char name[64];

    snprintf(name, sizeof(name), "/inf-unit-shared-names.%d", (int) getpid());
    int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(shm_unlink(name), 0);
    assert_int_equal(ftruncate(fd, SIZE), 0);
    assert_int_equal(fstat(fd, st), 0);
    return fd;
}

static void
what_this_process_maps_is_found(void **state)
{
    (void) state;
    struct stat st;

    int fd = object(&st);
    assert_false(inf_shared_memory_is_mapped(st.st_dev, st.st_ino));

    void *p = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    assert_true(inf_shared_memory_is_mapped(st.st_dev, st.st_ino));
    assert_false(inf_shared_memory_is_mapped(st.st_dev, st.st_ino + 1));
    assert_string_equal(said, "");

    munmap(p, SIZE);
    close(fd);
}

/* A client is not to reach the server's own memory because the process has no
   descriptor left. */
static void
what_cannot_be_read_is_mapped(void **state)
{
    (void) state;
    struct rlimit before;
    struct stat st;

    int fd = object(&st);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit none = { 0, before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);

    bool mapped = inf_shared_memory_is_mapped(st.st_dev, st.st_ino);

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(mapped);
    assert_non_null(strstr(said, "cannot read /proc/self/maps"));
    close(fd);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_this_process_maps_is_found),
        cmocka_unit_test(what_cannot_be_read_is_mapped),
    };

    inf_log_set_sink(keep_line, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
