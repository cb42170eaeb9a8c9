/* Events of the kernel on repositories, and changes without one. */

#include "temp_tree.h"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/storage/storage.h"
#include "core/storage/watch.h"

/* One repository, and a watch. */
typedef struct {
    char             *tree;
    inf_storage_t    *storage;
    char             *path;
    inf_watch_root_t  root;
    inf_watch_t      *watch;
} world_t;

static world_t w;

static void
open_watch(size_t max)
{
    assert_ok(inf_watch_new(max, &w.watch));
    assert_int_equal(inf_watch_fd(w.watch), -1);
    inf_watch_renew(w.watch, &w.root, 1);
}

static int
setup(void **state)
{
    (void) state;
    memset(&w, 0, sizeof(w));
    w.tree = tree_new();
    tree_file(w.tree, "repo/m/config.pbtxt", "");
    tree_file(w.tree, "repo/m/1/data", "1");
    assert_ok(inf_storage_open(tree_path(w.tree, "repo"), &w.storage,
        &w.path));
    w.root = (inf_watch_root_t) { w.storage, w.path };
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    inf_watch_free(w.watch);
    inf_storage_close(w.storage);
    free(w.path);
    tree_free(w.tree);
    return 0;
}

/* Events of a change are there when the change is done. */
static bool
told(void)
{
    struct pollfd p = { .fd = inf_watch_fd(w.watch), .events = POLLIN };
    return poll(&p, 1, 0) == 1;
}

static void
renew(void)
{
    inf_watch_renew(w.watch, &w.root, 1);
    assert_false(told());
}

static void
every_kind_of_change_is_told(void **state)
{
    (void) state;
    open_watch(INF_WATCH_MAX);
    assert_int_equal(inf_watch_count(w.watch), 3);
    assert_false(told());

    tree_file(w.tree, "repo/m/1/data", "other");            /* written       */
    assert_true(told());
    renew();
    tree_file(w.tree, "repo/m/labels.txt", "");             /* new           */
    assert_true(told());
    renew();
    assert_int_equal(chmod(tree_path(w.tree, "repo/m/1/data"), 0600), 0);
    assert_true(told());
    renew();
    assert_int_equal(unlink(tree_path(w.tree, "repo/m/labels.txt")), 0);
    assert_true(told());
    renew();
    assert_int_equal(rename(tree_path(w.tree, "repo/m"),
        tree_path(w.tree, "away")), 0);
    assert_true(told());
    renew();
    assert_int_equal(inf_watch_count(w.watch), 1);
    assert_int_equal(rename(tree_path(w.tree, "away"),
        tree_path(w.tree, "repo/m")), 0);
    assert_true(told());
    renew();
    assert_int_equal(inf_watch_count(w.watch), 3);
}

static void
reading_is_no_change(void **state)
{
    (void) state;
    inf_entries_t entries;
    char *data;
    size_t len;

    open_watch(INF_WATCH_MAX);
    char *dir = strdup(tree_path(w.tree, "repo/m/1"));
    char *file = strdup(tree_path(w.tree, "repo/m/1/data"));
    assert_ok(inf_storage_list(w.storage, dir, &entries));
    inf_entries_fini(&entries);
    assert_ok(inf_storage_read(w.storage, file, 100, &data, &len));
    free(data);
    free(dir);
    free(file);
    assert_false(told());
}

static void
new_folders_are_watched_and_old_ones_are_not(void **state)
{
    (void) state;
    open_watch(INF_WATCH_MAX);
    tree_dir(w.tree, "repo/n/2/deep");
    assert_true(told());
    renew();
    assert_int_equal(inf_watch_count(w.watch), 6);
    tree_file(w.tree, "repo/n/2/deep/file", "");
    assert_true(told());
    renew();

    assert_int_equal(rename(tree_path(w.tree, "repo/n"),
        tree_path(w.tree, "elsewhere")), 0);
    assert_true(told());
    renew();
    assert_int_equal(inf_watch_count(w.watch), 3);
    tree_file(w.tree, "elsewhere/2/deep/file", "again");
    assert_false(told());
}

/* The link itself is in a directory that is watched. */
static void
links_are_followed_and_may_lead_back_up(void **state)
{
    (void) state;
    open_watch(INF_WATCH_MAX);
    tree_dir(w.tree, "outside/1");
    tree_link(w.tree, tree_path(w.tree, "outside"), "repo/linked");
    tree_link(w.tree, tree_path(w.tree, "repo"), "repo/m/up");
    tree_link(w.tree, "nowhere", "repo/m/dangling");
    assert_true(told());
    renew();
    assert_int_equal(inf_watch_count(w.watch), 5);
    tree_file(w.tree, "outside/1/data", "");
    assert_true(told());
}

static void
a_bound_leaves_out_the_deepest(void **state)
{
    (void) state;
    open_watch(2);
    assert_int_equal(inf_watch_count(w.watch), 2);
    tree_file(w.tree, "repo/m/1/data", "unseen");
    assert_false(told());
    tree_file(w.tree, "repo/m/config.pbtxt", "seen");
    assert_true(told());
    renew();
    assert_int_equal(inf_watch_count(w.watch), 2);
}

static void
without_inotify_nothing_is_told(void **state)
{
    (void) state;
    struct rlimit old, none;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    int next = dup(0);
    assert_true(next >= 0);
    close(next);
    none = old;
    none.rlim_cur = (rlim_t) next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    open_watch(INF_WATCH_MAX);
    assert_int_equal(inf_watch_fd(w.watch), -1);
    assert_int_equal(inf_watch_count(w.watch), 0);
    inf_watch_renew(w.watch, &w.root, 1);
    assert_int_equal(inf_watch_fd(w.watch), -1);

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    renew();                                /* it is tried each time         */
    tree_file(w.tree, "repo/m/1/data", "seen");
    assert_true(told());
}

/* How many events the kernel keeps; 16384 by default. */
static long
queue_limit(void)
{
    long limit = 16384;
    FILE *f = fopen("/proc/sys/fs/inotify/max_queued_events", "r");
    if (f != NULL) {
        if (fscanf(f, "%ld", &limit) != 1) {
            limit = 16384;
        }
        fclose(f);
    }
    return limit;
}

static void
lost_events_have_everything_watched_anew(void **state)
{
    (void) state;
    char name[64];
    long limit = queue_limit();

    open_watch(INF_WATCH_MAX);
    for (long i = 0; i <= limit; i++) {     /* no two alike: none is merged  */
        snprintf(name, sizeof(name), "repo/m/1/%s", i % 2 ? "a" : "b");
        tree_file(w.tree, name, "");
    }
    tree_dir(w.tree, "repo/lost/1");        /* of which nothing is told      */
    assert_true(told());
    renew();
    assert_int_equal(inf_watch_count(w.watch), 5);
    tree_file(w.tree, "repo/lost/1/data", "");
    assert_true(told());
}

static void
other_roots_are_watched_instead(void **state)
{
    (void) state;
    tree_dir(w.tree, "second/x/1");
    open_watch(INF_WATCH_MAX);
    char *second = strdup(tree_path(w.tree, "second"));
    w.root.path = second;
    renew();
    tree_file(w.tree, "repo/m/1/data", "unseen");
    assert_false(told());
    tree_file(w.tree, "second/x/1/data", "seen");
    assert_true(told());
    inf_watch_stop(w.watch);
    assert_int_equal(inf_watch_fd(w.watch), -1);
    free(second);
}

static void
a_root_more_or_less_is_another_set(void **state)
{
    (void) state;
    tree_dir(w.tree, "second/x/1");
    open_watch(INF_WATCH_MAX);
    char *second = strdup(tree_path(w.tree, "second"));
    const inf_watch_root_t both[2] = { w.root, { w.storage, second } };
    inf_watch_renew(w.watch, both, 2);
    assert_int_equal(inf_watch_count(w.watch), 6);
    inf_watch_renew(w.watch, both, 1);
    assert_int_equal(inf_watch_count(w.watch), 3);
    inf_watch_renew(w.watch, both, 0);
    assert_int_equal(inf_watch_count(w.watch), 0);
    free(second);
}

/* Object storage has no directories that the kernel knows. */
static void
only_local_repositories_are_watched(void **state)
{
    (void) state;
    const inf_storage_ops_t ops = { .remote = true };
    const inf_storage_t remote = { &ops };
    const inf_watch_root_t both[2] = { { &remote, w.path }, w.root };

    assert_ok(inf_watch_new(INF_WATCH_MAX, &w.watch));
    inf_watch_renew(w.watch, both, 1);
    assert_int_equal(inf_watch_count(w.watch), 0);
    tree_file(w.tree, "repo/m/1/data", "unseen");
    assert_false(told());
    inf_watch_renew(w.watch, both, 2);
    assert_int_equal(inf_watch_count(w.watch), 3);
}

int
main(void)
{
    inf_log_set_levels(false, false, false, 0);
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(every_kind_of_change_is_told),
        T(reading_is_no_change),
        T(new_folders_are_watched_and_old_ones_are_not),
        T(links_are_followed_and_may_lead_back_up),
        T(a_bound_leaves_out_the_deepest),
        T(without_inotify_nothing_is_told),
        T(lost_events_have_everything_watched_anew),
        T(other_roots_are_watched_instead),
        T(a_root_more_or_less_is_another_set),
        T(only_local_repositories_are_watched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
