/* Remote repositories that let the start wait. */

#include "repository/remote_storage.h"
#include "repository/lifecycle_world.h"

#include <semaphore.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/repository/lifecycle_parts.h"
#include "core/repository/repository_change.h"

static const char *const places[] = {
    "local", "remote1", "remote2", "remote3", NULL
};

static lifecycle_world_t w;
static inf_repository_change_t *change;
static inf_repository_desired_t desired;    /* what is in effect             */

static void
open_world(size_t count, bool namespacing)
{
    remote_reset();
    lifecycle_world_begin(&w, places);
    w.options.load_composing = true;
    assert_ok(inf_repositories_open(w.places, count, namespacing,
        remote_open, &w.repositories));
    assert_ok(inf_lifecycle_new(&w.options, &w.lc));
    desired = (inf_repository_desired_t) {
        .addresses = w.places, .count = count
    };
}

static int
setup(void **state)
{
    (void) state;
    open_world(2, false);
    return 0;
}

static int
setup_two(void **state)
{
    (void) state;
    open_world(3, false);
    return 0;
}

static int
setup_namespaces(void **state)
{
    (void) state;
    open_world(2, true);
    return 0;
}

static int
setup_two_namespaces(void **state)
{
    (void) state;
    open_world(3, true);
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    fake_release();
    inf_poll_stop(w.poll);
    inf_repository_change_stop(change);
    inf_pollers_stop(w.pollers);
    assert_true(inf_lifecycle_stop(w.lc, 60 * SECOND));
    inf_repository_change_free(change);
    change = NULL;
    lifecycle_world_end(&w);
    assert_int_equal(remote_opened(), 0);
    return 0;
}

static void
add_model(int place, const char *name)
{
    lifecycle_world_add_model(&w, places[place], name, "backend: 'x'");
}

/* A local one: first one model, then the other. */
static void
add_ensemble(const char *name, const char *first, const char *second)
{
    char text[600];

    snprintf(text, sizeof(text), "platform: 'ensemble' ensemble_scheduling {"
        " step { model_name: '%s' model_version: -1"
        " input_map { key: 'A' value: 'A' }"
        " output_map { key: 'B' value: 'T' } }"
        " step { model_name: '%s' model_version: -1"
        " input_map { key: 'A' value: 'T' }"
        " output_map { key: 'B' value: 'B' } } }", first, second);
    lifecycle_world_add_model(&w, "local", name, text);
}

/* An ensemble of a local model and a remote one. */
static void
add_both(void)
{
    add_model(0, "local");
    add_model(1, "away");
    add_ensemble("both", "local", "away");
}

/* One or all of them: what a start loads; then what is awaited is listed. */
static void
start(bool all, char *const *names, size_t count,
    const inf_model_id_t *except, size_t except_count)
{
    desired.models.all = all;
    desired.models.names = names;
    desired.models.count = count;
    assert_ok(inf_repository_change_new(w.lc, w.pollers, &desired,
        &change));
    assert_ok(inf_lifecycle_start(w.lc, all, names, count, except,
        except_count));
    inf_repository_change_begin(change);
}

static void
start_all(void)
{
    start(true, NULL, 0, NULL, 0);
}

/* So many of the places from now on. */
static void
ask_for(size_t count)
{
    desired.count = count;
    assert_ok(inf_repository_change_ask(change, &desired));
}

static void
let_come(void)
{
    remote_set(NULL, NULL);
    inf_repository_change_wait(change);
    inf_lifecycle_wait(w.lc);
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

static void
wait_for_row(const char *row)
{
    index_rows_wait(&w.index, w.lc, row);
}

static inf_err_t *
find(const char *name)
{
    inf_registry_reader_t reader;
    inf_model_t *m = NULL;

    inf_registry_reader_init(&reader, &w.registry);
    inf_err_t *err = inf_registry_find(&reader, inf_slice_str(name), -1, &m);
    if (err == NULL) {
        inf_model_unref(m);
    }
    inf_registry_reader_fini(&reader);
    return err;
}

static bool
serves(const char *name)
{
    inf_err_t *err = find(name);
    bool found = err == NULL;
    inf_err_free(err);
    return found;
}

static bool
is_ready(void)
{
    return inf_lifecycle_settled(w.lc) && inf_lifecycle_all_ready(w.lc)
        && !inf_repository_change_pending(change);
}

/* Models are finalized on threads of their own. */
static void
wait_ready(void)
{
    uint64_t until = inf_clock_ns() + 60 * SECOND;
    while (!is_ready()) {
        assert_true(inf_clock_ns() < until);
        usleep(1000);
    }
}

/* Until the load of name waits, for a repository or for other models. */
static void
wait_waiting(const char *name)
{
    uint64_t until = inf_clock_ns() + 60 * SECOND;
    bool waits = false;

    while (!waits) {
        assert_true(inf_clock_ns() < until);
        usleep(1000);
        const inf_model_record_t *r = NULL;
        inf_lock(&w.lc->lock);
        while ((r = inf_model_set_next(&w.lc->set, r)) != NULL) {
            waits |= strcmp(r->name, name) == 0
                && (r->state == INF_MODEL_LISTING
                    || r->state == INF_MODEL_COMPOSING);
        }
        inf_unlock(&w.lc->lock);
    }
}

/* ---- the start ----------------------------------------------------------- */

static void
local_models_serve_while_a_remote_repository_is_silent(void **state)
{
    (void) state;
    add_model(0, "local");
    add_model(1, "away");
    remote_set("remote1", NULL);
    start_all();
    inf_lifecycle_wait(w.lc);
    remote_wait_for(1);

    assert_true(serves("local"));
    assert_false(inf_lifecycle_settled(w.lc));
    assert_false(inf_lifecycle_all_ready(w.lc));
    assert_string_equal(listed(), "local/1 READY \n");
    assert_error(find("away"), INF_ERR_UNAVAILABLE,
        "a model repository is still to be listed");
    assert_int_equal(remote_asked(), 1);

    let_come();
    assert_true(serves("away"));
    wait_ready();
    assert_string_equal(listed(), "away/1 READY \nlocal/1 READY \n");
    assert_error(find("nowhere"), INF_ERR_NOT_FOUND, "is not found");
    assert_int_equal(fake_count("init local/1"), 1);
    assert_int_equal(fake_count("init away/1"), 1);
}

static void
each_comes_when_it_can(void **state)
{
    (void) state;
    add_model(1, "one");
    add_model(2, "two");
    remote_set("remote1", NULL);
    start_all();
    wait_for_row("two/1 READY");
    assert_true(serves("two"));
    assert_false(serves("one"));
    assert_false(inf_lifecycle_settled(w.lc));
    let_come();
    assert_true(serves("one"));
    wait_ready();
    assert_int_equal(fake_count("init two/1"), 1);
}

static void
a_listing_that_fails_ends_the_start_but_nothing_is_ready(void **state)
{
    (void) state;
    add_model(0, "local");
    add_model(1, "away");
    remote_set(NULL, "remote1");
    start_all();
    inf_repository_change_wait(change);
    inf_lifecycle_wait(w.lc);
    assert_true(serves("local"));
    assert_true(inf_lifecycle_settled(w.lc));
    assert_false(inf_lifecycle_all_ready(w.lc));
    assert_error(find("away"), INF_ERR_NOT_FOUND, "is not found");

    /* the index has it tried again */
    remote_set(NULL, NULL);
    assert_error(inf_lifecycle_repository_index(w.lc, false, index_rows_add,
        &w.index), INF_ERR_INTERNAL, "remote1' can't be listed: no answer");
    inf_repository_change_wait(change);
    inf_lifecycle_wait(w.lc);
    assert_true(serves("away"));
    wait_ready();
}

static void
a_reload_of_the_configuration_tries_again_what_failed(void **state)
{
    (void) state;
    add_model(1, "away");
    remote_set(NULL, "remote1");
    start_all();
    inf_repository_change_wait(change);
    remote_set(NULL, NULL);
    ask_for(2);
    inf_repository_change_wait(change);
    inf_lifecycle_wait(w.lc);
    assert_true(serves("away"));
    wait_ready();
}

/* It was listed once and is silent when the configuration changes: its models
   serve on, but what lies there now is unknown. */
static void
a_reload_of_the_configuration_lists_again_what_could_not_be_listed(void **state)
{
    (void) state;
    add_model(1, "away");
    start_all();
    inf_repository_change_wait(change);
    inf_lifecycle_wait(w.lc);
    wait_ready();

    remote_set(NULL, "remote1");
    ask_for(3);
    inf_repository_change_wait(change);
    inf_lifecycle_wait(w.lc);
    assert_true(serves("away"));
    assert_false(inf_lifecycle_all_ready(w.lc));

    remote_set(NULL, NULL);
    add_model(1, "later");
    ask_for(3);                             /* the same                      */
    inf_repository_change_wait(change);
    inf_lifecycle_wait(w.lc);
    wait_ready();
    assert_true(serves("later"));
}

static void
what_is_named_waits_until_it_can_be_missing(void **state)
{
    (void) state;
    char here[] = "local", away[] = "away", nowhere[] = "nowhere";
    char *names[] = { here, away, nowhere };

    add_model(0, "local");
    add_model(1, "away");
    add_model(1, "other");
    remote_set("remote1", NULL);
    start(false, names, 3, NULL, 0);
    wait_for_row("local/1 READY");
    assert_string_equal(rows(), "away/-1 LOADING \nlocal/1 READY \n"
        "nowhere/-1 LOADING \n");
    assert_string_equal(listed(), rows());
    assert_error(find("away"), INF_ERR_UNAVAILABLE, "it is loading");
    assert_false(inf_lifecycle_settled(w.lc));
    assert_false(inf_lifecycle_all_ready(w.lc));

    let_come();
    assert_true(serves("away"));
    assert_false(serves("other"));
    assert_true(inf_lifecycle_settled(w.lc));
    assert_false(inf_lifecycle_all_ready(w.lc));
    assert_non_null(strstr(rows(), "nowhere/-1 UNAVAILABLE model not found"
        " in any model repository."));
}

static void
what_is_named_says_why_it_is_not_known(void **state)
{
    (void) state;
    char away[] = "away";
    char *names[] = { away };

    add_model(1, "away");
    remote_set(NULL, "remote1");
    start(false, names, 1, NULL, 0);
    inf_repository_change_wait(change);
    inf_lifecycle_wait(w.lc);
    assert_true(inf_lifecycle_settled(w.lc));
    assert_false(inf_lifecycle_all_ready(w.lc));
    assert_non_null(strstr(rows(), "remote1' can't be listed: no answer"));

    remote_set(NULL, NULL);                 /* it is wanted still            */
    ask_for(2);
    inf_repository_change_wait(change);
    inf_lifecycle_wait(w.lc);
    assert_true(serves("away"));
    wait_ready();
}

static void
a_star_means_what_comes_late_too_but_for_what_was_unloaded(void **state)
{
    (void) state;
    char star[] = "*";
    char *names[] = { star };
    const inf_model_id_t except = inf_model_id("barred");

    add_model(0, "local");
    add_model(1, "away");
    add_model(1, "barred");
    remote_set("remote1", NULL);
    start(false, names, 1, &except, 1);
    inf_lifecycle_wait(w.lc);
    assert_true(serves("local"));
    assert_false(inf_lifecycle_settled(w.lc));
    assert_ok(inf_lifecycle_unload(w.lc, "local", false));
    let_come();
    assert_true(serves("away"));
    assert_false(serves("barred"));
    assert_false(serves("local"));           /* a request took it away        */
    wait_ready();
}

static void
without_a_list_nothing_is_waited_for(void **state)
{
    (void) state;
    add_model(1, "away");
    remote_set("remote1", NULL);
    start(false, NULL, 0, NULL, 0);
    remote_wait_for(1);
    assert_true(inf_lifecycle_settled(w.lc));
    assert_true(inf_lifecycle_all_ready(w.lc));
    let_come();
    assert_false(serves("away"));
    wait_ready();
}

/* ---- a name that both have ----------------------------------------------- */

static void
a_name_in_both_serves_until_both_are_known(void **state)
{
    (void) state;
    add_model(0, "m");
    add_model(1, "m");
    add_model(1, "n");
    remote_set("remote1", NULL);
    start_all();
    inf_lifecycle_wait(w.lc);
    assert_true(serves("m"));
    let_come();
    assert_false(serves("m"));
    assert_true(serves("n"));
    assert_non_null(strstr(listed(), "m/-1 UNAVAILABLE model appears in two or"
        " more repositories\n"));
    wait_ready();
}

/* 0: the listing comes before the model's load begins, 1: while it is built. */
static void
two_come(bool all, int when)
{
    char m[] = "m";
    char *names[] = { m };

    add_model(0, "m");
    add_model(1, "m");
    fake.hold = when == 1 ? "init m/1" : NULL;
    remote_set(when == 1 ? "remote1" : NULL, NULL);
    if (when == 0) {
        inf_lifecycle_hold(w.lc);
    }
    start(all, names, all ? 0 : 1, NULL, 0);
    if (when == 1) {
        fake_wait_held(1);
        remote_set(NULL, NULL);
    }
    inf_repository_change_wait(change);
    if (when == 0) {
        inf_lifecycle_release(w.lc);
    }
    fake_release();
    inf_lifecycle_wait(w.lc);

    assert_false(serves("m"));
    assert_non_null(strstr(listed(), "m/-1 UNAVAILABLE model appears in two or"
        " more repositories\n"));
    if (all) {
        wait_ready();
    } else {
        assert_true(inf_lifecycle_settled(w.lc));
        assert_false(inf_lifecycle_all_ready(w.lc));
    }
}

static void
both_come_before_the_load(void **state)
{
    (void) state;
    two_come(true, 0);
}

static void
both_come_during_the_load(void **state)
{
    (void) state;
    two_come(true, 1);
}

static void
both_come_before_the_load_of_what_is_named(void **state)
{
    (void) state;
    two_come(false, 0);
}

static void
both_come_during_the_load_of_what_is_named(void **state)
{
    (void) state;
    two_come(false, 1);
}

static void
a_name_of_the_list_in_both_is_a_failure(void **state)
{
    (void) state;
    char m[] = "m";
    char *names[] = { m };

    add_model(0, "m");
    add_model(1, "m");
    remote_set("remote1", NULL);
    start(false, names, 1, NULL, 0);
    wait_for_row("m/1 READY");
    let_come();
    assert_false(serves("m"));
    assert_true(inf_lifecycle_settled(w.lc));
    assert_false(inf_lifecycle_all_ready(w.lc));
    assert_non_null(strstr(listed(), "m/-1 UNAVAILABLE model appears in two or"
        " more repositories\n"));
    assert_error(inf_lifecycle_load(w.lc, "m", NULL), INF_ERR_INTERNAL,
        "failed to poll");
}

/* ---- requests ------------------------------------------------------------ */

static void
a_load_waits_only_for_what_no_other_repository_has(void **state)
{
    (void) state;
    answer_t away = { 0 }, missing = { 0 };

    add_model(0, "local");
    add_model(1, "away");
    remote_set("remote1", NULL);
    start(false, NULL, 0, NULL, 0);
    inf_lifecycle_load_async(w.lc, "away", NULL, false, load_done, &away);
    inf_lifecycle_load_async(w.lc, "missing", NULL, false, load_done, &missing);
    assert_ok(inf_lifecycle_load(w.lc, "local", NULL));
    assert_ok(inf_lifecycle_unload(w.lc, "local", false));
    assert_ok(inf_lifecycle_load(w.lc, "local", NULL));
    assert_false(away.told);
    assert_false(missing.told);
    assert_false(serves("away"));

    let_come();
    wait_told(&away);
    wait_told(&missing);
    assert_ok(away.err);
    assert_error(missing.err, INF_ERR_INTERNAL, "failed to poll");
    assert_true(serves("away"));
    assert_true(serves("local"));
}

static void
an_unload_waits_for_the_load_in_front_of_it(void **state)
{
    (void) state;
    answer_t load = { 0 }, unload = { 0 };

    add_model(1, "away");
    remote_set("remote1", NULL);
    start(false, NULL, 0, NULL, 0);
    inf_lifecycle_load_async(w.lc, "away", NULL, false, load_done, &load);
    inf_lifecycle_unload_async(w.lc, "away", false, load_done, &unload);
    let_come();
    wait_told(&unload);
    wait_told(&load);
    assert_ok(load.err);
    assert_ok(unload.err);
    assert_false(serves("away"));
}

static void
a_load_has_what_failed_listed_again(void **state)
{
    (void) state;
    add_model(1, "away");
    remote_set(NULL, "remote1");
    start(false, NULL, 0, NULL, 0);
    inf_repository_change_wait(change);
    unsigned asked = remote_asked();
    assert_error(inf_lifecycle_load(w.lc, "away", NULL), INF_ERR_INTERNAL,
        "failed to poll");
    assert_int_equal(remote_asked(), asked + 1);
    remote_set(NULL, NULL);
    assert_ok(inf_lifecycle_load(w.lc, "away", NULL));
    assert_true(serves("away"));
}

/* Also one that is only a part of what lies here. */
static void
an_ensemble_waits_for_where_its_models_lie(void **state)
{
    (void) state;
    answer_t load = { 0 }, local = { 0 }, unload = { 0 };

    add_both();
    remote_set("remote1", NULL);
    start(false, NULL, 0, NULL, 0);
    inf_lifecycle_load_async(w.lc, "both", NULL, false, load_done, &load);
    wait_for_row("both/1 LOADING");
    wait_for_row("local/1 READY");
    assert_false(load.told);

    let_come();
    wait_told(&load);
    assert_ok(load.err);
    assert_true(serves("both"));
    assert_true(serves("away"));
    inf_lifecycle_unload_async(w.lc, "both", true, load_done, &unload);
    wait_told(&unload);
    inf_lifecycle_load_async(w.lc, "local", NULL, false, load_done, &local);
    wait_told(&local);
    assert_ok(unload.err);
    assert_ok(local.err);
    assert_false(serves("away"));
}

/* A load of a local model doesn't wait for it. */
static void
an_ensemble_that_waits_holds_up_none_of_its_models(void **state)
{
    (void) state;
    answer_t load = { 0 };

    add_both();
    remote_set("remote1", NULL);
    start(false, NULL, 0, NULL, 0);
    inf_lifecycle_load_async(w.lc, "both", NULL, false, load_done, &load);
    wait_for_row("local/1 READY");
    assert_ok(inf_lifecycle_unload(w.lc, "local", false));
    assert_ok(inf_lifecycle_load(w.lc, "local", NULL));
    assert_false(load.told);
    let_come();
    wait_told(&load);
    assert_ok(load.err);
    assert_true(serves("both"));
}

/* It comes while the load looks where the other one lies. */
static void
an_unload_takes_no_model_from_a_load_that_still_looks_for_others(
    void **state)
{
    (void) state;
    answer_t load = { 0 }, unload = { 0 };

    add_model(0, "first");
    add_model(0, "second");
    add_ensemble("both", "first", "second");
    start(false, NULL, 0, NULL, 0);
    let_come();
    assert_ok(inf_lifecycle_load(w.lc, "first", NULL));
    remote_set("/second", NULL);
    inf_lifecycle_load_async(w.lc, "both", NULL, false, load_done, &load);
    remote_wait_for(1);
    inf_lifecycle_unload_async(w.lc, "first", false, load_done, &unload);
    wait_told(&unload);
    assert_ok(unload.err);
    assert_false(load.told);
    let_come();
    wait_told(&load);
    assert_ok(load.err);
    assert_true(serves("both"));
}

/* One repository after the other. */
static void
an_ensemble_waits_until_it_can_be_missing(void **state)
{
    (void) state;
    answer_t load = { 0 }, late = { 0 };

    add_model(1, "one");
    add_model(2, "two");
    add_ensemble("both", "one", "two");
    add_ensemble("half", "one", "none");
    remote_set("", NULL);                       /* both of them              */
    start(false, NULL, 0, NULL, 0);
    remote_wait_for(2);
    inf_lifecycle_load_async(w.lc, "both", NULL, false, load_done, &load);
    inf_lifecycle_load_async(w.lc, "half", NULL, false, load_done, &late);
    wait_for_row("both/1 LOADING");
    wait_for_row("half/1 LOADING");
    remote_set("remote2", NULL);
    wait_for_row("one/1 READY");
    assert_false(load.told);
    assert_false(late.told);

    let_come();
    wait_told(&load);
    wait_told(&late);
    assert_ok(load.err);
    assert_true(serves("both"));
    assert_error(late.err, INF_ERR_INVALID_ARG, "ensemble half contains models"
        " that are not available or ambiguous: none");
}

static void
an_ensemble_has_what_failed_listed_again(void **state)
{
    (void) state;
    add_both();
    remote_set(NULL, "remote1");
    start(false, NULL, 0, NULL, 0);
    inf_repository_change_wait(change);
    remote_set(NULL, NULL);
    assert_ok(inf_lifecycle_load(w.lc, "both", NULL));
    assert_true(serves("both"));
}

static void
the_end_does_not_wait_for_the_models_of_an_ensemble(void **state)
{
    (void) state;
    answer_t load = { 0 };

    add_model(0, "local");
    add_ensemble("both", "local", "away");
    remote_set("remote1", NULL);
    start(false, NULL, 0, NULL, 0);
    remote_wait_for(1);
    inf_lifecycle_load_async(w.lc, "both", NULL, false, load_done, &load);
    wait_waiting("both");
    inf_repository_change_stop(change);
    assert_true(inf_lifecycle_stop(w.lc, 60 * SECOND));
    assert_true(load.told);
    assert_error(load.err, INF_ERR_UNAVAILABLE, "the server is stopping");
}

/* A local model is found also when the remote repository falls silent. */
static void
a_local_model_is_loaded_without_asking_a_remote_repository(void **state)
{
    (void) state;
    answer_t away = { 0 };

    add_model(0, "local");
    add_model(1, "away");
    start(false, NULL, 0, NULL, 0);
    inf_repository_change_wait(change);
    unsigned asked = remote_asked();
    remote_set("remote1", NULL);
    assert_ok(inf_lifecycle_load(w.lc, "local", NULL));
    assert_int_equal(remote_asked(), asked);
    inf_lifecycle_load_async(w.lc, "away", NULL, false, load_done, &away);
    remote_wait_for(1);
    assert_false(away.told);
    remote_set(NULL, NULL);
    wait_told(&away);
    assert_ok(away.err);

    /* what both are known to have is searched in both */
    add_model(0, "away");
    assert_error(inf_lifecycle_load(w.lc, "away", NULL), INF_ERR_INTERNAL,
        "failed to poll");
}

/* ---- a core that comes back ---------------------------------------------- */

static void
what_was_loaded_before_comes_back_as_it_was(void **state)
{
    (void) state;
    const inf_model_id_t here = inf_model_id("local");
    const inf_model_id_t away = inf_model_id("away");
    const inf_model_id_t gone = inf_model_id("gone");
    inf_override_t *override;

    add_model(0, "local");
    add_model(1, "away");
    tree_file(w.tree, "remote1/away/7/data", "1");
    assert_ok(inf_override_new(&override));
    assert_ok(inf_override_set_config(override, INF_SLICE(
        "{\"backend\": \"x\", \"version_policy\": {\"specific\":"
        " {\"versions\": [1]}}, \"input\": [{\"name\": \"A\","
        " \"data_type\": \"TYPE_FP32\", \"dims\": [1]}], \"output\":"
        " [{\"name\": \"B\", \"data_type\": \"TYPE_FP32\","
        " \"dims\": [1]}]}")));
    remote_set("remote1", NULL);
    inf_lifecycle_hold(w.lc);
    start(false, NULL, 0, NULL, 0);
    assert_ok(inf_lifecycle_restore(w.lc, &here, NULL, false));
    assert_ok(inf_lifecycle_restore(w.lc, &away, override, false));
    assert_ok(inf_lifecycle_restore(w.lc, &gone, NULL, false));
    inf_lifecycle_release(w.lc);
    wait_for_row("local/1 READY");
    assert_false(inf_lifecycle_settled(w.lc));
    assert_string_equal(rows(), "away/-1 LOADING \ngone/-1 LOADING \n"
        "local/1 READY \n");

    let_come();
    assert_non_null(strstr(rows(), "away/1 READY \n"));
    assert_non_null(strstr(rows(), "gone/-1 UNAVAILABLE"));
    assert_true(inf_lifecycle_settled(w.lc));
}

static void
namespaces_come_back_too(void **state)
{
    (void) state;
    char m[] = "m", away[] = "away";
    char *names[] = { m, away };
    const inf_model_id_t known = { .space = w.places[1], .name = "known" };
    const inf_model_id_t bare = inf_model_id("older");
    char text[600];

    add_model(0, "m");
    add_model(1, "m");
    add_model(1, "away");
    add_model(1, "known");
    add_model(1, "older");
    remote_set("remote1", NULL);
    start(false, names, 2, NULL, 0);
    assert_ok(inf_lifecycle_restore(w.lc, &known, NULL, false));
    assert_ok(inf_lifecycle_restore(w.lc, &bare, NULL, false));
    wait_for_row("m/1 READY");
    assert_true(serves("m"));
    assert_false(inf_lifecycle_settled(w.lc));
    let_come();
    snprintf(text, sizeof(text), "%s", rows());
    assert_true(serves("away"));
    assert_true(serves("known"));
    assert_true(serves("older"));
    assert_error(find("m"), INF_ERR_INVALID_ARG, "There are 2 identifiers");
    wait_ready();
}

/* Which namespace it belongs to is known when the listing has come. */
static void
a_newly_named_model_of_a_namespace_waits_for_the_listing(void **state)
{
    (void) state;
    char m[] = "m", away[] = "away", nowhere[] = "nowhere";
    char *names[] = { m, away, nowhere };

    add_model(0, "m");
    add_model(1, "away");
    remote_set("remote1", NULL);
    start(false, names, 1, NULL, 0);
    wait_for_row("m/1 READY");
    desired.models.count = 3;
    ask_for(2);
    let_come();
    wait_for_row("nowhere/-1 UNAVAILABLE model not found");
    assert_true(serves("away"));
    assert_false(inf_lifecycle_all_ready(w.lc));
}

/* ---- changes meanwhile --------------------------------------------------- */

static void
a_repository_that_is_taken_out_is_not_waited_for(void **state)
{
    (void) state;
    answer_t away = { 0 };

    add_model(0, "local");
    add_model(1, "away");
    remote_set("remote1", NULL);
    start_all();
    remote_wait_for(1);
    inf_lifecycle_load_async(w.lc, "away", NULL, false, load_done, &away);
    ask_for(1);                             /* its listing is cut short      */
    wait_told(&away);
    inf_repository_change_wait(change);
    inf_lifecycle_wait(w.lc);
    assert_error(away.err, INF_ERR_INTERNAL, "failed to poll");
    assert_true(serves("local"));
    wait_ready();

    remote_set(NULL, NULL);
    ask_for(2);
    inf_repository_change_wait(change);
    inf_lifecycle_wait(w.lc);
    assert_true(serves("away"));
}

static void
what_is_added_meanwhile_is_not_held_up(void **state)
{
    (void) state;
    add_model(0, "local");
    add_model(1, "one");
    add_model(2, "two");
    remote_set("remote1", NULL);
    start_all();
    remote_wait_for(1);
    ask_for(3);
    wait_for_row("two/1 READY");
    assert_false(is_ready());
    ask_for(1);
    while (serves("two")) {
        usleep(1000);
    }
    ask_for(2);
    let_come();
    assert_true(serves("one"));
    assert_false(serves("two"));
    wait_ready();
}

/* Of two that are awaited each gives way to another, the first or the second:
   then it is not waited for, and the other one is listed. */
static void
one_of_two_that_are_awaited_gives_way_to_another(void **state)
{
    (void) state;

    add_model(1, "one");
    add_model(2, "two");
    add_model(3, "three");
    for (int stays = 1; stays <= 2; stays++) {
        char *to[] = { w.places[0], w.places[stays], w.places[3] };

        remote_set("", NULL);                   /* none answers              */
        if (stays == 1) {
            start_all();
        } else {
            desired.addresses = w.places;
            ask_for(1);
            inf_repository_change_wait(change);
            ask_for(3);
        }
        remote_wait_for(2);
        desired.addresses = to;
        ask_for(3);
        while (inf_repository_change_pending(change)) {
            usleep(1000);
        }
        let_come();
        wait_ready();
        assert_int_equal(serves("one"), stays == 1);
        assert_int_equal(serves("two"), stays == 2);
        assert_true(serves("three"));
    }
}

/* The old place is gone, the new one awaited: it serves until it has moved. */
static void
a_model_moves_to_a_remote_repository_without_a_gap(void **state)
{
    (void) state;
    char *to[] = { w.places[1] };

    add_model(0, "m");
    add_model(1, "m");
    desired.count = 1;
    assert_ok(inf_repositories_replace(&w.repositories, w.places, 1,
        &(bool) { false }));
    start_all();
    inf_lifecycle_wait(w.lc);
    assert_true(serves("m"));

    remote_set("remote1", NULL);
    desired.addresses = to;
    desired.count = 1;
    assert_ok(inf_repository_change_ask(change, &desired));
    remote_wait_for(1);
    while (inf_repository_change_pending(change)) {
        usleep(1000);
    }
    assert_true(serves("m"));
    let_come();
    assert_true(serves("m"));
    wait_ready();
    assert_int_equal(fake_count("init m/1"), 2);
}

static void
what_has_nowhere_to_move_to_goes(void **state)
{
    (void) state;
    char *to[] = { w.places[1] };

    add_model(0, "m");
    assert_ok(inf_repositories_replace(&w.repositories, w.places, 1,
        &(bool) { false }));
    start_all();
    inf_lifecycle_wait(w.lc);
    desired.addresses = to;
    desired.count = 1;
    assert_ok(inf_repository_change_ask(change, &desired));
    inf_repository_change_wait(change);
    inf_lifecycle_wait(w.lc);
    assert_false(serves("m"));
    wait_ready();
}

/* Repositories are silent, fail, go and come: in the end all models are
   there. */
static void
repositories_come_and_go_under_loads(void **state)
{
    (void) state;
    static const char *const names[] = { "local", "one", "two", "nowhere" };
    static const char *const moods[] = { NULL, "remote1", "remote2" };

    add_model(0, "local");
    add_model(1, "one");
    add_model(2, "two");
    start_all();
    for (unsigned i = 0; i < 60; i++) {
        remote_set(moods[i % 3], moods[(i / 2) % 3]);
        ask_for(1 + (i / 3) % 3);
        inf_lifecycle_load_async(w.lc, names[i % 4], NULL, false, NULL, NULL);
        if (i % 5 == 0) {
            inf_lifecycle_relist(w.lc);
        }
        usleep(i % 7 * 500);
    }

    remote_set(NULL, NULL);
    ask_for(3);
    inf_repository_change_wait(change);
    inf_lifecycle_wait(w.lc);
    ask_for(3);                             /* what had failed meanwhile     */
    let_come();
    assert_true(serves("local"));
    assert_true(serves("one"));
    assert_true(serves("two"));
    wait_ready();
}

/* ---- the end ------------------------------------------------------------- */

static void
the_end_does_not_wait_for_a_remote_repository(void **state)
{
    (void) state;
    answer_t away = { 0 };

    add_model(0, "local");
    add_model(1, "away");
    remote_set("remote1", NULL);
    start_all();
    remote_wait_for(1);
    inf_lifecycle_load_async(w.lc, "away", NULL, false, load_done, &away);
    wait_waiting("away");
    inf_repository_change_stop(change);
    assert_true(inf_lifecycle_stop(w.lc, 60 * SECOND));
    assert_true(away.told);
    assert_error(away.err, INF_ERR_UNAVAILABLE, "the server is stopping");
}

static sem_t missed;

static void
until_the_end(void *userp)
{
    bool stopping = false;

    (void) userp;
    sem_post(&missed);
    while (!stopping) {
        usleep(1000);
        inf_lock(&w.lc->lock);
        stopping = w.lc->set.stopping;
        inf_unlock(&w.lc->lock);
    }
}

/* Another repository, which was asked in vain, lets the load ask again: so
   long that it would only then begin to wait. */
static void
the_end_is_heard_by_a_load_that_would_begin_to_wait(void **state)
{
    (void) state;
    answer_t away = { 0 };

    remote_set("remote2", "remote1");
    start(false, NULL, 0, NULL, 0);
    for (bool failed = false; !failed; usleep(1000)) {
        inf_repository_list_t *list = inf_repositories_take(&w.repositories);
        failed = inf_repository_list_any(list, INF_REPOSITORY_FAILED, "");
        inf_repository_list_unref(list);
    }
    sem_init(&missed, 0, 0);
    inf_lifecycle_on_relist(w.lc, until_the_end, NULL);
    inf_lifecycle_load_async(w.lc, "away", NULL, false, load_done, &away);
    sem_wait(&missed);
    inf_repository_change_stop(change);
    assert_true(inf_lifecycle_stop(w.lc, 60 * SECOND));
    assert_true(away.told);
    assert_error(away.err, INF_ERR_UNAVAILABLE, "the server is stopping");
    sem_destroy(&missed);
}

/* Two loads, by names of which only the first lies in the awaited repository,
   wait for it: the first serves then, the second is an error that says why. */
static void
loads_wait_for_the_repositories(const char *const names[2],
    const char *config, const char *why)
{
    answer_t told[2] = { 0 };

    remote_set("remote1", NULL);
    start(false, NULL, 0, NULL, 0);
    remote_wait_for(1);
    for (int i = 0; i < 2; i++) {
        inf_override_t *o;
        assert_ok(inf_override_new(&o));
        assert_ok(inf_override_set_config(o, inf_slice_str(config)));
        assert_ok(inf_override_add_file(o, "1/data", inf_slice_str("x")));
        inf_lifecycle_load_async(w.lc, names[i], o, false, load_done, &told[i]);
        wait_waiting(names[i]);
        assert_false(told[i].told);
    }

    let_come();
    for (int i = 0; i < 2; i++) {
        wait_told(&told[i]);
    }
    assert_ok(told[0].err);
    assert_true(serves(names[0]));
    assert_error(told[1].err, INF_ERR_INVALID_ARG, why);
}

/* Files of a request may have an odd name if a repository has a directory of
   it: that is not known before all are listed. */
static void
files_with_an_odd_name_wait_for_the_repositories(void **state)
{
    (void) state;
    static const char *const names[] = { "o d;d", "e v;il" };

    add_model(1, names[0]);
    loads_wait_for_the_repositories(names, "{\"backend\":\"x\","
        "\"input\":[{\"name\":\"A\",\"data_type\":\"TYPE_FP32\","
        "\"dims\":[1]}],\"output\":[{\"name\":\"B\","
        "\"data_type\":\"TYPE_FP32\",\"dims\":[1]}]}",
        "its name has the character ' '");
}

/* A request's configuration may name a path that the repository's one names:
   that is not known before all are listed. */
static void
paths_of_a_request_wait_for_the_repositories(void **state)
{
    (void) state;
    static const char *const names[] = { "known", "unknown" };

    w.core_config->values->code_upload = false;
    lifecycle_world_restart(&w);
    tree_file(w.tree, "backends/identity/libtriton_identity.so", "");
    lifecycle_world_add_model(&w, "remote1", names[0], "backend: 'identity'"
        " parameters { key: 'p' value { string_value: '/srv/p' } }");
    loads_wait_for_the_repositories(names, "{\"backend\":\"identity\","
        "\"input\":[{\"name\":\"A\",\"data_type\":\"TYPE_FP32\","
        "\"dims\":[1]}],\"output\":[{\"name\":\"B\","
        "\"data_type\":\"TYPE_FP32\",\"dims\":[1]}],"
        "\"parameters\":{\"p\":{\"string_value\":\"/srv/p\"}}}",
        "parameters[\"p\"]");
}

/* Also when it would have had to answer once more. */
static void
the_end_cuts_loads_short(void **state)
{
    (void) state;
    answer_t away = { 0 };

    add_model(1, "away");
    start(false, NULL, 0, NULL, 0);
    inf_repository_change_wait(change);
    remote_set("remote1", NULL);
    inf_lifecycle_load_async(w.lc, "away", NULL, false, load_done, &away);
    remote_wait_for(1);
    inf_repository_change_stop(change);
    assert_true(inf_lifecycle_stop(w.lc, 60 * SECOND));
    assert_true(away.told);
    assert_error(away.err, INF_ERR_INTERNAL, "failed to poll");
}

/* The registered one is listed first. */
static void
a_star_means_a_name_that_a_registered_repository_has_too(void **state)
{
    (void) state;
    char star[] = "*";
    char *names[] = { star };
    const inf_inventory_query_t q = {
        .occasion = INF_INVENTORY_STATUS,
        .desired = { .names = names, .count = 1 }
    };
    const inf_model_id_t both = inf_model_id("both");
    const inf_model_id_t own = inf_model_id("own");
    inf_inventory_t *l;

    add_model(0, "configured");
    add_model(1, "both");
    add_model(2, "both");
    add_model(2, "own");
    remote_set("remote1", NULL);
    assert_ok(inf_repositories_add(&w.repositories,
        &(inf_registration_t) { .address = w.places[2] }, NULL));
    start(false, names, 1, NULL, 0);
    inf_lifecycle_wait(w.lc);
    assert_string_equal(rows(), "configured/1 READY \n");
    let_come();
    assert_string_equal(rows(), "configured/1 READY \n");

    assert_ok(inf_inventory_new(&w.repositories, &q, &l));
    const inf_repository_name_t *n = inf_inventory_find(l, &both);
    assert_true(n->duplicate);
    assert_string_equal(l->list->items[n->repository]->address, w.places[1]);
    assert_string_equal(l->list->items[n->other]->address, w.places[2]);
    assert_true(inf_reconcile_desires(l, NULL, n, "both"));
    n = inf_inventory_find(l, &own);
    assert_false(n->duplicate);
    assert_false(inf_reconcile_desires(l, NULL, n, "own"));
    inf_inventory_unref(l);
}

int
main(void)
{
    alarm(540);
    inf_log_set_levels(false, false, false, 0);
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define T2(f) cmocka_unit_test_setup_teardown(f, setup_two, teardown)
#define TN(f) cmocka_unit_test_setup_teardown(f, setup_namespaces, teardown)
#define TN2(f) \
    cmocka_unit_test_setup_teardown(f, setup_two_namespaces, teardown)
    const struct CMUnitTest tests[] = {
        T(local_models_serve_while_a_remote_repository_is_silent),
        T2(each_comes_when_it_can),
        T(a_listing_that_fails_ends_the_start_but_nothing_is_ready),
        T(a_reload_of_the_configuration_tries_again_what_failed),
        T(a_reload_of_the_configuration_lists_again_what_could_not_be_listed),
        T(what_is_named_waits_until_it_can_be_missing),
        T(what_is_named_says_why_it_is_not_known),
        T(a_star_means_what_comes_late_too_but_for_what_was_unloaded),
        T(a_star_means_a_name_that_a_registered_repository_has_too),
        T(without_a_list_nothing_is_waited_for),
        T(a_name_in_both_serves_until_both_are_known),
        T(both_come_before_the_load),
        T(both_come_during_the_load),
        T(both_come_before_the_load_of_what_is_named),
        T(both_come_during_the_load_of_what_is_named),
        T(a_name_of_the_list_in_both_is_a_failure),
        T(a_load_waits_only_for_what_no_other_repository_has),
        T(an_unload_waits_for_the_load_in_front_of_it),
        T(a_load_has_what_failed_listed_again),
        T(an_ensemble_waits_for_where_its_models_lie),
        TN(an_ensemble_waits_for_where_its_models_lie),
        TN(an_ensemble_that_waits_holds_up_none_of_its_models),
        TN(an_unload_takes_no_model_from_a_load_that_still_looks_for_others),
        T2(an_ensemble_waits_until_it_can_be_missing),
        TN2(an_ensemble_waits_until_it_can_be_missing),
        T(an_ensemble_has_what_failed_listed_again),
        TN(an_ensemble_has_what_failed_listed_again),
        T(the_end_does_not_wait_for_the_models_of_an_ensemble),
        TN(the_end_does_not_wait_for_the_models_of_an_ensemble),
        T(a_local_model_is_loaded_without_asking_a_remote_repository),
        T(what_was_loaded_before_comes_back_as_it_was),
        TN(namespaces_come_back_too),
        TN(a_newly_named_model_of_a_namespace_waits_for_the_listing),
        T(a_repository_that_is_taken_out_is_not_waited_for),
        T(what_is_added_meanwhile_is_not_held_up),
        T2(one_of_two_that_are_awaited_gives_way_to_another),
        T(a_model_moves_to_a_remote_repository_without_a_gap),
        T(what_has_nowhere_to_move_to_goes),
        T2(repositories_come_and_go_under_loads),
        T(the_end_does_not_wait_for_a_remote_repository),
        T2(the_end_is_heard_by_a_load_that_would_begin_to_wait),
        T(files_with_an_odd_name_wait_for_the_repositories),
        T(paths_of_a_request_wait_for_the_repositories),
        T(the_end_cuts_loads_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
