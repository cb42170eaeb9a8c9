#include "temp_tree.h"

#include <pthread.h>

#include "core/repository/registry.h"

/* Models are made and freed here; unref counts how often one went to 0. */
static _Atomic int gone;

static void
last_unref(inf_model_t *model)
{
    gone++;
    inf_model_free(model);
}

static const inf_model_ops_t ops = { .last_unref = last_unref };

static inf_model_t *
model(const char *name, int64_t version)
{
    inf_model_t *m = inf_model_new(name, version, "/d");
    assert_non_null(m);
    m->ops = &ops;
    return m;
}

typedef struct {
    const char *name;
    int64_t     versions[4];    /* negative: that version, not ready         */
    uint32_t    count;
} row_t;

/* gone: bits of those that were unloaded. */
static void
publish_but(inf_registry_t *r, const row_t *rows, uint32_t count,
    unsigned gone_rows)
{
    inf_registry_entry_t *entries = calloc(count + 1, sizeof(*entries));

    for (uint32_t i = 0; i < count; i++) {
        entries[i].name = strdup(rows[i].name);
        entries[i].gone = (gone_rows & (1u << (i % 32))) != 0;
        entries[i].loading = rows[i].count == 0;
        entries[i].version_count = rows[i].count;
        entries[i].versions = calloc(rows[i].count + 1,
            sizeof(*entries[i].versions));
        for (uint32_t j = 0; j < rows[i].count; j++) {
            int64_t v = rows[i].versions[j];
            entries[i].versions[j] = (inf_registry_version_t) {
                .version = v < 0 ? -v : v,
                .model = v < 0 ? NULL : model(rows[i].name, v)
            };
        }
    }
    assert_ok(inf_registry_publish(r, entries, count));
}

static void
publish(inf_registry_t *r, const row_t *rows, uint32_t count)
{
    publish_but(r, rows, count, 0);
}

static void
found(inf_registry_reader_t *reader, const char *name, int64_t version,
    int64_t want)
{
    inf_model_t *m = NULL;

    assert_ok(inf_registry_find(reader, inf_slice_str(name), version, &m));
    assert_string_equal(m->name, name);
    assert_int_equal(m->version, want);
    inf_model_unref(m);
}

static void
not_found(inf_registry_reader_t *reader, const char *name, int64_t version,
    inf_err_code_t code, const char *text)
{
    inf_model_t *m = NULL;
    inf_err_t *err = inf_registry_find(reader, inf_slice_str(name), version,
        &m);

    assert_non_null(err);
    assert_int_equal(inf_err_code(err), code);
    assert_string_equal(inf_err_msg(err), text);
    assert_null(m);
    inf_err_free(err);
}

/* HTTP reference, section 3: the table of lookup failures. */
static void
each_lookup_failure_has_its_text_and_code(void **state)
{
    (void) state;
    static const row_t rows[] = {
        { "m", { 1, -2, 5, -7 }, 4 },
        { "failed", { -1, -3 }, 2 },
        { "", { 1 }, 1 },
        { "queued", { 0 }, 0 },
    };
    inf_registry_t r;
    inf_registry_reader_t reader;

    gone = 0;
    inf_registry_init(&r);
    inf_registry_reader_init(&reader, &r);
    not_found(&reader, "m", -1, INF_ERR_NOT_FOUND,
        "Request for unknown model: 'm' is not found");

    publish(&r, rows, 4);
    found(&reader, "m", -1, 5);             /* the highest that is READY     */
    found(&reader, "m", 1, 1);
    found(&reader, "m", 5, 5);
    found(&reader, "", -1, 1);
    not_found(&reader, "ghost", -1, INF_ERR_NOT_FOUND,
        "Request for unknown model: 'ghost' is not found");
    not_found(&reader, "ghost", 1, INF_ERR_NOT_FOUND,
        "Request for unknown model: 'ghost' is not found");
    not_found(&reader, "mm", -1, INF_ERR_NOT_FOUND,
        "Request for unknown model: 'mm' is not found");
    not_found(&reader, "failed", -1, INF_ERR_NOT_FOUND,
        "Request for unknown model: 'failed' has no available versions");
    not_found(&reader, "m", 9, INF_ERR_NOT_FOUND,
        "Request for unknown model: 'm' version 9 is not found");
    not_found(&reader, "m", 0, INF_ERR_NOT_FOUND,
        "Request for unknown model: 'm' version 0 is not found");
    not_found(&reader, "m", INT64_MIN, INF_ERR_NOT_FOUND,
        "Request for unknown model: 'm' version -9223372036854775808 is not"
        " found");
    not_found(&reader, "m", 2, INF_ERR_UNAVAILABLE,
        "Request for unknown model: 'm' version 2 is not at ready state");
    not_found(&reader, "failed", 3, INF_ERR_UNAVAILABLE,
        "Request for unknown model: 'failed' version 3 is not at ready state");
    not_found(&reader, "queued", 3, INF_ERR_UNAVAILABLE,
        "Request for unknown model: 'queued' version 3 is not at ready state");
    not_found(&reader, "queued", -1, INF_ERR_UNAVAILABLE, "Request for unknown"
        " model: 'queued' is not at ready state: it is loading");

    inf_registry_reader_fini(&reader);
    inf_registry_fini(&r);
    assert_int_equal(gone, 3);
}

/* The slice ends where it says: no NUL is needed behind it. */
static void
a_name_is_bytes_and_length(void **state)
{
    (void) state;
    static const row_t rows[] = { { "model", { 1 }, 1 } };
    inf_registry_t r;
    inf_registry_reader_t reader;
    inf_model_t *m;
    char *exact = malloc(5);

    inf_registry_init(&r);
    inf_registry_reader_init(&reader, &r);
    publish(&r, rows, 1);
    memcpy(exact, "model", 5);
    assert_ok(inf_registry_find(&reader, inf_slice(exact, 5), -1, &m));
    inf_model_unref(m);
    assert_error(inf_registry_find(&reader, inf_slice(exact, 4), -1, &m),
        INF_ERR_NOT_FOUND, "'mode' is not found");
    assert_error(inf_registry_find(&reader, inf_slice(NULL, 0), -1, &m),
        INF_ERR_NOT_FOUND, "'' is not found");
    assert_error(inf_registry_find(&reader, inf_slice("model\0x", 7), -1, &m),
        INF_ERR_NOT_FOUND, "is not found");
    free(exact);
    inf_registry_reader_fini(&reader);
    inf_registry_fini(&r);
}

static void
a_thousand_names_are_all_found(void **state)
{
    (void) state;
    enum { COUNT = 1000 };
    static row_t rows[COUNT];
    static char names[COUNT][24];
    inf_registry_t r;
    inf_registry_reader_t reader;

    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof(names[i]), "model%d", i);
        rows[i] = (row_t) { names[i], { i + 1 }, 1 };
    }
    inf_registry_init(&r);
    inf_registry_reader_init(&reader, &r);
    publish(&r, rows, COUNT);
    for (int i = 0; i < COUNT; i++) {
        found(&reader, names[i], -1, i + 1);
    }
    not_found(&reader, "model1000", -1, INF_ERR_NOT_FOUND,
        "Request for unknown model: 'model1000' is not found");
    inf_registry_reader_fini(&reader);
    inf_registry_fini(&r);
}

static void
a_snapshot_lives_until_its_last_reader_looks_again(void **state)
{
    (void) state;
    static const row_t first[] = { { "m", { 1 }, 1 } };
    static const row_t second[] = { { "m", { 2 }, 1 }, { "n", { 1 }, 1 } };
    inf_registry_t r;
    inf_registry_reader_t a, b;
    inf_model_t *held;

    gone = 0;
    inf_registry_init(&r);
    inf_registry_reader_init(&a, &r);
    inf_registry_reader_init(&b, &r);
    assert_false(inf_registry_refresh(&a));
    publish(&r, first, 1);
    assert_true(inf_registry_refresh(&a));
    assert_false(inf_registry_refresh(&a));
    assert_true(inf_registry_refresh(&b));
    assert_ok(inf_registry_find(&a, INF_SLICE("m"), -1, &held));

    publish(&r, second, 2);
    assert_int_equal(gone, 0);              /* two readers and held          */
    assert_true(inf_registry_refresh(&a));
    assert_int_equal(gone, 0);
    found(&b, "m", -1, 2);                  /* find refreshes                */
    assert_int_equal(gone, 0);
    inf_model_unref(held);
    assert_int_equal(gone, 1);

    publish(&r, NULL, 0);                   /* everything goes               */
    not_found(&a, "m", -1, INF_ERR_NOT_FOUND,
        "Request for unknown model: 'm' is not found");
    assert_int_equal(gone, 1);
    inf_registry_reader_fini(&b);
    assert_int_equal(gone, 3);
    inf_registry_reader_fini(&a);
    inf_registry_fini(&r);
    assert_int_equal(gone, 3);
}

static void
versions_lists_the_ready_ones(void **state)
{
    (void) state;
    static const row_t rows[] = {
        { "m", { 1, -2, 5, 12 }, 4 }, { "none", { -1 }, 1 }
    };
    inf_registry_t r;
    inf_registry_reader_t reader;
    inf_arena_t arena;
    int64_t *versions;
    uint32_t count;

    inf_arena_init(&arena);
    inf_registry_init(&r);
    inf_registry_reader_init(&reader, &r);
    assert_ok(inf_registry_versions(&reader, INF_SLICE("m"), &arena,
        &versions, &count));
    assert_int_equal(count, 0);

    publish(&r, rows, 2);
    inf_registry_refresh(&reader);
    assert_ok(inf_registry_versions(&reader, INF_SLICE("m"), &arena,
        &versions, &count));
    assert_int_equal(count, 3);
    assert_int_equal(versions[0], 1);
    assert_int_equal(versions[1], 5);
    assert_int_equal(versions[2], 12);
    assert_ok(inf_registry_versions(&reader, INF_SLICE("none"), &arena,
        &versions, &count));
    assert_int_equal(count, 0);
    assert_ok(inf_registry_versions(&reader, INF_SLICE("x"), &arena,
        &versions, &count));
    assert_int_equal(count, 0);
    inf_registry_reader_fini(&reader);
    inf_registry_fini(&r);
    inf_arena_fini(&arena);
}

/* ---- with threads -------------------------------------------------------- */

static _Atomic bool stop_reading;
static _Atomic int  wrong;

static void *
read_always(void *arg)
{
    inf_registry_reader_t reader;
    int64_t last = 0;

    inf_registry_reader_init(&reader, arg);
    while (!stop_reading) {
        inf_model_t *m = NULL;
        inf_err_t *err = inf_registry_find(&reader, INF_SLICE("m"), -1, &m);
        if (err != NULL) {
            wrong++;
            inf_err_free(err);
            break;
        }
        wrong += m->version < last || strcmp(m->name, "m") != 0;
        last = m->version;
        inf_model_unref(m);
    }
    inf_registry_reader_fini(&reader);
    return NULL;
}

/* Where there is namespacing: those that are gone don't count. */
static void
a_name_of_two_models_is_ambiguous(void **state)
{
    (void) state;
    static const row_t rows[] = {
        { "gone", { -1 }, 1 }, { "late", { -1 }, 1 }, { "late", { -3 }, 1 },
        { "m", { 1 }, 1 }, { "three", { 1 }, 1 }, { "late", { 2 }, 1 },
        { "m", { 2, 3 }, 2 }, { "three", { -1 }, 1 }, { "three", { 1 }, 1 }
    };
    static const int64_t versions[] = { 1, 1, 2, 2, 3, 1 };
    inf_registry_t r;
    inf_registry_reader_t reader;
    inf_model_t **models;
    size_t count;

    inf_registry_init(&r);
    r.namespacing = true;
    inf_registry_reader_init(&reader, &r);
    assert_ok(inf_registry_models(&reader, &models, &count));
    assert_int_equal(count, 0);
    free(models);
    publish_but(&r, rows, 9, 7);
    found(&reader, "late", -1, 2);
    found(&reader, "late", 2, 2);
    not_found(&reader, "m", 1, INF_ERR_INVALID_ARG, "There are 2 identifiers"
        " of model 'm' in global map, model namespace must be provided to"
        " resolve ambiguity.");
    not_found(&reader, "three", -1, INF_ERR_INVALID_ARG, "There are 3"
        " identifiers of model 'three' in global map, model namespace must be"
        " provided to resolve ambiguity.");
    not_found(&reader, "gone", 1, INF_ERR_INVALID_ARG,
        "Request for unknown model: 'gone' is not found");
    not_found(&reader, "ghost", -1, INF_ERR_INVALID_ARG,
        "Request for unknown model: 'ghost' is not found");
    assert_ok(inf_registry_unique(&reader, INF_SLICE("late")));
    assert_ok(inf_registry_unique(&reader, INF_SLICE("ghost")));
    assert_ok(inf_registry_unique(&reader, INF_SLICE("gone")));
    assert_error(inf_registry_unique(&reader, INF_SLICE("m")),
        INF_ERR_INVALID_ARG, "There are 2 identifiers");

    assert_ok(inf_registry_models(&reader, &models, &count));
    assert_int_equal(count, 6);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(models[i]->version, versions[i]);
        inf_model_unref(models[i]);
    }
    free(models);
    inf_registry_reader_fini(&reader);
    inf_registry_fini(&r);
}

static void
readers_never_see_a_gap_while_snapshots_change(void **state)
{
    (void) state;
    enum { READERS = 3, PUBLISHED = 2000 };
    inf_registry_t r;
    pthread_t threads[READERS];

    gone = 0;
    wrong = 0;
    stop_reading = false;
    inf_registry_init(&r);
    publish(&r, &(row_t) { "m", { 1 }, 1 }, 1);
    for (int i = 0; i < READERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, read_always, &r),
            0);
    }
    for (int i = 1; i < PUBLISHED; i++) {
        publish(&r, &(row_t) { "m", { i + 1 }, 1 }, 1);
    }
    stop_reading = true;
    for (int i = 0; i < READERS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(wrong, 0);
    inf_registry_fini(&r);
    assert_int_equal(gone, PUBLISHED);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_lookup_failure_has_its_text_and_code),
        cmocka_unit_test(a_name_is_bytes_and_length),
        cmocka_unit_test(a_thousand_names_are_all_found),
        cmocka_unit_test(a_snapshot_lives_until_its_last_reader_looks_again),
        cmocka_unit_test(versions_lists_the_ready_ones),
        cmocka_unit_test(a_name_of_two_models_is_ambiguous),
        cmocka_unit_test(readers_never_see_a_gap_while_snapshots_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
