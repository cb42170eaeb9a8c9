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

#include "core/base/os/shared_names.h"

#define SIZE 4096

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

static bool
maps(dev_t device, ino_t inode)
{
    bool mapped;

    assert_null(inf_shared_memory_is_mapped(device, inode, &mapped));
    return mapped;
}

static void
what_this_process_maps_is_found(void **state)
{
    (void) state;
    struct stat st;

    int fd = object(&st);
    assert_false(maps(st.st_dev, st.st_ino));

    void *p = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    assert_true(maps(st.st_dev, st.st_ino));
    assert_false(maps(st.st_dev, st.st_ino + 1));

    munmap(p, SIZE);
    close(fd);
}

/* A client is not to reach the server's own memory because the process has no
   descriptor left. */
static void
mappings_that_cannot_be_read_are_an_error(void **state)
{
    (void) state;
    struct rlimit before;
    struct stat st;

    int fd = object(&st);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit none = { 0, before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);

    bool mapped;
    inf_err_t *err = inf_shared_memory_is_mapped(st.st_dev, st.st_ino,
        &mapped);

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_non_null(err);
    assert_non_null(strstr(inf_err_msg(err), "cannot read /proc/self/maps"));
    inf_err_free(err);
    close(fd);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_this_process_maps_is_found),
        cmocka_unit_test(mappings_that_cannot_be_read_are_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
