/* The configurations that a load request's is compared with. */

#include "temp_tree.h"

#include "core/proto/config_json.h"
#include "core/proto/message.h"
#include "core/repository/model_source.h"
#include "core/storage/storage_local.h"

#define NAMES(value) "{\"parameters\":{\"p\":{\"string_value\":\"" value "\"}}}"
#define OWN(text) "backend: 'identity' parameters { " text " }"
#define OWN_FILE OWN("key: 'p' value { string_value: '/a' }")
#define OWN_COPIES OWN("key: 'INFERENCE_WRITABLE_INPUTS'"                     \
    " value { string_value: 'true' }")

static inf_storage_t *disk;
static unsigned read_count;

static inf_err_t *
count_stat(const inf_storage_t *st, const char *path, inf_entry_t *out)
{
    (void) st;
    return inf_storage_stat(disk, path, out);
}

static inf_err_t *
count_read(const inf_storage_t *st, const char *path, size_t limit,
    char **data, size_t *len)
{
    (void) st;
    read_count++;
    return inf_storage_read(disk, path, limit, data, len);
}

static const inf_storage_ops_t counting_ops = {
    .stat = count_stat, .read = count_read
};

/* own NULL: the directory has no configuration. */
static inf_err_t *
check_sent(const char *json, const char *own, bool in_repository)
{
    inf_storage_t counting = { .ops = &counting_ops };
    inf_private_dir_t private_dir = { .path = NULL };
    Inference__ModelConfig *sent;
    char *tree = tree_new();

    tree_dir(tree, "m");
    if (own != NULL) {
        tree_file(tree, "m/config.pbtxt", own);
    }
    assert_ok(inf_model_config_from_json(inf_slice_str(json), &sent));

    const inf_model_source_t source = {
        .storage = &counting,
        .dir = (char *) (uintptr_t) tree_path(tree, "m"),
        .private_dir = in_repository ? NULL : &private_dir
    };
    read_count = 0;
    inf_err_t *err = inf_model_source_check_sent(&source, "", sent);

    inf_message_free(&sent->base);
    tree_free(tree);
    return err;
}

static void
the_repository_s_configuration_is_read_once(void **state)
{
    (void) state;

    assert_ok(check_sent("{}", OWN_FILE, true));
    assert_int_equal(read_count, 1);
    assert_ok(check_sent(NAMES("/a"), OWN_FILE, true));
    assert_int_equal(read_count, 1);
    assert_error(check_sent(NAMES("/b"), OWN_FILE, true), INF_ERR_INVALID_ARG,
        "parameters[\"p\"]: '/b' is not accepted");
    assert_int_equal(read_count, 1);
    assert_error(check_sent("{}", OWN_COPIES, true), INF_ERR_INVALID_ARG,
        "INFERENCE_WRITABLE_INPUTS");
    assert_int_equal(read_count, 1);
}

static void
one_that_is_missing_allows_nothing_more(void **state)
{
    (void) state;

    assert_ok(check_sent("{}", NULL, true));
    assert_error(check_sent(NAMES("/a"), NULL, true), INF_ERR_INVALID_ARG,
        "parameters[\"p\"]: '/a' is not accepted");
    assert_int_equal(read_count, 0);
}

static void
one_that_cannot_be_read_is_an_error_where_it_decides(void **state)
{
    (void) state;

    assert_ok(check_sent("{}", "nonsense", true));
    assert_error(check_sent(NAMES("/a"), "nonsense", true), INF_ERR_INTERNAL,
        "m/config.pbtxt");
}

static void
a_private_directory_has_none_of_its_own(void **state)
{
    (void) state;

    assert_ok(check_sent("{}", OWN_COPIES, false));
    assert_error(check_sent(NAMES("/a"), OWN_FILE, false),
        INF_ERR_INVALID_ARG, "parameters[\"p\"]: '/a' is not accepted");
    assert_int_equal(read_count, 0);
}

static int
open_disk(void **state)
{
    (void) state;
    assert_ok(inf_storage_local_open(&disk));
    return 0;
}

static int
close_disk(void **state)
{
    (void) state;
    inf_storage_close(disk);
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_repository_s_configuration_is_read_once),
        cmocka_unit_test(one_that_is_missing_allows_nothing_more),
        cmocka_unit_test(one_that_cannot_be_read_is_an_error_where_it_decides),
        cmocka_unit_test(a_private_directory_has_none_of_its_own)
    };
    return cmocka_run_group_tests(tests, open_disk, close_disk);
}
