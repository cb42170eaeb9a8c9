#include "temp_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/include/channel.h"
#include "core/server/journal.h"
#include "core/storage/storage.h"
#include "core_config_of.h"
#include "repository/fake_plugin.h"
#include "repository/index_rows.h"

#define SECOND UINT64_C(1000000000)
#define SIZE   (64 * 1024)

#define FIRST_RECORD 4096       /* behind the headers' page                  */

/* A journal, and lifecycles one after another: a core that dies and the
   next. */
typedef struct {
    char                   *tree;
    inf_core_config_t      *core_config;
    inf_repositories_t      repositories;
    inf_registry_t          registry;
    inf_lifecycle_t        *lc;
    inf_journal_t          *journal;
    bool                    all;        /* control is not explicit           */
    char                   *names[1];
    int                     fd;
    uint32_t                late_key;   /* length of the first record's key,
                                           changed while a core begins       */
    bool                    late_len;   /* and that of its message, so that the
                                           record ends where it did          */
    char                    index[8192];
} world_t;

static world_t w;

/* The journal's read at 1 fails; 0: none does. */
static int failing_read;

ssize_t
pread(int fd, void *data, size_t len, off_t offset)
{
    if (fd == w.fd && failing_read > 0 && --failing_read == 0) {
        errno = EIO;
        return -1;
    }

    return syscall(SYS_pread64, fd, data, len, offset);
}

/* Writes to the journal. */
static int writes;

ssize_t
pwrite(int fd, const void *data, size_t len, off_t offset)
{
    writes += fd == w.fd;
    return syscall(SYS_pwrite64, fd, data, len, offset);
}

static void
changed(void *userp)
{
    (void) userp;
}

static void
change_first(void)
{
    struct {
        uint16_t method;
        uint16_t implicit;
        uint32_t key_len;
        uint64_t len;
    } first;

    assert_int_equal(pread(w.fd, &first, sizeof(first), FIRST_RECORD),
        sizeof(first));
    if (w.late_len) {
        first.len += first.key_len - (uint64_t) w.late_key;
    }
    first.key_len = w.late_key;
    assert_int_equal(pwrite(w.fd, &first, sizeof(first), FIRST_RECORD),
        sizeof(first));
}

/* Another core begins. */
static void
begin(void)
{
    assert_ok(inf_journal_open(w.fd, w.all, w.names, w.all ? 0 : 1,
        &w.journal));
    const inf_lifecycle_options_t options = {
        .plugins = &fake_ops,
        .registry = &w.registry,
        .repositories = &w.repositories,
        .changed = changed,
        .core_config = w.core_config,
        .load_composing = true,
        .notes = &inf_journal_notes,
        .notes_userp = w.journal
    };
    assert_ok(inf_lifecycle_new(&options, &w.lc));
    if (w.late_key != 0) {
        change_first();
    }
    assert_ok(inf_journal_restore(w.journal, w.lc, w.all));
    inf_lifecycle_wait(w.lc);
}

static void
end(void)
{
    assert_true(inf_lifecycle_stop(w.lc, 60 * SECOND));
    inf_lifecycle_free(w.lc);
    inf_journal_close(w.journal);
}

static void
next(void)
{
    end();
    begin();
}

static void
add_model_in(const char *repository, const char *name)
{
    char path[300];

    snprintf(path, sizeof(path), "%s/%s/config.pbtxt", repository, name);
    tree_file(w.tree, path, "backend: 'x' input { name: 'A' data_type:"
        " TYPE_FP32 dims: 1 } output { name: 'B' data_type: TYPE_FP32 dims: 1"
        " }");
    snprintf(path, sizeof(path), "%s/%s/1", repository, name);
    tree_dir(w.tree, path);
}

static void
add_model(const char *name)
{
    add_model_in("repo", name);
}

static int
open_world(bool namespacing)
{
    fake_reset();
    memset(&w, 0, sizeof(w));
    w.tree = tree_new();
    tree_file(w.tree, "backends/x/libtriton_x.so", "");
    tree_dir(w.tree, "repo");
    w.core_config = core_config_of("backend_directories: '%s' auto_complete:"
        " false code_upload: true load_threads: 1",
        tree_path(w.tree, "backends"));
    w.names[0] = (char *) (uintptr_t) "first";
    tree_dir(w.tree, "repo2");
    char *addresses[] = {
        strdup(tree_path(w.tree, "repo")), strdup(tree_path(w.tree, "repo2"))
    };
    assert_ok(inf_repositories_open(addresses, namespacing ? 2 : 1,
        namespacing, inf_storage_open, &w.repositories));
    free(addresses[0]);
    free(addresses[1]);
    inf_registry_init(&w.registry);
    w.fd = memfd_create("journal", MFD_CLOEXEC);
    assert_true(w.fd >= 0);
    assert_int_equal(ftruncate(w.fd, SIZE), 0);
    add_model("first");
    add_model("a");
    add_model("b");
    begin();
    return 0;
}

static int
setup(void **state)
{
    (void) state;
    return open_world(false);
}

static int
setup_namespaced(void **state)
{
    (void) state;
    return open_world(true);
}

static int
teardown(void **state)
{
    (void) state;
    end();
    close(w.fd);
    inf_registry_fini(&w.registry);
    inf_repositories_close(&w.repositories);
    tree_free(w.tree);
    inf_core_config_unref(w.core_config);
    return 0;
}

static void
index_row(void *userp, const char *name, int64_t version,
    inf_version_state_t state, const char *reason)
{
    (void) userp;
    (void) version;
    (void) reason;
    if (state == INF_VERSION_READY) {
        strcat(w.index, name);
        strcat(w.index, " ");
    }
}

static const char *
ready(void)
{
    w.index[0] = '\0';
    index_rows_all(w.lc, index_row, NULL);
    return w.index;
}

static int32_t
batch_of(const char *name, char *dir)
{
    inf_registry_reader_t reader;
    inf_model_t *m;

    inf_registry_reader_init(&reader, &w.registry);
    assert_ok(inf_registry_find(&reader, inf_slice_str(name), -1, &m));
    inf_registry_reader_fini(&reader);
    int32_t batch = m->built->max_batch_size;
    strcpy(dir, m->dir);
    inf_model_unref(m);
    return batch;
}

static inf_override_t *
override(size_t file_len)
{
    static const char config[] = "{\"backend\":\"x\",\"max_batch_size\":6,"
        "\"input\":[{\"name\":\"A\",\"data_type\":\"TYPE_FP32\",\"dims\":[1]}"
        "],\"output\":[{\"name\":\"B\",\"data_type\":\"TYPE_FP32\",\"dims\":"
        "[1]}]}";
    inf_override_t *o;

    assert_ok(inf_override_new(&o));
    assert_ok(inf_override_set_config(o, inf_slice_str(config)));
    if (file_len > 0) {
        char *bytes = calloc(1, file_len);
        assert_ok(inf_override_add_file(o, "3/data",
            inf_slice(bytes, file_len)));
        free(bytes);
    }
    return o;
}

static void
the_next_core_has_what_the_last_one_had(void **state)
{
    (void) state;
    char dir[4096];

    assert_string_equal(ready(), "first ");
    assert_ok(inf_lifecycle_load(w.lc, "a", override(0)));
    assert_ok(inf_lifecycle_load(w.lc, "b", NULL));
    assert_ok(inf_lifecycle_load(w.lc, "a", NULL));     /* changes nothing   */
    next();
    assert_string_equal(ready(), "a b first ");
    assert_int_equal(batch_of("a", dir), 6);
    assert_true(inf_lifecycle_all_ready(w.lc));
    next();                                     /* a restart is no change    */
    assert_string_equal(ready(), "a b first ");
    assert_int_equal(batch_of("a", dir), 6);

    assert_ok(inf_lifecycle_unload(w.lc, "first", false));
    assert_ok(inf_lifecycle_unload(w.lc, "b", false));
    next();
    assert_string_equal(ready(), "a ");
    assert_int_equal(fake_count("init first/1"), 3);
    assert_ok(inf_lifecycle_load(w.lc, "first", NULL));
    next();
    assert_string_equal(ready(), "a first ");
}

static void
files_come_back_too(void **state)
{
    (void) state;
    char dir[4096];

    assert_ok(inf_lifecycle_load(w.lc, "sent", override(2000)));
    next();
    assert_string_equal(ready(), "first sent ");
    assert_int_equal(batch_of("sent", dir), 6);
    strcat(dir, "/3/data");
    struct stat st;
    assert_int_equal(stat(dir, &st), 0);
    assert_int_equal(st.st_size, 2000);
}

static void
a_failed_load_is_not_remembered(void **state)
{
    (void) state;
    fake.fail = "init a/1";
    assert_error(inf_lifecycle_load(w.lc, "a", NULL), INF_ERR_INVALID_ARG,
        "told to fail");
    fake.fail = NULL;
    next();
    assert_string_equal(ready(), "first ");
}

/* Far more records than fit: only the last of each name is kept. */
static void
it_does_not_grow(void **state)
{
    (void) state;
    for (int i = 0; i < 60; i++) {
        assert_ok(inf_lifecycle_load(w.lc, "sent", override(5000)));
        assert_ok(inf_lifecycle_unload(w.lc, "a", false));
        if (i % 7 == 0) {
            next();
        }
    }
    next();
    assert_string_equal(ready(), "first sent ");
}

/* Of ever new names in a list of all models: the oldest are dropped. */
static void
unloads_of_ever_new_names_leave_room(void **state)
{
    (void) state;
    char all[] = "*", name[32];
    char *names[] = { all };

    assert_ok(inf_journal_start(w.journal, false, names, 1));
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof(name), "new-%d", i);
        assert_ok(inf_lifecycle_unload(w.lc, name, false));
    }
    assert_ok(inf_lifecycle_unload(w.lc, "first", false));
    assert_ok(inf_lifecycle_load(w.lc, "sent", override(5000)));
    w.names[0] = all;
    next();
    assert_string_equal(ready(), "a b sent ");
}

static void
an_unload_that_is_forgotten_bars_nothing(void **state)
{
    (void) state;
    const inf_model_id_t a = inf_model_id("a"), b = inf_model_id("b");
    const inf_model_id_t first = inf_model_id("first");
    char all[] = "*", dir[4096];
    char *names[] = { all };

    assert_ok(inf_journal_start(w.journal, false, names, 1));
    assert_ok(inf_lifecycle_unload(w.lc, "first", false));
    assert_ok(inf_lifecycle_unload(w.lc, "b", false));
    assert_ok(inf_lifecycle_load(w.lc, "a", override(0)));
    inf_journal_forget_unload(w.journal, &a);           /* has none          */
    inf_journal_forget_unload(w.journal, &first);
    inf_journal_forget_unload(NULL, &b);
    w.names[0] = all;
    next();
    assert_string_equal(ready(), "a first ");
    assert_int_equal(batch_of("a", dir), 6);
}

/* Also one that nobody named: an ensemble of the start would bring it. */
static void
a_member_that_was_unloaded_stays_away_however_much_follows(void **state)
{
    (void) state;
    tree_file(w.tree, "repo/first/config.pbtxt", "platform: 'ensemble' input {"
        " name: 'A' data_type: TYPE_FP32 dims: 1 } output { name: 'B'"
        " data_type: TYPE_FP32 dims: 1 } ensemble_scheduling { step {"
        " model_name: 'a' model_version: -1 input_map { key: 'A' value: 'A' }"
        " output_map { key: 'B' value: 'B' } } }");
    next();
    assert_string_equal(ready(), "a first ");
    assert_ok(inf_lifecycle_unload(w.lc, "a", false));
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 30; k++) {
            assert_ok(inf_lifecycle_load(w.lc, "sent", override(5000)));
        }
        next();
        assert_string_equal(ready(), "sent ");
        assert_ok(inf_lifecycle_unload(w.lc, "a", false));
    }
    assert_ok(inf_lifecycle_load(w.lc, "a", NULL));
    next();
    assert_string_equal(ready(), "a first sent ");
}

/* A record that doesn't fit loads all the same; earlier ones stay. */
static void
what_is_too_large_is_not_remembered(void **state)
{
    (void) state;
    assert_ok(inf_lifecycle_load(w.lc, "a", NULL));
    assert_ok(inf_lifecycle_load(w.lc, "sent", override(SIZE)));
    assert_string_equal(ready(), "a first sent ");
    next();
    assert_string_equal(ready(), "a first ");
}

/* The memory is shared with the master's other children. */
static void
a_record_that_changes_while_a_core_begins_does_not_count(void **state)
{
    (void) state;
    const uint32_t lengths[] = { 0, 2, 9000, UINT32_MAX };

    for (size_t i = 0; i < 2 * sizeof(lengths) / sizeof(lengths[0]); i++) {
        assert_ok(inf_lifecycle_load(w.lc, "a", NULL));
        assert_ok(inf_lifecycle_load(w.lc, "b", override(0)));
        end();
        w.late_key = lengths[i / 2];
        w.late_len = i % 2 != 0;
        begin();
        assert_string_equal(ready(), w.late_key == 0 ? "a b first "
            : "b first ");
        w.late_key = 0;
        assert_int_equal(ftruncate(w.fd, 0), 0);
        assert_int_equal(ftruncate(w.fd, SIZE), 0);
        next();
        assert_string_equal(ready(), "first ");
    }
}

/* A core may die while it writes: what no header names doesn't count, and a
   damaged header gives way to the one before. */
static void
half_written_records_do_not_count(void **state)
{
    (void) state;
    char garbage[256];

    memset(garbage, 0x5a, sizeof(garbage));
    assert_ok(inf_lifecycle_load(w.lc, "a", NULL));     /* sequence 1        */
    assert_ok(inf_lifecycle_load(w.lc, "b", NULL));     /* sequence 2        */
    end();
    assert_int_equal(pwrite(w.fd, garbage, 40, 0), 40); /* that of 2         */
    begin();
    assert_string_equal(ready(), "a first ");
    end();
    assert_int_equal(pwrite(w.fd, garbage, sizeof(garbage), 0),
        (ssize_t) sizeof(garbage));
    begin();
    assert_string_equal(ready(), "first ");
    end();
    for (off_t at = 0; at < SIZE; at += (off_t) sizeof(garbage)) {
        assert_int_equal(pwrite(w.fd, garbage, sizeof(garbage), at),
            (ssize_t) sizeof(garbage));
    }
    begin();
    assert_string_equal(ready(), "first ");
    assert_ok(inf_lifecycle_load(w.lc, "b", NULL));
    next();
    assert_string_equal(ready(), "b first ");
}

/* Headers, records and keys, in turn; what was read before counts. */
static void
an_unreadable_journal_costs_models_and_not_the_core(void **state)
{
    (void) state;
    int reads = 0;

    assert_ok(inf_lifecycle_load(w.lc, "a", NULL));
    end();
    for (bool failed = true; failed; ) {
        failing_read = ++reads;
        begin();
        failed = failing_read == 0;
        failing_read = 0;
        assert_string_equal(ready(), failed && reads != 1 ? "first "
            : "a first ");
        end();
    }
    begin();
    assert_true(reads > 4);
}

/* Behind it the next core would not find it. */
static void
what_is_loaded_after_a_broken_record_comes_back(void **state)
{
    (void) state;
    const uint32_t broken = UINT32_MAX;

    assert_ok(inf_lifecycle_load(w.lc, "a", NULL));
    end();
    assert_int_equal(pwrite(w.fd, &broken, sizeof(broken), FIRST_RECORD + 4),
        sizeof(broken));
    begin();
    assert_string_equal(ready(), "first ");
    assert_ok(inf_lifecycle_load(w.lc, "b", NULL));
    next();
    assert_string_equal(ready(), "b first ");
}

/* Each by itself, though they have one name. */
static void
models_of_two_namespaces_come_back(void **state)
{
    (void) state;
    add_model_in("repo2", "a");
    add_model_in("repo2", "first");             /* the start has them both   */
    next();
    assert_string_equal(ready(), "first first ");
    assert_ok(inf_lifecycle_load(w.lc, "a", override(0)));
    next();
    assert_string_equal(ready(), "a first a first ");

    char *from = strdup(tree_path(w.tree, "repo2/a"));
    assert_int_equal(rename(from, tree_path(w.tree, "away")), 0);
    free(from);
    assert_ok(inf_lifecycle_load(w.lc, "a", NULL));     /* that one has gone */
    assert_string_equal(ready(), "a first first ");
    next();
    assert_string_equal(ready(), "a first first ");
    assert_true(inf_lifecycle_all_ready(w.lc));

    assert_ok(inf_lifecycle_unload(w.lc, "first", false));
    assert_ok(inf_lifecycle_unload(w.lc, "a\nb", false));
    for (int i = 0; i < 60; i++) {
        assert_ok(inf_lifecycle_load(w.lc, "sent", override(5000)));
    }
    next();
    assert_string_equal(ready(), "sent a ");
}

/* Its records say nothing of namespaces. */
static void
what_was_loaded_without_namespacing_comes_back_in_all(void **state)
{
    (void) state;
    assert_ok(inf_lifecycle_load(w.lc, "a", NULL));
    assert_ok(inf_lifecycle_load(w.lc, "sent", override(100)));
    end();
    inf_repositories_close(&w.repositories);
    char *addresses[] = {
        strdup(tree_path(w.tree, "repo")), strdup(tree_path(w.tree, "repo2"))
    };
    add_model_in("repo2", "a");
    assert_ok(inf_repositories_open(addresses, 2, true, inf_storage_open,
        &w.repositories));
    free(addresses[0]);
    free(addresses[1]);
    begin();
    assert_string_equal(ready(), "sent a first a ");
}

/* Another mode, as a reload of nginx sets it. */
static void
take_over(bool all, char *const *names, size_t count)
{
    const inf_inventory_query_t q = {
        .occasion = INF_INVENTORY_CHANGE,
        .desired = { .all = all, .names = names, .count = count },
        .before = { .all = w.all, .names = w.names, .count = w.all ? 0 : 1 }
    };

    assert_ok(inf_journal_start(w.journal, all, names, count));
    assert_ok(inf_lifecycle_reconcile(w.lc, &q));
    inf_lifecycle_wait(w.lc);
    w.all = all;
}

static void
modes_follow_each_other_and_cores_do_too(void **state)
{
    (void) state;
    char dir[4096];

    assert_ok(inf_lifecycle_load(w.lc, "a", override(0)));
    assert_ok(inf_lifecycle_unload(w.lc, "first", false));
    take_over(true, NULL, 0);
    assert_string_equal(ready(), "a b first ");
    next();
    assert_string_equal(ready(), "a b first ");
    assert_int_equal(batch_of("a", dir), 6);    /* as it was                 */

    take_over(false, w.names, 1);
    assert_string_equal(ready(), "a b first ");
    next();                                     /* what was there stays      */
    assert_string_equal(ready(), "a b first ");
    assert_int_equal(batch_of("a", dir), 6);
    assert_ok(inf_lifecycle_unload(w.lc, "b", false));
    next();
    assert_string_equal(ready(), "a first ");
}

/* An unload that was asked for is over once repositories decide. */
static void
unloads_do_not_outlive_explicit_control(void **state)
{
    (void) state;
    assert_ok(inf_lifecycle_unload(w.lc, "first", false));
    end();
    w.all = true;
    begin();
    assert_string_equal(ready(), "a b first ");
    take_over(false, NULL, 0);
    next();
    assert_string_equal(ready(), "a b first ");
}

static void
what_the_list_brought_and_took_leaves_no_record(void **state)
{
    (void) state;
    char a[] = "a", first[] = "first";
    char *both[] = { first, a };

    take_over(false, both, 2);
    assert_string_equal(ready(), "a first ");
    next();                                     /* whose list has no a       */
    assert_string_equal(ready(), "first ");
    take_over(false, NULL, 0);
    assert_string_equal(ready(), "");
    next();                                     /* whose list has it         */
    assert_string_equal(ready(), "first ");
    assert_ok(inf_lifecycle_unload(w.lc, "first", false));
    take_over(false, NULL, 0);
    next();
    assert_string_equal(ready(), "");
}

/* The replayed messages, one after another. */
static char replayed[512];
static const char *failing;

static inf_err_t *
replay(void *userp, uint16_t method, inf_slice_t message)
{
    size_t used = strlen(replayed);

    assert_ptr_equal(userp, &w);
    snprintf(replayed + used, sizeof(replayed) - used, "%u:%.*s ", method,
        (int) message.len, message.data);
    return failing == NULL || memcmp(message.data, failing, strlen(failing))
        ? NULL : inf_err_new(INF_ERR_INVALID_ARG, "told to fail");
}

static const char *
replay_all(void)
{
    replayed[0] = '\0';
    inf_journal_replay(w.journal, INF_METHOD_LOG_SETTINGS, replay, &w);
    inf_journal_replay(w.journal, INF_METHOD_SYSTEM_SHM_REGISTER, replay, &w);
    inf_journal_replay(w.journal, INF_METHOD_CUDA_SHM_REGISTER, replay, &w);
    return replayed;
}

static void
keep(uint16_t method, const char *name, const char *message)
{
    inf_journal_keep(w.journal, method, name, inf_slice_str(message));
}

static void
what_is_kept_is_replayed_in_its_order(void **state)
{
    (void) state;
    const uint16_t log = INF_METHOD_LOG_SETTINGS;
    const uint16_t region = INF_METHOD_SYSTEM_SHM_REGISTER;
    char expected[512];

    keep(region, "a", "first");
    keep(log, "", "quiet");
    assert_ok(inf_lifecycle_load(w.lc, "a", NULL));
    keep(region, "b", "second");
    keep(log, "", "verbose");               /* in the place of the other     */
    keep(region, "A", "third");             /* of this method the last       */
    next();
    assert_string_equal(ready(), "a first ");
    snprintf(expected, sizeof(expected), "%u:verbose %u:first %u:second"
        " %u:third ", log, region, region, region);
    assert_string_equal(replay_all(), expected);

    inf_journal_forget(w.journal, region, "a");
    inf_journal_forget(w.journal, region, "absent");
    next();
    snprintf(expected, sizeof(expected), "%u:verbose %u:second %u:third ", log,
        region, region);
    assert_string_equal(replay_all(), expected);

    keep(region, "c", "fourth");
    inf_journal_forget(w.journal, region, NULL);
    next();
    snprintf(expected, sizeof(expected), "%u:verbose ", log);
    assert_string_equal(replay_all(), expected);
    assert_string_equal(ready(), "a first ");
}

static void
what_fails_when_replayed_is_forgotten(void **state)
{
    (void) state;
    const uint16_t region = INF_METHOD_CUDA_SHM_REGISTER;
    char expected[512];

    keep(region, "a", "one");
    keep(region, "b", "bad");
    keep(region, "c", "two");
    failing = "bad";
    snprintf(expected, sizeof(expected), "%u:one %u:bad %u:two ", region,
        region, region);
    assert_string_equal(replay_all(), expected);
    failing = NULL;
    next();
    snprintf(expected, sizeof(expected), "%u:one %u:two ", region, region);
    assert_string_equal(replay_all(), expected);
    inf_journal_keep(NULL, region, "a", inf_slice_str("x"));
    inf_journal_forget(NULL, region, NULL);
}

static void
any_number_of_names_is_forgotten_with_one_record(void **state)
{
    (void) state;
    const uint16_t region = INF_METHOD_SYSTEM_SHM_REGISTER;
    char name[32], expected[64];

    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "name-%d", i);
        keep(region, name, "x");
        keep(INF_METHOD_CUDA_SHM_REGISTER, name, "y");
    }
    keep(INF_METHOD_LOG_SETTINGS, "", "quiet");
    inf_journal_forget(w.journal, INF_METHOD_CUDA_SHM_REGISTER, "name-7");
    writes = 0;
    inf_journal_forget(w.journal, INF_METHOD_CUDA_SHM_REGISTER, NULL);
    inf_journal_forget(w.journal, region, NULL);
    assert_in_range(writes, 2, 10);
    writes = 0;
    inf_journal_forget(w.journal, region, NULL);    /* there is none         */
    assert_int_equal(writes, 0);

    keep(region, "name-8", "again");
    next();
    snprintf(expected, sizeof(expected), "%u:quiet %u:again ",
        INF_METHOD_LOG_SETTINGS, region);
    assert_string_equal(replay_all(), expected);
    assert_string_equal(ready(), "first ");

    /* also when the half is full by then */
    for (int i = 0; i < 2 * SIZE / 400; i++) {
        snprintf(name, sizeof(name), "name-%d", i % 70);
        keep(region, name, "a message that is not much longer than its name"
            " and yet fills what the journal has for it within few records,"
            " as a client does that registers one region after another");
        inf_journal_forget(w.journal, region, i % 7 == 0 ? NULL : name);
    }
    next();
    snprintf(expected, sizeof(expected), "%u:quiet ",
        INF_METHOD_LOG_SETTINGS);
    assert_string_equal(replay_all(), expected);
}

/* With a file of any size. */
static void
records_that_count_no_more_are_left_out_soon(void **state)
{
    (void) state;
    struct stat st;
    char text[1000];

    end();
    assert_int_equal(ftruncate(w.fd, 64 << 20), 0);
    begin();
    memset(text, 'x', sizeof(text));
    for (int i = 0; i < 10000; i++) {
        inf_journal_keep(w.journal, INF_METHOD_LOG_SETTINGS, "",
            inf_slice(text, sizeof(text)));
    }
    assert_int_equal(fstat(w.fd, &st), 0);
    assert_true(st.st_blocks * 512 < 3 << 20);
    next();
    assert_int_equal(strlen(replay_all()), sizeof(replayed) - 1);
}

int
main(void)
{
    alarm(540);
    inf_log_set_levels(false, false, false, 0);
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(the_next_core_has_what_the_last_one_had),
        T(files_come_back_too),
        T(a_failed_load_is_not_remembered),
        T(it_does_not_grow),
        T(unloads_of_ever_new_names_leave_room),
        T(an_unload_that_is_forgotten_bars_nothing),
        T(a_member_that_was_unloaded_stays_away_however_much_follows),
        T(what_is_too_large_is_not_remembered),
        T(a_record_that_changes_while_a_core_begins_does_not_count),
        T(half_written_records_do_not_count),
        T(an_unreadable_journal_costs_models_and_not_the_core),
        T(what_is_loaded_after_a_broken_record_comes_back),
        cmocka_unit_test_setup_teardown(models_of_two_namespaces_come_back,
            setup_namespaced, teardown),
        T(what_was_loaded_without_namespacing_comes_back_in_all),
        T(modes_follow_each_other_and_cores_do_too),
        T(unloads_do_not_outlive_explicit_control),
        T(what_the_list_brought_and_took_leaves_no_record),
        T(what_is_kept_is_replayed_in_its_order),
        T(what_fails_when_replayed_is_forgotten),
        T(any_number_of_names_is_forgotten_with_one_record),
        T(records_that_count_no_more_are_left_out_soon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
