/*
 * suspect_gate.h - where instance threads of all models wait so that a suspect
 *                  executes alone.
 *
 * Owner    The server owns the gate, in a core that follows another one: no
 *          other has suspects.
 * Thread   enter, leave: an instance thread, around each execution.  One lock
 *          for all models.
 * Units    none.
 * Errors   none.
 * Route    instance thread -> [suspect gate] -> suspects
 */

#ifndef INF_SCHED_SUSPECT_GATE_H
#define INF_SCHED_SUSPECT_GATE_H

#include <stdatomic.h>

#include "core/base/error.h"
#include "core/sched/suspects.h"
#include "core/sched/waiter.h"

typedef struct inf_suspect_gate_s inf_suspect_gate_t;

/* An execution and its thread. */
typedef struct {
    inf_execution_t execution;      /* the gate's lock                       */
    inf_waiter_t   *waiter;
    _Atomic bool    begun;          /* seq_cst; set under the gate's lock    */
} inf_suspect_turn_t;

/* Without executions; its caller owns it. */
INF_CHECK inf_err_t *inf_suspect_gate_new(inf_suspect_gate_t **out);

/* Nothing executes.  gate may be NULL. */
void inf_suspect_gate_free(inf_suspect_gate_t *gate);

/* The turn is zeroed but for the fields of execution that its caller sets;
   false: it must wait, by inf_suspect_gate_wait. */
bool inf_suspect_gate_enter(inf_suspect_gate_t *gate,
    inf_suspect_turn_t *turn, inf_waiter_t *waiter);
void inf_suspect_gate_wait(inf_suspect_gate_t *gate,
    inf_suspect_turn_t *turn);

/* The turn has begun, and its execution is over. */
void inf_suspect_gate_leave(inf_suspect_gate_t *gate,
    inf_suspect_turn_t *turn);

#endif /* INF_SCHED_SUSPECT_GATE_H */
