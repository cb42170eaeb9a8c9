/*
 * sequence_batcher.c - slots, backlog and batches of the sequence batcher, told
 *                      in ms.  Numbers in brackets are scenarios of the
 *                      scheduling reference, section 4.
 */

#include "sched/sequence_world.h"

#include "core/include/datatype.h"

/* ---- rules --------------------------------------------------------------- */

static void
a_sequence_begins_with_start_and_has_an_id(void **state)        /* (7)       */
{
    (void) state;
    sequences_t w;

    sequences_open(&w, direct(4), 1);
    w.requests[0].batch_size = 2;
    push_fails(&w, 0, 7, "S", 0, INF_ERR_INVALID_ARG, "inference request to"
        " model 'M' must specify batch-size 1");
    w.requests[0].batch_size = 1;
    push_fails(&w, 0, 0, "S", 0, INF_ERR_INVALID_ARG, "inference request to"
        " model 'M' must specify a non-zero or non-empty correlation ID");
    w.requests[0].correlation_text = "";
    push_fails(&w, 0, 0, "S", 0, INF_ERR_INVALID_ARG, "must specify a"
        " non-zero or non-empty correlation ID");
    w.requests[0].correlation_text = NULL;
    push_unknown(&w, 0, 7, "", 0);
    push_unknown(&w, 0, 7, "E", 0);
    push_unknown(&w, 0, UINT64_MAX, "", 0);
    w.requests[0].correlation_text = "seven";
    push_fails(&w, 0, 0, "", 0, INF_ERR_INVALID_ARG, "inference request for"
        " sequence seven to model 'M' must specify the START flag on the"
        " first request of the sequence");
    w.requests[0].correlation_text = NULL;
    assert_string_equal(counts(&w), "0 0 4 0");

    push(&w, 0, 7, "S", 0);
    assert_string_equal(w.told, "1");
    push(&w, 1, 7, "E", 0);
    push_unknown(&w, 2, 7, "", 0);          /* the end is told when it comes */
    assert_string_equal(run(&w, 1, 1), "0/1");
    assert_string_equal(run(&w, 1, 2), "1/1");
    push_unknown(&w, 2, 7, "", 3);
    assert_string_equal(run(&w, 1, 3), "nothing");
    sequences_close(&w);
}

static void
a_model_that_does_not_batch_has_one_slot(void **state)
{
    (void) state;
    sequences_t w;

    sequences_open(&w, direct(0), 1);
    push_sequence(&w, 0, 2, 1, 0);
    push_sequence(&w, 2, 1, 2, 0);
    assert_string_equal(counts(&w), "0 1 0 1");
    assert_string_equal(run(&w, 1, 0), "0/1");
    assert_string_equal(run(&w, 1, 0), "1/1");
    assert_string_equal(run(&w, 1, 0), "2/1");
    assert_string_equal(run(&w, 1, 0), "nothing");
    sequences_close(&w);
}

static void
ids_of_text_and_number_are_different(void **state)      /* (15), section 1   */
{
    (void) state;
    sequences_t w;

    sequences_open(&w, direct(4), 1);
    push(&w, 0, 5, "S", 0);
    push_text(&w, 1, "5", "S", 0);
    push_text(&w, 2, "05", "S", 0);
    assert_string_equal(counts(&w), "3 3 1 0");
    assert_string_equal(run(&w, 1, 0), "0 1 2/3");
    push_text(&w, 1, "5", "E", 1);
    assert_string_equal(counts(&w), "2 3 1 0");
    push(&w, 0, 5, "", 1);
    assert_string_equal(run(&w, 1, 1), "0 1/2");

    char id[] = "a text that its owner writes over";
    push_text(&w, 3, id, "S", 2);
    assert_string_equal(run(&w, 1, 2), "3/2");
    memset(id, 'x', sizeof(id) - 1);        /* the request was released      */
    push_text(&w, 4, "a text that its owner writes over", "E", 3);
    assert_string_equal(run(&w, 1, 3), "4/2");
    sequences_close(&w);
}

static void
start_for_a_live_id_goes_on_in_its_slot(void **state)           /* (8)       */
{
    (void) state;
    sequences_t w;

    sequences_open(&w, direct(2), 1);
    push(&w, 0, 1, "S", 0);
    push(&w, 1, 2, "S", 0);
    assert_string_equal(next_of(&w, 1, 0), "0 1/2");
    void *slot = w.requests[1].sched.queued.slot;
    assert_non_null(slot);
    release(&w, 0, 0);
    release(&w, 1, 0);
    push(&w, 2, 2, "", 1);
    push(&w, 3, 2, "S", 1);
    push(&w, 4, 2, "SE", 1);
    assert_string_equal(counts(&w), "1 2 0 0");
    assert_string_equal(next_of(&w, 1, 1), "2/2");
    assert_int_equal(w.requests[2].flags, 0);
    assert_string_equal(next_of(&w, 1, 1), "nothing");
    release(&w, 2, 2);                      /* then its states may go        */
    assert_string_equal(w.told, "1");
    assert_string_equal(next_of(&w, 1, 2), "3/2");
    assert_int_equal(w.requests[3].flags, INF_REQUEST_SEQUENCE_START);
    assert_ptr_equal(w.requests[3].sched.queued.slot, slot);
    release(&w, 3, 3);
    assert_string_equal(next_of(&w, 1, 3), "4/2");
    assert_int_equal(w.requests[4].flags, INF_REQUEST_SEQUENCE_START
        | INF_REQUEST_SEQUENCE_END);
    release(&w, 4, 4);
    assert_string_equal(counts(&w), "1 1 1 0");
    sequences_close(&w);
}

/* Once a second, the others are counted. */
static void
start_for_a_live_id_is_noticed(void **state)                    /* (8)       */
{
    (void) state;
    sequences_t w;

    sequences_open(&w, direct(1), 1);
    push(&w, 0, 7, "S", 0);
    assert_string_equal(notice(&w), "");
    push(&w, 1, 7, "", 0);
    assert_string_equal(notice(&w), "");
    push_text(&w, 2, "seven", "S", 0);      /* it waits                      */
    assert_string_equal(notice(&w), "");
    push(&w, 3, 7, "S", 10);
    assert_string_equal(notice(&w),
        "model=M: sequence 7 starts again before it has ended");
    assert_string_equal(notice(&w), "");
    push(&w, 4, 7, "S", 11);
    assert_string_equal(notice(&w), "");
    push_text(&w, 5, "seven", "S", 1009);
    assert_string_equal(notice(&w), "");
    push(&w, 6, 7, "S", 1010);
    push_unknown(&w, 7, 8, "", 1010);       /* not of the one before         */
    assert_string_equal(notice(&w), "");
    push_text(&w, 7, "seven", "SE", 1010);
    assert_string_equal(notice(&w), "model=M: sequence seven starts again"
        " before it has ended, as 2 others did since the last time that this"
        " was said");
    push_text(&w, 8, "seven", "S", 5000);   /* that has ended                */
    assert_string_equal(notice(&w), "");
    push_text(&w, 9, "seven", "S", 5000);
    assert_string_equal(notice(&w),
        "model=M: sequence seven starts again before it has ended");
    while (w.policy->ops->drop(w.policy) != NULL) {
        continue;
    }
    sequences_close(&w);
}

static void
start_for_an_id_that_has_ended_is_another_sequence(void **state)
{
    (void) state;
    sequences_t w;

    sequences_open(&w, direct(2), 1);
    push_sequence(&w, 0, 2, 1, 0);          /* its tail is queued still      */
    push(&w, 2, 1, "S", 0);
    push(&w, 3, 1, "E", 0);
    push(&w, 4, 1, "S", 0);                 /* and in the backlog            */
    push(&w, 5, 1, "E", 0);
    push(&w, 6, 1, "S", 0);
    assert_string_equal(counts(&w), "1 2 0 2");
    assert_string_equal(run(&w, 1, 0), "0 2/2");
    assert_string_equal(run(&w, 1, 0), "1 3/2");
    assert_string_equal(counts(&w), "1 2 0 0");
    assert_string_equal(run(&w, 1, 0), "4 6/2");
    assert_string_equal(run(&w, 1, 0), "5/1");
    assert_string_equal(counts(&w), "1 1 1 0");
    assert_string_equal(expire(&w, 1000), "");
    sequences_close(&w);
}

/* ---- direct -------------------------------------------------------------- */

static void
two_instances_of_two_slots_run_four_sequences(void **state)     /* (1)       */
{
    (void) state;
    sequences_t w;

    sequences_open(&w, direct(2), 2);
    assert_string_equal(counts(&w), "0 0 4 0");
    push(&w, 0, 10, "S", 0);
    assert_string_equal(w.told, "1");
    push(&w, 1, 11, "S", 0);                /* slot 0 of all goes first      */
    assert_string_equal(w.told, "2");
    push(&w, 2, 12, "S", 0);
    push(&w, 3, 13, "S", 0);
    push(&w, 4, 14, "S", 0);
    assert_string_equal(w.told, "");
    assert_string_equal(counts(&w), "5 4 0 1");
    assert_string_equal(run(&w, 1, 0), "0 2/2");
    assert_string_equal(run(&w, 2, 0), "1 3/2");
    assert_string_equal(run(&w, 1, 0), "nothing");
    assert_string_equal(run(&w, 2, 0), "nothing");
    push(&w, 5, 13, "E", 1);
    assert_string_equal(w.told, "2");
    assert_string_equal(run(&w, 2, 1), "5/2");
    assert_string_equal(counts(&w), "4 4 0 0");
    assert_string_equal(run(&w, 2, 1), "4/2");
    assert_string_equal(run(&w, 1, 1), "nothing");
    for (uint64_t id = 10; id < 15; id++) {
        if (id != 13) {
            push(&w, (int) id, id, "E", 2);
        }
    }
    assert_string_equal(run(&w, 1, 2), "10 12/2");
    assert_string_equal(run(&w, 2, 2), "11 14/2");
    assert_string_equal(counts(&w), "0 0 4 0");
    assert_int_equal(w.policy->live, 0);
    assert_int_equal(w.policy->deadline_ns, INF_NEVER);
    sequences_close(&w);
}

static void
a_backlog_sequence_takes_the_first_slot_that_ends(void **state) /* (2)       */
{
    (void) state;
    sequences_t w;

    sequences_open(&w, direct(2), 1);
    for (int k = 0; k < 3; k++) {           /* A0 B1 C2 D3, A4 B5 ...        */
        for (int s = 0; s < 4; s++) {
            push(&w, 4 * k + s, 1 + (uint64_t) s, k == 0 ? "S"
                : k == 2 ? "E" : "", 0);
        }
    }
    assert_string_equal(counts(&w), "0 2 0 2");
    assert_string_equal(run(&w, 1, 0), "0 1/2");
    assert_string_equal(run(&w, 1, 0), "4 5/2");
    assert_string_equal(run(&w, 1, 0), "8 9/2");
    assert_string_equal(run(&w, 1, 0), "2 3/2");
    assert_string_equal(run(&w, 1, 0), "6 7/2");
    assert_string_equal(run(&w, 1, 0), "10 11/2");
    assert_string_equal(run(&w, 1, 0), "nothing");
    sequences_close(&w);
}

static void
rows_reach_to_the_highest_slot_with_a_request(void **state)     /* (3)       */
{
    (void) state;
    sequences_t w;

    sequences_open(&w, direct(4), 1);
    push_sequence(&w, 0, 4, 1, 0);
    push_sequence(&w, 4, 4, 2, 0);
    push_sequence(&w, 8, 2, 3, 0);
    push_sequence(&w, 10, 2, 4, 0);
    assert_string_equal(rows_of_all(&w, 1, 0), "4 4 2 2: 12");

    push_sequence(&w, 0, 2, 1, 1);
    push_sequence(&w, 2, 2, 2, 1);
    push_sequence(&w, 4, 4, 3, 1);
    push_sequence(&w, 8, 4, 4, 1);
    assert_string_equal(rows_of_all(&w, 1, 1), "4 4 4 4: 12");
    sequences_close(&w);
}

static void
five_sequences_for_four_slots(void **state)                     /* (4)       */
{
    (void) state;
    sequences_t w;

    sequences_open(&w, direct(4), 1);
    for (int s = 0; s < 5; s++) {
        push_sequence(&w, 3 * s, 3, 1 + (uint64_t) s, 0);
    }
    assert_string_equal(rows_of_all(&w, 1, 0), "4 4 4 1 1 1: 15");
    sequences_close(&w);
}

static void
short_ones_from_the_backlog_fill_freed_slots(void **state)      /* (5)       */
{
    (void) state;
    sequences_t w;

    sequences_open(&w, direct(4), 1);
    push_sequence(&w, 0, 3, 1, 0);
    push_sequence(&w, 3, 2, 2, 0);
    push_sequence(&w, 5, 2, 3, 0);
    push_sequence(&w, 7, 3, 4, 0);
    push_sequence(&w, 10, 1, 5, 0);
    push_sequence(&w, 11, 1, 6, 0);
    assert_string_equal(rows_of_all(&w, 1, 0), "4 4 4: 12");
    sequences_close(&w);
}

static inf_config_tensors_t *
tensors(bool ragged)
{
    char text[512];
    inf_config_tensors_t *t;

    snprintf(text, sizeof(text), "name: 'M' backend: 'x' max_batch_size: 4"
        " input { name: 'IN' data_type: TYPE_INT32 dims: -1"
        " allow_ragged_batch: %s } output { name: 'OUT' data_type:"
        " TYPE_INT32 dims: -1 }", ragged ? "true" : "false");
    Inference__ModelConfig *msg = config_parse_normal(text);
    assert_ok(inf_config_tensors_new(msg, &t));
    inf_message_free(&msg->base);
    return t;
}

static void
set_size(sequences_t *w, int i, int64_t size)
{
    const int64_t shape[] = { 1, size };
    assert_non_null(inf_request_add_input(&w->requests[i], "IN", 2,
        INF_TYPE_INT32, shape, 2));
}

static void
different_shapes_do_not_share_a_payload(void **state)           /* (6)       */
{
    (void) state;
    static const int64_t sizes[] = { 2, 2, 1, 3 };

    for (int ragged = 0; ragged <= 1; ragged++) {
        sequences_t w;
        inf_config_tensors_t *t = tensors(ragged);
        sequences_open(&w, (inf_sequence_batcher_options_t) {
            .limit = 4, .tensors = t }, 1);
        for (int s = 0; s < 4; s++) {
            for (int k = 0; k < 3; k++) {
                set_size(&w, 3 * s + k, sizes[s]);
            }
            push_sequence(&w, 3 * s, 3, 1 + (uint64_t) s, (uint64_t) s);
        }
        assert_string_equal(rows_of_all(&w, 1, 9), ragged ? "4 4 4: 12"
            : "4 4 4 4 4 4 4 4 4: 12");
        sequences_close(&w);
        inf_config_tensors_free(t);
    }
}

static void
the_slot_that_waits_longest_says_what_runs(void **state)        /* sec. 10   */
{
    (void) state;
    sequences_t w;
    inf_config_tensors_t *t = tensors(false);

    sequences_open(&w, (inf_sequence_batcher_options_t) {
        .limit = 4, .tensors = t }, 1);
    for (int i = 0; i < 3; i++) {
        set_size(&w, i, i == 1 ? 7 : 2);
        push(&w, i, 1 + (uint64_t) i, "S", (uint64_t) i);
    }
    assert_string_equal(run(&w, 1, 3), "0 2/3");
    set_size(&w, 10, 2);
    push(&w, 10, 1, "", 4);                 /* the lowest slot is there again */
    assert_string_equal(run(&w, 1, 4), "1/2");
    assert_string_equal(run(&w, 1, 4), "10/1");
    for (int i = 11; i <= 13; i++) {
        set_size(&w, i, i == 13 ? 7 : 2);
        push(&w, i, i - (uint64_t) 10, "E", (uint64_t) (20 - i));
    }
    sequences_close(&w);
    inf_config_tensors_free(t);
}

static void
a_batch_waits_for_utilization_or_delay(void **state)            /* (9)       */
{
    (void) state;
    static const struct {
        double      utilization;
        const char *first, *second, *later;
    } cases[] = {
        { 0.0, "0 1/2", "2/2", NULL },
        { 0.5, "0 1/2", "wait 3000", "2/2" },
        { 1.0, "wait 3000", NULL, "0 1/2" }
    };

    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        sequences_t w;
        sequences_open(&w, (inf_sequence_batcher_options_t) { .limit = 4,
            .delay_us = 3000000, .utilization = cases[k].utilization,
            .idle_us = 100000000 }, 1);
        push(&w, 0, 1, "S", 0);
        push(&w, 1, 2, "S", 0);
        push(&w, 2, 2, "", 0);
        assert_string_equal(run(&w, 1, 0), cases[k].first);
        if (cases[k].second != NULL) {
            assert_string_equal(run(&w, 1, 0), cases[k].second);
        }
        if (cases[k].later != NULL) {
            assert_string_equal(run(&w, 1, 2999), "wait 3000");
            assert_string_equal(run(&w, 1, 3000), cases[k].later);
        }
        if (cases[k].utilization == 1.0) {
            assert_string_equal(run(&w, 1, 3000), "2/2");
            push(&w, 3, 2, "", 3001);
            assert_string_equal(run(&w, 1, 3001), "wait 6001");
            push(&w, 4, 3, "S", 3002);
            push(&w, 5, 4, "S", 3002);
            assert_string_equal(run(&w, 1, 3002), "wait 6001");
            push(&w, 6, 1, "", 3003);       /* four of four                  */
            assert_string_equal(run(&w, 1, 3003), "6 3 4 5/4");
            push(&w, 0, 1, "", 3004);
            w.policy->closing = true;       /* there's nothing to wait for   */
            assert_string_equal(run(&w, 1, 3004), "0/1");
        }
        sequences_close(&w);
    }
}

static void
utilization_alone_does_not_wait(void **state)
{
    (void) state;
    sequences_t w;

    sequences_open(&w, (inf_sequence_batcher_options_t) { .limit = 4,
        .utilization = 1.0 }, 1);
    push(&w, 0, 1, "S", 0);
    assert_string_equal(run(&w, 1, 0), "0/1");
    sequences_close(&w);
}

static void
requests_of_one_sequence_run_one_by_one(void **state)
{
    (void) state;
    sequences_t w;

    sequences_open(&w, direct(4), 1);
    push_sequence(&w, 0, 3, 1, 0);
    push(&w, 3, 2, "SE", 0);
    assert_string_equal(next_of(&w, 1, 0), "0 3/2");
    assert_string_equal(next_of(&w, 1, 0), "1/1");  /* none is released yet  */
    assert_string_equal(next_of(&w, 1, 0), "2/1");
    assert_string_equal(next_of(&w, 1, 0), "nothing");
    for (int i = 3; i >= 0; i--) {
        release(&w, i, 5);
    }
    assert_string_equal(counts(&w), "0 0 4 0");
    sequences_close(&w);
}

static void
the_backlog_is_first_in_first_out(void **state)
{
    (void) state;
    sequences_t w;

    sequences_open(&w, direct(1), 2);
    push_sequence(&w, 0, 1, 1, 0);
    push_sequence(&w, 1, 2, 2, 0);
    for (int i = 0; i < 4; i++) {
        push(&w, 10 + i, 10 + (uint64_t) i, "S", 0);
    }
    push(&w, 20, 11, "E", 0);               /* joins the one that waits      */
    push(&w, 21, 10, "E", 0);
    assert_string_equal(counts(&w), "2 2 0 4");
    assert_string_equal(run(&w, 1, 0), "0/1");
    assert_string_equal(run(&w, 2, 0), "1/1");
    assert_string_equal(run(&w, 2, 0), "2/1");
    assert_string_equal(run(&w, 2, 0), "11/1");
    assert_string_equal(run(&w, 1, 0), "10/1");
    assert_string_equal(run(&w, 2, 0), "20/1");
    assert_string_equal(run(&w, 2, 0), "12/1");
    assert_string_equal(run(&w, 1, 0), "21/1");
    assert_string_equal(run(&w, 1, 0), "13/1");
    assert_string_equal(counts(&w), "2 2 0 0");
    sequences_close(&w);
}

/* ---- oldest -------------------------------------------------------------- */

static void
the_oldest_run_in_pairs(void **state)                           /* (12)      */
{
    (void) state;
    sequences_t w;

    sequences_open(&w, oldest(4, 2), 1);
    for (int k = 0; k < 2; k++) {           /* A0 B1 C2 D3 A4 B5 C6 D7       */
        for (int s = 0; s < 4; s++) {
            push(&w, 4 * k + s, 1 + (uint64_t) s, k == 0 ? "S" : "E",
                (uint64_t) (4 * k + s));
        }
    }
    assert_string_equal(run(&w, 1, 10), "0 1");
    assert_string_equal(run(&w, 1, 11), "2 3");
    assert_string_equal(run(&w, 1, 12), "4 5");
    assert_string_equal(run(&w, 1, 13), "6 7");
    assert_string_equal(run(&w, 1, 14), "nothing");
    assert_string_equal(counts(&w), "0 0 4 0");
    sequences_close(&w);
}

static void
five_sequences_for_four_candidates(void **state)                /* (13)      */
{
    (void) state;
    sequences_t w;

    sequences_open(&w, oldest(4, 4), 1);
    for (int s = 0; s < 5; s++) {
        push_sequence(&w, 3 * s, 3, 1 + (uint64_t) s, 0);
    }
    assert_string_equal(rows_of_all(&w, 1, 0), "4 4 4 1 1 1: 15");
    sequences_close(&w);
}

static void
the_next_of_a_sequence_waits_for_the_release(void **state)
{
    (void) state;
    sequences_t w;

    sequences_open(&w, oldest(4, 4), 1);
    push_sequence(&w, 0, 3, 1, 0);
    push_sequence(&w, 3, 2, 2, 0);
    assert_string_equal(next_of(&w, 1, 0), "0 3");
    assert_string_equal(next_of(&w, 1, 0), "nothing");
    release(&w, 3, 1);
    assert_string_equal(w.told, "1");
    assert_string_equal(next_of(&w, 1, 1), "4");
    release(&w, 4, 2);
    assert_string_equal(next_of(&w, 1, 2), "nothing");
    release(&w, 0, 3);
    assert_string_equal(w.told, "1");
    assert_string_equal(next_of(&w, 1, 3), "1");
    release(&w, 1, 4);
    assert_string_equal(next_of(&w, 1, 4), "2");
    release(&w, 2, 5);
    assert_string_equal(w.told, "");
    assert_string_equal(counts(&w), "0 0 4 0");
    sequences_close(&w);
}

static void
oldest_waits_for_a_preferred_size_or_the_delay(void **state)
{
    (void) state;
    static const uint32_t preferred[] = { 2, 3 };
    inf_sequence_batcher_options_t options = oldest(8, 8);
    sequences_t w;

    options.preferred = preferred;
    options.preferred_count = 2;
    options.delay_us = 5000;
    sequences_open(&w, options, 1);
    push(&w, 0, 1, "S", 0);
    assert_string_equal(w.told, "1");
    assert_string_equal(run(&w, 1, 0), "wait 5");
    push(&w, 1, 1, "", 1);                  /* the same sequence: no company */
    assert_string_equal(run(&w, 1, 1), "wait 5");
    push(&w, 2, 2, "SE", 2);
    assert_string_equal(run(&w, 1, 2), "0 2");
    assert_string_equal(run(&w, 1, 3), "wait 6");
    push(&w, 4, 4, "S", 4);
    push(&w, 5, 5, "S", 4);
    push(&w, 6, 6, "S", 4);
    assert_string_equal(run(&w, 1, 4), "1 4 5");
    assert_string_equal(run(&w, 1, 5), "wait 9");
    w.policy->closing = true;
    assert_string_equal(run(&w, 1, 5), "6");
    sequences_close(&w);
}

static void
oldest_compares_shapes(void **state)
{
    (void) state;
    inf_config_tensors_t *t = tensors(false);
    inf_sequence_batcher_options_t options = oldest(4, 4);
    sequences_t w;

    options.tensors = t;
    sequences_open(&w, options, 1);
    for (int i = 0; i < 4; i++) {
        set_size(&w, i, i < 2 ? 2 : 1);
        push(&w, i, 1 + (uint64_t) i, "SE", (uint64_t) i);
    }
    assert_string_equal(run(&w, 1, 4), "0 1");
    assert_string_equal(run(&w, 1, 4), "2 3");
    sequences_close(&w);
    inf_config_tensors_free(t);
}

/* ---- iterative ----------------------------------------------------------- */

static void
again(sequences_t *w, int i, uint64_t at_ms)
{
    inf_request_t *r = &w->requests[i];
    uint32_t queued = w->policy->queued;

    assert_ok(w->policy->ops->again(w->policy, r, at_ms * MS));
    assert_int_equal(r->state, INF_REQUEST_PENDING);
    assert_int_equal(r->flags, 0);
    assert_int_equal(w->policy->queued, queued + 1);
    hear(w);
}

static void
again_fails(sequences_t *w, int i, uint64_t at_ms, const char *text)
{
    inf_request_t *r = &w->requests[i];
    uint32_t flags = r->flags;

    assert_error(w->policy->ops->again(w->policy, r, at_ms * MS),
        INF_ERR_INVALID_ARG, text);
    assert_int_equal(r->state, INF_REQUEST_EXECUTING);
    assert_int_equal(r->flags, flags);
    hear(w);
}

static void
an_iterative_request_comes_round(void **state)                  /* (18)      */
{
    (void) state;
    sequences_t w;

    for (int old = 0; old <= 1; old++) {
        inf_sequence_batcher_options_t options = either(old, 1);
        options.iterative = true;
        sequences_open(&w, options, 1);
        for (int i = 0; i < 4; i++) {
            push(&w, i, 0, "", 0);
            assert_int_equal(w.requests[i].correlation_id, i + 1);
            assert_int_equal(w.requests[i].flags, INF_REQUEST_SEQUENCE_START);
        }
        assert_string_equal(counts(&w), "4 1 0 3");
        for (int i = 0; i < 4; i++) {
            char expected[8];
            snprintf(expected, sizeof(expected), old ? "%d" : "%d/1", i);
            for (int step = 0; step < 3; step++) {
                assert_string_equal(next_of(&w, 1, 1), expected);
                if (step < 2) {
                    again(&w, i, 2);
                    assert_string_equal(w.told, "1");
                    assert_int_equal(w.requests[i].queue_ns, 2 * MS);
                }
            }
            release(&w, i, 3);
            assert_string_equal(w.told, i < 3 ? "1" : "");
        }
        assert_string_equal(counts(&w), "0 0 1 0");
        assert_int_equal(w.policy->deadline_ns, INF_NEVER);
        sequences_close(&w);
    }
}

static void
iterative_requests_are_batched_with_what_is_ready(void **state)
{
    (void) state;
    sequences_t w;

    sequences_open(&w, (inf_sequence_batcher_options_t) { .limit = 4,
        .iterative = true }, 1);
    push(&w, 0, 0, "", 0);
    assert_string_equal(next_of(&w, 1, 0), "0/1");
    push(&w, 1, 0, "", 1);
    again(&w, 0, 2);
    assert_string_equal(next_of(&w, 1, 2), "0 1/2");
    push(&w, 2, 0, "", 3);
    release(&w, 0, 3);
    again(&w, 1, 3);
    push(&w, 3, 0, "", 3);                  /* slot 0 is free again          */
    assert_string_equal(next_of(&w, 1, 3), "3 1 2/3");
    release(&w, 1, 4);
    release(&w, 2, 4);
    release(&w, 3, 4);
    assert_string_equal(counts(&w), "0 0 4 0");
    sequences_close(&w);
}

static void
an_iterative_request_has_an_id_of_its_own(void **state)
{
    (void) state;
    sequences_t w;

    sequences_open(&w, (inf_sequence_batcher_options_t) { .limit = 4,
        .iterative = true }, 1);
    push_unknown(&w, 0, 1, "", 0);          /* a client's id: the usual rule */
    push(&w, 0, 1, "S", 0);
    push(&w, 1, 0, "", 0);                  /* 1 is taken                    */
    assert_int_equal(w.requests[1].correlation_id, 2);
    push_text(&w, 2, "1", "S", 0);
    assert_string_equal(counts(&w), "3 3 1 0");
    assert_string_equal(next_of(&w, 1, 0), "0 1 2/3");
    again(&w, 0, 1);
    release(&w, 2, 1);
    assert_string_equal(counts(&w), "2 2 2 0");
    push(&w, 3, 1, "E", 1);                 /* behind it                     */
    assert_string_equal(next_of(&w, 1, 1), "0/1");
    again_fails(&w, 0, 1, "inference request for sequence 1 to model 'M' must"
        " specify the START flag on the first request of the sequence");
    release(&w, 0, 2);
    assert_string_equal(run(&w, 1, 2), "3/1");
    sequences_close(&w);
}

/* The rest of the first one does not end the second. */
static void
a_late_release_ends_no_other_sequence(void **state)
{
    (void) state;
    sequences_t w;

    sequences_open(&w, (inf_sequence_batcher_options_t) { .limit = 1,
        .iterative = true }, 1);
    push(&w, 0, 7, "SE", 0);
    push(&w, 1, 7, "S", 0);
    assert_string_equal(next_of(&w, 1, 0), "0/1");
    assert_string_equal(counts(&w), "1 1 0 0");
    release(&w, 0, 1);
    push(&w, 2, 7, "", 2);
    assert_string_equal(next_of(&w, 1, 2), "1/1");
    again(&w, 1, 3);
    assert_string_equal(next_of(&w, 1, 3), "2/1");
    assert_string_equal(next_of(&w, 1, 3), "1/1");
    release(&w, 2, 4);                      /* the backend is done with it   */
    push_unknown(&w, 3, 7, "", 4);
    release(&w, 1, 4);
    assert_string_equal(counts(&w), "0 0 1 0");
    sequences_close(&w);
}

static void
an_iterative_request_goes_on_while_the_model_stops(void **state) /* 9 (10)   */
{
    (void) state;
    sequences_t w;

    sequences_open(&w, (inf_sequence_batcher_options_t) { .limit = 1,
        .iterative = true }, 1);
    push(&w, 0, 0, "", 0);
    assert_string_equal(next_of(&w, 1, 0), "0/1");
    w.policy->closing = true;
    push_fails(&w, 1, 0, "", 0, INF_ERR_UNAVAILABLE, "stop");
    again(&w, 0, 1);
    assert_string_equal(next_of(&w, 1, 1), "0/1");
    again(&w, 0, 2);
    assert_string_equal(cancel(&w, 0, 2), "");
    assert_string_equal(counts(&w), "0 0 1 0");
    sequences_close(&w);
}

static void
a_cancelled_iterative_request_frees_its_slot(void **state)
{
    (void) state;
    sequences_t w;

    sequences_open(&w, (inf_sequence_batcher_options_t) { .limit = 1,
        .iterative = true }, 1);
    push(&w, 0, 0, "", 0);
    push(&w, 1, 0, "", 0);
    assert_string_equal(next_of(&w, 1, 0), "0/1");
    assert_null(cancel(&w, 0, 0));          /* its backend hears of it       */
    again(&w, 0, 1);
    assert_string_equal(cancel(&w, 0, 1), "");
    assert_string_equal(w.told, "1");
    assert_string_equal(run(&w, 1, 1), "1/1");
    assert_string_equal(counts(&w), "0 0 1 0");
    sequences_close(&w);
}

/* Triton's rule would end it: idle 200 ms, a step of 500.  (18) */
static void
a_step_longer_than_the_idle_limit_goes_on(void **state)
{
    (void) state;
    sequences_t w;

    for (int old = 0; old <= 1; old++) {
        inf_sequence_batcher_options_t options = either(old, 1);
        options.iterative = true;
        options.idle_us = 200000;
        sequences_open(&w, options, 1);
        push(&w, 0, 0, "", 0);
        for (uint64_t at = 0; at < 5000; at += 500) {
            assert_string_equal(next_of(&w, 1, at), old ? "0" : "0/1");
            assert_string_equal(expire(&w, at + 499), "");
            again(&w, 0, at + 500);
        }
        assert_string_equal(expire(&w, 9000), "");      /* it is queued      */
        assert_string_equal(next_of(&w, 1, 9000), old ? "0" : "0/1");
        release(&w, 0, 9500);
        assert_string_equal(counts(&w), "0 0 1 0");
        sequences_close(&w);
    }
}

/* ---- held back for tests -------------------------------------------------- */

static void
a_batcher_can_be_held_until_enough_are_queued(void **state)
{
    (void) state;

    for (int strategy = 0; strategy < 2; strategy++) {
        inf_sequence_batcher_options_t options = either(strategy == 1, 2);
        sequences_t w;

        options.hold = 4;
        sequences_open(&w, options, 2);
        push(&w, 0, 1, "S", 0);
        push(&w, 1, 2, "S", 0);
        push(&w, 2, 3, "S", 0);
        assert_string_equal(next_of(&w, 1, 100), "nothing");
        assert_string_equal(next_of(&w, 2, 100), "nothing");
        push(&w, 3, 1, "E", 100);
        assert_string_equal(w.told, "1 2");     /* all that had been asked   */
        assert_string_equal(run(&w, 1, 100), strategy ? "0 2" : "0 2/2");
        assert_string_equal(run(&w, 2, 100), strategy ? "1" : "1/1");
        assert_string_equal(run(&w, 1, 100), strategy ? "3" : "3/1");
        push(&w, 4, 2, "E", 101);               /* once                      */
        assert_string_equal(run(&w, 2, 101), strategy ? "4" : "4/1");
        sequences_close(&w);
    }
}

static void
a_batcher_can_be_held_until_enough_wait_in_the_backlog(void **state)
{
    (void) state;
    inf_sequence_batcher_options_t options = direct(1);
    sequences_t w;

    options.backlog_hold = 2;
    sequences_open(&w, options, 1);
    push(&w, 0, 1, "SE", 0);
    push(&w, 1, 2, "S", 0);
    assert_string_equal(next_of(&w, 1, 100), "nothing");
    push(&w, 2, 2, "E", 100);
    assert_string_equal(w.told, "1");
    assert_string_equal(run(&w, 1, 100), "0/1");
    assert_string_equal(run(&w, 1, 100), "1/1");    /* nobody waits, and yet */
    assert_string_equal(run(&w, 1, 100), "2/1");
    sequences_close(&w);

    options.hold = 3;                               /* both                  */
    sequences_open(&w, options, 1);
    push(&w, 0, 1, "S", 0);
    push(&w, 1, 2, "S", 0);
    push(&w, 2, 2, "E", 0);
    push(&w, 3, 1, "", 0);
    assert_string_equal(next_of(&w, 1, 100), "nothing");
    push(&w, 4, 1, "E", 0);
    assert_string_equal(run(&w, 1, 100), "0/1");
    assert_string_equal(run(&w, 1, 100), "3/1");
    assert_string_equal(run(&w, 1, 100), "4/1");
    assert_string_equal(run(&w, 1, 100), "1/1");
    assert_string_equal(run(&w, 1, 100), "2/1");
    sequences_close(&w);
}

static void
a_model_that_leaves_is_not_held(void **state)
{
    (void) state;
    inf_sequence_batcher_options_t options = direct(1);
    sequences_t w;

    options.hold = 2;
    sequences_open(&w, options, 1);
    push(&w, 0, 1, "SE", 0);
    assert_string_equal(next_of(&w, 1, 100), "nothing");
    leave(&w);
    assert_string_equal(run(&w, 1, 100), "0/1");
    sequences_close(&w);
}

/* ---- a model's configuration --------------------------------------------- */

/* With one instance. */
static inf_model_t *
open_configured(sequences_t *w, int max_batch, const char *batching)
{
    char text[512];
    inf_model_t *model = inf_model_new("m", 1, "/models/m");

    snprintf(text, sizeof(text), "name: 'm' backend: 'x' max_batch_size:"
        " %d input { name: 'IN' data_type: TYPE_INT32 dims: 4 } output {"
        " name: 'OUT' data_type: TYPE_INT32 dims: 4 } sequence_batching {"
        " max_sequence_idle_microseconds: 2000000 %s }", max_batch, batching);
    model->built = config_parse_normal(text);
    assert_ok(inf_config_tensors_new(model->built, &model->tensors));
    memset(w, 0, sizeof(*w));
    for (int i = 0; i < WORLD_REQUESTS; i++) {
        inf_request_init(&w->requests[i]);
    }
    assert_ok(inf_sequence_batcher_of(model, &w->policy));
    add(w, 1);
    return model;
}

static void
a_configuration_says_how(void **state)
{
    (void) state;
    static const struct {
        int         max_batch;
        const char *batching;
        const char *counts, *next;
    } cases[] = {
        { 4, "", "1 1 3 0", "0/1" },
        { 0, "", "1 1 0 0", "0/1" },
        { 4, "direct { max_queue_delay_microseconds: 7000"
            " minimum_slot_utilization: 0.5 }", "1 1 3 0", "wait 7" },
        { 4, "direct { max_queue_delay_microseconds: 7000 }", "1 1 3 0",
            "0/1" },
        { 4, "oldest { max_candidate_sequences: 9 }", "1 1 8 0", "0" },
        { 4, "oldest { max_candidate_sequences: 9 preferred_batch_size: 2"
            " max_queue_delay_microseconds: 3000 }", "1 1 8 0", "wait 3" }
    };

    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        sequences_t w;
        inf_model_t *model = open_configured(&w, cases[k].max_batch,
            cases[k].batching);

        push(&w, 0, 1, "S", 0);
        assert_string_equal(counts(&w), cases[k].counts);
        assert_string_equal(next_of(&w, 1, 0), cases[k].next);
        if (strncmp(cases[k].next, "wait", 4) == 0) {
            run(&w, 1, 10);
        } else {
            release(&w, 0, 10);
        }
        assert_int_equal(deadline_ms(&w), 2010);
        sequences_close(&w);
        inf_model_free(model);
    }
}

static void
the_environment_says_how_long_to_hold(void **state)
{
    (void) state;
    sequences_t w;

    setenv("TRITONSERVER_DELAY_SCHEDULER", "2", 1);
    setenv("TRITONSERVER_BACKLOG_DELAY_SCHEDULER", "1", 1);
    inf_model_t *model = open_configured(&w, 0, "");
    unsetenv("TRITONSERVER_DELAY_SCHEDULER");
    unsetenv("TRITONSERVER_BACKLOG_DELAY_SCHEDULER");
    push(&w, 0, 1, "S", 0);
    push(&w, 1, 2, "SE", 0);
    assert_string_equal(next_of(&w, 1, 0), "nothing");
    push(&w, 2, 1, "E", 0);
    assert_string_equal(run(&w, 1, 0), "0/1");
    assert_string_equal(run(&w, 1, 0), "2/1");
    assert_string_equal(run(&w, 1, 0), "1/1");
    sequences_close(&w);
    inf_model_free(model);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sequence_begins_with_start_and_has_an_id),
        cmocka_unit_test(a_model_that_does_not_batch_has_one_slot),
        cmocka_unit_test(ids_of_text_and_number_are_different),
        cmocka_unit_test(start_for_a_live_id_goes_on_in_its_slot),
        cmocka_unit_test(start_for_a_live_id_is_noticed),
        cmocka_unit_test(start_for_an_id_that_has_ended_is_another_sequence),
        cmocka_unit_test(two_instances_of_two_slots_run_four_sequences),
        cmocka_unit_test(a_backlog_sequence_takes_the_first_slot_that_ends),
        cmocka_unit_test(rows_reach_to_the_highest_slot_with_a_request),
        cmocka_unit_test(five_sequences_for_four_slots),
        cmocka_unit_test(short_ones_from_the_backlog_fill_freed_slots),
        cmocka_unit_test(different_shapes_do_not_share_a_payload),
        cmocka_unit_test(the_slot_that_waits_longest_says_what_runs),
        cmocka_unit_test(a_batch_waits_for_utilization_or_delay),
        cmocka_unit_test(utilization_alone_does_not_wait),
        cmocka_unit_test(requests_of_one_sequence_run_one_by_one),
        cmocka_unit_test(the_backlog_is_first_in_first_out),
        cmocka_unit_test(the_oldest_run_in_pairs),
        cmocka_unit_test(five_sequences_for_four_candidates),
        cmocka_unit_test(the_next_of_a_sequence_waits_for_the_release),
        cmocka_unit_test(oldest_waits_for_a_preferred_size_or_the_delay),
        cmocka_unit_test(oldest_compares_shapes),
        cmocka_unit_test(an_iterative_request_comes_round),
        cmocka_unit_test(iterative_requests_are_batched_with_what_is_ready),
        cmocka_unit_test(an_iterative_request_has_an_id_of_its_own),
        cmocka_unit_test(a_late_release_ends_no_other_sequence),
        cmocka_unit_test(an_iterative_request_goes_on_while_the_model_stops),
        cmocka_unit_test(a_cancelled_iterative_request_frees_its_slot),
        cmocka_unit_test(a_step_longer_than_the_idle_limit_goes_on),
        cmocka_unit_test(a_batcher_can_be_held_until_enough_are_queued),
        cmocka_unit_test(
            a_batcher_can_be_held_until_enough_wait_in_the_backlog),
        cmocka_unit_test(a_model_that_leaves_is_not_held),
        cmocka_unit_test(a_configuration_says_how),
        cmocka_unit_test(the_environment_says_how_long_to_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
