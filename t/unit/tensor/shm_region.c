#include "scarce_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/tensor/shm_fault.h"
#include "core/tensor/shm_region.h"
#include "cuda.h"
#include "fail_each.h"
#include "fake_cuda.h"

#define OBJECT_PAGES 4u

static inf_shm_regions_t *set;
static char   key[64];              /* of an object of OBJECT_PAGES pages    */
static char  *object;               /* as the client maps it                 */
static size_t page;
static struct sigaction ours;       /* cmocka has its own for each test      */

static int
setup(void **state)
{
    fake_setup(state);
    page = (size_t) sysconf(_SC_PAGESIZE);
    snprintf(key, sizeof(key), "/inf-t-unit-%d", (int) getpid());

    int fd = shm_open(key, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0 || ftruncate(fd, (off_t) (OBJECT_PAGES * page)) != 0) {
        return -1;
    }
    close(fd);
    object = NULL;

    succeeds(inf_shm_regions_new(&set));
    inf_shm_regions_switch(set, true);
    return 0;
}

/* The first region installs the handler. */
static void
install(void)
{
    static char memory[1];
    uint32_t place;

    inf_err_free(inf_shm_fault_enter(memory, 1, 0, 0, &place));
    inf_shm_fault_remove(place);
    sigaction(SIGBUS, NULL, &ours);
}

static int
teardown(void **state)
{
    inf_shm_regions_free(set);
    if (object != NULL) {
        munmap(object, OBJECT_PAGES * page);
    }
    shm_unlink(key);
    return fake_teardown(state);
}

static inf_err_t *
find(const char *name, uint64_t offset, uint64_t size, inf_shm_region_t **out)
{
    return inf_shm_region_find(set, inf_slice_str(name), offset, size, out);
}

/* How many regions of that kind there are, by name. */
static size_t
count(inf_shm_kind_t kind, const char *name)
{
    inf_shm_region_t **list;
    size_t n;

    succeeds(inf_shm_regions_list(set, kind, name, &list, &n));
    for (size_t i = 1; i < n; i++) {
        assert_true(strcmp(list[i - 1]->name, list[i]->name) < 0);
    }
    inf_shm_regions_list_free(list, n);
    return n;
}

static void
pages_of_regions_are_bounded_until_they_are_unmapped(void **state)
{
    (void) state;
    char text[256];
    inf_shm_region_t *r;

    inf_shm_regions_bound(set, 3 * page, 0);
    succeeds(inf_shm_register_system(set, "a", key, 0, page + 1));
    assert_int_equal(inf_shm_regions_bytes(set), 2 * page);
    snprintf(text, sizeof(text), "failed to register shared memory region 'b'"
        " of %zu bytes: registered regions have %zu of at most %zu bytes"
        " (inference_shared_memory regions=)", 2 * page, 2 * page, 3 * page);
    fails(inf_shm_register_system(set, "b", key, 0, 2 * page),
        INF_ERR_UNAVAILABLE, text);
    snprintf(text, sizeof(text), "failed to register shared memory region 'b'"
        " of %zu bytes: regions may have %zu bytes in all"
        " (inference_shared_memory regions=)", 4 * page, 3 * page);
    fails(inf_shm_register_system(set, "b", key, 0, 4 * page),
        INF_ERR_INVALID_ARG, text);

    /* what was rejected, for any reason, is not counted */
    inf_err_free(inf_shm_register_system(set, "a", key, 0, 1));
    assert_int_equal(inf_shm_regions_bytes(set), 2 * page);
    succeeds(inf_shm_register_system(set, "b", key, 0, 1));
    assert_int_equal(inf_shm_regions_bytes(set), 3 * page);

    /* a request has it still */
    succeeds(find("a", 0, 1, &r));
    inf_shm_unregister(set, INF_SHM_SYSTEM, "");
    assert_int_equal(inf_shm_regions_bytes(set), 2 * page);
    inf_shm_region_unref(r);
    assert_int_equal(inf_shm_regions_bytes(set), 0);

    /* a smaller bound is for what comes then */
    succeeds(inf_shm_register_system(set, "a", key, 0, 2 * page));
    inf_shm_regions_bound(set, page, 0);
    succeeds(find("a", 0, 1, &r));
    inf_shm_region_unref(r);
    fails(inf_shm_register_system(set, "b", key, 0, 1),
        INF_ERR_UNAVAILABLE, "have");
}

/* The search for mappings of the process itself, which a new registration
   makes, would find the object. */
static void
an_object_of_the_last_core_is_known_by_what_it_is(void **state)
{
    (void) state;
    inf_shm_region_t *r;
    inf_shm_identity_t known;

    succeeds(inf_shm_register_system(set, "r", key, 0, 8));
    succeeds(find("r", 0, 0, &r));
    known = r->object.identity;
    inf_shm_region_unref(r);
    assert_int_equal(known.owner, getuid());
    inf_shm_unregister(set, INF_SHM_SYSTEM, "");

    int fd = shm_open(key, O_RDWR, 0);
    object = mmap(NULL, OBJECT_PAGES * page, PROT_READ, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(object, MAP_FAILED);
    close(fd);
    fails(inf_shm_register_system(set, "r", key, 0, 8), INF_ERR_INVALID_ARG,
        "the server uses it itself");
    succeeds(inf_shm_restore_system(set, "r", key, 0, 8, &known));
    inf_shm_unregister(set, INF_SHM_SYSTEM, "");

    inf_shm_identity_t others[] = { known, known, known };
    others[0].device++;
    others[1].inode++;
    others[2].owner++;
    for (size_t i = 0; i < 3; i++) {
        fails(inf_shm_restore_system(set, "r", key, 0, 8, &others[i]),
            INF_ERR_INVALID_ARG, "it is another object than before");
    }
    fails(inf_shm_restore_system(set, "r", key, 0, OBJECT_PAGES * page + 1,
        &known), INF_ERR_INVALID_ARG, "invalid args");
    assert_int_equal(inf_shm_regions_bytes(set), 0);
}

static void
a_region_that_is_missing_may_be_restored_yet(void **state)
{
    (void) state;
    inf_shm_region_t *r;

    succeeds(inf_shm_register_system(set, "there", key, 0, 8));
    inf_shm_regions_set_restoring(set, true);
    succeeds(find("there", 0, 8, &r));
    inf_shm_region_unref(r);
    inf_err_t *err = find("missing", 0, 8, &r);
    assert_int_equal(inf_err_cause(err), INF_CAUSE_STARTING);
    fails(err, INF_ERR_UNAVAILABLE, "'missing' may still have to be");
    inf_shm_regions_set_restoring(set, false);
    err = find("missing", 0, 8, &r);
    assert_int_equal(inf_err_cause(err), INF_CAUSE_UNNAMED);
    fails(err, INF_ERR_NOT_FOUND, "Unable to find shared memory region:"
        " 'missing'");
}

static void
a_region_is_the_objects_memory(void **state)
{
    (void) state;
    inf_shm_region_t *r;

    succeeds(inf_shm_register_system(set, "r", key, page, page + 8));
    succeeds(find("r", 8, page, &r));
    memcpy(r->base, "written", 8);
    assert_int_equal(inf_shm_region_memory(r), INF_MEMORY_CPU);
    inf_shm_region_unref(r);

    int fd = shm_open(key, O_RDWR, 0);
    char text[8] = "";
    assert_int_equal(pread(fd, text, 8, (off_t) page), 8);
    close(fd);
    assert_string_equal(text, "written");
}

static void
names_are_found_among_many(void **state)
{
    (void) state;
    static const char *const names[] = {
        "m", "a", "z", "ma", "", "mb", "aa", "l", "\xc3\xa9", "m0"
    };
    inf_shm_region_t *r;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i][0] != '\0') {
            succeeds(inf_shm_register_system(set, names[i], key, 0, 8));
        }
    }
    assert_int_equal(count(INF_SHM_SYSTEM, ""), 9);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i][0] == '\0') {
            continue;
        }
        succeeds(find(names[i], 0, 8, &r));
        assert_string_equal(r->name, names[i]);
        inf_shm_region_unref(r);
        assert_int_equal(count(INF_SHM_SYSTEM, names[i]), 1);
    }

    static const char *const others[] = { "", "b", "mab", "m\x01", "zz" };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        fails(find(others[i], 0, 8, &r), INF_ERR_NOT_FOUND, "Unable to find");
    }
    /* a slice ends where it ends */
    succeeds(inf_shm_region_find(set, inf_slice("mango", 1), 0, 8, &r));
    assert_string_equal(r->name, "m");
    inf_shm_region_unref(r);

    inf_shm_unregister(set, INF_SHM_SYSTEM, "ma");
    fails(find("ma", 0, 8, &r), INF_ERR_NOT_FOUND, "'ma'");
    assert_int_equal(count(INF_SHM_SYSTEM, ""), 8);
}

static void
ranges_stay_inside(void **state)
{
    (void) state;
    static const struct {
        uint64_t    offset, size;
        const char *words;          /* NULL: it fits                         */
    } ranges[] = {
        { 0, 0, NULL }, { 0, 100, NULL }, { 99, 1, NULL }, { 99, 0, NULL },
        { 100, 0, "Invalid offset for" },
        { 100, 1, "Invalid offset for" },
        { 99, 2, "Invalid offset + byte size for" },
        { 0, 101, "Invalid offset + byte size for" },
        { 0, UINT64_MAX, "Invalid offset + byte size for" },
        { 1, UINT64_MAX, "Integer overflow detected: byte_size (1844674407370955"
          "1615) + offset (1) exceeds maximum value (18446744073709551615) for"
          " region 'r'" },
        { 50, UINT64_MAX - 50, "Invalid offset + byte size for" },
        { 50, UINT64_MAX - 49, "Integer overflow detected: byte_size" },
        { UINT64_MAX, 1, "Invalid offset for" },
        { UINT64_MAX, UINT64_MAX, "Invalid offset for" },
        { (uint64_t) INT64_MAX + 1, (uint64_t) INT64_MAX + 1,
          "Invalid offset for" }
    };
    inf_shm_region_t *r;

    succeeds(inf_shm_register_system(set, "r", key, 0, 100));
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        inf_err_t *err = find("r", ranges[i].offset, ranges[i].size, &r);
        if (ranges[i].words == NULL) {
            succeeds(err);
            inf_shm_region_unref(r);
        } else {
            fails(err, INF_ERR_INVALID_ARG, ranges[i].words);
            assert_null(r);
        }
    }
}

static void
a_region_in_use_stays_mapped(void **state)
{
    (void) state;
    inf_shm_region_t *r;

    succeeds(inf_shm_register_system(set, "r", key, 0, page));
    succeeds(find("r", 0, page, &r));
    inf_shm_unregister(set, INF_SHM_SYSTEM, "r");
    assert_int_equal(count(INF_SHM_SYSTEM, ""), 0);
    memset(r->base, 'x', page);
    succeeds(inf_shm_region_check(r));

    /* the name is free */
    succeeds(inf_shm_register_system(set, "r", key, page, page));
    memset(r->base, 'y', page);
    inf_shm_region_unref(r);
    succeeds(find("r", 0, page, &r));
    assert_int_equal(r->base[0], 0);
    inf_shm_region_unref(r);
}

static void
what_the_client_takes_away_breaks_its_region(void **state)
{
    (void) state;
    inf_shm_region_t *r, *again;

    assert_int_equal(sigaction(SIGBUS, &ours, NULL), 0);
    succeeds(inf_shm_register_system(set, "r", key, 0, OBJECT_PAGES * page));
    succeeds(find("r", 0, page, &r));
    int fd = shm_open(key, O_RDWR, 0);
    assert_int_equal(ftruncate(fd, (off_t) page), 0);
    close(fd);

    /* not before it matters */
    succeeds(inf_shm_region_check(r));
    r->base[2 * page] = 'x';
    fails(inf_shm_region_check(r), INF_ERR_INVALID_ARG, "'r' is broken");
    fails(find("r", 0, 1, &again), INF_ERR_INVALID_ARG, "'r' is broken");
    inf_shm_region_unref(r);
    inf_shm_unregister(set, INF_SHM_SYSTEM, "r");
}

static void
memory_of_the_server_is_no_clients(void **state)
{
    (void) state;
    int fd = shm_open(key, O_RDWR, 0);
    object = mmap(NULL, OBJECT_PAGES * page, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    assert_true(object != MAP_FAILED);

    fails(inf_shm_register_system(set, "r", key, 0, page),
        INF_ERR_INVALID_ARG, "the server uses it itself");

    /* by no other name either */
    char from[96], to[96];
    snprintf(from, sizeof(from), "/dev/shm%s", key);
    snprintf(to, sizeof(to), "/dev/shm%s-link", key);
    assert_int_equal(link(from, to), 0);
    inf_err_t *err = inf_shm_register_system(set, "r", to + 8, 0, page);
    unlink(to);
    fails(err, INF_ERR_INVALID_ARG, "the server uses it itself");

    munmap(object, OBJECT_PAGES * page);
    object = NULL;
    succeeds(inf_shm_register_system(set, "r", key, 0, page));
    succeeds(inf_shm_register_system(set, "s", key, page, page));
}

static void
nothing_is_registered_where_it_is_off(void **state)
{
    (void) state;
    inf_shm_region_t *r;

    succeeds(inf_shm_register_system(set, "r", key, 0, page));
    inf_shm_regions_switch(set, false);
    assert_false(inf_shm_regions_are_on(set));
    fails(find("r", 0, 1, &r), INF_ERR_NOT_FOUND, "Unable to find");
    fails(inf_shm_register_system(set, "r", key, 0, page),
        INF_ERR_UNSUPPORTED, "Client shared memory is disabled");
    fails(inf_shm_register_cuda(set, "g", inf_slice("", 0), 0, 1),
        INF_ERR_UNSUPPORTED, "Client shared memory is disabled");
    inf_shm_regions_switch(set, true);
    assert_int_equal(count(INF_SHM_SYSTEM, ""), 0);
}

/* ---- of GPUs */

static inf_slice_t
slice_of(const uint8_t *handle)
{
    return inf_slice((const char *) handle, INF_CUDA_IPC_SIZE);
}

static void
without_a_driver_there_are_none(void **state)
{
    (void) state;
    const uint8_t handle[INF_CUDA_IPC_SIZE] = { 0 };

    fails(inf_shm_register_cuda(set, "g", slice_of(handle), 0, 8),
        INF_ERR_INVALID_ARG, "failed to register CUDA shared memory region:"
        " 'g', GPUs not supported");
    assert_int_equal(count(INF_SHM_CUDA, ""), 0);
}

static void
a_handle_becomes_a_region(void **state)
{
    (void) state;
    static const inf_memory_options_t options = {
        .driver = FAKE_CUDA_LIBRARY, .min_capability = 5.0
    };
    uint8_t handle[INF_CUDA_IPC_SIZE];
    inf_shm_region_t *r;
    void *theirs;

    succeeds(inf_memory_share(&options));
    inf_cuda_t *cuda = inf_memory_driver(inf_memory_shared());
    succeeds(inf_cuda_alloc(cuda, 0, 4096, &theirs));
    succeeds(inf_cuda_ipc_get(cuda, 0, theirs, handle));

    static const uint64_t wrong[] = { 0, 4097, UINT64_MAX };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        fails(inf_shm_register_cuda(set, "g", slice_of(handle), 0, wrong[i]),
            INF_ERR_INVALID_ARG, "failed to register shared memory region"
            " 'g': invalid args");
    }
    fails(inf_shm_register_cuda(set, "g", inf_slice((const char *) handle, 63),
        0, 8), INF_ERR_INVALID_ARG, "invalid args");
    static const int64_t devices[] = { 1, 2, -1, INT64_MAX, INT64_MIN };
    for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
        fails(inf_shm_register_cuda(set, "g", slice_of(handle), devices[i],
            8), INF_ERR_INVALID_ARG,
            "failed to register shared memory region: invalid args");
    }
    handle[0] ^= 1;
    fails(inf_shm_register_cuda(set, "g", slice_of(handle), 0, 8),
        INF_ERR_INVALID_ARG, "invalid args");
    handle[0] ^= 1;
    assert_int_equal(count(INF_SHM_CUDA, ""), 0);

    succeeds(inf_shm_register_cuda(set, "g", slice_of(handle), 0, 4096));
    succeeds(inf_shm_register_cuda(set, "h", slice_of(handle), 0, 8));
    fails(inf_shm_register_cuda(set, "g", slice_of(handle), 0, 8),
        INF_ERR_ALREADY_EXISTS, "'g' already in manager");
    fails(inf_shm_register_system(set, "g", key, 0, 8),
        INF_ERR_ALREADY_EXISTS, "'g' already in manager");

    succeeds(find("g", 96, 4000, &r));
    assert_int_equal(inf_shm_region_memory(r), INF_MEMORY_GPU);
    assert_int_equal(r->device, 0);
    succeeds(inf_shm_region_check(r));
    fails(find("g", 97, 4000, &r), INF_ERR_INVALID_ARG, "offset + byte size");
    inf_shm_unregister(set, INF_SHM_SYSTEM, "g");
    assert_int_equal(count(INF_SHM_CUDA, ""), 2);
    succeeds(find("g", 0, 1, &r));
    inf_shm_region_unref(r);
    inf_shm_region_unref(r);            /* both that were found              */

    inf_shm_unregister(set, INF_SHM_CUDA, "");
    assert_int_equal(count(INF_SHM_CUDA, ""), 0);
    succeeds(inf_cuda_free(cuda, 0, theirs));
    inf_memory_unshare();
}

static void
status_names_the_other_kind(void **state)
{
    (void) state;
    inf_shm_region_t **list;
    size_t n;

    succeeds(inf_shm_register_system(set, "r", key, 0, 8));
    fails(inf_shm_regions_list(set, INF_SHM_CUDA, "r", &list, &n),
        INF_ERR_NOT_FOUND, "The region named 'r' is registered as system"
        " shared memory, not CUDA shared memory");
    fails(inf_shm_regions_list(set, INF_SHM_CUDA, "g", &list, &n),
        INF_ERR_NOT_FOUND, "Unable to find cuda shared memory region: 'g'");
    fails(inf_shm_regions_list(set, INF_SHM_SYSTEM, "g", &list, &n),
        INF_ERR_NOT_FOUND, "Unable to find system shared memory region: 'g'");
}

/* ---- many at once, and too little memory */

static void *
use_regions(void *arg)
{
    const char *name = arg;
    inf_shm_region_t *r;

    for (int i = 0; i < 2000; i++) {
        inf_err_free(inf_shm_register_system(set, name, key, 0, page));
        inf_err_t *err = find("both", 0, 8, &r);
        if (err == NULL) {
            atomic_store((_Atomic char *) r->base, 'x');
            inf_shm_region_unref(r);
        }
        inf_err_free(err);
        inf_shm_unregister(set, INF_SHM_SYSTEM, i % 2 == 0 ? name : "both");
    }
    return NULL;
}

static void
threads_register_and_use_the_same_names(void **state)
{
    (void) state;
    pthread_t threads[3];
    static const char *const names[] = { "both", "one", "both" };

    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, use_regions,
            (void *) (uintptr_t) names[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    inf_shm_unregister(set, INF_SHM_SYSTEM, "");
    assert_int_equal(count(INF_SHM_SYSTEM, ""), 0);
}

static inf_err_t *
work(void)
{
    inf_shm_region_t **list;
    inf_shm_region_t *r;
    inf_shm_regions_t *own;
    size_t n;

    inf_err_t *err = inf_shm_regions_new(&own);
    if (err != NULL) {
        return err;
    }
    inf_shm_regions_switch(own, true);
    err = inf_shm_register_system(own, "r", key, 0, page);
    if (err == NULL) {
        err = inf_shm_region_find(own, INF_SLICE("r"), 0, 8, &r);
    }
    if (err == NULL) {
        inf_shm_region_unref(r);
        err = inf_shm_regions_list(own, INF_SHM_SYSTEM, "", &list, &n);
    }
    if (err == NULL) {
        inf_shm_regions_list_free(list, n);
    }
    inf_shm_regions_free(own);
    return err;
}

static void
without_memory_nothing_is_left_behind(void **state)
{
    (void) state;
    for (long n = 1; OWN_MALLOC && n < 40; n++) {
        long before = live;
        countdown = n;
        inf_err_t *err = work();
        countdown = 0;
        assert_true(err == NULL || fail_each_told(err));
        inf_err_free(err);
        assert_int_equal(live, before);
    }
}

int
main(void)
{
    install();

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_region_is_the_objects_memory),
        T(an_object_of_the_last_core_is_known_by_what_it_is),
        T(a_region_that_is_missing_may_be_restored_yet),
        T(names_are_found_among_many),
        T(pages_of_regions_are_bounded_until_they_are_unmapped),
        T(ranges_stay_inside),
        T(a_region_in_use_stays_mapped),
        T(what_the_client_takes_away_breaks_its_region),
        T(memory_of_the_server_is_no_clients),
        T(nothing_is_registered_where_it_is_off),
        T(without_a_driver_there_are_none),
        T(a_handle_becomes_a_region),
        T(status_names_the_other_kind),
        T(threads_register_and_use_the_same_names),
        T(without_memory_nothing_is_left_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
