/*
 * certain_rows.h - finds the outputs that have as many rows as the batch for
 *                  any data of requests.
 *
 * Owner    nothing is kept; the model's shapes change during the call.
 * Thread   the model's loader's.
 * Units    rows are of the batch dimension.
 * Errors   no memory.  INTERNAL: the model's open shapes cannot be restored.
 *          If the library fails otherwise, no output is certain.
 * Route    network -> [certain_rows] -> tensors, symbols
 *
 * A run writes such an output straight into a response.  The library gives no
 * error when a buffer is too small: it leaves the buffer as it is.  So an
 * output counts only if the library itself infers its whole shape from the
 * number of rows, at several numbers.
 */

#ifndef VINO_CERTAIN_ROWS_H
#define VINO_CERTAIN_ROWS_H

#include "runtime.h"

#include "common/tensors.h"

/* Sets a symbol in certain outputs and in inputs with a batch dimension. */
BK_CHECK TRITONSERVER_Error *vino_certain_rows_mark(const vino_runtime_t *rt,
    const ov_model_t *model, const bk_model_config_t *config,
    bk_tensors_t *tensors);

#endif /* VINO_CERTAIN_ROWS_H */
