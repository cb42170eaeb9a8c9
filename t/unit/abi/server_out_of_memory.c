/*
 * Every allocation of a repository index, of a journal that is opened and of a
 * request that is given its data fails once, in turn: each time there is an
 * error, or the whole result, and nothing is left behind.
 */

#define SHRINKING_SUCCEEDS
#include "scarce_memory.h"

#include "temp_tree.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/abi/api.h"
#include "core/abi/plugins.h"
#include "core/base/log.h"
#include "core/include/channel.h"
#include "core/proto/message.h"
#include "core/server/calls.h"
#include "core/server/journal.h"
#include "core_config_of.h"
#include "grpc_service.pb-c.h"

#if OWN_MALLOC

#define MINUTE_NS UINT64_C(60000000000)

enum { MODELS = 3, JOURNAL = 64 * 1024 };

static void
changed(void *userp)
{
    (void) userp;
}

/* The allocation at n fails; whether there were as many. */
static bool
is_spent(long n)
{
    bool spent = countdown == 0;
    countdown = 0;
    return n == 0 || spent;
}

/* Of the models below tree, with backends from beside this program. */
static inf_server_t *
start_server(const char *tree)
{
    static const inf_server_host_t host = {
        .plugins = &inf_abi_plugins, .changed = changed
    };
    char path[4200];
    inf_server_t *server;

    ssize_t len = readlink("/proc/self/exe", path, 4096);
    assert_true(len > 0);
    path[len] = '\0';
    strcpy(strrchr(path, '/'), "/backends");
    inf_core_config_t *config = core_config_of("model_control: EXPLICIT"
        " repositories: '%s' backend_directories: '%s'", tree, path);
    assert_ok(inf_server_start(config, &host, NULL, NULL, &server));
    inf_core_config_unref(config);
    inf_lifecycle_wait(server->lifecycle);
    return server;
}

static void
expect_all_models(inf_slice_t answer)
{
    ProtobufCMessage *m;
    char name[2] = "a";

    assert_ok(inf_message_unpack(
        &inference__repository_index_response__descriptor, answer, &m));
    const Inference__RepositoryIndexResponse *r = (const void *) m;
    assert_int_equal(r->n_models, MODELS);
    for (int i = 0; i < MODELS; i++) {
        assert_string_equal(r->models[i]->name, name);
        name[0]++;
    }
    inf_message_free(m);
}

static void
index_whole(inf_server_t *server, inf_registry_reader_t *models)
{
    inf_buf_t answer;

    inf_buf_init(&answer);
    assert_ok(inf_call(server, models, INF_METHOD_REPOSITORY_INDEX,
        inf_slice("", 0), false, &answer));
    expect_all_models(inf_buf_slice(&answer));
    inf_buf_fini(&answer);
}

static void
an_index_is_whole_or_an_error(void **state)
{
    (void) state;
    char *tree = tree_new();
    inf_registry_reader_t models;
    inf_err_t *err;
    bool spent;
    bool failed;
    long n = 0;

    tree_dir(tree, "a/1");
    tree_dir(tree, "b/1");
    tree_dir(tree, "c/1");
    inf_server_t *server = start_server(tree);
    inf_registry_reader_init(&models, &server->registry);

    index_whole(server, &models);       /* listings are kept from then on    */
    long before = live;

    do {
        inf_buf_t answer;

        inf_buf_init(&answer);
        countdown = n;
        err = inf_call(server, &models, INF_METHOD_REPOSITORY_INDEX,
            inf_slice("", 0), false, &answer);
        spent = is_spent(n);
        failed = err != NULL;
        if (failed) {
            assert_error(err, INF_ERR_UNAVAILABLE, "out of memory");
            index_whole(server, &models);   /* and so is why one failed      */
        } else {
            expect_all_models(inf_buf_slice(&answer));
        }
        inf_buf_fini(&answer);
        assert_true(live <= before);    /* a new thread gives memory back    */
        before = live;
        n++;
    } while (spent);

    assert_false(failed);
    assert_true(n > 5);
    inf_registry_reader_fini(&models);
    assert_true(inf_server_stop(server, MINUTE_NS));
    tree_free(tree);
}

static void
a_journal_is_opened_or_not(void **state)
{
    (void) state;
    static char before[JOURNAL], after[JOURNAL];
    char *names[] = { (char *) (uintptr_t) "first" };
    const inf_model_id_t a = inf_model_id("a");
    const inf_model_id_t b = inf_model_id("b");
    inf_journal_t *j;
    inf_err_t *err;
    bool spent;
    bool failed;
    long n = 0;

    int fd = memfd_create("journal", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, JOURNAL), 0);
    assert_ok(inf_journal_open(fd, false, names, 1, &j));
    inf_journal_notes.loaded(j, &a, NULL, false);
    inf_journal_notes.loaded(j, &b, NULL, false);
    inf_journal_close(j);
    assert_int_equal(pread(fd, before, JOURNAL, 0), JOURNAL);

    do {
        long count = live;

        countdown = n;
        err = inf_journal_open(fd, false, names, 1, &j);
        spent = is_spent(n);
        failed = err != NULL;
        if (!failed) {
            inf_journal_close(j);
        } else {
            assert_error(err, INF_ERR_UNAVAILABLE, "out of memory");
        }
        assert_int_equal(live, count);
        assert_int_equal(pread(fd, after, JOURNAL, 0), JOURNAL);
        assert_memory_equal(after, before, JOURNAL);
        n++;
    } while (spent);

    assert_false(failed);
    assert_true(n > 5);
    close(fd);
}

/* Two pieces for everyone, and one for a host policy. */
static TRITONSERVER_Error *
give_data(TRITONSERVER_InferenceRequest *r)
{
    static const float data[4];

    TRITONSERVER_Error *err = TRITONSERVER_InferenceRequestAppendInputData(r,
        "IN", data, 8, TRITONSERVER_MEMORY_CPU, 0);
    if (err == NULL) {
        err = TRITONSERVER_InferenceRequestAppendInputData(r, "IN", data + 2,
            8, TRITONSERVER_MEMORY_CPU, 0);
    }
    if (err == NULL) {
        err = TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy(r,
            "IN", data, 16, TRITONSERVER_MEMORY_CPU, 0, "node_1");
    }
    return err;
}

static void
a_request_takes_its_data_or_says_so(void **state)
{
    (void) state;
    static const int64_t shape[1] = { 4 };
    char *tree = tree_new();
    TRITONSERVER_InferenceRequest *r;
    bool spent;
    long n = 1;

    tree_file(tree, "echo/config.pbtxt", "backend: 'identity'"
        " input { name: 'IN' data_type: TYPE_FP32 dims: -1 }"
        " output { name: 'OUT' data_type: TYPE_FP32 dims: -1 }");
    tree_dir(tree, "echo/1");
    inf_server_t *server = start_server(tree);
    TRITONSERVER_Server *s = (void *) server;
    assert_ok(inf_lifecycle_load(server->lifecycle, "echo", NULL));
    inf_lifecycle_wait(server->lifecycle);

    /* the thread that has loaded it still gives memory back */
    for (long seen = -1; seen != live; usleep(20000)) {
        seen = live;
    }

    do {
        long before = live;

        assert_ok(TRITONSERVER_InferenceRequestNew(&r, s, "echo", -1));
        assert_ok(TRITONSERVER_InferenceRequestAddInput(r, "IN",
            TRITONSERVER_TYPE_FP32, shape, 1));
        countdown = n;
        inf_err_t *err = give_data(r);
        spent = is_spent(n);
        if (spent) {
            assert_error(err, INF_ERR_UNAVAILABLE, "out of memory");
        } else {
            assert_ok(err);
        }
        assert_ok(TRITONSERVER_InferenceRequestDelete(r));
        assert_int_equal(live, before);
        n++;
    } while (spent);

    assert_true(n > 4);
    assert_true(inf_server_stop(server, MINUTE_NS));
    tree_free(tree);
}

#else

static void
an_index_is_whole_or_an_error(void **state)
{
    (void) state;
    print_message("skipped: a sanitizer's allocator can't be replaced\n");
    skip();
}

static void
a_journal_is_opened_or_not(void **state)
{
    an_index_is_whole_or_an_error(state);
}

static void
a_request_takes_its_data_or_says_so(void **state)
{
    an_index_is_whole_or_an_error(state);
}

#endif /* OWN_MALLOC */

int
main(void)
{
    alarm(60);
    inf_log_set_levels(false, false, false, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_index_is_whole_or_an_error),
        cmocka_unit_test(a_journal_is_opened_or_not),
        cmocka_unit_test(a_request_takes_its_data_or_says_so)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
