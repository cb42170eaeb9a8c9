/* The built-in cache, opened and asked as any cache is. */

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/abi/cache_plugin.h"
#include "core/base/clock.h"

#define HEAD 1000u          /* more than an entry's own record and key       */

static inf_cache_plugin_t *cache;

static inf_err_t *
sink_alloc(void *userp, inf_output_t *out, size_t size)
{
    (void) userp;
    out->base = size > 0 ? malloc(size) : NULL;
    return NULL;
}

static void
sink_release(void *userp, inf_output_t *out)
{
    (void) userp;
    free(out->base);
}

static void
sink_factory_free(void *userp, inf_factory_t *f)
{
    (void) userp;
    inf_factory_fini(f);
}

static const inf_sink_ops_t sink = {
    .alloc = sink_alloc,
    .release = sink_release,
    .factory_free = sink_factory_free
};

static inf_err_t *
open_with(const char *config)
{
    const inf_cache_spec_t spec = { .name = "local", .config = config };
    return inf_cache_plugin_open(&spec, &cache);
}

static void
open_cache(const char *config)
{
    assert_null(open_with(config));
    assert_true(inf_cache_plugin_is_builtin(cache));
}

static inf_cache_counts_t
counts(void)
{
    inf_cache_counts_t c;
    assert_true(inf_cache_plugin_ops.counts(cache, &c));
    return c;
}

/* One output of size bytes, all like the key's first. */
static inf_err_t *
insert(const char *key, size_t size)
{
    inf_factory_t f;
    inf_response_t *r;
    inf_factory_init(&f);
    inf_factory_start(&f, NULL, "", &sink, NULL);
    assert_null(inf_response_new(&f, &r));
    inf_output_t *out = inf_response_add_output(r, "O", INF_TYPE_UINT8,
        (int64_t[]) { (int64_t) size }, 1);
    assert_null(sink_alloc(NULL, out, size));
    out->byte_size = size;
    if (size > 0) {
        memset(out->base, key[0], size);
    }
    inf_cache_span_t span = { .start_ns = inf_clock_ns() };
    inf_err_t *err = inf_cache_plugin_ops.insert(cache, key, r, &span);
    assert_true(span.end_ns >= span.start_ns);
    inf_response_free(r);
    inf_factory_unref(&f);
    return err;
}

/* false: a miss */
static bool
lookup(const char *key, size_t size)
{
    inf_factory_t f;
    inf_response_t *r = NULL;
    inf_factory_init(&f);
    inf_factory_start(&f, NULL, "", &sink, NULL);
    inf_cache_span_t span = { .start_ns = inf_clock_ns() };
    assert_null(inf_cache_plugin_ops.lookup(cache, key, &f, &r, &span));
    assert_true(span.end_ns >= span.start_ns);
    bool hit = r != NULL;
    if (hit) {
        const char *base = r->first->base;
        assert_int_equal(r->first->byte_size, size);
        for (size_t i = 0; i < size; i++) {
            assert_int_equal(base[i], key[0]);
        }
        inf_response_free(r);
    }
    inf_factory_unref(&f);
    return hit;
}

static void
code_is(inf_err_t *err, inf_err_code_t code, const char *text)
{
    assert_non_null(err);
    assert_int_equal(inf_err_code(err), code);
    if (strstr(inf_err_msg(err), text) == NULL) {
        fail_msg("\"%s\" not in \"%s\"", text, inf_err_msg(err));
    }
    inf_err_free(err);
}

static void
a_configuration_needs_a_size(void **state)
{
    (void) state;
    static const char *const bad[] = {
        "{}", "{\"size\":\"\"}", "{\"size\":\"12q\"}", "{\"size\":-5}",
        "{\"size\":\"-5\"}", "{\"size\":1.5}", "{\"size\":[]}", "[]",
        "{\"size\":\"99999999999999999999\"}", "{\"size\":null}"
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        code_is(open_with(bad[i]), INF_ERR_INVALID_ARG,
            "response cache \"local\": config of the local cache didn't"
            " contain a valid 'size' field");
    }
    code_is(open_with("{"), INF_ERR_INVALID_ARG, "config of the local cache");
    code_is(open_with("{\"size\":\"127\"}"), INF_ERR_INVALID_ARG,
        "at least 128");
    code_is(open_with("{\"size\":0}"), INF_ERR_INVALID_ARG, "at least 128");
    open_cache("{\"size\":\"128\",\"other\":true}");
    assert_int_equal(counts().limit, 128);
    inf_cache_plugin_close(cache);
    open_cache("{\"other\":{\"size\":[5]},\"size\":18446744073709551615}");
    assert_true(counts().limit == UINT64_MAX);
    inf_cache_plugin_close(cache);
}

static void
what_was_inserted_is_found(void **state)
{
    (void) state;
    open_cache("{\"size\":\"100000\"}");
    assert_false(lookup("a", 5));
    assert_null(insert("a", 5));
    assert_true(lookup("a", 5));
    assert_false(lookup("b", 5));
    assert_null(insert("empty", 0));
    assert_true(lookup("empty", 0));
    code_is(insert("a", 5), INF_ERR_ALREADY_EXISTS, "key already exists");

    inf_cache_counts_t c = counts();
    assert_int_equal(c.entries, 2);
    assert_int_equal(c.hits, 2);
    assert_int_equal(c.misses, 2);
    assert_int_equal(c.evictions, 0);
    assert_in_range(c.used, 10, 2 * HEAD);
    assert_true(c.lookup_ns > 0 && c.insertion_ns > 0);
    inf_cache_plugin_close(cache);
}

/* Capacity for two: 1, 2; 3 puts 1 out; 2 is used; 4 puts 3 out.
   (scheduling.md 7.7) */
static void
the_longest_unused_is_given_up(void **state)
{
    (void) state;
    open_cache("{\"size\":\"25000\"}");
    assert_null(insert("1", 10000));
    assert_null(insert("2", 10000));
    assert_null(insert("3", 10000));
    assert_false(lookup("1", 10000));
    assert_true(lookup("2", 10000));
    assert_null(insert("4", 10000));
    assert_false(lookup("3", 10000));
    assert_true(lookup("2", 10000));
    assert_true(lookup("4", 10000));
    assert_int_equal(counts().evictions, 2);
    assert_int_equal(counts().entries, 2);

    assert_null(insert("5", 24000));            /* both make room for it     */
    assert_false(lookup("2", 10000));
    assert_false(lookup("4", 10000));
    assert_true(lookup("5", 24000));
    assert_int_equal(counts().entries, 1);
    inf_cache_plugin_close(cache);
}

/* scheduling.md 7.6 */
static void
one_larger_than_the_cache_is_rejected(void **state)
{
    (void) state;
    open_cache("{\"size\":\"5000\"}");
    assert_null(insert("a", 1000));
    code_is(insert("b", 5000), INF_ERR_INVALID_ARG,
        "is greater than total cache size: 5000");
    assert_true(lookup("a", 1000));             /* nothing went for it       */
    assert_int_equal(counts().evictions, 0);
    inf_cache_plugin_close(cache);
}

/* scheduling.md 7.11 */
static void
the_bound_holds_however_much_comes(void **state)
{
    (void) state;
    char key[16];
    open_cache("{\"size\":\"1000000\"}");
    for (int i = 0; i < 10000; i++) {
        snprintf(key, sizeof(key), "%d", i);
        assert_null(insert(key, 1000));
        assert_true(counts().used <= 1000000);
    }
    inf_cache_counts_t c = counts();
    assert_int_equal(c.entries + c.evictions, 10000);
    assert_in_range(c.entries, 1000000 / (1000 + HEAD), 1000);
    for (int i = 10000 - (int) c.entries; i < 10000; i++) {
        snprintf(key, sizeof(key), "%d", i);
        assert_true(lookup(key, 1000));
    }
    inf_cache_plugin_close(cache);
}

enum { THREADS = 100, ROUNDS = 300 };

static void *
crowd_main(void *arg)
{
    uint32_t seed = (uint32_t) (uintptr_t) arg;
    char key[16];

    for (int i = 0; i < ROUNDS; i++) {
        seed = seed * 1664525u + 1013904223u;
        uint32_t n = (seed >> 16) % 200;
        size_t size = n * 7;
        snprintf(key, sizeof(key), "%c%u", 'a' + (char) (n % 26), n);
        if (!lookup(key, size)) {
            inf_err_t *err = insert(key, size);
            assert_true(err == NULL
                || inf_err_code(err) == INF_ERR_ALREADY_EXISTS
                || inf_err_code(err) == INF_ERR_UNAVAILABLE);
            inf_err_free(err);
        }
    }
    return NULL;
}

/* scheduling.md 7.9 */
static void
a_crowd_finds_what_it_inserted(void **state)
{
    (void) state;
    pthread_t threads[THREADS];
    open_cache("{\"size\":\"60000\"}");
    for (uintptr_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, crowd_main,
            (void *) (i + 1)), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    inf_cache_counts_t c = counts();
    assert_int_equal(c.hits + c.misses, THREADS * ROUNDS);
    assert_true(c.used <= c.limit);
    assert_true(c.evictions > 0 && c.hits > 0);
    inf_cache_plugin_close(cache);
}

static void
a_name_without_a_library_is_an_invalid_argument(void **state)
{
    (void) state;
    static const char *const dirs[] = { "/nonexistent/a", "/nonexistent/b" };
    inf_cache_spec_t spec = { .name = "redis", .config = "{}" };

    code_is(inf_cache_plugin_open(&spec, &cache), INF_ERR_INVALID_ARG,
        "redis/libtritoncache_redis.so in any directory: none is configured");
    spec.dirs = dirs;
    spec.dir_count = 2;
    code_is(inf_cache_plugin_open(&spec, &cache), INF_ERR_INVALID_ARG,
        "redis/libtritoncache_redis.so in /nonexistent/a, nor in the others");
    spec.name = "../evil";
    code_is(inf_cache_plugin_open(&spec, &cache), INF_ERR_INVALID_ARG,
        "no name for a cache");
    spec.name = "a/b";
    code_is(inf_cache_plugin_open(&spec, &cache), INF_ERR_INVALID_ARG,
        "no name for a cache");
    spec.name = "local";                        /* no directory has one      */
    spec.config = "{\"size\":2000}";
    assert_null(inf_cache_plugin_open(&spec, &cache));
    assert_true(inf_cache_plugin_is_builtin(cache));
    inf_cache_plugin_close(cache);
    inf_cache_plugin_close(NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_configuration_needs_a_size),
        cmocka_unit_test(what_was_inserted_is_found),
        cmocka_unit_test(the_longest_unused_is_given_up),
        cmocka_unit_test(one_larger_than_the_cache_is_rejected),
        cmocka_unit_test(the_bound_holds_however_much_comes),
        cmocka_unit_test(a_crowd_finds_what_it_inserted),
        cmocka_unit_test(a_name_without_a_library_is_an_invalid_argument)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
