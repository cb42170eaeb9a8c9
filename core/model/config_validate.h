/*
 * config_validate.h - checks every rule for a configuration alone.
 *
 * Owner    none; the message is only read.
 * Thread   any; the message is only read.
 * Units    none.
 * Errors   INVALID_ARG: "<key>: <the problem and the right form>".
 * Route    reader: normalise -> [validate]; again after completion
 */

#ifndef INF_MODEL_CONFIG_VALIDATE_H
#define INF_MODEL_CONFIG_VALIDATE_H

#include "core/base/error.h"
#include "core/model/config_findings.h"
#include "model_config.pb-c.h"

/* Groups of rules; a set. */
#define INF_RULES_MODEL   1u    /* names, schedulers, ensemble graph, ...    */
#define INF_RULES_TENSORS 2u    /* inputs, outputs, batch inputs and outputs */
#define INF_RULES_STATE   4u    /* implicit sequence state                   */
#define INF_RULES_ALL     7u

/* Returns the first broken rule. */
INF_CHECK inf_err_t *inf_config_validate(const Inference__ModelConfig *msg,
    unsigned rules);

/* Adds all broken rules. */
void inf_config_find(const Inference__ModelConfig *msg, unsigned rules,
    inf_findings_t *f);

/* The groups, each in its own file. */
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
