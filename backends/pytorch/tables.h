/*
 * tables.h - a model's tensors as its configuration has them: the files say
 *            little or nothing of shapes and datatypes.
 *
 * Owner    the caller ends the tables with bk_tensors_fini.
 * Thread   the loader's.
 * Units    dims with the batch dimension.
 * Errors   INVALID_ARG: no inputs or outputs, or a control tensor without a
 *          datatype.
 * Route    model_config -> [tables] -> names, common/runner
 */

#ifndef PT_TABLES_H
#define PT_TABLES_H

#include "common/tensors.h"

/* Creates the tables of all inputs, outputs, controls and states. */
BK_CHECK TRITONSERVER_Error *pt_tables_read(bk_tensors_t *t,
    const bk_model_config_t *config);

#endif /* PT_TABLES_H */
