#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <stdlib.h>

#include "core/tensor/cuda_driver.h"
#include "fake_cuda.h"
#include "tensor/cuda.h"

static inf_cuda_t *
open_two(void)
{
    inf_cuda_t *cuda;
    succeeds(inf_cuda_open(FAKE_CUDA_LIBRARY, &cuda));
    succeeds(inf_cuda_use(cuda, 0));
    succeeds(inf_cuda_use(cuda, 1));
    return cuda;
}

static void
a_library_that_is_not_there_is_not_found(void **state)
{
    (void) state;
    inf_cuda_t *cuda = (void *) 1;

    fails(inf_cuda_open("/nowhere/libcuda.so.1", &cuda), INF_ERR_NOT_FOUND,
        "/nowhere/libcuda.so.1");
    assert_null(cuda);
    inf_cuda_close(NULL);
}

static void
a_library_without_the_functions_is_too_old(void **state)
{
    (void) state;
    inf_cuda_t *cuda;

    fails(inf_cuda_open("libm.so.6", &cuda), INF_ERR_UNSUPPORTED, "cuInit");
    assert_null(cuda);
}

static void
devices_say_what_they_are(void **state)
{
    (void) state;
    inf_cuda_t *cuda;

    succeeds(inf_cuda_open(FAKE_CUDA_LIBRARY, &cuda));
    assert_int_equal(inf_cuda_device_count(cuda), 2);
    assert_string_equal(inf_cuda_device(cuda, 0)->name, "Fake GPU 0");
    assert_int_equal(inf_cuda_device(cuda, 0)->capability, 80);
    assert_int_equal(inf_cuda_device(cuda, 1)->capability, 52);
    assert_string_equal(inf_cuda_device(cuda, 1)->uuid,
        "GPU-a1a1a1a1-a1a1-a1a1-a1a1-a1a1a1a1a1a1");
    assert_null(inf_cuda_device(cuda, 2));
    assert_null(inf_cuda_device(cuda, -1));
    assert_null(inf_cuda_device(cuda, INT64_MAX));
    inf_cuda_close(cuda);
}

static void
a_driver_may_have_no_devices(void **state)
{
    (void) state;
    inf_cuda_t *cuda;

    fake_cuda_set_devices(0);
    succeeds(inf_cuda_open(FAKE_CUDA_LIBRARY, &cuda));
    assert_int_equal(inf_cuda_device_count(cuda), 0);
    fails(inf_cuda_use(cuda, 0), INF_ERR_UNAVAILABLE, "GPU 0");
    inf_cuda_close(cuda);
}

static void
a_driver_that_does_not_start_says_why(void **state)
{
    (void) state;
    inf_cuda_t *cuda;

    fake_cuda_fail("cuInit", RC_UNKNOWN);
    fails(inf_cuda_open(FAKE_CUDA_LIBRARY, &cuda), INF_ERR_INTERNAL,
        "CUDA_ERROR_UNKNOWN (999): unknown error");
    assert_null(cuda);

    fake_cuda_fail("cuInit", 803);              /* no name, no text          */
    fails(inf_cuda_open(FAKE_CUDA_LIBRARY, &cuda), INF_ERR_INTERNAL,
        "(803)");
}

static void
nothing_works_on_a_device_that_is_not_in_use(void **state)
{
    (void) state;
    uint8_t handle[INF_CUDA_IPC_SIZE] = { 0 };
    uint64_t a, b;
    inf_cuda_t *cuda;
    void *p;

    succeeds(inf_cuda_open(FAKE_CUDA_LIBRARY, &cuda));
    succeeds(inf_cuda_use(cuda, 0));
    succeeds(inf_cuda_use(cuda, 0));            /* twice is once             */
    for (int64_t d = -1; d < 4; d++) {
        if (d == 0) {
            continue;
        }
        fails(inf_cuda_alloc(cuda, d, 1, &p), INF_ERR_UNAVAILABLE, "GPU");
        fails(inf_cuda_alloc_pinned(cuda, d, 1, &p), INF_ERR_UNAVAILABLE,
            "GPU");
        fails(inf_cuda_stream_new(cuda, d, &p), INF_ERR_UNAVAILABLE, "GPU");
        fails(inf_cuda_memory_info(cuda, d, &a, &b), INF_ERR_UNAVAILABLE,
            "GPU");
        fails(inf_cuda_ipc_open(cuda, d, handle, &p), INF_ERR_UNAVAILABLE,
            "GPU");
        fails(inf_cuda_reach_peer(cuda, 0, d), INF_ERR_UNAVAILABLE, "GPU");
        fails(inf_cuda_copy(cuda, d, NULL, &a, d, &b, 0, 1),
            INF_ERR_UNAVAILABLE, "GPU");
    }
    inf_cuda_close(cuda);
}

static void
memory_comes_and_goes_by_device(void **state)
{
    (void) state;
    inf_cuda_t *cuda = open_two();
    uint64_t left, all;
    void *p;

    succeeds(inf_cuda_alloc(cuda, 1, 1 << 20, &p));
    succeeds(inf_cuda_memory_info(cuda, 1, &left, &all));
    assert_int_equal(all, FAKE_CUDA_MEMORY);
    assert_int_equal(all - left, 1 << 20);
    succeeds(inf_cuda_memory_info(cuda, 0, &left, &all));
    assert_int_equal(all, left);
    succeeds(inf_cuda_free(cuda, 1, p));

    fails(inf_cuda_alloc(cuda, 0, FAKE_CUDA_MEMORY + 1, &p),
        INF_ERR_UNAVAILABLE, "GPU 0: cannot allocate memory:"
        " CUDA_ERROR_OUT_OF_MEMORY (2): out of memory");
    assert_null(p);
    inf_cuda_close(cuda);
}

static void
host_memory_is_pinned_new_or_in_place(void **state)
{
    (void) state;
    inf_cuda_t *cuda = open_two();
    char *own = malloc(8192);
    void *p;

    succeeds(inf_cuda_alloc_pinned(cuda, 0, 4096, &p));
    memset(p, 1, 4096);
    assert_true(fake_cuda_is_pinned(p));
    succeeds(inf_cuda_free_pinned(cuda, 0, p));

    succeeds(inf_cuda_pin(cuda, 1, own, 8192, false));
    assert_true(fake_cuda_is_pinned(own));
    succeeds(inf_cuda_unpin(cuda, 1, own));
    assert_false(fake_cuda_is_pinned(own));
    free(own);
    inf_cuda_close(cuda);
}

static void
copies_happen_when_the_stream_is_waited_for(void **state)
{
    (void) state;
    inf_cuda_t *cuda = open_two();
    char in[16] = "fifteen letters", out[16] = "";
    void *a, *b, *peer, *s;

    succeeds(inf_cuda_alloc(cuda, 0, 16, &a));
    succeeds(inf_cuda_alloc(cuda, 0, 16, &b));
    succeeds(inf_cuda_alloc(cuda, 1, 16, &peer));
    succeeds(inf_cuda_stream_new(cuda, 0, &s));

    succeeds(inf_cuda_copy(cuda, 0, s, a, 0, in, INF_CUDA_HOST, 16));
    succeeds(inf_cuda_copy(cuda, 0, s, b, 0, a, 0, 16));
    succeeds(inf_cuda_copy(cuda, 0, s, peer, 1, b, 0, 16));
    succeeds(inf_cuda_zero(cuda, 0, s, a, 8));
    succeeds(inf_cuda_copy(cuda, 0, s, out, INF_CUDA_HOST, b, 0, 16));
    assert_string_equal(out, "");
    assert_int_equal(fake_cuda_queued(), 5);

    succeeds(inf_cuda_stream_sync(cuda, 0, s));
    assert_string_equal(out, in);
    assert_memory_equal(fake_cuda_bytes(peer), in, 16);
    assert_memory_equal(fake_cuda_bytes(a), "\0\0\0\0\0\0\0\0", 8);

    fake_cuda_fail("cuStreamSynchronize", RC_UNKNOWN);
    fails(inf_cuda_stream_sync(cuda, 0, s), INF_ERR_INTERNAL,
        "GPU 0: copies failed: CUDA_ERROR_UNKNOWN");
    fake_cuda_fail(NULL, 0);

    succeeds(inf_cuda_stream_free(cuda, 0, s));
    succeeds(inf_cuda_free(cuda, 0, a));
    succeeds(inf_cuda_free(cuda, 0, b));
    succeeds(inf_cuda_free(cuda, 1, peer));
    inf_cuda_close(cuda);
}

static void
peers_are_reached_once_asked_for(void **state)
{
    (void) state;
    fake_cuda_set_devices(4);
    inf_cuda_t *cuda = open_two();

    succeeds(inf_cuda_use(cuda, 2));
    succeeds(inf_cuda_use(cuda, 3));
    succeeds(inf_cuda_reach_peer(cuda, 0, 1));
    assert_true(fake_cuda_reaches(0, 1));
    assert_false(fake_cuda_reaches(1, 0));
    succeeds(inf_cuda_reach_peer(cuda, 0, 1));  /* already: fine             */
    fails(inf_cuda_reach_peer(cuda, 2, 3), INF_ERR_UNSUPPORTED, "GPU 3");
    inf_cuda_close(cuda);
}

static void
another_process_s_memory_is_opened_and_closed(void **state)
{
    (void) state;
    inf_cuda_t *cuda = open_two();
    uint8_t handle[INF_CUDA_IPC_SIZE], zero[INF_CUDA_IPC_SIZE] = { 0 };
    void *p, *same;

    succeeds(inf_cuda_alloc(cuda, 0, 4096, &p));
    succeeds(inf_cuda_ipc_get(cuda, 0, p, handle));
    succeeds(inf_cuda_ipc_open(cuda, 0, handle, &same));
    assert_ptr_not_equal(same, p);
    assert_ptr_equal(fake_cuda_bytes(same), fake_cuda_bytes(p));
    succeeds(inf_cuda_ipc_close(cuda, 0, same));
    succeeds(inf_cuda_free(cuda, 0, p));

    fails(inf_cuda_ipc_open(cuda, 0, zero, &same), INF_ERR_INTERNAL,
        "CUDA_ERROR_INVALID_VALUE");
    assert_null(same);
    fails(inf_cuda_ipc_open(cuda, 1, handle, &same), INF_ERR_INTERNAL,
        "GPU 1");
    inf_cuda_close(cuda);
}

static void
a_gpu_whose_context_can_t_be_entered_does_nothing(void **state)
{
    (void) state;
    static const char why[] = "cannot enter a GPU's context:"
        " CUDA_ERROR_UNKNOWN";
    inf_cuda_t *cuda = open_two();
    uint8_t handle[INF_CUDA_IPC_SIZE];
    char *own = malloc(8192);
    uint64_t a, b;
    void *p, *pinned, *s, *other;

    succeeds(inf_cuda_alloc(cuda, 0, 4096, &p));
    succeeds(inf_cuda_alloc_pinned(cuda, 0, 4096, &pinned));
    succeeds(inf_cuda_pin(cuda, 0, own, 8192, false));
    succeeds(inf_cuda_stream_new(cuda, 0, &s));
    size_t held = fake_cuda_live();

    fake_cuda_fail("cuCtxPushCurrent_v2", RC_UNKNOWN);
    uint64_t calls = fake_cuda_calls();
    inf_err_t *errors[] = {
        inf_cuda_reach_peer(cuda, 0, 1),
        inf_cuda_memory_info(cuda, 0, &a, &b),
        inf_cuda_alloc(cuda, 0, 1, &other),
        inf_cuda_free(cuda, 0, p),
        inf_cuda_alloc_pinned(cuda, 0, 1, &other),
        inf_cuda_free_pinned(cuda, 0, pinned),
        inf_cuda_pin(cuda, 0, &a, 1, false),
        inf_cuda_unpin(cuda, 0, own),
        inf_cuda_stream_new(cuda, 0, &other),
        inf_cuda_stream_free(cuda, 0, s),
        inf_cuda_stream_sync(cuda, 0, s),
        inf_cuda_copy(cuda, 0, s, p, 0, own, INF_CUDA_HOST, 1),
        inf_cuda_zero(cuda, 0, s, p, 1),
        inf_cuda_ipc_get(cuda, 0, p, handle),
        inf_cuda_ipc_open(cuda, 0, handle, &other),
    };
    size_t count = sizeof(errors) / sizeof(errors[0]);
    /* beside the entering, twice each, only whether the peer can be reached */
    assert_in_range(fake_cuda_calls() - calls, 2 * count, 2 * count + 1);
    for (size_t i = 0; i < count; i++) {
        fails(errors[i], INF_ERR_INTERNAL, why);
    }
    assert_int_equal(fake_cuda_live(), held);
    assert_true(fake_cuda_is_pinned(own));
    assert_false(fake_cuda_reaches(0, 1));

    fake_cuda_fail(NULL, 0);
    succeeds(inf_cuda_stream_free(cuda, 0, s));
    succeeds(inf_cuda_unpin(cuda, 0, own));
    succeeds(inf_cuda_free_pinned(cuda, 0, pinned));
    succeeds(inf_cuda_free(cuda, 0, p));
    free(own);
    inf_cuda_close(cuda);
}

static void
a_gpu_that_says_nothing_about_itself_is_named(void **state)
{
    (void) state;
    static const char *const calls[] = { "cuDeviceGet", "cuDeviceGetName",
        "cuDeviceGetUuid", "cuDeviceGetAttribute" };

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        inf_cuda_t *cuda;
        fake_cuda_fail(calls[i], RC_UNKNOWN);
        succeeds(inf_cuda_open(FAKE_CUDA_LIBRARY, &cuda));
        assert_int_equal(inf_cuda_device_count(cuda), 2);
        assert_non_null(strstr(inf_cuda_device_fault(cuda, 0),
            "GPU 0: cannot ask what it is: CUDA_ERROR_UNKNOWN"));
        fails(inf_cuda_use(cuda, 0), INF_ERR_UNAVAILABLE, "cannot ask");
        inf_cuda_close(cuda);
    }
}

/* The other one goes on. */
static void
one_gpu_that_says_nothing_is_alone_with_that(void **state)
{
    (void) state;
    inf_cuda_t *cuda;

    fake_cuda_fail_rules("cuDeviceGetUuid:999:1:0");
    succeeds(inf_cuda_open(FAKE_CUDA_LIBRARY, &cuda));
    assert_non_null(inf_cuda_device_fault(cuda, 0));
    assert_null(inf_cuda_device_fault(cuda, 1));
    succeeds(inf_cuda_use(cuda, 1));
    assert_int_equal(inf_cuda_device(cuda, 1)->capability, 52);
    inf_cuda_close(cuda);
}

static void
a_gpu_that_answers_nothing_any_more_has_failed(void **state)
{
    (void) state;
    inf_cuda_t *cuda = open_two();
    void *p;

    /* one call that fails is no failure of the GPU */
    fake_cuda_fail_rules("cuMemAlloc_v2:801:1:0");
    fails(inf_cuda_alloc(cuda, 0, 64, &p), INF_ERR_INTERNAL, "(801)");
    assert_null(inf_cuda_failure(cuda, 0));
    succeeds(inf_cuda_check(cuda, 0));
    fake_cuda_fail_rules("cuMemGetInfo_v2:801:1:0");
    succeeds(inf_cuda_check(cuda, 0));
    fake_cuda_fail_rules("cuCtxPushCurrent_v2:801:1");
    fails(inf_cuda_alloc(cuda, 0, 64, &p), INF_ERR_INTERNAL, "(801)");
    succeeds(inf_cuda_check(cuda, 0));

    /* not known until somebody asks */
    fake_cuda_break(0, 700);
    assert_null(inf_cuda_failure(cuda, 0));
    fails(inf_cuda_check(cuda, 0), INF_ERR_UNAVAILABLE, "GPU 0 has failed, and"
        " answers every call by CUDA_ERROR_ILLEGAL_ADDRESS (700)");
    assert_non_null(inf_cuda_failure(cuda, 0));

    /* or a call of ours finds it */
    assert_null(inf_cuda_failure(cuda, 1));
    fake_cuda_break(1, 999);
    fails(inf_cuda_alloc(cuda, 1, 64, &p), INF_ERR_INTERNAL, "(999)");
    assert_non_null(strstr(inf_cuda_failure(cuda, 1), "(999)"));
    assert_null(inf_cuda_failure(cuda, 2));
    assert_null(inf_cuda_failure(cuda, -1));

    inf_cuda_close(cuda);
}

static void
a_gpu_whose_context_is_closed_has_failed(void **state)
{
    (void) state;
    inf_cuda_t *cuda = open_two();

    fake_cuda_fail("cuCtxPushCurrent_v2", 719);
    fails(inf_cuda_check(cuda, 0), INF_ERR_UNAVAILABLE, "GPU 0 has failed, and"
        " answers every call by CUDA_ERROR_LAUNCH_FAILED (719)");
    assert_non_null(inf_cuda_failure(cuda, 0));
    fake_cuda_fail(NULL, 0);
    inf_cuda_close(cuda);
}

/* Each call fails once, in turn: an error, and nothing is left behind. */
static void
every_call_may_fail(void **state)
{
    (void) state;

    for (uint64_t n = 1; ; n++) {
        inf_cuda_t *cuda;
        void *p = NULL, *s = NULL;

        fake_cuda_reset();
        fake_cuda_fail_nth(n, RC_UNKNOWN);
        inf_err_t *err = inf_cuda_open(FAKE_CUDA_LIBRARY, &cuda);
        if (err == NULL) {
            err = inf_cuda_use(cuda, 0);
        }
        if (err == NULL) {
            err = inf_cuda_alloc(cuda, 0, 64, &p);
        }
        if (err == NULL) {
            err = inf_cuda_stream_new(cuda, 0, &s);
        }
        if (err == NULL) {
            err = inf_cuda_zero(cuda, 0, s, p, 64);
        }
        if (err == NULL) {
            err = inf_cuda_stream_sync(cuda, 0, s);
        }

        uint64_t failures = fake_cuda_failures();
        fake_cuda_fail_nth(0, 0);
        if (s != NULL) {
            inf_err_t *late = inf_cuda_stream_sync(cuda, 0, s);
            inf_err_free(late);
            succeeds(inf_cuda_stream_free(cuda, 0, s));
        }
        if (p != NULL) {
            succeeds(inf_cuda_free(cuda, 0, p));
        }
        inf_cuda_close(cuda);
        assert_int_equal(fake_cuda_live(), 0);

        bool failed = err != NULL;
        inf_err_free(err);
        if (failures == 0) {
            assert_false(failed);
            assert_true(n > 20);
            return;
        }
    }
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)
    const struct CMUnitTest tests[] = {
        T(a_library_that_is_not_there_is_not_found),
        T(a_library_without_the_functions_is_too_old),
        T(devices_say_what_they_are),
        T(a_driver_may_have_no_devices),
        T(a_driver_that_does_not_start_says_why),
        T(nothing_works_on_a_device_that_is_not_in_use),
        T(memory_comes_and_goes_by_device),
        T(host_memory_is_pinned_new_or_in_place),
        T(copies_happen_when_the_stream_is_waited_for),
        T(peers_are_reached_once_asked_for),
        T(another_process_s_memory_is_opened_and_closed),
        T(a_gpu_whose_context_can_t_be_entered_does_nothing),
        T(a_gpu_that_says_nothing_about_itself_is_named),
        T(a_gpu_that_answers_nothing_any_more_has_failed),
        T(a_gpu_whose_context_is_closed_has_failed),
        T(one_gpu_that_says_nothing_is_alone_with_that),
        T(every_call_may_fail)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
