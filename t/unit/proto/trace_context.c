#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/proto/trace_context.h"

#define TRACE  "0af7651916cd43dd8448eb211c80319c"
#define SPAN   "b7ad6b7169203331"

static void
a_context_is_read(void **state)
{
    (void) state;
    static const struct {
        const char *text;
        bool        sampled;
    } cases[] = {
        { "00-" TRACE "-" SPAN "-01", true },
        { "00-" TRACE "-" SPAN "-00", false },
        { "00-" TRACE "-" SPAN "-ff", true },
        { "cc-" TRACE "-" SPAN "-01", true },
        { "01-" TRACE "-" SPAN "-01-what comes later", true }
    };
    inf_trace_context_t c;
    char text[2 * INF_TRACE_ID + 1];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_true(inf_trace_context_read(inf_slice_str(cases[i].text), &c));
        assert_int_equal(c.sampled, cases[i].sampled);
        inf_trace_hex(c.trace_id, INF_TRACE_ID, text);
        assert_string_equal(text, TRACE);
        inf_trace_hex(c.span_id, INF_SPAN_ID, text);
        assert_string_equal(text, SPAN);
    }
}

static void
what_is_no_context_says_nothing(void **state)
{
    (void) state;
    static const char *const texts[] = {
        "", "00", "00-" TRACE "-" SPAN, "00-" TRACE "-" SPAN "-0",
        "00-" TRACE "-" SPAN "-01-", "00-" TRACE "-" SPAN "-01x",
        "01-" TRACE "-" SPAN "-01x", "ff-" TRACE "-" SPAN "-01",
        "0g-" TRACE "-" SPAN "-01", "00_" TRACE "-" SPAN "-01",
        "00-" TRACE "_" SPAN "-01", "00-" TRACE "-" SPAN "_01",
        "00-00000000000000000000000000000000-" SPAN "-01",
        "00-" TRACE "-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01"
    };
    inf_trace_context_t c;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_false(inf_trace_context_read(inf_slice_str(texts[i]), &c));
    }
}

static void
a_state_is_printable_and_short(void **state)
{
    (void) state;
    char text[INF_TRACESTATE_MAX + 1];

    memset(text, 'x', sizeof(text));
    assert_true(inf_trace_state_valid(inf_slice_str("a=1,\tb=2")));
    assert_true(inf_trace_state_valid(inf_slice(text, sizeof(text) - 1)));
    assert_false(inf_trace_state_valid(inf_slice(text, sizeof(text))));
    assert_false(inf_trace_state_valid(inf_slice_str("")));
    assert_false(inf_trace_state_valid(inf_slice_str("a=\x01")));
    assert_false(inf_trace_state_valid(inf_slice_str("a=\x7f")));
    assert_false(inf_trace_state_valid(inf_slice_str("a=\xc3\xa9")));
    assert_false(inf_trace_state_valid(inf_slice("a=\0", 3)));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_context_is_read),
        cmocka_unit_test(what_is_no_context_says_nothing),
        cmocka_unit_test(a_state_is_printable_and_short)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
