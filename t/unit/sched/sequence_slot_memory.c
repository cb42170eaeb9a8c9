/*
 * sequence_slot_memory.c - every allocation of a sequence batcher fails once,
 * in turn: the call that needed it says so and has changed nothing, the same
 * call succeeds afterwards, every request runs, and nothing is left behind.
 */

#include "scarce_memory.h"
#include "sched/sequence_world.h"

#include "core/sched/sequence_inputs.h"

enum { PLACES = 5, SEQUENCES = 80 };    /* more than the ids' first table    */

static inf_sequence_batcher_options_t how;
static inf_request_t requests[SEQUENCES];
static char ids[SEQUENCES][64];
static uint32_t owners[PLACES + 1];

static inf_policy_t *
new_policy(void)
{
    inf_policy_t *p = NULL;

    inf_err_t *err = inf_sequence_batcher_new(&how, &p);
    if (err != NULL) {
        assert_error(err, INF_ERR_UNAVAILABLE, "out of memory");
        assert_ok(inf_sequence_batcher_new(&how, &p));
    }
    return p;
}

static void
attach_open(inf_policy_t *p, uint32_t number)
{
    inf_instance_t *instance = (inf_instance_t *) (void *) &owners[number];

    inf_err_t *err = p->ops->attach(p, number, instance,
        &owners[number]);
    if (err != NULL) {
        assert_error(err, INF_ERR_UNAVAILABLE, "out of memory");
        assert_false(p->ops->occupied(p, number));
        assert_ok(p->ops->attach(p, number, instance,
            &owners[number]));
    }
    p->ops->open(p, number);
}

static void
send(inf_policy_t *p, int i)
{
    inf_sequence_counts_t before, after;
    inf_request_t *r = &requests[i];

    *r = (inf_request_t) {
        .correlation_text = ids[i], .flags = INF_REQUEST_SEQUENCE_START
    };
    inf_link_init(&r->link);
    inf_sequence_batcher_count(p, &before);
    inf_err_t *err = p->ops->push(p, r, 1);
    if (err != NULL) {
        assert_error(err, INF_ERR_UNAVAILABLE, "out of memory");
        assert_int_equal(r->state, INF_REQUEST_IDLE);
        inf_sequence_batcher_count(p, &after);
        assert_memory_equal(&before, &after, sizeof(before));
        assert_int_equal(p->queued, i);
        assert_ok(p->ops->push(p, r, 1));
    }
}

/* As a thread that was told: it looks until there is nothing. */
static uint32_t
run_place(inf_policy_t *p, uint32_t number)
{
    inf_payload_t payload;
    inf_link_t gone, *link;
    uint64_t until;
    uint32_t ran = 0;

    inf_link_init(&gone);
    for (;;) {
        inf_payload_init(&payload);
        if (p->ops->next(p, number, 2, &payload, &gone, &until)
            != INF_NEXT_PAYLOAD)
        {
            return ran;
        }
        while ((link = inf_list_pop_front(&payload.requests)) != NULL) {
            inf_request_t *r = inf_link_entry(link, inf_request_t, link);
            inf_request_move(r, INF_REQUEST_EXECUTING);
            p->ops->released(p, r, 2, &gone);
            inf_request_move(r, INF_REQUEST_RELEASED);
            ran++;
        }
    }
}

static uint32_t
run_all(inf_policy_t *p)
{
    inf_link_t gone;
    uint32_t ran = 0;

    inf_link_init(&gone);
    for (int i = 0; i < SEQUENCES && p->queued > 0; i++) {
        bool told[PLACES + 1] = { false };
        const uint32_t *owner;
        while ((owner = p->ops->touched(p)) != NULL) {
            told[owner - owners] = true;
        }
        for (uint32_t number = 1; number <= PLACES; number++) {
            ran += told[number] ? run_place(p, number) : 0;
        }
        p->ops->expire(p, 2 + how.idle_us * 1000, &gone);   /* slots again   */
        assert_true(inf_list_empty(&gone));
    }
    return ran;
}

static bool
live_once(long at)
{
    countdown = at;
    inf_policy_t *p = new_policy();
    for (uint32_t number = 1; number <= PLACES; number++) {
        attach_open(p, number);
    }
    for (int i = 0; i < SEQUENCES; i++) {
        send(p, i);
    }
    assert_int_equal(run_all(p), SEQUENCES);
    bool reached = countdown == 0;
    countdown = 0;
    p->ops->free(p);
    return reached;
}

static void
every_allocation_may_fail(void **state)
{
    (void) state;
    static const uint32_t preferred[] = { 1 };

    for (int i = 0; i < SEQUENCES; i++) {
        snprintf(ids[i], sizeof(ids[i]), i % 2 == 0 ? "%d" : "%d, a name that"
            " is too long for the sequence itself", i);
    }
    for (int old = 0; old <= 1; old++) {
        how = (inf_sequence_batcher_options_t) {
            .model = "m", .oldest = old, .slots = old ? 1 : 2, .limit = 2,
            .preferred = preferred, .preferred_count = 1, .idle_us = 10
        };
        live_once(0);
        long before = live, n = 1;
        for (; OWN_MALLOC && live_once(n); n++) {
            assert_int_equal(live, before);
        }
        assert_true(!OWN_MALLOC || n > SEQUENCES);
    }
}

/* ---- what a payload gets without the lock -------------------------------- */

static inf_model_t *
model_new(void)
{
    inf_model_t *m = inf_model_new("m", 1, "/models/m");

    assert_non_null(m);
    m->built = config_parse_normal("name: 'm' backend: 'x' max_batch_size: 4"
        " input { name: 'IN' data_type: TYPE_INT32 dims: 1 }"
        " output { name: 'OUT' data_type: TYPE_INT32 dims: 1 }"
        " sequence_batching { control_input { name: 'ID' control { kind:"
        " CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } } state {"
        " input_name: 'S' output_name: 'T' data_type: TYPE_INT32 dims: 2 } }");
    assert_ok(inf_config_tensors_new(m->built, &m->tensors));
    return m;
}

static uint32_t
release_all(inf_policy_t *p, inf_link_t *list)
{
    inf_link_t gone, *link;
    uint32_t paddings = 0;

    inf_link_init(&gone);
    while ((link = inf_list_pop_front(list)) != NULL) {
        inf_request_t *r = inf_link_entry(link, inf_request_t, link);
        if (r->padding) {
            inf_request_release(r, 1);
            paddings++;
        } else {
            p->ops->released(p, r, 2, &gone);
            inf_request_move(r, INF_REQUEST_RELEASED);
        }
    }
    return paddings;
}

/* Slots 1 and 2 have a request, slot 0 has none any more. */
static void
two_of_three(inf_policy_t *p, inf_payload_t *out)
{
    inf_link_t gone;
    uint64_t until;

    inf_link_init(&gone);
    inf_payload_init(out);
    for (int i = 0; i < 3; i++) {
        inf_request_t *r = &requests[i];
        inf_request_init(r);
        r->correlation_text = ids[i];
        r->flags = INF_REQUEST_SEQUENCE_START;
        r->batch_size = 1;
        assert_ok(p->ops->push(p, r, 1));
    }
    assert_true(p->ops->cancel(p, &requests[0], 1, &gone));
    assert_int_equal(p->ops->next(p, 1, 1, out, &gone, &until),
        INF_NEXT_PAYLOAD);
    assert_int_equal(out->count, 2);
    assert_int_equal(out->slots, 3);
    for (int i = 1; i < 3; i++) {
        inf_request_move(&requests[i], INF_REQUEST_EXECUTING);
    }
}

/* Whether an allocation failed.  Rows stand in their places or do not run. */
static bool
dress_once(const inf_sequence_batcher_options_t *options,
    inf_instance_t *instance, long at)
{
    inf_policy_t *p = NULL;
    inf_payload_t payload;
    inf_link_t failed;
    uint32_t left = 0;

    assert_ok(inf_sequence_batcher_new(options, &p));
    assert_ok(p->ops->attach(p, 1, instance, &owners[1]));
    p->ops->open(p, 1);
    two_of_three(p, &payload);
    inf_link_init(&failed);
    countdown = at;
    inf_err_t *err = p->ops->add_controls(p, &payload, &failed);
    bool reached = at > 0 && countdown == 0;
    countdown = 0;

    for (inf_link_t *l = failed.next; l != &failed; l = l->next) {
        assert_false(inf_link_entry(l, inf_request_t, link)->padding);
        left++;
    }
    assert_true((err != NULL) == (left > 0));
    assert_true(err == NULL || reached);
    inf_err_free(err);
    assert_int_equal(payload.count, left < 2 ? 3 : 0);
    assert_int_equal(release_all(p, &payload.requests), left < 2 ? 1 + left
        : 0);
    release_all(p, &failed);
    p->ops->detach(p, 1);
    p->ops->free(p);
    for (int i = 0; i < 3; i++) {
        inf_request_fini(&requests[i]);
    }
    return reached;
}

static void
what_can_not_be_dressed_does_not_run(void **state)
{
    (void) state;
    static inf_instance_spec_t spec = { .name = (char *) "m_0" };
    inf_model_t *model = model_new();
    inf_instance_t instance = { .model = model, .spec = &spec };
    inf_sequence_inputs_t *inputs = NULL;

    assert_ok(inf_sequence_inputs_new(NULL, "m", model, &inputs));
    const inf_sequence_batcher_options_t options = {
        .model = "m", .slots = 3, .limit = 3, .idle_us = 10,
        .inputs = inputs
    };
    dress_once(&options, &instance, 0);
    long before = live, n = 1;
    for (; OWN_MALLOC && dress_once(&options, &instance, n); n++) {
        assert_int_equal(live, before);
    }
    assert_true(!OWN_MALLOC || n > 5);
    inf_sequence_inputs_free(inputs);
    inf_model_free(model);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(what_can_not_be_dressed_does_not_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
