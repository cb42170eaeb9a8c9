/* The host policy as a backend sees it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/abi/host_policy_json.h"

static const inf_host_setting_t settings[] = {
    { "cpu", "cpu-cores", "0-8191" },
    { "one", "cpu-cores", "0-8191" },
    { "one", "numa-node", "0" },
    { "one", "cpu-cores", "3" },
};

static const inf_host_policies_t policies = {
    settings, sizeof(settings) / sizeof(settings[0])
};

static void
assert_json(const inf_host_policies_t *p, const char *name, const char *text)
{
    inf_buf_t json;
    inf_buf_init(&json);
    inf_host_policy_json(p, name, &json);
    assert_null(inf_buf_status(&json));
    assert_string_equal(json.data, text);
    inf_buf_fini(&json);
}

static void
the_last_value_of_a_key_counts(void **state)
{
    (void) state;
    assert_json(&policies, "one",
        "{\"one\":{\"numa-node\":\"0\",\"cpu-cores\":\"3\"}}");
    assert_json(&policies, "gpu_0", "{\"gpu_0\":{}}");
    assert_json(NULL, "a\"b", "{\"a\\\"b\":{}}");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_value_of_a_key_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
