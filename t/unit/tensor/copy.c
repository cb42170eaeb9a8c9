#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <stdlib.h>

#include "core/tensor/copy.h"
#include "fake_cuda.h"
#include "tensor/cuda.h"

#define SIZE  1000u
#define KINDS 4

/* CPU, pinned, GPU 0, GPU 1 */
static const struct {
    inf_memory_type_t type;
    int64_t           id;
} kinds[KINDS] = {
    { INF_MEMORY_CPU, 0 }, { INF_MEMORY_CPU_PINNED, 0 },
    { INF_MEMORY_GPU, 0 }, { INF_MEMORY_GPU, 1 }
};

static inf_place_t
place(inf_memory_t *m, int kind)
{
    inf_place_t p = { NULL, kinds[kind].type, kinds[kind].id };
    succeeds(inf_memory_alloc(m, p.type, p.id, SIZE, &p.base));
    return p;
}

static void
drop(inf_memory_t *m, const inf_place_t *p)
{
    succeeds(inf_memory_release(m, p->base, p->type, p->id));
}

/* The bytes, wherever they are; only the test may look there. */
static char *
bytes(const inf_place_t *p)
{
    return p->type == INF_MEMORY_GPU ? fake_cuda_bytes(p->base) : p->base;
}

static void
every_kind_to_every_kind(void **state)
{
    (void) state;
    inf_memory_t *m = small_memory();

    for (int from = 0; from < KINDS; from++) {
        for (int to = 0; to < KINDS; to++) {
            inf_place_t a = place(m, from), b = place(m, to);

            memset(bytes(&a), 16 * from + to, SIZE);
            memset(bytes(&b), 0xff, SIZE);
            succeeds(inf_memory_copy(m, &b, &a, SIZE - 1));
            assert_memory_equal(bytes(&b), bytes(&a), SIZE - 1);
            assert_int_equal(bytes(&b)[SIZE - 1], (char) 0xff);
            drop(m, &a);
            drop(m, &b);
        }
    }
    inf_memory_free(m);
}

static void
a_batch_waits_once_for_each_gpu(void **state)
{
    (void) state;
    enum { EACH = 10 };
    inf_memory_t *m = small_memory();
    inf_place_t gpus[2] = { place(m, 2), place(m, 3) };
    char source[2 * EACH];
    inf_copies_t c;

    for (int i = 0; i < 2 * EACH; i++) {
        source[i] = (char) i;
    }
    inf_copies_init(&c, m);
    for (int i = 0; i < 2 * EACH; i++) {
        const inf_place_t from = { &source[i], INF_MEMORY_CPU, 0 };
        inf_place_t to = gpus[i % 2];
        to.base = (char *) to.base + i;
        succeeds(inf_copies_add(&c, &to, &from, 1));
    }
    assert_int_equal(fake_cuda_queued(), 2 * EACH);
    assert_int_equal(fake_cuda_waits(), 0);
    succeeds(inf_copies_finish(&c));
    assert_int_equal(fake_cuda_queued(), 0);
    assert_int_equal(fake_cuda_waits(), 2);
    for (int i = 0; i < 2 * EACH; i++) {
        assert_int_equal(bytes(&gpus[i % 2])[i], i);
    }

    succeeds(inf_copies_finish(&c));            /* nothing to wait for       */
    assert_int_equal(fake_cuda_waits(), 2);
    drop(m, &gpus[0]);
    drop(m, &gpus[1]);
    inf_memory_free(m);
}

static void
host_copies_call_no_driver(void **state)
{
    (void) state;
    inf_memory_t *m = small_memory();
    inf_place_t a = place(m, 0), b = place(m, 1);
    uint64_t calls = fake_cuda_calls();

    memset(a.base, 7, SIZE);
    succeeds(inf_memory_copy(m, &b, &a, SIZE));
    assert_memory_equal(a.base, b.base, SIZE);
    assert_int_equal(fake_cuda_calls(), calls);
    drop(m, &a);
    drop(m, &b);
    inf_memory_free(m);
}

static void
buffers_are_gathered_one_behind_the_other(void **state)
{
    (void) state;
    inf_memory_t *m = small_memory();
    inf_place_t cpu = place(m, 0), pinned = place(m, 1), gpu = place(m, 2),
        other = place(m, 3), out = place(m, 0);
    const inf_buffer_t buffers[] = {
        { .base = cpu.base, .size = 3 },
        { .base = gpu.base, .size = 4, .memory_type = INF_MEMORY_GPU },
        { .base = pinned.base, .size = 5,
            .memory_type = INF_MEMORY_CPU_PINNED },
        { .base = other.base, .size = 6, .memory_type = INF_MEMORY_GPU,
            .memory_id = 1 }
    };
    inf_copies_t c;

    memcpy(bytes(&cpu), "abc", 3);
    memcpy(bytes(&gpu), "defg", 4);
    memcpy(bytes(&pinned), "hijkl", 5);
    memcpy(bytes(&other), "mnopqr", 6);
    memset(out.base, 0, SIZE);

    inf_copies_init(&c, m);
    succeeds(inf_copies_gather(&c, &out, 18, buffers, 4));
    succeeds(inf_copies_finish(&c));
    assert_memory_equal(out.base, "abcdefghijklmnopqr", 19);

    fails(inf_copies_gather(&c, &out, 17, buffers, 4), INF_ERR_INVALID_ARG,
        "buffer 3 of 4 has 6 bytes, there is room for 5");
    succeeds(inf_copies_finish(&c));
    succeeds(inf_copies_gather(&c, &out, 0, NULL, 0));
    succeeds(inf_copies_finish(&c));

    drop(m, &cpu);
    drop(m, &gpu);
    drop(m, &pinned);
    drop(m, &other);
    drop(m, &out);
    inf_memory_free(m);
}

static void
zeros_go_to_every_kind(void **state)
{
    (void) state;
    inf_memory_t *m = small_memory();

    for (int kind = 0; kind < KINDS; kind++) {
        inf_place_t p = place(m, kind);
        inf_copies_t c;

        memset(bytes(&p), 0xff, SIZE);
        inf_copies_init(&c, m);
        succeeds(inf_copies_zero(&c, &p, SIZE - 1));
        succeeds(inf_copies_zero(&c, &p, 0));
        succeeds(inf_copies_finish(&c));
        assert_int_equal(bytes(&p)[SIZE - 2], 0);
        assert_int_equal(bytes(&p)[SIZE - 1], (char) 0xff);
        drop(m, &p);
    }
    inf_memory_free(m);
}

static void
a_gpu_that_is_not_in_use_is_rejected_untouched(void **state)
{
    (void) state;
    static const int64_t ids[] = { 2, 63, 64, -1, INT64_MIN, INT64_MAX };
    inf_memory_t *m = small_memory();
    inf_place_t cpu = place(m, 0), gpu = place(m, 2);

    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        const inf_place_t bad = { (void *) 4096, INF_MEMORY_GPU, ids[i] };
        fails(inf_memory_copy(m, &cpu, &bad, 8), INF_ERR_UNAVAILABLE, "GPU");
        fails(inf_memory_copy(m, &bad, &cpu, 8), INF_ERR_UNAVAILABLE, "GPU");
        fails(inf_memory_copy(m, &gpu, &bad, 8), INF_ERR_UNAVAILABLE, "GPU");
        fails(inf_memory_copy(m, &bad, &gpu, 8), INF_ERR_UNAVAILABLE, "GPU");
    }
    drop(m, &cpu);
    drop(m, &gpu);
    inf_memory_free(m);
}

static void
without_a_driver_gpu_copies_fail(void **state)
{
    (void) state;
    inf_memory_t *m = inf_memory_shared();
    char here[8] = "1234567", there[8] = "";
    const inf_place_t a = { here, INF_MEMORY_CPU, 0 };
    const inf_place_t b = { there, INF_MEMORY_CPU_PINNED, 0 };
    const inf_place_t gpu = { (void *) 4096, INF_MEMORY_GPU, 0 };

    succeeds(inf_memory_copy(m, &b, &a, 8));
    assert_string_equal(there, here);
    fails(inf_memory_copy(m, &gpu, &a, 8), INF_ERR_UNSUPPORTED, "GPU");
    fails(inf_memory_copy(m, &a, &gpu, 8), INF_ERR_UNSUPPORTED, "GPU");
}

/* If any call fails, finish waits for the queued copies: the bytes may be
   freed afterwards. */
static void
every_call_may_fail(void **state)
{
    (void) state;
    inf_memory_t *m = small_memory();
    inf_place_t gpus[2] = { place(m, 2), place(m, 3) };

    for (uint64_t n = 1; ; n++) {
        char *source = malloc(SIZE);
        inf_err_t *err = NULL;
        inf_copies_t c;

        memset(source, 1, SIZE);
        const inf_place_t from = { source, INF_MEMORY_CPU, 0 };
        uint64_t failures = fake_cuda_failures();
        fake_cuda_fail_nth(n, RC_UNKNOWN);
        inf_copies_init(&c, m);
        for (int i = 0; err == NULL && i < 2; i++) {
            err = inf_copies_add(&c, &gpus[i], &from, SIZE);
        }
        if (err == NULL) {
            err = inf_copies_add(&c, &gpus[0], &gpus[1], SIZE);
        }
        inf_err_t *late = inf_copies_finish(&c);
        free(source);

        bool failed = err != NULL || late != NULL;
        inf_err_free(err);
        inf_err_free(late);
        if (fake_cuda_failures() == failures) {
            assert_false(failed);
            assert_true(n > 10);
            break;
        }
    }

    fake_cuda_fail_nth(0, 0);
    drop(m, &gpus[0]);
    drop(m, &gpus[1]);
    inf_memory_free(m);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)
    const struct CMUnitTest tests[] = {
        T(every_kind_to_every_kind),
        T(a_batch_waits_once_for_each_gpu),
        T(host_copies_call_no_driver),
        T(buffers_are_gathered_one_behind_the_other),
        T(zeros_go_to_every_kind),
        T(a_gpu_that_is_not_in_use_is_rejected_untouched),
        T(without_a_driver_gpu_copies_fail),
        T(every_call_may_fail)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
