/*
 * server.h - the core's side of one channel.
 *
 * Owner    A channel has references: one of the intake, and one of every object
 *          that may still read request bytes or write response bytes, such as a
 *          live response region.  The last unref releases mappings and
 *          descriptors.
 * Thread   pop, sleep: one thread at a time, the one with the intake role.  All
 *          others: any.
 * Units    bytes; ns on CLOCK_MONOTONIC.
 * Errors   accept returns errors.  Later, an invalid entry of the worker is
 *          counted, and answered if that is possible, or the result is
 *          INF_CHANNEL_BROKEN.
 * Route    registration socket -> accept -> (pop, complete)* -> dead -> unref
 *
 * The worker is not trusted: pop copies an entry before checking the copy.  In
 * an entry from pop, the slot is inside the table and the record is inside the
 * arena.  request_record.h checks the contents of the record.
 */

#ifndef INF_WIRE_SERVER_H
#define INF_WIRE_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/include/channel.h"
#include "core/wire/region.h"

/* Bytes of a response arena beyond its bound, for answers of calls. */
#define INF_CHANNEL_ANSWER_ROOM (UINT64_C(16) << 20)

/* Callbacks of a region: the flow of its call, and a trace. */
#define INF_CHANNEL_ON_FREE 2u

typedef struct inf_channel_s inf_channel_t;

/* A part of the response arena, reference counted. */
typedef struct inf_channel_region_s inf_channel_region_t;

/* Callbacks that make memory directly accessible to devices; set by the
   caller. */
typedef struct {
    /* false: not possible, the memory is unchanged.  Both may take long, while
       requests use the memory. */
    bool (*pin)(void *base, uint64_t size);
    bool (*pin_read_only)(void *base, uint64_t size);   /* without write
                                                           access */
    void (*unpin)(void *base);  /* before the memory is unmapped           */
} inf_channel_pin_ops_t;

typedef struct {
    uint64_t response_bound;    /* on allocated bytes, without
                                   INF_CHANNEL_ANSWER_ROOM                 */
    uint64_t response_size;     /* address space; 0: from the bound        */
    uint64_t pinned;            /* bytes, in whole pages, to set aside for
                                   inf_channel_pin at the start of the response
                                   arena and of each half of the request
                                   arena                                   */
    const inf_channel_pin_ops_t *pin;   /* NULL: no pinning                */
    uint64_t generation;        /* of the configuration, sent in the welcome */
} inf_channel_conf_t;

typedef enum {
    INF_CHANNEL_EMPTY,
    INF_CHANNEL_ENTRY,          /* INFER, CALL or CANCEL                   */
    INF_CHANNEL_SKIPPED,        /* handled here: RELEASE or invalid        */
    INF_CHANNEL_BROKEN          /* call inf_channel_dead and drop the
                                   reference                               */
} inf_channel_result_t;

typedef struct {
    uint64_t submissions;       /* entries popped                          */
    uint64_t completions;       /* pushed to the ring                      */
    uint64_t spilled;           /* of those, over the spill list           */
    uint64_t notifications;     /* times the worker was woken              */
    uint64_t invalid;           /* malformed entries                       */
    uint64_t bad_releases;      /* of regions not published                */
    uint64_t waiting;           /* now on the spill list                   */
} inf_channel_stats_t;


/* ---- life ---------------------------------------------------------------- */

/*
 * Takes all fds (closed and set to -1 on failure).  Checks the hello, maps the
 * memory, creates the response arena and sends the welcome, or a rejection
 * with the error's text.  The caller gets the first reference.
 */
INF_CHECK inf_err_t *inf_channel_accept(const void *hello, size_t len,
    int *fds, size_t fd_count, const inf_channel_conf_t *conf,
    inf_channel_t **out);

/* Pins the memory that accept has set aside, as far as possible.  Called
   once. */
void inf_channel_pin(inf_channel_t *ch);

/* How many bytes are pinned: of the responses, and of each half of the
   requests. */
uint64_t inf_channel_pinned(const inf_channel_t *ch);
uint64_t inf_channel_pinned_requests(const inf_channel_t *ch);

/* ref returns ch.  The last unref frees ch; unref(NULL) does nothing. */
inf_channel_t *inf_channel_ref(inf_channel_t *ch);
void inf_channel_unref(inf_channel_t *ch);

/*
 * dead ends the channel of a worker that is gone or broken: closes the control
 * socket, and drops spilled completions and the regions of the worker.  Later
 * completions are dropped, and their regions freed.  dead drops no reference; a
 * repetition does nothing.
 */
void inf_channel_dead(inf_channel_t *ch);
bool inf_channel_is_dead(const inf_channel_t *ch);

/* Whether the channel was ended because the worker left too many completions
   unread. */
bool inf_channel_is_overrun(const inf_channel_t *ch);

/* Whether the worker has announced that it accepts no more clients. */
bool inf_channel_is_leaving(const inf_channel_t *ch);

/* The worker's own words of the hello, not verified. */
uint32_t inf_channel_pid(const inf_channel_t *ch);
uint32_t inf_channel_slots(const inf_channel_t *ch);

/* Descriptors for the intake's epoll; open until the last unref. */
int inf_channel_event_fd(const inf_channel_t *ch);     /* readable: pop    */
int inf_channel_control_fd(const inf_channel_t *ch);   /* EOF: worker gone */


/* ---- intake -------------------------------------------------------------- */

/* Pops an entry; flushes the spill list too. */
inf_channel_result_t inf_channel_pop(inf_channel_t *ch,
    inf_submission_t *out);

/* Called before waiting on the eventfd.  false: there are entries, pop
   again. */
bool inf_channel_sleep(inf_channel_t *ch);

/* Request bytes; NULL unless [offset, offset + len) lies in the request
   arena. */
const void *inf_channel_request(const inf_channel_t *ch, uint64_t offset,
    uint64_t len);
uint64_t inf_channel_request_size(const inf_channel_t *ch);

/* Whether these bytes of the request arena are all pinned. */
bool inf_channel_request_pinned(const inf_channel_t *ch, uint64_t offset,
    uint64_t len);

/* Answers an entry from pop that is invalid, and counts it. */
void inf_channel_reject(inf_channel_t *ch, const inf_submission_t *s);

/* Stores a slot's state: INF_SLOT_*, with or without INF_SLOT_RETRYABLE or
   INF_SLOT_SEQUENCE.  Called before the completion that it describes. */
void inf_channel_set_slot(inf_channel_t *ch, uint32_t slot, uint8_t state);

/* INF_CRASH_MAX bytes for the crash handler's text; valid as long as the
   channel. */
char *inf_channel_crash(const inf_channel_t *ch);

/* Stores whether a suspect executes in the core; called before it begins. */
void inf_channel_set_suspect(inf_channel_t *ch, bool under_way);


/* ---- responses ----------------------------------------------------------- */

/*
 * Sends a completion without waiting.  region: the record or answer (NULL:
 * none); one reference of it passes to the worker, or is dropped if the
 * channel is dead.  RESPONSE is set if there is a region or cpl has it, and
 * offset and length are filled in; a response without bytes has length 0 and
 * is not released.
 */
void inf_channel_complete(inf_channel_t *ch, const inf_completion_t *cpl,
    inf_channel_region_t *region, uint64_t length);

/* Moves spilled completions to the ring as far as they fit. */
void inf_channel_flush(inf_channel_t *ch);

/* Allocates a region without waiting.  NULL: over the bound (UNAVAILABLE for
   the backend) or dead. */
inf_channel_region_t *inf_channel_alloc(inf_channel_t *ch, uint64_t size);

/* Allocates for the answer of a call, with a higher bound: clients that do not
   read their outputs do not block health. */
inf_channel_region_t *inf_channel_alloc_answer(inf_channel_t *ch,
    uint64_t size);
inf_channel_region_t *inf_channel_region_ref(inf_channel_region_t *region);
void inf_channel_region_unref(inf_channel_region_t *region);

/* data, size: as allocated; offset: for a completion. */
void *inf_channel_region_data(const inf_channel_region_t *region);
uint64_t inf_channel_region_offset(const inf_channel_region_t *region);
uint64_t inf_channel_region_size(const inf_channel_region_t *region);

/* Whether the whole region is pinned. */
bool inf_channel_region_pinned(const inf_channel_region_t *region);

/*
 * Makes record hold a reference of its own of each part until record is freed.
 * Called once per record, before the record is published.
 */
INF_CHECK inf_err_t *inf_channel_region_attach(inf_channel_region_t *record,
    inf_channel_region_t *const *parts, uint32_t count);

/* Sets fn, which is called once when region is freed, on the thread that drops
   the last reference.  Called at most INF_CHANNEL_ON_FREE times per region,
   before the region is published. */
void inf_channel_region_on_free(inf_channel_region_t *region,
    void (*fn)(void *userp, uint64_t bytes), void *userp, uint64_t bytes);

/* Trims the response arena, a bounded amount per call; called by the intake's
   timer. */
uint64_t inf_channel_trim(inf_channel_t *ch, uint64_t now_ns);

/* Copies counters, which may change meanwhile. */
void inf_channel_stats(inf_channel_t *ch, inf_channel_stats_t *out);
void inf_channel_arena_stats(inf_channel_t *ch, inf_regions_stats_t *out);

#endif /* INF_WIRE_SERVER_H */
