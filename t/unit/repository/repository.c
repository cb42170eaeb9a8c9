/* The states of a repository, and the lists that they lead to. */

#include "repository/remote_storage.h"

#include "core/base/log.h"
#include "core/repository/repositories.h"

static char *tree;
static char *address;                   /* remote, with one model            */

static int
setup(void **state)
{
    (void) state;
    remote_reset();
    tree = tree_new();
    tree_file(tree, "remote1/m/config.pbtxt", "");
    address = strdup(tree_path(tree, "remote1"));
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    assert_int_equal(remote_opened(), 0);
    free(address);
    tree_free(tree);
    return 0;
}

static inf_repository_t *
open_remote(void)
{
    inf_repository_t *r;
    assert_ok(inf_repository_open(address, remote_open, &r));
    return r;
}

static size_t
models_listed(const inf_repository_t *r)
{
    inf_listing_t *listing = inf_repository_listing(r, NULL);
    size_t count = listing != NULL ? listing->entries.count : 0;
    inf_listing_unref(listing);
    return count;
}

static void
a_local_repository_counts_as_listed_until_a_listing_fails(void **state)
{
    (void) state;
    inf_repository_t *r;

    char *path = strdup(tree_path(tree, "local"));
    assert_ok(inf_repository_open(path, inf_storage_open, &r));
    assert_true(inf_repository_is_in(r, INF_REPOSITORY_LISTED));
    assert_error(inf_repository_poll(r), INF_ERR_NOT_FOUND, "local");
    assert_true(inf_repository_is_in(r, INF_REPOSITORY_STALE));
    tree_dir(tree, "local");
    assert_ok(inf_repository_poll(r));
    assert_true(inf_repository_is_in(r, INF_REPOSITORY_LISTED));
    inf_repository_unref(r);
    free(path);
}

static void
a_remote_repository_is_pending_until_its_first_listing_ends(void **state)
{
    (void) state;
    inf_repository_t *r = open_remote();

    assert_true(inf_repository_is_in(r, INF_REPOSITORY_PENDING));
    inf_repository_retry(r);                            /* it has not failed */
    assert_true(inf_repository_is_in(r, INF_REPOSITORY_PENDING));
    assert_int_equal(remote_asked(), 0);
    assert_ok(inf_repository_poll(r));
    assert_true(inf_repository_is_in(r, INF_REPOSITORY_LISTED));
    assert_int_equal(models_listed(r), 1);
    inf_repository_unref(r);
}

static void
a_first_listing_that_fails_may_be_tried_again(void **state)
{
    (void) state;
    inf_repository_t *r = open_remote();

    remote_set(NULL, "remote1");
    assert_error(inf_repository_poll(r), INF_ERR_UNAVAILABLE, "no answer");
    assert_true(inf_repository_is_in(r, INF_REPOSITORY_FAILED));
    assert_error(inf_repository_failure(r), INF_ERR_INTERNAL,
        "remote1' can't be listed: no answer");
    inf_repository_retry(r);
    assert_true(inf_repository_is_in(r, INF_REPOSITORY_PENDING));
    assert_error(inf_repository_failure(r), INF_ERR_INTERNAL,
        "remote1' can't be listed: no answer");         /* until it has ended */
    remote_set(NULL, NULL);
    assert_ok(inf_repository_poll(r));
    assert_true(inf_repository_is_in(r, INF_REPOSITORY_LISTED));
    assert_ok(inf_repository_failure(r));
    inf_repository_unref(r);
}

static void
a_later_listing_that_fails_leaves_what_was_listed(void **state)
{
    (void) state;
    inf_repository_t *r = open_remote();

    assert_ok(inf_repository_poll(r));
    remote_set(NULL, "remote1");
    for (int i = 0; i < 2; i++) {
        assert_error(inf_repository_poll(r), INF_ERR_UNAVAILABLE, "answer");
        assert_true(inf_repository_is_in(r, INF_REPOSITORY_STALE));
        assert_int_equal(models_listed(r), 1);
    }
    inf_repository_retry(r);                            /* it was listed     */
    assert_true(inf_repository_is_in(r, INF_REPOSITORY_STALE));
    remote_set(NULL, NULL);
    tree_file(tree, "remote1/n/config.pbtxt", "");
    assert_ok(inf_repository_poll(r));
    assert_true(inf_repository_is_in(r, INF_REPOSITORY_LISTED));
    assert_int_equal(models_listed(r), 2);
    inf_repository_unref(r);
}

/* An object storage lists nothing where nothing is: so it has to be there, but
   only the first time. */
static void
an_empty_repository_has_to_be_there_at_first(void **state)
{
    (void) state;
    inf_repository_t *r;

    char *path = strdup(tree_path(tree, "remote2"));
    tree_dir(tree, "remote2");
    assert_ok(inf_repository_open(path, remote_open, &r));
    assert_ok(inf_repository_poll(r));
    assert_int_equal(remote_asked(), 3);        /* list, stat, list          */
    assert_ok(inf_repository_poll(r));
    assert_int_equal(remote_asked(), 4);
    inf_repository_unref(r);
    free(path);
}

static void
a_list_has_the_listed_ones_in_front(void **state)
{
    (void) state;
    inf_repositories_t set;
    char *local = strdup(tree_path(tree, "local"));
    char *addresses[] = { address, local };

    assert_ok(inf_repositories_open(addresses, 2, false, remote_open,
        &set));
    inf_repository_list_t *before = inf_repositories_take(&set);
    assert_int_equal(before->total, 2);
    assert_int_equal(before->count, 1);
    assert_false(inf_repository_is_remote(before->items[0]));
    assert_true(inf_repository_list_any(before, INF_REPOSITORY_PENDING, ""));

    assert_ok(inf_repositories_poll(&set, before->items[1]));
    assert_false(inf_repositories_are(&set, before));
    assert_false(inf_repository_list_any(before, INF_REPOSITORY_PENDING, ""));
    inf_repository_list_t *after = inf_repositories_take(&set);
    assert_int_equal(after->total, 2);
    assert_int_equal(after->count, 2);
    assert_ok(inf_repositories_poll(&set, before->items[1]));
    assert_true(inf_repositories_are(&set, after));     /* not the first     */

    inf_repository_list_unref(before);
    inf_repository_list_unref(after);
    inf_repositories_close(&set);
    free(local);
}

static void
one_that_is_taken_out_before_it_was_listed_does_not_come_back(void **state)
{
    (void) state;
    inf_repositories_t set;
    bool changed;

    assert_ok(inf_repositories_open(&address, 1, false, remote_open,
        &set));
    inf_repository_list_t *before = inf_repositories_take(&set);
    assert_ok(inf_repositories_replace(&set, NULL, 0, &changed));
    assert_true(changed);
    assert_error(inf_repositories_poll(&set, before->items[0]),
        INF_ERR_UNAVAILABLE, "no answer");              /* it is cut short   */
    inf_repository_list_t *after = inf_repositories_take(&set);
    assert_int_equal(after->total, 0);

    inf_repository_list_unref(before);
    inf_repository_list_unref(after);
    inf_repositories_close(&set);
}

/* A caller that waits for it sees the end, not a failure. */
static void
a_listing_that_is_cancelled_is_no_failure(void **state)
{
    (void) state;
    inf_repositories_t set;

    assert_ok(inf_repositories_open(&address, 1, false, remote_open,
        &set));
    inf_repository_list_t *list = inf_repositories_take(&set);
    inf_repositories_cancel(&set);
    assert_error(inf_repositories_poll(&set, list->items[0]),
        INF_ERR_UNAVAILABLE, "no answer");
    assert_true(inf_repository_is_in(list->items[0], INF_REPOSITORY_PENDING));
    inf_repository_list_unref(list);
    inf_repositories_close(&set);
}

int
main(void)
{
    inf_log_set_levels(false, false, false, 0);
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_local_repository_counts_as_listed_until_a_listing_fails),
        T(a_remote_repository_is_pending_until_its_first_listing_ends),
        T(a_first_listing_that_fails_may_be_tried_again),
        T(a_later_listing_that_fails_leaves_what_was_listed),
        T(an_empty_repository_has_to_be_there_at_first),
        T(a_list_has_the_listed_ones_in_front),
        T(one_that_is_taken_out_before_it_was_listed_does_not_come_back),
        T(a_listing_that_is_cancelled_is_no_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
