/*
 * config_validate.h - every rule that a configuration alone can break.
 *
 * Owner    nothing is taken or kept.
 * Thread   any; the message is only read.
 * Units    none.
 * Errors   INVALID_ARG: "<key>: <what is wrong and what would be right>".
 * Route    reader: normalise -> [validate]; again after completion
 */

#ifndef INF_MODEL_CONFIG_VALIDATE_H
#define INF_MODEL_CONFIG_VALIDATE_H

#include "core/base/error.h"
#include "core/model/config_findings.h"
#include "model_config.pb-c.h"

/* Which rules; a set. */
#define INF_RULES_MODEL   1u    /* names, schedulers, ensemble graph, ...    */
#define INF_RULES_TENSORS 2u    /* inputs, outputs, batch inputs and outputs */
#define INF_RULES_STATE   4u    /* implicit sequence state                   */
#define INF_RULES_ALL     7u

/* The first broken rule. */
INF_CHECK inf_err_t *inf_config_validate(const Inference__ModelConfig *msg,
    unsigned rules);

/* All broken rules. */
void inf_config_find(const Inference__ModelConfig *msg, unsigned rules,
    inf_findings_t *f);

/* The parts, each in a file of its own. */
void inf_config_find_tensors(const Inference__ModelConfig *msg,
    inf_findings_t *f);
void inf_config_find_batching(const Inference__ModelConfig *msg,
    inf_findings_t *f);
void inf_config_find_sequence(const Inference__ModelConfig *msg,
    inf_findings_t *f);
void inf_config_find_state(const Inference__ModelConfig *msg,
    inf_findings_t *f);
void inf_config_find_ensemble(const Inference__ModelConfig *msg,
    inf_findings_t *f);

#endif /* INF_MODEL_CONFIG_VALIDATE_H */
