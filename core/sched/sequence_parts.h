/*
 * sequence_parts.h - what the files of the sequence batcher share: sequences,
 *                    slots, the places (instances) that have them.
 *
 * Owner    The batcher owns all of it; a place with requests that aren't
 *          released yet outlives its detach.
 * Thread   with the runner's lock held, except add_controls.
 * Units    ns.
 * Errors   out of memory.
 * Route    sequence batcher -> [parts] <- ids, slots, rows
 */

#ifndef INF_SCHED_SEQUENCE_PARTS_H
#define INF_SCHED_SEQUENCE_PARTS_H

#include "core/sched/sequence_batcher.h"
#include "core/sched/sequence_inputs.h"

#define INF_FLAG_START 1u           /* TRITONSERVER_REQUEST_FLAG_SEQUENCE_*  */
#define INF_FLAG_END   2u

#define INF_SEQUENCE_TEXT 40u

typedef struct inf_sequence_place_s inf_sequence_place_t;
typedef struct inf_slot_s inf_slot_t;

/* Has a slot and is known, or waits in the backlog. */
typedef struct inf_sequence_s {
    struct inf_sequence_s *next;    /* in its bucket, or among the spares    */
    uint64_t               hash;
    uint64_t               id;
    char                  *text;    /* NULL: id counts; else small or
                                       malloc'ed                             */
    char                   small[INF_SEQUENCE_TEXT];
    bool                   known;   /* by its id                             */
    inf_slot_t            *slot;    /* NULL: it waits                        */
    inf_heap_node_t        timer;   /* idle with a slot, too late without    */

    inf_link_t             link;    /* in the backlog, or among the silent   */
    inf_link_t             queue;   /* its requests, while it waits          */
    bool                   over;    /* nothing will follow these             */
} inf_sequence_t;

/* One sequence at a time: known, or the rest of one that has ended. */
struct inf_slot_s {
    inf_sequence_place_t *place;
    uint32_t              number;
    inf_heap_node_t       vacancy;  /* while it is free                      */
    bool                  taken;
    uint32_t              turn;     /* counts its sequences                  */
    bool                  over;     /* ends with the last request queued     */
    inf_sequence_t       *sequence; /* NULL: not known any more              */
    inf_link_t            queue;
    inf_request_t        *issued;   /* oldest: in the place's batcher        */
    uint32_t              running;  /* requests taken, not released          */
    inf_slot_inputs_t    *inputs;
};

typedef enum {
    INF_PLACE_PREPARES,     /* takes no sequence yet                         */
    INF_PLACE_OPEN,
    INF_PLACE_RETIRED       /* takes no other sequence                       */
} inf_place_state_t;

/* An instance. */
struct inf_sequence_place_s {
    inf_link_t      touch;          /* in batcher->touched                   */
    inf_link_t      link;           /* among the departed                    */
    uint32_t        number;
    void           *owner;
    inf_place_state_t state;        /* moved by place_move alone             */
    uint32_t        taken;          /* slots that are not free               */
    uint32_t        queued;
    uint32_t        running;
    inf_policy_t   *batcher;        /* oldest; else NULL                     */
    bool            stuck;          /* something couldn't enter it           */
    bool            keeps;          /* requests leave states to the next     */
    inf_slot_t      slots[];
};

typedef struct {
    inf_policy_t           base;
    inf_sequence_batcher_options_t options;
    uint32_t              *preferred;
    uint64_t               delay_ns;
    uint64_t               idle_ns;
    bool                   held;        /* options.hold isn't reached yet    */
    const inf_request_t   *restart;     /* the last pushed, if it starts a
                                           sequence that lives               */
    uint64_t               notice_ns;   /* the next may be told of then      */
    uint32_t               unnoticed;   /* such, since the last notice       */
    uint64_t               last_id;     /* iterative: given to requests
                                           without                           */
    inf_sequence_place_t **places;      /* by number                         */
    uint32_t               place_count;
    uint32_t               place_cap;
    inf_link_t             departed;    /* with requests not released        */
    inf_link_t             touched;     /* places                            */
    inf_heap_t             vacancies;   /* slots                             */
    uint32_t               vacant;
    uint32_t               taken;

    inf_link_t             backlog;
    uint32_t               waiting;     /* sequences there                   */
    inf_link_t             silent;      /* sequences with a slot and nothing
                                           queued or running, longest first;
                                           of a model that leaves these give
                                           way to the backlog                */
    inf_heap_t             timers;

    uint64_t               seed;        /* of the hashes                     */
    inf_sequence_t       **buckets;
    uint64_t               mask;
    inf_sequence_t        *spares;
    uint32_t               spare_count;
} inf_sequence_batcher_t;

/* ---- sequence_ids.c ------------------------------------------------------ */

/* The sequence of req; NULL: unknown. */
inf_sequence_t *inf_sequence_find(const inf_sequence_batcher_t *b,
    const inf_request_t *req);

/* Known from now on. */
INF_CHECK inf_err_t *inf_sequence_new(inf_sequence_batcher_t *b,
    const inf_request_t *req, inf_sequence_t **out);

/* Nobody finds it any more; once more does nothing. */
void inf_sequence_forget(inf_sequence_batcher_t *b, inf_sequence_t *q);

/* Forgotten, without a timer, not in the backlog. */
void inf_sequence_free(inf_sequence_batcher_t *b, inf_sequence_t *q);

/* INF_NEVER: none. */
void inf_sequence_timer_set(inf_sequence_batcher_t *b, inf_sequence_t *q,
    uint64_t at_ns);
void inf_sequence_timer_clear(inf_sequence_batcher_t *b, inf_sequence_t *q);

/* ---- sequence_slots.c ---------------------------------------------------- */

/* Oldest: the next request enters the place's batcher, if the one before has
   been released. */
void inf_slot_issue(inf_sequence_batcher_t *b, inf_slot_t *s);

/* Something of the slot was taken, released or withdrawn. */
void inf_slot_settle(inf_sequence_batcher_t *b, inf_slot_t *s,
    uint64_t now_ns);

/* Nobody has it any more: the backlog's first, or it is free. */
void inf_slot_offer(inf_sequence_batcher_t *b, inf_slot_t *s);
void inf_slot_give(inf_sequence_batcher_t *b, inf_slot_t *s,
    inf_sequence_t *q);

/* The slot's sequence is forgotten; its queued requests stay. */
void inf_slot_forget(inf_sequence_batcher_t *b, inf_slot_t *s);

/* req is queued in the slot no more. */
void inf_slot_lose(inf_sequence_batcher_t *b, inf_slot_t *s,
    inf_request_t *req);

/* The slot's sequence has sent a request: its idle timer ends. */
void inf_slot_speak(inf_sequence_batcher_t *b, inf_slot_t *s);

/* Of a model that leaves: the silent make room for who waits. */
void inf_slots_give_way(inf_sequence_batcher_t *b);

/* NULL: none is free. */
inf_slot_t *inf_slot_take_free(inf_sequence_batcher_t *b);

/* q is in the backlog; its timer is cleared, too. */
void inf_sequence_leave_backlog(inf_sequence_batcher_t *b, inf_sequence_t *q);

/* The owner will be told. */
void inf_place_touch(inf_sequence_batcher_t *b, inf_sequence_place_t *place);

/* The place is reported if it is retired and has nothing left to do. */
void inf_place_touch_empty(inf_sequence_batcher_t *b,
    inf_sequence_place_t *place);

/* The place is reported if the slot's new first request may be taken (oldest:
   when the request enters the place's batcher). */
void inf_slot_touch(inf_sequence_batcher_t *b, inf_slot_t *s);

/* Whether the slot's first request may be taken. */
bool inf_slot_can_run(const inf_slot_t *s);

/* NULL: there is none of that number. */
inf_sequence_place_t *inf_place_find(const inf_sequence_batcher_t *b,
    uint32_t number);
void inf_place_free(const inf_sequence_batcher_t *b,
    inf_sequence_place_t *place);

/* As policy.h. */
inf_err_t *inf_sequence_batcher_attach(inf_policy_t *p, uint32_t number,
    inf_instance_t *instance, void *owner);
void inf_sequence_batcher_open(inf_policy_t *p, uint32_t number);
void inf_sequence_batcher_retire(inf_policy_t *p, uint32_t number);
void inf_sequence_batcher_leave(inf_policy_t *p, bool leaves);
bool inf_sequence_batcher_occupied(const inf_policy_t *p, uint32_t number);
void inf_sequence_batcher_detach(inf_policy_t *p, uint32_t number);
void *inf_sequence_batcher_touched(inf_policy_t *p);

/* ---- sequence_rows.c ----------------------------------------------------- */

/* As policy.h. */
inf_next_t inf_sequence_batcher_next(inf_policy_t *p, uint32_t number,
    uint64_t now_ns, inf_payload_t *out, inf_link_t *gone,
    uint64_t *until_ns);
inf_next_t inf_sequence_batcher_ready(inf_policy_t *p, uint32_t number,
    uint64_t now_ns, uint64_t *until_ns);
inf_err_t *inf_sequence_batcher_add_controls(inf_policy_t *p,
    inf_payload_t *out, inf_link_t *failed);

/* Whether no payload is formed yet (options.hold); all instances are told when
   that is over. */
bool inf_sequence_batcher_holds(inf_sequence_batcher_t *b);

/* ---- sequence_batcher.c -------------------------------------------------- */

/* As policy.h. */
void inf_sequence_batcher_expire(inf_policy_t *p, uint64_t now_ns,
    inf_link_t *gone);

#endif /* INF_SCHED_SEQUENCE_PARTS_H */
