/*
 * client_parts.h - declarations shared by the worker's side of a channel:
 *                  client_open (creation, registration) and client (slots,
 *                  arena, requests).
 *
 * Owner    As client.h says.
 * Thread   The worker's event loop only.
 * Units    bytes.
 * Errors   As client.h.
 * Route    new -> [parts] -> free
 */

#ifndef INF_WIRE_CLIENT_PARTS_H
#define INF_WIRE_CLIENT_PARTS_H

#include "core/wire/client.h"
#include "core/wire/ring.h"

#define INF_CLIENT_NO_SLOT UINT32_MAX

typedef enum {
    INF_CLIENT_SLOT_FREE,
    INF_CLIENT_SLOT_TAKEN,      /* not submitted                           */
    INF_CLIENT_SLOT_SUBMITTED,
    INF_CLIENT_SLOT_ABANDONED   /* submitted, without an owner             */
} inf_client_slot_state_t;

typedef struct {
    void                    *userp;
    inf_region_t            *region;    /* ABANDONED: to be freed          */
    uint32_t                 generation;
    uint32_t                 next_free;
    inf_client_slot_state_t  state;
    uint8_t                  seen;      /* of FINAL and RELEASED           */
    bool                     cancelled;
} inf_client_slot_t;

/* CANCEL and RELEASE entries that found the ring full; a circular buffer. */
typedef struct {
    inf_submission_t *entries;
    uint32_t          first;
    uint32_t          count;
    uint32_t          cap;
} inf_client_pending_t;

struct inf_client_s {
    int                  rings_fd;
    int                  arena_fd;
    int                  submit_eventfd;
    int                  complete_eventfd;
    int                  control;
    int                  core_control;  /* the core's end, until sent      */
    int                  core_fd;

    void                *rings;
    uint64_t             rings_size;
    unsigned char       *arena;
    unsigned char       *slot_states;
    const unsigned char *responses;
    uint64_t             responses_size;

    uint32_t             core_pid;
    uint32_t             ring_entries;

    inf_ring_producer_t  submissions;
    inf_ring_consumer_t  completions;
    bool                 broken;
    bool                 defer;         /* from conf                       */
    bool                 unrung_releases;
    uint32_t             unrung;        /* pushed since the last wake */

    inf_client_slot_t   *slots;
    uint32_t             slot_count;
    uint32_t             slots_taken;
    uint32_t             free_slot;     /* the slot given last is taken first */

    uint32_t             held;          /* response regions not released   */
    inf_client_pending_t pending;
    inf_regions_t        regions;
    inf_client_stats_t   stats;
};

/* Makes room for so many entries; false: out of memory. */
bool inf_client_pending_grow(inf_client_t *c, uint64_t need);

/*
 * Makes room for all entries that may be pending: one CANCEL for each slot,
 * one RELEASE for each held response, and for the next response.
 */
static inline bool
inf_client_pending_room(inf_client_t *c)
{
    uint64_t need = (uint64_t) c->pending.count + c->held + c->slot_count + 1;

    return need <= c->pending.cap || inf_client_pending_grow(c, need);
}

#endif /* INF_WIRE_CLIENT_PARTS_H */
