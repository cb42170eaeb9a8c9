/*
 * deal.h - the outputs of a run, dealt to the responses of its requests.
 *
 * Owner    Copies belong to the responses.
 * Thread   the instance's.
 * Units    elements; rows of the batch dimension.
 * Errors   INTERNAL: an output whose shape cannot be dealt; for all slots
 *          alike.  A response that cannot be filled costs its own slot.
 * Route    the runtime -> batch -> [deal] -> slot
 */

#ifndef BK_DEAL_H
#define BK_DEAL_H

#include "batch.h"

/* After a run that has worked: each slot gets its part of the outputs that it
 * asked for and that do not lie in its response yet. */
BK_CHECK TRITONSERVER_Error *bk_outputs_deal(bk_batch_t *b, bk_slot_t *slots,
    uint32_t count);

#endif /* BK_DEAL_H */
