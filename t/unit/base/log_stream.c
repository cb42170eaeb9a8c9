#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/log_stream.h"

static char text[INF_LOG_STREAM_MAX];

/* 2026-02-03 04:05:06.000789 UTC */
static const struct timespec then = { 1770091506, 789000 };

static void
a_line_says_when_who_and_where(void **state)
{
    (void) state;

    size_t n = inf_log_stream_line(text, INF_LOG_DEFAULT, true, &then, 77,
        INF_LOG_WARN, "core/x/file.c", 12, "text");
    text[n] = '\0';
    assert_string_equal(text,
        "W0203 04:05:06.000789 77 file.c:12] \"text\"\n");

    n = inf_log_stream_line(text, INF_LOG_ISO8601, true, &then, 77,
        INF_LOG_ERROR, "file.c", 1, "text");
    text[n] = '\0';
    assert_string_equal(text,
        "2026-02-03T04:05:06Z E 77 file.c:1] \"text\"\n");

    n = inf_log_stream_line(text, INF_LOG_ISO8601, false, &then, 77,
        INF_LOG_VERBOSE, "file.c", 1, "a \"b\"");
    text[n] = '\0';
    assert_string_equal(text, "2026-02-03T04:05:06Z I 77 file.c:1] a \"b\"\n");
}

static void
everything_escaped_fits(void **state)
{
    (void) state;
    char line[INF_LOG_MAX + 1];
    char file[300];

    memset(line, '\1', INF_LOG_MAX);
    line[INF_LOG_MAX] = '\0';
    memset(file, 'f', sizeof(file) - 1);
    file[sizeof(file) - 1] = '\0';

    size_t n = inf_log_stream_line(text, INF_LOG_ISO8601, true, &then, 77,
        INF_LOG_INFO, file, 1, line);
    assert_true(n < INF_LOG_STREAM_MAX);
    assert_int_equal(text[n - 1], '\n');
    text[n] = '\0';
    assert_non_null(strstr(text, "] \"\\u0001\\u0001"));

    n = inf_log_stream_line(text, INF_LOG_DEFAULT, true, &then, 77,
        INF_LOG_INFO, "f", 1, "q\" b\\ t\t e\x1b \xc3\xa9");
    text[n] = '\0';
    assert_non_null(strstr(text, "\"q\\\" b\\\\ t\\t e\\u001b \xc3\xa9\"\n"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_says_when_who_and_where),
        cmocka_unit_test(everything_escaped_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
