#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/base/log.h"
#include "core/server/core_config.h"
#include "core/wire/sockets.h"

static inf_err_t *
from_text(const char *text, inf_core_config_t **out)
{
    char path[] = "/tmp/inf-config-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    inf_err_t *err = inf_core_config_from_file(path, out);
    if (err != NULL) {                      /* the file is always named      */
        assert_non_null(strstr(inf_err_msg(err), path));
    }
    unlink(path);
    return err;
}

static inf_core_config_t *
parsed(const char *text)
{
    inf_core_config_t *c = NULL;
    inf_err_t *err = from_text(text, &c);

    if (err != NULL) {
        fail_msg("%s", inf_err_msg(err));
    }
    return c;
}

static void
fails(inf_err_t *err, const char *text)
{
    assert_non_null(err);
    if (strstr(inf_err_msg(err), text) == NULL) {
        fail_msg("\"%s\" not in \"%s\"", text, inf_err_msg(err));
    }
    inf_err_free(err);
}

static void
an_empty_file_is_all_defaults(void **state)
{
    (void) state;
    inf_core_config_t *c = parsed("");

    assert_int_equal(c->values->load_threads, 4);
    assert_int_equal(c->values->drain_ms, 30000);
    assert_true(c->values->auto_complete);
    assert_false(c->values->code_upload);
    assert_true(c->values->strict_readiness);
    assert_string_equal(c->values->external_path, "");
    assert_true(c->values->log->info);      /* messages are there            */
    assert_int_equal(c->values->metrics->interval_ms, 2000);
    inf_core_config_unref(c);
}

static void
text_is_read_and_mistakes_are_placed(void **state)
{
    (void) state;
    inf_core_config_t *c = parsed("# comment\n"
        "repositories: '/a' repositories: '/b'\n"
        "backend_settings { backend: 'x' key: 'k' value: 'v' }\n"
        "auto_complete: false log { verbose: 2 }\n");

    assert_int_equal(c->values->n_repositories, 2);
    assert_string_equal(c->values->repositories[1], "/b");
    assert_string_equal(c->values->backend_settings[0]->value, "v");
    assert_false(c->values->auto_complete);
    assert_int_equal(c->values->log->verbose, 2);
    assert_true(c->values->log->info);
    inf_core_config_unref(c);

    fails(from_text("auto_complete: true\nrepositorys: 'x'\n", &c), ":2:");
    fails(from_text("repositories: ", &c), ":1:");
    fails(from_text("host_policies { policy: 'odd' key: 'cpu-cores' value:"
        " 'many' }", &c), "host policy 'odd'");
    fails(inf_core_config_from_file("/nonexistent/file", &c),
        "/nonexistent/file");
    fails(inf_core_config_from_file("/tmp", &c), "/tmp");
}

#define ALL_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static int
sealed(const void *data, size_t len)
{
    int fd;
    assert_null(inf_memfd_sealed("config", data, len, &fd));
    return fd;
}

static void
a_serialised_configuration_comes_back(void **state)
{
    (void) state;
    inf_core_config_t *c = parsed("repositories: '/a' spin_us: 7"
        " environment: 'A=b'");
    inf_core_config_t *back;
    uint8_t bytes[256];

    size_t len = nginx_inference__core_config__pack(c->values, bytes);
    int fd = sealed(bytes, len);                    /* the offset is at the
                                                       end: it counts not    */
    assert_null(inf_core_config_from_fd(fd, &back));
    close(fd);
    assert_string_equal(back->values->repositories[0], "/a");
    assert_string_equal(back->values->environment[0], "A=b");
    assert_int_equal(back->values->spin_us, 7);
    inf_core_config_unref(back);

    for (size_t cut = 1; cut < len; cut++) {        /* cut short anywhere    */
        fd = sealed(bytes, cut);
        inf_err_t *err = inf_core_config_from_fd(fd, &back);
        if (err == NULL) {
            inf_core_config_unref(back);          /* between two fields    */
        }
        inf_err_free(err);
        close(fd);
    }
    inf_core_config_unref(c);

    fd = sealed("\xff\xff\xff\xff", 4);
    fails(inf_core_config_from_fd(fd, &back), "configuration");
    close(fd);
    fails(inf_core_config_from_fd(fd, &back), "configuration");

    fd = memfd_create("config", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(fd, (off_t) 1 << 40), 0);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, ALL_SEALS), 0);
    fails(inf_core_config_from_fd(fd, &back), "at most");
    close(fd);
}

/* The owner of a copy of the descriptor could change the checked bytes. */
static void
a_configuration_that_could_still_change_is_not_read(void **state)
{
    (void) state;
    static const int seals[] = { F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE };
    inf_core_config_t *back;

    for (size_t i = 0; i < 3; i++) {
        int fd = memfd_create("config", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        assert_int_equal(fcntl(fd, F_ADD_SEALS, ALL_SEALS & ~seals[i]), 0);
        fails(inf_core_config_from_fd(fd, &back), "not sealed");
        close(fd);
    }

    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    fails(inf_core_config_from_fd(fd, &back), "not a memfd");
    close(fd);
}

static void
log_levels_are_applied(void **state)
{
    (void) state;
    inf_core_config_t *c = parsed("log { info: false verbose: 2 }");

    inf_core_config_apply_log(c);
    assert_false(inf_log_enabled(INF_LOG_INFO));
    assert_true(inf_log_enabled(INF_LOG_WARN));
    assert_int_equal(inf_log_verbose_level(), 2);
    inf_core_config_unref(c);
    c = parsed("");
    inf_core_config_apply_log(c);
    assert_true(inf_log_enabled(INF_LOG_INFO));
    assert_int_equal(inf_log_verbose_level(), 0);
    inf_core_config_unref(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_file_is_all_defaults),
        cmocka_unit_test(text_is_read_and_mistakes_are_placed),
        cmocka_unit_test(a_serialised_configuration_comes_back),
        cmocka_unit_test(a_configuration_that_could_still_change_is_not_read),
        cmocka_unit_test(log_levels_are_applied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
