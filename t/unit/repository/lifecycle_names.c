/* Repositories as namespaces: equal names in two of them are two models.
   Numbers are those of the reference's scenarios. */

#include "repository/lifecycle_world.h"

#include <pthread.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"

#define SETTLE_NS 1000000u

#define AMBIGUOUS "There are 2 identifiers of model 'm' in global map, model" \
    " namespace must be provided to resolve ambiguity."

static const char json[] = "{\"backend\":\"x\",\"max_batch_size\":6,"
    "\"input\":[{\"name\":\"A\",\"data_type\":\"TYPE_FP32\",\"dims\":[1]}],"
    "\"output\":[{\"name\":\"B\",\"data_type\":\"TYPE_FP32\",\"dims\":[1]}]}";

/* The first two are repositories from the start. */
enum { PLACES = 3 };
static const char *const places[PLACES + 1] = { "r0", "r1", "r2", NULL };

static lifecycle_world_t w;

static int
setup(void **state)
{
    (void) state;
    lifecycle_world_begin(&w, places);
    assert_ok(inf_repositories_open(w.places, 2, true, inf_storage_open,
        &w.repositories));
    assert_ok(inf_lifecycle_new(&w.options, &w.lc));
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    lifecycle_world_end(&w);
    return 0;
}

static void
add_model_with(int place, const char *name, const char *config)
{
    lifecycle_world_add_model(&w, places[place], name, config);
}

static void
add_model(int place, const char *name)
{
    add_model_with(place, name, "backend: 'x'");
}

static void
move(const char *from, const char *to)
{
    char *old = strdup(tree_path(w.tree, from));
    assert_int_equal(rename(old, tree_path(w.tree, to)), 0);
    free(old);
}

/* As repository_change.c does it.  The edits that follow are under way. */
static void
begin_change(int first, int count, bool all)
{
    const inf_inventory_query_t q = {
        .occasion = INF_INVENTORY_CHANGE, .desired = { .all = all }
    };
    bool other;

    assert_ok(inf_repositories_replace(&w.repositories, w.places + first,
        (size_t) count, &other));
    assert_true(other);
    inf_lifecycle_resume_pending(w.lc); /* loads that saw the change wait    */
    assert_ok(inf_lifecycle_reconcile(w.lc, &q));
}

static void
change_to(int first, int count, bool all)
{
    begin_change(first, count, all);
    inf_lifecycle_wait(w.lc);
}

static void
poll_now(void)
{
    if (w.poll == NULL) {
        assert_ok(inf_poll_new(w.lc, w.pollers, SETTLE_NS, &w.poll));
    }
    assert_ok(inf_poll_once(w.poll, true));
}

static const char *
rows(void)
{
    return index_rows(&w.index, w.lc);
}

static const char *
listed(void)
{
    return index_rows_listed(&w.index, w.lc, false);
}

static inf_err_t *
find(const char *name, inf_model_t **out)
{
    inf_registry_reader_t reader;

    inf_registry_reader_init(&reader, &w.registry);
    inf_err_t *err = inf_registry_find(&reader, inf_slice_str(name), -1, out);
    inf_registry_reader_fini(&reader);
    return err;
}

static void
expect_ambiguous(void)
{
    inf_registry_reader_t reader;
    inf_model_t *m;

    assert_error(find("m", &m), INF_ERR_INVALID_ARG, AMBIGUOUS);
    inf_registry_reader_init(&reader, &w.registry);
    assert_error(inf_registry_unique(&reader, INF_SLICE("m")),
        INF_ERR_INVALID_ARG, AMBIGUOUS);
    inf_registry_reader_fini(&reader);
}

static void
expect_unknown(void)
{
    inf_model_t *m;

    assert_error(find("m", &m), INF_ERR_INVALID_ARG,
        "Request for unknown model: 'm' is not found");
}

/* m is one model, and comes from there; only to be compared. */
static const inf_model_t *
expect_from(int place)
{
    inf_model_t *m;

    assert_ok(find("m", &m));
    assert_string_equal(m->space, w.places[place]);
    inf_model_unref(m);
    return m;
}

/* The spaces of all READY models in order, as the digits of their places; "-":
   none. */
static const char *
spaces(void)
{
    static char text[64];
    inf_registry_reader_t reader;
    inf_model_t **models;
    size_t count;

    inf_registry_reader_init(&reader, &w.registry);
    assert_ok(inf_registry_models(&reader, &models, &count));
    for (size_t i = 0; i < count; i++) {
        const char *space = models[i]->space;
        text[i] = space == NULL ? '-' : space[strlen(space) - 1];
        inf_model_unref(models[i]);
    }
    text[count] = '\0';
    free(models);
    inf_registry_reader_fini(&reader);
    return text;
}

static inf_override_t *
override(bool file)
{
    inf_override_t *o;

    assert_ok(inf_override_new(&o));
    assert_ok(inf_override_set_config(o, inf_slice_str(json)));
    if (file) {
        assert_ok(inf_override_add_file(o, "7/data", INF_SLICE("1")));
    }
    return o;
}

static void
start_all(void)
{
    assert_ok(inf_lifecycle_start(w.lc, true, NULL, 0, NULL, 0));
    inf_lifecycle_wait(w.lc);
}

/* Number 5. */
static void
equal_names_in_two_repositories_are_two_models(void **state)
{
    (void) state;
    inf_model_t *m;

    add_model(1, "m");
    add_model(0, "m");
    add_model(1, "a");
    start_all();
    assert_string_equal(rows(), "m/1 READY \na/1 READY \nm/1 READY \n");
    assert_string_equal(listed(), rows());
    assert_string_equal(spaces(), "011");
    assert_true(inf_lifecycle_all_ready(w.lc));
    expect_ambiguous();
    assert_ok(find("a", &m));
    inf_model_unref(m);
    assert_error(find("b", &m), INF_ERR_INVALID_ARG,
        "Request for unknown model: 'b' is not found");
}

static void
one_that_fails_counts_and_holds_up_nothing(void **state)
{
    (void) state;
    add_model(0, "m");
    add_model_with(1, "m", "backend: 'nowhere'");
    start_all();
    assert_string_equal(spaces(), "0");
    assert_non_null(strstr(rows(), "m/1 READY \nm/1 UNAVAILABLE "));
    assert_false(inf_lifecycle_all_ready(w.lc));
    expect_ambiguous();

    assert_ok(inf_lifecycle_unload(w.lc, "m", false));
    expect_unknown();
    assert_error(inf_lifecycle_load(w.lc, "m", NULL), INF_ERR_INVALID_ARG,
        "load failed for model 'm': version 1 is at UNAVAILABLE");
    assert_string_equal(spaces(), "0");
}

static void
a_name_to_start_with_means_all_of_that_name(void **state)
{
    (void) state;
    char m[] = "m", missing[] = "missing";
    char *names[] = { m, missing };

    add_model(0, "m");
    add_model(1, "m");
    add_model(1, "other");
    assert_ok(inf_lifecycle_start(w.lc, false, names, 2, NULL, 0));
    inf_lifecycle_wait(w.lc);
    assert_string_equal(spaces(), "01");
    assert_false(inf_lifecycle_all_ready(w.lc));        /* one is missing    */
    assert_non_null(strstr(listed(), "missing/-1 UNAVAILABLE model not found"
        " in any model repository."));
    assert_non_null(strstr(listed(), "other/-1 UNKNOWN"));
}

static void
those_that_were_loaded_before_are_left_out_one_by_one(void **state)
{
    (void) state;
    char m[] = "m";
    char *names[] = { m };
    const inf_model_id_t before[] = { { w.places[0], "m" } };

    add_model(0, "m");
    add_model(1, "m");
    assert_ok(inf_lifecycle_start(w.lc, false, names, 1, before, 1));
    inf_lifecycle_wait(w.lc);
    assert_string_equal(spaces(), "1");
    assert_ok(inf_lifecycle_restore(w.lc, &before[0], override(false),
        false));
    inf_lifecycle_wait(w.lc);
    assert_string_equal(spaces(), "01");
}

/* It was loaded before there was namespacing. */
static void
a_bare_name_is_restored_as_all_of_that_name(void **state)
{
    (void) state;
    const inf_model_id_t bare = inf_model_id("m");
    const inf_model_id_t missing = inf_model_id("missing");

    add_model(0, "m");
    add_model(1, "m");
    fake.hold = "init m/1";
    assert_ok(inf_lifecycle_restore(w.lc, &bare, NULL, false));
    fake_wait_held(2);
    assert_false(inf_lifecycle_settled(w.lc));
    fake_release();
    inf_lifecycle_wait(w.lc);
    assert_true(inf_lifecycle_settled(w.lc));
    assert_string_equal(spaces(), "01");
    assert_true(inf_lifecycle_all_ready(w.lc));
    assert_ok(inf_lifecycle_restore(w.lc, &missing, NULL, false));
    inf_lifecycle_wait(w.lc);
    assert_false(inf_lifecycle_all_ready(w.lc));
}

static void
loads_and_unloads_by_name_are_for_all_that_have_it(void **state)
{
    (void) state;
    add_model(0, "m");
    add_model(1, "m");
    add_model(1, "other");
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_string_equal(spaces(), "01");
    assert_int_equal(fake_count("init m/1"), 2);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));     /* nothing to do     */
    assert_int_equal(fake_count("init m/1"), 2);

    assert_ok(inf_lifecycle_unload(w.lc, "m", false));
    assert_string_equal(spaces(), "");
    expect_unknown();
    index_rows_wait(&w.index, w.lc,
        "m/1 UNAVAILABLE unloaded\nm/1 UNAVAILABLE unloaded\n");
    assert_ok(inf_lifecycle_unload(w.lc, "nobody", false));
    assert_error(inf_lifecycle_load(w.lc, "nobody", NULL), INF_ERR_INTERNAL,
        "failed to load 'nobody', failed to poll from model repository");
    assert_error(inf_lifecycle_load(w.lc, "..", NULL), INF_ERR_INTERNAL,
        "failed to poll");
}

static void
requests_for_one_name_keep_their_order(void **state)
{
    (void) state;
    add_model(0, "m");
    add_model(1, "m");
    add_model(1, "other");
    fake.hold = "init m/1";
    inf_lifecycle_load_async(w.lc, "m", NULL, false, NULL, NULL);
    fake_wait_held(2);                                  /* side by side      */
    inf_lifecycle_unload_async(w.lc, "m", false, NULL, NULL);
    inf_lifecycle_unload_async(w.lc, "other", false, NULL, NULL);
    fake_release();
    inf_lifecycle_wait(w.lc);
    assert_string_equal(spaces(), "");
    assert_int_equal(fake_count("init m/1"), 2);

    inf_lifecycle_unload_async(w.lc, "m", false, NULL, NULL);
    inf_lifecycle_load_async(w.lc, "m", NULL, false, NULL, NULL);
    inf_lifecycle_wait(w.lc);
    assert_string_equal(spaces(), "01");
}

static void
a_configuration_of_a_request_is_for_all_of_that_name(void **state)
{
    (void) state;
    inf_registry_reader_t reader;
    inf_model_t **models;
    size_t count;

    add_model(0, "m");
    add_model(1, "m");
    assert_ok(inf_lifecycle_load(w.lc, "m", override(false)));
    inf_registry_reader_init(&reader, &w.registry);
    assert_ok(inf_registry_models(&reader, &models, &count));
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(models[i]->built->max_batch_size, 6);
        inf_model_unref(models[i]);
    }
    free(models);
    inf_registry_reader_fini(&reader);
}

static void
files_of_a_request_have_no_namespace(void **state)
{
    (void) state;
    inf_model_t *m;

    add_model(0, "m");
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_ok(inf_lifecycle_load(w.lc, "m", override(true)));
    assert_string_equal(spaces(), "-0");
    assert_string_equal(listed(), "m/1 READY \n");      /* no directory      */
    expect_ambiguous();

    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));     /* and back          */
    expect_from(0);
    assert_int_equal(fake_count("init m/1"), 1);

    assert_ok(inf_lifecycle_load(w.lc, "m", override(true)));
    assert_ok(inf_lifecycle_unload(w.lc, "m", false));
    assert_string_equal(spaces(), "");
    assert_ok(inf_lifecycle_load(w.lc, "m", override(true)));
    assert_ok(find("m", &m));
    assert_null(m->space);
    assert_int_equal(m->version, 7);
    inf_model_unref(m);
}

/* Number 5. */
static void
a_load_finds_a_model_that_was_moved(void **state)
{
    (void) state;
    add_model(0, "m");
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    expect_from(0);
    move("r0/m", "r1/m");
    expect_from(0);                             /* nobody has polled         */
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    expect_from(1);
    assert_string_equal(spaces(), "1");
    index_rows_wait(&w.index, w.lc,
        "m/1 UNAVAILABLE unloaded\nm/1 READY \n");
    assert_string_equal(listed(), "m/1 READY \n");

    move("r1/m", "away");                       /* from all of them          */
    assert_error(inf_lifecycle_load(w.lc, "m", NULL), INF_ERR_INTERNAL,
        "failed to poll");
    expect_from(1);
}

static void
a_look_loads_and_unloads_each_of_them_alone(void **state)
{
    (void) state;
    add_model(0, "m");
    start_all();
    const inf_model_t *first = expect_from(0);
    add_model(1, "m");
    poll_now();
    assert_string_equal(spaces(), "01");
    expect_ambiguous();
    move("r1/m", "away");
    poll_now();
    assert_ptr_equal(expect_from(0), first);
    assert_int_equal(fake_count("init m/1"), 2);

    move("r0/m", "r1/m");
    poll_now();
    expect_from(1);
    assert_string_equal(spaces(), "1");
    index_rows_wait(&w.index, w.lc,
        "m/1 UNAVAILABLE unloaded\nm/1 READY \n");
    assert_true(inf_lifecycle_all_ready(w.lc));
    tree_file(w.tree, "r1/m/1/data", "other bytes");
    poll_now();
    assert_int_equal(fake_count("init m/1"), 4);
}

static void
a_repository_that_cannot_be_listed_keeps_its_models_alone(void **state)
{
    (void) state;
    add_model(0, "m");
    add_model(1, "m");
    add_model(1, "b");
    start_all();
    move("r0", "away");
    move("r1/m", "m");
    poll_now();
    assert_string_equal(spaces(), "01");        /* r0's m, and b             */
    expect_from(0);
    move("away", "r0");
    poll_now();
    assert_string_equal(spaces(), "01");
    assert_int_equal(fake_count("init m/1"), 2);
}

static void
models_come_and_go_with_their_repository(void **state)
{
    (void) state;
    add_model(0, "m");
    add_model(1, "m");
    add_model(2, "m");
    start_all();
    assert_string_equal(spaces(), "01");
    change_to(1, 2, true);                      /* r1, r2                    */
    assert_string_equal(spaces(), "12");
    assert_int_equal(fake_count("init m/1"), 3);
    expect_ambiguous();
    change_to(2, 1, true);
    expect_from(2);
    index_rows_wait(&w.index, w.lc, "m/1 UNAVAILABLE unloaded\nm/1"
        " UNAVAILABLE unloaded\nm/1 READY \n");
    assert_true(inf_lifecycle_all_ready(w.lc));
    change_to(0, 3, true);
    assert_string_equal(spaces(), "012");
    assert_int_equal(fake_count("init m/1"), 5);
}

static void
explicit_control_only_unloads_with_a_repository(void **state)
{
    (void) state;
    add_model(0, "m");
    add_model(1, "m");
    add_model(2, "m");
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    change_to(1, 2, false);
    expect_from(1);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_string_equal(spaces(), "12");
}

static void
registered_repositories_are_namespaces(void **state)
{
    (void) state;
    const inf_scan_alias_t aliases[] = { { .dir = "other", .name = "m" } };

    add_model(0, "m");
    add_model(2, "other");
    assert_ok(inf_repositories_add(&w.repositories, &(inf_registration_t) {
            .address = w.places[2], .aliases = aliases, .count = 1 }, NULL));
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_string_equal(spaces(), "02");
    assert_string_equal(listed(), "m/1 READY \nm/1 READY \n");
    assert_ok(inf_repositories_remove(&w.repositories, w.places[2]));
    assert_string_equal(spaces(), "02");        /* unloads nothing           */
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    expect_from(0);
}

/* One of both has to be built again. */
static void
a_broken_instance_costs_its_own_model(void **state)
{
    (void) state;
    const inf_model_id_t id = { w.places[1], "m" };

    add_model(0, "m");
    add_model(1, "m");
    start_all();
    process_exit_of(w.lc, &id, -1);
    while (fake_count("init m/1") < 3) {
        usleep(1000);
    }
    inf_lifecycle_wait(w.lc);
    assert_int_equal(fake_count("init m/1"), 3);
    assert_string_equal(spaces(), "01");
    move("r0/m", "away");
    poll_now();
    expect_from(1);
}

static void *
requests_main(void *arg)
{
    static const char *const names[] = { "m", "a", "b", "nobody" };
    const bool *stop = arg;
    index_rows_t index;

    for (unsigned i = 0; !__atomic_load_n(stop, __ATOMIC_RELAXED); i++) {
        inf_model_t *m;
        inf_err_t *err = find(names[i % 3], &m);
        if (err == NULL) {
            inf_model_unref(m);
        }
        inf_err_free(err);
        err = i % 4 == 0 ? inf_lifecycle_load(w.lc, names[i % 3], NULL)
            : i % 4 == 1 ? inf_lifecycle_unload(w.lc, names[i % 3], false)
            : i % 4 == 2 ? inf_lifecycle_load(w.lc, "m", override(true))
            : inf_lifecycle_load(w.lc, names[i / 4 % 4], override(false));
        inf_err_free(err);
        index_rows(&index, w.lc);
    }

    return NULL;
}

/* Requests by name, polls and changes of the repositories at once: in the end
   what lies there is what serves. */
static void
nothing_is_lost_where_everybody_changes_models(void **state)
{
    (void) state;
    bool stop = false;
    pthread_t threads[2];

    for (int i = 0; i < PLACES; i++) {
        add_model(i, "m");
        add_model(i, i == 0 ? "a" : "b");
    }
    start_all();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, requests_main,
            &stop), 0);
    }
    for (int i = 0; i < 20; i++) {
        begin_change(0, 1 + i % PLACES, true);
        poll_now();
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }

    assert_ok(inf_lifecycle_unload(w.lc, "m", false));
    assert_ok(inf_lifecycle_unload(w.lc, "a", false));
    assert_ok(inf_lifecycle_unload(w.lc, "b", false));
    assert_string_equal(spaces(), "");
    change_to(0, 3, true);
    poll_now();
    assert_string_equal(spaces(), "001122");
    assert_ok(inf_lifecycle_load(w.lc, "m", override(true)));
    assert_string_equal(spaces(), "-001122");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(equal_names_in_two_repositories_are_two_models),
        TEST(one_that_fails_counts_and_holds_up_nothing),
        TEST(a_name_to_start_with_means_all_of_that_name),
        TEST(those_that_were_loaded_before_are_left_out_one_by_one),
        TEST(a_bare_name_is_restored_as_all_of_that_name),
        TEST(loads_and_unloads_by_name_are_for_all_that_have_it),
        TEST(requests_for_one_name_keep_their_order),
        TEST(a_configuration_of_a_request_is_for_all_of_that_name),
        TEST(files_of_a_request_have_no_namespace),
        TEST(a_load_finds_a_model_that_was_moved),
        TEST(a_look_loads_and_unloads_each_of_them_alone),
        TEST(a_repository_that_cannot_be_listed_keeps_its_models_alone),
        TEST(models_come_and_go_with_their_repository),
        TEST(explicit_control_only_unloads_with_a_repository),
        TEST(registered_repositories_are_namespaces),
        TEST(a_broken_instance_costs_its_own_model),
        TEST(nothing_is_lost_where_everybody_changes_models),
    };
    alarm(540);
    inf_log_set_levels(false, false, false, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
