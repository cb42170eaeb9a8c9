/*
 * config_names.h - a hash table from names to small numbers, built once.
 *
 * Owner    the caller's memory: init, add, find, fini.  The names are views:
 *          their bytes must outlive the table.
 * Thread   add: one at a time; find on a finished table: any.
 * Units    none.
 * Errors   inf_config_names_add reports out of memory.
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
    uint32_t    value;      /* INF_CONFIG_NAMES_NONE: empty                */
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

/* Initializes the caller's memory; names stay their owner's. */
void inf_config_names_init(inf_config_names_t *n);
void inf_config_names_fini(inf_config_names_t *n);

/* Adds a name; value is below INF_CONFIG_NAMES_NONE. */
inf_config_names_result_t inf_config_names_add(inf_config_names_t *n,
    inf_slice_t name, uint32_t value);

/* The value of a name, or INF_CONFIG_NAMES_NONE. */
uint32_t inf_config_names_find(const inf_config_names_t *n, inf_slice_t name);

#endif /* INF_MODEL_CONFIG_NAMES_H */
