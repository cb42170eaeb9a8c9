/* Ensembles come after their models, go with them and come back. */

#include "repository/lifecycle_world.h"

#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/repository/lifecycle_parts.h"
#include "core/repository/repository_change.h"
#include "core/sched/ensemble.h"

#define SETTLE_NS 1000000u

static lifecycle_world_t w;
static inf_plugin_ops_t backend_ops;

static void
world_open_at(size_t places, bool namespacing, uint32_t threads,
    bool load_composing)
{
    static const char *const names[] = { "r0", "r1", NULL };

    lifecycle_world_begin(&w, names);
    assert_ok(inf_repositories_open(w.places, places, namespacing,
        inf_storage_open, &w.repositories));
    backend_ops = fake_ops;
    w.options.plugins = &backend_ops;
    w.options.load_composing = load_composing;
    w.core_config->values->load_threads = threads;
    assert_ok(inf_lifecycle_new(&w.options, &w.lc));
}

static void
world_open(uint32_t threads, bool load_composing)
{
    world_open_at(1, false, threads, load_composing);
}

static void
world_close(void)
{
    lifecycle_world_end(&w);
}

static void
add_model_at(int place, const char *name, const char *config)
{
    char path[300];

    snprintf(path, sizeof(path), "r%d/%s/1", place, name);
    tree_dir(w.tree, path);
    snprintf(path, sizeof(path), "r%d/%s/config.pbtxt", place, name);
    tree_file(w.tree, path, config);
}

static void
add_model(const char *name)
{
    add_model_at(0, name, "backend: 'x' " TENSORS);
}

/* One step after the other; "m" is the latest of m, "m:3" its version 3. */
static void
ensemble_text(char *text, size_t cap, const char *members)
{
    char list[512];
    char from[16] = "A";
    char *save;
    int i = 0;

    snprintf(list, sizeof(list), "%s", members);
    int n = snprintf(text, cap, "platform: 'ensemble' " TENSORS
        " ensemble_scheduling {");
    for (char *m = strtok_r(list, " ", &save); m != NULL; i++) {
        char *next = strtok_r(NULL, " ", &save);
        char *colon = strchr(m, ':');
        char to[16] = "B";
        if (next != NULL) {
            snprintf(to, sizeof(to), "t%d", i);
        }
        n += snprintf(text + n, cap - (size_t) n, " step { model_name: '%.*s'"
            " model_version: %s input_map { key: 'A' value: '%s' }"
            " output_map { key: 'B' value: '%s' } }",
            (int) (colon != NULL ? (size_t) (colon - m) : strlen(m)), m,
            colon != NULL ? colon + 1 : "-1", from, to);
        snprintf(from, sizeof(from), "%s", to);
        m = next;
    }
    snprintf(text + n, cap - (size_t) n, " }");
}

static void
add_ensemble_at(int place, const char *name, const char *members)
{
    char text[4096];

    ensemble_text(text, sizeof(text), members);
    add_model_at(place, name, text);
}

static void
add_ensemble(const char *name, const char *members)
{
    add_ensemble_at(0, name, members);
}

static void
remove_model_at(int place, const char *name)
{
    char path[300];

    snprintf(path, sizeof(path), "r%d/%s", place, name);
    assert_int_equal(nftw(tree_path(w.tree, path), tree_remove, 16,
        FTW_DEPTH | FTW_PHYS), 0);
}

static void
remove_model(const char *name)
{
    remove_model_at(0, name);
}

static const char *
rows(void)
{
    return index_rows(&w.index, w.lc);
}

static void
assert_row(const char *row)
{
    if (strstr(rows(), row) == NULL) {
        fail_msg("no \"%s\" in \"%s\"", row, w.index.text);
    }
}

static void
wait_for_row(const char *row)
{
    index_rows_wait(&w.index, w.lc, row);
}

static void
start_all(void)
{
    assert_ok(inf_lifecycle_start(w.lc, true, NULL, 0, NULL, 0));
    inf_lifecycle_wait(w.lc);
}

static inf_err_t *
find(const char *name, int64_t version, inf_model_t **out)
{
    inf_registry_reader_t reader;

    inf_registry_reader_init(&reader, &w.registry);
    inf_err_t *err = inf_registry_find(&reader, inf_slice_str(name), version,
        out);
    inf_registry_reader_fini(&reader);
    return err;
}

/* The object that serves; only to be compared. */
static const inf_model_t *
serving(const char *name)
{
    inf_model_t *model;

    assert_ok(find(name, -1, &model));
    inf_model_unref(model);
    return model;
}

static void
assert_serves_not(const char *name, inf_err_code_t code, const char *part)
{
    inf_model_t *model;
    assert_error(find(name, -1, &model), code, part);
}

static void
members_come_first_with_one_loader(void **state)
{
    (void) state;

    world_open(1, false);
    add_ensemble("a", "b n");           /* an ensemble of an ensemble        */
    add_ensemble("b", "m n");
    add_model("m");
    add_model("n");
    start_all();
    assert_string_equal(rows(), "a/1 READY \nb/1 READY \nm/1 READY \n"
        "n/1 READY \n");
    assert_true(inf_lifecycle_all_ready(w.lc));
    assert_non_null(serving("a")->sched.ensemble);
    assert_int_equal(fake_count("init a/1"), 0);
    assert_int_equal(fake_count("init m/1"), 1);
    world_close();
}

static void
a_slow_member_holds_up_only_its_ensemble(void **state)
{
    (void) state;

    world_open(2, false);
    fake.hold = "init m/1";
    add_ensemble("e", "m");
    add_model("m");
    add_model("z");
    assert_ok(inf_lifecycle_start(w.lc, true, NULL, 0, NULL, 0));
    wait_for_row("z/1 READY");
    wait_for_row("e/1 LOADING");
    assert_false(inf_lifecycle_settled(w.lc));
    fake_release();
    inf_lifecycle_wait(w.lc);
    assert_row("e/1 READY");
    world_close();
}

static void
what_is_missing_is_said_and_all_others_serve(void **state)
{
    (void) state;

    world_open(1, false);
    add_ensemble("absent", "m nowhere neither");
    add_ensemble("version", "m:7");
    add_ensemble("zero", "m:0");
    add_ensemble("failed", "m bad");
    add_ensemble("above", "failed");
    add_ensemble("self", "self");
    add_ensemble("two_a", "two_b");
    add_ensemble("two_b", "two_a");
    add_ensemble("fine", "m:1");
    add_model("m");
    add_model("bad");
    fake.fail = "init bad/1";
    start_all();
    assert_row("absent/1 UNAVAILABLE Invalid argument: ensemble absent"
        " contains models that are not available or ambiguous: nowhere,"
        " neither\n");
    assert_row("version/1 UNAVAILABLE Invalid argument: ensemble 'version'"
        " depends on 'm' whose required version 7 is not loaded.\n");
    assert_row("zero/1 UNAVAILABLE Invalid argument: ensemble 'zero' depends"
        " on 'm' whose required version 0 is not loaded.\n");
    assert_row("failed/1 UNAVAILABLE Invalid argument: ensemble 'failed'"
        " depends on 'bad' which has no loaded version. Model 'bad' loading"
        " failed with error: version 1 is at UNAVAILABLE state: Unsupported:"
        " told to fail;\n");
    assert_row("above/1 UNAVAILABLE Invalid argument: ensemble 'above'"
        " depends on 'failed' which is not valid. Model 'failed' failed with"
        " error: ");
    assert_row("self/1 UNAVAILABLE Invalid argument: circular dependency"
        " between ensembles: self -> ... -> self -> self (self -> self)\n");
    assert_row("two_a/1 UNAVAILABLE Invalid argument: circular dependency"
        " between ensembles: two_a -> ... -> two_b -> two_a (two_a -> two_b ->"
        " two_a)\n");
    assert_row("two_b/1 UNAVAILABLE Invalid argument: circular dependency"
        " between ensembles: two_b -> ... -> two_a -> two_b (two_b -> two_a ->"
        " two_b)\n");
    assert_row("fine/1 READY \n");
    assert_row("m/1 READY \n");
    assert_false(inf_lifecycle_all_ready(w.lc));
    world_close();
}

static void
it_comes_when_what_was_missing_does(void **state)
{
    (void) state;

    world_open(1, true);
    add_ensemble("e", "m late");
    add_ensemble("above", "e");
    add_model("m");
    assert_error(inf_lifecycle_load(w.lc, "above", NULL),
        INF_ERR_INVALID_ARG, "load failed for model 'above': ensemble"
        " 'above' depends on 'e' which is not valid.");
    assert_row("m/1 READY \n");
    add_model("late");
    assert_ok(inf_lifecycle_load(w.lc, "late", NULL));
    assert_string_equal(rows(), "above/1 READY \ne/1 READY \nlate/1 READY \n"
        "m/1 READY \n");
    assert_true(inf_lifecycle_all_ready(w.lc));
    world_close();
}

/* As far as readiness goes it is one that was never loaded. */
static void
one_that_a_request_wants_and_cannot_be_made_counts_for_nothing(void **state)
{
    (void) state;

    world_open(1, true);
    add_ensemble("e", "m late");
    add_ensemble("self", "self");
    add_model("m");
    assert_error(inf_lifecycle_load(w.lc, "e", NULL), INF_ERR_INVALID_ARG,
        "load failed for model 'e'");
    assert_error(inf_lifecycle_load(w.lc, "self", NULL), INF_ERR_INVALID_ARG,
        "load failed for model 'self'");
    assert_true(inf_lifecycle_all_ready(w.lc));
    assert_ok(inf_lifecycle_unload(w.lc, "e", false));
    assert_ok(inf_lifecycle_unload(w.lc, "self", false));
    assert_string_equal(rows(), "e/1 UNAVAILABLE unloaded\nm/1 READY \n"
        "self/1 UNAVAILABLE unloaded\n");
    assert_true(inf_lifecycle_all_ready(w.lc));
    world_close();
}

static void
a_circle_that_is_broken_serves(void **state)
{
    (void) state;

    world_open(2, true);
    add_ensemble("a", "b");
    add_ensemble("b", "a");
    add_model("m");
    assert_error(inf_lifecycle_load(w.lc, "a", NULL), INF_ERR_INVALID_ARG,
        "circular dependency between ensembles: a -> ... -> b -> a (a -> b ->"
        " a)");
    add_ensemble("b", "m");
    assert_ok(inf_lifecycle_load(w.lc, "b", NULL));
    assert_string_equal(rows(), "a/1 READY \nb/1 READY \nm/1 READY \n");
    world_close();
}

static void
what_only_came_with_it_goes_with_it_if_asked(void **state)
{
    (void) state;

    world_open(1, true);
    add_ensemble("outer", "inner m own");
    add_ensemble("inner", "m deep");
    add_ensemble("other", "m");
    add_model("m");
    add_model("deep");
    add_model("own");
    assert_ok(inf_lifecycle_load(w.lc, "own", NULL));
    assert_ok(inf_lifecycle_load(w.lc, "outer", NULL));
    assert_ok(inf_lifecycle_load(w.lc, "other", NULL));
    assert_string_equal(rows(), "deep/1 READY \ninner/1 READY \nm/1 READY \n"
        "other/1 READY \nouter/1 READY \nown/1 READY \n");

    assert_ok(inf_lifecycle_unload(w.lc, "outer", true));
    wait_for_row("deep/1 UNAVAILABLE unloaded");
    wait_for_row("inner/1 UNAVAILABLE unloaded");
    wait_for_row("outer/1 UNAVAILABLE unloaded");
    assert_row("own/1 READY");
    assert_row("m/1 READY");            /* "other" needs it                  */
    assert_row("other/1 READY");

    assert_ok(inf_lifecycle_unload(w.lc, "other", false));
    wait_for_row("other/1 UNAVAILABLE unloaded");
    assert_row("m/1 READY");
    assert_ok(inf_lifecycle_load(w.lc, "other", NULL));
    assert_ok(inf_lifecycle_unload(w.lc, "other", true));
    wait_for_row("other/1 UNAVAILABLE unloaded");
    wait_for_row("m/1 UNAVAILABLE unloaded");
    assert_true(inf_lifecycle_all_ready(w.lc));
    world_close();
}

/* As Triton does it. */
static void
loading_what_came_with_an_ensemble_changes_nothing(void **state)
{
    (void) state;

    world_open(1, true);
    add_ensemble("e", "m");
    add_model("m");
    assert_ok(inf_lifecycle_load(w.lc, "e", NULL));
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_ok(inf_lifecycle_unload(w.lc, "e", true));
    wait_for_row("m/1 UNAVAILABLE unloaded");
    world_close();
}

static void
it_goes_with_its_member_and_comes_back(void **state)
{
    (void) state;
    inf_model_t *running;

    world_open(1, true);
    add_ensemble("above", "e");
    add_ensemble("e", "m n");
    add_model("m");
    add_model("n");
    assert_ok(inf_lifecycle_load(w.lc, "above", NULL));
    assert_ok(find("above", -1, &running));

    assert_ok(inf_lifecycle_unload(w.lc, "m", false));
    assert_serves_not("e", INF_ERR_UNAVAILABLE, "Request for unknown model:"
        " 'e' is not at ready state: ensemble 'e' depends on 'm' which has no"
        " loaded version.");
    assert_serves_not("above", INF_ERR_UNAVAILABLE, "ensemble 'above' depends"
        " on 'e' which is not valid.");
    assert_row("above/1 UNAVAILABLE Invalid argument: ensemble 'above'"
        " depends on 'e' which is not valid.");
    assert_row("e/1 UNAVAILABLE Invalid argument: ensemble 'e' depends on 'm'"
        " which has no loaded version.\n");
    assert_row("m/1 UNLOADING");        /* a request is on its way           */
    assert_row("n/1 READY");
    inf_model_unref(running);
    wait_for_row("m/1 UNAVAILABLE unloaded");
    assert_true(inf_lifecycle_all_ready(w.lc));

    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_string_equal(rows(), "above/1 READY \ne/1 READY \nm/1 READY \n"
        "n/1 READY \n");

    assert_ok(inf_lifecycle_unload(w.lc, "n", true));
    assert_ok(inf_lifecycle_unload(w.lc, "e", false));
    assert_ok(inf_lifecycle_load(w.lc, "n", NULL));
    assert_row("e/1 UNAVAILABLE unloaded");     /* nobody wants it           */
    world_close();
}

typedef struct {
    _Atomic bool stop;
    _Atomic int  failures;
    _Atomic int  asked;
} hammer_t;

static void *
hammer_main(void *arg)
{
    hammer_t *h = arg;
    inf_registry_reader_t reader;
    inf_model_t *model;

    inf_registry_reader_init(&reader, &w.registry);
    while (!h->stop) {
        inf_err_t *err = inf_registry_find(&reader, inf_slice_str("above"),
            -1, &model);
        h->asked++;
        if (err != NULL) {
            h->failures++;
            inf_err_free(err);
            continue;
        }
        h->failures += model->sched.ensemble == NULL;
        inf_model_unref(model);
    }
    inf_registry_reader_fini(&reader);
    return NULL;
}

static void
a_member_that_is_loaded_anew_takes_its_ensembles_along(void **state)
{
    (void) state;
    hammer_t hammer = { .stop = false };
    pthread_t thread;

    world_open(2, true);
    add_ensemble("above", "e");
    add_ensemble("e", "m");
    add_model("m");
    assert_ok(inf_lifecycle_load(w.lc, "above", NULL));
    assert_int_equal(pthread_create(&thread, NULL, hammer_main, &hammer), 0);

    for (int i = 0; i < 50; i++) {
        const inf_model_t *above = serving("above");
        char label[32];
        snprintf(label, sizeof(label), "%d", i);
        tree_file(w.tree, "r0/m/1/data", label);
        tree_file(w.tree, "r0/m/other", label);
        inf_model_t *old;
        assert_ok(find("above", -1, &old));
        assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
        assert_ptr_not_equal(serving("above"), above);
        inf_model_unref(old);
    }
    while (hammer.asked < 1000) {
        usleep(100);
    }
    hammer.stop = true;
    pthread_join(thread, NULL);
    assert_int_equal(hammer.failures, 0);
    wait_for_row("m/1 READY");
    world_close();
}

static void
nothing_is_made_anew_without_a_reason(void **state)
{
    (void) state;

    world_open(1, true);
    add_ensemble("e", "m");
    add_model("m");
    assert_ok(inf_lifecycle_load(w.lc, "e", NULL));
    const inf_model_t *e = serving("e");
    const inf_model_t *m = serving("m");
    assert_ok(inf_lifecycle_load(w.lc, "e", NULL));
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_ptr_equal(serving("e"), e);
    assert_ptr_equal(serving("m"), m);

    fake.fail = "init m/1";             /* the old one goes on               */
    tree_file(w.tree, "r0/m/1/data", "new");
    assert_error(inf_lifecycle_load(w.lc, "m", NULL), INF_ERR_INVALID_ARG,
        "told to fail");
    assert_ptr_equal(serving("e"), e);
    fake.fail = NULL;

    assert_ok(inf_lifecycle_load(w.lc, "e", NULL)); /* compares m, too       */
    assert_ptr_not_equal(serving("m"), m);
    assert_ptr_not_equal(serving("e"), e);
    world_close();
}

static void
any_change_of_its_files_makes_it_anew(void **state)
{
    (void) state;

    world_open(1, true);
    add_ensemble("e", "m");
    add_model("m");
    assert_ok(inf_lifecycle_load(w.lc, "e", NULL));
    const inf_model_t *e = serving("e");
    const inf_model_t *m = serving("m");
    inf_model_t *held;
    assert_ok(find("e", -1, &held));
    tree_dir(w.tree, "r0/e/2");
    tree_file(w.tree, "r0/e/note", "x");
    assert_ok(inf_lifecycle_load(w.lc, "e", NULL));
    assert_ptr_not_equal(serving("e"), e);
    assert_int_equal(serving("e")->version, 2);
    assert_ptr_equal(serving("m"), m);
    inf_model_unref(held);
    world_close();
}

static void
the_latest_version_is_followed_a_named_one_is_not(void **state)
{
    (void) state;

    world_open(1, true);
    add_ensemble("latest", "m");
    add_ensemble("first", "m:1");
    add_model_at(0, "m", "backend: 'x' version_policy { all {} } " TENSORS);
    assert_ok(inf_lifecycle_load(w.lc, "latest", NULL));
    assert_ok(inf_lifecycle_load(w.lc, "first", NULL));
    const inf_model_t *latest = serving("latest");
    const inf_model_t *first = serving("first");
    inf_model_t *held;
    assert_ok(find("latest", -1, &held));

    tree_dir(w.tree, "r0/m/2");
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_ptr_not_equal(serving("latest"), latest);
    assert_ptr_equal(serving("first"), first);
    inf_model_unref(held);

    add_model("m");                     /* the latest alone                  */
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_row("first/1 UNAVAILABLE Invalid argument: ensemble 'first'"
        " depends on 'm' whose required version 1 is not loaded.\n");
    assert_row("latest/1 READY");
    world_close();
}

static void
members_that_do_not_fit_are_tried_again_when_they_change(void **state)
{
    (void) state;

    world_open(1, true);
    add_ensemble("e", "m");
    add_model_at(0, "m", "backend: 'x' input { name: 'A' data_type: TYPE_INT8"
        " dims: 1 } output { name: 'B' data_type: TYPE_FP32 dims: 1 }");
    assert_error(inf_lifecycle_load(w.lc, "e", NULL), INF_ERR_INVALID_ARG,
        "load failed for model 'e'");
    assert_true(inf_lifecycle_all_ready(w.lc));
    add_model("m");
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_row("e/1 READY");
    assert_true(inf_lifecycle_all_ready(w.lc));

    /* what served goes on with what it was made of */
    const inf_model_t *e = serving("e");
    add_model_at(0, "m", "backend: 'x' input { name: 'A' data_type: TYPE_INT8"
        " dims: 1 } output { name: 'B' data_type: TYPE_FP32 dims: 1 }");
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_ptr_equal(serving("e"), e);
    assert_row("e/1 READY Invalid argument: ");
    world_close();
}

static void
a_configuration_that_names_others_counts_from_then_on(void **state)
{
    (void) state;

    world_open(1, true);
    add_ensemble("e", "m");
    add_model("m");
    add_model("n");
    assert_ok(inf_lifecycle_load(w.lc, "e", NULL));
    assert_ok(inf_lifecycle_unload(w.lc, "m", false));
    add_ensemble("e", "n");
    assert_ok(inf_lifecycle_load(w.lc, "e", NULL));
    const inf_model_t *e = serving("e");
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_ok(inf_lifecycle_unload(w.lc, "m", false));
    assert_ptr_equal(serving("e"), e);

    add_ensemble("e", "nowhere");       /* what serves is still made of n    */
    assert_error(inf_lifecycle_load(w.lc, "e", NULL), INF_ERR_INVALID_ARG,
        "not available");
    assert_ptr_equal(serving("e"), e);
    assert_ok(inf_lifecycle_unload(w.lc, "n", false));
    assert_serves_not("e", INF_ERR_UNAVAILABLE, "depends on 'n'");
    assert_ok(inf_lifecycle_load(w.lc, "n", NULL));
    (void) serving("e");

    add_model("e");                     /* no ensemble any more              */
    assert_ok(inf_lifecycle_load(w.lc, "e", NULL));
    assert_ok(inf_lifecycle_unload(w.lc, "n", false));
    assert_null(serving("e")->sched.ensemble);
    world_close();
}

static void
a_lost_process_takes_its_ensembles_along(void **state)
{
    (void) state;
    inf_model_t *e;
    inf_model_t *m;

    world_open(1, true);
    add_ensemble("e", "m");
    add_model("m");
    assert_ok(inf_lifecycle_load(w.lc, "e", NULL));
    assert_ok(find("e", -1, &e));
    assert_ok(find("m", -1, &m));
    fake.hold = "init m/1";
    inf_lifecycle_child_died(w.lc, m, "its process died");
    assert_serves_not("e", INF_ERR_UNAVAILABLE, "ensemble 'e' depends on 'm'"
        " which has no loaded version. Model 'm' loading failed with error:"
        " version 1 is at UNAVAILABLE state: its process died;");
    fake_release();
    wait_for_row("e/1 READY");
    assert_ptr_not_equal(serving("e"), e);
    inf_model_unref(e);
    inf_model_unref(m);
    world_close();
}

/* ---- repositories that change -------------------------------------------- */

static void
poll_now(void)
{
    assert_ok(inf_poll_once(w.poll, true));
    inf_lifecycle_wait(w.lc);
}

static void
poll_follows_members_and_ensembles(void **state)
{
    (void) state;
    world_open(2, false);
    assert_ok(inf_poll_new(w.lc, w.pollers, SETTLE_NS, &w.poll));
    start_all();
    add_ensemble("e", "m");
    poll_now();
    assert_row("e/1 UNAVAILABLE Invalid argument: ensemble e contains models"
        " that are not available or ambiguous: m\n");
    add_model("m");
    poll_now();
    assert_string_equal(rows(), "e/1 READY \nm/1 READY \n");

    remove_model("m");
    poll_now();
    assert_row("e/1 UNAVAILABLE Invalid argument: ensemble 'e' depends on 'm'"
        " which has no loaded version.\n");
    wait_for_row("m/1 UNAVAILABLE unloaded");
    const char *before = strdup(rows());
    poll_now();
    assert_string_equal(rows(), before);
    free((char *) (uintptr_t) before);
    add_model("m");
    poll_now();
    assert_row("e/1 READY");

    remove_model("m");                  /* and what waits for it, too        */
    poll_now();
    remove_model("e");
    poll_now();
    add_model("m");
    poll_now();
    assert_row("e/1 UNAVAILABLE unloaded");
    world_close();
}

static void
members_in_a_repository_that_comes_and_goes(void **state)
{
    (void) state;
    inf_repository_change_t *change;

    world_open(1, false);
    const inf_repository_desired_t both = {
        .addresses = w.places, .count = 2,
        .models = { .all = true }
    };
    const inf_repository_desired_t one = {
        .addresses = w.places, .count = 1,
        .models = { .all = true }
    };
    assert_ok(inf_repository_change_new(w.lc, w.pollers, &one,
        &change));
    add_ensemble("e", "m");
    add_model_at(1, "m", "backend: 'x' " TENSORS);
    start_all();
    assert_row("e/1 UNAVAILABLE");
    for (int i = 0; i < 3; i++) {
        assert_ok(inf_repository_change_ask(change, &both));
        inf_repository_change_wait(change);
        inf_lifecycle_wait(w.lc);
        assert_row("e/1 READY");
        assert_ok(inf_repository_change_ask(change, &one));
        inf_repository_change_wait(change);
        inf_lifecycle_wait(w.lc);
        assert_row("e/1 UNAVAILABLE Invalid argument: ensemble 'e' depends on"
            " 'm' which has no loaded version.\n");
    }
    inf_repository_change_stop(change);
    inf_repository_change_free(change);
    world_close();
}

/* ---- namespaces ---------------------------------------------------------- */

/* The object that serves as that model of that repository; only to be
   compared. */
static const inf_model_t *
serving_at(int place, const char *name)
{
    const inf_model_id_t id = { .space = w.places[place], .name = name };
    const inf_model_t *model = NULL;

    inf_lock(&w.lc->lock);
    const inf_model_record_t *r = inf_model_set_find(&w.lc->set, &id);
    if (r != NULL && r->version_count > 0) {
        model = r->versions[r->version_count - 1].model;
    }
    inf_unlock(&w.lc->lock);
    return model;
}

static const inf_model_t *
member_at(int place, const char *name)
{
    const inf_model_t *e = serving_at(place, name);
    assert_non_null(e);
    return inf_ensemble_composing_model(e->sched.ensemble, 0);
}

static void
members_are_those_of_its_own_repository(void **state)
{
    (void) state;

    for (int i = 0; i < 2; i++) {
        world_open_at(2, true, 1, i == 1);
        for (int place = 0; place < 2; place++) {
            add_ensemble_at(place, "e", "m");
            add_model_at(place, "m", "backend: 'x' " TENSORS);
        }
        if (i == 0) {
            start_all();
        } else {
            assert_ok(inf_lifecycle_load(w.lc, "e", NULL));
        }
        for (int place = 0; place < 2; place++) {
            assert_ptr_equal(member_at(place, "e"), serving_at(place, "m"));
            assert_string_equal(serving_at(place, "e")->config->msg
                ->ensemble_scheduling->step[0]->model_namespace,
                w.places[place]);
        }
        if (i == 1) {
            assert_ok(inf_lifecycle_unload(w.lc, "e", true));
            assert_null(serving_at(0, "m"));
            assert_null(serving_at(1, "m"));
        }
        world_close();
    }
}

static void
a_better_match_is_taken_when_it_comes_and_left_when_it_goes(void **state)
{
    (void) state;

    world_open_at(2, true, 1, false);
    assert_ok(inf_poll_new(w.lc, w.pollers, SETTLE_NS, &w.poll));
    add_ensemble_at(0, "e", "m");
    add_model_at(1, "m", "backend: 'x' " TENSORS);
    start_all();
    assert_ptr_equal(member_at(0, "e"), serving_at(1, "m"));
    add_model_at(0, "m", "backend: 'x' " TENSORS);
    poll_now();
    assert_ptr_equal(member_at(0, "e"), serving_at(0, "m"));
    remove_model_at(0, "m");
    poll_now();
    assert_ptr_equal(member_at(0, "e"), serving_at(1, "m"));
    remove_model_at(1, "m");
    poll_now();
    assert_null(serving_at(0, "e"));
    world_close();
}

/* ---- what an earlier core had -------------------------------------------- */

static void
what_was_loaded_comes_back_as_it_was(void **state)
{
    (void) state;
    const inf_model_id_t except[] = {
        inf_model_id("e"), inf_model_id("m"), inf_model_id("gone")
    };
    char *names[] = { "s" };

    world_open(1, true);
    add_ensemble("e", "m");
    add_ensemble("s", "m gone");
    add_model("m");
    add_model("gone");
    inf_lifecycle_hold(w.lc);
    assert_ok(inf_lifecycle_start(w.lc, false, names, 1, except, 3));
    assert_ok(inf_lifecycle_restore(w.lc, &except[1], NULL, true));
    assert_ok(inf_lifecycle_restore(w.lc, &except[0], NULL, false));
    inf_lifecycle_release(w.lc);
    inf_lifecycle_wait(w.lc);
    assert_row("e/1 READY");
    assert_row("s/1 UNAVAILABLE Invalid argument: ensemble s contains models"
        " that are not available or ambiguous: gone\n");
    assert_int_equal(fake_count("init gone/1"), 0);
    assert_ok(inf_lifecycle_unload(w.lc, "s", true));
    assert_row("m/1 READY");
    assert_ok(inf_lifecycle_unload(w.lc, "e", true));
    wait_for_row("m/1 UNAVAILABLE unloaded");
    world_close();
}

/* ---- loads within loads -------------------------------------------------- */

static inf_err_t *
asking_init(inf_model_t *m)
{
    inf_err_t *err = fake_model_init(m);
    if (err == NULL && strcmp(m->name, "asks") == 0) {
        inf_err_t *rejected = inf_lifecycle_load(w.lc, "e", NULL);
        fake_model_call(rejected != NULL ? "rejected" : "loaded", m);
        inf_err_free(rejected);
        rejected = inf_lifecycle_load(w.lc, "free", NULL);
        fake_model_call(rejected != NULL ? "rejected" : "got", m);
        inf_err_free(rejected);
    }
    return err;
}

static void
a_member_that_loads_its_ensemble_while_it_is_loaded(void **state)
{
    (void) state;

    for (int i = 0; i < 2; i++) {
        world_open(1, true);
        backend_ops.model_init = asking_init;
        add_ensemble("e", "asks");
        add_ensemble("free", "m");
        add_model("asks");
        add_model("m");
        inf_err_t *err = inf_lifecycle_load(w.lc, i == 0 ? "e" : "asks",
            NULL);
        inf_err_free(err);
        inf_lifecycle_wait(w.lc);
        assert_row("asks/1 READY");
        assert_row("free/1 READY");
        assert_int_equal(fake_count("rejected asks/1"), 1);
        assert_int_equal(fake_count("got asks/1"), 1);
        wait_for_row("e/1 READY");
        world_close();
    }
}

static void
wait_composing(const char *name)
{
    const inf_model_id_t id = inf_model_id(name);

    for (bool waits = false; !waits; usleep(100)) {
        inf_lock(&w.lc->lock);
        const inf_model_record_t *e = inf_model_set_find(&w.lc->set, &id);
        waits = e != NULL && e->state == INF_MODEL_COMPOSING;
        inf_unlock(&w.lc->lock);
    }
}

/* The unload came when the load of the ensemble was under way. */
static void
a_member_is_unloaded_after_the_load_that_it_came_with(void **state)
{
    (void) state;

    for (int i = 0; i < 20; i++) {
        answer_t loaded = { 0 };

        world_open(1, true);
        add_ensemble("e", "m");
        add_model("m");
        fake.hold = "init m/1";
        inf_lifecycle_load_async(w.lc, "e", NULL, false, load_done, &loaded);
        fake_wait_held(1);
        wait_composing("e");
        inf_lifecycle_unload_async(w.lc, "m", false, NULL, NULL);
        fake_release();
        wait_told(&loaded);
        assert_ok(loaded.err);
        wait_for_row("m/1 UNAVAILABLE unloaded");
        assert_row("e/1 UNAVAILABLE");
        world_close();
    }
}

/* The load of its inner ensemble begins after the unload came. */
static void
a_member_is_unloaded_after_the_load_of_a_nested_ensemble(void **state)
{
    (void) state;

    for (int i = 0; i < 20; i++) {
        answer_t loaded = { 0 };

        world_open(1, true);
        add_ensemble("e", "m inner");
        add_ensemble("inner", "n");
        add_model("m");
        add_model("n");
        fake.hold = "init m/1";
        inf_lifecycle_load_async(w.lc, "e", NULL, false, load_done, &loaded);
        fake_wait_held(1);
        wait_composing("e");
        inf_lifecycle_unload_async(w.lc, "m", false, NULL, NULL);
        fake_hold("init n/1");
        pthread_cond_broadcast(&fake.changed);
        wait_composing("inner");
        while (fake_count("init n/1") == 0) {
            usleep(100);
        }
        fake_release();
        wait_told(&loaded);
        assert_ok(loaded.err);
        wait_for_row("m/1 UNAVAILABLE unloaded");
        assert_row("e/1 UNAVAILABLE");
        assert_row("inner/1 READY");
        world_close();
    }
}

/* As soon as it stops. */
static void *
release_main(void *arg)
{
    (void) arg;

    for (;;) {
        inf_lock(&w.lc->lock);
        bool stopping = w.lc->set.stopping;
        inf_unlock(&w.lc->lock);
        if (stopping) {
            break;
        }
        usleep(100);
    }
    fake_release();
    return NULL;
}

static void
a_parked_load_is_dropped_when_the_server_stops(void **state)
{
    (void) state;
    pthread_t thread;

    world_open(1, false);
    add_ensemble("e", "m");
    add_model("m");
    fake.hold = "init m/1";
    assert_ok(inf_lifecycle_start(w.lc, true, NULL, 0, NULL, 0));
    fake_wait_held(1);
    assert_int_equal(pthread_create(&thread, NULL, release_main, NULL), 0);
    assert_true(inf_lifecycle_stop(w.lc, 60 * SECOND));
    pthread_join(thread, NULL);
    world_close();
}

/* ---- at random ----------------------------------------------------------- */

#define CROWD   12
#define ASKERS  3
#define ASKINGS 60

static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;

/* Names c0 ... c11; the first four are never ensembles. */
static void
crowd_name(char *name, size_t cap, uint64_t i)
{
    snprintf(name, cap, "c%u", (unsigned) i);
}

static uint64_t
next_random(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005)
        + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

/* Whole, as from an editor that renames. */
static void
write_crowd(uint64_t i, uint64_t *seed)
{
    char name[16];
    char members[64] = "";
    char text[4096] = "backend: 'x' " TENSORS;
    char path[64];
    char fresh[80];

    crowd_name(name, sizeof(name), i);
    for (uint64_t k = next_random(seed) % 3 + 1; i >= 4 && k-- > 0; ) {
        size_t len = strlen(members);
        snprintf(members + len, sizeof(members) - len, "c%u ",
            (unsigned) (next_random(seed) % CROWD));
    }
    if (members[0] != '\0') {
        ensemble_text(text, sizeof(text), members);
    }
    snprintf(path, sizeof(path), "r0/%s/1", name);
    tree_dir(w.tree, path);
    snprintf(path, sizeof(path), "r0/%s/config.pbtxt", name);
    snprintf(fresh, sizeof(fresh), "new.%s.%llx", name,
        (unsigned long long) *seed);
    tree_file(w.tree, fresh, text);
    char from[4096];
    char to[4096];
    snprintf(from, sizeof(from), "%s/%s", w.tree, fresh);
    snprintf(to, sizeof(to), "%s/%s", w.tree, path);
    assert_int_equal(rename(from, to), 0);
}

static void *
asker_main(void *arg)
{
    uint64_t seed = *(const uint64_t *) arg;
    inf_model_id_t id;
    char name[16];

    for (int i = 0; i < ASKINGS; i++) {
        crowd_name(name, sizeof(name), next_random(&seed) % CROWD);
        switch (next_random(&seed) % 4) {
        case 0:
            inf_err_free(inf_lifecycle_unload(w.lc, name,
                next_random(&seed) % 2 == 0));
            break;
        case 1:
            pthread_mutex_lock(&writing);
            write_crowd((uint64_t) atoi(name + 1), &seed);
            pthread_mutex_unlock(&writing);
            inf_err_free(inf_lifecycle_load(w.lc, name, NULL));
            break;
        case 2:
            inf_lifecycle_load_async(w.lc, name, NULL, false, NULL, NULL);
            break;
        default:
            id = inf_model_id(name);
            process_exit_of(w.lc, &id, -1);
            break;
        }
    }
    return NULL;
}

/* Rebuilds that are still to come would come between the checks. */
static void
load_what_is_lost(void)
{
    char name[16];

    for (uint64_t i = 0; i < CROWD; i++) {
        bool lost = false;

        crowd_name(name, sizeof(name), i);
        const inf_model_id_t id = inf_model_id(name);
        inf_lock(&w.lc->lock);
        const inf_model_record_t *r = inf_model_set_find(&w.lc->set, &id);
        for (size_t k = 0; r != NULL && k < r->version_count; k++) {
            lost = lost || r->versions[k].exited != NULL;
        }
        inf_unlock(&w.lc->lock);
        if (lost) {
            inf_err_free(inf_lifecycle_load(w.lc, name, NULL));
        }
    }
    inf_lifecycle_wait(w.lc);
}

/* An ensemble that is wanted serves just when it can, of what serves. */
static void
assert_crowd_is_settled(void)
{
    inf_model_record_t *r = NULL;

    inf_lock(&w.lc->lock);
    while ((r = inf_model_set_next(&w.lc->set, r)) != NULL) {
        bool serves = inf_model_record_any_ready(r);

        assert_int_equal(r->state, INF_MODEL_IDLE);
        assert_null(r->graph.asked);
        if (r->graph.made == NULL) {
            continue;
        }
        assert_int_equal(inf_graph_verdict(&w.lc->set.graph, &r->graph),
            serves ? INF_GRAPH_FINE : INF_GRAPH_INCOMPLETE);
        assert_false(serves && inf_graph_circular(&w.lc->set.graph, &r->graph));
    }
    inf_unlock(&w.lc->lock);
}

static void
whatever_is_asked_it_ends_settled(void **state)
{
    (void) state;
    pthread_t threads[ASKERS];
    uint64_t seeds[ASKERS];

    for (uint64_t run = 1; run <= 12; run++) {
        uint64_t seed = run;
        world_open(run % 2 == 0 ? 1 : 3, run % 3 != 0);
        for (uint64_t i = 0; i < CROWD; i++) {
            write_crowd(i, &seed);
        }
        if (run % 4 < 2) {
            assert_ok(inf_lifecycle_start(w.lc, true, NULL, 0, NULL, 0));
        }
        for (int i = 0; i < ASKERS; i++) {
            seeds[i] = next_random(&seed);
            assert_int_equal(pthread_create(&threads[i], NULL, asker_main,
                &seeds[i]), 0);
        }
        for (int i = 0; i < ASKERS; i++) {
            pthread_join(threads[i], NULL);
        }
        inf_lifecycle_wait(w.lc);
        load_what_is_lost();
        assert_crowd_is_settled();
        world_close();
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_come_first_with_one_loader),
        cmocka_unit_test(a_slow_member_holds_up_only_its_ensemble),
        cmocka_unit_test(what_is_missing_is_said_and_all_others_serve),
        cmocka_unit_test(it_comes_when_what_was_missing_does),
        cmocka_unit_test(
            one_that_a_request_wants_and_cannot_be_made_counts_for_nothing),
        cmocka_unit_test(a_circle_that_is_broken_serves),
        cmocka_unit_test(what_only_came_with_it_goes_with_it_if_asked),
        cmocka_unit_test(loading_what_came_with_an_ensemble_changes_nothing),
        cmocka_unit_test(it_goes_with_its_member_and_comes_back),
        cmocka_unit_test(
            a_member_that_is_loaded_anew_takes_its_ensembles_along),
        cmocka_unit_test(nothing_is_made_anew_without_a_reason),
        cmocka_unit_test(any_change_of_its_files_makes_it_anew),
        cmocka_unit_test(the_latest_version_is_followed_a_named_one_is_not),
        cmocka_unit_test(
            members_that_do_not_fit_are_tried_again_when_they_change),
        cmocka_unit_test(
            a_configuration_that_names_others_counts_from_then_on),
        cmocka_unit_test(a_lost_process_takes_its_ensembles_along),
        cmocka_unit_test(poll_follows_members_and_ensembles),
        cmocka_unit_test(members_in_a_repository_that_comes_and_goes),
        cmocka_unit_test(members_are_those_of_its_own_repository),
        cmocka_unit_test(
            a_better_match_is_taken_when_it_comes_and_left_when_it_goes),
        cmocka_unit_test(what_was_loaded_comes_back_as_it_was),
        cmocka_unit_test(a_member_that_loads_its_ensemble_while_it_is_loaded),
        cmocka_unit_test(
            a_member_is_unloaded_after_the_load_that_it_came_with),
        cmocka_unit_test(
            a_member_is_unloaded_after_the_load_of_a_nested_ensemble),
        cmocka_unit_test(a_parked_load_is_dropped_when_the_server_stops),
        cmocka_unit_test(whatever_is_asked_it_ends_settled)
    };

    inf_log_set_levels(false, false, false, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
