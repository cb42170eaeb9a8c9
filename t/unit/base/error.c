/* Errors are objects that end in exactly one way. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <errno.h>

#include "core/base/error.h"

/* As Triton prints them: the last code has no words. */
static void
codes_have_their_words(void **state)
{
    (void) state;
    static const struct {
        inf_err_code_t  code;
        const char     *text;
    } rows[] = {
        { INF_ERR_UNKNOWN, "Unknown" },
        { INF_ERR_INTERNAL, "Internal" },
        { INF_ERR_NOT_FOUND, "Not found" },
        { INF_ERR_INVALID_ARG, "Invalid argument" },
        { INF_ERR_UNAVAILABLE, "Unavailable" },
        { INF_ERR_UNSUPPORTED, "Unsupported" },
        { INF_ERR_ALREADY_EXISTS, "Already exists" },
        { INF_ERR_CANCELLED, "<invalid code>" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_string_equal(inf_err_code_string(rows[i].code), rows[i].text);
    }
}

static void
words_are_added_in_front(void **state)
{
    (void) state;
    inf_err_t *err = inf_err_add(inf_err_new(INF_ERR_NOT_FOUND, "no %s", "x"),
        "model \"%s\"", "m");

    assert_string_equal(inf_err_msg(err), "model \"m\": no x");
    assert_int_equal(inf_err_code(err), INF_ERR_NOT_FOUND);
    err = inf_err_recode(err, INF_ERR_CANCELLED);
    assert_int_equal(inf_err_code(err), INF_ERR_CANCELLED);
    inf_err_free(err);
    err = inf_err_note(inf_err_new(INF_ERR_INTERNAL, "bad"), "line %d", 3);
    assert_string_equal(inf_err_msg(err), "bad (line 3)");
    assert_int_equal(inf_err_code(err), INF_ERR_INTERNAL);
    inf_err_free(err);
    assert_null(inf_err_add(NULL, "nothing"));
    assert_null(inf_err_note(NULL, "nothing"));
    assert_null(inf_err_recode(NULL, INF_ERR_INTERNAL));
    inf_err_free(NULL);
}

static void
a_system_error_names_its_reason(void **state)
{
    (void) state;
    inf_err_t *err = inf_err_os(ENOSPC, "cannot write '%s'", "f");

    assert_non_null(strstr(inf_err_msg(err), "cannot write 'f'"));
    assert_non_null(strstr(inf_err_msg(err), "No space left on device"));
    inf_err_free(err);
}

static void
out_of_memory_cannot_be_changed(void **state)
{
    (void) state;
    inf_err_t *err = inf_err_nomem();

    assert_ptr_equal(inf_err_add(err, "model"), err);
    assert_ptr_equal(inf_err_recode(err, INF_ERR_INTERNAL), err);
    assert_int_equal(inf_err_code(err), INF_ERR_UNAVAILABLE);
    inf_err_free(err);
    assert_ptr_equal(inf_err_nomem(), err);
}

static void
a_new_error_has_no_cause(void **state)
{
    (void) state;
    inf_err_t *err = inf_err_new(INF_ERR_UNAVAILABLE, "not now");

    assert_int_equal(inf_err_cause(err), INF_CAUSE_NONE);
    inf_err_free(err);
}

static void
a_cause_stays_when_the_text_grows_and_the_code_changes(void **state)
{
    (void) state;
    inf_err_t *err = inf_err_because(inf_err_new(INF_ERR_UNAVAILABLE, "full"),
        INF_CAUSE_FULL);

    err = inf_err_add(err, "model %d", 3);
    err = inf_err_recode(err, INF_ERR_INTERNAL);
    assert_string_equal(inf_err_msg(err), "model 3: full");
    assert_int_equal(inf_err_cause(err), INF_CAUSE_FULL);
    inf_err_free(err);
}

static void
a_copy_says_the_same(void **state)
{
    (void) state;
    inf_err_t *err = inf_err_because(inf_err_new(INF_ERR_UNAVAILABLE,
        "100%% late"), INF_CAUSE_TIMED_OUT);
    inf_err_t *copy = inf_err_copy(err);

    inf_err_free(err);
    assert_string_equal(inf_err_msg(copy), "100% late");
    assert_int_equal(inf_err_code(copy), INF_ERR_UNAVAILABLE);
    assert_int_equal(inf_err_cause(copy), INF_CAUSE_TIMED_OUT);
    inf_err_free(copy);
}

static void
out_of_memory_stays_as_it_is(void **state)
{
    (void) state;
    inf_err_t *err = inf_err_because(inf_err_nomem(), INF_CAUSE_FULL);

    assert_ptr_equal(err, inf_err_nomem());
    assert_int_equal(inf_err_cause(err), INF_CAUSE_NONE);
    assert_null(inf_err_because(NULL, INF_CAUSE_FULL));

    inf_err_t *copy = inf_err_copy(err);
    assert_string_equal(inf_err_msg(copy), "out of memory");
    inf_err_free(copy);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_have_their_words),
        cmocka_unit_test(words_are_added_in_front),
        cmocka_unit_test(a_system_error_names_its_reason),
        cmocka_unit_test(out_of_memory_cannot_be_changed),
        cmocka_unit_test(a_new_error_has_no_cause),
        cmocka_unit_test(
            a_cause_stays_when_the_text_grows_and_the_code_changes),
        cmocka_unit_test(a_copy_says_the_same),
        cmocka_unit_test(out_of_memory_stays_as_it_is)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
