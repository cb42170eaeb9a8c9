#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/tensor/memory.h"
#include "core/wire/sockets.h"
#include "fake_cuda.h"
#include "tensor/cuda.h"

/* A sanitizer's allocator, too, says no to what cannot be. */
#define VISIBLE __attribute__((visibility("default")))
VISIBLE const char *__asan_default_options(void);
VISIBLE const char *__tsan_default_options(void);

const char *
__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *
__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static const inf_memory_options_t usual = {
    .driver = FAKE_CUDA_LIBRARY,
    .pinned_bytes = INF_MEMORY_PINNED_DEFAULT,
    .min_capability = INF_MEMORY_CAPABILITY
};

static inf_memory_t *
make(const inf_memory_options_t *options)
{
    inf_memory_t *m;
    succeeds(inf_memory_new(options, &m));
    return m;
}

/* One of each kind, there and back. */
static void
all_kinds_work(inf_memory_t *m, int64_t gpu)
{
    void *cpu, *pinned, *device;

    succeeds(inf_memory_alloc(m, INF_MEMORY_CPU, 0, 100, &cpu));
    memset(cpu, 1, 100);
    succeeds(inf_memory_alloc(m, INF_MEMORY_CPU_PINNED, 0, 100, &pinned));
    memset(pinned, 1, 100);
    assert_true(fake_cuda_is_pinned(pinned));
    succeeds(inf_memory_alloc(m, INF_MEMORY_GPU, gpu, 100, &device));
    assert_non_null(fake_cuda_bytes(device));
    assert_true((uintptr_t) device % 256 == 0);

    succeeds(inf_memory_release(m, cpu, INF_MEMORY_CPU, 0));
    succeeds(inf_memory_release(m, pinned, INF_MEMORY_CPU_PINNED, 0));
    succeeds(inf_memory_release(m, device, INF_MEMORY_GPU, gpu));
}

static void
without_a_driver_there_is_cpu_memory_only(void **state)
{
    (void) state;
    static const char *const drivers[] = { "/nowhere/libcuda.so.1", "" };

    for (int i = 0; i < 2; i++) {
        inf_memory_options_t options = usual;
        size_t count;
        void *p;

        options.driver = drivers[i];
        inf_memory_t *m = make(&options);
        assert_null(inf_memory_driver(m));
        inf_memory_gpus(m, &count);
        assert_int_equal(count, 0);

        succeeds(inf_memory_alloc(m, INF_MEMORY_CPU, 0, 0, &p));
        assert_non_null(p);
        succeeds(inf_memory_release(m, p, INF_MEMORY_CPU, 0));
        fails(inf_memory_alloc(m, INF_MEMORY_CPU_PINNED, 0, 1, &p),
            INF_ERR_UNSUPPORTED, i == 0 ? "CPU_PINNED memory is not available:"
            " /nowhere/libcuda.so.1" : "switched off");
        assert_null(p);
        fails(inf_memory_alloc(m, INF_MEMORY_GPU, 0, 1, &p),
            INF_ERR_UNSUPPORTED, "GPU memory is not available: ");
        assert_null(p);
        fails(inf_memory_release(m, m, INF_MEMORY_GPU, 0),
            INF_ERR_UNSUPPORTED, "GPU");
        fails(inf_memory_release(m, m, INF_MEMORY_CPU_PINNED, 0),
            INF_ERR_UNSUPPORTED, "CPU_PINNED");
        fails(inf_memory_take_stream(m, 0, &p), INF_ERR_UNSUPPORTED, "GPU");
        assert_int_equal(inf_memory_pinned_usage(m).total, 0);
        assert_int_equal(inf_memory_gpu_usage(m, 0).total, 0);
        inf_memory_free(m);
    }
}

static void
before_the_first_server_there_is_cpu_memory_only(void **state)
{
    (void) state;
    inf_memory_t *m = inf_memory_shared();
    void *p;

    fails(inf_memory_alloc(m, INF_MEMORY_GPU, 0, 1, &p), INF_ERR_UNSUPPORTED,
        "no server");
    succeeds(inf_memory_alloc(m, INF_MEMORY_CPU, 0, 10, &p));
    succeeds(inf_memory_release(m, p, INF_MEMORY_CPU, 0));
}

static void
a_driver_without_gpus_has_no_pools(void **state)
{
    (void) state;
    void *p;

    fake_cuda_set_devices(0);
    inf_memory_t *m = make(&usual);
    fails(inf_memory_alloc(m, INF_MEMORY_CPU_PINNED, 0, 1, &p),
        INF_ERR_INTERNAL, "no pinned memory pool");
    fails(inf_memory_alloc(m, INF_MEMORY_GPU, 0, 1, &p), INF_ERR_UNAVAILABLE,
        "GPU memory is not available: there is no GPU 0");
    fails(inf_memory_release(m, m, INF_MEMORY_CPU_PINNED, 0),
        INF_ERR_INVALID_ARG, "CPU_PINNED");
    inf_memory_free(m);
}

static void
gpus_below_the_least_capability_do_not_exist(void **state)
{
    (void) state;
    static const struct {
        double  least;
        size_t  count;
        int32_t first;
    } rows[] = {
        { 0.0, 2, 0 }, { 5.2, 2, 0 }, { 5.3, 1, 0 }, { 6.0, 1, 0 },
        { 8.0, 1, 0 }, { 8.1, 0, 0 }, { 1000.0, 0, 0 }
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        inf_memory_options_t options = usual;
        size_t count;
        void *p;

        options.min_capability = rows[i].least;
        inf_memory_t *m = make(&options);
        const int32_t *ids = inf_memory_gpus(m, &count);
        assert_int_equal(count, rows[i].count);
        assert_true(inf_memory_min_capability(m) == rows[i].least);
        if (count > 0) {
            assert_int_equal(ids[0], rows[i].first);
            all_kinds_work(m, ids[0]);
        }
        if (count < 2) {
            fails(inf_memory_alloc(m, INF_MEMORY_GPU, 1, 1, &p),
                INF_ERR_UNAVAILABLE, "GPU 1 (Fake GPU 1, compute capability"
                " 5.2) is not used");
        }
        inf_memory_free(m);
    }
}

static void
pools_are_as_large_as_asked_for(void **state)
{
    (void) state;
    static const inf_memory_pool_size_t sizes[] = {
        { 1, 5 << 20 }, { 7, 1 << 20 }, { 1, 0 }, { 1, 3 << 20 }
    };
    inf_memory_options_t options = usual;

    options.min_capability = 0;
    options.cuda = sizes;
    options.cuda_count = 4;
    options.pinned_bytes = 2 << 20;
    inf_memory_t *m = make(&options);
    assert_int_equal(inf_memory_gpu_usage(m, 0).total,
        INF_MEMORY_CUDA_DEFAULT);
    assert_int_equal(inf_memory_gpu_usage(m, 1).total, 3 << 20);
    assert_int_equal(inf_memory_gpu_usage(m, 7).total, 0);
    assert_int_equal(inf_memory_pinned_usage(m).total, 2 << 20);
    all_kinds_work(m, 1);
    inf_memory_free(m);
}

static void
a_pool_of_nothing_is_none(void **state)
{
    (void) state;
    static const inf_memory_pool_size_t none = { 0, 0 };
    inf_memory_options_t options = usual;
    void *p;

    options.cuda = &none;
    options.cuda_count = 1;
    options.pinned_bytes = 0;
    inf_memory_t *m = make(&options);
    fails(inf_memory_alloc(m, INF_MEMORY_CPU_PINNED, 0, 1, &p),
        INF_ERR_INTERNAL, "failed to allocate pinned system memory: no pinned"
        " memory pool");
    fails(inf_memory_alloc(m, INF_MEMORY_GPU, 0, 1, &p), INF_ERR_UNAVAILABLE,
        "no memory pool for GPU 0");
    inf_memory_free(m);
}

static void
what_can_not_be_had_is_done_without(void **state)
{
    (void) state;
    void *p;

    fake_cuda_fail("cuMemHostAlloc", RC_NO_MEMORY);
    inf_memory_t *m = make(&usual);
    fails(inf_memory_alloc(m, INF_MEMORY_CPU_PINNED, 0, 1, &p),
        INF_ERR_INTERNAL, "no pinned memory pool");
    succeeds(inf_memory_alloc(m, INF_MEMORY_GPU, 0, 1, &p));
    succeeds(inf_memory_release(m, p, INF_MEMORY_GPU, 0));
    inf_memory_free(m);

    fake_cuda_fail("cuMemAlloc_v2", RC_NO_MEMORY);
    m = make(&usual);
    fails(inf_memory_alloc(m, INF_MEMORY_GPU, 0, 1, &p), INF_ERR_UNAVAILABLE,
        "no memory pool for GPU 0");
    succeeds(inf_memory_alloc(m, INF_MEMORY_CPU_PINNED, 0, 1, &p));
    succeeds(inf_memory_release(m, p, INF_MEMORY_CPU_PINNED, 0));
    inf_memory_free(m);

    fake_cuda_fail("cuDevicePrimaryCtxRetain", RC_UNKNOWN);
    m = make(&usual);
    fails(inf_memory_alloc(m, INF_MEMORY_GPU, 0, 1, &p), INF_ERR_UNAVAILABLE,
        "GPU 0");
    inf_memory_free(m);
}

static void
a_full_pool_says_so(void **state)
{
    (void) state;
    inf_memory_t *m = small_memory();
    void *all, *p;

    succeeds(inf_memory_alloc(m, INF_MEMORY_CPU_PINNED, 0, 1 << 20, &all));
    assert_int_equal(inf_memory_pinned_usage(m).used, 1 << 20);
    fails(inf_memory_alloc(m, INF_MEMORY_CPU_PINNED, 0, 1, &p),
        INF_ERR_UNAVAILABLE, "1 bytes of CPU_PINNED memory");
    assert_null(p);
    succeeds(inf_memory_release(m, all, INF_MEMORY_CPU_PINNED, 0));
    assert_int_equal(inf_memory_pinned_usage(m).used, 0);

    succeeds(inf_memory_alloc(m, INF_MEMORY_GPU, 1, 1 << 20, &all));
    assert_int_equal(inf_memory_gpu_usage(m, 1).used, 1 << 20);
    assert_int_equal(inf_memory_gpu_usage(m, 0).used, 0);
    fails(inf_memory_alloc(m, INF_MEMORY_GPU, 1, 1, &p), INF_ERR_UNAVAILABLE,
        "GPU memory (id 1): the pool of 1048576 bytes has 1048576 in use");
    succeeds(inf_memory_release(m, all, INF_MEMORY_GPU, 1));

    fails(inf_memory_alloc(m, INF_MEMORY_GPU, 0, UINT64_MAX, &p),
        INF_ERR_UNAVAILABLE, "GPU");
    fails(inf_memory_alloc(m, INF_MEMORY_CPU, 0, UINT64_MAX / 2, &p),
        INF_ERR_UNAVAILABLE, "CPU memory");
    fails(inf_memory_alloc(m, (inf_memory_type_t) 3, 0, 1, &p),
        INF_ERR_INVALID_ARG, "memory type 3");
    fails(inf_memory_release(m, NULL, (inf_memory_type_t) 3, 0),
        INF_ERR_INVALID_ARG, "memory type 3");
    inf_memory_free(m);
}

static void
only_what_was_allocated_there_is_freed(void **state)
{
    (void) state;
    inf_memory_t *m = small_memory();
    int local = 0;
    void *p;

    succeeds(inf_memory_alloc(m, INF_MEMORY_GPU, 0, 1000, &p));
    fails(inf_memory_release(m, p, INF_MEMORY_GPU, 1), INF_ERR_INVALID_ARG,
        "no GPU memory (id 1)");
    fails(inf_memory_release(m, p, INF_MEMORY_CPU_PINNED, 0),
        INF_ERR_INVALID_ARG, "no CPU_PINNED memory");
    fails(inf_memory_release(m, p, INF_MEMORY_GPU, 9), INF_ERR_UNAVAILABLE,
        "GPU 9");
    fails(inf_memory_release(m, (char *) p + 4, INF_MEMORY_GPU, 0),
        INF_ERR_INVALID_ARG, "not yet freed");
    fails(inf_memory_release(m, &local, INF_MEMORY_CPU_PINNED, 0),
        INF_ERR_INVALID_ARG, "CPU_PINNED");
    succeeds(inf_memory_release(m, p, INF_MEMORY_GPU, 0));
    fails(inf_memory_release(m, p, INF_MEMORY_GPU, 0), INF_ERR_INVALID_ARG,
        "not yet freed");

    succeeds(inf_memory_release(m, NULL, INF_MEMORY_CPU, 0));
    succeeds(inf_memory_release(m, NULL, INF_MEMORY_CPU_PINNED, 0));
    succeeds(inf_memory_release(m, NULL, INF_MEMORY_GPU, 0));
    inf_memory_free(m);
}

static void
it_says_which_kinds_there_are(void **state)
{
    (void) state;
    inf_memory_t *m = small_memory();

    assert_true(inf_memory_has(m, INF_MEMORY_CPU, 7));
    assert_true(inf_memory_has(m, INF_MEMORY_CPU_PINNED, 0));
    assert_true(inf_memory_has(m, INF_MEMORY_GPU, 1));
    assert_false(inf_memory_has(m, INF_MEMORY_GPU, 2));
    assert_false(inf_memory_has(m, INF_MEMORY_GPU, -1));
    assert_false(inf_memory_has(m, (inf_memory_type_t) 3, 0));
    inf_memory_free(m);

    m = inf_memory_shared();
    assert_true(inf_memory_has(m, INF_MEMORY_CPU, 0));
    assert_false(inf_memory_has(m, INF_MEMORY_CPU_PINNED, 0));
    assert_false(inf_memory_has(m, INF_MEMORY_GPU, 0));
}

static void
streams_are_kept_for_the_next(void **state)
{
    (void) state;
    enum { MANY = 20 };
    inf_memory_t *m = small_memory();
    size_t before = fake_cuda_live();
    void *s[MANY], *again;

    for (int i = 0; i < MANY; i++) {
        succeeds(inf_memory_take_stream(m, 0, &s[i]));
    }
    assert_int_equal(fake_cuda_live(), before + MANY);
    for (int i = 0; i < MANY; i++) {
        inf_memory_give_stream(m, 0, s[i]);
    }
    assert_int_equal(fake_cuda_live(), before + 16);    /* not all of them   */
    uint64_t calls = fake_cuda_calls();
    succeeds(inf_memory_take_stream(m, 0, &again));
    assert_int_equal(fake_cuda_calls(), calls);
    inf_memory_give_stream(m, 0, again);

    fake_cuda_fail("cuStreamCreate", RC_UNKNOWN);
    fails(inf_memory_take_stream(m, 1, &again), INF_ERR_INTERNAL, "stream");
    fails(inf_memory_take_stream(m, 2, &again), INF_ERR_UNAVAILABLE, "GPU 2");
    inf_memory_free(m);
}

static void
a_gpu_says_how_full_it_is(void **state)
{
    (void) state;
    inf_memory_t *m = small_memory();
    double fill;

    fake_cuda_occupy(1, FAKE_CUDA_MEMORY / 2 - (1 << 20));
    succeeds(inf_memory_gpu_fill(m, 1, &fill));
    assert_true(fill == 0.5);
    fails(inf_memory_gpu_fill(m, 2, &fill), INF_ERR_UNAVAILABLE, "GPU 2");
    fake_cuda_fail("cuMemGetInfo_v2", RC_UNKNOWN);
    fails(inf_memory_gpu_fill(m, 1, &fill), INF_ERR_INTERNAL, "GPU 1");
    inf_memory_free(m);
}

static void
peers_are_joined_where_they_can_be(void **state)
{
    (void) state;
    inf_memory_options_t options = usual;

    fake_cuda_set_devices(4);
    options.min_capability = 7.0;               /* GPUs 0, 2 and 3           */
    options.peer_access = true;
    inf_memory_t *m = make(&options);           /* 2 and 3 can't: a warning  */
    assert_true(fake_cuda_reaches(0, 2) && fake_cuda_reaches(2, 0));
    assert_true(fake_cuda_reaches(0, 3) && fake_cuda_reaches(3, 0));
    assert_false(fake_cuda_reaches(2, 3));
    assert_false(fake_cuda_reaches(0, 1));
    inf_memory_free(m);

    fake_cuda_reset();
    options.peer_access = false;
    options.min_capability = 0;
    m = make(&options);
    assert_false(fake_cuda_reaches(0, 1));
    inf_memory_free(m);
}

static void
servers_share_the_pools_of_the_first(void **state)
{
    (void) state;
    inf_memory_options_t other = usual;

    other.pinned_bytes = 1 << 20;
    succeeds(inf_memory_share(&usual));
    inf_memory_t *m = inf_memory_shared();
    succeeds(inf_memory_share(&other));
    assert_ptr_equal(inf_memory_shared(), m);
    assert_int_equal(inf_memory_pinned_usage(m).total,
        INF_MEMORY_PINNED_DEFAULT);
    all_kinds_work(m, 0);

    inf_memory_unshare();
    assert_ptr_equal(inf_memory_shared(), m);
    inf_memory_unshare();
    assert_ptr_not_equal(inf_memory_shared(), m);
    assert_int_equal(fake_cuda_live(), 0);

    succeeds(inf_memory_share(&other));         /* the next first one        */
    assert_int_equal(inf_memory_pinned_usage(inf_memory_shared()).total,
        1 << 20);
    inf_memory_unshare();
}

static void
pools_in_use_outlive_their_servers(void **state)
{
    (void) state;
    void *p;

    succeeds(inf_memory_share(&usual));
    inf_memory_t *m = inf_memory_shared();
    succeeds(inf_memory_alloc(m, INF_MEMORY_GPU, 0, 64, &p));
    inf_memory_unshare();
    assert_ptr_equal(inf_memory_shared(), m);

    succeeds(inf_memory_share(&usual));
    assert_ptr_equal(inf_memory_shared(), m);
    succeeds(inf_memory_release(m, p, INF_MEMORY_GPU, 0));
    inf_memory_unshare();
    assert_int_equal(fake_cuda_live(), 0);
}

static void
memory_of_others_is_pinned_in_place(void **state)
{
    (void) state;
    inf_memory_options_t options = usual;
    char *own = malloc(8192);

    assert_false(inf_memory_pin(own, 4096));            /* no server         */
    fake_cuda_set_devices(0);
    succeeds(inf_memory_share(&options));
    assert_false(inf_memory_pin(own, 4096));            /* no GPU            */
    inf_memory_unshare();
    fake_cuda_reset();

    options.pinned_bytes = 0;                           /* of the pool       */
    succeeds(inf_memory_share(&options));
    fake_cuda_fail("cuMemHostRegister_v2", RC_UNKNOWN);
    assert_false(inf_memory_pin(own, 4096));
    fake_cuda_fail(NULL, 0);
    assert_true(inf_memory_pin(own, 4096));
    assert_true(inf_memory_pin(own + 4096, 4096));
    assert_true(fake_cuda_is_pinned(own));

    inf_memory_unshare();               /* what is pinned keeps the memory   */
    assert_true(inf_memory_has(inf_memory_shared(), INF_MEMORY_GPU, 0));
    inf_memory_unpin(own);
    assert_false(fake_cuda_is_pinned(own));
    assert_true(fake_cuda_is_pinned(own + 4096));
    inf_memory_unpin(own + 4096);
    assert_int_equal(fake_cuda_live(), 0);
    free(own);
}

/* Asks the kernel to write there. */
static bool
is_writable(void *p)
{
    int fd = open("/dev/zero", O_RDONLY);
    bool writable = read(fd, p, 1) == 1;

    close(fd);
    return writable;
}

/* As the core maps a worker's memory; a driver that can't pin that gets it
   writable, and not for longer than it is pinned. */
static void
memory_that_is_mapped_read_only_is_pinned(void **state)
{
    (void) state;
    inf_memory_options_t options = usual;
    int fd;

    assert_null(inf_memfd_new("test", 8192, &fd));
    for (int able = 0; able < 2; able++) {
        char *own = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);

        assert_true(own != MAP_FAILED);
        assert_false(inf_memory_pin_read_only(own, 8192));  /* no server     */
        options.min_capability = able ? 7.5 : 5.0;  /* GPU 1 can't         */
        succeeds(inf_memory_share(&options));
        fake_cuda_fail("cuMemHostRegister_v2", RC_UNKNOWN);
        assert_false(inf_memory_pin_read_only(own, 8192));
        fake_cuda_fail(NULL, 0);
        assert_false(is_writable(own));

        assert_true(inf_memory_pin_read_only(own, 8192));
        assert_true(fake_cuda_is_pinned(own));
        assert_int_equal(is_writable(own), !able);
        inf_memory_unpin(own);
        inf_memory_unshare();
        munmap(own, 8192);
    }
    close(fd);
}

/* Each call of the driver fails once, in turn. */
static void
every_call_may_fail(void **state)
{
    (void) state;

    for (uint64_t n = 1; ; n++) {
        inf_memory_options_t options = usual;
        void *p;

        fake_cuda_reset();
        fake_cuda_fail_nth(n, RC_UNKNOWN);
        options.min_capability = 0;
        options.peer_access = true;
        inf_memory_t *m = make(&options);
        for (int type = INF_MEMORY_CPU; type <= INF_MEMORY_GPU; type++) {
            inf_err_t *err = inf_memory_alloc(m, (inf_memory_type_t) type, 0,
                64, &p);
            if (err == NULL) {
                succeeds(inf_memory_release(m, p, (inf_memory_type_t) type,
                    0));
            }
            inf_err_free(err);
        }
        inf_err_t *err = inf_memory_take_stream(m, 0, &p);
        if (err == NULL) {
            inf_memory_give_stream(m, 0, p);
        }
        inf_err_free(err);
        uint64_t failures = fake_cuda_failures();
        fake_cuda_fail_nth(0, 0);
        inf_memory_free(m);
        assert_int_equal(fake_cuda_live(), 0);

        if (failures == 0) {
            assert_true(n > 25);
            return;
        }
    }
}

static void
what_fails_to_be_given_back_stops_nothing(void **state)
{
    (void) state;
    static const char *const functions[] = {
        "cuMemFree_v2", "cuMemFreeHost", "cuStreamDestroy_v2",
        "cuDevicePrimaryCtxRelease_v2", "cuCtxPopCurrent_v2"
    };

    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        inf_memory_t *m = make(&usual);
        void *s;

        succeeds(inf_memory_take_stream(m, 0, &s));
        inf_memory_give_stream(m, 0, s);
        uint64_t failures = fake_cuda_failures();
        fake_cuda_fail(functions[i], RC_UNKNOWN);
        inf_memory_free(m);
        assert_true(fake_cuda_failures() > failures);
        fake_cuda_fail(NULL, 0);
        assert_int_equal(fake_cuda_live(), 0);
    }
}

static void *
use_all_kinds(void *arg)
{
    inf_memory_t *m = arg;

    for (int i = 0; i < 2000; i++) {
        void *a = NULL, *b = NULL, *s = NULL;
        int64_t gpu = i % 2;

        inf_err_free(inf_memory_alloc(m, INF_MEMORY_CPU_PINNED, 0,
            (uint64_t) (i % 977) * 700, &a));
        inf_err_free(inf_memory_alloc(m, INF_MEMORY_GPU, gpu,
            (uint64_t) (i % 331) * 900, &b));
        inf_err_free(inf_memory_take_stream(m, gpu, &s));
        if (a != NULL) {
            memset(a, i, 16);
        }
        inf_err_free(inf_memory_release(m, a, INF_MEMORY_CPU_PINNED, 0));
        inf_err_free(inf_memory_release(m, b, INF_MEMORY_GPU, gpu));
        inf_memory_give_stream(m, gpu, s);
    }
    return NULL;
}

static void
many_threads_share_the_pools(void **state)
{
    (void) state;
    enum { THREADS = 4 };
    inf_memory_t *m = small_memory();
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, use_all_kinds, m),
            0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(inf_memory_pinned_usage(m).used, 0);
    assert_int_equal(inf_memory_gpu_usage(m, 0).used, 0);
    assert_int_equal(inf_memory_gpu_usage(m, 1).used, 0);
    inf_memory_free(m);
}

static void *
share_and_leave(void *arg)
{
    (void) arg;
    for (int i = 0; i < 20; i++) {
        void *p;
        succeeds(inf_memory_share(&usual));
        inf_memory_t *m = inf_memory_shared();
        succeeds(inf_memory_alloc(m, INF_MEMORY_GPU, 0, 64, &p));
        succeeds(inf_memory_release(m, p, INF_MEMORY_GPU, 0));
        inf_memory_unshare();
    }
    return NULL;
}

static void
servers_may_come_and_go_at_once(void **state)
{
    (void) state;
    pthread_t threads[3];

    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, share_and_leave,
            NULL), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)
    const struct CMUnitTest tests[] = {
        T(without_a_driver_there_is_cpu_memory_only),
        T(before_the_first_server_there_is_cpu_memory_only),
        T(a_driver_without_gpus_has_no_pools),
        T(gpus_below_the_least_capability_do_not_exist),
        T(pools_are_as_large_as_asked_for),
        T(a_pool_of_nothing_is_none),
        T(what_can_not_be_had_is_done_without),
        T(a_full_pool_says_so),
        T(only_what_was_allocated_there_is_freed),
        T(it_says_which_kinds_there_are),
        T(streams_are_kept_for_the_next),
        T(a_gpu_says_how_full_it_is),
        T(peers_are_joined_where_they_can_be),
        T(servers_share_the_pools_of_the_first),
        T(pools_in_use_outlive_their_servers),
        T(memory_of_others_is_pinned_in_place),
        T(memory_that_is_mapped_read_only_is_pinned),
        T(every_call_may_fail),
        T(what_fails_to_be_given_back_stops_nothing),
        T(many_threads_share_the_pools),
        T(servers_may_come_and_go_at_once)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
