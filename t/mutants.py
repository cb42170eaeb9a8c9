#!/usr/bin/env python3
"""Seeds bugs into both batchers, rate limiter, response cache, the ensembles'
flow, the suspects, the threads that come and go, the schedule of polls, the
bound of a call's responses, the kit of backends and the GPU memory that
interpreters have, one by one: the simulators, the limiter's random worlds, the
storm around changing instances, the schedule's virtual time, the bound's list
of everything and the unit tests of the last two must find each.

    t/mutants.py [BUILD]        BUILD has objects and the unit programs

A mutant is a file and one piece of its text that becomes another.  It
is compiled in a directory of its own; the tree is not touched.  A mutant that
lives, or whose text is no longer in the source, fails the run.
"""

import argparse
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
RESPONSES = "core/service/response_flow.c"
BLOCKS = "backends/python/gpu_blocks.c"
KIT = "backends/common/"                # its files' own tests, or these
KIT_JUDGES = {"batch": "runner", "request": "device", "run_inputs": "runner",
              "run_outputs": "runner", "run_responses": "runner",
              "runtime": "runner", "path": "model_file"}

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
          RECONCILE: "repository/model_simulation",
          RESPONSES: "service/response_flow",
          BLOCKS: "backends/python_gpu"}
PATIENCE = {"live_scaling": ["20"]}     # s: a lost wake-up is found by waiting

# the world of that one is virtual (CMakeLists.txt)
WRAPPED = ["clock_gettime", "inf_thread_start", "pthread_join",
           "inf_runner_submit", "inf_runner_cancel", "inf_runner_rejects_at"]

MUTANTS = [
    ("an interpreter gives back what it has given back", BLOCKS,
     "if (p != NULL && p->given) {", "if (p != NULL) {"),
    ("what is written is freed when an interpreter guesses its number", BLOCKS,
     ".block = block, .refs = 2,", ".block = block, .refs = 1,"),
    ("the driver of a link that ends last is kept", BLOCKS,
     "    py_gpus_unref(b->gpus);\n", ""),
    ("an interpreter names more than a piece has", BLOCKS,
     "length > p->length)", "length > p->length + 1)"),
    ("an interpreter names what it has given back", BLOCKS,
     "p == NULL || !p->given || ", "p == NULL || "),
    ("a block with tensors is freed", BLOCKS,
     " && b->blocks[index].pieces == 0", ""),
    ("the name of a block that is gone frees the next one", BLOCKS,
     "b->blocks[index].generation == block >> 32", "true"),
    ("memory that cannot be shared is kept", BLOCKS,
     "            bk_err_log(gpu_check(device, device->f->free(k.base),\n"
     "                \"cannot free", "            bk_err_log(gpu_check(device,"
     " 0,\n                \"cannot free"),
    ("a client is blamed for a slow request", RESPONSES,
     "return first->unreleased > 0\n        && (first->order",
     "return (first->order"),
    ("a client is blamed for a request that comes again", RESPONSES,
     "(first->order < flow->missing || is_forgotten_locked(flow))", "true"),
    ("the place of a request that does not come again is kept", RESPONSES,
     "(first->order < flow->missing || is_forgotten_locked(flow))",
     "first->order < flow->missing"),
    ("a request that never comes again is awaited for ever", RESPONSES,
     "            flow->missing = NONE_MISSING;   /* it may",
     "            /* it may"),
    ("requests stand in line as they come", RESPONSES,
     "before->prev != &flow->line\n        && inf_link_entry(",
     "before->prev == NULL\n        && inf_link_entry("),
    ("an earlier request wakes nobody", RESPONSES,
     "    flow_changed_locked(flow);\n}\n\nvoid\n"
     "inf_response_turn_unorder", "}\n\nvoid\ninf_response_turn_unorder"),
    ("a released response leaves its request in line", RESPONSES,
     "        inf_link_remove(&turn->link);\n        if (flow->loose",
     "        if (flow->loose"),
    ("released responses of decoupled models count on", RESPONSES,
     "    flow->loose -= turn->loose;\n", ""),
    ("a response that is admitted does not count until it is sent", RESPONSES,
     "    if (!admitted) {\n        flow->held -= bytes;",
     "    {\n        flow->held -= bytes;"),
    ("a small response passes a large one that waits", RESPONSES,
     "    flow->held += bytes;\n    while (!flow->stalled && is_full_locked"
     "(flow)) {\n        await_release_locked(flow, patience);\n    }\n",
     "    while (!flow->stalled && is_full_locked"
     "(flow)) {\n        await_release_locked(flow, patience);\n    }\n"
     "    flow->held += bytes;\n"),
    ("what was admitted counts twice", RESPONSES,
     "flow->held += bytes - admitted;", "flow->held += bytes;"),
    ("a release does not end a stall", RESPONSES,
     "    flow->stalled = false;\n", ""),
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
    ("resources are kept for a late one for ever", LIMITER,
     "i->reviews = late ? i->reviews + 1 : 0;", "i->reviews = 0;"),
    ("what is returned to a late one does not count", LIMITER,
     "if (returns != i->returns) {", "if (returns == UINT64_MAX) {"),
    ("resources are kept for a late one until its first review", LIMITER,
     "#define RATE_REVIEWS_CALLS  2u", "#define RATE_REVIEWS_CALLS  1u"),
    ("where nobody calls resources are not kept for longer", LIMITER,
     "(l->calls ? RATE_REVIEWS_CALLS : RATE_REVIEWS)", "RATE_REVIEWS_CALLS"),
    ("a lost wake-up: a review ends the keeping", LIMITER,
     "        forget_passed(l, i->cls);\n        consider_rivals(l, i->cls);\n"
     "        i->reviews = 0;",
     "        forget_passed(l, i->cls);\n        i->reviews = 0;"),
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
     "    if (f->open == 0 || (f->failed && f->answers_early)) {",
     "    if (f->open <= 1 || (f->failed && f->answers_early)) {"),
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
     "        || !inf_cache_key_eq(&(*at)->key, &key)))",
     "        || (*at)->key.words[0] % INF_CACHE_EXECUTION_BUCKETS\n"
     "            != key.words[0] % INF_CACHE_EXECUTION_BUCKETS))"),
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
     "    inf_sequence_instance_touch_empty", "    (void) waited;\n"
     "    inf_sequence_instance_touch_empty"),
    ("a lost wake-up: a retired instance is empty", SEQUENCES,
     "    inf_sequence_instance_touch_empty(b, instance);\n}",
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
     "if (s->instance->state != INF_SLOTS_RETIRED) {",
     "if (s->instance != NULL) {"),
    ("who was silent last gives way first", SLOTS,
     "inf_list_push_back(&b->silent,", "inf_list_push_front(&b->silent,"),
    ("a retired instance gets new sequences", SLOTS,
     "if (instance->state != INF_SLOTS_OPEN) {",
     "if (instance->state == INF_SLOTS_PREPARING) {"),
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
     "(uint64_t) s->number << 32 | s->instance->number",
     "(uint64_t) s->instance->number << 32 | s->number"),
    ("a lost wake-up: a sequence leaves the backlog", SLOTS,
     "    inf_slot_issue(b, s);\n    inf_slot_touch(b, s);\n",
     "    inf_slot_issue(b, s);\n"),
    ("a sequence begins while the one before runs", ROWS,
     "return s->running == 0 || (", "return s->running < 9 || ("),
    ("a step does not wait for the state before it", ROWS,
     "!s->instance->keeps\n", "!s->instance->stuck\n"),
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
     "v == NULL || v->exited == NULL || v->rebuild != NULL",
     "v == NULL || v->exited != NULL || v->rebuild != NULL"),
    ("a rebuild that failed doesn't count", SET, "    v->exits++;\n", ""),
    ("a rebuild comes before it is due", SET,
     "if (v->due_ns > now_ns) {", "if (v->due_ns > now_ns + 400000000) {"),
    ("what was decided on other repositories holds", SET,
     "const inf_step_t step = inf_reconcile_listed(l, r, n, &now);",
     "const inf_step_t step = listed_now(set, l, r, n); (void) now;"),
    ("a rebuild that waits in the queue comes before the next delay", SET,
     "v->exited != NULL && v->rebuild == NULL;", "v->exited != NULL;"),
    ("a version that serves is rebuilt", SET,
     "return v != NULL && v->exited != NULL && v->rebuild", "return v != NULL"
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
    ("a kept version that exits before the load begins loads for ever", SWAP,
     "= l->versions[i].keep && !l->ensemble;", "= false;"),
    ("a version that is not chosen serves on", SWAP,
     "            release(l, inf_record_version_withdraw(now));\n", ""),
    ("a version that is not chosen is rebuilt after its exit", SWAP,
     "if (now->exited != NULL && inf_load_is_fresh(l)) {", "if (false) {"),
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
     "        {\n            return false;\n        }\n"
     "        inf_link_remove(",
     "        {\n            inf_link_remove(&e->to_leave);\n"
     "            return false;\n        }\n        inf_link_remove("),
    ("a reason is allocated under the lock", SWAP,
     "    v->reason = inf_reason_ref(lack);",
     "    v->reason = inf_reason_new(lack->text);"),
    ("the unload of a model leaves its ensembles", SWAP,
     "    edit->plan = inf_graph_drop(&r->graph.made);\n"
     "    leave(set, r);",
     "    edit->plan = inf_graph_drop(&r->graph.made);"),
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
     "            inf_record_version_move(now, INF_VERSION_UNAVAILABLE);\n"
     "        } else if (now->state",
     "        } else if (now->state"),
    ("a load that is given up ends what serves", SWAP,
     "if (now->state == INF_VERSION_LOADING) {\n"
     "            inf_record_version_move(now, INF_VERSION_UNAVAILABLE);\n"
     "        } else",
     "if (now->state != INF_VERSION_UNLOADING) {\n"
     "            inf_record_version_move(now, INF_VERSION_UNAVAILABLE);\n"
     "        } else"),
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
     "            : now->current ? unload(INF_UNLOAD_REMOVED, n) : nothing;\n"
     "    }\n    if (drop)",
     "            : nothing;\n    }\n    if (drop)"),
    ("a poll unloads what is in a repository that can't be listed", RECONCILE,
     "if (l->failed[i] && (own", "if (false && (own"),
    ("a poll of the local ones unloads remote models", RECONCILE,
     "        || !is_polled(l, r, n) || may_lie", "        || may_lie"),
    ("a poll unloads what may be in a listing to come", RECONCILE,
     "if (comes_from(r, NULL, true)\n", "if (false\n"),
    ("a poll compares what another one decides", RECONCILE,
     "return is_polled(l, r, n) && !may_lie", "return !may_lie"),
    ("a delay doesn't grow", RECONCILE,
     "SECOND_NS << (exits - 2)", "SECOND_NS"),
    ("a calm time doesn't count", RECONCILE,
     "now_ns - v->exit_ns > CALM_NS ? 1 : v->exits + 1",
     "now_ns - v->exit_ns > CALM_NS ? 1 : 1"),
    # the kit of backends
    *((what, KIT + file, old, new) for what, file, old, new in (
        ("a model with a scalar batches", "auto_complete.c",
         "list[i].dims_count == 0 || list[i].dims[0] != -1",
         "list[i].dims_count != 0 && list[i].dims[0] != -1"),
        ("a batcher beside the one of sequences", "auto_complete.c",
         "size > 1 && !scheduled &&", "size > 1 &&"),
        ("a state is an input of clients", "auto_complete.c",
         "bk_sequence_has_input(&config->sequence, list[i].name)", "false"),
        ("what has failed preallocated is preallocated again", "batch.c",
         "        b->preallocates = false;\n", ""),
        ("the second run keeps the first one's memory", "batch.c",
         "    bk_run_outputs_reset(b);\n", ""),
        ("the handles of a failed run stay", "batch.c",
         "    run_done(b);\n    bk_run", "    bk_run"),
        ("an optional input is left out in a batch", "batch_request.c",
         "if ((x->handle == NULL) != (y->handle == NULL)) {",
         "if (x->handle != NULL && y->handle == NULL) {"),
        ("shapes are not compared to the end", "batch_request.c",
         "(x->dims_count - 1) * sizeof(*x->shape)) != 0",
         "(x->dims_count - 2) * sizeof(*x->shape)) != 0"),
        ("a tensor on the GPU is joined with others", "batch_request.c",
         "if (a->on_device || b->on_device) {", "if (a->on_device) {"),
        ("inputs of different rows", "batch_request.c",
         "(req->rows != 0 && req->rows != rows)", "req->rows > rows"),
        ("bytes are not compared with the shape", "batch_request.c",
         "|| bytes != in->len_bytes))", "|| bytes > UINT64_MAX / 2))"),
        ("FP32 holds any whole number", "batch_tensors.c",
         "(UINT64_C(1) << 24) ", "(UINT64_C(1) << 25) "),
        ("counts are not added up", "batch_tensors.c",
         "bool adds = w->in->kind != BK_ELEMENT_COUNT;",
         "bool adds = w->in->kind > BK_ACCUMULATED_COUNT;"),
        ("a value behind the tensor", "batch_tensors.c",
         " || w->at == w->end) {", " || w->at > w->end) {"),
        ("an element ends behind its buffer", "bytes.c",
         "n > b->left - BK_BYTES_PREFIX)", "n > b->left)"),
        ("elements that nobody has sent", "bytes.c",
         "if (elements > len_bytes / BK_BYTES_PREFIX) {",
         "if (elements > len_bytes) {"),
        ("a closed first dimension has batches", "config_check.c",
         "(t->dims_count == 0 || t->dims[0] != -1)", "t->dims_count == 0"),
        ("a control has many elements", "config_check.c",
         "same = t->dims[i] == 1 || t->dims[i] == -1;",
         "same = t->dims[i] != 0;"),
        ("a required input is left out", "config_check.c",
         "for (uint32_t i = 0; i < s->required_count; i++) {\n"
         "        const char *name = s->inputs[i].name;",
         "for (uint32_t i = 1; i < s->required_count; i++) {\n"
         "        const char *name = s->inputs[i - 1].name;"),
        ("memory of another GPU is read", "device.c",
         "if (buffer.id != device_id) {\n            return",
         "if (buffer.id < device_id) {\n            return"),
        ("half of a tensor on the GPU", "device.c",
         "in->buffer_count != 1 || buffer.len_bytes != in->len_bytes\n"
         "            || size == 0)", "size == 0)"),
        ("memory of another GPU is written", "device.c",
         "    if (buffer.id != device_id) {\n        return",
         "    if (buffer.id > device_id) {\n        return"),
        ("a directory that is in use is swept", "directory.c",
         "wanted && flock(fd, LOCK_EX | LOCK_NB) == 0", "wanted"),
        ("a young directory is swept", "directory.c",
         "\n        && (older_s == 0 || time(NULL) - st.st_ctime >= older_s)",
         ""),
        ("a new directory must not be newer than the time", "directory.c",
         "older_s == 0 || ", ""),
        ("a number with letters behind it", "model_config.c",
         "*end != '\\0' ||", "*end == '.' ||"),
        ("a number of too many digits", "model_config.c",
         "errno != 0 || n < min || n > max",
         "n < min || (n > max && n != INT64_MAX)"),
        ("the reshape is not read", "model_config.c",
         "reshape != NULL ? bk_json_member(reshape, \"shape\")\n"
         "        : bk_json_member(v, \"dims\")",
         "reshape == NULL ? bk_json_member(reshape, \"shape\")\n"
         "        : bk_json_member(v, \"dims\")"),
        ("an empty name is a file's", "model_file.c",
         "name[0] != '\\0' ? name : fallback, path);", "name, path);"),
        ("a name leads out in its middle", "path.c",
         "        p += n + (slash != NULL);", "        p = end;"),
        ("GPU memory is copied by the CPU", "request.c",
         "if (buffer.len_bytes != 0 && buffer.type",
         "if (buffer.len_bytes > 8 && buffer.type"),
        ("more bytes than the tensor has", "request.c",
         "if (len_bytes > in->len_bytes - done) {",
         "if (len_bytes > in->len_bytes + done) {"),
        ("a control is as many as rows of the first", "run_inputs.c",
         "v->dims[d] = d == 0 ? count : 1;", "v->dims[d] = 1;"),
        ("rows of the first request only", "run_inputs.c",
         "for (uint32_t k = 1; countable && k < count; k++) {",
         "for (uint32_t k = count; countable && k < count; k++) {"),
        ("a buffer in pieces is used in place", "run_inputs.c",
         "        if (data != NULL && (size == 0",
         "        if (in->len_bytes > 8 || (size == 0"),
        ("a state that no client asks for is not run", "run_outputs.c",
         "bool wanted = t->outputs[i].state;", "bool wanted = false;"),
        ("an output has the first request's rows", "run_outputs.c",
         "        rows += reqs[k].rows;", "        rows = reqs[0].rows;"),
        ("each request's part is the first", "run_responses.c",
         "            reqs[k].err = copy(b, i, &reqs[k], &part, first);\n"
         "        }\n        first += part.elements;\n    }\n\n"
         "    return NULL;",
         "            reqs[k].err = copy(b, i, &reqs[k], &part, first);\n"
         "        }\n    }\n\n    return NULL;"),
        ("a state of a failed request is kept", "run_responses.c",
         "    return err != NULL ? err : TRITONBACKEND_StateUpdate(state);",
         "    bk_err_drop(TRITONBACKEND_StateUpdate(state));\n"
         "    return err;"),
        ("a sample's state is an error", "run_responses.c",
         "if (err != NULL && !bk_request_in_sequence(req->handle)) {",
         "if (false) {"),
        ("elements of no request", "run_responses.c",
         "return first == v->elements ? NULL", "return first != 0 ? NULL"),
        ("a run is abandoned by its first client", "runtime.c",
         "bool all = run->request_count > 0;\n\n"
         "    for (uint32_t i = 0; all && i < run->request_count; i++) {",
         "bool all = true;\n\n    for (uint32_t i = 0; i < 1; i++) {"),
        ("a batch that has failed is not halved", "runner.c",
         "if (count > 1 && err != NULL && r->batch.run_failed",
         "if (count > 9 && err != NULL && r->batch.run_failed"),
        ("a batch of odd size loses its last", "runner.c",
         "count - count / 2, times);", "count / 2, times);"),
        ("a batch that was ended early is halved", "runner.c",
         "&& TRITONSERVER_ErrorCode(err) != TRITONSERVER_ERROR_CANCELLED\n",
         "\n"),
        ("a cancelled request runs", "runner.c",
         "        bk_batch_request_check_cancelled(next);\n", ""),
        ("an output on the GPU is an error in a batch", "runner.c",
         "if (count > 1 && r->config.device_id != BK_NO_DEVICE) {",
         "if (count > 9 && r->config.device_id != BK_NO_DEVICE) {"),
        ("a scratch shrinks", "scratch.c",
         "if (s->data != NULL && size <= s->cap) {",
         "if (s->data != NULL && size == s->cap) {"),
        ("a state's input is a client's", "sequence_tensors.c",
         "found = strcmp(t->states[i].input, name) == 0;",
         "found = strcmp(t->states[i].output, name) == 0;"),
        ("a negative dimension counts", "tensors.c",
         "if (shape[i] < 0\n", "if (shape[i] < -1\n"),
        ("the batch dimension is no dimension", "tensors.c",
         "if (dims_count > BK_MAX_DIMS) {",
         "if (dims_count > BK_MAX_DIMS + 1) {"),
        ("a ragged input without batches", "tensors.c",
         "in->ragged |= c->ragged && config->max_batch_size > 0;",
         "in->ragged |= c->ragged;"),
        ("a field of the second element is not seen", "unused_fields.c",
         "for (size_t i = 0; !set && bk_json_at(found, i) != NULL; i++) {",
         "for (size_t i = 0; !set && i < 1; i++) {"),
        ("a parameter is known by its beginning", "unused_fields.c",
         "            : strcmp(key, *known) == 0)",
         "            : strncmp(key, *known, 6) == 0)"))),
]


def command_of(build, file):
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if pathlib.Path(entry["file"]) == ROOT / file:
            return shlex.split(entry["command"]), entry["directory"]
    sys.exit(f"no compile command for {file} in {build}")


def judge_of(file):
    """The room of its judge, and the judge."""
    if file.startswith(KIT):
        stem = pathlib.Path(file).stem
        return "backends", "common_" + KIT_JUDGES.get(stem, stem)
    room, _, judge = JUDGES.get(file, "simulation").rpartition("/")
    return room or "sched", judge


def objects(build, file):
    """The objects of its judge, without file's own."""
    room, judge = judge_of(file)
    folder = build / f"CMakeFiles/unit_{room}_{judge}.dir"
    found = [folder / f"t/unit/{room}/{judge}.c.o"]
    if file.startswith(KIT):
        kit = build / KIT / "CMakeFiles/backend_common.dir"
        return [*found, folder / "t/backends-fake/fakecore.c.o",
                *(o for o in kit.glob("*.o") if (ROOT / KIT / o.stem).exists()
                  and o.stem != pathlib.Path(file).name)]
    if file == BLOCKS:
        kit = build / KIT / "CMakeFiles/backend_common.dir"
        fakes = build / "CMakeFiles/unit_backends_common_device.dir"
        return [*found, fakes / "t/backends-fake/fakecore.c.o",
                *(folder / f"backends/python/{f}.c.o"
                  for f in ("gpus", "heap", "link", "value")),
                *(kit / f"{f}.c.o"
                  for f in ("error", "gpu_driver", "gpu_functions")),
                build / "t-cuda/libfake-cuda.so",
                f"-Wl,-rpath,{build}/t-cuda"]
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
    command += ["-Wno-error", "-I", str((ROOT / file).parent)]
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
        done = subprocess.run([mutant, *PATIENCE.get(judge, [])],
                              stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=60,
                              check=False)
    except subprocess.TimeoutExpired:
        return ""               # it never ends: found
    return "" if done.returncode != 0 else "it lives"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", nargs="?", default="build",
                        type=pathlib.Path)
    build = parser.parse_args().build.resolve()
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
