/*
 * memory.c - core/tensor's memory on a real GPU: what the fake driver can not
 * show.  Ends with 77 and the reason where there is no GPU.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/tensor/copy.h"
#include "core/tensor/nvml.h"
#include "core/tensor/state.h"

#define NO_GPU 77
#define SIZE   (UINT64_C(16) << 20)

static struct {
    inf_memory_t  *memory;
    const int32_t *gpus;
    size_t         count;
    const char    *program;
} world;

static void
succeeds(inf_err_t *err)
{
    if (err != NULL) {
        fail_msg("%s", inf_err_msg(err));
    }
}

static inf_place_t
place(inf_memory_type_t type, int64_t id)
{
    inf_place_t p = { NULL, type, id };
    succeeds(inf_memory_alloc(world.memory, type, id, SIZE, &p.base));
    return p;
}

static void
drop(const inf_place_t *p)
{
    succeeds(inf_memory_release(world.memory, p->base, p->type, p->id));
}

static void
fill(uint8_t *bytes, unsigned seed)
{
    for (uint64_t i = 0; i < SIZE; i++) {
        seed = seed * 1664525u + 1013904223u;
        bytes[i] = (uint8_t) (seed >> 24);
    }
}

static void
gpus_and_pools_are_there(void **state)
{
    (void) state;
    inf_cuda_t *cuda = inf_memory_driver(world.memory);

    for (size_t i = 0; i < world.count; i++) {
        int32_t id = world.gpus[i];
        const inf_cuda_device_t *about = inf_cuda_device(cuda, id);
        uint64_t left, all;

        succeeds(inf_cuda_memory_info(cuda, id, &left, &all));
        print_message("GPU %d: %s, capability %d.%d, %s, %llu of %llu MiB"
            " free\n", (int) id, about->name, about->capability / 10,
            about->capability % 10, about->uuid,
            (unsigned long long) (left >> 20),
            (unsigned long long) (all >> 20));
        assert_true(inf_memory_gpu_usage(world.memory, id).total >= 2 * SIZE);
        assert_true(left < all);
    }
    assert_true(inf_memory_pinned_usage(world.memory).total >= 2 * SIZE);
}

/* Through every kind and back: the bytes are the same. */
static void
bytes_survive_every_way(void **state)
{
    (void) state;
    inf_place_t in = place(INF_MEMORY_CPU, 0);
    inf_place_t out = place(INF_MEMORY_CPU, 0);
    size_t kinds = 2 + world.count;

    for (size_t a = 0; a < kinds; a++) {
        for (size_t b = 0; b < kinds; b++) {
            size_t ways[2] = { a, b };
            inf_place_t at[2];

            for (int i = 0; i < 2; i++) {
                at[i] = ways[i] < 2
                    ? place((inf_memory_type_t) ways[i], 0)
                    : place(INF_MEMORY_GPU, world.gpus[ways[i] - 2]);
            }
            fill(in.base, (unsigned) (a * 31 + b));
            memset(out.base, 0, SIZE);
            uint64_t began = inf_clock_ns();
            succeeds(inf_memory_copy(world.memory, &at[0], &in, SIZE));
            succeeds(inf_memory_copy(world.memory, &at[1], &at[0], SIZE));
            succeeds(inf_memory_copy(world.memory, &out, &at[1], SIZE));
            uint64_t took = inf_clock_ns() - began;
            assert_memory_equal(in.base, out.base, SIZE);
            print_message("CPU -> %s %lld -> %s %lld -> CPU: %.1f ms\n",
                inf_memory_type_name(at[0].type), (long long) at[0].id,
                inf_memory_type_name(at[1].type), (long long) at[1].id,
                (double) took / 1e6);
            drop(&at[0]);
            drop(&at[1]);
        }
    }
    drop(&in);
    drop(&out);
}

static void
a_batch_gathers_and_zeroes(void **state)
{
    (void) state;
    enum { PARTS = 64 };
    int32_t gpu = world.gpus[0];
    inf_place_t in = place(INF_MEMORY_CPU_PINNED, 0);
    inf_place_t middle = place(INF_MEMORY_GPU, gpu);
    inf_place_t out = place(INF_MEMORY_CPU, 0);
    inf_buffer_t parts[PARTS];
    inf_copies_t c;

    fill(in.base, 7);
    for (int i = 0; i < PARTS; i++) {
        parts[i] = (inf_buffer_t) {
            .base = (char *) in.base + (uint64_t) i * (SIZE / PARTS),
            .size = SIZE / PARTS,
            .memory_type = INF_MEMORY_CPU_PINNED
        };
    }
    inf_copies_init(&c, world.memory);
    succeeds(inf_copies_gather(&c, &middle, SIZE, parts, PARTS));
    succeeds(inf_copies_finish(&c));
    succeeds(inf_memory_copy(world.memory, &out, &middle, SIZE));
    assert_memory_equal(in.base, out.base, SIZE);

    succeeds(inf_copies_zero(&c, &middle, SIZE - 1));
    succeeds(inf_copies_finish(&c));
    succeeds(inf_memory_copy(world.memory, &out, &middle, SIZE));
    memset(in.base, 0, SIZE - 1);
    assert_memory_equal(in.base, out.base, SIZE);
    drop(&in);
    drop(&middle);
    drop(&out);
}

static void
host_memory_is_pinned_in_place(void **state)
{
    (void) state;
    inf_cuda_t *cuda = inf_memory_driver(world.memory);
    inf_place_t gpu = place(INF_MEMORY_GPU, world.gpus[0]);
    inf_place_t out = place(INF_MEMORY_CPU, 0);
    inf_place_t own = { mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_ANONYMOUS, -1, 0), INF_MEMORY_CPU_PINNED, 0 };

    assert_true(own.base != MAP_FAILED);
    succeeds(inf_cuda_pin(cuda, world.gpus[0], own.base, SIZE, false));
    fill(own.base, 3);
    succeeds(inf_memory_copy(world.memory, &gpu, &own, SIZE));
    succeeds(inf_memory_copy(world.memory, &out, &gpu, SIZE));
    assert_memory_equal(own.base, out.base, SIZE);
    succeeds(inf_cuda_unpin(cuda, world.gpus[0], own.base));
    munmap(own.base, SIZE);
    drop(&gpu);
    drop(&out);
}

static void
states_live_on_the_gpu(void **state)
{
    (void) state;
    inf_states_t *states = inf_states_new();
    int64_t shape[1] = { 4 };
    inf_memory_type_t type = INF_MEMORY_GPU;
    int64_t id = world.gpus[0];
    char out[8] = "";
    inf_err_t *err;
    void *base;

    succeeds(inf_states_add(states, "S", "T", true, &(inf_state_buffer_t) {
        .base = (void *) "kept", .size = 4, .datatype = INF_TYPE_INT8,
        .shape = shape, .dim_count = 1 }));
    inf_state_t *s = inf_states_find(states, "S");
    succeeds(inf_state_reserve(s, 6, &type, &id, &base));
    assert_int_equal(type, INF_MEMORY_GPU);
    succeeds(inf_memory_copy(inf_memory_shared(),
        &(inf_place_t) { out, INF_MEMORY_CPU, 0 },
        &(inf_place_t) { base, type, id }, 6));
    assert_memory_equal(out, "kept\0\0", 6);

    err = inf_state_make_growable(s, id);
    if (err != NULL) {          /* old devices have no such addresses        */
        print_message("no state that grows: %s\n", inf_err_msg(err));
        inf_err_free(err);
        inf_states_free(states);
        return;
    }
    void *before = s->input.base;
    for (size_t size = 1 << 20; size <= 64 << 20; size *= 4) {
        succeeds(inf_state_reserve(s, size, &type, &id, &base));
        assert_ptr_equal(base, before);
        for (size_t at = 0; at < size; at += size - 8) {
            succeeds(inf_memory_copy(inf_memory_shared(),
                &(inf_place_t) { out, INF_MEMORY_CPU, 0 },
                &(inf_place_t) { (char *) base + at, type, id }, 8));
            assert_memory_equal(out, at == 0 ? "kept\0\0\0\0"
                : "\0\0\0\0\0\0\0\0", 8);
        }
    }
    inf_states_free(states);
}

/* A second process, started anew, reads through the handle. */
static void
another_process_opens_our_memory(void **state)
{
    (void) state;
    inf_cuda_t *cuda = inf_memory_driver(world.memory);
    int32_t gpu = world.gpus[0];
    uint8_t handle[INF_CUDA_IPC_SIZE];
    char text[2 * INF_CUDA_IPC_SIZE + 1], number[16];
    char bytes[] = "seen from elsewhere";
    inf_place_t from = { bytes, INF_MEMORY_CPU, 0 };
    inf_place_t to = { NULL, INF_MEMORY_GPU, gpu };
    int status = 0;

    succeeds(inf_cuda_alloc(cuda, gpu, SIZE, &to.base));
    succeeds(inf_memory_copy(world.memory, &to, &from, sizeof(bytes)));
    inf_err_t *err = inf_cuda_ipc_get(cuda, gpu, to.base, handle);
    if (err != NULL) {          /* some containers and devices have none     */
        print_message("skipped: %s\n", inf_err_msg(err));
        inf_err_free(err);
        succeeds(inf_cuda_free(cuda, gpu, to.base));
        skip();
    }
    for (size_t i = 0; i < INF_CUDA_IPC_SIZE; i++) {
        snprintf(text + 2 * i, 3, "%02x", handle[i]);
    }
    snprintf(number, sizeof(number), "%d", (int) gpu);

    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        execl(world.program, world.program, "--open", number, text, bytes,
            (char *) NULL);
        _exit(126);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    succeeds(inf_cuda_free(cuda, gpu, to.base));
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void
the_management_library_knows_them(void **state)
{
    (void) state;
    inf_cuda_t *cuda = inf_memory_driver(world.memory);
    inf_nvml_t *nvml;

    inf_err_t *err = inf_nvml_open(INF_NVML_LIBRARY, &nvml);
    if (err != NULL) {
        print_message("skipped: %s\n", inf_err_msg(err));
        inf_err_free(err);
        skip();
    }
    for (size_t i = 0; i < world.count; i++) {
        void *device;
        succeeds(inf_nvml_device(nvml, inf_cuda_device(cuda,
            world.gpus[i])->uuid, &device));
        for (int field = 0; field < INF_NVML_FIELDS; field++) {
            double value = 0;
            err = inf_nvml_read(nvml, device, (inf_nvml_field_t) field,
                &value);
            print_message("GPU %d, field %d: %g%s%s\n", (int) world.gpus[i],
                field, value, err != NULL ? ": " : "",
                err != NULL ? inf_err_msg(err) : "");
            assert_true(err != NULL || value >= 0);
            inf_err_free(err);
        }
    }
    inf_nvml_close(nvml);
}

/* The child of another_process_opens_our_memory. */
static int
open_and_compare(int32_t gpu, const char *hex, const char *want)
{
    uint8_t handle[INF_CUDA_IPC_SIZE];
    char got[64] = "";
    inf_cuda_t *cuda;
    void *base = NULL;

    for (size_t i = 0; i < INF_CUDA_IPC_SIZE; i++) {
        unsigned byte = 0;
        if (sscanf(hex + 2 * i, "%2x", &byte) != 1) {
            return 2;
        }
        handle[i] = (uint8_t) byte;
    }

    inf_memory_t *m;
    inf_err_t *err = inf_memory_new(&(inf_memory_options_t) {
        .min_capability = 0 }, &m);
    if (err == NULL) {
        cuda = inf_memory_driver(m);
        err = inf_cuda_ipc_open(cuda, gpu, handle, &base);
    }
    if (err == NULL) {
        err = inf_memory_copy(m, &(inf_place_t) { got, INF_MEMORY_CPU, 0 },
            &(inf_place_t) { base, INF_MEMORY_GPU, gpu }, strlen(want) + 1);
    }
    if (err == NULL) {
        err = inf_cuda_ipc_close(cuda, gpu, base);
    }
    if (err != NULL) {
        fprintf(stderr, "child: %s\n", inf_err_msg(err));
        return 3;
    }
    inf_memory_free(m);
    return strcmp(got, want) == 0 ? 0 : 4;
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_and_pools_are_there),
        cmocka_unit_test(bytes_survive_every_way),
        cmocka_unit_test(a_batch_gathers_and_zeroes),
        cmocka_unit_test(host_memory_is_pinned_in_place),
        cmocka_unit_test(states_live_on_the_gpu),
        cmocka_unit_test(another_process_opens_our_memory),
        cmocka_unit_test(the_management_library_knows_them)
    };

    if (argc == 5 && strcmp(argv[1], "--open") == 0) {
        return open_and_compare(atoi(argv[2]), argv[3], argv[4]);
    }

    inf_err_t *err = inf_memory_share(&(inf_memory_options_t) {
        .pinned_bytes = INF_MEMORY_PINNED_DEFAULT, .peer_access = true });
    if (err != NULL) {
        fprintf(stderr, "%s\n", inf_err_msg(err));
        return 1;
    }

    world.program = argv[0];
    world.memory = inf_memory_shared();
    world.gpus = inf_memory_gpus(world.memory, &world.count);
    if (world.count == 0) {
        printf("no GPU: the log above says why\n");
        inf_memory_unshare();
        return NO_GPU;
    }

    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bool empty = inf_memory_pinned_usage(world.memory).used == 0;
    inf_memory_unshare();
    return failed != 0 || !empty;
}
