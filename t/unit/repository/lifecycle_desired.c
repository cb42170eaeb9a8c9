/* Repositories that come and go under a running lifecycle. */

#include "repository/lifecycle_world.h"

#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/repository/repository_change.h"
#include "core/repository/inventory.h"

#define SETTLE_NS 1000000u

/* r0 is a repository from the start. */
static const char *const places[] = { "r0", "r1", "r2", NULL };

static lifecycle_world_t w;
static inf_repository_change_t *repository_change;      /* of some tests     */

static int
setup(void **state)
{
    (void) state;
    repository_change = NULL;
    lifecycle_world_begin(&w, places);
    assert_ok(inf_repositories_open(w.places, 1, false, inf_storage_open,
        &w.repositories));
    assert_ok(inf_lifecycle_new(&w.options, &w.lc));
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    fake_release();
    inf_repository_change_stop(repository_change);
    inf_repository_change_free(repository_change);
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

/* The repositories are those places from now on; bits of mask. */
static bool
replace(unsigned mask)
{
    char *addresses[PLACES_MAX];
    size_t count = 0;
    bool other;

    for (unsigned i = 0; i < PLACES_MAX; i++) {
        if ((mask & (1u << i)) != 0) {
            addresses[count++] = w.places[i];
        }
    }
    assert_ok(inf_repositories_replace(&w.repositories, addresses, count,
        &other));
    return other;
}

static void
queue_reconcile(bool all)
{
    const inf_inventory_query_t q = {
        .occasion = INF_INVENTORY_CHANGE, .desired = { .all = all }
    };
    assert_ok(inf_lifecycle_reconcile(w.lc, &q));
}

static void
reconcile(bool all)
{
    queue_reconcile(all);
    inf_lifecycle_wait(w.lc);
}

static void
change_to(unsigned mask, bool all)
{
    replace(mask);
    reconcile(all);
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

/* Only to be compared. */
static const inf_model_t *
model(const char *name)
{
    inf_registry_reader_t reader;
    inf_model_t *m = NULL;

    inf_registry_reader_init(&reader, &w.registry);
    inf_err_t *err = inf_registry_find(&reader, inf_slice_str(name), -1, &m);
    if (err == NULL) {
        inf_model_unref(m);
    }
    inf_err_free(err);
    inf_registry_reader_fini(&reader);
    return m;
}

static void
start_all(void)
{
    assert_ok(inf_lifecycle_start(w.lc, true, NULL, 0, NULL, 0));
    inf_lifecycle_wait(w.lc);
}

/* ---- the set ------------------------------------------------------------- */

static void
an_address_that_stays_keeps_its_repository(void **state)
{
    (void) state;
    char slashes[4200];
    bool other;

    snprintf(slashes, sizeof(slashes), "%s//", w.places[0]);
    char *same[] = { slashes, w.places[0] };
    char *more[] = { w.places[1], w.places[0] };
    char *swapped[] = { w.places[0], w.places[1] };
    inf_repository_list_t *first = inf_repositories_take(&w.repositories);

    assert_true(inf_repositories_named(&w.repositories, same, 2));
    assert_ok(inf_repositories_replace(&w.repositories, same, 2, &other));
    assert_false(other);
    assert_true(inf_repositories_are(&w.repositories, first));

    assert_false(inf_repositories_named(&w.repositories, more, 2));
    assert_ok(inf_repositories_replace(&w.repositories, more, 2, &other));
    assert_true(other);
    assert_false(inf_repositories_are(&w.repositories, first));
    inf_repository_list_t *second = inf_repositories_take(&w.repositories);
    assert_int_equal(second->count, 2);
    assert_ptr_equal(second->items[1], first->items[0]);
    assert_ptr_equal(second->roots[1].storage, first->roots[0].storage);
    assert_true(inf_repositories_named(&w.repositories, swapped, 2));
    assert_false(inf_repositories_named(&w.repositories, swapped, 1));
    assert_ok(inf_repositories_replace(&w.repositories, swapped, 2, &other));
    assert_false(other);
    inf_repository_list_unref(first);
    inf_repository_list_unref(second);
}

static void
a_repository_that_went_is_open_while_somebody_uses_it(void **state)
{
    (void) state;
    inf_entries_t entries;

    add_model(0, "m");
    inf_repository_list_t *old = inf_repositories_take(&w.repositories);
    assert_true(replace(0));
    assert_ok(inf_storage_list(old->roots[0].storage, old->roots[0].root,
        &entries));
    assert_int_equal(entries.count, 1);
    inf_entries_fini(&entries);

    inf_repository_t *item = inf_repository_ref(old->items[0]);
    inf_repository_list_unref(old);
    assert_ok(inf_storage_list(item->storage, item->root, &entries));
    inf_entries_fini(&entries);
    inf_repository_unref(item);
}

static void
what_cannot_be_opened_is_left_out(void **state)
{
    (void) state;
    char wrong[] = "as://account";
    char *addresses[] = { wrong, w.places[0] };
    bool other;

    assert_ok(inf_repositories_replace(&w.repositories, addresses, 2,
        &other));
    assert_false(other);
    assert_false(inf_repositories_named(&w.repositories, addresses, 2));
}

/* ---- models -------------------------------------------------------------- */

static void
models_come_and_go_with_their_repository(void **state)
{
    (void) state;
    add_model(0, "stays");
    add_model(1, "a");
    add_model(1, "b");
    start_all();
    const inf_model_t *stays = model("stays");
    assert_non_null(stays);

    for (int i = 1; i <= 3; i++) {
        change_to(3, true);
        assert_string_equal(listed(),
            "a/1 READY \nb/1 READY \nstays/1 READY \n");
        assert_true(inf_lifecycle_all_ready(w.lc));
        change_to(1, true);
        assert_string_equal(listed(), "stays/1 READY \n");
        wait_for_row("a/1 UNAVAILABLE unloaded\n");
        wait_for_row("b/1 UNAVAILABLE unloaded\n");
        assert_true(inf_lifecycle_all_ready(w.lc));
        assert_int_equal(fake_count("init a/1"), i);
        assert_int_equal(fake_count("fini a/1"), i);
    }
    assert_ptr_equal(model("stays"), stays);
    assert_int_equal(fake_count("init stays/1"), 1);
    assert_int_equal(fake_count("fini stays/1"), 0);
}

/* In mode none later changes on disk are ignored: here, too. */
static void
what_stays_is_not_loaded_again_though_its_files_changed(void **state)
{
    (void) state;
    add_model(0, "m");
    add_model(0, "gone");
    start_all();
    const inf_model_t *m = model("m");
    tree_file(w.tree, "r0/m/1/data", "other");
    assert_int_equal(rename(tree_path(w.tree, "r0/gone"),
        tree_path(w.tree, "away")), 0);
    change_to(5, true);
    assert_ptr_equal(model("m"), m);
    assert_non_null(model("gone"));
    assert_int_equal(fake_count("init m/1"), 1);
}

static void
a_model_moves_without_a_gap(void **state)
{
    (void) state;
    add_model(0, "m");
    add_model(1, "m");
    start_all();
    const inf_model_t *old = model("m");
    fake.hold = "init m/1";

    replace(2);
    queue_reconcile(true);
    fake_wait_held(1);
    assert_ptr_equal(model("m"), old);          /* it serves meanwhile       */
    fake_release();
    inf_lifecycle_wait(w.lc);
    assert_non_null(model("m"));
    assert_int_equal(fake_count("init m/1"), 2);

    assert_int_equal(rename(tree_path(w.tree, "r0/m"),
        tree_path(w.tree, "away")), 0);
    const inf_model_t *now = model("m");
    change_to(3, true);                         /* empty: nothing to do      */
    assert_ptr_equal(model("m"), now);
    assert_int_equal(fake_count("init m/1"), 2);
}

static void
an_ambiguous_model_is_unloaded_until_one_goes(void **state)
{
    (void) state;
    add_model(0, "m");
    add_model(1, "m");
    add_model(1, "other");
    start_all();
    change_to(3, true);
    assert_null(model("m"));
    assert_non_null(model("other"));
    assert_non_null(strstr(listed(), "m/-1 UNAVAILABLE model appears in two"));
    change_to(2, true);
    assert_non_null(model("m"));
    assert_true(inf_lifecycle_all_ready(w.lc));
    assert_int_equal(fake_count("init other/1"), 1);
}

static void
what_failed_is_forgotten_with_its_repository(void **state)
{
    (void) state;
    add_model(0, "m");
    add_model_with(1, "wrong", "backend: }");
    add_model_with(1, "homeless", "backend: 'nowhere'");
    start_all();
    change_to(3, true);
    assert_false(inf_lifecycle_all_ready(w.lc));
    assert_true(inf_lifecycle_settled(w.lc));
    change_to(1, true);
    assert_true(inf_lifecycle_all_ready(w.lc));
    assert_string_equal(listed(), "m/1 READY \n");

    add_model(1, "wrong");                      /* mended                    */
    add_model(1, "homeless");
    change_to(3, true);
    assert_string_equal(listed(),
        "homeless/1 READY \nm/1 READY \nwrong/1 READY \n");
    assert_true(inf_lifecycle_all_ready(w.lc));
}

/* Until it is listed, or nobody wants it any more. */
static void
a_repository_that_nobody_can_list_is_not_ready(void **state)
{
    (void) state;
    char away[4200];

    snprintf(away, sizeof(away), "%s", tree_path(w.tree, "away"));
    add_model(0, "m");
    add_model(1, "n");
    start_all();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rename(w.places[1], away), 0);
        change_to(3, true);
        assert_non_null(model("m"));
        assert_false(inf_lifecycle_all_ready(w.lc));
        if (i == 0) {
            change_to(1, true);
        } else if (i == 1) {
            change_to(1, false);                /* nobody asks for m now     */
            wait_for_row("m/1 UNAVAILABLE unloaded\n");
        }
        assert_int_equal(rename(away, w.places[1]), 0);
        assert_int_equal(inf_lifecycle_all_ready(w.lc), i < 2);
    }
    change_to(3, true);
    assert_non_null(model("n"));
    assert_true(inf_lifecycle_all_ready(w.lc));
}

/* From the moment that it is known until it is there. */
static void
the_server_is_not_ready_while_what_was_added_is_loaded(void **state)
{
    (void) state;
    add_model(0, "m");
    add_model(1, "late");
    start_all();
    fake.hold = "init late/1";
    replace(3);
    queue_reconcile(true);
    assert_false(inf_lifecycle_all_ready(w.lc));
    assert_true(inf_lifecycle_settled(w.lc));
    assert_non_null(model("m"));
    fake_wait_held(1);
    assert_false(inf_lifecycle_all_ready(w.lc));
    fake_release();
    inf_lifecycle_wait(w.lc);
    assert_true(inf_lifecycle_all_ready(w.lc));
}

static void
a_load_under_way_ends_before_its_repository_counts_as_gone(void **state)
{
    (void) state;
    static const bool all[] = { true, false };

    for (int i = 0; i < 2; i++) {
        replace(3);
        add_model(1, "late");
        fake.hold = "init late/1";
        inf_lifecycle_load_async(w.lc, "late", NULL, false, NULL, NULL);
        fake_wait_held(1);
        replace(1);
        queue_reconcile(all[i]);
        assert_non_null(strstr(rows(), "late/1 LOADING "));
        fake_release();
        inf_lifecycle_wait(w.lc);
        wait_for_row("late/1 UNAVAILABLE unloaded\n");
        assert_int_equal(fake_count("init late/1"), i + 1);
        assert_int_equal(fake_count("fini late/1"), i + 1);
        assert_string_equal(listed(), "");
    }
}

static void
a_load_under_way_stays_where_its_repository_stays(void **state)
{
    (void) state;
    add_model(0, "late");
    fake.hold = "init late/1";
    inf_lifecycle_load_async(w.lc, "late", NULL, false, NULL, NULL);
    fake_wait_held(1);
    replace(3);
    queue_reconcile(true);
    fake_release();
    inf_lifecycle_wait(w.lc);
    assert_non_null(model("late"));
    assert_int_equal(fake_count("init late/1"), 1);
}

static void
explicit_control_only_unloads(void **state)
{
    (void) state;
    add_model(0, "stays");
    add_model(0, "twice");
    add_model(1, "goes");
    add_model(1, "new");
    add_model(2, "twice");
    replace(3);
    assert_ok(inf_lifecycle_load(w.lc, "stays", NULL));
    assert_ok(inf_lifecycle_load(w.lc, "twice", NULL));
    assert_ok(inf_lifecycle_load(w.lc, "goes", NULL));
    const inf_model_t *stays = model("stays");

    change_to(5, false);
    assert_ptr_equal(model("stays"), stays);
    assert_non_null(model("twice"));            /* nobody asked for less     */
    assert_null(model("goes"));
    wait_for_row("goes/1 UNAVAILABLE unloaded\n");
    change_to(3, false);
    assert_non_null(strstr(listed(), "goes/1 UNAVAILABLE unloaded\n"));
    assert_non_null(strstr(listed(), "new/-1 UNKNOWN \n"));
    assert_ok(inf_lifecycle_load(w.lc, "goes", NULL));
    assert_non_null(model("goes"));
    assert_ptr_equal(model("stays"), stays);
}

static void
files_of_a_request_belong_to_no_repository(void **state)
{
    (void) state;
    inf_override_t *o;

    assert_ok(inf_override_new(&o));
    assert_ok(inf_override_set_config(o, INF_SLICE("{\"backend\":\"x\","
        "\"input\":[{\"name\":\"A\",\"data_type\":\"TYPE_FP32\",\"dims\":[1]}"
        "],\"output\":[{\"name\":\"B\",\"data_type\":\"TYPE_FP32\","
        "\"dims\":[1]}]}")));
    assert_ok(inf_override_add_file(o, "1/data", INF_SLICE("1")));
    assert_ok(inf_lifecycle_load(w.lc, "sent", o));
    const inf_model_t *sent = model("sent");
    change_to(2, false);
    assert_ptr_equal(model("sent"), sent);
    change_to(1, true);
    assert_ptr_equal(model("sent"), sent);
}

/* One that stays and can't be listed now says nothing about its models. */
static void
a_repository_that_cannot_be_listed_keeps_its_models(void **state)
{
    (void) state;
    add_model(0, "m");
    add_model(1, "n");
    start_all();
    assert_int_equal(rename(w.places[0], tree_path(w.tree, "away")), 0);
    change_to(3, true);
    assert_non_null(model("m"));
    assert_non_null(model("n"));
    assert_int_equal(rename(tree_path(w.tree, "away"), w.places[0]), 0);
    change_to(1, true);
    assert_int_equal(fake_count("init m/1"), 1);
    assert_null(model("n"));
}

/* An unload that a poll has queued; other repositories come before its turn,
   or none. */
static void
poll_before(unsigned mask)
{
    inf_lifecycle_hold(w.lc);
    assert_ok(inf_poll_once(w.poll, false));
    replace(mask);
    inf_lifecycle_release(w.lc);
    inf_lifecycle_wait(w.lc);
}

/* Models seen in other repositories are no reason to unload. */
static void
a_poll_of_what_was_before_unloads_nothing(void **state)
{
    (void) state;
    assert_ok(inf_poll_new(w.lc, w.pollers, 1000000, &w.poll));
    add_model(0, "m");
    change_to(1, true);
    assert_int_equal(rename(tree_path(w.tree, "r0/m"),
        tree_path(w.tree, "away")), 0);
    poll_before(3);
    assert_non_null(model("m"));
    poll_before(3);
    assert_null(model("m"));
}

/* ---- lists of names ----------------------------------------------------- */

/* The calls of notes, "+m -m ~m" for loaded, unloaded, forgotten. */
static char notes[1024];
static pthread_mutex_t notes_lock = PTHREAD_MUTEX_INITIALIZER;

static void
note(char sign, const char *name)
{
    pthread_mutex_lock(&notes_lock);
    size_t len = strlen(notes);
    snprintf(notes + len, sizeof(notes) - len, "%c%s ", sign, name);
    pthread_mutex_unlock(&notes_lock);
}

static void
note_loaded(void *userp, const inf_model_id_t *id,
    const inf_override_t *override, bool implicit)
{
    (void) userp;
    (void) override;
    (void) implicit;
    note('+', id->name);
}

static void
note_unloaded(void *userp, const inf_model_id_t *id, bool implicit)
{
    (void) userp;
    (void) implicit;
    note('-', id->name);
}

static void
note_forgotten(void *userp, const inf_model_id_t *id)
{
    (void) userp;
    note('~', id->name);
}

static const inf_load_note_ops_t note_ops = {
    note_loaded, note_unloaded, note_forgotten
};

static void
assert_notes(const char *want)
{
    assert_string_equal(notes, want);
    notes[0] = '\0';
}

/* The same world, but that notes are taken. */
static void
take_notes(void)
{
    notes[0] = '\0';
    w.options.notes = &note_ops;
    lifecycle_world_restart(&w);
}

/* The names in one string, "a b", at most four. */
typedef struct {
    char   text[64];
    char  *names[4];
    size_t count;
} list_t;

static void
list_of(const char *text, list_t *out)
{
    out->count = 0;
    snprintf(out->text, sizeof(out->text), "%s", text);
    for (char *p = strtok(out->text, " "); p != NULL; p = strtok(NULL, " ")) {
        out->names[out->count++] = p;
    }
}

static void
start_list(const char *text)
{
    list_t l;

    list_of(text, &l);
    assert_ok(inf_lifecycle_start(w.lc, false, l.names, l.count, NULL, 0));
    inf_lifecycle_wait(w.lc);
}

static void
queue_list(const char *before, const char *now, bool adopt)
{
    list_t b, n;

    list_of(before, &b);
    list_of(now, &n);
    const inf_inventory_query_t q = {
        .occasion = INF_INVENTORY_CHANGE,
        .desired = { .names = n.names, .count = n.count },
        .before = { .all = adopt, .names = b.names, .count = b.count }
    };
    assert_ok(inf_lifecycle_reconcile(w.lc, &q));
}

static void
reconcile_list(const char *before, const char *now, bool adopt)
{
    queue_list(before, now, adopt);
    inf_lifecycle_wait(w.lc);
}

static void
what_is_newly_named_comes_and_what_is_dropped_goes(void **state)
{
    (void) state;
    take_notes();
    add_model(0, "a");
    add_model(0, "b");
    add_model(0, "c");
    start_list("a b");
    const inf_model_t *b = model("b");

    reconcile_list("a b", "b c", false);
    assert_null(model("a"));
    assert_ptr_equal(model("b"), b);
    assert_non_null(model("c"));
    wait_for_row("a/1 UNAVAILABLE unloaded\n");
    assert_true(inf_lifecycle_all_ready(w.lc));
    assert_int_equal(fake_count("init b/1"), 1);

    reconcile_list("b c", "*", false);
    assert_non_null(model("a"));
    reconcile_list("*", "", false);
    wait_for_row("a/1 UNAVAILABLE unloaded\n");
    wait_for_row("b/1 UNAVAILABLE unloaded\n");
    wait_for_row("c/1 UNAVAILABLE unloaded\n");
    assert_null(model("a"));
    assert_null(model("c"));
    assert_true(inf_lifecycle_all_ready(w.lc));
    assert_null(strchr(notes, '+'));
    assert_null(strchr(notes, '-'));
}

static void
what_a_request_loaded_stays_when_it_is_dropped(void **state)
{
    (void) state;
    take_notes();
    add_model(0, "a");
    add_model(0, "b");
    start_list("a");
    assert_ok(inf_lifecycle_load(w.lc, "a", NULL));     /* it is there       */
    assert_ok(inf_lifecycle_load(w.lc, "b", NULL));
    assert_notes("+a +b ");
    assert_ok(inf_lifecycle_load(w.lc, "b", NULL));
    assert_notes("");
    const inf_model_t *a = model("a");

    reconcile_list("a", "", false);
    assert_ptr_equal(model("a"), a);
    reconcile_list("", "b", false);
    reconcile_list("b", "", false);
    assert_non_null(model("b"));
    assert_notes("");
}

static void
what_a_request_unloaded_stays_away_while_the_list_is_the_same(void **state)
{
    (void) state;
    take_notes();
    add_model(0, "a");
    add_model(0, "b");
    start_list("a");
    assert_ok(inf_lifecycle_unload(w.lc, "a", false));
    assert_notes("-a ");
    reconcile_list("a", "a b", false);
    assert_null(model("a"));
    assert_non_null(model("b"));
    assert_notes("~b ");
    reconcile_list("a b", "b", false);
    reconcile_list("b", "b a", false);          /* named anew: it comes      */
    assert_non_null(model("a"));
    assert_notes("~a ");
}

static void
a_name_that_lies_nowhere_is_a_failure_until_it_is_dropped(void **state)
{
    (void) state;
    add_model(0, "a");
    start_list("a");
    reconcile_list("a", "a gone", false);
    assert_false(inf_lifecycle_all_ready(w.lc));
    assert_non_null(strstr(listed(), "gone/-1 UNAVAILABLE model not found"));
    reconcile_list("a gone", "a gone", false);
    assert_false(inf_lifecycle_all_ready(w.lc));

    add_model(1, "gone");                       /* with a repository it comes */
    replace(3);
    reconcile_list("a gone", "a gone", false);
    assert_non_null(model("gone"));
    assert_true(inf_lifecycle_all_ready(w.lc));
    replace(1);
    reconcile_list("a gone", "a", false);
    wait_for_row("gone/1 UNAVAILABLE unloaded\n");
    reconcile_list("a", "a gone", false);
    assert_false(inf_lifecycle_all_ready(w.lc));
    reconcile_list("a gone", "a", false);
    assert_true(inf_lifecycle_all_ready(w.lc));
}

static void
what_is_named_moves_with_its_repository(void **state)
{
    (void) state;
    add_model(0, "a");
    add_model(1, "a");
    start_list("a");
    const inf_model_t *old = model("a");
    replace(2);
    reconcile_list("a", "a", false);
    assert_non_null(model("a"));
    assert_int_equal(fake_count("init a/1"), 2);
    assert_ptr_not_equal(model("a"), old);
}

static void
what_is_loaded_stays_when_requests_take_over(void **state)
{
    (void) state;
    take_notes();
    add_model(0, "a");
    add_model(0, "b");
    add_model_with(0, "bad", "backend: 'nowhere'");
    start_all();
    assert_false(inf_lifecycle_all_ready(w.lc));
    const inf_model_t *b = model("b");

    reconcile_list("", "a", true);
    assert_non_null(strstr(notes, "+b "));
    assert_null(strstr(notes, "a "));           /* it comes by itself        */
    notes[0] = '\0';
    assert_ptr_equal(model("b"), b);
    assert_true(inf_lifecycle_all_ready(w.lc)); /* bad is over               */
    reconcile_list("a", "", false);
    assert_ptr_equal(model("b"), b);
    assert_null(model("a"));
    assert_notes("~a ");
    assert_ok(inf_lifecycle_unload(w.lc, "b", false));
    assert_notes("-b ");
    wait_for_row("b/1 UNAVAILABLE unloaded\n");

    reconcile(true);                            /* and back                  */
    assert_non_null(model("a"));
    assert_non_null(model("b"));
    assert_false(inf_lifecycle_all_ready(w.lc));
    assert_non_null(strstr(notes, "~b "));
    assert_int_equal(fake_count("fini b/1"), 1);
}

/* A load by request that is under way when requests take over. */
static void
a_load_under_way_is_not_adopted_twice(void **state)
{
    (void) state;
    take_notes();
    add_model(0, "a");
    fake.hold = "init a/1";
    inf_lifecycle_load_async(w.lc, "a", NULL, false, NULL, NULL);
    fake_wait_held(1);
    queue_list("", "", true);
    fake_release();
    inf_lifecycle_wait(w.lc);
    assert_non_null(model("a"));
    assert_notes("+a ");
}

/* ---- other options ------------------------------------------------------- */

static inf_core_config_t *
directories(const char *more)
{
    return more == NULL
        ? core_config_of("backend_directories: '%s'", w.backends)
        : core_config_of("backend_directories: '%s' backend_directories: '%s'"
            " backend_settings { backend: 'y' key: 'color' value: 'red' }",
            w.backends, more);
}

/* Whether it is the test's alone. */
static bool
is_released(const inf_core_config_t *c)
{
    return atomic_load(&c->refs) == 1;
}

static void
loads_go_by_the_options_that_are_in_force(void **state)
{
    (void) state;
    add_model(0, "m");
    add_model_with(0, "n", "backend: 'y'");
    start_all();
    const inf_model_t *m = model("m");
    assert_null(model("n"));

    tree_file(w.tree, "more/y/libtriton_y.so", "");
    inf_core_config_t *both = directories(tree_path(w.tree, "more"));
    inf_core_config_t *one = directories(NULL);
    inf_lifecycle_reconfigure(w.lc, both);
    reconcile(true);                            /* what failed is tried again */
    assert_ptr_equal(model("m"), m);
    assert_non_null(model("n"));
    assert_non_null(strstr(fake.settings, "color=red"));

    inf_lifecycle_reconfigure(w.lc, one);
    assert_false(is_released(both));            /* n goes by the old ones    */
    assert_ok(inf_lifecycle_unload(w.lc, "n", false));
    wait_for_row("n/1 UNAVAILABLE unloaded\n");
    assert_true(is_released(both));
    assert_error(inf_lifecycle_load(w.lc, "n", NULL), INF_ERR_INVALID_ARG,
        "unable to find backend library");
    inf_lifecycle_reconfigure(w.lc, both);
    assert_true(is_released(one));
    assert_ok(inf_lifecycle_load(w.lc, "n", NULL));
    inf_core_config_unref(both);
    inf_core_config_unref(one);
}

/* ---- the thread ---------------------------------------------------------- */

static void
new_change(bool all)
{
    const inf_repository_desired_t desired = {
        .addresses = w.places, .count = 1,
        .models = { .all = all }
    };
    assert_ok(inf_repository_change_new(w.lc, w.pollers, &desired,
        &repository_change));
}

static void
a_change_of_the_list_happens_by_itself(void **state)
{
    (void) state;
    char a[] = "a", b[] = "b";
    char *names[] = { a, b };
    inf_repository_desired_t desired = {
        .addresses = w.places, .count = 1,
        .models = { .names = names, .count = 1 }
    };

    add_model(0, "a");
    add_model(0, "b");
    start_list("a");
    assert_ok(inf_repository_change_new(w.lc, w.pollers, &desired,
        &repository_change));
    assert_ok(inf_repository_change_ask(repository_change, &desired));
    assert_false(inf_repository_change_pending(repository_change));

    desired.models.count = 2;
    assert_ok(inf_repository_change_ask(repository_change, &desired));
    inf_repository_change_wait(repository_change);
    inf_lifecycle_wait(w.lc);
    assert_non_null(model("b"));
    desired.models.all = true;
    desired.models.count = 0;
    assert_ok(inf_repository_change_ask(repository_change, &desired));
    desired.models.all = false;                        /* perhaps before its turn   */
    assert_ok(inf_repository_change_ask(repository_change, &desired));
    inf_repository_change_wait(repository_change);
    inf_lifecycle_wait(w.lc);
    desired.models.count = 1;
    assert_ok(inf_repository_change_ask(repository_change, &desired));
    inf_repository_change_wait(repository_change);
    inf_lifecycle_wait(w.lc);
    assert_non_null(model("a"));
}

/* Options that nobody has used are given back, those in front of the turn are
   not lost. */
static void
options_are_handed_on_from_one_desired_to_the_next(void **state)
{
    (void) state;
    inf_core_config_t *given[7];
    inf_core_config_t *late = directories(NULL);
    inf_repository_desired_t desired = {
        .addresses = w.places, .count = 1,
        .models = { .all = true }
    };

    new_change(true);
    for (size_t i = 0; i < 20; i++) {
        desired.count = 1 + i % 2;
        desired.core_config = NULL;
        if (i % 3 == 0) {
            desired.core_config = given[i / 3] = directories(NULL);
        }
        assert_ok(inf_repository_change_ask(repository_change, &desired));
    }
    inf_repository_change_wait(repository_change);
    for (size_t i = 0; i < 7; i++) {            /* the seventh is in force   */
        assert_int_equal(is_released(given[i]), i < 6);
        inf_core_config_unref(given[i]);
    }
    inf_repository_change_stop(repository_change);
    desired.core_config = late;
    assert_error(inf_repository_change_ask(repository_change, &desired),
        INF_ERR_UNAVAILABLE, "stopping");
    assert_true(is_released(late));
    inf_core_config_unref(late);
}

/* So many of the places, all their models. */
static inf_err_t *
ask_for(size_t count)
{
    const inf_repository_desired_t desired = {
        .addresses = w.places, .count = count,
        .models = { .all = true }
    };
    return inf_repository_change_ask(repository_change, &desired);
}

static void
a_change_happens_by_itself(void **state)
{
    (void) state;
    new_change(true);
    add_model(1, "m");
    assert_ok(ask_for(1));
    /* no change */
    assert_false(inf_repository_change_pending(repository_change));
    assert_ok(ask_for(2));
    inf_repository_change_wait(repository_change);
    assert_false(inf_repository_change_pending(repository_change));
    inf_lifecycle_wait(w.lc);
    assert_non_null(model("m"));
    assert_ok(ask_for(0));
    inf_repository_change_wait(repository_change);
    inf_lifecycle_wait(w.lc);
    assert_string_equal(listed(), "");
    inf_repository_change_stop(repository_change);
    assert_error(ask_for(1),
        INF_ERR_UNAVAILABLE, "stopping");
}

typedef struct {
    _Atomic bool       stop;
    _Atomic uint64_t   served;
    const inf_model_t *model;
} traffic_t;

/* Every request finds the same model, always. */
static void *
traffic_main(void *arg)
{
    traffic_t *t = arg;
    inf_registry_reader_t reader;

    inf_registry_reader_init(&reader, &w.registry);
    while (!t->stop) {
        inf_model_t *m;
        inf_err_t *err = inf_registry_find(&reader, INF_SLICE("stays"), -1,
            &m);
        if (err != NULL || m != t->model) {
            fprintf(stderr, "%s\n", err != NULL ? inf_err_msg(err)
                : "another model");
            abort();
        }
        inf_model_unref(m);
        t->served++;
    }
    inf_registry_reader_fini(&reader);
    return NULL;
}

/* Polls and the index all the while. */
static void *
looks_main(void *arg)
{
    traffic_t *t = arg;
    const inf_inventory_query_t q = { .occasion = INF_INVENTORY_INDEX };

    while (!t->stop) {
        inf_inventory_t *l = NULL;

        inf_err_free(inf_poll_once(w.poll, false));
        inf_err_free(inf_inventory_new(&w.repositories, &q, &l));
        inf_inventory_unref(l);
    }
    return NULL;
}

static void
repositories_change_under_loads_and_looks(void **state)
{
    (void) state;
    static const size_t counts[] = { 2, 1, 3 };
    traffic_t t = { .stop = false };
    pthread_t threads[3];
    char name[16];

    add_model(0, "stays");
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof(name), "m%d", i);
        add_model(1 + i % 2, name);
    }
    start_all();
    t.model = model("stays");
    new_change(true);
    assert_ok(inf_poll_new(w.lc, w.pollers, SETTLE_NS, &w.poll));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL,
            i < 2 ? traffic_main : looks_main, &t), 0);
    }

    for (int i = 0; i < 60; i++) {
        assert_ok(ask_for(counts[i % 3]));
        if (i % 4 != 0) {
            inf_repository_change_wait(repository_change);
        }
        inf_lifecycle_load_async(w.lc, i % 2 ? "m0" : "m1", NULL, false, NULL,
            NULL);
    }
    t.stop = true;
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }

    assert_ok(ask_for(3));
    inf_repository_change_wait(repository_change);
    inf_lifecycle_wait(w.lc);
    queue_reconcile(true);
    inf_lifecycle_wait(w.lc);
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof(name), "m%d", i);
        assert_non_null(model(name));
    }
    assert_true(inf_lifecycle_all_ready(w.lc));
    assert_true(t.served > 0);
    assert_int_equal(fake_count("init stays/1"), 1);
    assert_ok(ask_for(0));
    inf_repository_change_wait(repository_change);
    inf_lifecycle_wait(w.lc);
    wait_for_row("stays/1 UNAVAILABLE unloaded\n");
    assert_null(model("m0"));
}

int
main(void)
{
    alarm(540);
    inf_log_set_levels(false, false, false, 0);
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(an_address_that_stays_keeps_its_repository),
        T(a_repository_that_went_is_open_while_somebody_uses_it),
        T(what_cannot_be_opened_is_left_out),
        T(models_come_and_go_with_their_repository),
        T(what_stays_is_not_loaded_again_though_its_files_changed),
        T(a_model_moves_without_a_gap),
        T(an_ambiguous_model_is_unloaded_until_one_goes),
        T(what_failed_is_forgotten_with_its_repository),
        T(a_repository_that_nobody_can_list_is_not_ready),
        T(the_server_is_not_ready_while_what_was_added_is_loaded),
        T(a_load_under_way_ends_before_its_repository_counts_as_gone),
        T(a_load_under_way_stays_where_its_repository_stays),
        T(explicit_control_only_unloads),
        T(files_of_a_request_belong_to_no_repository),
        T(a_repository_that_cannot_be_listed_keeps_its_models),
        T(a_poll_of_what_was_before_unloads_nothing),
        T(what_is_newly_named_comes_and_what_is_dropped_goes),
        T(what_a_request_loaded_stays_when_it_is_dropped),
        T(what_a_request_unloaded_stays_away_while_the_list_is_the_same),
        T(a_name_that_lies_nowhere_is_a_failure_until_it_is_dropped),
        T(what_is_named_moves_with_its_repository),
        T(what_is_loaded_stays_when_requests_take_over),
        T(a_load_under_way_is_not_adopted_twice),
        T(loads_go_by_the_options_that_are_in_force),
        T(a_change_of_the_list_happens_by_itself),
        T(options_are_handed_on_from_one_desired_to_the_next),
        T(a_change_happens_by_itself),
        T(repositories_change_under_loads_and_looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
