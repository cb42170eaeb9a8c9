/*
 * names.h - which argument of forward() an input is, and which of its values
 *           an output is, by Triton's rules for names.
 *
 * Owner    the caller ends pt_places_t with pt_places_fini.
 * Thread   written by find and fini, read by anyone between.
 * Units    none.
 * Errors   INVALID_ARG naming model, tensor and what the file has.
 * Route    tables, engine's signature -> [names] -> instance
 *
 * Inputs are called as the arguments are; or NAME__INDEX; or else they are
 * taken in the order of the configuration.  Outputs are NAME__INDEX, or in
 * order.  A package names all its tensors, and order does not count.
 */

#ifndef PT_NAMES_H
#define PT_NAMES_H

#include "engine.h"

#include "common/tensors.h"

typedef struct {
    uint32_t *inputs;           /* as the tables': index of the argument     */
    uint32_t *outputs;          /* as the tables': index of the value        */
    uint32_t  argument_count;
} pt_places_t;

/* Finds the argument of each input, and each output among the results. */
BK_CHECK TRITONSERVER_Error *pt_places_find(pt_places_t *p,
    const bk_model_config_t *config, const bk_tensors_t *tensors,
    const pt_signature_t *signature);
void pt_places_fini(pt_places_t *p);

#endif /* PT_NAMES_H */
