#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/config_name.h"

static void
names_of_files_are_fine(void **state)
{
    (void) state;
    static const char *const good[] = {
        "wide", "config", ".", "..", "a b", ".hidden", "\xc3\xa4"
    };

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_null(inf_config_name_problem(good[i], strlen(good[i])));
    }
}

static void
names_that_lead_elsewhere_are_not(void **state)
{
    (void) state;
    static const struct {
        const char *name;
        size_t      len;
        const char *why;
    } bad[] = {
        { "", 0, "empty" }, { "/etc/x", 6, "slash" }, { "../x", 4, "slash" },
        { "a/b", 3, "slash" }, { "a/", 2, "slash" },
        { "a\nb", 3, "control" }, { "a\0b", 3, "control" },
        { "\x7f", 1, "control" }
    };
    char text[INF_CONFIG_NAME_MAX + 2];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const char *why = inf_config_name_problem(bad[i].name, bad[i].len);
        assert_non_null(why);
        assert_non_null(strstr(why, bad[i].why));
    }

    memset(text, 'a', sizeof(text));
    assert_null(inf_config_name_problem(text, INF_CONFIG_NAME_MAX));
    assert_non_null(strstr(inf_config_name_problem(text,
        INF_CONFIG_NAME_MAX + 1), "longer"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_files_are_fine),
        cmocka_unit_test(names_that_lead_elsewhere_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
