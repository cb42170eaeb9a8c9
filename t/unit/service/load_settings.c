#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/proto/message.h"
#include "core/proto/text_format.h"
#include "core/service/load_settings.h"

static NginxInference__CoreConfig *
parsed(const char *text)
{
    ProtobufCMessage *m;

    assert_null(inf_text_parse(&nginx_inference__core_config__descriptor,
        inf_slice_str(text), "test", &m));
    return (NginxInference__CoreConfig *) (void *) m;
}

static void
they_outlive_the_configuration(void **state)
{
    (void) state;
    inf_lifecycle_options_t o = { .load_threads = 7 };
    inf_load_settings_t *s;
    NginxInference__CoreConfig *c = parsed("backend_directories: '/a'"
        " backend_directories: '/b' agent_directories: '/c' load_retries: 2"
        " backend_settings { backend: 'x' key: 'k' value: 'v' }"
        " host_policies { policy: 'cpu' key: 'cpu-cores' value: '0' }"
        " auto_complete: false code_upload: true");

    assert_null(inf_load_settings_new(c, &s));
    inf_message_free(&c->base);
    inf_load_settings_fill(s, &o);
    assert_int_equal(o.backend_dir_count, 2);
    assert_string_equal(o.backend_dirs[1], "/b");
    assert_int_equal(o.agent_dir_count, 1);
    assert_string_equal(o.agent_dirs[0], "/c");
    assert_int_equal(o.load_retries, 2);
    assert_int_equal(o.setting_count, 1);
    assert_string_equal(o.settings[0].backend, "x");
    assert_string_equal(o.settings[0].value, "v");
    assert_int_equal(o.host_policies.count, 1);
    assert_false(o.auto_complete);
    assert_true(o.code_upload);
    assert_int_equal(o.load_threads, 7);        /* no business of theirs     */
    inf_load_settings_free(s);
    inf_load_settings_free(NULL);
}

static void
a_host_policy_that_cannot_be_is_refused(void **state)
{
    (void) state;
    inf_load_settings_t *s;
    NginxInference__CoreConfig *c = parsed("host_policies { policy: 'odd'"
        " key: 'cpu-cores' value: 'many' }");

    inf_err_t *err = inf_load_settings_new(c, &s);
    assert_non_null(err);
    assert_non_null(strstr(inf_err_msg(err), "host policy 'odd'"));
    inf_err_free(err);
    inf_message_free(&c->base);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_outlive_the_configuration),
        cmocka_unit_test(a_host_policy_that_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
