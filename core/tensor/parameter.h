/*
 * parameter.h - an ordered list of named values on a request or response.
 *
 * Owner    The list and its texts are in the arena of the request or response.
 * Thread   that of the request or response.
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
    inf_parameter_t **items;            /* in order: backends use indexes    */
    uint32_t          count;
    uint32_t          cap;
} inf_parameter_list_t;

/* Appends a zeroed parameter; duplicate names are kept.  NULL: no memory. */
inf_parameter_t *inf_parameter_add(inf_parameter_list_t *list,
    inf_arena_t *arena, const char *name, size_t name_len,
    inf_parameter_type_t type);

/* NULL: index out of range. */
const inf_parameter_t *inf_parameter_at(const inf_parameter_list_t *list,
    uint32_t index);

/* The value in the form of the C ABI. */
const void *inf_parameter_value(const inf_parameter_t *p);

/* The same, and its size without a terminating NUL. */
const void *inf_parameter_bytes(const inf_parameter_t *p, uint64_t *len);

#endif /* INF_TENSOR_PARAMETER_H */
