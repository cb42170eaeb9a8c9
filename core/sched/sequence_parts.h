/*
 * sequence_parts.h - what the files of the sequence batcher share: sequences,
 *                    slots, and the slots of instances.
 *
 * Owner    The batcher owns everything.  A detached instance stays until its
 *          requests are released.
 * Thread   any, with the runner's lock held, except add_controls.
 * Units    ns.
 * Errors   out of memory.
 * Route    sequence batcher -> [parts] <- ids, slots, rows
 *
 * A sequence begins in the backlog, or gets a free slot at once.  A slot has
 * one sequence after another.  When the sequence of a slot has ended, the slot
 * goes to the first sequence of the backlog, or becomes free.
 */

#ifndef INF_SCHED_SEQUENCE_PARTS_H
#define INF_SCHED_SEQUENCE_PARTS_H

#include "core/sched/sequence_batcher.h"
#include "core/sched/sequence_inputs.h"

#define INF_FLAG_START 1u           /* TRITONSERVER_REQUEST_FLAG_SEQUENCE_*  */
#define INF_FLAG_END   2u

#define INF_SEQUENCE_TEXT 40u

typedef struct inf_sequence_instance_s inf_sequence_instance_t;
typedef struct inf_slot_s inf_slot_t;

/* A sequence with a slot, known by its id, or one in the backlog. */
typedef struct inf_sequence_s {
    struct inf_sequence_s *next;    /* in its bucket, or in the spares       */
    uint64_t               hash;
    uint64_t               id;
    char                  *text;    /* NULL: id is used; otherwise small or
                                       malloc'ed                             */
    char                   small[INF_SEQUENCE_TEXT];
    bool                   known;   /* found by its id                       */
    inf_slot_t            *slot;    /* NULL: in the backlog                  */
    inf_heap_node_t        timer;   /* idle time with a slot, backlog time
                                       without                               */

    inf_link_t             link;    /* in the backlog or silent list         */
    inf_link_t             queue;   /* its requests in the backlog           */
    bool                   over;    /* no more requests are accepted         */
} inf_sequence_t;

/* A slot holds one sequence: a known one, or the rest of one that has ended. */
struct inf_slot_s {
    inf_sequence_instance_t *instance;
    uint32_t              number;
    inf_heap_node_t       vacancy;  /* while free                            */
    bool                  taken;
    uint32_t              turn;     /* number of its sequences so far        */
    bool                  over;     /* ends with the last queued request     */
    inf_sequence_t       *sequence; /* NULL: no known sequence               */
    inf_link_t            queue;
    inf_request_t        *issued;   /* oldest: request in the instance's
                                       batcher                               */
    uint32_t              running;  /* requests taken, not released          */
    inf_slot_inputs_t    *inputs;
};

typedef enum {
    INF_SLOTS_PREPARING,    /* take no sequence yet                          */
    INF_SLOTS_OPEN,
    INF_SLOTS_RETIRED       /* take no new sequence                          */
} inf_slots_state_t;

/* An instance with its slots. */
struct inf_sequence_instance_s {
    inf_link_t      touch;          /* in batcher->touched                   */
    inf_link_t      link;           /* in batcher->departed                  */
    uint32_t        number;
    void           *owner;
    inf_slots_state_t state;        /* written by instance_move alone        */
    uint32_t        taken;          /* slots in use                          */
    uint32_t        queued;
    uint32_t        running;
    inf_policy_t   *batcher;        /* oldest; otherwise NULL                */
    bool            stuck;          /* a request could not enter batcher     */
    bool            keeps;          /* requests leave states for the next    */
    inf_slot_t      slots[];
};

typedef struct {
    inf_policy_t           base;
    inf_sequence_batcher_options_t options;
    uint32_t              *preferred;
    uint64_t               delay_ns;
    uint64_t               idle_ns;
    bool                   held;        /* options.hold not reached yet      */
    const inf_request_t   *restart;     /* the last pushed request, if it
                                           restarts a live sequence          */
    uint64_t               notice_ns;   /* time of the next possible notice  */
    uint32_t               unnoticed;   /* restarts since the last notice    */
    uint64_t               last_id;     /* iterative: for requests without an
                                           id                                */
    inf_sequence_instance_t **instances;    /* by number                     */
    uint32_t               instance_count;
    uint32_t               instance_cap;
    inf_link_t             departed;    /* with unreleased requests          */
    inf_link_t             touched;     /* instances to wake                 */
    inf_heap_t             vacancies;   /* of slots                          */
    uint32_t               vacant;
    uint32_t               taken;

    inf_link_t             backlog;
    uint32_t               waiting;     /* sequences in the backlog          */
    inf_link_t             silent;      /* sequences with a slot, but nothing
                                           queued or running, longest first;
                                           they yield to the backlog when the
                                           model leaves                      */
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

/* Creates the sequence of req and makes it known. */
INF_CHECK inf_err_t *inf_sequence_new(inf_sequence_batcher_t *b,
    const inf_request_t *req, inf_sequence_t **out);

/* Makes the sequence unknown: its id finds it no more.  A repetition does
   nothing. */
void inf_sequence_forget(inf_sequence_batcher_t *b, inf_sequence_t *q);

/* Frees a sequence that is unknown, has no timer and is not in the backlog. */
void inf_sequence_free(inf_sequence_batcher_t *b, inf_sequence_t *q);

/* Sets the sequence's timer; INF_NEVER: none. */
void inf_sequence_timer_set(inf_sequence_batcher_t *b, inf_sequence_t *q,
    uint64_t at_ns);
void inf_sequence_timer_clear(inf_sequence_batcher_t *b, inf_sequence_t *q);

/* ---- sequence_slots.c ---------------------------------------------------- */

/* Oldest: passes the slot's next request to the instance's batcher, if the
   previous one was released. */
void inf_slot_issue(inf_sequence_batcher_t *b, inf_slot_t *s);

/* Updates the slot after a request was taken, released or withdrawn. */
void inf_slot_settle(inf_sequence_batcher_t *b, inf_slot_t *s,
    uint64_t now_ns);

/* offer gives a slot without a sequence to the first of the backlog, or makes
   the slot free.  give gives the slot to q. */
void inf_slot_offer(inf_sequence_batcher_t *b, inf_slot_t *s);
void inf_slot_give(inf_sequence_batcher_t *b, inf_slot_t *s,
    inf_sequence_t *q);

/* Forgets the sequence of the slot; the queued requests stay in the slot. */
void inf_slot_forget(inf_sequence_batcher_t *b, inf_slot_t *s);

/* Updates the slot after req left its queue. */
void inf_slot_lose(inf_sequence_batcher_t *b, inf_slot_t *s,
    inf_request_t *req);

/* Stops the idle timer of the slot's sequence, which has sent a request. */
void inf_slot_speak(inf_sequence_batcher_t *b, inf_slot_t *s);

/* In a model that leaves, gives the slots of silent sequences to the
   backlog. */
void inf_slots_give_way(inf_sequence_batcher_t *b);

/* Takes a free slot; NULL: none. */
inf_slot_t *inf_slot_take_free(inf_sequence_batcher_t *b);

/* Removes q from the backlog and clears its timer. */
void inf_sequence_leave_backlog(inf_sequence_batcher_t *b, inf_sequence_t *q);

/* Adds the instance to touched, for its owner. */
void inf_sequence_instance_touch(inf_sequence_batcher_t *b,
    inf_sequence_instance_t *instance);

/* Touches a retired instance without work. */
void inf_sequence_instance_touch_empty(inf_sequence_batcher_t *b,
    inf_sequence_instance_t *instance);

/* Touches the instance if the slot's new first request may be taken (oldest: if
   that request enters the instance's batcher). */
void inf_slot_touch(inf_sequence_batcher_t *b, inf_slot_t *s);

/* Whether the slot's first request may be taken. */
bool inf_slot_can_run(const inf_slot_t *s);

/* The instance of that number, or NULL. */
inf_sequence_instance_t *inf_sequence_instance_find(
    const inf_sequence_batcher_t *b, uint32_t number);
void inf_sequence_instance_free(const inf_sequence_batcher_t *b,
    inf_sequence_instance_t *instance);

/* Functions of policy.h. */
inf_err_t *inf_sequence_batcher_attach(inf_policy_t *p, uint32_t number,
    inf_instance_t *instance, void *owner);
void inf_sequence_batcher_open(inf_policy_t *p, uint32_t number);
void inf_sequence_batcher_retire(inf_policy_t *p, uint32_t number);
void inf_sequence_batcher_leave(inf_policy_t *p, bool leaves);
bool inf_sequence_batcher_occupied(const inf_policy_t *p, uint32_t number);
void inf_sequence_batcher_detach(inf_policy_t *p, uint32_t number);
void *inf_sequence_batcher_touched(inf_policy_t *p);

/* ---- sequence_rows.c ----------------------------------------------------- */

/* Functions of policy.h. */
inf_next_t inf_sequence_batcher_next(inf_policy_t *p, uint32_t number,
    uint64_t now_ns, inf_payload_t *out, inf_link_t *gone,
    uint64_t *until_ns);
inf_next_t inf_sequence_batcher_ready(inf_policy_t *p, uint32_t number,
    uint64_t now_ns, uint64_t *until_ns);
inf_err_t *inf_sequence_batcher_add_controls(inf_policy_t *p,
    inf_payload_t *out, inf_link_t *failed);

/* Whether options.hold still prevents payloads; touches all instances when it
   ends. */
bool inf_sequence_batcher_holds(inf_sequence_batcher_t *b);

/* ---- sequence_batcher.c -------------------------------------------------- */

/* Functions of policy.h. */
void inf_sequence_batcher_expire(inf_policy_t *p, uint64_t now_ns,
    inf_link_t *gone);

#endif /* INF_SCHED_SEQUENCE_PARTS_H */
