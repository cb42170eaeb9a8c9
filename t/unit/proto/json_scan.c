/*
 * json_scan.c - the tokenizer: what it accepts, what it rejects and where,
 *               and that it does not care how the text arrives.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "core/proto/json_scan.h"

#define TRACE 8192

/* Where a call must stop that may look at budget bytes of avail. */
static const char *
stop_at(const inf_json_scan_t *s, const char *text, size_t avail,
    size_t budget)
{
    size_t left = avail - (size_t) s->tokens.pos;

    return text + avail - (budget < left ? left - budget : 0);
}

/* Events as letters: { } [ ] k s n t f 0 x, then . or !reason@pos. */
static void
trace_text(const char *text, size_t len, size_t slice, size_t budget_each,
    bool nonfinite, char *out)
{
    static const char letters[] = "..{}[]ksntf0x.";
    inf_json_scan_t s;
    size_t avail = 0;
    size_t n = 0;

    inf_json_scan_init(&s, 8);
    s.nonfinite = nonfinite;

    for ( ;; ) {
        const char *end = stop_at(&s, text, avail, budget_each);
        inf_json_event_t e = inf_json_scan_next(&s, text, end,
                                                end == text + len);

        if (e == INF_JSON_AGAIN) {
            if (s.tokens.pos == avail) {
                assert_true(avail < len || budget_each == 0);
                avail = len - avail > slice ? avail + slice : len;
            }

            continue;
        }

        if (e == INF_JSON_ERROR) {
            snprintf(out + n, TRACE - n, "!%s@%d", s.reason,
                     (int) s.tokens.pos);
            return;
        }

        assert_true(n < TRACE - 128);
        out[n++] = letters[e];
        if (e == INF_JSON_KEY || e == INF_JSON_STRING) {
            n += (size_t) snprintf(out + n, TRACE - n, "%d%s%s",
                                   (int) s.tokens.decoded,
                                   inf_json_tokens_escaped(&s.tokens)
                                       ? "e" : "",
                                   s.tokens.ascii ? "" : "u");
        }

        if (e == INF_JSON_NUMBER) {
            const char *number = text + s.tokens.start;
            size_t digits = (size_t) (s.tokens.pos - s.tokens.start);
            assert_int_equal(s.tokens.integer,
                             memchr(number, '.', digits) == NULL
                             && memchr(number, 'e', digits) == NULL
                             && memchr(number, 'E', digits) == NULL);
            n += (size_t) snprintf(out + n, TRACE - n, "%.*s", (int) digits,
                                   number);
        }

        if (e == INF_JSON_END) {
            out[n] = '\0';
            return;
        }
    }
}

static void
check(const char *text, bool nonfinite, const char *want)
{
    size_t len = strlen(text);
    char trace[TRACE];

    trace_text(text, len, len + 1, 1 << 20, nonfinite, trace);
    assert_string_equal(trace, want);
    trace_text(text, len, 1, 1 << 20, nonfinite, trace);
    assert_string_equal(trace, want);
    trace_text(text, len, len + 1, 1, nonfinite, trace);
    assert_string_equal(trace, want);
    trace_text(text, len, 3, 2, nonfinite, trace);
    assert_string_equal(trace, want);
}

static void
well_formed_texts_give_their_events(void **state)
{
    (void) state;
    check("{}", false, "{}.");
    check(" [ ] ", false, "[].");
    check("{\"a\":1,\"b\":[true,false,null]}", false, "{k1n1k1[tf0]}.");
    check("[-0,1.5e+10,0.25,10E-2]", false, "[n-0n1.5e+10n0.25n10E-2].");
    check("42", false, "n42.");
    check("\"x\"", false, "s1.");
    check("[\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\\n\"]", false, "[s11e].");
    check("[\"\\u0000\",\"h\xc3\xa9\"]", false, "[s1es3u].");
    check("[[[[[[[[]]]]]]]]", false, "[[[[[[[[]]]]]]]].");
    check("[\"sixteen bytes + \xc3\xa9\",\"sixteen bytes and \\n\"]", false,
          "[s18us19e].");
    check("\t{\r\n\"k\" : {\"l\" : \"longer than eight\"} }", false,
          "{k1{k1s17}}.");
}

static void
a_byte_order_mark_may_come_first(void **state)
{
    (void) state;
    check("\xef\xbb\xbf{\"a\":[1]}", false, "{k1[n1]}.");
    check("\xef\xbb\xbf[]", false, "[].");
    check("\xef\xbb\xbf \"a\"", false, "s1.");
    check("\xef\xbb\xbf", false, "!The document is empty.@3");
    check("\xef\xbb\xbf}", false, "!Invalid value.@3");
    check("\xef\xbb\xbf\xef\xbb\xbf{}", false, "!Invalid value.@3");
    check("[\xef\xbb\xbf]", false, "[!Invalid value.@1");
}

static void
bare_words_are_numbers_where_allowed(void **state)
{
    (void) state;
    check("[NaN,Infinity,-Infinity,Inf,-Inf]", true, "[xxxxx].");
    check("[Inf]", true, "[x].");
    check("[NaN]", false, "[!Invalid value.@1");
    check("[-Infinity]", false, "[!Invalid value.@2");
    check("[Infinit]", true, "[!Invalid value.@8");
    check("[In]", true, "[!Invalid value.@3");
    check("[NaNs]", true,
          "[x!Missing a comma or ']' after an array element.@4");
    check("[+Inf]", true, "[!Invalid value.@1");
}

static void
malformed_texts_are_rejected_with_the_place(void **state)
{
    (void) state;
    check("", false, "!The document is empty.@0");
    check("{\"inputs\":[", false, "{k6[!Invalid value.@11");
    check("{", false, "{!Missing a name for object member.@1");
    check("{a:1}", false, "{!Missing a name for object member.@1");
    check("{\"a\" 1}", false,
          "{k1!Missing a colon after a name of object member.@5");
    check("{\"a\":1,}", false, "{k1n1!Missing a name for object member.@7");
    check("{\"a\":1 \"b\"}", false,
          "{k1n1!Missing a comma or '}' after an object member.@7");
    check("[1 2]", false,
          "[n1!Missing a comma or ']' after an array element.@3");
    check("[1,]", false, "[n1!Invalid value.@3");
    check("[1}", false, "[n1!Missing a comma or ']' after an array element.@2");
    check("{\"a\":1]", false,
          "{k1n1!Missing a comma or '}' after an object member.@6");
    check("[01]", false, "[n0!Missing a comma or ']' after an array element.@2");
    check("[1.]", false, "[!Miss fraction part in number.@3");
    check("[1e]", false, "[!Miss exponent in number.@3");
    check("[1e+]", false, "[!Miss exponent in number.@4");
    check("[-]", false, "[!Invalid value.@2");
    check("[.5]", false, "[!Invalid value.@1");
    check("tru", false, "!Invalid value.@3");
    check("True", false, "!Invalid value.@0");
    check("\"abc", false, "!Missing a closing quotation mark in string.@4");
    check("\"a\nb\"", false, "!Control character in string.@2");
    check("\"\\x\"", false, "!Invalid escape character in string.@2");
    check("\"\\u12g4\"", false,
          "!Incorrect hex digit after \\u escape in string.@5");
    check("\"\\ud800\"", false, "!The surrogate pair in string is invalid.@7");
    check("\"\\ud800\\n\"", false,
          "!The surrogate pair in string is invalid.@8");
    check("\"\\ud800\\u0041\"", false,
          "!The surrogate pair in string is invalid.@12");
    check("\"\\udc00\"", false, "!The surrogate pair in string is invalid.@6");
    check("{} x", false,
          "{}!The document root must not be followed by other values.@3");
    check("{}{}", false,
          "{}!The document root must not be followed by other values.@2");
    check("[[[[[[[[[", false,
          "[[[[[[[[!The values are nested too deeply.@8");
    check("{\"a\":}", false, "{k1!Invalid value.@5");
}

static void
a_number_may_not_be_endless(void **state)
{
    static char text[6000];
    char trace[TRACE];

    (void) state;
    memset(text, '1', sizeof(text));
    trace_text(text, 4096, 100, 50, false, trace);
    assert_int_equal(strlen(trace), 4096 + 2);
    trace_text(text, 4097, 4097, 1 << 20, false, trace);
    assert_non_null(strstr(trace, "!The number is too long."));
    trace_text(text, sizeof(text), 1, 1, false, trace);
    assert_non_null(strstr(trace, "!The number is too long."));

    text[0] = '[';
    text[sizeof(text) - 1] = ']';
    trace_text(text, sizeof(text), sizeof(text), 1 << 20, false, trace);
    assert_non_null(strstr(trace, "!The number is too long."));
}

/* Skips the container that text begins with, in slices. */
static inf_json_event_t
skip_all(const char *text, size_t slice, size_t budget_each,
    inf_json_tally_t *tally, inf_json_scan_t *s)
{
    size_t len = strlen(text);
    size_t avail = len < slice ? len : slice;

    inf_json_scan_init(s, 8);
    s->nonfinite = true;
    memset(tally, 0, sizeof(*tally));
    (void) inf_json_scan_next(s, text, text + len, true);

    if (avail < s->tokens.pos) {
        avail = (size_t) s->tokens.pos;
    }

    for ( ;; ) {
        const char *end = stop_at(s, text, avail, budget_each);
        inf_json_event_t e = inf_json_scan_skip(s, text, end,
                                                end == text + len, 1, tally);
        if (e != INF_JSON_AGAIN) {
            return e;
        }

        if (s->tokens.pos == avail) {
            avail = len - avail > slice ? avail + slice : len;
        }
    }
}

static void
check_skip(const char *text, inf_json_event_t want, uint64_t count,
    uint64_t string_bytes, uint32_t kinds)
{
    for (size_t slice = 1; slice < 12; slice++) {
        inf_json_tally_t tally;
        inf_json_scan_t s;
        size_t budget = slice % 3 == 0 ? 1 : 1000;

        assert_int_equal(skip_all(text, slice, budget, &tally, &s), want);
        assert_int_equal(tally.count, count);
        assert_int_equal(tally.string_bytes, string_bytes);
        assert_int_equal(tally.kinds, kinds);
    }
}

static void
skipping_counts_the_leaves(void **state)
{
    (void) state;
    check_skip("[]", INF_JSON_ARRAY_END, 0, 0, 0);
    check_skip("[1, 2,-3.5 ,4e5,[6,[7]],[]]", INF_JSON_ARRAY_END, 6, 0,
               INF_JSON_KIND_NUMBER);
    check_skip("[NaN,-Inf,1]", INF_JSON_ARRAY_END, 3, 0,
               INF_JSON_KIND_NUMBER);
    check_skip("[\"a\\u0000b\",\"h\xc3\xa9\"]", INF_JSON_ARRAY_END, 2, 6,
               INF_JSON_KIND_STRING);
    check_skip("[true,null,1]", INF_JSON_ARRAY_END, 3, 0,
               INF_JSON_KIND_BOOL | INF_JSON_KIND_NULL | INF_JSON_KIND_NUMBER);
    check_skip("[{\"k\":[1]}]", INF_JSON_ARRAY_END, 1, 0,
               INF_JSON_KIND_OBJECT | INF_JSON_KIND_NUMBER);
    check_skip("[1,2,x]", INF_JSON_ERROR, 2, 0, INF_JSON_KIND_NUMBER);
    check_skip("[1,02]", INF_JSON_ERROR, 2, 0, INF_JSON_KIND_NUMBER);
    check_skip("[1,,2]", INF_JSON_ERROR, 1, 0, INF_JSON_KIND_NUMBER);
    check_skip("[1,2", INF_JSON_ERROR, 2, 0, INF_JSON_KIND_NUMBER);
    check_skip("[{\"k\":1,2}]", INF_JSON_ERROR, 1, 0,
               INF_JSON_KIND_OBJECT | INF_JSON_KIND_NUMBER);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(well_formed_texts_give_their_events),
        cmocka_unit_test(a_byte_order_mark_may_come_first),
        cmocka_unit_test(bare_words_are_numbers_where_allowed),
        cmocka_unit_test(malformed_texts_are_rejected_with_the_place),
        cmocka_unit_test(a_number_may_not_be_endless),
        cmocka_unit_test(skipping_counts_the_leaves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
