/* Requests that a dead backend still has are settled. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/tensor/ledger.h"

typedef struct {
    inf_request_t request;
    inf_factory_t factory;
    int           answers;
    int           finals;
    int           released;
    int           freed;
    char          text[64];
} shot_t;

static void
shot_complete(void *userp, inf_response_t *response, uint32_t flags)
{
    shot_t *s = userp;

    s->answers += response != NULL;
    s->finals += (flags & INF_SEND_FINAL) != 0;
    if (response != NULL && response->err != NULL) {
        assert_int_equal(inf_err_code(response->err), INF_ERR_UNAVAILABLE);
        strncpy(s->text, inf_err_msg(response->err), sizeof(s->text) - 1);
    }
    inf_response_free(response);
}

static void
shot_freed(void *userp, inf_factory_t *f)
{
    (void) f;
    ((shot_t *) userp)->freed++;
}

static void
shot_released(void *userp, inf_request_t *r, uint32_t flags)
{
    (void) r;
    (void) flags;
    ((shot_t *) userp)->released++;
}

static const inf_sink_ops_t sink = {
    .complete = shot_complete, .factory_free = shot_freed
};
static const inf_request_ops_t ops = { .released = shot_released };

/* Executed: the request has one reference on its factory. */
static void
shoot(shot_t *s, inf_ledger_t *ledger)
{
    memset(s, 0, sizeof(*s));
    inf_request_init(&s->request);
    inf_factory_init(&s->factory);
    inf_factory_start(&s->factory, NULL, "id", &sink, s);
    s->request.factory = &s->factory;
    s->request.ops = &ops;
    s->request.userp = s;
    inf_request_move(&s->request, INF_REQUEST_PENDING);
    inf_request_move(&s->request, INF_REQUEST_EXECUTING);
    if (ledger != NULL) {
        inf_ledger_add(ledger, &s->request);
    }
}

/* As the C interface does it for a backend. */
static void
send_final(shot_t *s)
{
    atomic_store(&s->factory.final, true);
    inf_factory_send_flags(&s->factory, INF_SEND_FINAL);
}

static void
end(shot_t *s)
{
    inf_request_fini(&s->request);
    inf_factory_fini(&s->factory);
}

static void
what_was_answered_and_released_needs_nothing(void **state)
{
    (void) state;
    inf_ledger_t *ledger = inf_ledger_new();
    shot_t s;

    shoot(&s, ledger);
    inf_factory_ref_handle(&s.factory);
    send_final(&s);
    inf_request_release(&s.request, 1);
    inf_factory_unref_handle(&s.factory);
    assert_int_equal(s.freed, 1);

    assert_int_equal(inf_ledger_settle(ledger, "gone"), 0);
    assert_int_equal(s.finals, 1);
    assert_int_equal(s.answers, 0);
    end(&s);
    inf_ledger_free(ledger);
}

/* It ends like the others, but nobody waited for its answer. */
static void
a_padding_request_is_settled_and_not_counted(void **state)
{
    (void) state;
    inf_ledger_t *ledger = inf_ledger_new();
    shot_t s;

    shoot(&s, ledger);
    s.factory.padding = true;
    assert_int_equal(inf_ledger_settle(ledger, "gone"), 0);
    assert_int_equal(s.finals, 1);
    assert_int_equal(s.released, 1);
    assert_int_equal(s.freed, 1);
    end(&s);
    inf_ledger_free(ledger);
}

static void
a_handle_that_nobody_gives_back_is_dropped(void **state)
{
    (void) state;
    inf_ledger_t *ledger = inf_ledger_new();
    shot_t s;

    shoot(&s, ledger);
    inf_factory_ref_handle(&s.factory);
    inf_factory_ref_handle(&s.factory);
    send_final(&s);
    inf_request_release(&s.request, 1);
    assert_int_equal(s.freed, 0);

    assert_int_equal(inf_ledger_settle(ledger, "gone"), 0);
    assert_int_equal(s.freed, 1);
    assert_int_equal(s.finals, 1);
    assert_int_equal(s.released, 1);
    end(&s);
    inf_ledger_free(ledger);
}

static void
a_stream_without_an_end_gets_one(void **state)
{
    (void) state;
    inf_ledger_t *ledger = inf_ledger_new();
    inf_response_t *r;
    shot_t s;

    shoot(&s, ledger);
    inf_factory_ref_handle(&s.factory);
    inf_request_release(&s.request, 1);
    assert_null(inf_response_new(&s.factory, &r));
    inf_response_send(r, 0, NULL);
    assert_int_equal(s.finals, 0);

    assert_int_equal(inf_ledger_settle(ledger, "process 7 died"), 1);
    assert_int_equal(s.answers, 2);
    assert_int_equal(s.finals, 1);
    assert_string_equal(s.text, "process 7 died");
    assert_int_equal(s.released, 1);
    assert_int_equal(s.freed, 1);
    end(&s);
    inf_ledger_free(ledger);
}

static void
a_request_that_was_kept_is_released(void **state)
{
    (void) state;
    inf_ledger_t *ledger = inf_ledger_new();
    shot_t s[3];

    for (int i = 0; i < 3; i++) {
        shoot(&s[i], ledger);
    }
    assert_int_equal(inf_ledger_settle(ledger, "gone"), 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(s[i].finals, 1);
        assert_int_equal(s[i].released, 1);
        assert_int_equal(s[i].freed, 1);
        end(&s[i]);
    }
    inf_ledger_free(ledger);
}

static void
a_request_that_is_run_once_more_stands_there_once(void **state)
{
    (void) state;
    inf_ledger_t *ledger = inf_ledger_new();
    shot_t s;

    shoot(&s, ledger);
    inf_ledger_add(ledger, &s.request);
    assert_int_equal(inf_ledger_settle(ledger, "gone"), 1);
    assert_int_equal(s.freed, 1);
    end(&s);
    inf_ledger_free(ledger);
}

static void
without_a_ledger_handles_are_references(void **state)
{
    (void) state;
    shot_t s;

    shoot(&s, NULL);
    inf_factory_ref_handle(&s.factory);
    inf_request_release(&s.request, 1);
    assert_int_equal(s.freed, 0);
    inf_factory_unref_handle(&s.factory);
    assert_int_equal(s.freed, 1);
    inf_factory_unref_handle(NULL);
    end(&s);
    inf_ledger_free(NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_answered_and_released_needs_nothing),
        cmocka_unit_test(a_padding_request_is_settled_and_not_counted),
        cmocka_unit_test(a_handle_that_nobody_gives_back_is_dropped),
        cmocka_unit_test(a_stream_without_an_end_gets_one),
        cmocka_unit_test(a_request_that_was_kept_is_released),
        cmocka_unit_test(a_request_that_is_run_once_more_stands_there_once),
        cmocka_unit_test(without_a_ledger_handles_are_references)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
