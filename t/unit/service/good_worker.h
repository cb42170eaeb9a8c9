/*
 * good_worker.h - a worker that keeps the rules of channel.h, on a thread of
 *                 its own, and notices each answer that is missing or wrong.
 *
 * Owner    the test: good_start when the core runs, then good_stop.
 * Thread   the test's; all_is_well reads what the worker's thread counts.
 * Units    ms.
 * Errors   a test fails at once; the worker's thread leaves word in good.why.
 * Route    unit tests only
 */

#ifndef INF_T_SERVICE_GOOD_WORKER_H
#define INF_T_SERVICE_GOOD_WORKER_H

#include "service/core_program.h"

#include <pthread.h>
#include <stdatomic.h>

#include "core/base/clock.h"
#include "core/wire/client.h"
#include "core/wire/request_record.h"
#include "core/wire/sockets.h"

#define MIB    (UINT64_C(1) << 20)
#define FLOATS 64

#define ALL (INF_COMPLETE_FINAL | INF_COMPLETE_RELEASED)

static struct {
    pthread_t        thread;
    _Atomic uint64_t answers;
    _Atomic bool     stop;
    _Atomic bool     wrong;
    char             why[256];
} good;

static inline void
wrong(const char *why)
{
    if (!atomic_exchange(&good.wrong, true)) {
        snprintf(good.why, sizeof(good.why), "%s", why);
    }
}

static inline bool
join_core(inf_client_t **out)
{
    const inf_client_conf_t conf = { .arena_bound = 4 * MIB, .slots = 16 };
    bool again = true;
    inf_err_t *err = inf_client_new(&conf, out);

    for (int ms = 0; err == NULL && again && ms < PATIENCE_MS; ms += 5) {
        err = inf_client_hello(*out, w.registration[0], &again);
        if (again) {
            poll(NULL, 0, 5);
        }
    }
    again = true;
    for (int ms = 0; err == NULL && again && ms < PATIENCE_MS; ms += 100) {
        struct pollfd p = {
            .fd = inf_client_control_fd(*out), .events = POLLIN
        };
        poll(&p, 1, 100);
        err = inf_client_welcome(*out, &again);
    }
    if (err == NULL && !again) {
        return true;
    }

    wrong(err != NULL ? inf_err_msg(err) : "no welcome");
    inf_err_free(err);
    inf_client_free(*out);
    return false;
}

static inline size_t
write_record(const char *model, inf_datatype_t type, int64_t elements,
    uint64_t offset, size_t bytes, void *to)
{
    inf_infer_input_t input = {
        .name = INF_SLICE("IN"), .datatype = type, .dim_count = 1,
        .shape = &elements, .source = INF_SOURCE_BINARY, .byte_size = bytes
    };
    const inf_infer_request_t req = {
        .id = INF_SLICE("r"), .inputs = &input, .input_count = 1
    };
    const inf_infer_target_t target = {
        .model_name = inf_slice_str(model), .model_version = -1,
        .protocol = INF_PROTOCOL_HTTP, .data_offsets = &offset
    };
    size_t size;

    assert_done(inf_infer_record_size(&req, &target, &size));
    inf_infer_record_write(&req, &target, to, size);
    return size;
}

typedef struct {
    inf_client_t *client;
    uint8_t       flags;
    inf_status_t  status;
    uint64_t      offset;
    uint64_t      length;
} answer_t;

static inline void
good_completion(const inf_completion_t *cpl, void *userp)
{
    answer_t *a = userp;

    a->flags |= cpl->flags;
    if (cpl->flags & INF_COMPLETE_RESPONSE) {
        a->status = cpl->status;
        a->offset = cpl->offset;
        a->length = cpl->length;
    }
}

static inline bool
answer_is_right(const answer_t *a, const float *sent)
{
    if (a->status != INF_OK || a->length < sizeof(inf_response_record_t)) {
        return false;
    }

    const unsigned char *base = inf_client_response(a->client, a->offset,
        a->length);
    const inf_response_record_t *rec = (const void *) base;
    const inf_response_output_t *out =
        (const void *) (base + rec->output_offset);
    return rec->output_count == 1 && out->data_length == FLOATS * sizeof(float)
        && memcmp(inf_client_response(a->client, out->data_offset,
            out->data_length), sent, out->data_length) == 0;
}

/* false: it was not answered, or wrongly. */
static inline bool
good_request(inf_client_t *c, uint32_t seed)
{
    answer_t a = { .client = c };
    inf_slot_id_t id;
    inf_region_t *region = inf_client_alloc(c, 4096);

    if (region == NULL || !inf_client_take(c, &a, &id)) {
        return false;
    }

    float *floats = inf_client_data(c, region);
    for (uint32_t i = 0; i < FLOATS; i++) {
        floats[i] = (float) (seed + i);
    }
    float sent[FLOATS];
    memcpy(sent, floats, sizeof(sent));
    size_t size = write_record("echo", INF_TYPE_FP32, FLOATS, region->offset,
        sizeof(sent), floats + FLOATS);

    const inf_submission_t s = {
        .op = INF_SUBMIT_INFER, .slot = id.slot,
        .generation = id.generation,
        .offset = region->offset + sizeof(sent), .length = size
    };
    if (inf_client_submit(c, &s) != INF_CLIENT_OK) {
        return false;
    }

    uint64_t until = inf_clock_ns() + PATIENCE_MS * UINT64_C(1000000);
    while ((a.flags & ALL) != ALL && inf_clock_ns() < until) {
        if (inf_client_drain(c, 16, good_completion) == INF_CLIENT_BROKEN) {
            return false;
        }
        if ((a.flags & ALL) != ALL && inf_client_arm(c)) {
            struct pollfd p = { .fd = inf_client_event_fd(c),
                .events = POLLIN };
            poll(&p, 1, 100);
            inf_eventfd_watch_clear(inf_client_event_fd(c));
        }
    }
    if ((a.flags & ALL) != ALL) {
        return false;
    }

    bool right = answer_is_right(&a, sent);
    if (a.length > 0) {
        inf_client_release(c, a.offset);
    }
    inf_client_free_region(c, region);
    inf_client_give(c, id);
    return right;
}

static inline void *
good_main(void *arg)
{
    inf_client_t *c;

    (void) arg;
    if (!join_core(&c)) {
        return NULL;
    }

    uint32_t seed = 0;
    while (!atomic_load(&good.stop)) {
        if (!good_request(c, seed++)) {
            wrong("a request was not answered, or wrongly");
            break;
        }
        atomic_fetch_add(&good.answers, 1);
        poll(NULL, 0, 1);
    }
    inf_client_free(c);
    return NULL;
}

static inline void
good_start(void)
{
    assert_int_equal(pthread_create(&good.thread, NULL, good_main, NULL), 0);
}

static inline void
good_stop(void)
{
    atomic_store(&good.stop, true);
    pthread_join(good.thread, NULL);
}

/* The core is the same one, and the worker beside has got further answers. */
static inline void
all_is_well(void)
{
    uint64_t before = atomic_load(&good.answers);

    for (int ms = 0; ms < 2 * PATIENCE_MS; ms += 2) {
        read_log();
        if (waitpid(w.core, NULL, WNOHANG) != 0) {
            w.core = 0;
            fail_msg("the core has ended");
        }
        if (atomic_load(&good.wrong)) {
            fail_msg("the worker beside: %s", good.why);
        }
        if (atomic_load(&good.answers) >= before + 5) {
            return;
        }
        poll(NULL, 0, 2);
    }
    fail_msg("the worker beside waits");
}

#endif /* INF_T_SERVICE_GOOD_WORKER_H */
