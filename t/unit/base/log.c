#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/log.h"

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

static void
a_line_has_no_control_characters(void **state)
{
    (void) state;
    static const struct {
        const char *text;
        const char *line;
    } cases[] = {
        { "a\nb\rc\td", "a b c d" },
        { "\x1b[31mred\x07\x01\x7f", " [31mred   " },
        { "\xc2\x9b" "31m\xc2\x80|\xc2\x9f", "  31m  |  " },
        { "caf\xc3\xa9 \xc3\x80\xc2\xa0\xe2\x82\xac",
          "caf\xc3\xa9 \xc3\x80\xc2\xa0\xe2\x82\xac" },
        { "cut \xc2", "cut \xc2" },
        { "", "" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        inf_log(INF_LOG_ERROR, "%s", cases[i].text);
        assert_string_equal(said, cases[i].line);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_no_control_characters),
    };

    inf_log_set_sink(keep_line, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
