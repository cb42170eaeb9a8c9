/* Blocks, values and the channel of backend python, with the interpreter's
   side played here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "python/link.h"

static void
heap_reuses_blocks_of_a_class(void **state)
{
    uint32_t a, b, c;
    uint64_t at, again;
    py_heap_t h;

    (void) state;
    py_heap_init(&h, -1, 4096, 1 << 20);
    assert_true(py_heap_alloc(&h, 1000, &a, &at));
    assert_true(py_heap_alloc(&h, 5000, &b, &again));
    assert_int_not_equal(at, again);
    assert_int_equal(again % 4096, 0);
    assert_int_equal(h.in_use, 1024 + 8192);
    assert_true(py_heap_free(&h, a));
    assert_true(py_heap_alloc(&h, 600, &c, &again));
    assert_int_equal(a, c);
    assert_int_equal(at, again);
    py_heap_fini(&h);
}

static void
heap_rejects_foreign_ids_and_what_has_no_room(void **state)
{
    uint32_t id;
    uint64_t at;
    py_heap_t h;

    (void) state;
    py_heap_init(&h, -1, 0, 1 << 16);
    assert_false(py_heap_free(&h, 0));
    assert_false(py_heap_free(&h, UINT64_MAX));
    assert_true(py_heap_alloc(&h, 1 << 16, &id, &at));
    assert_false(py_heap_alloc(&h, 1, &id, &at));
    assert_true(py_heap_free(&h, id));
    assert_false(py_heap_free(&h, id));
    assert_false(py_heap_alloc(&h, UINT64_MAX, &id, &at));
    py_heap_fini(&h);
}

static void
values_read_as_they_were_written(void **state)
{
    py_writer_t w = { 0 };
    py_reader_t r;
    py_data_t data;
    const char *text;
    uint32_t count, len;
    int64_t i;
    uint64_t u;
    double d;
    bool b;

    (void) state;
    py_write_list(&w, 7);
    py_write_int(&w, -5);
    py_write_uint(&w, UINT64_MAX);
    py_write_double(&w, 0.5);
    py_write_text(&w, "word", 4);
    py_write_bool(&w, true);
    py_write_bytes(&w, "abc", 3);
    py_write_none(&w);
    assert_false(w.failed);

    py_reader_init(&r, w.data, w.len);
    py_reader_t whole = r;
    assert_true(py_read_list(&r, &count) && count == 7);
    assert_false(py_read_uint(&r, &u));         /* negative                  */
    assert_true(py_read_int(&r, &i) && i == -5);
    assert_false(py_read_int(&r, &i));          /* too large                 */
    assert_true(py_read_uint(&r, &u) && u == UINT64_MAX);
    assert_true(py_read_double(&r, &d) && d == 0.5);
    assert_true(py_read_text(&r, &text, &len) && len == 4);
    assert_string_equal(text, "word");
    assert_true(py_read_bool(&r, &b) && b);
    assert_true(py_read_data(&r, &data) && data.length == 3);
    assert_memory_equal(data.bytes, "abc", 3);
    assert_true(py_read_optional(&r, &text) && text == NULL);
    assert_int_equal(py_read_tag(&r), 0);
    assert_true(py_read_skip(&whole));
    assert_ptr_equal(whole.at, whole.end);
    py_writer_fini(&w);
}

static void
values_that_are_cut_off_are_none(void **state)
{
    py_writer_t w = { 0 };
    py_reader_t r;

    (void) state;
    py_write_list(&w, 2);
    py_write_text(&w, "some words", 10);
    py_write_bytes(&w, "0123456789", 10);
    for (size_t len = 0; len < w.len; len++) {
        py_reader_init(&r, w.data, len);
        assert_false(py_read_skip(&r));
    }
    py_reader_init(&r, w.data, w.len);
    assert_true(py_read_skip(&r));

    w.data[12] = '\0';                          /* inside the text           */
    py_reader_init(&r, w.data, w.len);
    assert_false(py_read_skip(&r));
    py_writer_fini(&w);
}

static void
lists_nest_up_to_a_bound(void **state)
{
    py_writer_t w = { 0 };
    py_reader_t r;

    (void) state;
    for (int i = 0; i < PY_DEPTH_MAX; i++) {
        py_write_list(&w, 1);
    }
    py_write_none(&w);
    py_reader_init(&r, w.data, w.len);
    assert_true(py_read_skip(&r));

    py_writer_reset(&w);
    for (int i = 0; i < 1000; i++) {
        py_write_list(&w, 1);
    }
    py_write_none(&w);
    py_reader_init(&r, w.data, w.len);
    assert_false(py_read_skip(&r));
    py_writer_fini(&w);
}

/* as the interpreter does */
static void
send(py_link_t *l, uint32_t kind, uint64_t offset, uint64_t length)
{
    py_ring_t *ring = &l->header->back;
    uint32_t tail = atomic_load(&ring->tail);

    ring->entries[tail % PY_RING_ENTRIES] = (py_entry_t) {
        .kind = kind, .slot = PY_NO_SLOT, .offset = offset, .length = length
    };
    atomic_store(&ring->tail, tail + 1);
}

static void
link_copies_messages(void **state)
{
    py_link_t *l;
    py_entry_t e;

    (void) state;
    assert_null(py_link_new(&l));
    assert_int_equal(py_link_pop(l, &e), PY_POP_EMPTY);
    memcpy((uint8_t *) l->header + l->header->up, "message", 7);
    send(l, PY_UP_LOG, l->header->up, 7);
    assert_int_equal(py_link_pop(l, &e), PY_POP_ENTRY);
    memset((uint8_t *) l->header + l->header->up, 'x', 7);
    assert_int_equal(l->message.len, 7);
    assert_memory_equal(l->message.data, "message", 7);
    assert_int_equal(atomic_load(&l->header->back.head), 1);
    py_link_unref(l);
}

static void
link_ends_an_interpreter_that_lies(void **state)
{
    static const struct {
        uint64_t offset;
        uint64_t length;
    } lies[] = {
        { PY_CHANNEL_BYTES, 1 }, { PY_CHANNEL_BYTES - 1, 2 },
        { UINT64_MAX, 2 }, { 1, UINT64_MAX }, { 0, PY_MESSAGE_MAX + 1 }
    };
    py_entry_t e;

    (void) state;
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        py_link_t *l;
        assert_null(py_link_new(&l));
        send(l, PY_UP_LOG, lies[i].offset, lies[i].length);
        assert_int_equal(py_link_pop(l, &e), PY_POP_BROKEN);
        py_link_unref(l);
    }

    py_link_t *l;
    assert_null(py_link_new(&l));
    atomic_store(&l->header->back.tail, PY_RING_ENTRIES + 1);
    assert_int_equal(py_link_pop(l, &e), PY_POP_BROKEN);
    py_link_unref(l);
}

static void
link_frees_messages_that_were_read(void **state)
{
    py_writer_t w = { 0 };
    py_link_t *l;

    (void) state;
    assert_null(py_link_new(&l));
    py_write_none(&w);
    for (uint32_t i = 0; i < PY_RING_ENTRIES; i++) {
        assert_true(py_link_push(l, &l->work, PY_TASK_EXECUTE, i, &w));
    }
    assert_false(py_link_push(l, &l->work, PY_TASK_EXECUTE, 0, &w));

    /* a head that is beyond the tail frees nothing */
    atomic_store(&l->header->work.head, PY_RING_ENTRIES + 7);
    assert_false(py_link_push(l, &l->work, PY_TASK_EXECUTE, 0, &w));
    atomic_store(&l->header->work.head, 3);
    for (int i = 0; i < 3; i++) {
        assert_true(py_link_push(l, &l->work, PY_TASK_EXECUTE, 0, &w));
    }
    assert_false(py_link_push(l, &l->work, PY_TASK_EXECUTE, 0, &w));
    assert_int_equal(l->heap.count, PY_RING_ENTRIES);
    py_writer_fini(&w);
    py_link_unref(l);
}

static void
link_reads_memory_or_says_why_not(void **state)
{
    char from[100] = "in memory", to[100] = "";
    py_data_t data = {
        .tag = PY_TAG_ADDRESS, .place = (uint64_t) (uintptr_t) from,
        .length = sizeof(from)
    };
    py_link_t *l;

    (void) state;
    assert_null(py_link_new(&l));
    l->pid = getpid();
    assert_null(py_link_read(l, &data, to));
    assert_string_equal(to, from);

    data.place = 8;
    TRITONSERVER_Error *err = py_link_read(l, &data, to);
    assert_non_null(err);
    TRITONSERVER_ErrorDelete(err);

    data.tag = PY_TAG_BLOCK;
    data.place = PY_CHANNEL_BYTES - 50;
    err = py_link_read(l, &data, to);
    assert_non_null(err);
    TRITONSERVER_ErrorDelete(err);
    py_link_unref(l);
}

static void
link_does_not_wait_for_the_dead(void **state)
{
    py_link_t *l;

    (void) state;
    assert_null(py_link_new(&l));
    assert_false(py_link_sleep(l));
    py_link_die(l);
    py_link_wait(l);
    assert_true(py_link_is_dead(l));
    send(l, PY_UP_LOG, 0, 0);
    assert_true(py_link_sleep(l));
    py_link_unref(l);
}

static void *
wait_for_its_end(void *arg)
{
    py_link_t *l = arg;

    while (!py_link_is_dead(l)) {
        py_link_wait(l);
    }
    return NULL;
}

/* who shares a futex can have its sleepers wait for another one */
static void
link_is_not_kept_from_seeing_the_end(void **state)
{
    struct timespec until;
    pthread_t thread;
    py_link_t *l;

    (void) state;
    assert_null(py_link_new(&l));
    assert_int_equal(pthread_create(&thread, NULL, wait_for_its_end, l), 0);
    while (syscall(SYS_futex, &l->header->back.posted, FUTEX_CMP_REQUEUE, 0,
        (void *) 1, &l->header->slots[0].replies, 0) != 1)
    {
        usleep(1000);
    }
    py_link_die(l);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    assert_int_equal(pthread_timedjoin_np(thread, NULL, &until), 0);
    py_link_unref(l);
}

static void
link_keeps_a_slot_until_its_call_has_ended(void **state)
{
    py_writer_t w = { 0 };
    py_link_t *l;

    (void) state;
    assert_null(py_link_new(&l));
    py_write_none(&w);
    assert_null(py_link_claim(l, 5));
    for (int i = 0; i < 2; i++) {       /* another call of the same slot     */
        TRITONSERVER_Error *err = py_link_claim(l, 5);
        assert_non_null(err);
        TRITONSERVER_ErrorDelete(err);
        py_link_reply(l, 5, &w);
    }
    py_link_unclaim(l, 5);
    assert_null(py_link_claim(l, 5));
    py_writer_fini(&w);
    py_link_unref(l);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heap_reuses_blocks_of_a_class),
        cmocka_unit_test(heap_rejects_foreign_ids_and_what_has_no_room),
        cmocka_unit_test(values_read_as_they_were_written),
        cmocka_unit_test(values_that_are_cut_off_are_none),
        cmocka_unit_test(lists_nest_up_to_a_bound),
        cmocka_unit_test(link_copies_messages),
        cmocka_unit_test(link_ends_an_interpreter_that_lies),
        cmocka_unit_test(link_frees_messages_that_were_read),
        cmocka_unit_test(link_reads_memory_or_says_why_not),
        cmocka_unit_test(link_does_not_wait_for_the_dead),
        cmocka_unit_test(link_is_not_kept_from_seeing_the_end),
        cmocka_unit_test(link_keeps_a_slot_until_its_call_has_ended)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
