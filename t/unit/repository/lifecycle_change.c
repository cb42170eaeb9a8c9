/* Loads, reloads and unloads of a running lifecycle. */

#include "repository/lifecycle_world.h"

#include <fcntl.h>
#include <glob.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"


static lifecycle_world_t w;

static int
setup(void **state)
{
    static const char *const places[] = { "repo", "repo2", NULL };

    (void) state;
    lifecycle_world_begin(&w, places);
    assert_ok(inf_repositories_open(w.places, 2, false, inf_storage_open,
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

#define ALL "backend: 'x' version_policy { all {} } "
#define JSON "{\"backend\":\"x\",\"input\":[{\"name\":\"A\",\"data_type\":"   \
    "\"TYPE_FP32\",\"dims\":[1]}],\"output\":[{\"name\":\"B\",\"data_type\":" \
    "\"TYPE_FP32\",\"dims\":[1]}]"

static void
write_config(const char *model, const char *config)
{
    char path[400];
    char text[1024];

    snprintf(path, sizeof(path), "%s/config.pbtxt", model);
    snprintf(text, sizeof(text), "%s" TENSORS, config);
    tree_file(w.tree, path, text);
}

/* repo/name with versions 1 to count, each with a file. */
static void
add_model(const char *name, const char *config, int count)
{
    char path[300];

    snprintf(path, sizeof(path), "repo/%s", name);
    write_config(path, config);
    for (int i = 1; i <= count; i++) {
        snprintf(path, sizeof(path), "repo/%s/%d/data", name, i);
        tree_file(w.tree, path, "1");
    }
}

static const char *
rows(void)
{
    return index_rows(&w.index, w.lc);
}

static const char *
listed(bool ready_only)
{
    return index_rows_listed(&w.index, w.lc, ready_only);
}

static void
wait_for_row(const char *row)
{
    index_rows_wait(&w.index, w.lc, row);
}

static void
wait_for_count(const char *call, int count)
{
    uint64_t until = inf_clock_ns() + 60 * SECOND;
    while (fake_count(call) != count) {
        if (inf_clock_ns() > until) {
            fail_msg("%d times \"%s\" in \"%s\"", fake_count(call), call,
                fake.trace);
        }
        usleep(1000);
    }
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

static inf_override_t *
override(const char *config)
{
    inf_override_t *o;
    assert_ok(inf_override_new(&o));
    if (config != NULL) {
        assert_ok(inf_override_set_config(o, inf_slice_str(config)));
    }
    return o;
}

static void
add_file(inf_override_t *o, const char *path, const char *text)
{
    assert_ok(inf_override_add_file(o, path, inf_slice_str(text)));
}

/* A name that no other test on this machine has. */
static const char *
own_name(void)
{
    return strrchr(w.tree, '/') + 1;
}

/* How many private directories of that model there are now. */
static size_t
private_dirs(void)
{
    char pattern[300];
    glob_t g;

    snprintf(pattern, sizeof(pattern), "/tmp/inference-model-*/%s",
        own_name());
    size_t n = glob(pattern, 0, NULL, &g) == 0 ? g.gl_pathc : 0;
    globfree(&g);
    return n;
}

/* They go after the model's last finalizer. */
static void
wait_for_private_dirs(size_t count)
{
    uint64_t until = inf_clock_ns() + 60 * SECOND;
    while (private_dirs() != count) {
        assert_true(inf_clock_ns() < until);
        usleep(1000);
    }
}

static void
explicit_loads_and_unloads_have_their_states(void **state)
{
    (void) state;
    inf_model_t *m;

    add_model("m", ALL, 2);
    assert_string_equal(listed(false), "m/-1 UNKNOWN \n");
    assert_true(inf_lifecycle_all_ready(w.lc));

    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_string_equal(listed(false), "m/1 READY \nm/2 READY \n");
    assert_ok(find("m", -1, &m));
    assert_int_equal(m->version, 2);

    assert_ok(inf_lifecycle_unload(w.lc, "m", false));
    wait_for_row("m/1 UNAVAILABLE unloaded\n");
    assert_string_equal(rows(),
        "m/1 UNAVAILABLE unloaded\nm/2 UNLOADING \n");
    assert_string_equal(listed(true), "");
    assert_false(inf_lifecycle_all_ready(w.lc));    /* until it has drained  */
    inf_model_t *none;
    assert_error(find("m", 1, &none), INF_ERR_UNAVAILABLE,
        "Request for unknown model: 'm' version 1 is not at ready state");
    assert_error(find("m", -1, &none), INF_ERR_NOT_FOUND,
        "Request for unknown model: 'm' has no available versions");
    assert_int_equal(fake_count("fini m/2"), 0);

    inf_model_unref(m);
    wait_for_row("m/2 UNAVAILABLE unloaded\n");
    assert_int_equal(fake_count("fini m/1"), 1);
    assert_int_equal(fake_count("fini m/2"), 1);
    assert_true(inf_lifecycle_all_ready(w.lc));

    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_string_equal(listed(true), "m/1 READY \nm/2 READY \n");
    assert_int_equal(fake_count("init m/1"), 2);
}

static void
unloading_what_nobody_knows_is_fine(void **state)
{
    (void) state;
    assert_ok(inf_lifecycle_unload(w.lc, "nobody", false));
    assert_ok(inf_lifecycle_unload(w.lc, "nobody", true));
    assert_string_equal(rows(), "");
}

static void
a_model_that_is_not_there_leaves_no_trace(void **state)
{
    (void) state;
    static const char *const names[] = { "gone", ".", "..", "a/b", "", " " };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_error(inf_lifecycle_load(w.lc, names[i], NULL),
            INF_ERR_INTERNAL, "failed to poll from model repository");
    }
    assert_null(strstr(rows(), "gone"));
    assert_true(inf_lifecycle_all_ready(w.lc));
}

/* Repository reference, section 15, number 10. */
static void
loading_again_without_a_change_does_nothing(void **state)
{
    (void) state;
    inf_model_t *a;
    inf_model_t *b;

    add_model("m", ALL, 2);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_ok(find("m", 1, &a));
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_ok(find("m", 1, &b));
    assert_ptr_equal(a, b);
    assert_int_equal(fake_count("init m/1"), 1);
    inf_model_unref(a);
    inf_model_unref(b);
}

/* Number 11. */
static void
only_versions_that_changed_are_loaded_again(void **state)
{
    (void) state;

    add_model("m", ALL, 2);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    tree_file(w.tree, "repo/m/2/data", "22");
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_int_equal(fake_count("init m/1"), 1);
    assert_int_equal(fake_count("init m/2"), 2);
    wait_for_count("fini m/2", 1);

    tree_file(w.tree, "repo/m/4/data", "1");
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_int_equal(fake_count("init m/1"), 1);
    assert_int_equal(fake_count("init m/2"), 2);
    assert_int_equal(fake_count("init m/4"), 1);
    assert_string_equal(rows(), "m/1 READY \nm/2 READY \nm/4 READY \n");

    assert_int_equal(remove(tree_path(w.tree, "repo/m/1/data")), 0);
    assert_int_equal(rmdir(tree_path(w.tree, "repo/m/1")), 0);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    wait_for_row("m/1 UNAVAILABLE unloaded\n");
    assert_string_equal(rows(),
        "m/1 UNAVAILABLE unloaded\nm/2 READY \nm/4 READY \n");
    assert_int_equal(fake_count("init m/2"), 2);
    assert_true(inf_lifecycle_all_ready(w.lc));
}

static void
a_policy_switches_versions_without_touching_those_that_stay(void **state)
{
    (void) state;
    inf_model_t *m;

    add_model("m", "backend: 'x' version_policy { specific { versions: 1 } } ",
        3);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_string_equal(rows(), "m/1 READY \n");
    write_config("repo/m", "backend: 'x' version_policy { specific {"
        " versions: 1 versions: 3 versions: 7 } } ");
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_string_equal(rows(), "m/1 READY \nm/3 READY \n");
    assert_int_equal(fake_count("init m/1"), 1);

    write_config("repo/m", "backend: 'x' version_policy { specific {"
        " versions: 2 } } ");
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    wait_for_row("m/1 UNAVAILABLE unloaded\n");
    wait_for_row("m/3 UNAVAILABLE unloaded\n");
    assert_ok(find("m", -1, &m));
    assert_int_equal(m->version, 2);
    inf_model_unref(m);

    write_config("repo/m", "backend: 'x' version_policy { specific {"
        " versions: 9 } } ");
    assert_error(inf_lifecycle_load(w.lc, "m", NULL), INF_ERR_INVALID_ARG,
        "load failed for model 'm': at least one version must be available"
        " under the version policy of model 'm'");
    assert_non_null(strstr(rows(), "m/2 READY Invalid argument: at least"));
}

/* Numbers 3 and 14, and the table of section 5. */
static void
other_changes_load_all_versions_again(void **state)
{
    (void) state;
    static const struct {
        const char *path;
        const char *text;       /* NULL: remove                              */
    } changes[] = {
        { "repo/m/labels.txt", "a" }, { "repo/m/labels.txt", "b" },
        { "repo/m/labels.txt", NULL }, { "repo/m/warmup/x", "1" },
        { "repo/m/.config.pbtxt.swp", "" }, { "repo/m/config", "" }
    };
    int loads = 1;

    add_model("m", ALL, 2);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        if (changes[i].text != NULL) {
            tree_file(w.tree, changes[i].path, changes[i].text);
        } else {
            assert_int_equal(remove(tree_path(w.tree, changes[i].path)), 0);
        }
        assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
        loads++;
        assert_int_equal(fake_count("init m/1"), loads);
        assert_int_equal(fake_count("init m/2"), loads);
    }

    write_config("repo/m", ALL "max_batch_size: 2 ");
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_int_equal(fake_count("init m/1"), loads + 1);

    tree_file(w.tree, "repo/m/2/__pycache__/x", "");
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_int_equal(fake_count("init m/1"), loads + 1);
    assert_int_equal(fake_count("init m/2"), loads + 2);
}

static void
a_failed_reload_keeps_the_old_version_serving(void **state)
{
    (void) state;
    inf_model_t *old;
    inf_model_t *now;

    add_model("m", ALL, 2);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_ok(find("m", 2, &old));
    tree_file(w.tree, "repo/m/labels.txt", "a");
    fake.fail = "init m/2";
    assert_error(inf_lifecycle_load(w.lc, "m", NULL), INF_ERR_INVALID_ARG,
        "load failed for model 'm': version 2 is at UNAVAILABLE state:"
        " Unsupported: told to fail; not reloaded,"
        " 2 versions go on serving\n");
    assert_string_equal(rows(),
        "m/1 READY \nm/2 READY Unsupported: told to fail\n");
    assert_ok(find("m", 2, &now));
    assert_ptr_equal(old, now);
    inf_model_unref(now);
    wait_for_count("fini m/1", 1);          /* the new one; the old serves   */
    assert_true(inf_lifecycle_all_ready(w.lc));

    fake.fail = NULL;                       /* tried again without a change  */
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_string_equal(rows(), "m/1 READY \nm/2 READY \n");
    assert_ok(find("m", 2, &now));
    assert_ptr_not_equal(old, now);
    inf_model_unref(now);
    inf_model_unref(old);
}

static void
a_broken_configuration_keeps_the_old_version_serving(void **state)
{
    (void) state;
    inf_model_t *m;

    add_model("m", "backend: 'x' ", 1);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    write_config("repo/m", "backend: } ");
    assert_error(inf_lifecycle_load(w.lc, "m", NULL), INF_ERR_INTERNAL,
        "failed to load 'm', failed to poll from model repository");
    assert_non_null(strstr(rows(), "m/1 READY Internal: "));
    assert_ok(find("m", -1, &m));
    inf_model_unref(m);

    write_config("repo/m", "backend: 'x' ");
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_string_equal(rows(), "m/1 READY \n");
}

static void
a_vanished_directory_keeps_the_model_serving(void **state)
{
    (void) state;
    inf_model_t *m;

    add_model("m", "backend: 'x' ", 1);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_int_equal(rename(tree_path(w.tree, "repo/m"),
        tree_path(w.tree, "away")), 0);
    assert_error(inf_lifecycle_load(w.lc, "m", NULL), INF_ERR_INTERNAL,
        "failed to poll from model repository");
    assert_ok(find("m", -1, &m));
    inf_model_unref(m);
    assert_string_equal(listed(false), "");         /* number 22             */
    assert_non_null(strstr(rows(), "m/1 READY Not found: "));

    assert_ok(inf_lifecycle_unload(w.lc, "m", false));
    wait_for_row("m/1 UNAVAILABLE unloaded\n");
}

static void
a_directory_may_vanish_while_it_is_loaded(void **state)
{
    (void) state;
    add_model("m", "backend: 'x' ", 1);
    fake.hold = "init m/1";
    inf_lifecycle_load_async(w.lc, "m", NULL, false, NULL, NULL);
    fake_wait_held(1);
    assert_int_equal(rename(tree_path(w.tree, "repo/m"),
        tree_path(w.tree, "away")), 0);
    fake_release();
    inf_lifecycle_wait(w.lc);
    assert_string_equal(rows(), "m/1 READY \n");
    assert_int_equal(rename(tree_path(w.tree, "away"),
        tree_path(w.tree, "repo/m")), 0);
}

/* Number 8. */
static void
the_reason_of_a_failure_outlives_the_unload(void **state)
{
    (void) state;
    add_model("m", "backend: 'x' ", 1);
    fake.fail = "init m/1";
    assert_error(inf_lifecycle_load(w.lc, "m", NULL), INF_ERR_INVALID_ARG,
        "version 1 is at UNAVAILABLE state");
    assert_ok(inf_lifecycle_unload(w.lc, "m", false));
    assert_string_equal(listed(false),
        "m/1 UNAVAILABLE Unsupported: told to fail\n");
    assert_false(inf_lifecycle_all_ready(w.lc));

    fake.fail = NULL;
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_true(inf_lifecycle_all_ready(w.lc));
}

static void
what_the_start_asks_for_decides_readiness(void **state)
{
    (void) state;
    char *names[] = { (char *) "missing", (char *) "m", (char *) "m" };

    add_model("m", "backend: 'x' ", 1);
    add_model("unasked", "backend: } ", 1);
    fake.hold = "init m/1";
    assert_ok(inf_lifecycle_start(w.lc, false, names, 3, NULL, 0));
    fake_wait_held(1);
    assert_false(inf_lifecycle_settled(w.lc));
    assert_false(inf_lifecycle_all_ready(w.lc));
    fake_release();
    inf_lifecycle_wait(w.lc);
    assert_true(inf_lifecycle_settled(w.lc));
    assert_string_equal(listed(false), "m/1 READY \n"
        "missing/-1 UNAVAILABLE model not found in any model repository.\n"
        "unasked/-1 UNKNOWN \n");
    assert_false(inf_lifecycle_all_ready(w.lc));
    assert_ok(inf_lifecycle_unload(w.lc, "missing", false));
    assert_true(inf_lifecycle_all_ready(w.lc));
}

static void
a_star_alone_starts_all(void **state)
{
    (void) state;
    char *star[] = { (char *) "*" };

    add_model("a", "backend: 'x' ", 1);
    add_model("b", "backend: 'x' ", 1);
    tree_file(w.tree, "repo/file", "no model");
    assert_ok(inf_lifecycle_start(w.lc, false, star, 1, NULL, 0));
    inf_lifecycle_wait(w.lc);
    assert_string_equal(listed(false), "a/1 READY \nb/1 READY \n");
}

/* Number 4. */
static void
a_name_in_two_repositories_is_never_served(void **state)
{
    (void) state;
    add_model("m", "backend: 'x' ", 1);
    write_config("repo2/m", "backend: 'x' ");
    tree_file(w.tree, "repo2/m/1/data", "2");
    assert_error(inf_lifecycle_load(w.lc, "m", NULL), INF_ERR_INTERNAL,
        "failed to poll");
    assert_string_equal(listed(true), "m/-1 UNAVAILABLE model appears in two"
        " or more repositories\n");
    assert_int_equal(rename(tree_path(w.tree, "repo2/m"),
        tree_path(w.tree, "away")), 0);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_string_equal(listed(true), "m/1 READY \n");
}

static void
an_index_needs_every_repository(void **state)
{
    (void) state;
    assert_int_equal(rmdir(tree_path(w.tree, "repo2")), 0);
    assert_error(inf_lifecycle_repository_index(w.lc, false, index_rows_add,
        &w.index), INF_ERR_INTERNAL, "repo2");
}

/* Number 3: each entry that can be no model has its row; what serves has its
   own. */
static void
the_index_tells_of_entries_that_are_no_models(void **state)
{
    (void) state;
    add_model("m", "backend: 'x' ", 1);
    add_model("z", "backend: 'x' ", 1);
    write_config("repo2/m2", "backend: 'x' ");
    tree_file(w.tree, "repo/file", "");
    tree_dir(w.tree, "repo/a\tb");
    tree_link(w.tree, "nowhere", "repo/gone");
    tree_link(w.tree, "loop", "repo/loop");
    tree_link(w.tree, "nowhere", "repo2/gone");
    tree_link(w.tree, "nowhere", "repo2/m");    /* no second m               */
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));

    const char *text = listed(false);
    const char *at = text;
    static const char *const parts[] = {
        "a\\x09b/-1 UNAVAILABLE directory '", "it must not contain control"
        " characters\ngone/-1 UNAVAILABLE '", "/repo/gone' can't be followed:"
        " No such file or directory\nloop/-1 UNAVAILABLE '",
        "Too many levels of symbolic links\nm/1 READY \nm2/-1 UNKNOWN"
        " \nz/-1 UNKNOWN \n"
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        at = strstr(at, parts[i]);
        if (at == NULL) {
            fail_msg("no \"%s\" in \"%s\"", parts[i], text);
        }
    }
    assert_string_equal(listed(true), "m/1 READY \n");
}

/* Number 20. */
static void
an_overridden_configuration_stays_until_a_file_changes(void **state)
{
    (void) state;
    inf_model_t *m;

    add_model("m", "backend: 'x' ", 1);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_ok(inf_lifecycle_load(w.lc, "m", override(JSON
        ",\"max_batch_size\":4}")));
    assert_ok(find("m", -1, &m));
    assert_int_equal(m->built->max_batch_size, 4);
    inf_model_unref(m);

    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_int_equal(fake_count("init m/1"), 2);
    assert_ok(inf_lifecycle_load(w.lc, "m", override(JSON
        ",\"max_batch_size\":4}")));
    assert_int_equal(fake_count("init m/1"), 2);        /* the same          */

    write_config("repo/m", "backend: 'x' max_batch_size: 7 ");
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_ok(find("m", -1, &m));
    assert_int_equal(m->built->max_batch_size, 7);
    inf_model_unref(m);

    assert_error(inf_lifecycle_load(w.lc, "m", override("{ nonsense")),
        INF_ERR_INTERNAL, "failed to poll from model repository");
    assert_non_null(strstr(rows(), "m/1 READY Invalid argument: Invalid"
        " config override"));
}

/* Number 21. */
static void
files_of_a_request_are_a_model_of_their_own(void **state)
{
    (void) state;
    inf_model_t *m;
    char path[4200];
    char text[8] = "";
    char call[64];
    char fini[64];
    const char *name = own_name();

    snprintf(call, sizeof(call), "init %s/7", name);
    snprintf(fini, sizeof(fini), "fini %s/7", name);

    for (int i = 0; i < 2; i++) {           /* twice the same but the bytes  */
        inf_override_t *o = override(JSON "}");
        add_file(o, "7/data", i == 0 ? "one" : "two");
        add_file(o, "/etc/inner", "below it, too");
        assert_ok(inf_lifecycle_load(w.lc, name, o));
        assert_int_equal(fake_count(call), i + 1);
        wait_for_count(fini, i);
        assert_ok(find(name, 7, &m));
        snprintf(path, sizeof(path), "%s/7/data", m->dir);
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        assert_int_equal(fread(text, 1, 3, f), 3);
        fclose(f);
        assert_string_equal(text, i == 0 ? "one" : "two");
        snprintf(path, sizeof(path), "%s/etc/inner", m->dir);
        assert_int_equal(access(path, R_OK), 0);
        snprintf(path, sizeof(path), "%s/config.pbtxt", m->dir);
        assert_int_equal(access(path, R_OK), 0);
        inf_model_unref(m);
    }
    assert_non_null(strstr(rows(), "/7 READY \n"));
    assert_string_equal(listed(false), "");         /* no directory is there */
    wait_for_private_dirs(1);

    assert_ok(inf_lifecycle_unload(w.lc, name, false));
    wait_for_row("/7 UNAVAILABLE unloaded\n");
    assert_int_equal(private_dirs(), 0);
}

/* The model as it was goes on serving, and the next request may have room. */
static void
files_of_a_request_without_a_place_to_lie_fail_the_load(void **state)
{
    (void) state;

    add_model("m", "backend: 'x' ", 1);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    setenv("TMPDIR", "/nonexistent/inf", 1);
    inf_override_t *o = override(JSON "}");
    add_file(o, "2/data", "x");
    assert_error(inf_lifecycle_load(w.lc, "m", o), INF_ERR_INTERNAL,
        "failed to poll from model repository");
    assert_string_equal(rows(), "m/1 READY Internal: cannot create a directory"
        " in /nonexistent/inf: No such file or directory\n");
    unsetenv("TMPDIR");
    o = override(JSON "}");
    add_file(o, "2/data", "x");
    assert_ok(inf_lifecycle_load(w.lc, "m", o));
    wait_for_row("m/1 UNAVAILABLE unloaded\nm/2 READY \n");
}

/* Backends put names into commands. */
static void
files_of_a_request_have_a_name_without_odd_characters(void **state)
{
    (void) state;
    static const char *const names[][2] = {
        { "a;b", "';'" }, { "$(x)", "'$'" }, { "a b", "' '" },
        { "a\\b", "'\\'" }, { "`x`", "'`'" }, { "a\"b", "'\"'" },
        { "m\xc3\xbc", "'\xc3\xbc'" }, { "a&b|c", "'&'" }, { "a\nb", "'\\x0a'" }
    };
    const char *plain = "Az09_.-odd";
    char text[64];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        inf_override_t *o = override(JSON "}");
        add_file(o, "1/data", "x");
        snprintf(text, sizeof(text), "its name has the character %s",
            names[i][1]);
        assert_error(inf_lifecycle_load(w.lc, names[i][0], o),
            INF_ERR_INVALID_ARG, text);
    }
    assert_int_equal(private_dirs(), 0);

    inf_override_t *o = override(JSON "}");
    add_file(o, "1/data", "x");
    assert_ok(inf_lifecycle_load(w.lc, plain, o));
    assert_ok(inf_lifecycle_unload(w.lc, plain, false));
    wait_for_private_dirs(0);

    add_model("o d;d", "backend: 'x' ", 1);     /* the operator's own name   */
    o = override(JSON "}");
    add_file(o, "1/data", "x");
    assert_ok(inf_lifecycle_load(w.lc, "o d;d", o));
    assert_ok(inf_lifecycle_load(w.lc, "o d;d", NULL));
    assert_ok(inf_lifecycle_unload(w.lc, "o d;d", false));
    wait_for_private_dirs(0);
}

static void
a_plain_load_returns_to_the_repositorys_files(void **state)
{
    (void) state;
    inf_model_t *m;
    char dir[4200];
    const char *name = own_name();

    snprintf(dir, sizeof(dir), "%s/repo/%s", w.tree, name);
    add_model(name, "backend: 'x' ", 1);
    inf_override_t *o = override(JSON "}");
    add_file(o, "3/data", "x");
    assert_ok(inf_lifecycle_load(w.lc, name, o));
    assert_non_null(strstr(rows(), "/3 READY \n"));
    assert_int_equal(private_dirs(), 1);
    assert_ok(inf_lifecycle_load(w.lc, name, NULL));
    wait_for_row("/3 UNAVAILABLE unloaded\n");
    assert_ok(find(name, -1, &m));
    assert_string_equal(m->dir, dir);
    inf_model_unref(m);
    assert_int_equal(private_dirs(), 0);
}

static void
files_that_leave_the_model_are_rejected(void **state)
{
    (void) state;
    static const char *const paths[] = {
        "../x", "1/../../x", "..", "", "/", "1/", "1/.."
    };
    const char *name = own_name();

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        inf_override_t *o = override(JSON "}");
        add_file(o, paths[i], "x");
        assert_error(inf_lifecycle_load(w.lc, name, o), INF_ERR_INTERNAL,
            "failed to poll from model repository");
        assert_non_null(strstr(rows(), "must stay within model directory"));
    }

    inf_override_t *o = override(JSON "}");
    add_file(o, "1/data", "x");
    add_file(o, "1/data/more", "x");
    assert_error(inf_lifecycle_load(w.lc, name, o), INF_ERR_INTERNAL, "poll");
    assert_non_null(strstr(rows(), "directory has been created as a file"));

    o = override(NULL);
    add_file(o, "1/data", "x");
    assert_error(inf_lifecycle_load(w.lc, name, o), INF_ERR_INTERNAL, "poll");
    assert_non_null(strstr(rows(), "Load parameter 'config' must be"));
    assert_int_equal(private_dirs(), 0);
}

typedef struct {
    pthread_t   thread;
    const char *name;
    bool        unload;
    inf_err_t  *err;
} caller_t;

static void *
call(void *arg)
{
    caller_t *c = arg;
    c->err = c->unload ? inf_lifecycle_unload(w.lc, c->name, true)
        : inf_lifecycle_load(w.lc, c->name, NULL);
    return NULL;
}

static void
start_call(caller_t *c, const char *name, bool unload)
{
    *c = (caller_t) { .name = name, .unload = unload };
    assert_int_equal(pthread_create(&c->thread, NULL, call, c), 0);
}

/* Number 17. */
static void
operations_on_one_model_run_one_after_another(void **state)
{
    (void) state;
    caller_t first, second;

    add_model("m", "backend: 'x' ", 1);
    add_model("other", "backend: 'x' ", 1);
    fake.hold = "init m/1";
    start_call(&first, "m", false);
    fake_wait_held(1);
    start_call(&second, "m", true);
    assert_ok(inf_lifecycle_load(w.lc, "other", NULL));     /* not held up   */
    assert_ok(inf_lifecycle_unload(w.lc, "other", false));
    assert_non_null(strstr(rows(), "m/1 LOADING \n"));

    fake_release();
    pthread_join(first.thread, NULL);
    pthread_join(second.thread, NULL);
    assert_ok(first.err);
    assert_ok(second.err);
    wait_for_row("m/1 UNAVAILABLE unloaded\n");
}

static void
a_stop_gives_up_on_a_load_that_does_not_end(void **state)
{
    (void) state;
    add_model("m", "backend: 'x' ", 1);
    add_model("queued", "backend: 'x' ", 1);
    w.core_config->values->load_threads = 1;
    lifecycle_world_restart(&w);
    fake.hold = "init m/1";
    inf_lifecycle_load_async(w.lc, "m", NULL, false, NULL, NULL);
    fake_wait_held(1);
    inf_lifecycle_load_async(w.lc, "queued", NULL, false, NULL, NULL);
    assert_false(inf_lifecycle_stop(w.lc, SECOND / 50));
    assert_error(inf_lifecycle_load(w.lc, "m", NULL), INF_ERR_UNAVAILABLE,
        "the server is stopping");

    fake_release();
    assert_true(inf_lifecycle_stop(w.lc, 60 * SECOND));
    assert_int_equal(fake_count("fini m/1"), 1);
    assert_int_equal(fake_count("init queued/1"), 0);
}

static void
a_reload_is_ready_all_the_time(void **state)
{
    (void) state;
    caller_t c;
    inf_model_t *m;

    add_model("m", "backend: 'x' ", 1);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    tree_file(w.tree, "repo/m/1/data", "22");
    fake.hold = "init m/1";
    start_call(&c, "m", false);
    fake_wait_held(1);
    assert_string_equal(rows(), "m/1 READY \n");
    assert_true(inf_lifecycle_all_ready(w.lc));
    assert_ok(find("m", 1, &m));
    inf_model_unref(m);
    fake_release();
    pthread_join(c.thread, NULL);
    assert_ok(c.err);
    assert_string_equal(rows(), "m/1 READY \n");
    wait_for_count("fini m/1", 1);
}

/* It comes, serves, and the old one drains; the next one fails. */
static void
a_new_version_leaves_the_server_ready(void **state)
{
    (void) state;
    caller_t c;
    inf_model_t *m;

    add_model("m", "backend: 'x' ", 1);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_ok(find("m", 1, &m));
    tree_file(w.tree, "repo/m/2/data", "2");
    fake.hold = "init m/2";
    start_call(&c, "m", false);
    fake_wait_held(1);
    assert_string_equal(rows(), "m/1 READY \nm/2 LOADING \n");
    assert_true(inf_lifecycle_all_ready(w.lc));
    fake_release();
    pthread_join(c.thread, NULL);
    assert_ok(c.err);
    assert_string_equal(rows(), "m/1 UNLOADING \nm/2 READY \n");
    assert_true(inf_lifecycle_all_ready(w.lc));
    inf_model_unref(m);
    wait_for_row("m/1 UNAVAILABLE unloaded\n");

    tree_file(w.tree, "repo/m/3/data", "3");
    fake.fail = "init m/3";
    inf_err_free(inf_lifecycle_load(w.lc, "m", NULL));
    assert_non_null(strstr(rows(), "m/2 READY"));
    assert_non_null(strstr(rows(), "m/3 UNAVAILABLE "));
    assert_true(inf_lifecycle_all_ready(w.lc));
    assert_ok(inf_lifecycle_unload(w.lc, "m", false));
    assert_false(inf_lifecycle_all_ready(w.lc));    /* as with Triton        */
}

static void
a_load_starts_while_the_old_version_still_drains(void **state)
{
    (void) state;
    inf_model_t *old;

    add_model("m", "backend: 'x' ", 1);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_ok(find("m", 1, &old));
    assert_ok(inf_lifecycle_unload(w.lc, "m", false));
    assert_string_equal(rows(), "m/1 UNLOADING \n");
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_string_equal(rows(), "m/1 READY \n");
    inf_model_unref(old);
    wait_for_count("fini m/1", 1);
    assert_string_equal(rows(), "m/1 READY \n");
}

static void
a_broken_instance_has_its_model_built_again(void **state)
{
    (void) state;
    const inf_model_id_t m_id = inf_model_id("m");
    inf_model_t *before, *kept, *after;

    add_model("m", ALL, 2);
    assert_ok(inf_lifecycle_load(w.lc, "m", override(JSON ",\"version_policy\""
        ":{\"all\":{}},\"max_batch_size\":3}")));
    assert_ok(find("m", 1, &before));
    assert_ok(find("m", 2, &kept));
    inf_model_unref(before);
    inf_model_unref(kept);
    process_exit_of(w.lc, &m_id, 1);
    wait_for_count("init m/1", 2);
    inf_lifecycle_wait(w.lc);
    assert_int_equal(fake_count("init m/1"), 2);
    assert_int_equal(fake_count("init m/2"), 1);
    assert_ok(find("m", 1, &after));
    assert_int_equal(after->built->max_batch_size, 3);
    inf_model_unref(after);
    assert_ok(find("m", 2, &after));
    assert_ptr_equal(after, kept);
    inf_model_unref(after);

    process_exit_of(w.lc, &m_id, 2);
    wait_for_count("init m/2", 2);
    inf_lifecycle_wait(w.lc);
    assert_int_equal(fake_count("init m/1"), 2);
    assert_string_equal(rows(), "m/1 READY \nm/2 READY \n");
}

/* Number 28. */
static void
a_failed_version_is_tried_again_as_often_as_told(void **state)
{
    (void) state;
    w.core_config->values->load_retries = 2;
    lifecycle_world_restart(&w);
    add_model("m", "backend: 'x' ", 1);
    fake.fail = "init m/1";
    assert_error(inf_lifecycle_load(w.lc, "m", NULL), INF_ERR_INVALID_ARG,
        "told to fail");
    assert_int_equal(fake_count("init m/1"), 3);
    assert_int_equal(fake_count("fini m/1"), 3);
}

/* A backend that loads another model while it initialises, on one loader. */
static inf_err_t *
init_nested(inf_model_t *m)
{
    inf_err_t *err = NULL;

    if (strcmp(m->name, "outer") == 0) {
        err = inf_lifecycle_load(w.lc, "inner", NULL);
    } else if (strcmp(m->name, "self") == 0) {
        err = inf_lifecycle_load(w.lc, "self", NULL);
    }
    return err != NULL ? err : fake_model_init(m);
}

static void
a_load_may_load_another_model(void **state)
{
    (void) state;
    inf_plugin_ops_t ops = fake_ops;

    ops.model_init = init_nested;
    w.options.plugins = &ops;
    w.core_config->values->load_threads = 1;
    lifecycle_world_restart(&w);
    add_model("outer", "backend: 'x' ", 1);
    add_model("inner", "backend: 'x' ", 1);
    add_model("self", "backend: 'x' ", 1);
    assert_ok(inf_lifecycle_load(w.lc, "outer", NULL));
    assert_string_equal(rows(), "inner/1 READY \nouter/1 READY \n");
    assert_error(inf_lifecycle_load(w.lc, "self", NULL), INF_ERR_INVALID_ARG,
        "can't be loaded or unloaded from within its own load");

    /* the plug-in table must outlive the lifecycle */
    w.options.plugins = &fake_ops;
    lifecycle_world_restart(&w);
}

#define SETTLE_NS 20000000u     /* files hold still that long                */

static inf_poll_t *
new_poll(void)
{
    assert_ok(inf_poll_new(w.lc, w.pollers, SETTLE_NS, &w.poll));
    return w.poll;
}

static void
a_look_follows_what_lies_in_the_repositories(void **state)
{
    (void) state;
    inf_poll_t *poll = new_poll();

    add_model("a", "backend: 'x' ", 1);
    add_model("bad", "backend: } ", 1);
    assert_ok(inf_poll_once(poll, true));
    assert_string_equal(strtok((char *) (uintptr_t) rows(), "\n"),
        "a/1 READY ");
    assert_ok(inf_poll_once(poll, true));
    assert_int_equal(fake_count("init a/1"), 1);

    tree_file(w.tree, "repo/a/1/data", "22");       /* changed               */
    add_model("b", "backend: 'x' ", 1);             /* new                   */
    write_config("repo/bad", "backend: 'x' ");      /* mended                */
    assert_ok(inf_poll_once(poll, true));
    assert_int_equal(fake_count("init a/1"), 2);
    assert_string_equal(rows(), "a/1 READY \nb/1 READY \nbad/1 READY \n");

    assert_int_equal(rename(tree_path(w.tree, "repo/a"),
        tree_path(w.tree, "away")), 0);             /* gone                  */
    assert_ok(inf_poll_once(poll, true));
    wait_for_row("a/1 UNAVAILABLE unloaded\n");
    assert_string_equal(listed(false), "b/1 READY \nbad/1 READY \n");

    assert_int_equal(rename(tree_path(w.tree, "away"),
        tree_path(w.tree, "repo/a")), 0);           /* and back              */
    assert_ok(inf_poll_once(poll, true));
    assert_non_null(strstr(rows(), "a/1 READY \n"));

    write_config("repo/b", "backend: } ");          /* broken: it goes on    */
    assert_ok(inf_poll_once(poll, true));
    assert_non_null(strstr(rows(), "b/1 READY Internal: "));
    inf_poll_stop(poll);
}

/* Number 23. */
static void
a_look_sees_every_kind_of_change(void **state)
{
    (void) state;
    inf_poll_t *poll = new_poll();
    int loads = 1;

    add_model("m", ALL, 2);
    tree_file(w.tree, "repo/m/labels.txt", "a");
    assert_ok(inf_poll_once(poll, true));
    for (int i = 0; i < 5; i++) {
        switch (i) {
        case 0:
            tree_file(w.tree, "repo/m/.config.pbtxt.swp", "");
            break;
        case 1:
            assert_int_equal(remove(tree_path(w.tree, "repo/m/labels.txt")),
                0);
            break;
        case 2:
            tree_file(w.tree, "repo/m/config", "");
            break;
        case 3:                         /* replaced by an older file         */
            tree_file(w.tree, "old", "0");
            assert_int_equal(utimensat(AT_FDCWD, tree_path(w.tree, "old"),
                (const struct timespec[]) { { 1, 0 }, { 1, 0 } }, 0), 0);
            assert_int_equal(rename(tree_path(w.tree, "old"),
                tree_path(w.tree, "repo/m/1/data")), 0);
            break;
        case 4:
            tree_file(w.tree, "repo/m/1/__pycache__/x", "");
            break;
        }
        assert_ok(inf_poll_once(poll, true));
        assert_int_equal(fake_count("init m/1"), ++loads);
    }
    assert_int_equal(fake_count("init m/2"), loads - 2);
    inf_poll_stop(poll);
}

/* Number 24. */
static void
a_repository_that_cannot_be_listed_keeps_its_models(void **state)
{
    (void) state;
    inf_poll_t *poll = new_poll();

    add_model("a", "backend: 'x' ", 1);
    write_config("repo2/b", "backend: 'x' ");
    tree_file(w.tree, "repo2/b/1/data", "1");
    assert_ok(inf_poll_once(poll, true));
    assert_string_equal(rows(), "a/1 READY \nb/1 READY \n");

    assert_int_equal(rename(tree_path(w.tree, "repo2"),
        tree_path(w.tree, "away2")), 0);
    assert_int_equal(rename(tree_path(w.tree, "repo/a"),
        tree_path(w.tree, "away")), 0);
    assert_ok(inf_poll_once(poll, true));
    wait_for_row("a/1 UNAVAILABLE unloaded\n");     /* this one is gone      */
    assert_non_null(strstr(rows(), "b/1 READY \n"));

    assert_int_equal(rename(tree_path(w.tree, "away2"),
        tree_path(w.tree, "repo2")), 0);
    assert_ok(inf_poll_once(poll, true));
    assert_int_equal(fake_count("init b/1"), 1);
    inf_poll_stop(poll);
}

/* A link to nothing is as good as nothing; another that can't be followed may
   well be followed again. */
static void
a_link_that_leads_nowhere_is_a_model_that_is_gone(void **state)
{
    (void) state;
    inf_poll_t *poll = new_poll();

    add_model("a", "backend: 'x' ", 1);
    add_model("b", "backend: 'x' ", 1);
    assert_ok(inf_poll_once(poll, true));
    assert_string_equal(listed(false), "a/1 READY \nb/1 READY \n");

    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? "repo/a" : "repo/b";
        assert_int_equal(rename(tree_path(w.tree, name),
            tree_path(w.tree, i == 0 ? "a" : "b")), 0);
    }
    tree_link(w.tree, "nowhere", "repo/a");
    tree_link(w.tree, "b", "repo/b");
    assert_ok(inf_poll_once(poll, true));
    wait_for_row("a/1 UNAVAILABLE unloaded\n");
    assert_non_null(strstr(listed(false), "a/-1 UNAVAILABLE '"));
    assert_non_null(strstr(listed(false), "b/1 READY \n"));

    assert_int_equal(remove(tree_path(w.tree, "repo/a")), 0);
    tree_link(w.tree, "../a", "repo/a");
    assert_int_equal(remove(tree_path(w.tree, "repo/b")), 0);
    assert_ok(inf_poll_once(poll, true));
    wait_for_row("b/1 UNAVAILABLE unloaded\n");
    assert_string_equal(listed(false), "a/1 READY \n");
    inf_poll_stop(poll);
}

/* Number 4. */
static void
a_name_that_appears_twice_is_unloaded_until_one_goes(void **state)
{
    (void) state;
    inf_poll_t *poll = new_poll();

    add_model("m", "backend: 'x' ", 1);
    assert_ok(inf_poll_once(poll, true));
    write_config("repo2/m", "backend: 'x' ");
    tree_file(w.tree, "repo2/m/1/data", "1");
    assert_ok(inf_poll_once(poll, true));
    wait_for_row("m/1 UNAVAILABLE unloaded\n");
    assert_int_equal(rename(tree_path(w.tree, "repo/m"),
        tree_path(w.tree, "away")), 0);
    assert_ok(inf_poll_once(poll, true));
    assert_string_equal(rows(), "m/1 READY \n");
    inf_poll_stop(poll);
}

/* A disk on which somebody writes whenever m/1 is read. */
static bool writing;
static int  written;

static inf_err_t *
busy_list(const inf_storage_t *st, const char *dir, inf_entries_t *out)
{
    (void) st;
    if (writing && strstr(dir, "/repo/m/1") != NULL) {
        char text[16];
        snprintf(text, sizeof(text), "%*d", 1 + ++written % 8, 0);
        tree_file(w.tree, "repo/m/1/data", text);
    }
    return inf_storage_list(w.repositories.now->items[0]->storage, dir, out);
}

static inf_err_t *
busy_stat(const inf_storage_t *st, const char *path, inf_entry_t *out)
{
    (void) st;
    return inf_storage_stat(w.repositories.now->items[0]->storage, path, out);
}

/* Half-written files are left alone. */
static void
what_does_not_hold_still_is_not_loaded(void **state)
{
    (void) state;
    static const inf_storage_ops_t ops = {
        .list = busy_list, .stat = busy_stat
    };
    static const inf_storage_t busy = { &ops };
    inf_poll_t *poll = new_poll();

    w.repositories.now->roots[0].storage = &busy;
    writing = true;
    add_model("m", "backend: 'x' ", 1);
    add_model("calm", "backend: 'x' ", 1);
    assert_ok(inf_poll_once(poll, true));
    assert_int_equal(fake_count("init calm/1"), 1);
    assert_int_equal(fake_count("init m/1"), 0);
    writing = false;
    assert_ok(inf_poll_once(poll, true));
    assert_int_equal(fake_count("init m/1"), 1);
    w.repositories.now->roots[0].storage = w.repositories.now->items[0]
        ->storage;
    inf_poll_stop(poll);
}

static void
the_thread_looks_by_itself_and_ends_when_told(void **state)
{
    (void) state;
    inf_poll_t *poll = new_poll();

    assert_ok(inf_poll_set(poll, 1000000, false));
    add_model("m", "backend: 'x' ", 1);
    wait_for_row("m/1 READY \n");
    inf_poll_stop(poll);
    inf_poll_stop(poll);
    inf_poll_stop(poll);
}

typedef struct {
    _Atomic bool     stop;
    _Atomic uint64_t served;
} traffic_t;

static void *
traffic_main(void *arg)
{
    traffic_t *t = arg;
    inf_registry_reader_t reader;

    inf_registry_reader_init(&reader, &w.registry);
    while (!t->stop) {
        inf_model_t *m;
        inf_err_t *err = inf_registry_find(&reader, INF_SLICE("m"), -1, &m);
        if (err != NULL) {
            fprintf(stderr, "%s\n", inf_err_msg(err));
            abort();
        }
        inf_model_unref(m);
        t->served++;
    }
    inf_registry_reader_fini(&reader);
    return NULL;
}

/* Number 15: nobody who asks ever finds nothing. */
static void
requests_see_no_gap_while_a_model_is_loaded_again(void **state)
{
    (void) state;
    traffic_t t = { .stop = false };
    pthread_t threads[2];
    char text[16];

    add_model("m", ALL, 1);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, traffic_main, &t),
            0);
    }
    for (int i = 0; i < 30; i++) {
        snprintf(text, sizeof(text), "%d", i);
        tree_file(w.tree, i % 2 ? "repo/m/1/data" : "repo/m/2/data", text);
        assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    }
    t.stop = true;
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_true(t.served > 0);
    assert_ok(inf_lifecycle_unload(w.lc, "m", false));
    wait_for_row("m/1 UNAVAILABLE unloaded\n");
    wait_for_count("fini m/1", fake_count("init m/1"));
    wait_for_count("fini m/2", fake_count("init m/2"));
}

/* Many threads, few models: every end exactly once, in any order. */
static void *
churn_main(void *arg)
{
    unsigned seed = *(unsigned *) arg;
    static const char *const names[] = { "a", "b", "c" };

    for (int i = 0; i < 60; i++) {
        const char *name = names[(unsigned) rand_r(&seed) % 3];
        inf_err_t *err = rand_r(&seed) % 2 == 0
            ? inf_lifecycle_load(w.lc, name, NULL)
            : inf_lifecycle_unload(w.lc, name, true);
        if (err != NULL) {
            fprintf(stderr, "%s\n", inf_err_msg(err));
            abort();
        }
    }
    return NULL;
}

static void
loads_and_unloads_from_many_threads_end_exactly_once(void **state)
{
    (void) state;
    static unsigned seeds[] = { 1, 2, 3, 4 };
    pthread_t threads[4];
    char init[32], fini[32];

    for (int i = 0; i < 3; i++) {
        add_model((const char *[]) { "a", "b", "c" }[i], ALL, 2);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, churn_main,
            &seeds[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_true(inf_lifecycle_stop(w.lc, 60 * SECOND));
    for (int i = 0; i < 6; i++) {
        snprintf(init, sizeof(init), "init %c/%d", 'a' + i / 2, 1 + i % 2);
        snprintf(fini, sizeof(fini), "fini %c/%d", 'a' + i / 2, 1 + i % 2);
        assert_int_equal(fake_count(init), fake_count(fini));
    }
}

int
main(void)
{
    alarm(540);
    inf_log_set_levels(false, false, false, 0);
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(explicit_loads_and_unloads_have_their_states),
        T(unloading_what_nobody_knows_is_fine),
        T(a_model_that_is_not_there_leaves_no_trace),
        T(loading_again_without_a_change_does_nothing),
        T(only_versions_that_changed_are_loaded_again),
        T(a_policy_switches_versions_without_touching_those_that_stay),
        T(other_changes_load_all_versions_again),
        T(a_failed_reload_keeps_the_old_version_serving),
        T(a_broken_configuration_keeps_the_old_version_serving),
        T(a_vanished_directory_keeps_the_model_serving),
        T(a_directory_may_vanish_while_it_is_loaded),
        T(the_reason_of_a_failure_outlives_the_unload),
        T(what_the_start_asks_for_decides_readiness),
        T(a_star_alone_starts_all),
        T(a_name_in_two_repositories_is_never_served),
        T(an_index_needs_every_repository),
        T(the_index_tells_of_entries_that_are_no_models),
        T(an_overridden_configuration_stays_until_a_file_changes),
        T(files_of_a_request_are_a_model_of_their_own),
        T(files_of_a_request_without_a_place_to_lie_fail_the_load),
        T(files_of_a_request_have_a_name_without_odd_characters),
        T(a_plain_load_returns_to_the_repositorys_files),
        T(files_that_leave_the_model_are_rejected),
        T(operations_on_one_model_run_one_after_another),
        T(a_stop_gives_up_on_a_load_that_does_not_end),
        T(a_reload_is_ready_all_the_time),
        T(a_new_version_leaves_the_server_ready),
        T(a_load_starts_while_the_old_version_still_drains),
        T(a_broken_instance_has_its_model_built_again),
        T(a_failed_version_is_tried_again_as_often_as_told),
        T(a_load_may_load_another_model),
        T(a_look_follows_what_lies_in_the_repositories),
        T(a_look_sees_every_kind_of_change),
        T(a_repository_that_cannot_be_listed_keeps_its_models),
        T(a_link_that_leads_nowhere_is_a_model_that_is_gone),
        T(a_name_that_appears_twice_is_unloaded_until_one_goes),
        T(what_does_not_hold_still_is_not_loaded),
        T(the_thread_looks_by_itself_and_ends_when_told),
        T(requests_see_no_gap_while_a_model_is_loaded_again),
        T(loads_and_unloads_from_many_threads_end_exactly_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
