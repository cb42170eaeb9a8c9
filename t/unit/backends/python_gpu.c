/* Memory of GPUs that backend python shares with an interpreter, on the fake
   driver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_cuda.h"
#include "python/link.h"

#define MIB (UINT64_C(1) << 20)

typedef struct {
    py_gpus_t       *gpus;
    py_gpu_blocks_t  blocks;
    size_t           live;      /* of the driver, before                     */
} world_t;

static void
succeeds(TRITONSERVER_Error *err)
{
    if (err != NULL) {
        fail_msg("%s", TRITONSERVER_ErrorMessage(err));
    }
}

static void
fails(TRITONSERVER_Error *err, const char *words)
{
    assert_non_null(err);
    if (strstr(TRITONSERVER_ErrorMessage(err), words) == NULL) {
        fail_msg("%s", TRITONSERVER_ErrorMessage(err));
    }
    TRITONSERVER_ErrorDelete(err);
}

static int
open_world(void **state)
{
    static world_t w;

    assert_int_equal(setenv("INFERENCE_CUDA_DRIVER", FAKE_CUDA_LIBRARY, 1), 0);
    fake_cuda_reset();
    w.live = fake_cuda_live();
    succeeds(py_gpus_new(&w.gpus));
    py_gpu_blocks_init(&w.blocks);
    w.blocks.gpus = py_gpus_ref(w.gpus);
    *state = &w;
    return 0;
}

static int
close_world(void **state)
{
    world_t *w = *state;
    const char *what;

    fake_cuda_fail(NULL, 0);
    py_gpus_unref(w->gpus);     /* links may be the last to end              */
    py_gpu_blocks_fini(&w->blocks);
    assert_int_equal(fake_cuda_live(), w->live);
    if (fake_cuda_wrong(&what) != 0) {
        fail_msg("%s", what);
    }
    return 0;
}

static py_gpu_place_t
piece(world_t *w, int64_t gpu, uint64_t length)
{
    py_gpu_place_t place;
    bk_buffer_t at;

    succeeds(py_gpu_alloc(&w->blocks, gpu, length, &place, &at));
    assert_int_equal(at.len_bytes, length);
    assert_int_equal(at.type, TRITONSERVER_MEMORY_GPU);
    assert_int_equal(at.id, gpu);
    assert_non_null(fake_cuda_bytes(at.base));
    assert_true(place.offset + length <= place.size);
    py_gpu_unref(&w->blocks, place.piece);
    return place;
}

static void
small_pieces_share_a_block_of_their_gpu(void **state)
{
    world_t *w = *state;
    py_gpu_place_t a = piece(w, 0, 100), b = piece(w, 0, 1000);
    py_gpu_place_t c = piece(w, 1, 1), large = piece(w, 0, 3 * MIB);

    assert_int_equal(a.block, b.block);
    assert_int_equal(a.offset, 0);
    assert_int_equal(b.offset, 512);
    assert_int_equal(a.size, 2 * MIB);
    assert_memory_equal(a.handle, b.handle, sizeof(a.handle));
    assert_int_not_equal(a.piece, b.piece);
    assert_int_equal(c.gpu, 1);
    assert_int_not_equal(a.block, c.block);
    assert_int_not_equal(a.block, large.block);
    assert_int_equal(large.size, 4 * MIB);

    /* the smallest with room: not behind the large one */
    assert_int_equal(piece(w, 0, MIB / 2).block, a.block);
    assert_int_equal(piece(w, 0, MIB).block, a.block);
    assert_int_equal(piece(w, 0, MIB).block, large.block);
}

/* The interpreter can read all of a block. */
static void
a_block_has_nothing_of_other_models(void **state)
{
    world_t *w = *state;
    py_gpu_place_t place;
    bk_buffer_t at;

    succeeds(py_gpu_alloc(&w->blocks, 0, 1, &place, &at));
    const char *bytes = fake_cuda_bytes(at.base);
    for (uint64_t i = 0; i < place.size; i++) {
        assert_int_equal(bytes[i], 0);
    }
}

static void
a_block_without_pieces_begins_anew(void **state)
{
    world_t *w = *state;
    py_gpu_place_t a = piece(w, 0, MIB), b = piece(w, 0, MIB);

    assert_int_equal(a.block, b.block);
    assert_int_equal(b.offset, MIB);
    py_gpu_give_back(&w->blocks, a.piece);
    assert_int_not_equal(piece(w, 0, MIB).block, a.block);
    py_gpu_give_back(&w->blocks, b.piece);
    py_gpu_place_t c = piece(w, 0, 2 * MIB);
    assert_int_equal(c.block, a.block);
    assert_int_equal(c.offset, 0);
}

static void
what_an_interpreter_names_is_looked_up(void **state)
{
    world_t *w = *state;
    py_gpu_place_t a = piece(w, 0, 100);
    bk_buffer_t at;

    succeeds(py_gpu_ref(&w->blocks, a.piece, 100, &at));
    assert_int_equal(at.len_bytes, 100);
    py_gpu_unref(&w->blocks, a.piece);

    fails(py_gpu_ref(&w->blocks, a.piece, 101, &at), "does not have");
    fails(py_gpu_ref(&w->blocks, a.piece + 1, 1, &at), "does not have");
    fails(py_gpu_ref(&w->blocks, a.piece + 1000, 1, &at), "does not have");
    fails(py_gpu_ref(&w->blocks, UINT64_MAX, 1, &at), "does not have");
    fails(py_gpu_ref(&w->blocks, (uint32_t) a.piece, 1, &at),
        "does not have");

    py_gpu_give_back(&w->blocks, a.piece);
    fails(py_gpu_ref(&w->blocks, a.piece, 1, &at), "does not have");
    assert_int_not_equal(piece(w, 0, 100).piece, a.piece);
    py_gpu_give_back(&w->blocks, a.piece);       /* nothing                   */
    py_gpu_give_back(&w->blocks, UINT64_MAX);
    py_gpu_closed(&w->blocks, UINT64_MAX);
    fails(py_gpu_alloc(&w->blocks, 0, 0, &a, &at), "no memory of GPUs");
    fails(py_gpu_alloc(&w->blocks, 0, UINT64_MAX, &a, &at),
        "no memory of GPUs");
    fails(py_gpu_alloc(&w->blocks, 2, 1, &a, &at), "no GPU 2");
    fails(py_gpu_alloc(&w->blocks, -1, 1, &a, &at), "no GPU -1");
    fails(py_gpu_alloc(&w->blocks, 0, 1 << 30, &a, &at), "cannot allocate");
}

static void
a_piece_in_use_outlives_what_the_interpreter_says(void **state)
{
    world_t *w = *state;
    py_gpu_place_t a = piece(w, 0, 100);
    bk_buffer_t at;

    succeeds(py_gpu_ref(&w->blocks, a.piece, 100, &at));
    py_gpu_give_back(&w->blocks, a.piece);
    fails(py_gpu_ref(&w->blocks, a.piece, 1, &at), "does not have");
    py_gpu_give_back(&w->blocks, a.piece);
    py_gpu_closed(&w->blocks, a.block);
    assert_non_null(fake_cuda_bytes(at.base));
    assert_int_equal(piece(w, 0, 100).offset, 512);
    py_gpu_unref(&w->blocks, a.piece);
}

/* Before it was told of it: numbers can be guessed. */
static void
a_piece_that_is_written_outlives_what_the_interpreter_says(void **state)
{
    world_t *w = *state;
    py_gpu_place_t place;
    bk_buffer_t at;

    succeeds(py_gpu_alloc(&w->blocks, 0, 100, &place, &at));
    size_t live = fake_cuda_live();
    py_gpu_give_back(&w->blocks, place.piece);
    py_gpu_give_back(&w->blocks, place.piece);
    py_gpu_closed(&w->blocks, place.block);
    assert_non_null(fake_cuda_bytes(at.base));
    memset(fake_cuda_bytes(at.base), 'x', at.len_bytes);
    assert_int_equal(fake_cuda_live(), live);
    assert_int_equal(piece(w, 0, 100).offset, 512);
    py_gpu_unref(&w->blocks, place.piece);
}

static void
blocks_are_freed_when_they_were_closed(void **state)
{
    world_t *w = *state;
    py_gpu_place_t a = piece(w, 0, 100);
    size_t live = fake_cuda_live();

    py_gpu_closed(&w->blocks, a.block);          /* it has a piece            */
    assert_int_equal(fake_cuda_live(), live);
    py_gpu_give_back(&w->blocks, a.piece);
    assert_int_equal(fake_cuda_live(), live);
    py_gpu_closed(&w->blocks, a.block);
    assert_int_equal(fake_cuda_live(), live - 1);

    py_gpu_place_t b = piece(w, 0, 100);
    assert_int_not_equal(b.block, a.block);
    py_gpu_give_back(&w->blocks, b.piece);
    py_gpu_closed(&w->blocks, a.block);          /* that one is gone          */
    assert_int_equal(fake_cuda_live(), live);
}

static void
there_is_a_most_of_pieces(void **state)
{
    world_t *w = *state;
    py_gpu_place_t place;
    bk_buffer_t at;

    for (uint32_t i = 0; i < 2 * PY_PIECES_MAX; i++) {
        TRITONSERVER_Error *err = py_gpu_alloc(&w->blocks, 0, 1, &place, &at);
        if (err != NULL) {
            assert_int_equal(i, PY_PIECES_MAX);
            fails(err, "no more are possible");
            return;
        }
    }
    fail_msg("no end of pieces");
}

/* Each call of the driver fails once; nothing is left of what failed. */
static void
failures_leave_nothing(void **state)
{
    world_t *w = *state;
    py_gpu_place_t place;
    bk_buffer_t at;

    py_gpu_give_back(&w->blocks, piece(w, 0, 1).piece);
    size_t live = fake_cuda_live();
    for (uint64_t n = 1; ; n++) {
        uint64_t before = fake_cuda_failures();

        fake_cuda_fail_nth(n, 999);
        TRITONSERVER_Error *err = py_gpu_alloc(&w->blocks, 0, 3 * MIB, &place,
            &at);
        if (err == NULL) {
            assert_true(n > 3);
            fake_cuda_fail_nth(0, 0);
            py_gpu_unref(&w->blocks, place.piece);
            py_gpu_give_back(&w->blocks, place.piece);
            py_gpu_closed(&w->blocks, place.block);
            assert_int_equal(fake_cuda_live(), live);
            if (fake_cuda_failures() == before) {
                return;
            }
        }
        TRITONSERVER_ErrorDelete(err);
        fake_cuda_fail_nth(0, 0);
        assert_int_equal(fake_cuda_live(), live);
    }
}

static void
copies_go_between_all_kinds_of_memory(void **state)
{
    world_t *w = *state;
    char from[1000], to[1000] = { 0 };
    py_gpu_place_t place;
    bk_buffer_t a, b, c;

    memset(from, 'x', sizeof(from));
    bk_buffer_t host = { .base = from, .len_bytes = sizeof(from) };
    bk_buffer_t back = { .base = to, .len_bytes = sizeof(to) };
    succeeds(py_gpu_alloc(&w->blocks, 0, sizeof(from), &place, &a));
    succeeds(py_gpu_alloc(&w->blocks, 0, sizeof(from), &place, &b));
    succeeds(py_gpu_alloc(&w->blocks, 1, sizeof(from), &place, &c));
    succeeds(py_gpus_copy(w->gpus, &a, &host));
    succeeds(py_gpus_copy(w->gpus, &b, &a));
    succeeds(py_gpus_copy(w->gpus, &c, &b));
    succeeds(py_gpus_copy(w->gpus, &back, &c));
    assert_memory_equal(from, to, sizeof(to));
    assert_int_equal(fake_cuda_moved(FAKE_CUDA_TO_DEVICE), 1000);
    assert_int_equal(fake_cuda_moved(FAKE_CUDA_ON_DEVICE), 1000);
    assert_int_equal(fake_cuda_moved(FAKE_CUDA_TO_PEER), 1000);
    assert_int_equal(fake_cuda_moved(FAKE_CUDA_TO_HOST), 1000);

    for (uint64_t n = 1; n <= 6; n++) {
        fake_cuda_fail_nth(n, 999);
        TRITONSERVER_ErrorDelete(py_gpus_copy(w->gpus, &c, &b));
        assert_int_equal(fake_cuda_queued(), 0);
    }
    fake_cuda_fail_nth(0, 0);
    bk_buffer_t nowhere = { .base = to, .len_bytes = 8,
        .type = TRITONSERVER_MEMORY_GPU, .id = 7 };
    fails(py_gpus_copy(w->gpus, &nowhere, &host), "no GPU 7");
}

static void
a_place_reads_as_it_was_written(void **state)
{
    world_t *w = *state;
    py_gpu_place_t place = piece(w, 1, 77), got;
    py_writer_t out = { 0 };
    py_data_t data;
    py_reader_t r;

    py_write_list(&out, 1);
    py_write_gpu(&out, &place);
    for (size_t len = 0; len < out.len; len++) {
        py_reader_init(&r, out.data, len);
        assert_false(py_read_skip(&r));
    }
    py_reader_init(&r, out.data, out.len);
    assert_true(py_read_list_of(&r, 1));
    py_reader_t again = r;
    assert_true(py_read_gpu(&r, &got));
    assert_memory_equal(&place, &got, sizeof(got));
    assert_int_equal(py_read_tag(&r), 0);
    assert_true(py_read_data(&again, &data));
    assert_int_equal(data.tag, PY_TAG_GPU);
    assert_int_equal(data.id, place.piece);
    assert_int_equal(data.length, 77);
    py_writer_fini(&out);
}

static void
a_link_reads_what_lies_on_a_gpu(void **state)
{
    world_t *w = *state;
    py_link_t *l = NULL;
    py_gpu_place_t place;
    bk_buffer_t at;
    char to[64];

    succeeds(py_link_new(&l));
    py_data_t data = { .tag = PY_TAG_GPU, .id = 0, .length = 10 };
    fails(py_link_read(l, &data, to), "does not have");
    l->gpu.gpus = py_gpus_ref(w->gpus);
    succeeds(py_gpu_alloc(&l->gpu, 0, sizeof(to), &place, &at));
    memset(fake_cuda_bytes(at.base), 'y', sizeof(to));
    data.id = place.piece;
    data.length = sizeof(to);
    succeeds(py_link_read(l, &data, to));
    assert_int_equal(to[63], 'y');
    data.length++;
    fails(py_link_read(l, &data, to), "does not have");
    py_link_unref(l);
}

static void
without_gpus_there_is_no_memory(void **state)
{
    py_gpu_blocks_t none;
    py_gpu_place_t place;
    bk_buffer_t at;

    (void) state;
    py_gpu_blocks_init(&none);
    fails(py_gpu_alloc(&none, 0, 1, &place, &at), "no memory of GPUs");
    fails(py_gpu_ref(&none, 0, 0, &at), "does not have");
    py_gpu_blocks_fini(&none);
}

#define IN_WORLD(test) \
    cmocka_unit_test_setup_teardown(test, open_world, close_world)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(small_pieces_share_a_block_of_their_gpu),
        IN_WORLD(a_block_has_nothing_of_other_models),
        IN_WORLD(a_block_without_pieces_begins_anew),
        IN_WORLD(what_an_interpreter_names_is_looked_up),
        IN_WORLD(a_piece_in_use_outlives_what_the_interpreter_says),
        IN_WORLD(a_piece_that_is_written_outlives_what_the_interpreter_says),
        IN_WORLD(blocks_are_freed_when_they_were_closed),
        IN_WORLD(there_is_a_most_of_pieces),
        IN_WORLD(failures_leave_nothing),
        IN_WORLD(copies_go_between_all_kinds_of_memory),
        IN_WORLD(a_place_reads_as_it_was_written),
        IN_WORLD(a_link_reads_what_lies_on_a_gpu),
        cmocka_unit_test(without_gpus_there_is_no_memory)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
