/*
 * ledger.h - the requests of one model that its backend has, and what it
 *            still holds of them: for a backend that may lose the process
 *            which answers them.
 *
 * Owner    The model owns its ledger.  A factory stands in it from the
 *          request's execution to its own end and holds no reference to it.
 * Thread   add, remove: any; settle: once the backend is finalized.
 * Units    none.
 * Errors   none.
 * Route    execute -> [ledger] -> settled when a model is unloaded by force
 *
 * Models without a ledger (nearly all) pay a branch for it.
 */

#ifndef INF_TENSOR_LEDGER_H
#define INF_TENSOR_LEDGER_H

#include "core/tensor/request.h"
#include "core/tensor/response.h"

typedef struct inf_ledger_s inf_ledger_t;

/* NULL: out of memory. */
inf_ledger_t *inf_ledger_new(void);
void inf_ledger_free(inf_ledger_t *ledger);

/* request goes to the backend now. */
void inf_ledger_add(inf_ledger_t *ledger, inf_request_t *request);

/* The factory ends. */
void inf_ledger_remove(inf_factory_t *f);

/*
 * The backend will do nothing any more.  A request without a final response
 * gets why, UNAVAILABLE; requests are released and the backend's handles on
 * factories dropped.  Returns how many requests had to be answered.
 */
uint32_t inf_ledger_settle(inf_ledger_t *ledger, const char *why);

#endif /* INF_TENSOR_LEDGER_H */
