/* compiled code in a directory: what is used again, and what is not */

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/common/error.c"
#include "backends/cuda/cache.c"

static const char code[] = "not much of a kernel";

static gpu_key_t
key_of(const char *text)
{
    gpu_key_part_t part = { text, strlen(text) };
    gpu_key_t key;

    assert_true(gpu_key_make(&key, &part, 1));
    return key;
}

static bool
has(const gpu_cache_t *c, const gpu_key_t *key)
{
    char *got;
    size_t len;

    if (!gpu_cache_read(c, key, &got, &len)) {
        return false;
    }
    assert_int_equal(len, sizeof(code));
    assert_memory_equal(got, code, sizeof(code));
    free(got);
    return true;
}

/* An open file of the key, for one change. */
static int
file_of(const gpu_cache_t *c, const gpu_key_t *key)
{
    char name[NAME_MAX_LEN];

    key_name(key, name);
    int fd = openat(c->directory, name, O_RDWR);
    assert_true(fd >= 0);
    return fd;
}

static char *
fresh(char *root)
{
    strcpy(root, "/tmp/inf-cuda-cache-XXXXXX");
    assert_non_null(mkdtemp(root));
    return root;
}

static void
drop(gpu_cache_t *c, const gpu_key_t *key, const char *root)
{
    char name[NAME_MAX_LEN];

    key_name(key, name);
    (void) unlinkat(c->directory, name, 0);
    gpu_cache_close(c);
    assert_int_equal(rmdir(root), 0);
}

static void
code_is_found_by_its_key_alone(void **state)
{
    const gpu_key_t key = key_of("a"), other = key_of("b");
    gpu_cache_t c;
    char root[64];

    (void) state;
    gpu_cache_open(&c, fresh(root));
    assert_true(c.directory >= 0);
    assert_false(has(&c, &key));
    gpu_cache_write(&c, &key, code, sizeof(code));
    assert_true(has(&c, &key));
    assert_false(has(&c, &other));

    /* and by another process's eyes */
    gpu_cache_t again;
    gpu_cache_open(&again, root);
    assert_true(has(&again, &key));
    gpu_cache_close(&again);
    drop(&c, &key, root);
}

static void
parts_do_not_run_together(void **state)
{
    const gpu_key_part_t ab[] = { { "a", 1 }, { "bc", 2 } };
    const gpu_key_part_t ba[] = { { "ab", 2 }, { "c", 1 } };
    gpu_key_t x, y;

    (void) state;
    assert_true(gpu_key_make(&x, ab, 2) && gpu_key_make(&y, ba, 2));
    assert_memory_not_equal(&x, &y, sizeof(x));
}

static void
torn_and_changed_files_are_as_none(void **state)
{
    const gpu_key_t key = key_of("a"), other = key_of("b");
    gpu_cache_t c;
    char root[64];

    (void) state;
    gpu_cache_open(&c, fresh(root));
    for (off_t at = 0; at < (off_t) (sizeof(head_t) + sizeof(code)); at++) {
        char byte;

        gpu_cache_write(&c, &key, code, sizeof(code));
        int fd = file_of(&c, &key);
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte ^= 0x20;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        assert_false(has(&c, &key));

        byte ^= 0x20;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        assert_true(has(&c, &key));
        assert_int_equal(ftruncate(fd, at), 0);
        assert_false(has(&c, &key));
        close(fd);
    }

    /* another key's file under this name */
    char name[NAME_MAX_LEN], from[NAME_MAX_LEN];
    gpu_cache_write(&c, &other, code, sizeof(code));
    key_name(&key, name);
    key_name(&other, from);
    assert_int_equal(renameat(c.directory, from, c.directory, name), 0);
    assert_false(has(&c, &key));

    /* written again it is right */
    gpu_cache_write(&c, &key, code, sizeof(code));
    assert_true(has(&c, &key));
    drop(&c, &key, root);
}

static void
links_are_not_followed(void **state)
{
    const gpu_key_t key = key_of("a");
    char name[NAME_MAX_LEN];
    gpu_cache_t c;
    char root[64];

    (void) state;
    gpu_cache_open(&c, fresh(root));
    gpu_cache_write(&c, &key, code, sizeof(code));
    key_name(&key, name);
    assert_int_equal(renameat(c.directory, name, c.directory, "real"), 0);
    assert_int_equal(symlinkat("real", c.directory, name), 0);
    assert_false(has(&c, &key));
    assert_int_equal(unlinkat(c.directory, "real", 0), 0);
    drop(&c, &key, root);
}

static void
directories_of_others_are_not_used(void **state)
{
    const gpu_key_t key = key_of("a");
    char root[64], link[80];
    gpu_cache_t c;

    (void) state;
    fresh(root);
    for (mode_t mode = 0720; mode <= 0777; mode++) {
        if ((mode & 022) == 0) {
            continue;
        }
        assert_int_equal(chmod(root, mode), 0);
        gpu_cache_open(&c, root);
        assert_int_equal(c.directory, -1);
        gpu_cache_write(&c, &key, code, sizeof(code));
        assert_false(has(&c, &key));
    }

    assert_int_equal(chmod(root, 0700), 0);
    snprintf(link, sizeof(link), "%s-link", root);
    assert_int_equal(symlink(root, link), 0);
    gpu_cache_open(&c, link);
    assert_int_equal(c.directory, -1);
    assert_int_equal(unlink(link), 0);

    gpu_cache_open(&c, "/proc/none/such");
    assert_int_equal(c.directory, -1);
    assert_int_equal(rmdir(root), 0);
}

static void
put_file(const gpu_cache_t *c, const char *name, time_t used)
{
    const struct timespec times[] = { { .tv_sec = used }, { .tv_sec = used } };

    int fd = openat(c->directory, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(futimens(fd, times), 0);
    close(fd);
}

static bool
is_there(const gpu_cache_t *c, const char *name)
{
    return faccessat(c->directory, name, F_OK, 0) == 0;
}

static void
the_files_used_last_are_kept(void **state)
{
    const gpu_key_t key = key_of("a"), later = key_of("b");
    char name[NAME_MAX_LEN], root[64];
    gpu_cache_t c;

    (void) state;
    gpu_cache_open(&c, fresh(root));
    gpu_cache_write(&c, &key, code, sizeof(code));
    key_name(&key, name);
    assert_int_equal(utimensat(c.directory, name, (struct timespec[]) {
        { .tv_sec = 1 }, { .tv_sec = 1 } }, 0), 0);
    put_file(&c, "other.code", 1);
    for (int i = 1; i < FILES_MAX; i++) {
        snprintf(name, sizeof(name), "%064x.code", i);
        put_file(&c, name, 1000 + i);
    }

    /* reading makes it the newest: the first of the others goes */
    assert_true(has(&c, &key));
    gpu_cache_write(&c, &later, code, sizeof(code));
    assert_true(has(&c, &key));
    assert_true(has(&c, &later));
    snprintf(name, sizeof(name), "%064x.code", 1);
    assert_false(is_there(&c, name));
    snprintf(name, sizeof(name), "%064x.code", 2);
    assert_true(is_there(&c, name));
    assert_true(is_there(&c, "other.code"));

    /* and at the next open */
    snprintf(name, sizeof(name), "%064x.code", 1);
    put_file(&c, name, 1);
    gpu_cache_close(&c);
    gpu_cache_open(&c, root);
    assert_false(is_there(&c, name));

    assert_int_equal(unlinkat(c.directory, "other.code", 0), 0);
    for (int i = 2; i < FILES_MAX; i++) {
        snprintf(name, sizeof(name), "%064x.code", i);
        assert_int_equal(unlinkat(c.directory, name, 0), 0);
    }
    key_name(&later, name);
    assert_int_equal(unlinkat(c.directory, name, 0), 0);
    drop(&c, &key, root);
}

static void
files_of_processes_that_died_go(void **state)
{
    const struct {
        long pid;
        long age;
        bool stays;
    } rows[] = {
        { getpid(), 0, true }, { getpid(), WRITE_MAX_S + 60, false },
        { INT_MAX, 0, false }, { 0, 0, false }
    };
    const gpu_key_t key = key_of("a");
    char base[NAME_MAX_LEN], name[2 * NAME_MAX_LEN], root[64];
    gpu_cache_t c;

    (void) state;
    gpu_cache_open(&c, fresh(root));
    key_name(&key, base);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(name, sizeof(name), ".%s.%ld.%zx", base, rows[i].pid, i);
        put_file(&c, name, time(NULL) - rows[i].age);
    }
    put_file(&c, ".mine.0.0", 1);
    gpu_cache_close(&c);

    gpu_cache_open(&c, root);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(name, sizeof(name), ".%s.%ld.%zx", base, rows[i].pid, i);
        assert_int_equal(is_there(&c, name), rows[i].stays);
        (void) unlinkat(c.directory, name, 0);
    }
    assert_int_equal(unlinkat(c.directory, ".mine.0.0", 0), 0);
    drop(&c, &key, root);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_is_found_by_its_key_alone),
        cmocka_unit_test(parts_do_not_run_together),
        cmocka_unit_test(torn_and_changed_files_are_as_none),
        cmocka_unit_test(links_are_not_followed),
        cmocka_unit_test(directories_of_others_are_not_used),
        cmocka_unit_test(the_files_used_last_are_kept),
        cmocka_unit_test(files_of_processes_that_died_go)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
