/*
 * json_token.c - tokens of both kinds of JSON, and what is wrong with one and
 *                where, however the text arrives.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "core/proto/json_token.h"

#define TRACE 1024

/* Each token as its kind's letter and its text; a fault as !kind@pos, with the
   escape that it belongs to. */
static void
trace_text(const char *text, size_t slice, bool lenient, char *out)
{
    static const char letters[] = "..!snwy";
    inf_json_tokens_t t = { .lenient = lenient };
    size_t len = strlen(text);
    size_t avail = 0;
    size_t n = 0;

    for ( ;; ) {
        inf_json_token_t token = inf_json_tokens_next(&t, text, text + avail,
                                                      avail == len);

        if (token == INF_JSON_TOKEN_AGAIN) {
            assert_int_equal(t.pos, avail);
            assert_true(avail < len);
            avail = len - avail > slice ? avail + slice : len;
            continue;
        }

        if (token == INF_JSON_TOKEN_END) {
            out[n] = '\0';
            return;
        }

        if (token == INF_JSON_TOKEN_BAD) {
            bool escape = t.fault == INF_JSON_FAULT_ESCAPE
                          || t.fault == INF_JSON_FAULT_HEX
                          || t.fault == INF_JSON_FAULT_SURROGATE;
            snprintf(out + n, TRACE - n, "!%d@%d/%d%s", (int) t.fault,
                     (int) t.pos, (int) (escape ? t.escape : t.start),
                     t.ended ? "." : "");
            return;
        }

        assert_false(inf_json_tokens_open(&t));
        n += (size_t) snprintf(out + n, TRACE - n, "%c<%.*s>", letters[token],
                               (int) (t.pos - t.start), text + t.start);
        assert_true(n < TRACE);
    }
}

static void
check(const char *text, bool lenient, const char *want)
{
    char trace[TRACE];

    for (size_t slice = 1; slice < 20; slice += 3) {
        trace_text(text, slice, lenient, trace);
        assert_string_equal(trace, want);
    }
}

static void
tokens_are_cut_as_json_has_them(void **state)
{
    (void) state;
    check("", false, "");
    check(" {\"a\" :[-1.5e+3,true]}\n", false,
          "y<{>s<\"a\">y<:>y<[>n<-1.5e+3>y<,>w<true>y<]>y<}>");
    check("01", false, "n<0>n<1>");
    check("-Infinity NaN -x1", false, "w<-Infinity>w<NaN>w<-x1>");
    check("1x", false, "n<1>w<x>");
    check("\"\\\"\\u00e9\\ud83d\\ude00\"", false,
          "s<\"\\\"\\u00e9\\ud83d\\ude00\">");
}

static void
lenient_tokens_are_more(void **state)
{
    (void) state;
    check("{'a\"b\\'':$x_1,}", true,
          "y<{>s<'a\"b\\''>y<:>w<$x_1>y<,>y<}>");
    check("1.e5 -0.5 0", true, "n<1.e5>n<-0.5>n<0>");
    check("\"it's\"", true, "s<\"it's\">");
    check("'a'", false, "!0@0/0");
    check("\"\\'\"", false, "!3@2/1");
    check("1.e5", false, "!7@2/0");
}

static void
faults_have_their_kind_and_place(void **state)
{
    (void) state;
    check("[+", true, "y<[>!0@1/1");
    check(" \"ab", true, "!1@4/1.");
    check("'a\nb'", true, "!2@2/0");
    check("\"a\\q\"", true, "!3@3/2");
    check("\"a\\", true, "!3@3/2.");
    check("\"\\u12g4\"", true, "!4@5/1");
    check("\"\\u12", true, "!4@5/1.");
    check("\"\\ud83d\\u12", true, "!4@11/1.");
    check("\"\\ud83d\\n\"", true, "!5@8/1");
    check("\"\\ud83d\\u0041\"", true, "!5@12/1");
    check("\"\\udc00\"", true, "!5@6/1");
    check("-", true, "!6@1/0");
    check("-.5", true, "!6@1/0");
    check("01", true, "!6@1/0");
    check("1x", true, "!6@1/0");
    check("1.5.2", true, "!6@3/0");
    check("1.", true, "!7@2/0");
    check("1e", true, "!8@2/0");
    check("1e+x", true, "!8@3/0");
}

static void
a_byte_order_mark_is_skipped_at_the_start(void **state)
{
    (void) state;
    check("\xef\xbb\xbf {\"a\"", false, "y<{>s<\"a\">");
    check("\xef\xbb\xbf", false, "");
    check("\xef\xbb\xbf\xef\xbb\xbf", false, "!0@3/3");
    check(" \xef\xbb\xbf", false, "!0@1/1");
    check("\xef\xbb{", false, "!0@2/0");
    check("\xef\xbb", false, "!0@2/0");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_cut_as_json_has_them),
        cmocka_unit_test(lenient_tokens_are_more),
        cmocka_unit_test(faults_have_their_kind_and_place),
        cmocka_unit_test(a_byte_order_mark_is_skipped_at_the_start)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
