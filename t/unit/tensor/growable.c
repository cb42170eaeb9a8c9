#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/tensor/growable.h"
#include "fake_cuda.h"
#include "tensor/cuda.h"

#define RANGE (8 * FAKE_CUDA_GRANULE)

/* Two GPUs without pools, each with addresses for RANGE bytes. */
static inf_memory_t *
memory_with_ranges(void)
{
    static const inf_memory_pool_size_t ranges[] = { { 0, RANGE },
        { 1, RANGE } };
    static const inf_memory_pool_size_t none[] = { { 0, 0 }, { 1, 0 } };
    inf_memory_t *m;

    succeeds(inf_memory_new(&(inf_memory_options_t) {
        .driver = FAKE_CUDA_LIBRARY, .cuda = none, .cuda_count = 2,
        .virtual = ranges, .virtual_count = 2, .min_capability = 5.0
    }, &m));
    return m;
}

static uint64_t
bytes_used(inf_memory_t *m, int64_t device)
{
    uint64_t left, all;

    succeeds(inf_cuda_memory_info(inf_memory_driver(m), device, &left, &all));
    return all - left;
}

static void
memory_grows_in_place_on_its_own_gpu(void **state)
{
    (void) state;
    inf_memory_t *m = memory_with_ranges();
    inf_growable_t *g;

    succeeds(inf_growable_new(m, 1, &g));
    assert_int_equal(inf_growable_type(g), INF_MEMORY_GPU);
    assert_int_equal(inf_growable_id(g), 1);
    assert_int_equal(bytes_used(m, 1), 0);
    void *base = inf_growable_base(g);

    succeeds(inf_growable_fit(g, 1));
    assert_int_equal(bytes_used(m, 1), FAKE_CUDA_GRANULE);
    memcpy(fake_cuda_bytes(base), "stay", 4);
    succeeds(inf_growable_fit(g, FAKE_CUDA_GRANULE));
    assert_int_equal(bytes_used(m, 1), FAKE_CUDA_GRANULE);
    succeeds(inf_growable_fit(g, FAKE_CUDA_GRANULE + 1));
    assert_int_equal(bytes_used(m, 1), 2 * FAKE_CUDA_GRANULE);
    succeeds(inf_growable_fit(g, 5));           /* never less                */
    assert_int_equal(bytes_used(m, 1), 2 * FAKE_CUDA_GRANULE);

    assert_ptr_equal(inf_growable_base(g), base);
    assert_memory_equal(fake_cuda_bytes(base), "stay", 4);
    assert_int_equal(bytes_used(m, 0), 0);

    inf_growable_free(g);
    assert_int_equal(bytes_used(m, 1), 0);
    inf_memory_free(m);
}

static void
the_range_is_the_limit(void **state)
{
    (void) state;
    inf_memory_t *m = memory_with_ranges();
    inf_growable_t *g;

    succeeds(inf_growable_new(m, 0, &g));
    succeeds(inf_growable_fit(g, RANGE));
    fails(inf_growable_fit(g, RANGE + 1), INF_ERR_UNAVAILABLE, "524289 bytes"
        " are more than the 524288 that memory on GPU 0 may grow to");
    inf_growable_free(g);
    inf_memory_free(m);
}

static void
a_gpu_without_a_range_has_no_memory_that_grows(void **state)
{
    (void) state;
    static const inf_memory_pool_size_t none = { 0, 0 };
    inf_memory_t *m;
    inf_growable_t *g = (void *) 1;

    succeeds(inf_memory_new(&(inf_memory_options_t) {
        .driver = FAKE_CUDA_LIBRARY, .virtual = &none, .virtual_count = 1
    }, &m));
    fails(inf_growable_new(m, 0, &g), INF_ERR_UNAVAILABLE,
        "GPU 0 has no addresses");
    assert_null(g);
    inf_memory_free(m);
    inf_growable_free(NULL);
}

/* With a driver and without one. */
static void
memory_of_the_host_grows_in_place(void **state)
{
    (void) state;
    static const char *const drivers[] = { FAKE_CUDA_LIBRARY, "" };
    static const size_t sizes[] = { 1, 4096, 1 << 20, (1 << 20) + 1, 5 << 20 };

    for (int i = 0; i < 2; i++) {
        inf_memory_t *m;
        inf_growable_t *g;

        succeeds(inf_memory_new(&(inf_memory_options_t) {
            .driver = drivers[i] }, &m));
        succeeds(inf_growable_new(m, INF_GROWABLE_HOST, &g));
        assert_int_equal(inf_growable_type(g), INF_MEMORY_CPU);
        assert_int_equal(inf_growable_id(g), 0);
        char *base = inf_growable_base(g);

        for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
            succeeds(inf_growable_fit(g, sizes[k]));
            assert_ptr_equal(inf_growable_base(g), base);
            memset(base + sizes[k] - 1, (int) k + 1, 1);
            assert_int_equal(base[0], 1);
        }
        fails(inf_growable_fit(g, INF_GROWABLE_HOST_RANGE + 1),
            INF_ERR_UNAVAILABLE, "17179869185 bytes are more than the"
            " 17179869184 that memory may grow to");
        inf_growable_free(g);
        inf_memory_free(m);
    }
}

static void
what_a_full_gpu_gave_is_kept(void **state)
{
    (void) state;
    inf_memory_t *m = memory_with_ranges();
    inf_growable_t *g;

    succeeds(inf_growable_new(m, 0, &g));
    fake_cuda_occupy(0, FAKE_CUDA_MEMORY - 2 * FAKE_CUDA_GRANULE);
    fails(inf_growable_fit(g, 3 * FAKE_CUDA_GRANULE), INF_ERR_UNAVAILABLE,
        "CUDA_ERROR_OUT_OF_MEMORY");
    fake_cuda_occupy(0, 0);
    assert_int_equal(bytes_used(m, 0), 2 * FAKE_CUDA_GRANULE);
    succeeds(inf_growable_fit(g, 3 * FAKE_CUDA_GRANULE));
    assert_int_equal(bytes_used(m, 0), 3 * FAKE_CUDA_GRANULE);
    inf_growable_free(g);
    inf_memory_free(m);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)
    const struct CMUnitTest tests[] = {
        T(memory_grows_in_place_on_its_own_gpu),
        T(the_range_is_the_limit),
        T(a_gpu_without_a_range_has_no_memory_that_grows),
        T(memory_of_the_host_grows_in_place),
        T(what_a_full_gpu_gave_is_kept)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
