/*
 * unused_fields.h - fields and parameters of a configuration that have no
 *                   effect.
 *
 * Owner    nothing is kept.
 * Thread   any.
 * Units    none.
 * Errors   none; unused fields are one line of the log.
 * Route    model_config -> [unused_fields] -> log
 */

#ifndef BK_UNUSED_FIELDS_H
#define BK_UNUSED_FIELDS_H

#include "model_config.h"

/* The fields that the core leaves to backends, for bk_backend_t.used_fields.
 * The format of an input is not among them: clients read it. */
#define BK_FIELD_GRAPH         "optimization.graph"
#define BK_FIELD_PRIORITY      "optimization.priority"
#define BK_FIELD_CUDA          "optimization.cuda"
#define BK_FIELD_ACCELERATORS  "optimization.execution_accelerators"
#define BK_FIELD_CC_FILENAMES  "cc_model_filenames"
#define BK_FIELD_OPERATIONS    "model_operations"
#define BK_FIELD_PROFILE       "instance_group.profile"
#define BK_FIELD_SECONDARY     "instance_group.secondary_devices"
#define BK_FIELD_STATE         "sequence_batching.state"

/* Logs the fields that are set and not in used, in one line; used may be NULL.
 * A backend with a table (entry.h) has the list there. */
void bk_config_log_unused(const bk_model_config_t *config,
    const char *const *used);

/* Logs the parameters that neither known (entry.h) lists nor the core reads. */
void bk_config_log_unknown(const bk_model_config_t *config,
    const char *const *known);

#endif /* BK_UNUSED_FIELDS_H */
