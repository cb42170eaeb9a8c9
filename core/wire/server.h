/*
 * server.h - the core's side of one channel.
 *
 * Owner    Reference counted: the intake holds one reference, and so does
 *          everything that may still read request bytes or write response
 *          bytes (a live response region holds one by itself).  Mappings and
 *          descriptors go with the last.
 * Thread   pop, sleep: one thread at a time (the intake role).  All else: any
 *          thread.
 * Units    bytes; times are ns on CLOCK_MONOTONIC.
 * Errors   accept returns them; later a worker's nonsense is counted, answered
 *          where that is possible, or INF_CHANNEL_BROKEN.
 * Route    registration socket -> accept -> (pop, complete)* -> dead -> unref
 *
 * The worker is not trusted: an entry is copied before it is looked at, and
 * what pop returns has its slot inside the table and its record inside the
 * arena; the record's contents are the business of record.h.
 */

#ifndef INF_WIRE_SERVER_H
#define INF_WIRE_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/include/channel.h"
#include "core/wire/region.h"

/* Of a response arena, beyond its bound, for answers of calls. */
#define INF_CHANNEL_ANSWER_ROOM (UINT64_C(16) << 20)

/* Of a region: the flow of its call, and a trace. */
#define INF_CHANNEL_ON_FREE 2u

typedef struct inf_channel_s inf_channel_t;

/* A piece of the response arena, reference counted. */
typedef struct inf_channel_region_s inf_channel_region_t;

/* Callbacks that make memory such that devices reach it by themselves; a room
   above fills them in. */
typedef struct {
    /* false: it can't be done, the memory stays as it is.  Both may take
       long, and requests use the memory meanwhile. */
    bool (*pin)(void *base, uint64_t size);
    bool (*pin_read_only)(void *base, uint64_t size);   /* as it is mapped */
    void (*unpin)(void *base);  /* before the memory goes                  */
} inf_channel_pin_ops_t;

typedef struct {
    uint64_t response_bound;    /* of bytes handed out, but for
                                   INF_CHANNEL_ANSWER_ROOM                 */
    uint64_t response_size;     /* address space; 0: from the bound        */
    uint64_t pinned;            /* the first bytes of it and of each half of
                                   the request arena, in whole pages: set
                                   aside for inf_channel_pin               */
    const inf_channel_pin_ops_t *pin;   /* NULL: none are                  */
    uint64_t generation;        /* of the configuration, for the welcome   */
} inf_channel_conf_t;

typedef enum {
    INF_CHANNEL_EMPTY,
    INF_CHANNEL_ENTRY,          /* INFER, CALL or CANCEL                   */
    INF_CHANNEL_SKIPPED,        /* handled here: RELEASE or nonsense       */
    INF_CHANNEL_BROKEN          /* call inf_channel_dead and let go        */
} inf_channel_result_t;

typedef struct {
    uint64_t submissions;       /* entries popped                          */
    uint64_t completions;       /* pushed to the ring                      */
    uint64_t spilled;           /* of those, went over the spill list      */
    uint64_t notifications;     /* times the worker was woken              */
    uint64_t invalid;           /* malformed entries                       */
    uint64_t bad_releases;      /* of what was not published               */
    uint64_t waiting;           /* completions on the spill list now       */
} inf_channel_stats_t;


/* ---- life ---------------------------------------------------------------- */

/*
 * Takes all fds (closed and set to -1 on failure).  Checks the hello, maps,
 * makes the response arena and sends the welcome, or a rejection with the
 * error's text.  The caller holds the first reference.
 */
INF_CHECK inf_err_t *inf_channel_accept(const void *hello, size_t len,
    int *fds, size_t fd_count, const inf_channel_conf_t *conf,
    inf_channel_t **out);

/* Pins what accept has set aside, which counts as pinned from then on, as far
   as that can be done.  Once. */
void inf_channel_pin(inf_channel_t *ch);

/* Bytes that are pinned: of the responses, and of each half of the requests. */
uint64_t inf_channel_pinned(const inf_channel_t *ch);
uint64_t inf_channel_pinned_requests(const inf_channel_t *ch);

/* ref returns ch; the last unref frees it, unref(NULL) does nothing. */
inf_channel_t *inf_channel_ref(inf_channel_t *ch);
void inf_channel_unref(inf_channel_t *ch);

/*
 * The worker is gone or broken: ends the control socket, drops what waits and
 * what the worker held.  Later completions are dropped, their regions freed.
 * Idempotent; gives no reference back.
 */
void inf_channel_dead(inf_channel_t *ch);
bool inf_channel_is_dead(const inf_channel_t *ch);

/* It is dead because the worker left too many completions unread. */
bool inf_channel_is_overrun(const inf_channel_t *ch);

/* Its worker takes no clients any more, as it says itself. */
bool inf_channel_is_leaving(const inf_channel_t *ch);

/* From the hello, not verified. */
uint32_t inf_channel_pid(const inf_channel_t *ch);
uint32_t inf_channel_slots(const inf_channel_t *ch);

/* For the intake's epoll; open until the last reference goes. */
int inf_channel_event_fd(const inf_channel_t *ch);     /* readable: pop    */
int inf_channel_control_fd(const inf_channel_t *ch);   /* EOF: worker left */


/* ---- intake -------------------------------------------------------------- */

/* Also flushes the spill list when there is one. */
inf_channel_result_t inf_channel_pop(inf_channel_t *ch,
    inf_submission_t *out);

/* Before waiting on the eventfd; false: pop again first. */
bool inf_channel_sleep(inf_channel_t *ch);

/* NULL unless [offset, offset + len) lies in the request arena. */
const void *inf_channel_request(const inf_channel_t *ch, uint64_t offset,
    uint64_t len);
uint64_t inf_channel_request_size(const inf_channel_t *ch);

/* Whether all of these bytes of the request arena lie in what is pinned. */
bool inf_channel_request_pinned(const inf_channel_t *ch, uint64_t offset,
    uint64_t len);

/* Answers an entry of pop that breaks the rules, and counts it. */
void inf_channel_reject(inf_channel_t *ch, const inf_submission_t *s);

/* state: INF_SLOT_*, with or without INF_SLOT_RETRYABLE or INF_SLOT_SEQUENCE.
   To be stored before the completion that it describes. */
void inf_channel_set_slot(inf_channel_t *ch, uint32_t slot, uint8_t state);

/* INF_CRASH_MAX bytes for the handler of a crash; as long as the channel. */
char *inf_channel_crash(const inf_channel_t *ch);

/* Whether a suspect is under way in the core, to be stored before it is. */
void inf_channel_set_suspect(inf_channel_t *ch, bool under_way);


/* ---- responses ----------------------------------------------------------- */

/*
 * Never waits.  region: the record's or answer's (NULL: no bytes); one
 * reference of it passes to the worker, or is dropped when the channel is
 * dead.  RESPONSE is set here when there is a region or cpl asks for it, and
 * offset and length are filled in; a response without bytes has length 0 and
 * is not released.
 */
void inf_channel_complete(inf_channel_t *ch, const inf_completion_t *cpl,
    inf_channel_region_t *region, uint64_t length);

/* Moves spilled completions to the ring as far as they fit. */
void inf_channel_flush(inf_channel_t *ch);

/* NULL: over the bound (UNAVAILABLE for the backend) or dead.  Never waits. */
inf_channel_region_t *inf_channel_alloc(inf_channel_t *ch, uint64_t size);

/* The same for the answer of a call, for which there is room beyond the bound:
   clients that don't read their outputs must not silence health. */
inf_channel_region_t *inf_channel_alloc_answer(inf_channel_t *ch,
    uint64_t size);
inf_channel_region_t *inf_channel_region_ref(inf_channel_region_t *region);
void inf_channel_region_unref(inf_channel_region_t *region);

/* As allocated; offset is what a completion carries. */
void *inf_channel_region_data(const inf_channel_region_t *region);
uint64_t inf_channel_region_offset(const inf_channel_region_t *region);
uint64_t inf_channel_region_size(const inf_channel_region_t *region);

/* Whether all of it lies in what is pinned. */
bool inf_channel_region_pinned(const inf_channel_region_t *region);

/*
 * record keeps one reference of each part (taken here: the caller keeps its
 * own) until it goes itself.  Once per record, before publishing it.
 */
INF_CHECK inf_err_t *inf_channel_region_attach(inf_channel_region_t *record,
    inf_channel_region_t *const *parts, uint32_t count);

/* Calls fn once, when the region is free again, on the thread that drops it;
   INF_CHANNEL_ON_FREE times per region at most, before publishing it. */
void inf_channel_region_on_free(inf_channel_region_t *region,
    void (*fn)(void *userp, uint64_t bytes), void *userp, uint64_t bytes);

/* From a timer of the intake; a bounded piece of work. */
uint64_t inf_channel_trim(inf_channel_t *ch, uint64_t now_ns);

/* Copies counters that go on counting meanwhile. */
void inf_channel_stats(inf_channel_t *ch, inf_channel_stats_t *out);
void inf_channel_arena_stats(inf_channel_t *ch, inf_regions_stats_t *out);

#endif /* INF_WIRE_SERVER_H */
