#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/log.h"
#include "core/proto/core_options.h"
#include "core/server/cpu_metrics.h"
#include "core/server/metrics_text.h"

/* The text of /proc/stat. */
static char stat_text[64];

ssize_t
read(int fd, void *data, size_t len)
{
    char link[32], path[32] = "";

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    if (readlink(link, path, sizeof(path) - 1) > 0
        && strcmp(path, "/proc/stat") == 0)
    {
        return (ssize_t) strlen(strcpy(data, stat_text));
    }
    return syscall(SYS_read, fd, data, len);
}

static void
shows(inf_cpu_metrics_t *m, const char *share)
{
    inf_buf_t out;

    inf_buf_init(&out);
    inf_cpu_metrics_text(m, 0, 0, &out);
    const char *at = strstr(inf_buf_slice(&out).data, "\nnv_cpu_utilization ");
    if (share == NULL) {
        assert_null(at);
    } else {
        assert_non_null(at);
        assert_true(strtod(at + strlen("\nnv_cpu_utilization "), NULL)
            == strtod(share, NULL));
    }
    inf_buf_fini(&out);
}

/* Two readings in one jiffy say nothing of it. */
static void
a_share_stays_until_time_has_passed(void **state)
{
    (void) state;
    inf_cpu_metrics_t m;

    strcpy(stat_text, "cpu 100 0 0 100 0 0 0 0\n");
    inf_cpu_metrics_init(&m, 0);
    shows(&m, NULL);
    strcpy(stat_text, "cpu 103 0 0 101 0 0 0 0\n");
    shows(&m, "0.75");
    shows(&m, "0.75");
    strcpy(stat_text, "cpu 103 0 0 102 0 0 0 0\n");
    shows(&m, "0");
    inf_cpu_metrics_fini(&m);
}

static void
times_are_those_of_all_cpus(void **state)
{
    (void) state;
    inf_cpu_time_t from, to;

    assert_true(inf_cpu_time_parse("cpu  100 1 50 1000 20 3 4 2 9 9\n"
        "cpu0 1 1 1 1 1 1 1 1 1 1\n", &from));
    assert_int_equal(from.idle, 1020);
    assert_int_equal(from.total, 1180);

    to = from;
    assert_true(inf_cpu_busy(&from, &to) == 0);
    to.total += 200;
    to.idle += 50;
    assert_true(inf_cpu_busy(&from, &to) == 0.75);
    to.idle = from.idle + 300;
    assert_true(inf_cpu_busy(&from, &to) == 0);
    to.idle = 0;
    assert_true(inf_cpu_busy(&from, &to) == 0);

    assert_false(inf_cpu_time_parse("", &from));
    assert_false(inf_cpu_time_parse("cpu 1 2 3\n", &from));
    assert_false(inf_cpu_time_parse("intr 1 2 3 4 5 6 7 8 9\n", &from));
}

static void
memory_is_total_and_what_is_not_available(void **state)
{
    (void) state;
    inf_cpu_memory_t m;

    assert_true(inf_cpu_memory_parse("MemTotal:       2048 kB\nMemFree: 1 kB\n"
        "MemAvailable:    512 kB\n", &m));
    assert_int_equal(m.total, 2048 * 1024);
    assert_int_equal(m.used, 1536 * 1024);
    assert_true(inf_cpu_memory_parse("MemTotal: 1 kB\nMemAvailable: 2 kB\n",
        &m));
    assert_int_equal(m.used, 0);
    assert_false(inf_cpu_memory_parse("MemTotal: 2048 kB\n", &m));
    assert_false(inf_cpu_memory_parse("", &m));
}

static void
quantiles_are_read_and_bad_ones_skipped(void **state)
{
    (void) state;
    double v[3];

    assert_int_equal(inf_metrics_quantiles("0.5:0.05,0.9:0.01", v, 3), 2);
    assert_true(v[0] == 0.5 && v[1] == 0.9);
    assert_int_equal(inf_metrics_quantiles("", v, 3), 0);
    assert_int_equal(inf_metrics_quantiles(",0.5,0.5:,:0.1,1.5:0.1,0.5:2,"
        "x:0.1,0.5:0.1x,nan:0.1,1:0", v, 3), 1);
    assert_true(v[0] == 1);
    assert_int_equal(inf_metrics_quantiles("0:0,0:0,0:0,0:0", v, 3), 3);

    assert_true(inf_quantiles_are_valid("0:0,0.5:0.05, 1:1"));
    assert_false(inf_quantiles_are_valid(""));
    assert_true(inf_quantiles_are_valid("0.5:0.05,"));
    assert_false(inf_quantiles_are_valid("0.5:0.05,,"));
    assert_false(inf_quantiles_are_valid("0.5:0.05,1.5:0.1"));
    assert_false(inf_quantiles_are_valid("0x0:0"));
}

int
main(void)
{
    inf_log_set_levels(false, false, false, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_share_stays_until_time_has_passed),
        cmocka_unit_test(times_are_those_of_all_cpus),
        cmocka_unit_test(memory_is_total_and_what_is_not_available),
        cmocka_unit_test(quantiles_are_read_and_bad_ones_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
