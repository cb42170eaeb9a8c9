#include "model/config_text.h"

#include "core/base/log.h"
#include "core/model/versions.h"

static void
only_plain_decimal_names_are_versions(void **state)
{
    (void) state;
    static const struct {
        const char            *name;
        inf_version_verdict_t  verdict;
        int64_t                version;
    } rows[] = {
        { "1", INF_VERSION_OK, 1 },
        { "0", INF_VERSION_OK, 0 },
        { "10", INF_VERSION_OK, 10 },
        { "9223372036854775807", INF_VERSION_OK, INT64_MAX },
        { "9223372036854775808", INF_VERSION_TOO_LARGE, 0 },
        { "99999999999999999999", INF_VERSION_TOO_LARGE, 0 },
        { "1234567890123456789012345", INF_VERSION_TOO_LARGE, 0 },
        { "003", INF_VERSION_LEADING_ZERO, 0 },
        { "00001", INF_VERSION_LEADING_ZERO, 0 },
        { "00", INF_VERSION_LEADING_ZERO, 0 },
        { "1.bak", INF_VERSION_NOT_A_NUMBER, 0 },
        { "1abc", INF_VERSION_NOT_A_NUMBER, 0 },
        { "-1", INF_VERSION_NOT_A_NUMBER, 0 },
        { "+5", INF_VERSION_NOT_A_NUMBER, 0 },
        { " 7", INF_VERSION_NOT_A_NUMBER, 0 },
        { "7 ", INF_VERSION_NOT_A_NUMBER, 0 },
        { "0x1", INF_VERSION_NOT_A_NUMBER, 0 },
        { "", INF_VERSION_NOT_A_NUMBER, 0 },
        { ".ipynb_checkpoints", INF_VERSION_NOT_A_NUMBER, 0 },
        { "\xd9\xa1", INF_VERSION_NOT_A_NUMBER, 0 },
        { "warmup", INF_VERSION_RESERVED, 0 },
        { "initial_state", INF_VERSION_RESERVED, 0 },
        { "configs", INF_VERSION_RESERVED, 0 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t version = -7;
        inf_version_verdict_t verdict = inf_version_parse(
            inf_slice_str(rows[i].name), &version);

        assert_int_equal(verdict, rows[i].verdict);
        bool silent = verdict == INF_VERSION_OK
            || verdict == INF_VERSION_RESERVED;
        assert_int_equal(inf_version_verdict_text(verdict) == NULL, silent);
        if (verdict == INF_VERSION_OK) {
            assert_true(version == rows[i].version);
        }
    }
}

static void
sorting_drops_repeats(void **state)
{
    (void) state;
    int64_t v[] = { 10, 9, 1, 10, INT64_MAX, 1 };
    assert_int_equal(inf_versions_sort(v, 6), 4);
    assert_true(v[0] == 1 && v[1] == 9 && v[2] == 10 && v[3] == INT64_MAX);
    assert_int_equal(inf_versions_sort(v, 0), 0);
}

static void
the_policy_chooses_versions(void **state)
{
    (void) state;
    static const struct {
        const char *config;
        size_t      have;       /* of 1, 2, 9, 10                          */
        size_t      count;      /* 0: an error                             */
        int64_t     chosen[4];
    } rows[] = {
        { "", 4, 1, { 10 } },
        { "version_policy { latest { num_versions: 2 } }", 4, 2, { 9, 10 } },
        { "version_policy { latest { num_versions: 9 } }", 2, 2, { 1, 2 } },
        { "version_policy { latest { num_versions: 0 } }", 4, 0, { 0 } },
        { "version_policy { latest { } }", 4, 0, { 0 } },
        { "version_policy { }", 4, 4, { 1, 2, 9, 10 } },
        { "version_policy { all { } }", 3, 3, { 1, 2, 9 } },
        { "version_policy { specific { versions: [9, 1] } }", 4, 2,
          { 1, 9 } },
        { "version_policy { specific { versions: [1, 7] } }", 4, 1, { 1 } },
        { "version_policy { specific { versions: [1, 1] } }", 4, 1, { 1 } },
        { "version_policy { specific { versions: [7] } }", 4, 0, { 0 } },
        { "version_policy { specific { versions: [-1] } }", 4, 0, { 0 } },
        { "version_policy { specific { } }", 4, 0, { 0 } },
        { "version_policy { all { } }", 0, 0, { 0 } },
        { "", 0, 0, { 0 } },
        { "version_policy { specific { versions: [1] } }", 0, 0, { 0 } },
    };

    inf_log_set_levels(false, false, false, 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t versions[4] = { 1, 2, 9, 10 };
        size_t chosen = 0;
        Inference__ModelConfig *msg = config_parse(rows[i].config);

        inf_err_t *err = inf_versions_choose(msg->version_policy, "m",
            versions, rows[i].have, &chosen);
        if (rows[i].count == 0) {
            assert_error(err, INF_ERR_INVALID_ARG, "at least one version "
                "must be available under the version policy of model 'm'");

        } else {
            assert_ok(err);
            assert_int_equal(chosen, rows[i].count);
            for (size_t k = 0; k < chosen; k++) {
                assert_true(versions[k] == rows[i].chosen[k]);
            }
        }

        inf_message_free(&msg->base);
    }
}

typedef struct {
    unsigned lines;
    bool     named;
} seen_t;

static void
count_line(void *userp, inf_log_level_t level, const char *file, int line_no,
    const char *line)
{
    seen_t *seen = userp;

    (void) file;
    (void) line_no;
    assert_int_equal(level, INF_LOG_WARN);
    seen->lines++;
    seen->named |= strstr(line, "version 1000 is specified for model 'm'")
        != NULL;
}

static void
missing_specific_versions_are_logged_and_summed_up(void **state)
{
    (void) state;
    seen_t seen = { 0, false };
    inf_buf_t text;

    inf_buf_init(&text);
    inf_buf_puts(&text, "version_policy { specific { versions: 1 ");
    for (int i = 0; i < 100; i++) {
        inf_buf_printf(&text, "versions: %d ", 1000 + i);
    }

    inf_buf_puts(&text, "} }");
    Inference__ModelConfig *msg = config_parse(text.data);
    int64_t versions[] = { 1 };
    size_t chosen;

    inf_log_set_levels(true, true, true, 0);
    inf_log_set_sink(count_line, &seen);
    assert_ok(inf_versions_choose(msg->version_policy, "m", versions, 1,
        &chosen));
    inf_log_set_sink(NULL, NULL);

    assert_int_equal(chosen, 1);
    assert_int_equal(seen.lines, 11);
    assert_true(seen.named);
    inf_message_free(&msg->base);
    inf_buf_fini(&text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_plain_decimal_names_are_versions),
        cmocka_unit_test(sorting_drops_repeats),
        cmocka_unit_test(the_policy_chooses_versions),
        cmocka_unit_test(missing_specific_versions_are_logged_and_summed_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
