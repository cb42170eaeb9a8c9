/*
 * cuda.h - what the tests of memory share: the fake driver, and how a test
 *          with it begins and ends.
 *
 * Owner    the test.
 * Thread   the test's.
 * Units    none.
 * Errors   a test that leaves something allocated, or does what the driver
 *          forbids, fails in its teardown.
 * Route    unit tests only
 */

#ifndef INF_T_TENSOR_CUDA_H
#define INF_T_TENSOR_CUDA_H

#include "core/tensor/memory.h"
#include "fake_cuda.h"

#define RC_NO_MEMORY 2          /* CUDA_ERROR_OUT_OF_MEMORY                  */
#define RC_UNKNOWN   999        /* CUDA_ERROR_UNKNOWN                        */

static inline void
succeeds(inf_err_t *err)
{
    if (err != NULL) {
        fail_msg("%s", inf_err_msg(err));
    }
}

/* Takes err. */
static inline void
fails(inf_err_t *err, inf_err_code_t code, const char *text)
{
    assert_non_null(err);
    if (inf_err_code(err) != code || strstr(inf_err_msg(err), text) == NULL) {
        fail_msg("got %d: %s", (int) inf_err_code(err), inf_err_msg(err));
    }
    inf_err_free(err);
}

static inline int
fake_setup(void **state)
{
    (void) state;
    fake_cuda_reset();
    return 0;
}

static inline int
fake_teardown(void **state)
{
    (void) state;
    const char *what;

    fake_cuda_fail(NULL, 0);
    fake_cuda_fail_nth(0, 0);
    assert_int_equal(fake_cuda_live(), 0);
    assert_int_equal(fake_cuda_queued(), 0);
    if (fake_cuda_wrong(&what) != 0) {
        fail_msg("%s", what);
    }
    return 0;
}

/* Two GPUs with 1 MiB each, 1 MiB pinned. */
static inline inf_memory_t *
small_memory(void)
{
    static const inf_memory_pool_size_t sizes[] = {
        { 0, 1 << 20 }, { 1, 1 << 20 }
    };
    inf_memory_t *m;

    succeeds(inf_memory_new(&(inf_memory_options_t) {
        .driver = FAKE_CUDA_LIBRARY,
        .pinned_bytes = 1 << 20,
        .cuda = sizes,
        .cuda_count = 2,
        .min_capability = 5.0
    }, &m));
    return m;
}

#endif /* INF_T_TENSOR_CUDA_H */
