#!/usr/bin/env python3
"""Seeds bugs into both batchers, rate limiter, response cache, the ensembles'
flow, the suspects, the threads that come and go and the schedule of polls, one
by one: the simulators, the limiter's random worlds, the storm around changing
instances and the schedule's virtual time must find each.

    t/mutants.py [BUILD]        BUILD has objects and the unit programs

A mutant is a file of core and one piece of its text that becomes another.  It
is compiled in a directory of its own; the tree is not touched.  A mutant that
lives, or whose text is no longer in the source, fails the run.
"""

import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BATCHER = "core/sched/dynamic_batcher.c"
QUEUE = "core/sched/queue.c"
HEAP = "core/base/heap.c"
COMPATIBILITY = "core/sched/compatibility.c"
LIMITER = "core/sched/rate_limiter.c"
FLOW = "core/sched/ensemble_flow.c"
SUSPECTS = "core/sched/suspects.c"
THREAD = "core/sched/runtime.c"
THREADS = "core/sched/instance_threads.c"
CACHE = "core/cache/response_cache.c"
RUN = "core/cache/cache_run.c"
EXECUTIONS = "core/cache/cache_executions.c"
TIMEKEEPER = "core/sched/timekeeper.c"
SEQUENCES = "core/sched/sequence_batcher.c"
IDS = "core/sched/sequence_ids.c"
SLOTS = "core/sched/sequence_slots.c"
ROWS = "core/sched/sequence_rows.c"
SCHEDULE = "core/repository/poll_schedule.c"
SET = "core/repository/model_set.c"
SWAP = "core/repository/model_swap.c"
RECONCILE = "core/repository/reconcile.c"

# the program that must find a bug (of sched, unless it says); others: the
# simulation
JUDGES = {LIMITER: "rate_limiter", FLOW: "ensemble_flow",
          SUSPECTS: "suspects",
          THREAD: "live_scaling", THREADS: "live_scaling",
          CACHE: "cache/server_simulation", RUN: "cache/server_simulation",
          EXECUTIONS: "cache/server_simulation",
          TIMEKEEPER: "cache/server_simulation",
          SEQUENCES: "sequence_simulation", IDS: "sequence_simulation",
          SLOTS: "sequence_simulation", ROWS: "sequence_simulation",
          SCHEDULE: "repository/poll_schedule",
          SET: "repository/model_simulation",
          SWAP: "repository/model_simulation",
          RECONCILE: "repository/model_simulation"}
PATIENCE = {"live_scaling": ["20"]}     # s: a lost wake-up is found by waiting

# the world of that one is virtual (CMakeLists.txt)
WRAPPED = ["clock_gettime", "inf_thread_start", "pthread_join",
           "inf_runner_submit", "inf_runner_cancel", "inf_runner_rejects_at"]

MUTANTS = [
    ("a batch may have one row too many", BATCHER,
     "return rows <= b->limit && !req->suspect",
     "return rows <= b->limit + 1 && !req->suspect"),
    ("a batch stays one row below the limit", BATCHER,
     "return rows <= b->limit && !req->suspect",
     "return rows < b->limit && !req->suspect"),
    ("what jumps over a preferred size is not noticed", BATCHER,
     "scan->best = scan->count;\n    }\n\n    return rows",
     "scan->best = 0;\n    }\n\n    return rows"),
    ("a suspect gets company", BATCHER,
     "scan->closed = req->suspect;", "scan->closed = false;"),
    ("two suspects are under way", SUSPECTS,
     "s->under_way > 0 && now_ns < s->until_ns",
     "s->under_way > 1 && now_ns < s->until_ns"),
    ("suspects wait for ever", SUSPECTS,
     "s->under_way > 0 && now_ns < s->until_ns", "s->under_way > 0"),
    ("each suspect that waits begins the total anew", SUSPECTS,
     "s->under_way > 0 && s->until_ns == UINT64_MAX", "s->under_way > 0"),
    ("the total begins with a suspect that doesn't wait", SUSPECTS,
     "s->under_way > 0 && s->until_ns == UINT64_MAX",
     "s->until_ns == UINT64_MAX"),
    ("the last suspect goes first", SUSPECTS,
     "inf_list_push_back(&s->waiting", "inf_list_push_front(&s->waiting"),
    ("a suspect that has gone is not under way", SUSPECTS,
     "    s->under_way++;\n", ""),
    ("shapes are not compared", COMPATIBILITY,
     "return a->dim_count == b->dim_count && (",
     "return a->dim_count == b->dim_count || ("),
    ("the delay ends a tick late", BATCHER,
     "now_ns >= due_ns", "now_ns > due_ns"),
    ("the delay counts from the last request", BATCHER,
     "if (req->queue_ns < scan->oldest_ns) {",
     "if (req->queue_ns > scan->oldest_ns) {"),
    ("a lost wake-up: nobody is told of a delay", BATCHER,
     "    *until_ns = due_ns;\n    return INF_NEXT_WAIT;",
     "    *until_ns = INF_NEVER;\n    return INF_NEXT_NOTHING;"),
    ("a lost wake-up: a better level comes and the look goes on", BATCHER,
     "if (b->scan.last != NULL && inf_queue_before(req, b->scan.last)) {",
     "if (b->scan.last != NULL && b->scan.count == 0) {"),
    ("a cancelled request stays in the look", BATCHER,
     "    if (scan_has(b, req)) {\n        scan_again(b);\n    }\n"
     "    inf_queue_remove",
     "    inf_queue_remove"),
    ("a request under the plug-in's eyes is taken away", BATCHER,
     "&& (req == q->about || req->sched.queued.scan == q->scan);",
     "&& req->sched.queued.scan == q->scan;"),
    ("a withdrawn request is released twice", BATCHER,
     "            drop(b, req);\n            inf_list_push_back(gone, "
     "&req->link);\n        }\n        req = next;",
     "            inf_list_push_back(gone, &req->link);\n        }\n"
     "        req = next;"),
    ("two threads ask the plug-in", BATCHER,
     "if (b->question.instance != instance) {",
     "if (b->question.instance == instance + 2) {"),
    ("the plug-in's record is lost on a late join", BATCHER,
     "q->begins = b->scan.count == 0;", "q->begins = true;"),
    ("the plug-in's batch ends after it was sent", BATCHER,
     "        && (b->stale || next == INF_NEXT_PAYLOAD))\n    {",
     "        && b->stale)\n    {"),
    ("a stale answer of the plug-in counts", BATCHER,
     "    if (q->scan != b->scan.number\n        || inf_queue_after("
     "&b->queue, b->scan.last) != about)\n    {",
     "    if (b->scan.count > UINT32_MAX - 1) {"),
    ("a queue takes one more than its limit", QUEUE,
     "level->count >= policy->limit", "level->count > policy->limit"),
    ("what was delayed goes first", QUEUE,
     "!inf_list_empty(&level->live) ? level->live.next\n"
     "        : level->delayed.next",
     "!inf_list_empty(&level->delayed) ? level->delayed.next\n"
     "        : level->live.next"),
    ("a longer timeout than the model's counts", QUEUE,
     "own < timeout_us", "own > timeout_us"),
    ("a timeout is one tick late", QUEUE,
     "if (inf_queue_deadline(q) > now_ns) {",
     "if (inf_queue_deadline(q) >= now_ns) {"),
    ("REJECT and DELAY are mixed up", QUEUE,
     "if (queued->level->policy->delays) {",
     "if (!queued->level->policy->delays) {"),
    ("an unknown priority is the best one", QUEUE,
     "? q->standard\n        : req->priority", "? 1\n        : req->priority"),
    ("levels go in the wrong order", QUEUE,
     "if (q->used[mid]->number < number) {",
     "if (q->used[mid]->number > number) {"),
    ("a request that leaves keeps its timeout", QUEUE,
     "    inf_heap_remove(&q->timeouts, &req->timeout);\n"
     "    req->sched.queued.level = NULL;",
     "    req->sched.queued.level = NULL;"),
    ("a level is dropped a request too early", QUEUE,
     "if (--level->count == 0) {", "if (--level->count == 1) {"),
    ("the heap forgets half of what is below", HEAP,
     "first = b != NULL ? b->next : NULL;", "first = NULL;"),
    ("a copy more than there is may be held", LIMITER,
     "if (resource_left(c->uses[k].resource) < c->uses[k].count) {",
     "if (resource_left(c->uses[k].resource) + 1 < c->uses[k].count) {"),
    ("only the first resource is looked at", LIMITER,
     "for (size_t k = 0; k < c->use_count; k++) {\n"
     "        if (resource_left(",
     "for (size_t k = 0; k < c->use_count && k < 1; k++) {\n"
     "        if (resource_left("),
    ("what is given back is lost", LIMITER,
     "c->uses[k].resource->used -= c->uses[k].count;",
     "c->uses[k].resource->used -= k == 0 ? c->uses[k].count : 0;"),
    ("a lost wake-up: nobody hears of what was given back", LIMITER,
     "        c->uses[k].resource->used -= c->uses[k].count;\n    }\n"
     "    consider_rivals(l, c);",
     "        c->uses[k].resource->used -= c->uses[k].count;\n    }\n"
     "    consider(l, c);"),
    ("a lost wake-up: what was kept is free again", LIMITER,
     "    consider(l, i->cls);\n    consider_rivals(l, i->cls);",
     "    consider(l, i->cls);"),
    ("a lost wake-up: a load brings more copies", LIMITER,
     "consider_rivals(l, i->cls);     /* there", "/* there"),
    ("one decision per event", LIMITER,
     "    grant(l, best);\n    return i;",
     "    grant(l, best);\n    while (inf_list_pop_front(&l->candidates)"
     " != NULL) {\n        continue;\n    }\n    return i;"),
    ("priorities are the other way round", LIMITER,
     "i->finish = i->start + c->priority;",
     "i->finish = i->start + INF_RATE_PRIORITY_MAX / c->priority;"),
    ("leave that was not used is a turn", LIMITER,
     "    if (executed) {\n", "    if (executed || i->turns == 0) {\n"),
    ("who returns brings old claims along", LIMITER,
     "i->start = i->finish > floor ? i->finish : floor;",
     "i->start = i->finish;"),
    ("a request that goes on loses its place", LIMITER,
     "uint64_t credit = (uint64_t) RATE_CREDIT * c->priority;",
     "uint64_t credit = 0;"),
    ("a tie goes to the lower priority", LIMITER,
     "return a->priority < b->priority;", "return a->priority > b->priority;"),
    ("the last to ask goes first", LIMITER,
     "return x->asked < y->asked;", "return x->asked > y->asked;"),
    ("nobody is ever late", LIMITER,
     "if (c->late || ++c->passed <= c->priority) {",
     "if (c->late || c->priority > 0) {"),
    ("nothing is kept for who is late", LIMITER,
     "if (other->cls != c && other->cls->late",
     "if (other->cls == c && other->cls->late"),
    ("a global resource is each device's own", LIMITER,
     "if (r->global == global && (global || r->device == device)",
     "if (r->global == global && r->device == device"),
    ("an unload leaves its copies behind", LIMITER,
     "            resource_count(l, r);\n        }\n    }\n\n    free(c);",
     "        }\n    }\n\n    free(c);"),
    ("an item goes behind all others", FLOW,
     "inf_link_insert(&call->item->order, &item->order);",
     "inf_list_push_back(&f->order, &item->order);"),
    ("an item goes before those of its producer", FLOW,
     "inf_link_insert(&call->item->order, &item->order);",
     "inf_list_push_front(&f->order, &item->order);"),
    ("one permit too many", FLOW,
     "f->outstanding[step] < most", "f->outstanding[step] <= most"),
    ("a permit is lost with a call that never began", FLOW,
     "    f->outstanding[start->step]--;\n    start_next(f, start->step);",
     "    start_next(f, start->step);"),
    ("a freed permit wakes no start", FLOW,
     "    f->outstanding[call->step]--;\n    start_next(f, call->step);",
     "    f->outstanding[call->step]--;"),
    ("a step starts before all of its inputs are there", FLOW,
     "if (item->values[t->place] == NULL) {\n            return false;",
     "if (item->values[t->place] == NULL && i == 0) {\n"
     "            return false;"),
    ("a step starts once for each of its inputs", FLOW,
     "            item->started[step / 64] |= UINT64_C(1) << (step % 64);\n",
     ""),
    ("steps that nobody asked for run too", FLOW,
     "f->failed || !inf_plan_steps_has(f->needed, step)", "f->failed"),
    ("something starts after a cancel", FLOW,
     "    if (f->cancelled) {\n        inf_flow_fail", "    if (f->cancelled"
     " && f->failed) {\n        inf_flow_fail"),
    ("a later error is told", FLOW,
     "    if (f->failed) {\n        inf_err_free(err);\n        return;\n"
     "    }\n\n    f->failed = true;",
     "    if (f->failed) {\n        inf_err_free(f->failure);\n    }\n\n"
     "    f->failed = true;"),
    ("a value that nobody reads is kept", FLOW,
     "    if (f->uses[tensor] == 0) {\n        drop_value(f, value);\n"
     "    } else {", "    if (f->uses[tensor] != 0) {"),
    ("a value is let go with its first reader", FLOW,
     "if (--item->left[place] == 0) {",
     "if (item->left[place]-- > 0) {"),
    ("the end is told while a call is open", FLOW,
     "    if (f->open == 0 || (f->failed && f->hasty)) {",
     "    if (f->open <= 1 || (f->failed && f->hasty)) {"),
    ("an item that waits for one above is given up", FLOW,
     "*hopeless |= above->open == 0;", "*hopeless |= item->open == 0;"),
    ("what a failed request still gets is kept", FLOW,
     "            drop_value(f, values[i]);\n        }\n"
     "        return legal;",
     "        }\n        return legal;"),
    ("a thread that is held takes requests", THREADS,
     "t->state = INF_THREAD_HELD;", "t->state = INF_THREAD_SERVES;"),
    ("an instance goes while it executes", THREADS,
     "pthread_join(t->thread, NULL);", "pthread_detach(t->thread);"),
    ("a thread goes and the plug-in waits for it", THREAD,
     "leaves && !asked ? INF_NEXT_NOTHING", "leaves ? INF_NEXT_NOTHING"),
    ("a lost wake-up: a thread that goes takes its call along", THREAD,
     "called = inf_runner_call_idle_locked(runner, now);  /* instead", "/*"),
    ("an error is kept", RUN,
     "good ? store(run, response) : 0",
     "response != NULL ? store(run, response) : 0"),
    ("who waits at the cache never times out", CACHE,
     "    if (at_ns >= gate->armed_ns) {\n        return false;",
     "    if (at_ns != 0) {\n        return false;"),
    ("one of those who waited is lost when the first fails", RUN,
     "        run_alone(gate, inf_link_entry(link, inf_request_t, link), key);",
     "        run_alone(gate, inf_link_entry(link, inf_request_t, link), key);"
     "\n        inf_list_pop_front(&list);"),
    ("who goes to the queue is young again", RUN,
     "        req->queue_ns);\n    if (err != NULL) {\n        f->sink",
     "        inf_clock_ns());\n    if (err != NULL) {\n        f->sink"),
    ("who leads now is still watched at the cache", RUN,
     "    if (req != NULL) {\n        inf_cached_unwatch_locked(gate, req);\n"
     "    }\n    inf_unlock(&gate->lock);\n\n    if (req == NULL) {",
     "    inf_unlock(&gate->lock);\n\n    if (req == NULL) {"),
    ("all run when the first times out", RUN,
     "run->factory->rejected\n        ||", "false\n        ||"),
    ("a rejected request keeps the gate's sink", RUN,
     "        f->sink = run->sink;\n        f->userp = run->userp;\n    }\n"
     "    return err;", "    }\n    return err;"),
    ("a cancel does not look at the cache", CACHE,
     "        == INF_REQUEST_PARKED;\n    if (parked) {",
     "        == INF_REQUEST_IDLE;\n    if (parked) {"),
    ("the first answer settles nothing", RUN,
     "if (response != NULL || (flags & INF_SEND_FINAL)) {",
     "if (response == NULL) {"),
    ("an execution that is over is still found", EXECUTIONS,
     "    unlist(f, e);\n    inf_link_t *link;\n    while",
     "    e->listed = false;\n    inf_link_t *link;\n    while"),
    ("the heir has no followers", EXECUTIONS,
     "        inf_list_push_back(&heir->followers, next);",
     "        (void) next;"),
    ("keys of one bucket are taken for the same", EXECUTIONS,
     "while (*at != NULL && !inf_cache_key_eq(&(*at)->key, &key)) {",
     "while (*at != NULL && (*at)->key.words[0] % INF_CACHE_EXECUTION_BUCKETS\n"
     "        != key.words[0] % INF_CACHE_EXECUTION_BUCKETS) {"),
    ("an earlier alarm is not heard", TIMEKEEPER,
     "at_ns < timer->node.key;", "at_ns > timer->node.key;"),
    ("a sequence begins without START", SEQUENCES,
     "if (!(req->flags & INF_FLAG_START)) {", "if (req->flags > 7) {"),
    ("a sequence begins while the model stops", SEQUENCES,
     "b->base.closing && (req->flags & INF_FLAG_START)",
     "b->base.closing && req->flags > 7"),
    ("what an ensemble has begun begins no sequence", SEQUENCES,
     "(req->flags & INF_FLAG_START)\n        && req->whole == NULL",
     "(req->flags & INF_FLAG_START)"),
    ("END leaves the id known", SEQUENCES,
     "if (req->flags & INF_FLAG_END) {\n        inf_slot_forget(b, s);",
     "if (req->flags > 7) {\n        inf_slot_forget(b, s);"),
    ("END leaves the id known in the backlog", SEQUENCES,
     "if (req->flags & INF_FLAG_END) {\n        inf_sequence_forget(b, q);",
     "if (req->flags > 7) {\n        inf_sequence_forget(b, q);"),
    ("a sequence is idle while one of it is queued", SEQUENCES,
     "    inf_slot_speak(b, s);\n", ""),
    ("a new sequence waits for a silent one", SEQUENCES,
     "    inf_slots_give_way(b);\n", ""),
    ("the last timeout in the backlog counts", SEQUENCES,
     "late_ns < q->timer.key", "late_ns > q->timer.key"),
    ("the timeout of a cancelled one counts still", SEQUENCES,
     "        backlog_timer(b, q);\n", ""),
    ("what is behind a cancelled one stays", SEQUENCES,
     "withdraw_behind(b, queue, behind, INF_GONE_WITH_SEQUENCE, gone);",
     "withdraw_behind(b, queue, queue, INF_GONE_WITH_SEQUENCE, gone);\n"
     "    (void) behind;"),
    ("a cancelled sequence goes on", SEQUENCES,
     "    inf_slot_forget(b, s);\n    s->over = true;\n"
     "    inf_slot_settle(b, s, now_ns);\n    return true;",
     "    inf_slot_settle(b, s, now_ns);\n    return true;"),
    ("a late release ends another sequence", SEQUENCES,
     "return s->sequence != NULL && s->turn == req->sched.queued.turn;",
     "return s->sequence != NULL;"),
    ("a step that runs again is a START still", SEQUENCES,
     "    req->flags = 0;\n", ""),
    ("who has a step left is pending", SEQUENCES,
     "    b->base.again++;\n", ""),
    ("a step that runs counts as one left", SLOTS,
     "    b->base.again -= req->sched.again;\n", ""),
    ("an iterative request's sequence stays", SEQUENCES,
     "if (b->options.iterative && goes_on(req)) {",
     "if (b->options.iterative && req->flags > 7) {"),
    ("a lost wake-up: a first request is there", SEQUENCES,
     "    if (first) {\n", "    if (first && s->number == 0) {\n"),
    ("a lost wake-up: the slot's last user has left", SEQUENCES,
     "    if (waited) {\n        inf_slot_touch(b, s);\n    }\n"
     "    inf_place_touch_empty", "    (void) waited;\n"
     "    inf_place_touch_empty"),
    ("a lost wake-up: a retired instance is empty", SEQUENCES,
     "    inf_place_touch_empty(b, place);\n}",
     "}"),
    ("text and number are one id", IDS,
     "if (q->hash != hash || (q->text == NULL) != (req->correlation_text\n"
     "            == NULL))\n    {\n        return false;\n    }\n\n"
     "    return q->text != NULL ? strcmp(q->text, req->correlation_text) == 0"
     "\n        : q->id == req->correlation_id;",
     "(void) hash;\n    return q->id == req->correlation_id;"),
    ("sequences are lost when the table grows", IDS,
     "            q->next = wider[q->hash & mask];\n",
     "            q->next = NULL;\n"),
    ("a timer that is cleared is the deadline still", IDS,
     "    inf_heap_remove(&b->timers, &q->timer);\n"
     "    if (at_ns != INF_NEVER) {\n",
     "    inf_heap_remove(&b->timers, &q->timer);\n"
     "    if (at_ns == INF_NEVER) {\n        return;\n    }\n"
     "    if (at_ns != INF_NEVER) {\n"),
    ("two of one sequence are under way", SLOTS,
     "s->issued != NULL || s->running > 0\n", "s->issued != NULL\n"),
    ("a slot is free while requests are queued in it", SLOTS,
     "if (s->over && !slot_has_work(s)) {", "if (s->over) {"),
    ("a sequence is idle while one of it runs", SLOTS,
     "s->sequence != NULL && s->running == 0 && !slot_has_work(s)",
     "s->sequence != NULL && !slot_has_work(s)"),
    ("a model that leaves waits for the silent", SLOTS,
     "    p->leaving = leaves;\n", ""),
    ("who falls silent keeps its slot while others wait", SLOTS,
     "&s->sequence->link);\n        inf_slots_give_way(b);\n",
     "&s->sequence->link);\n"),
    ("the silent make room for nobody", SLOTS,
     "b->base.leaving && !inf_list_empty(&b->backlog)", "b->base.leaving"),
    ("a slot that is nobody's any more is given up", SLOTS,
     "if (s->place->state != INF_PLACE_RETIRED) {", "if (s->place != NULL) {"),
    ("who was silent last gives way first", SLOTS,
     "inf_list_push_back(&b->silent,", "inf_list_push_front(&b->silent,"),
    ("a retired instance gets new sequences", SLOTS,
     "if (place->state != INF_PLACE_OPEN) {",
     "if (place->state == INF_PLACE_PREPARES) {"),
    ("a retired instance's free slots are given away", SLOTS,
     "if (s->vacancy.queued) {", "if (s->vacancy.queued && i > 0) {"),
    ("a slot is free and the backlog waits", SLOTS,
     "    if (inf_list_empty(&b->backlog)) {\n        vacancy_push",
     "    if (inf_list_empty(&b->backlog) || s->number > 0) {\n"
     "        vacancy_push"),
    ("the backlog's last goes first", SLOTS,
     "inf_link_entry(b->backlog.next, sequence_t, link)",
     "inf_link_entry(b->backlog.prev, sequence_t, link)"),
    ("who left the backlog times out", SLOTS,
     "    b->waiting--;\n    inf_sequence_timer_clear(b, q);",
     "    b->waiting--;"),
    ("instances are filled one by one", SLOTS,
     "(uint64_t) s->number << 32 | s->place->number",
     "(uint64_t) s->place->number << 32 | s->number"),
    ("a lost wake-up: a sequence leaves the backlog", SLOTS,
     "    inf_slot_issue(b, s);\n    inf_slot_touch(b, s);\n",
     "    inf_slot_issue(b, s);\n"),
    ("a sequence begins while the one before runs", ROWS,
     "return s->running == 0 || (", "return s->running < 9 || ("),
    ("a step does not wait for the state before it", ROWS,
     "!s->place->keeps\n", "!s->place->stuck\n"),
    ("a request stands in its neighbour's row", ROWS,
     "link)->sched.queued.slot->number == i)",
     "link)->sched.queued.slot->number == i + 1)"),
    ("no row for a slot that could not be dressed", ROWS,
     "if (out->count == 0 || out->slots == out->count) {",
     "if (out->count < out->slots) {"),
    ("the lowest slot says what runs", ROWS,
     "if (out->oldest == NULL || req->queue_ns < out->oldest->queue_ns) {",
     "if (out->oldest == NULL) {"),
    ("empty slots have no row", ROWS,
     "out->slots = l->slots;", "out->slots = out->count;"),
    ("rows of different shapes", ROWS,
     "req != like && b->options.tensors != NULL",
     "req == like && b->options.tensors != NULL"),
    ("the delay of slots ends a tick late", ROWS,
     "|| now_ns >= due_ns)", "|| now_ns > due_ns)"),
    ("one slot more than the utilization asks for", ROWS,
     "(double) l->ready >= b->options.utilization",
     "(double) l->ready > b->options.utilization"),
    ("a stopping model waits for slots", ROWS,
     "if (b->base.closing || b->base.leaving ||", "if (b->base.leaving ||"),
    ("a model that leaves waits for slots", ROWS,
     "if (b->base.closing || b->base.leaving ||", "if (b->base.closing ||"),
    ("polls that are early put off the full one", SCHEDULE,
     "s->early ? s->full_ns : now_ns", "now_ns"),
    ("the interval counts from the start of a poll", SCHEDULE,
     "s->early ? s->full_ns : now_ns", "s->early ? s->full_ns : s->turn_ns"),
    ("a change is found within the gap", SCHEDULE,
     "if (now_ns < early_ns && now_ns < due_ns) {",
     "if (now_ns < early_ns && now_ns < due_ns && !s->changed) {"),
    ("the gap puts off the full poll", SCHEDULE,
     "if (now_ns < early_ns && now_ns < due_ns) {",
     "if (now_ns < early_ns) {"),
    ("the gap does not grow with the work", SCHEDULE,
     "s->work_ns * INF_POLL_GAP_FACTOR", "INF_POLL_GAP_NS"),
    ("waiting for files counts as work", SCHEDULE,
     "    work(s, now_ns);\n    return (inf_poll_decision_t)",
     "    s->phase = INF_POLL_BUSY;\n    s->turn_ns -= s->settle_ns;\n"
     "    return (inf_poll_decision_t)"),
    ("a change is polled for ever", SCHEDULE,
     "    s->changed = false;\n", ""),
    ("a change is not heard before the interval has passed", SCHEDULE,
     "        d.events = true;\n", ""),
    ("each early poll asks remote repositories", SCHEDULE,
     ".remote = !s->early || s->remote", ".remote = true"),
    ("what failed is tried again by each poll", SCHEDULE,
     ".early = s->early,", ".early = false,"),
    ("files that move are compared at once", SCHEDULE,
     "s->turn_ns = now_ns + s->settle_ns;", "s->turn_ns = now_ns;"),
    ("files that move for ever hold up the next poll", SCHEDULE,
     "unsettled == 0 || s->comparisons == INF_POLL_COMPARISONS",
     "unsettled == 0"),
    ("files that move are left to the next poll", SCHEDULE,
     "unsettled == 0 || s->comparisons == INF_POLL_COMPARISONS",
     "unsettled < 2 || s->comparisons == INF_POLL_COMPARISONS"),
    ("a poll that is given up is not over", SCHEDULE,
     "    if (s->phase == INF_POLL_SETTLING) {\n        end(s, now_ns);",
     "    if (s->phase == INF_POLL_BUSY) {\n        end(s, now_ns);"),
    # what is desired of models, and what they become
    ("an edit overtakes the one that waits", SET,
     "    inf_list_push_front(&r->edits, &edit->link);\n    move(",
     "    inf_list_push_back(&r->edits, &edit->link);\n    move("),
    ("a record has two threads", SET,
     "if (r->state == INF_MODEL_IDLE) {\n        queue(set, r);",
     "if (r->state != INF_MODEL_QUEUED) {\n        r->state ="
     " INF_MODEL_IDLE;\n        queue(set, r);"),
    ("a listing wakes nobody", SET,
     "if (r->state == INF_MODEL_LISTING) {",
     "if (r->state == INF_MODEL_LISTING && r->source != NULL) {"),
    ("composing models wake nobody", SET,
     "if (e->state == INF_MODEL_COMPOSING\n            &&",
     "if (e->state == INF_MODEL_COMPOSING && e->source != NULL\n"
     "            &&"),
    ("an edit behind the first is forgotten", SET,
     "if (!inf_list_empty(&r->edits)) {\n        queue(set, r);\n    }\n"
     "    wake", "wake"),
    ("a record is freed while it serves", SET,
     "if (!set->stopping && inf_model_record_is_empty(r)) {\n"
     "        inf_link_remove",
     "if (!set->stopping && r->graph.made == NULL\n"
     "        && inf_list_empty(&r->edits) && !r->rejected) {\n"
     "        inf_link_remove"),
    ("a caller doesn't wait for what follows", SET,
     "    child->at_start = parent->at_start;\n"
     "    inf_edit_share_caller(parent, child, INF_EDIT_UNHEARD);",
     "    child->at_start = parent->at_start;"),
    ("a rebuild that failed is not tried again", SET,
     "v == NULL || v->lost == NULL || v->rebuild != NULL",
     "v == NULL || v->lost != NULL || v->rebuild != NULL"),
    ("a rebuild that failed doesn't count", SET, "    v->exits++;\n", ""),
    ("a rebuild comes before it is due", SET,
     "if (v->due_ns > now_ns) {", "if (v->due_ns > now_ns + 400000000) {"),
    ("what was decided on other repositories holds", SET,
     "        set->ops->is_current(set->userp, l->list), false);",
     "        true, false);"),
    ("a rebuild that waits in the queue comes before the next delay", SET,
     "v->lost != NULL && v->rebuild == NULL;", "v->lost != NULL;"),
    ("a version that serves is rebuilt", SET,
     "return v != NULL && v->lost != NULL && v->rebuild", "return v != NULL"
     " && v->rebuild"),
    ("an orphan goes though an ensemble needs it", SET,
     "&& !inf_reconcile_is_orphan(&set->graph, edit->record)", "&& false"),
    ("a stop forgets edits behind the first", SET,
     "        while ((link = inf_list_pop_front(&r->edits)) != NULL) {",
     "        if ((link = inf_list_pop_front(&r->edits)) != NULL) {"),
    ("the second of two changed models refreshes nothing", SET,
     "if (e != r && e->refreshed != round",
     "if (e != r && e->refreshed == 0"),
    ("versions are swapped one by one", SWAP,
     "    if (*whole) {\n        take_over(l);",
     "    if (*whole || l->count > 1) {\n        take_over(l);"),
    ("a version that is not chosen serves on", SWAP,
     "            release(l, inf_record_version_withdraw(now));\n", ""),
    ("a version that is not chosen is rebuilt after its exit", SWAP,
     "if (now->lost != NULL && inf_load_is_fresh(l)) {", "if (false) {"),
    ("a composing model that left is not noticed", SWAP,
     "if (*whole && composing_left(set, l)) {", "if (false) {"),
    ("ensembles serve on without their models", SWAP,
     "    *plan = settle_plan(l, *whole);\n    leave(",
     "    *plan = settle_plan(l, *whole);\n    if (!*whole) leave("),
    ("an ensemble of an ensemble serves on", SWAP,
     "        inf_graph_unmake(&e->graph);\n"
     "        leave(set, e);",
     "        inf_graph_unmake(&e->graph);"),
    ("what waits for room for its reason is forgotten", SWAP,
     "        {\n            return false;\n        }\n        inf_link_remove(",
     "        {\n            inf_link_remove(&e->lost);\n"
     "            return false;\n        }\n        inf_link_remove("),
    ("a reason is allocated under the lock", SWAP,
     "    v->reason = inf_reason_ref(lack);",
     "    v->reason = inf_reason_new(lack->text);"),
    ("the unload of a model leaves its ensembles", SWAP,
     "    edit->plan = inf_graph_drop_made(&r->graph);\n"
     "    leave(set, r);",
     "    edit->plan = inf_graph_drop_made(&r->graph);"),
    ("an unload forgets the second version", SWAP,
     "    for (size_t i = 0; i < r->version_count; i++) {\n"
     "        inf_record_version_t *v = &r->versions[i];\n"
     "        inf_model_t *model = inf_record_version_withdraw(v);",
     "    for (size_t i = 0; i < 1 && i < r->version_count; i++) {\n"
     "        inf_record_version_t *v = &r->versions[i];\n"
     "        inf_model_t *model = inf_record_version_withdraw(v);"),
    ("an exit is made good at once, always", SWAP,
     "        v->due_ns = now_ns + inf_reconcile_delay_ns(v->exits);\n",
     "        v->due_ns = now_ns;\n"),
    ("versions of a load that was given up load for ever", SWAP,
     "            now->state = INF_VERSION_UNAVAILABLE;\n"
     "        } else if (now->state",
     "        } else if (now->state"),
    ("a load that is given up ends what serves", SWAP,
     "if (now->state == INF_VERSION_LOADING) {\n"
     "            now->state = INF_VERSION_UNAVAILABLE;\n        } else",
     "if (now->state != INF_VERSION_UNLOADING) {\n"
     "            now->state = INF_VERSION_UNAVAILABLE;\n        } else"),
    ("a load that was given up may serve when it returns", SET,
     "    l->call.state = INF_CALL_LATE;\n", ""),
    ("a load that was given up is still its model's turn", SET,
     "    inf_caller_t *caller = end_turn(set, l->edit, err);\n",
     "    inf_caller_t *caller = inf_edit_leave_caller(l->edit, err);\n"),
    ("the caller of a load that was given up waits", SET,
     "    return caller;\n}\n\nvoid\ninf_model_set_returned(",
     "    (void) caller;\n    return NULL;\n}\n\nvoid\n"
     "inf_model_set_returned("),
    ("a rebuild that was given up is not tried again", SET,
     "if (retry_later(set, l->edit, *rebuild, now_ns)) {", "if (false) {"),
    ("a load that has returned counts as stuck", SET,
     "    r->stuck--;\n", ""),
    ("an ensemble that is loaded isn't refreshed", RECONCILE,
     "    return e->stage == INF_LOAD_TAKES\n"
     "        && (caller || e->state == INF_MODEL_RUNNING);",
     "    return false;"),
    ("a model stays in a repository that was left", RECONCILE,
     "    return stays(l, r) && l->list->items[n->repository]"
     " == r->source->repository\n        ? nothing : build;",
     "    return stays(l, r) ? nothing : build;"),
    ("a model stays that nobody names", RECONCILE,
     "    bool drop = alone && !adopt && (narrowed || wanted);",
     "    bool drop = alone && !adopt && narrowed;"),
    ("a model of a repository that was removed serves on", RECONCILE,
     "            : current ? unload(INF_UNLOAD_REMOVED, n) : nothing;\n"
     "    }\n    if (drop)",
     "            : nothing;\n    }\n    if (drop)"),
    ("a poll unloads what is in a repository that can't be listed", RECONCILE,
     "if (l->failed[i] && (own", "if (false && (own"),
    ("a poll of the local ones unloads remote models", RECONCILE,
     "        || !is_polled(l, r, n) || may_lie", "        || may_lie"),
    ("a poll unloads what may be in a listing to come", RECONCILE,
     "if (comes_from(r, NULL, true) && inf", "if (false && inf"),
    ("a poll compares what another one decides", RECONCILE,
     "return is_polled(l, r, n) && !may_lie", "return !may_lie"),
    ("a delay doesn't grow", RECONCILE,
     "SECOND_NS << (exits - 2)", "SECOND_NS"),
    ("a calm time doesn't count", RECONCILE,
     "now_ns - v->exit_ns > CALM_NS ? 1 : v->exits + 1",
     "now_ns - v->exit_ns > CALM_NS ? 1 : 1"),
]


def command_of(build, file):
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if pathlib.Path(entry["file"]) == ROOT / file:
            return shlex.split(entry["command"]), entry["directory"]
    sys.exit(f"no compile command for {file} in {build}")


def judge_of(file):
    """The room of its judge, and the judge."""
    room, _, judge = JUDGES.get(file, "simulation").rpartition("/")
    return room or "sched", judge


def objects(build, file):
    """The objects of its judge, without file's own."""
    room, judge = judge_of(file)
    found = [build / f"CMakeFiles/unit_{room}_{judge}.dir"
             / f"t/unit/{room}/{judge}.c.o"]
    below = ["base", "proto", "wire", "tensor", "model", "sched", "cache"]
    above = ["storage", "repository"] if room == "repository" else []
    for lib in below + above:
        folder = build / f"CMakeFiles/inf_{lib}.dir"
        found += [o for o in folder.rglob("*.o") if is_current(folder, o)]
    return [o for o in found if not str(o).endswith(file + ".o")]


def is_current(folder, o):
    """Not what is left of a source that has gone."""
    source = str(o.relative_to(folder)).removesuffix(".o")
    return not source.startswith("core/") or (ROOT / source).exists()


def survives(build, file, old, new):
    """Why the mutant was not found; "" if it was."""
    text = (ROOT / file).read_text()
    if text.count(old) != 1:
        return f"{text.count(old)} places have the text"
    with tempfile.TemporaryDirectory() as folder:
        return lives(build, pathlib.Path(folder), file,
                     text.replace(old, new))


def lives(build, folder, file, text):
    source = folder / pathlib.Path(file).name
    source.write_text(text)
    mutant = folder / "mutant"
    command, directory = command_of(build, file)
    command[command.index("-c") + 1] = str(source)
    command[command.index("-o") + 1] = str(folder / "mutant.o")
    command.append("-Wno-error")
    subprocess.run(command, cwd=directory, check=True,
                   stderr=subprocess.DEVNULL)
    wraps = [f"-Wl,--wrap={f}" for f in WRAPPED
             if JUDGES.get(file) == "cache/server_simulation"]
    subprocess.run(["cc", "-o", mutant, folder / "mutant.o", *wraps,
                    *objects(build, file), "-lcmocka", "-lprotobuf-c",
                    "-ljansson", "-lexpat", "-lcrypto", "-lz", "-lm", "-ldl",
                    "-lstdc++", "-pthread"], check=True)
    try:
        _, judge = judge_of(file)
        done = subprocess.run([mutant, *PATIENCE.get(judge, [])], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=60,
                              check=False)
    except subprocess.TimeoutExpired:
        return ""               # it never ends: found
    return "" if done.returncode != 0 else "it lives"


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build")
    build = build.resolve()
    alive = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        whys = pool.map(lambda m: survives(build, *m[1:]), MUTANTS)
        for (what, *_), why in zip(MUTANTS, whys):
            alive += bool(why)
            print(f"{'LIVES' if why else 'found'}  {what}"
                  + (f": {why}" if why else ""), flush=True)
    print(f"{len(MUTANTS) - alive} of {len(MUTANTS)} mutants found")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
