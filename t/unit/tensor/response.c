#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <malloc.h>

#include "core/tensor/request.h"
#include "core/tensor/response.h"

/* The calls of the sink; counters are atomic for the test with threads. */
typedef struct {
    _Atomic int     started;
    _Atomic int     released;
    _Atomic int     completed;
    _Atomic int     finals;
    _Atomic int     bare;           /* flags without a response              */
    _Atomic int     freed;
    inf_err_code_t  code;
    char            text[64];
    bool            keep;           /* complete leaves response to the test  */
    inf_response_t *kept;
} sink_t;

static void
sink_start(void *userp)
{
    ((sink_t *) userp)->started++;
}

static void
sink_release(void *userp, inf_output_t *out)
{
    ((sink_t *) userp)->released++;
    free(out->base);
}

static void
sink_complete(void *userp, inf_response_t *response, uint32_t flags)
{
    sink_t *s = userp;

    s->completed++;
    s->finals += (flags & INF_SEND_FINAL) != 0;
    if (response == NULL) {
        s->bare++;
        return;
    }
    if (response->err != NULL) {
        s->code = inf_err_code(response->err);
        strncpy(s->text, inf_err_msg(response->err), sizeof(s->text) - 1);
    }
    if (s->keep) {
        s->kept = response;
        return;
    }
    inf_response_free(response);
}

static void
sink_factory_free(void *userp, inf_factory_t *f)
{
    (void) f;
    ((sink_t *) userp)->freed++;
}

static const inf_sink_ops_t sink_ops = {
    .start = sink_start,
    .release = sink_release,
    .complete = sink_complete,
    .factory_free = sink_factory_free
};

static void
start(inf_factory_t *f, sink_t *s)
{
    inf_factory_init(f);
    inf_factory_start(f, NULL, "id", &sink_ops, s);
}

static void
the_usual_response_needs_no_memory_of_its_own(void **state)
{
    (void) state;
    sink_t s = { 0 };
    inf_factory_t f;
    inf_response_t *a;

    start(&f, &s);
    for (int i = 0; i < 3; i++) {
        assert_null(inf_response_new(&f, &a));
        assert_ptr_equal(a, &f.embedded);
        assert_int_equal(a->output_count, 0);
        assert_null(a->first);
        assert_null(a->err);
        assert_int_equal(a->parameters.count, 0);
        assert_non_null(inf_response_add_output(a, "O", INF_TYPE_BOOL, NULL,
            0));
        assert_non_null(inf_parameter_add(&a->parameters, &a->arena, "p", 1,
            INF_PARAMETER_BOOL));
        inf_response_free(a);
    }
    assert_int_equal(s.started, 3);
    assert_int_equal(f.responses, 3);
    assert_int_equal(s.freed, 0);
    inf_factory_unref(&f);
    assert_int_equal(s.freed, 1);
    inf_factory_fini(&f);
}

static void
a_large_response_leaves_no_large_memory(void **state)
{
    (void) state;
    sink_t s = { 0 };
    inf_factory_t f;
    inf_response_t *r;

    start(&f, &s);
    size_t before = mallinfo2().hblkhd;     /* the allocator's large ones    */
    assert_null(inf_response_new(&f, &r));
    assert_non_null(inf_arena_alloc(&r->arena, 1 << 20));
    inf_response_free(r);
    assert_int_equal(mallinfo2().hblkhd, before);
    inf_factory_unref(&f);
    inf_factory_fini(&f);
}

static void
several_responses_live_side_by_side(void **state)
{
    (void) state;
    sink_t s = { 0 };
    inf_factory_t f;
    inf_response_t *r[5];

    start(&f, &s);
    for (int i = 0; i < 5; i++) {
        assert_null(inf_response_new(&f, &r[i]));
        for (int j = 0; j < i; j++) {
            assert_ptr_not_equal(r[i], r[j]);
        }
    }
    assert_ptr_equal(r[0], &f.embedded);

    inf_response_free(r[0]);
    inf_response_t *again;
    assert_null(inf_response_new(&f, &again));
    assert_ptr_equal(again, &f.embedded);       /* free again while others
                                                   are in use               */
    inf_factory_unref(&f);                      /* the request's             */
    for (int i = 4; i > 0; i--) {
        inf_response_send(r[i], 0, NULL);
        assert_int_equal(s.freed, 0);
    }
    inf_response_send(again, INF_SEND_FINAL, NULL);
    assert_int_equal(s.freed, 1);
    assert_int_equal(s.finals, 1);
    assert_int_equal(s.completed, 5);
    inf_factory_fini(&f);
}

static void
outputs_keep_their_order_and_addresses(void **state)
{
    (void) state;
    enum { COUNT = 300 };
    static inf_output_t *outs[COUNT];
    sink_t s = { 0 };
    inf_factory_t f;
    inf_response_t *r;

    start(&f, &s);
    assert_null(inf_response_new(&f, &r));
    for (int i = 0; i < COUNT; i++) {
        int64_t shape[2] = { i, 2 };
        char name[2] = { (char) ('a' + i % 26), '\0' };
        outs[i] = inf_response_add_output(r, name, INF_TYPE_FP64, shape, 2);
        assert_non_null(outs[i]);
        name[0] = '?';
        shape[0] = -1;
    }

    int i = 0;
    for (inf_output_t *out = r->first; out != NULL; out = out->next, i++) {
        assert_ptr_equal(out, outs[i]);
        assert_int_equal(out->name[0], 'a' + i % 26);
        assert_int_equal(out->shape[0], i);
        assert_ptr_equal(out->response, r);
        assert_false(out->allocated);
    }
    assert_int_equal(i, COUNT);
    assert_int_equal(r->output_count, COUNT);
    inf_response_free(r);
    inf_factory_unref(&f);
    inf_factory_fini(&f);
}

static void
buffers_are_released_once_and_only_if_there_are_any(void **state)
{
    (void) state;
    sink_t s = { 0 };
    inf_factory_t f;
    inf_response_t *r;

    start(&f, &s);
    assert_null(inf_response_new(&f, &r));
    inf_response_add_output(r, "none", INF_TYPE_BOOL, NULL, 0);
    for (int i = 0; i < 3; i++) {
        inf_response_add_output(r, "O", INF_TYPE_BOOL, NULL, 0)->base =
            malloc(16);
    }
    inf_response_free(r);
    assert_int_equal(s.released, 3);
    inf_factory_unref(&f);
    inf_factory_fini(&f);
}

static void
a_response_outlives_request_and_the_reverse(void **state)
{
    (void) state;
    sink_t s = { .keep = true };
    inf_factory_t f;
    inf_response_t *r;

    start(&f, &s);                      /* released first                    */
    assert_null(inf_response_new(&f, &r));
    inf_factory_unref(&f);
    assert_int_equal(s.freed, 0);
    inf_response_send(r, INF_SEND_FINAL, NULL);
    assert_int_equal(s.freed, 0);
    inf_response_free(s.kept);
    assert_int_equal(s.freed, 1);

    inf_factory_start(&f, NULL, "id", &sink_ops, &s);    /* and used again  */
    assert_null(inf_response_new(&f, &r));
    inf_response_send(r, INF_SEND_FINAL, NULL);
    inf_response_free(s.kept);
    assert_int_equal(s.freed, 1);
    inf_factory_unref(&f);
    assert_int_equal(s.freed, 2);
    inf_factory_fini(&f);
}

static void
the_sent_error_is_a_copy(void **state)
{
    (void) state;
    sink_t s = { 0 };
    inf_factory_t f;
    inf_response_t *r;

    start(&f, &s);
    assert_null(inf_response_new(&f, &r));
    inf_err_t *err = inf_err_new(INF_ERR_UNSUPPORTED, "100%% %s", "no");
    inf_response_send(r, INF_SEND_FINAL, err);
    assert_string_equal(inf_err_msg(err), "100% no");   /* still the caller's */
    inf_err_free(err);
    assert_int_equal(s.code, INF_ERR_UNSUPPORTED);
    assert_string_equal(s.text, "100% no");
    inf_factory_unref(&f);
    inf_factory_fini(&f);
}

static void
errors_and_flags_reach_the_sink_without_a_backend(void **state)
{
    (void) state;
    sink_t s = { 0 };
    inf_factory_t f;

    start(&f, &s);
    inf_factory_send_flags(&f, 0);
    assert_int_equal(s.bare, 1);
    assert_int_equal(s.finals, 0);
    inf_factory_send_error(&f, inf_err_new(INF_ERR_CANCELLED, "%s", ""));
    assert_int_equal(s.code, INF_ERR_CANCELLED);
    assert_int_equal(s.finals, 1);
    inf_factory_send_flags(&f, INF_SEND_FINAL);
    assert_int_equal(s.finals, 2);
    inf_factory_unref(&f);
    assert_int_equal(s.freed, 1);
    inf_factory_fini(&f);
}

static void
freeing_nothing_is_allowed(void **state)
{
    (void) state;
    inf_response_free(NULL);
    inf_factory_unref(NULL);
}

static void
a_dead_factory_gives_no_reference(void **state)
{
    (void) state;
    sink_t s = { 0 };
    inf_factory_t f;

    start(&f, &s);
    assert_true(inf_factory_try_ref(&f));
    inf_factory_unref(&f);
    assert_int_equal(s.freed, 0);
    inf_factory_unref(&f);
    assert_int_equal(s.freed, 1);
    assert_false(inf_factory_try_ref(&f));
    assert_int_equal(s.freed, 1);
    inf_factory_fini(&f);
}

/* ---- with threads -------------------------------------------------------- */

static void *
answer_many(void *arg)
{
    inf_factory_t *f = arg;

    for (int i = 0; i < 2000; i++) {
        inf_response_t *r;
        inf_err_free(inf_response_new(f, &r));
        inf_output_t *out = inf_response_add_output(r, "O", INF_TYPE_UINT8,
            NULL, 0);
        out->base = malloc(8);
        memset(out->base, i, 8);
        inf_response_send(r, 0, NULL);
    }

    inf_factory_unref(f);
    return NULL;
}

/* A decoupled backend: many threads, the one embedded response between them;
   canceller threads come and go meanwhile. */
static void
threads_share_a_factory(void **state)
{
    (void) state;
    enum { THREADS = 4 };
    sink_t s = { 0 };
    inf_factory_t f;
    pthread_t threads[THREADS];

    start(&f, &s);
    for (int i = 0; i < THREADS; i++) {
        inf_factory_ref(&f);
        assert_int_equal(pthread_create(&threads[i], NULL, answer_many, &f),
            0);
    }
    inf_factory_unref(&f);

    int taken = 0;
    while (inf_factory_try_ref(&f)) {
        atomic_store(&f.cancelled, true);
        inf_factory_unref(&f);
        taken++;
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }

    assert_int_equal(s.freed, 1);
    assert_int_equal(s.started, THREADS * 2000);
    assert_int_equal(s.completed, THREADS * 2000);
    assert_int_equal(s.released, THREADS * 2000);
    assert_int_equal(f.refs, 0);
    inf_factory_fini(&f);
}

/* Requests and their factories are used again and again. */
static void
a_factory_that_starts_again_remembers_nothing(void **state)
{
    (void) state;
    sink_t s = { 0 };
    inf_factory_t f;
    inf_response_t *a;

    start(&f, &s);
    f.rejected = true;
    f.padding = true;
    f.start_ns = 7;
    f.cancelled = true;
    assert_null(inf_response_new(&f, &a));
    inf_response_send(a, INF_SEND_FINAL, NULL);
    assert_int_equal(f.responses, 1);

    inf_factory_start(&f, NULL, "other", &sink_ops, &s);
    assert_false(f.rejected);
    assert_false(f.padding);
    assert_false(f.cancelled);
    assert_false(f.final);
    assert_int_equal(f.start_ns, 0);
    assert_int_equal(f.responses, 0);
    assert_string_equal(f.id, "other");
    assert_null(inf_response_new(&f, &a));
    assert_ptr_equal(a, &f.embedded);
    inf_response_free(a);
    inf_factory_fini(&f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_usual_response_needs_no_memory_of_its_own),
        cmocka_unit_test(a_large_response_leaves_no_large_memory),
        cmocka_unit_test(several_responses_live_side_by_side),
        cmocka_unit_test(outputs_keep_their_order_and_addresses),
        cmocka_unit_test(buffers_are_released_once_and_only_if_there_are_any),
        cmocka_unit_test(a_response_outlives_request_and_the_reverse),
        cmocka_unit_test(the_sent_error_is_a_copy),
        cmocka_unit_test(errors_and_flags_reach_the_sink_without_a_backend),
        cmocka_unit_test(freeing_nothing_is_allowed),
        cmocka_unit_test(a_dead_factory_gives_no_reference),
        cmocka_unit_test(threads_share_a_factory),
        cmocka_unit_test(a_factory_that_starts_again_remembers_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
