#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/abi/plugin.h"

static void
open_fails(const char *library, const char *text)
{
    static const inf_plugin_setting_t settings[] = { { "k", "\"v\"\n" } };
    inf_backend_t *backend = (void *) 1;

    inf_err_t *err = inf_plugin_ops.open("b", library, "/d", settings, 1,
        &backend);
    assert_non_null(err);
    assert_int_equal(inf_err_code(err), INF_ERR_NOT_FOUND);
    assert_non_null(strstr(inf_err_msg(err), "cannot load backend \"b\": "));
    if (strstr(inf_err_msg(err), text) == NULL) {
        fail_msg("\"%s\" not in \"%s\"", text, inf_err_msg(err));
    }
    assert_null(backend);
    inf_err_free(err);
}

static void
a_library_that_is_not_there_is_named(void **state)
{
    (void) state;
    open_fails("/nonexistent/libtriton_b.so", "unable to load shared library:"
        " /nonexistent/libtriton_b.so");
}

static void
a_file_that_is_no_library_is_rejected(void **state)
{
    (void) state;
    char path[] = "/tmp/inf-plugin-XXXXXX";
    int fd = mkstemp(path);

    assert_int_equal(write(fd, "not ELF", 7), 7);
    close(fd);
    open_fails(path, path);
    unlink(path);
}

static void
a_library_without_execute_is_rejected(void **state)
{
    (void) state;
    open_fails("libm.so.6", "unable to find required entrypoint"
        " 'TRITONBACKEND_ModelInstanceExecute' in shared library libm.so.6");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_library_that_is_not_there_is_named),
        cmocka_unit_test(a_file_that_is_no_library_is_rejected),
        cmocka_unit_test(a_library_without_execute_is_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
