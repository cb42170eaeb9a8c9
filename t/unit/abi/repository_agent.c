/* Real libraries of agents: opened, called, closed; and the checksum agent. */

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/abi/repository_agent.h"
#include "core/base/log.h"
#include "core/base/path.h"
#include "core/storage/storage_local.h"
#include "temp_tree.h"

static struct {
    char              *tree;
    char              *dir;
    char              *agent_dirs[2];
    inf_storage_t     *storage;
    inf_agent_table_t *table;
} w;

static int
setup(void **state)
{
    (void) state;
    w.tree = tree_new();
    tree_dir(w.tree, "m/1");
    tree_dir(w.tree, "temp");
    w.dir = strdup(tree_path(w.tree, "m"));
    w.agent_dirs[0] = T_AGENTS;
    w.agent_dirs[1] = AGENTS;
    setenv("TMPDIR", tree_path(w.tree, "temp"), 1);
    setenv("INF_T_AGENT_TRACE", tree_path(w.tree, "trace"), 1);
    assert_ok(inf_storage_local_open(&w.storage));
    assert_ok(inf_agent_table_new(&inf_agent_ops, &w.table));
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    unsetenv("TMPDIR");
    unsetenv("INF_T_AGENT_TRACE");
    inf_agent_table_free(w.table);
    inf_storage_close(w.storage);
    free(w.dir);
    assert_int_equal(rmdir(tree_path(w.tree, "temp")), 0);
    tree_free(w.tree);
    return 0;
}

/* The whole trace with '\n' as ';', "" when there is none. */
static const char *
trace(void)
{
    static char text[8192];
    FILE *f = fopen(tree_path(w.tree, "trace"), "r");

    text[0] = '\0';
    if (f != NULL) {
        text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
        fclose(f);
    }
    for (char *p = text; *p != '\0'; p++) {
        *p = *p == '\n' ? ';' : *p;
    }
    return text;
}

static bool
is_loaded(const char *name)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/%s/libtritonrepoagent_%s.so", T_AGENTS,
        name, name);
    void *handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (handle != NULL) {
        dlclose(handle);
    }
    return handle != NULL;
}

static inf_err_t *
load(const char *agents, inf_agents_t **out)
{
    static const inf_config_options_t opt = { .auto_complete = true };
    const inf_agents_model_t model = {
        .storage = w.storage, .dir = w.dir, .name = "m", .config = &opt,
        .agent_dirs = { w.agent_dirs, 2 }
    };
    char config[4096];

    snprintf(config, sizeof(config), "model_repository_agents { agents [ %s"
        " ] }", agents);
    tree_file(w.tree, "m/config.pbtxt", config);
    return inf_agents_load(w.table, &model, out);
}

static void
load_fails(const char *agents, inf_err_code_t code, const char *text)
{
    inf_agents_t *c;

    assert_error(load(agents, &c), code, text);
    assert_null(c);
}

/* ---- libraries */

static void
a_chain_is_heard_from_first_to_last(void **state)
{
    (void) state;
    inf_agents_t *c;
    char expected[4096];

    assert_ok(load("{ name: 'record' parameters { key: 'tag' value: 'a' } },"
        " { name: 'record' parameters { key: 'tag' value: 'b' } }", &c));
    assert_true(is_loaded("record"));
    inf_agents_complete(c);
    inf_agents_unload(c);
    inf_agents_free(c);

    snprintf(expected, sizeof(expected), "Initialize;a ModelInitialize;"
        "a LOAD %1$s;b ModelInitialize;b LOAD %1$s;b LOAD_COMPLETE %1$s;"
        "a LOAD_COMPLETE %1$s;a UNLOAD %1$s;b UNLOAD %1$s;"
        "b UNLOAD_COMPLETE %1$s;a UNLOAD_COMPLETE %1$s;b ModelFinalize;"
        "a ModelFinalize;Finalize;", w.dir);
    assert_string_equal(trace(), expected);
    assert_false(is_loaded("record"));
}

static void
a_library_stays_while_some_model_uses_it(void **state)
{
    (void) state;
    inf_agents_t *c, *d;

    assert_ok(load("{ name: 'record' }", &c));
    assert_ok(load("{ name: 'record' }", &d));
    inf_agents_free(c);
    assert_true(is_loaded("record"));
    inf_agents_free(d);
    assert_false(is_loaded("record"));

    const char *first = strstr(trace(), "Initialize;Mod");
    assert_ptr_equal(first, trace());
    assert_non_null(strstr(trace(), "ModelFinalize;Finalize;"));
}

static void
a_failing_call_of_a_library_fails_the_load(void **state)
{
    (void) state;
    char expected[4096];

    load_fails("{ name: 'record' parameters { key: 'fail' value:"
        " 'ModelInitialize' } }", INF_ERR_INVALID_ARG,
        "failing on purpose: see parameters (repo agent 'record')");
    assert_string_equal(trace(), "Initialize;ModelInitialize;ModelFinalize;"
        "Finalize;");

    unlink(tree_path(w.tree, "trace"));
    load_fails("{ name: 'record' parameters { key: 'fail' value: 'LOAD' } }",
        INF_ERR_INVALID_ARG, "failing on purpose: see parameters (repo agent"
        " 'record')");
    snprintf(expected, sizeof(expected), "Initialize;ModelInitialize;"
        "LOAD %1$s;LOAD_FAIL %1$s;ModelFinalize;Finalize;", w.dir);
    assert_string_equal(trace(), expected);
    assert_false(is_loaded("record"));
}

static void
every_function_answers_as_the_reference_says(void **state)
{
    (void) state;
    inf_agents_t *c;

    /* an error in a later action would only be logged */
    assert_ok(load("{ name: 'functions' parameters [ { key: 'one' value: '1'"
        " }, { key: 'two' value: '2' } ] }", &c));
    inf_agents_complete(c);
    inf_agents_unload(c);
    inf_agents_free(c);
    load_fails("{ name: 'functions' }", INF_ERR_INTERNAL,
        "expected: count == 2");
}

static _Atomic int errors_logged;

static void
count_errors(void *userp, inf_log_level_t level, const char *file, int line_no,
    const char *line)
{
    (void) userp;
    (void) file;
    (void) line_no;
    if (level == INF_LOG_ERROR) {
        errors_logged++;
        print_message("%s\n", line);
    }
}

static void
every_function_does_so_in_later_actions_too(void **state)
{
    (void) state;

    inf_log_set_levels(false, false, true, 0);
    inf_log_set_sink(count_errors, NULL);
    every_function_answers_as_the_reference_says(state);
    inf_log_set_sink(NULL, NULL);
    inf_log_set_levels(false, false, false, 0);
    assert_int_equal(errors_logged, 0);
}

static void
a_library_that_cannot_be_used_is_rejected(void **state)
{
    (void) state;

    load_fails("{ name: 'no_action' }", INF_ERR_NOT_FOUND, "unable to"
        " find required entrypoint"
        " 'TRITONREPOAGENT_ModelAction' in shared library " T_AGENTS
        "/no_action/libtritonrepoagent_no_action.so (repo agent 'no_action')");
    assert_false(is_loaded("no_action"));
    load_fails("{ name: 'newer' }", INF_ERR_UNSUPPORTED,
        "needs version 0.2, the core has 0.1");
    assert_false(is_loaded("newer"));
    load_fails("{ name: 'no_initialize' }", INF_ERR_UNAVAILABLE,
        "not today (repo agent 'no_initialize')");
    assert_string_equal(trace(), "Finalize same;");
    assert_false(is_loaded("no_initialize"));
    load_fails("{ name: 'nobody' }", INF_ERR_NOT_FOUND, "unable to find"
        " 'libtritonrepoagent_nobody.so' for repo agent 'nobody', searched: "
        T_AGENTS "/nobody, " AGENTS "/nobody");
}

static void
what_an_agent_throws_is_an_error(void **state)
{
    (void) state;

    load_fails("{ name: 'throws' }", INF_ERR_INTERNAL,
        "std::runtime_error: thrown on purpose");
    assert_false(is_loaded("throws"));
}

static void
a_library_that_was_cut_short_is_rejected(void **state)
{
    (void) state;
    char *data;
    size_t len;

    assert_ok(inf_storage_read(w.storage,
        T_AGENTS "/record/libtritonrepoagent_record.so", 16 << 20, &data,
        &len));
    tree_dir(w.tree, "short");
    FILE *f = fopen(tree_path(w.tree, "short/libtritonrepoagent_short.so"),
        "w");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, len / 3, f), len / 3);
    fclose(f);
    free(data);
    w.agent_dirs[1] = w.tree;
    load_fails("{ name: 'short' }", INF_ERR_NOT_FOUND,
        "libtritonrepoagent_short.so");
}

static void
a_file_that_is_no_library_is_rejected(void **state)
{
    (void) state;

    tree_file(w.tree, "junk/libtritonrepoagent_junk.so", "\177ELF junk");
    w.agent_dirs[1] = w.tree;
    load_fails("{ name: 'junk' }", INF_ERR_NOT_FOUND,
        "unable to load shared library: ");
}

static void
a_late_update_is_rejected_and_changes_nothing(void **state)
{
    (void) state;
    inf_agents_t *c;

    tree_dir(w.tree, "other/1");
    assert_ok(load("{ name: 'record' parameters { key: 'late' value: '/tmp' }"
        " }", &c));
    inf_agents_complete(c);
    assert_string_equal(inf_agents_dir(c), w.dir);
    inf_agents_free(c);
    assert_null(strstr(trace(), " /tmp;"));
}

/* ---- locations */

static void
two_agents_move_the_model_one_after_the_other(void **state)
{
    (void) state;
    inf_agents_t *c;
    char agents[2048], seen[4096];

    tree_dir(w.tree, "first/1");
    tree_dir(w.tree, "second/1");
    snprintf(agents, sizeof(agents), "{ name: 'record' parameters { key:"
        " 'goto' value: '%s/first' } }, { name: 'record' parameters { key:"
        " 'goto' value: '%s/second' } }", w.tree, w.tree);
    assert_ok(load(agents, &c));
    assert_string_equal(inf_agents_dir(c), tree_path(w.tree, "second"));
    snprintf(seen, sizeof(seen), "LOAD %s;ModelInitialize;LOAD %s/first;",
        w.dir, w.tree);
    assert_non_null(strstr(trace(), seen));
    inf_agents_free(c);

    load_fails("{ name: 'record' parameters { key: 'goto' value:"
        " '/nonexistent/inf' } }", INF_ERR_NOT_FOUND,
        "repo agent 'record' left the model at '/nonexistent/inf'");
    load_fails("{ name: 'record' parameters { key: 'remote' value:"
        " 'as://account' } }", INF_ERR_INVALID_ARG,
        "repo agent 'record' left the model at 'as://account'");
}

static void
a_model_is_decrypted_in_a_folder_that_goes_with_it(void **state)
{
    (void) state;
    inf_agents_t *c;
    char *data;
    size_t len;

    tree_file(w.tree, "m/1/model.xor", "IDMMN");
    assert_ok(load("{ name: 'xor' parameters { key: 'key' value: '1' } },"
        " { name: 'checksum' parameters { key: 'MD5:1/model' value:"
        " 'EB61EEAD90E3B899C6BCBE27AC581660' } }", &c));
    char *path = inf_path_join(inf_agents_dir(c), "1/model");
    assert_ok(inf_storage_read(inf_agents_storage(c), path, 100, &data,
        &len));
    assert_string_equal(data, "HELLO");
    free(data);
    inf_agents_complete(c);
    inf_agents_unload(c);
    assert_int_equal(access(path, F_OK), 0);
    inf_agents_free(c);
    assert_int_not_equal(access(path, F_OK), 0);
    free(path);
}

/* ---- checksums */

#define CHECK(key, value) "{ name: 'checksum' parameters { key: '" key       \
    "' value: '" value "' } }"
#define MD5_ABC "900150983cd24fb0d6963f7d28e17f72"
#define SHA_ABC                                                              \
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static void
passes(const char *agents)
{
    inf_agents_t *c;

    assert_ok(load(agents, &c));
    assert_non_null(c);
    inf_agents_complete(c);
    inf_agents_free(c);
}

static void
a_right_checksum_passes(void **state)
{
    (void) state;
    tree_file(w.tree, "m/1/model", "abc");
    passes(CHECK("MD5:1/model", MD5_ABC));
    passes(CHECK("md5:1/model", "900150983CD24FB0D6963F7D28E17F72"));
    passes(CHECK("SHA256:1/model", SHA_ABC));
    passes("{ name: 'checksum' }");
}

static void
a_wrong_checksum_names_file_and_both(void **state)
{
    (void) state;
    tree_file(w.tree, "m/1/model", "abd");
    load_fails(CHECK("MD5:1/model", MD5_ABC), INF_ERR_INVALID_ARG,
        "Mismatched MD5 hash for file 1/model, expect: " MD5_ABC ", got: "
        "4911e516e5aa21d327512e0c8b197616");
    load_fails(CHECK("MD5:1/model", ""), INF_ERR_INVALID_ARG,
        "Mismatched MD5 hash for file 1/model, expect: , got: ");
    load_fails(CHECK("SHA256:1/model", SHA_ABC), INF_ERR_INVALID_ARG,
        "Mismatched SHA256 hash for file 1/model, expect: " SHA_ABC);
}

static void
a_key_that_is_no_checksum_is_rejected(void **state)
{
    (void) state;
    tree_file(w.tree, "m/1/model", "abc");
    load_fails(CHECK("1/model", MD5_ABC), INF_ERR_INVALID_ARG,
        "failed to parse key: 1/model");
    load_fails(CHECK("CRC:1/model", MD5_ABC), INF_ERR_INVALID_ARG,
        "Unsupported checksum algorithm: CRC");
    load_fails(CHECK(":1/model", MD5_ABC), INF_ERR_INVALID_ARG,
        "Unsupported checksum algorithm: ");
    load_fails(CHECK("MD5:1/gone", MD5_ABC), INF_ERR_NOT_FOUND,
        "failed to open file 1/gone: No such file");
    load_fails(CHECK("MD5:1", MD5_ABC), INF_ERR_INVALID_ARG,
        "1 is not a regular file");
    load_fails(CHECK("MD5:", MD5_ABC), INF_ERR_INVALID_ARG, "directory");
}

static void
a_checked_file_stays_in_the_model(void **state)
{
    (void) state;
    tree_file(w.tree, "secret", "abc");
    tree_file(w.tree, "model2/file", "abc");
    tree_file(w.tree, "m/real", "abc");
    tree_link(w.tree, "../../secret", "m/1/link");
    tree_link(w.tree, "../real", "m/1/inner");
    load_fails(CHECK("MD5:../secret", MD5_ABC), INF_ERR_INVALID_ARG,
        "file ../secret is outside the model's directory");
    load_fails(CHECK("MD5:../model2/file", MD5_ABC), INF_ERR_INVALID_ARG,
        "outside the model's directory");
    load_fails(CHECK("MD5:1/link", MD5_ABC), INF_ERR_INVALID_ARG,
        "outside the model's directory");
    passes(CHECK("MD5:1/inner", MD5_ABC));
}

static void
a_remote_model_has_no_checksums(void **state)
{
    (void) state;
    load_fails("{ name: 'record' parameters { key: 'remote' value:"
        " 's3://bucket/m' } }, " CHECK("MD5:1/model", MD5_ABC),
        INF_ERR_UNSUPPORTED, "Unsupported filesystem: 1");
}

/* RFC 1321 and FIPS 180-4, and lengths around a block's end. */
static void
digests_are_those_of_the_standards(void **state)
{
    (void) state;
    static const struct {
        const char *text;
        const char *md5;
        const char *sha;
    } vectors[] = {
        { "", "d41d8cd98f00b204e9800998ecf8427e",
          "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "message digest", "f96b697d7cb7938d525a2f31aaf161d0",
          "f7846f55cf23e14eebeab5b4e1550cad5b509e3348fbc4efa3a1413d393cb650" },
        { "12345678901234567890123456789012345678901234567890123456789012345"
          "678901234567890", "57edf4a22be3c955ac49da2e2107b67a",
          "f371bc4a311f2b009eef952dd83ca80e2b60026c8e935592d0f9c308453c813e" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
          "8215ef0796a20bcaaae116d3876c664a",
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
    };

    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        char agents[1024];
        tree_file(w.tree, "m/f", vectors[i].text);
        snprintf(agents, sizeof(agents), "{ name: 'checksum' parameters ["
            " { key: 'MD5:f' value: '%s' }, { key: 'SHA256:f' value: '%s' }"
            " ] }", vectors[i].md5, vectors[i].sha);
        passes(agents);
    }

    char *million = malloc(1000001);
    memset(million, 'a', 1000000);
    million[1000000] = '\0';
    tree_file(w.tree, "m/f", million);
    free(million);
    passes("{ name: 'checksum' parameters [ { key: 'MD5:f' value:"
        " '7707d6ae4e027c70eea2a935c2296f21' }, { key: 'SHA256:f' value:"
        " 'cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0'"
        " } ] }");
}

int
main(void)
{
    inf_log_set_levels(false, false, false, 0);
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_chain_is_heard_from_first_to_last),
        T(a_library_stays_while_some_model_uses_it),
        T(a_failing_call_of_a_library_fails_the_load),
        T(every_function_answers_as_the_reference_says),
        T(every_function_does_so_in_later_actions_too),
        T(a_library_that_cannot_be_used_is_rejected),
        T(what_an_agent_throws_is_an_error),
        T(a_library_that_was_cut_short_is_rejected),
        T(a_file_that_is_no_library_is_rejected),
        T(a_late_update_is_rejected_and_changes_nothing),
        T(two_agents_move_the_model_one_after_the_other),
        T(a_model_is_decrypted_in_a_folder_that_goes_with_it),
        T(a_right_checksum_passes),
        T(a_wrong_checksum_names_file_and_both),
        T(a_key_that_is_no_checksum_is_rejected),
        T(a_checked_file_stays_in_the_model),
        T(a_remote_model_has_no_checksums),
        T(digests_are_those_of_the_standards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
