/*
 * ledger.h - a list of a model's requests held by its backend, for a backend
 *            whose answering process may exit.
 *
 * Owner    The model owns its ledger.  A factory is listed from the request's
 *          execution to its own end; the ledger has no reference to it.
 * Thread   add, remove: any; settle: after the backend is finalized.
 * Units    none.
 * Errors   none.
 * Route    execute -> [ledger] -> settled in a forced unload
 *
 * Models without a ledger (nearly all) only test for it.
 */

#ifndef INF_TENSOR_LEDGER_H
#define INF_TENSOR_LEDGER_H

#include "core/tensor/request.h"
#include "core/tensor/response.h"

typedef struct inf_ledger_s inf_ledger_t;

/* NULL: out of memory. */
inf_ledger_t *inf_ledger_new(void);
void inf_ledger_free(inf_ledger_t *ledger);

/* Adds a request that is passed to the backend. */
void inf_ledger_add(inf_ledger_t *ledger, inf_request_t *request);

/* Removes a factory that ends. */
void inf_ledger_remove(inf_factory_t *f);

/*
 * Ends all requests after the backend has stopped.  A request without a final
 * response is answered by why, UNAVAILABLE; requests are released and the
 * backend's factory handles dropped.  Returns the number of answered requests.
 */
uint32_t inf_ledger_settle(inf_ledger_t *ledger, const char *why);

#endif /* INF_TENSOR_LEDGER_H */
