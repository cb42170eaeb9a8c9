/*
 * parameter.h - an ordered list of named values on a request or response.
 *
 * Owner    The list and its texts live in the arena of what carries it.
 * Thread   as the carrier.
 * Units    none.
 * Errors   out of memory.
 * Route    wire parameters -> request -> backend; backend -> response -> wire.
 */

#ifndef INF_TENSOR_PARAMETER_H
#define INF_TENSOR_PARAMETER_H

#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/include/channel.h"

typedef struct {
    const char           *name;
    inf_parameter_type_t  type;
    const char           *text;         /* STRING: NUL-terminated; BYTES     */
    size_t                text_len;
    int64_t               i;
    bool                  b;
    double                d;
} inf_parameter_t;

typedef struct {
    inf_parameter_t **items;            /* in order: backends ask by index   */
    uint32_t          count;
    uint32_t          cap;
} inf_parameter_list_t;

/* Appends a zeroed parameter; the same name twice keeps both.  NULL: no
   memory. */
inf_parameter_t *inf_parameter_add(inf_parameter_list_t *list,
    inf_arena_t *arena, const char *name, size_t name_len,
    inf_parameter_type_t type);

/* NULL when index is out of range. */
const inf_parameter_t *inf_parameter_at(const inf_parameter_list_t *list,
    uint32_t index);

/* The value as the C ABI hands it out. */
const void *inf_parameter_value(const inf_parameter_t *p);

#endif /* INF_TENSOR_PARAMETER_H */
