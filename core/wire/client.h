/*
 * client.h - the worker's side of one channel.
 *
 * Owner    The worker owns the client; the client owns rings, request arena,
 *          eventfd and its end of the control socket.  A region belongs to the
 *          caller until freed or abandoned; a response's bytes are the core's
 *          and borrowed until inf_client_release.
 * Thread   the worker's event loop only; nothing blocks.
 * Units    bytes; times are ns on CLOCK_MONOTONIC.
 * Errors   inf_err_t while connecting; INF_CLIENT_* on the request path.
 *          INF_CLIENT_BROKEN: the core wrote invalid data; treat it as the
 *          core's exit.
 * Route    new -> hello -> welcome -> (take, submit, drain, release, give)* ->
 *          free
 *
 * After the core's exit the shared memory is no longer used, except that slot
 * states are read; then free this client and create a new one.
 *
 * A region may be reused and its slot given back after RELEASED, and no
 * response comes after FINAL; so a slot is done after both.  A request whose
 * client has gone is abandoned instead; the rest is then done by inf_client_t.
 */

#ifndef INF_WIRE_CLIENT_H
#define INF_WIRE_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/include/channel.h"
#include "core/wire/region.h"

/* Bytes of a request arena beyond its bound, for calls. */
#define INF_CLIENT_CALL_ROOM (UINT64_C(1) << 20)

/* Of so many slots one is kept for calls. */
#define INF_CLIENT_CALL_SLOTS 64u

typedef struct inf_client_s inf_client_t;

typedef struct {
    uint64_t arena_bound;       /* on charged bytes, without
                                   INF_CLIENT_CALL_ROOM                    */
    uint64_t arena_size;        /* address space; 0: from the bound        */
    uint32_t slots;             /* requests in flight; 0: INF_MAX_SLOTS    */
    uint32_t ring_entries;      /* power of two; 0: INF_RING_ENTRIES       */
    bool     defer;             /* only inf_client_ring wakes the core     */
} inf_client_conf_t;

typedef enum {
    INF_CLIENT_OK = 0,
    INF_CLIENT_AGAIN,           /* retry later: ring full, over the bound  */
    INF_CLIENT_BROKEN
} inf_client_result_t;

/* A use of a slot; generation 0: none. */
typedef struct {
    uint32_t slot;
    uint32_t generation;
} inf_slot_id_t;

typedef struct {
    uint64_t submitted;
    uint64_t completed;         /* passed to a handler                     */
    uint64_t late;              /* for a slot no longer taken, dropped     */
    uint64_t notifications;     /* times the core was woken                */
    uint64_t busy;              /* submissions rejected, ring full         */
} inf_client_stats_t;

/*
 * Handles a checked completion; userp is that of its slot.  After RESPONSE
 * with length > 0 the handler must call inf_client_release of cpl->offset,
 * then or later.  The handler may call any function here except drain and
 * free.
 */
typedef void (*inf_client_handler_fn)(const inf_completion_t *cpl,
    void *userp);


/* ---- life and registration ---------------------------------------------- */

/* Creates rings, arena and descriptors; sends nothing. */
INF_CHECK inf_err_t *inf_client_new(const inf_client_conf_t *conf,
    inf_client_t **out);

/* Tells the core, as soon as possible, that the worker accepts no more clients;
   may be called at any time and repeatedly. */
void inf_client_leave(inf_client_t *c);

/* Frees all regions and mappings too; c may be NULL. */
void inf_client_free(inf_client_t *c);

/* Sends the registration; *again: the socket is full, call later. */
INF_CHECK inf_err_t *inf_client_hello(inf_client_t *c, int registration_fd,
    bool *again);

/*
 * Reads the core's answer from the control socket; *again: not received yet.
 * A rejection is an error with the core's code and text.  After success the
 * client is connected.
 */
INF_CHECK inf_err_t *inf_client_welcome(inf_client_t *c, bool *again);

/* Whether the welcome was received, which contains pid. */
bool inf_client_connected(const inf_client_t *c);
uint32_t inf_client_core_pid(const inf_client_t *c);

/* Descriptors for the event loop, owned by the client.  The eventfd may be
   watched edge-triggered and never be cleared.  The eventfd and core_fd are -1
   before the welcome. */
int inf_client_control_fd(const inf_client_t *c);   /* EOF: the core exited */
int inf_client_event_fd(const inf_client_t *c);     /* readable: drain     */
int inf_client_core_fd(const inf_client_t *c);      /* readable: the core
                                                       exited */


/* ---- slots --------------------------------------------------------------- */

/* Takes a slot and clears its state byte; false: none is free, apart from those
   kept for calls. */
bool inf_client_take(inf_client_t *c, void *userp, inf_slot_id_t *out);

/* Takes a slot for a call; some slots are kept for calls, so that inferences in
   flight do not block health. */
bool inf_client_take_call(inf_client_t *c, void *userp, inf_slot_id_t *out);

/* Gives a slot back; ignores an id that is no longer valid. */
void inf_client_give(inf_client_t *c, inf_slot_id_t id);

/* The slot's userp; NULL if the id is no longer valid or was abandoned. */
void *inf_client_find(const inf_client_t *c, inf_slot_id_t id);
void inf_client_set_userp(inf_client_t *c, inf_slot_id_t id, void *userp);

/*
 * Ends the owner's interest in a request.  Sends CANCEL, drops and releases
 * later responses, frees region (may be NULL) on RELEASED and gives the slot
 * back after FINAL and RELEASED, counting those already handled.
 */
void inf_client_abandon(inf_client_t *c, inf_slot_id_t id,
    inf_region_t *region);

/* INF_SLOT_* and INF_SLOT_RETRYABLE, as last stored by the core. */
uint8_t inf_client_slot_state(const inf_client_t *c, inf_slot_id_t id);

/* The core's text on the execution or load in which it crashed, printable; "":
   none. */
void inf_client_crash(const inf_client_t *c, char text[INF_CRASH_MAX]);

/* Whether the core last reported that a suspect is executing. */
bool inf_client_has_suspect(const inf_client_t *c);

/* Slots in use, or abandoned and not yet given back. */
uint32_t inf_client_slots_taken(const inf_client_t *c);


/* ---- request arena ------------------------------------------------------- */

/* The functions of region.h on the request arena; NULL or false over the
   bound. */
inf_region_t *inf_client_alloc(inf_client_t *c, uint64_t size);

/* Allocates for a call, for which the bound is raised. */
inf_region_t *inf_client_alloc_call(inf_client_t *c, uint64_t size);
inf_region_t *inf_client_reserve(inf_client_t *c, uint64_t size);
bool inf_client_charge(inf_client_t *c, inf_region_t *region, uint64_t len);
void inf_client_free_region(inf_client_t *c, inf_region_t *region);

/* inf_regions_grow and inf_regions_replace: growth in place, or a larger region
   to which the caller moves the bytes. */
bool inf_client_grow(inf_client_t *c, inf_region_t *region, uint64_t size);
inf_region_t *inf_client_replace(inf_client_t *c, inf_region_t *from,
    uint64_t size);

/* The address of the region's first byte. */
void *inf_client_data(const inf_client_t *c, const inf_region_t *region);

/* Counters of the request arena; valid as long as the client. */
const inf_regions_stats_t *inf_client_arena_stats(const inf_client_t *c);

/* Trims the arena, a bounded amount per call; called by a timer. */
uint64_t inf_client_trim(inf_client_t *c, uint64_t now_ns);


/* ---- the request path ---------------------------------------------------- */

/* Submits INFER or CALL.  AGAIN: the ring is full. */
inf_client_result_t inf_client_submit(inf_client_t *c,
    const inf_submission_t *submission);

/* CANCEL and RELEASE never fail: an entry that finds the ring full is sent
   later. */
void inf_client_cancel(inf_client_t *c, inf_slot_id_t id);
void inf_client_release(inf_client_t *c, uint64_t response_offset);

/*
 * With conf.defer: wakes the core for the entries submitted since the last
 * wake.  Called at the end of an event loop iteration, so that one wake serves
 * all of them; after a few submissions the core is woken without this call.
 * RELEASE entries alone are woken for by inf_client_flush only.
 */
void inf_client_ring(inf_client_t *c);

/* The number of pending CANCEL and RELEASE entries; if any, call flush from a
   timer too (submit and drain also flush). */
uint32_t inf_client_pending(const inf_client_t *c);
void inf_client_flush(inf_client_t *c);

/*
 * Handles up to budget completions.  OK: no more are left.  AGAIN: there may
 * be more, call again soon.
 */
inf_client_result_t inf_client_drain(inf_client_t *c, uint32_t budget,
    inf_client_handler_fn handler);

/* Called before the event loop sleeps; false: drain again first. */
bool inf_client_arm(inf_client_t *c);

/* Response bytes; NULL unless [offset, offset + len) lies in the response
   arena.  The core may write to them: read each value once. */
const void *inf_client_response(const inf_client_t *c, uint64_t offset,
    uint64_t len);
uint64_t inf_client_response_size(const inf_client_t *c);

/* Counters since new; valid as long as the client. */
const inf_client_stats_t *inf_client_stats(const inf_client_t *c);

#endif /* INF_WIRE_CLIENT_H */
