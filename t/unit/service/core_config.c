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
#include "core/channel/sockets.h"
#include "core/proto/message.h"
#include "core/service/core_config.h"

static inf_err_t *
from_text(const char *text, NginxInference__CoreConfig **out)
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

static NginxInference__CoreConfig *
parsed(const char *text)
{
    NginxInference__CoreConfig *c = NULL;
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
    NginxInference__CoreConfig *c = parsed("");

    assert_int_equal(c->load_threads, 4);
    assert_int_equal(c->drain_ms, 30000);
    assert_true(c->auto_complete);
    assert_false(c->code_upload);
    assert_true(c->strict_readiness);
    assert_string_equal(c->external_path, "");
    assert_null(c->log);
    inf_message_free(&c->base);
}

static void
text_is_read_and_mistakes_are_placed(void **state)
{
    (void) state;
    NginxInference__CoreConfig *c = parsed("# comment\n"
        "repositories: '/a' repositories: '/b'\n"
        "backend_settings { backend: 'x' key: 'k' value: 'v' }\n"
        "auto_complete: false log { verbose: 2 }\n");

    assert_int_equal(c->n_repositories, 2);
    assert_string_equal(c->repositories[1], "/b");
    assert_string_equal(c->backend_settings[0]->value, "v");
    assert_false(c->auto_complete);
    assert_int_equal(c->log->verbose, 2);
    assert_true(c->log->info);
    inf_message_free(&c->base);

    fails(from_text("auto_complete: true\nrepositorys: 'x'\n", &c), ":2:");
    fails(from_text("repositories: ", &c), ":1:");
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
    NginxInference__CoreConfig *c = parsed("repositories: '/a' spin_us: 7"
        " environment: 'A=b'");
    NginxInference__CoreConfig *back;
    uint8_t bytes[256];

    size_t len = nginx_inference__core_config__pack(c, bytes);
    int fd = sealed(bytes, len);                    /* the offset is at the
                                                       end: it counts not    */
    assert_null(inf_core_config_from_fd(fd, &back));
    close(fd);
    assert_string_equal(back->repositories[0], "/a");
    assert_string_equal(back->environment[0], "A=b");
    assert_int_equal(back->spin_us, 7);
    inf_message_free(&back->base);

    for (size_t cut = 1; cut < len; cut++) {        /* cut short anywhere    */
        fd = sealed(bytes, cut);
        inf_err_t *err = inf_core_config_from_fd(fd, &back);
        if (err == NULL) {
            inf_message_free(&back->base);          /* between two fields    */
        }
        inf_err_free(err);
        close(fd);
    }
    inf_message_free(&c->base);

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

/* Whoever keeps a copy of the descriptor could change what was checked. */
static void
a_configuration_that_could_still_change_is_not_read(void **state)
{
    (void) state;
    static const int seals[] = { F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE };
    NginxInference__CoreConfig *back;

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

typedef void (*names_fn)(const NginxInference__CoreConfig *now,
    const NginxInference__CoreConfig *wanted, char *text, size_t cap);

static void
differ_by(names_fn names, const char *a, const char *b, const char *want)
{
    NginxInference__CoreConfig *x = parsed(a);
    NginxInference__CoreConfig *y = parsed(b);
    char text[512];

    names(x, y, text, sizeof(text));
    assert_string_equal(text, want);
    names(y, x, text, sizeof(text));
    assert_string_equal(text, want);
    inf_message_free(&x->base);
    inf_message_free(&y->base);
}

/* Only a new core takes it over. */
static void
differ(const char *a, const char *b, const char *want)
{
    differ_by(inf_core_config_differences, a, b, want);
    differ_by(inf_core_config_later, a, b, "");
}

/* The loads to come take it over. */
static void
differ_later(const char *a, const char *b, const char *want)
{
    differ_by(inf_core_config_later, a, b, want);
    differ_by(inf_core_config_differences, a, b, "");
}

static void
differences_are_named_as_in_the_nginx_configuration(void **state)
{
    (void) state;
    differ("", "", "");
    differ("generation: 1", "generation: 2 log { verbose: 3 }", "");
    differ("repositories: '/a'", "repositories: '/b'", "");
    differ("", "strict_readiness: false", "");
    differ("", "model_control: EXPLICIT load_models: 'm'", "");
    differ("", "model_control: POLL poll_interval_ms: 1 poll_inotify: false",
        "");
    differ("", "drain_ms: 1", "");
    differ_later("", "backend_directories: '/a'", "inference_backends");
    differ_later("", "agent_directories: '/a'", "inference_agents");
    differ_later("backend_settings { key: 'a' value: '1' }",
        "backend_settings { key: 'a' value: '2' }",
        "inference_backend_config");
    differ_later("backend_settings { key: 'a' value: '1' }",
        "backend_settings { backend: 'x' key: 'a' value: '1' }",
        "inference_backend_config");
    differ_later("", "auto_complete: false", "inference_auto_complete");
    differ_later("", "code_upload: true", "inference_code_upload");
    differ_later("",
        "host_policies { policy: 'cpu' key: 'numa-node' value: '0' }",
        "inference_host_policy");
    differ_later("host_policies { policy: 'cpu' key: 'numa-node' value: '0' }",
        "host_policies { policy: 'cpu' key: 'numa-node' value: '1' }",
        "inference_host_policy");
    differ_later("", "agent_directories: '/a' auto_complete: false",
        "inference_agents, inference_auto_complete");
    differ("", "environment: 'A=1'", "inference_env");
    differ("", "cache_name: 'local'", "inference_response_cache");
    differ("cache_settings { key: 'size' value: '1' }",
        "cache_settings { key: 'size' value: '2' }",
        "inference_response_cache");
    differ("", "cache_directories: '/a'", "inference_cache_directory");
    differ("", "response_arena_bytes: 1", "inference_memory");
    differ("", "pinned_pool_bytes: 1", "inference_memory");
    differ("cuda_pools { device: 0 bytes: 1 }",
        "cuda_pools { device: 1 bytes: 1 }", "inference_memory");
    differ("", "spin_us: 1", "inference_core spin=");
    differ("", "external_path: '/s'", "inference_core external=");
    differ("", "external_users: 'a'", "external_users");
    differ("", "metrics {}", "");
    differ("", "metrics { summaries: true }", "inference_metrics");
    differ("metrics { quantiles: '0.5:0' }", "metrics { quantiles: '1:0' }",
        "inference_metrics");
    differ("", "rate_limit: RATE_LIMIT_EXECUTION_COUNT",
        "inference_rate_limit");
    differ("rate_limit_resources { name: 'R' count: 1 }",
        "rate_limit_resources { name: 'R' count: 2 }",
        "inference_rate_limit_resource");
    differ("rate_limit_resources { name: 'R' count: 1 }",
        "rate_limit_resources { name: 'R' count: 1 device: 0 }",
        "inference_rate_limit_resource");
    differ("", "environment: 'A=1' spin_us: 1",
        "inference_env, inference_core spin=");
    differ_by(inf_core_config_differences, "", "backend_settings { key:"
        " 'min-compute-capability' value: '7' }",
        "inference_backend_config min-compute-capability");
    differ_by(inf_core_config_differences, "", "backend_settings { backend:"
        " 'x' key: 'min-compute-capability' value: '7' }", "");
}

static void
a_short_buffer_cuts_the_list_safely(void **state)
{
    (void) state;
    NginxInference__CoreConfig *x = parsed("");
    NginxInference__CoreConfig *y = parsed("rate_limit:"
        " RATE_LIMIT_EXECUTION_COUNT spin_us: 1 environment: 'A=1'"
        " cache_name: 'x'");

    for (size_t cap = 1; cap < 100; cap++) {
        char *text = malloc(cap);
        inf_core_config_differences(x, y, text, cap);
        assert_true(strlen(text) < cap);
        free(text);
    }
    inf_message_free(&x->base);
    inf_message_free(&y->base);
}

static void
log_levels_are_applied(void **state)
{
    (void) state;
    NginxInference__CoreConfig *c = parsed("log { info: false verbose: 2 }");

    inf_core_config_apply_log(c);
    assert_false(inf_log_enabled(INF_LOG_INFO));
    assert_true(inf_log_enabled(INF_LOG_WARN));
    assert_int_equal(inf_log_verbose_level(), 2);
    inf_message_free(&c->base);
    c = parsed("");
    inf_core_config_apply_log(c);
    assert_true(inf_log_enabled(INF_LOG_INFO));
    assert_int_equal(inf_log_verbose_level(), 0);
    inf_message_free(&c->base);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_file_is_all_defaults),
        cmocka_unit_test(text_is_read_and_mistakes_are_placed),
        cmocka_unit_test(a_serialised_configuration_comes_back),
        cmocka_unit_test(a_configuration_that_could_still_change_is_not_read),
        cmocka_unit_test(differences_are_named_as_in_the_nginx_configuration),
        cmocka_unit_test(a_short_buffer_cuts_the_list_safely),
        cmocka_unit_test(log_levels_are_applied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
