/*
 * sending.h - sends responses of senders on other threads: a client that does
 *             not read, or an ensemble at its limit, blocks only the sender.
 *
 * Owner    A response belongs to its job until it is sent.
 * Thread   start: the consumer role's; sending: one of threads.h.
 * Units    none.
 * Errors   for the sender's slot.
 * Route    calls -> [sending] -> server -> reply
 */

#ifndef PY_SENDING_H
#define PY_SENDING_H

#include "requests.h"

/* Sends the response in r; the slot gets the reply. */
BK_CHECK TRITONSERVER_Error *py_sending_start(py_link_t *link,
    py_live_t *live, uint32_t slot, bool final, py_reader_t *r);

#endif /* PY_SENDING_H */
