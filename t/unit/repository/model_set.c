/* The model set beyond the simulation: an edit that ends between a stop and the
   end of the edits that the stop has dropped, and names that a start loads. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/repository/model_set.h"

static inf_model_set_t set;

static int
setup(void **state)
{
    (void) state;
    inf_model_set_init(&set, NULL, NULL);
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    inf_model_set_fini(&set);
    return 0;
}

static inf_model_record_t *
add_record(const char *name)
{
    const inf_model_id_t id = inf_model_id(name);
    inf_model_record_t *r;

    assert_null(inf_model_record_new(&id, &r));
    inf_model_set_insert(&set, r);
    return r;
}

static void
submit_load(inf_model_record_t *r)
{
    inf_edit_t *edit;

    assert_null(inf_edit_new(INF_EDIT_LOAD, &edit));
    inf_model_set_submit(&set, r, edit);
}

static void
end(inf_edit_t *edit, inf_model_record_t **gone)
{
    inf_caller_t *caller;

    assert_false(inf_model_set_end(&set, edit, NULL, 0, &caller, gone));
    assert_null(caller);
    inf_edit_free(edit);
}

/* Their errors name it. */
static void
a_record_outlives_the_edits_that_a_stop_has_dropped(void **state)
{
    (void) state;
    inf_model_record_t *r = add_record("m");
    inf_model_record_t *gone;
    inf_link_t dropped;

    submit_load(r);
    submit_load(r);
    inf_edit_t *running = inf_model_set_take(&set, false);
    inf_link_init(&dropped);
    inf_model_set_stop(&set, &dropped);
    end(running, &gone);
    assert_null(gone);

    inf_edit_t *edit = inf_link_entry(inf_list_pop_front(&dropped),
        inf_edit_t, link);
    assert_ptr_equal(edit->record, r);
    assert_null(inf_model_set_end_dropped(&set, edit, NULL));
    inf_edit_free(edit);
    assert_int_equal(set.busy, 0);
}

static void
submit_at_start(const char *name)
{
    inf_edit_t *edit;

    assert_null(inf_edit_new(INF_EDIT_LOAD, &edit));
    edit->at_start = true;
    inf_model_set_submit(&set, add_record(name), edit);
}

static bool
is_starting(const char *name, bool composing)
{
    return inf_model_set_is_starting(&set, inf_slice_str(name), composing);
}

static void
a_name_is_starting_while_its_own_load_is(void **state)
{
    (void) state;
    inf_record_version_t *version = calloc(1, sizeof(*version));
    inf_model_record_t *gone;

    submit_at_start("a");
    submit_at_start("b");
    assert_true(is_starting("a", false));
    assert_true(is_starting("b", false));
    assert_false(is_starting("other", false));
    assert_true(is_starting("other", true));    /* b may be made of it       */

    inf_edit_t *a = inf_model_set_take(&set, false);
    inf_edit_t *b = inf_model_set_take(&set, false);
    end(a, &gone);
    inf_model_record_free(gone);
    assert_false(is_starting("a", false));
    assert_true(is_starting("b", false));

    b->record->versions = version;              /* its configuration is read */
    b->record->version_count = 1;
    assert_true(is_starting("b", true));
    assert_false(is_starting("other", true));

    end(b, &gone);
    assert_null(gone);
    submit_load(add_record("later"));
    assert_false(is_starting("later", true));
    end(inf_model_set_take(&set, false), &gone);
    inf_model_record_free(gone);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_record_outlives_the_edits_that_a_stop_has_dropped, setup,
            teardown),
        cmocka_unit_test_setup_teardown(
            a_name_is_starting_while_its_own_load_is, setup, teardown)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
