#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/abi/elf_needed.h"
#include "core/abi/forwarding.h"

static uint16_t
own_machine(void)
{
    inf_elf_needed_t needed;

    assert_null(inf_elf_needed_read("/proc/self/exe", &needed));
    uint16_t machine = needed.machine;
    inf_elf_needed_fini(&needed);
    return machine;
}

static void
write_library(char *path, const char *soname, const char *needed)
{
    inf_buf_t buf;
    inf_buf_init(&buf);
    inf_forwarding_image(&buf, own_machine(), soname, needed);
    int fd = mkstemp(path);

    assert_false(buf.failed);
    assert_int_equal(write(fd, buf.data, buf.len), buf.len);
    close(fd);
    inf_buf_fini(&buf);
}

static void
only_renamed_cores_match(void **state)
{
    (void) state;
    assert_true(inf_forwarding_matches("libtritonserver-717102f0.so"));
    assert_true(inf_forwarding_matches("libtritonserver-0.so"));
    assert_false(inf_forwarding_matches("libtritonserver.so"));
    assert_false(inf_forwarding_matches("libtritonserver-.so"));
    assert_false(inf_forwarding_matches("libtritonserver-xyz.so"));
    assert_false(inf_forwarding_matches("libtritonserver-717102f0.so.1"));
    assert_false(inf_forwarding_matches("libtriton-717102f0.so"));
    assert_false(inf_forwarding_matches("libtritonserver-/../a.so"));
    assert_false(inf_forwarding_matches(""));
}

/* Without the forwarding library the loader finds nothing of that name. */
static void
a_library_that_needs_a_renamed_core_loads(void **state)
{
    (void) state;
    char path[] = "/tmp/inf-forward-XXXXXX";
    write_library(path, "libplugin.so", "libtritonserver-00c0ffee.so");

    assert_null(dlopen(path, RTLD_NOW | RTLD_LOCAL));
    assert_null(inf_forwarding_load(path));
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        fail_msg("%s", dlerror());
    }

    dlclose(handle);
    unlink(path);
}

static void
two_names_are_two_libraries(void **state)
{
    (void) state;
    const char *names[] = {
        "libtritonserver-0000aaaa.so", "libtritonserver-0000bbbb.so"
    };

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 2; i++) {
            char path[] = "/tmp/inf-forward-XXXXXX";
            write_library(path, "libplugin.so", names[i]);
            assert_null(inf_forwarding_load(path));
            unlink(path);
        }
    }

    void *a = dlopen(names[0], RTLD_NOW | RTLD_NOLOAD);
    void *b = dlopen(names[1], RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(a);
    assert_non_null(b);
    assert_ptr_not_equal(a, b);
    dlclose(a);
    dlclose(b);
}

static void
a_loaded_library_serves_other_functions_still(void **state)
{
    (void) state;
    char path[] = "/tmp/inf-forward-XXXXXX";
    write_library(path, "libtritonserver-0000cccc.so", "libm.so.6");

    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(handle);
    assert_non_null(dlsym(handle, "cos"));
    assert_null(dlsym(handle, "no_such_function"));
    dlclose(handle);
    unlink(path);
}

static void
other_files_are_left_to_the_loader(void **state)
{
    (void) state;
    assert_null(inf_forwarding_load("/nonexistent/x.so"));
    assert_null(inf_forwarding_load("/etc/passwd"));
    assert_null(inf_forwarding_load("/proc/self/exe"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_renamed_cores_match),
        cmocka_unit_test(a_library_that_needs_a_renamed_core_loads),
        cmocka_unit_test(two_names_are_two_libraries),
        cmocka_unit_test(a_loaded_library_serves_other_functions_still),
        cmocka_unit_test(other_files_are_left_to_the_loader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
