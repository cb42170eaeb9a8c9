/*
 * client.h - the worker's side of one channel.
 *
 * Owner    The worker owns the client; the client owns rings, request arena,
 *          eventfd and its end of the control socket.  A region is the caller's
 *          until freed or abandoned; a response's bytes are the core's and
 *          borrowed until inf_client_release.
 * Thread   the worker's event loop only; nothing blocks.
 * Units    bytes; times are ns on CLOCK_MONOTONIC.
 * Errors   inf_err_t while connecting; INF_CLIENT_* on the request path.
 *          INF_CLIENT_BROKEN: the core wrote nonsense; treat it as its death.
 * Route    new -> hello -> welcome -> (take, submit, drain, release, give)*
 *          -> free
 *
 * After the core's death nothing of the shared memory is used again: read the
 * slot states, free this client and make a new one.
 *
 * The rule of a request's life: its region may be reused and its slot given
 * back when RELEASED has been seen, and no response comes after FINAL; so a
 * slot is done after both.  A request whose client has left is abandoned
 * instead, and the client does the rest.
 */

#ifndef INF_WIRE_CLIENT_H
#define INF_WIRE_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/include/channel.h"
#include "core/wire/region.h"

/* Of a request arena, beyond its bound, for what calls send. */
#define INF_CLIENT_CALL_ROOM (UINT64_C(1) << 20)

/* Of so many slots one is for calls alone. */
#define INF_CLIENT_CALL_SLOTS 64u

typedef struct inf_client_s inf_client_t;

typedef struct {
    uint64_t arena_bound;       /* of bytes charged, but for
                                   INF_CLIENT_CALL_ROOM                    */
    uint64_t arena_size;        /* address space; 0: from the bound        */
    uint32_t slots;             /* requests in flight; 0: INF_MAX_SLOTS    */
    uint32_t ring_entries;      /* power of two; 0: INF_RING_ENTRIES       */
    bool     defer;             /* inf_client_ring wakes the core          */
} inf_client_conf_t;

typedef enum {
    INF_CLIENT_OK = 0,
    INF_CLIENT_AGAIN,           /* not now: ring full, budget spent        */
    INF_CLIENT_BROKEN
} inf_client_result_t;

/* Names one use of one slot; generation 0 names none. */
typedef struct {
    uint32_t slot;
    uint32_t generation;
} inf_slot_id_t;

typedef struct {
    uint64_t submitted;
    uint64_t completed;         /* handed to a handler                     */
    uint64_t late;              /* for a slot no longer taken: dropped     */
    uint64_t notifications;     /* times the core was woken                */
    uint64_t busy;              /* submissions rejected, ring full         */
} inf_client_stats_t;

/*
 * A completion for the slot whose userp this is, already checked.  With
 * RESPONSE and length > 0 the handler's side owes one inf_client_release of
 * cpl->offset.  May call anything here except drain and free.
 */
typedef void (*inf_client_handler_fn)(const inf_completion_t *cpl,
    void *userp);


/* ---- life and registration ---------------------------------------------- */

/* Makes rings, arena and descriptors; nothing is sent yet. */
INF_CHECK inf_err_t *inf_client_new(const inf_client_conf_t *conf,
    inf_client_t **out);

/* Tells the core, sooner or later, that the worker takes no clients any more;
   at any time, once more does nothing. */
void inf_client_leave(inf_client_t *c);

/* NULL does nothing.  All regions and mappings end with it. */
void inf_client_free(inf_client_t *c);

/* Sends the registration; *again: the socket is full, call later. */
INF_CHECK inf_err_t *inf_client_hello(inf_client_t *c, int registration_fd,
    bool *again);

/*
 * Reads the core's answer from the control socket; *again: not there yet.  A
 * rejection is an error with the core's code and text.  After success the
 * client is connected.
 */
INF_CHECK inf_err_t *inf_client_welcome(inf_client_t *c, bool *again);

/* Whether the welcome has come; pid is from it. */
bool inf_client_connected(const inf_client_t *c);
uint32_t inf_client_core_pid(const inf_client_t *c);

/* For the event loop; all stay the client's.  The eventfd may be watched edge-
   triggered and never be cleared.  It and core_fd are -1 before the
   welcome. */
int inf_client_control_fd(const inf_client_t *c);   /* EOF: core died      */
int inf_client_event_fd(const inf_client_t *c);     /* readable: drain     */
int inf_client_core_fd(const inf_client_t *c);      /* readable: core died */


/* ---- slots --------------------------------------------------------------- */

/* false: all slots are taken, but for those that calls may have.  Clears the
   slot's state byte. */
bool inf_client_take(inf_client_t *c, void *userp, inf_slot_id_t *out);

/* The same for a call: inferences in flight must not silence health. */
bool inf_client_take_call(inf_client_t *c, void *userp, inf_slot_id_t *out);

/* A slot id no longer valid is ignored. */
void inf_client_give(inf_client_t *c, inf_slot_id_t id);

/* NULL when the slot id is no longer valid or was abandoned. */
void *inf_client_find(const inf_client_t *c, inf_slot_id_t id);
void inf_client_set_userp(inf_client_t *c, inf_slot_id_t id, void *userp);

/*
 * The request's owner leaves.  Sends CANCEL, drops and releases responses that
 * still come, frees region (may be NULL) on RELEASED and gives the slot after
 * FINAL and RELEASED; what the handler has already seen is remembered.
 */
void inf_client_abandon(inf_client_t *c, inf_slot_id_t id,
    inf_region_t *region);

/* INF_SLOT_* and INF_SLOT_RETRYABLE as last stored by the core. */
uint8_t inf_client_slot_state(const inf_client_t *c, inf_slot_id_t id);

/* The core's words about the execution or load in which it crashed, printable;
   "": it has left none. */
void inf_client_crash(const inf_client_t *c, char text[INF_CRASH_MAX]);

/* Whether a suspect was under way when the core last said so. */
bool inf_client_has_suspect(const inf_client_t *c);

/* Slots that are not free: in use, or abandoned and not released. */
uint32_t inf_client_slots_taken(const inf_client_t *c);


/* ---- request arena ------------------------------------------------------- */

/* As inf_regions_*; NULL or false over the bound. */
inf_region_t *inf_client_alloc(inf_client_t *c, uint64_t size);

/* The same for what a call sends, for which there is room beyond the bound. */
inf_region_t *inf_client_alloc_call(inf_client_t *c, uint64_t size);
inf_region_t *inf_client_reserve(inf_client_t *c, uint64_t size);
bool inf_client_charge(inf_client_t *c, inf_region_t *region, uint64_t len);
void inf_client_free_region(inf_client_t *c, inf_region_t *region);

/* As inf_regions_grow and inf_regions_replace: in place, else for bytes that
   the caller moves as it finds time. */
bool inf_client_grow(inf_client_t *c, inf_region_t *region, uint64_t size);
inf_region_t *inf_client_replace(inf_client_t *c, inf_region_t *from,
    uint64_t size);

/* The region's first byte. */
void *inf_client_data(const inf_client_t *c, const inf_region_t *region);

/* Of the request arena; valid as long as the client. */
const inf_regions_stats_t *inf_client_arena_stats(const inf_client_t *c);

/* Now and then, from a timer; a bounded piece of work. */
uint64_t inf_client_trim(inf_client_t *c, uint64_t now_ns);


/* ---- the request path ---------------------------------------------------- */

/* INFER or CALL.  AGAIN: the ring is full. */
inf_client_result_t inf_client_submit(inf_client_t *c,
    const inf_submission_t *submission);

/* CANCEL and RELEASE never fail: what does not fit now goes later. */
void inf_client_cancel(inf_client_t *c, inf_slot_id_t id);
void inf_client_release(inf_client_t *c, uint64_t response_offset);

/*
 * With conf.defer: wakes the core for what was submitted since.  To be called
 * at the end of the event loop's turn, so that one wake serves all of it; a
 * few submissions in a row are not kept waiting for that.  Releases alone
 * wake nobody until inf_client_flush.
 */
void inf_client_ring(inf_client_t *c);

/* How many of those wait; if any, call flush from a timer too (submit and
   drain do it by themselves). */
uint32_t inf_client_pending(const inf_client_t *c);
void inf_client_flush(inf_client_t *c);

/*
 * Handles up to budget completions.  OK: none is left.  AGAIN: there may be
 * more, call again soon.
 */
inf_client_result_t inf_client_drain(inf_client_t *c, uint32_t budget,
    inf_client_handler_fn handler);

/* Before going back to sleep in the event loop; false: drain again first. */
bool inf_client_arm(inf_client_t *c);

/* Response bytes; NULL unless [offset, offset + len) lies in the response
   arena.  Read-only, written by the core: read each value once. */
const void *inf_client_response(const inf_client_t *c, uint64_t offset,
    uint64_t len);
uint64_t inf_client_response_size(const inf_client_t *c);

/* Counted since new; valid as long as the client. */
const inf_client_stats_t *inf_client_stats(const inf_client_t *c);

#endif /* INF_WIRE_CLIENT_H */
