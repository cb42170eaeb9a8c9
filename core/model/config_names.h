/*
 * config_names.h - a hash table from names to small numbers, built once.
 *
 * Owner    the caller's memory: init, add, find, fini.  The names are views:
 *          their bytes must outlive the table.
 * Thread   add: one at a time; find on a finished table: any.
 * Units    none.
 * Errors   inf_config_names_add says when memory ran out.
 * Route    tensor names of a configuration, duplicates in a scan.
 */

#ifndef INF_MODEL_CONFIG_NAMES_H
#define INF_MODEL_CONFIG_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/slice.h"

#define INF_CONFIG_NAMES_NONE UINT32_MAX

typedef struct {
    inf_slice_t name;
    uint32_t    hash;
    uint32_t    value;      /* INF_CONFIG_NAMES_NONE: an empty place       */
} inf_config_names_place_t;

typedef struct {
    inf_config_names_place_t *places;
    uint32_t                  capacity;     /* a power of two              */
    uint32_t                  count;
} inf_config_names_t;

typedef enum {
    INF_CONFIG_NAMES_ADDED,
    INF_CONFIG_NAMES_KNOWN,     /* the first one stays                     */
    INF_CONFIG_NAMES_NOMEM
} inf_config_names_result_t;

/* The caller's memory; the names stay their owner's. */
void inf_config_names_init(inf_config_names_t *n);
void inf_config_names_fini(inf_config_names_t *n);

/* value is below INF_CONFIG_NAMES_NONE. */
inf_config_names_result_t inf_config_names_add(inf_config_names_t *n,
    inf_slice_t name, uint32_t value);

/* INF_CONFIG_NAMES_NONE when unknown. */
uint32_t inf_config_names_find(const inf_config_names_t *n, inf_slice_t name);

#endif /* INF_MODEL_CONFIG_NAMES_H */
