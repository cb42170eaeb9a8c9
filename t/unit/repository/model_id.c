#include "temp_tree.h"

#include "core/repository/model_id.h"

static void
namespaces_come_before_names(void **state)
{
    (void) state;
    const inf_model_id_t sorted[] = {
        inf_model_id("b"), inf_model_id("c"), { "/r1", "a" }, { "/r1", "b" },
        { "/r2", "a" }
    };

    for (size_t i = 0; i < 5; i++) {
        for (size_t k = 0; k < 5; k++) {
            int order = inf_model_id_compare(&sorted[i], &sorted[k]);
            assert_true(i < k ? order < 0 : i > k ? order > 0 : order == 0);
            assert_int_equal(inf_model_id_equal(&sorted[i], &sorted[k]),
                i == k);
        }
    }
}

static void
print_shows_the_namespace_where_there_is_one(void **state)
{
    (void) state;
    const inf_model_id_t plain = inf_model_id("m");
    const inf_model_id_t spaced = { "/srv/models", "m" };
    char *one = inf_model_id_print(&plain);
    char *two = inf_model_id_print(&spaced);

    assert_string_equal(one, "m");
    assert_string_equal(two, "/srv/models::m");
    free(one);
    free(two);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(namespaces_come_before_names),
        cmocka_unit_test(print_shows_the_namespace_where_there_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
