/* Which of the known names a mistyped one is taken for. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/near_name.h"

static const char *
nearest(const char *wanted)
{
    static const char *const known[] = {
        "digits", "resnet50", "resnet-50", "bert_large", "x"
    };
    inf_near_name_t near;

    inf_near_name_init(&near, inf_slice_str(wanted));
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        inf_near_name_offer(&near, known[i]);
    }
    return near.best != NULL ? near.best : "none";
}

static void
a_letter_missing_added_or_replaced_is_near(void **state)
{
    (void) state;

    assert_string_equal(nearest("digit"), "digits");
    assert_string_equal(nearest("digitss"), "digits");
    assert_string_equal(nearest("dagits"), "digits");
}

static void
case_and_dashes_do_not_count(void **state)
{
    (void) state;

    assert_string_equal(nearest("DIGITS"), "digits");
    assert_string_equal(nearest("BERT-large"), "bert_large");
    assert_string_equal(nearest("bertlarg"), "bert_large");
    assert_string_equal(nearest("ResNet_50"), "resnet50");
}

static void
another_word_is_not_near(void **state)
{
    (void) state;
    char longest[INF_NEAR_NAME_MAX + 2];

    assert_string_equal(nearest("translate"), "none");
    assert_string_equal(nearest(""), "none");
    assert_string_equal(nearest("y"), "none");
    assert_string_equal(nearest("X"), "x");

    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    assert_string_equal(nearest(longest), "none");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_letter_missing_added_or_replaced_is_near),
        cmocka_unit_test(case_and_dashes_do_not_count),
        cmocka_unit_test(another_word_is_not_near)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
