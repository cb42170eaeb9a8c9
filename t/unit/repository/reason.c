/* Reasons are shared, and written into room that was there before. */

#include "scarce_memory.h"

#include "temp_tree.h"

#include "core/base/buf.h"
#include "core/repository/reason.h"

static void
a_reason_has_its_code_and_lasts_as_long_as_a_reference(void **state)
{
    (void) state;
    inf_err_t *err = inf_err_new(INF_ERR_INTERNAL, "it fails");
    inf_reason_t *r = inf_reason_of(err);

    inf_err_free(err);
    assert_ptr_equal(inf_reason_ref(r), r);
    inf_reason_unref(r);
    assert_string_equal(r->text, "Internal: it fails");
    assert_string_equal(r->msg, "it fails");
    inf_reason_unref(r);

    r = inf_reason_new("exit");
    assert_string_equal(r->text, "exit");
    assert_string_equal(r->msg, "exit");
    inf_reason_unref(r);
    inf_reason_unref(NULL);
    assert_null(inf_reason_ref(NULL));
}

/* false: it doesn't fit. */
static bool
write_x(inf_reason_room_t *room, size_t len)
{
    inf_buf_t text;

    inf_buf_init_fixed(&text, inf_reason_room_text(room), room->size);
    for (size_t i = 0; i < len; i++) {
        inf_buf_putc(&text, 'x');
    }
    return !text.failed;
}

static void
a_text_that_does_not_fit_gets_more_room(void **state)
{
    (void) state;
    inf_reason_room_t room = { .size = 0 };

    inf_reason_room_renew(&room);
    size_t size = room.size;
    assert_true(write_x(&room, size - 1));
    assert_false(write_x(&room, size));
    inf_reason_room_renew(&room);
    assert_int_equal(room.size, 2 * size);
    assert_true(write_x(&room, size));

    inf_reason_t *r = inf_reason_room_take(&room, 3);
    assert_int_equal(strlen(r->text), size);
    assert_int_equal(strlen(r->msg), size - 3);
    assert_null(room.reason);
    inf_reason_unref(r);

    inf_reason_room_renew(&room);
    assert_int_equal(room.size, 2 * size);
    inf_reason_room_fini(&room);
}

/* In memory that was something else's, too. */
static void
only_an_error_says_that_a_model_is_quarantined(void **state)
{
    (void) state;
    inf_reason_room_t room = { .size = 0 };

    (void) mallopt(M_PERTURB, 0xfe);    /* new memory is full of 1           */
    inf_reason_room_renew(&room);
    inf_reason_t *r = inf_reason_room_take(&room, 0);
    assert_false(r->quarantined);
    inf_reason_unref(r);
    (void) mallopt(M_PERTURB, 0);
}

static void
without_memory_that_is_the_reason(void **state)
{
    (void) state;
    inf_reason_room_t room = { .size = 0 };

    if (!OWN_MALLOC) {
        skip();
    }
    countdown = 1;
    inf_reason_room_renew(&room);
    inf_reason_room_renew(&room);
    assert_null(inf_reason_room_text(&room));
    for (int i = 0; i < 3; i++) {
        inf_reason_t *r = inf_reason_room_take(&room, 0);
        assert_ptr_equal(r, &inf_reason_nomem);
        inf_reason_unref(r);
    }
    inf_reason_room_fini(&room);

    countdown = 1;
    inf_reason_t *r = inf_reason_new("exit");
    assert_ptr_equal(r, &inf_reason_nomem);
    inf_reason_unref(r);
    assert_int_equal(inf_reason_nomem.refs, 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_reason_has_its_code_and_lasts_as_long_as_a_reference),
        cmocka_unit_test(a_text_that_does_not_fit_gets_more_room),
        cmocka_unit_test(only_an_error_says_that_a_model_is_quarantined),
        cmocka_unit_test(without_memory_that_is_the_reason)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
