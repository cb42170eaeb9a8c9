/*
 * state.h - what a sequence keeps between its requests: one set of named
 *           states, each with a committed buffer and one being written.
 *
 * Owner    The sequence's slot owns the set; requests of the sequence point
 *          at it while they execute.
 * Thread   one at a time: a sequence has one request executing.
 * Units    bytes; shapes as the backend gives them.
 * Errors   INVALID_ARG, out of memory; what the driver says of a copy.
 * Route    sequence batcher -> request -> [state] -> StateNew, StateBuffer,
 *          StateUpdate -> the next request's input.
 */

#ifndef INF_TENSOR_STATE_H
#define INF_TENSOR_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/include/datatype.h"
#include "core/tensor/growable.h"

struct inf_buffer_attributes_s;

typedef struct {
    void              *base;            /* memory_type may be GPU            */
    size_t             size;
    inf_memory_type_t  memory_type;
    int64_t            memory_id;
    inf_datatype_t     datatype;
    uint32_t           dim_count;
    int64_t           *shape;
} inf_state_buffer_t;

/* One entry of sequence_batching.state. */
typedef struct inf_state_s {
    struct inf_state_s *next;
    const char         *output_name;
    const char         *input_name;
    bool                same_buffer;    /* use_same_buffer_for_input_output  */
    bool                written;        /* reserve was called                */
    inf_growable_t     *growable;       /* holds input's bytes; NULL: usual  */
    inf_state_buffer_t  input;          /* committed: the next input         */
    inf_state_buffer_t  output;         /* what the backend writes           */
    const void         *read;           /* committed when the request began  */
    inf_state_buffer_t  kept;           /* those bytes, when the state has no
                                           use for them any more             */

    struct {                            /* malloc'ed; freed with the state   */
        struct inf_buffer_attributes_s *attributes;
    } abi;
} inf_state_t;

typedef struct inf_states_s {
    inf_state_t *first;                 /* in the order they were added      */
    inf_state_t *last;
} inf_states_t;

/* An empty set; NULL: out of memory. */
inf_states_t *inf_states_new(void);
void inf_states_free(inf_states_t *states);

/* Adds an entry whose committed buffer is a copy of initial (size bytes of
   host memory; NULL: zeros), pinned where there is pinned memory.  Names and
   shape are copied. */
INF_CHECK inf_err_t *inf_states_add(inf_states_t *states,
    const char *output_name, const char *input_name, bool same_buffer,
    const inf_state_buffer_t *initial);

/* A sequence begins, the request before is released: the committed buffer is
   as after add with that initial value, and of what was written before nothing
   is left.  On error the set is only good for being freed. */
INF_CHECK inf_err_t *inf_state_renew(inf_state_t *state,
    const inf_state_buffer_t *initial);

/* A request is about to run, the one before is released: what is committed now
   stays where it is until the request is released. */
void inf_state_begin(inf_state_t *state);

/* use_growable_memory: from now on the state lies on that GPU, or for
   INF_GROWABLE_HOST in the host's memory, and grows there without moving.
   INVALID_ARG: it has two buffers. */
INF_CHECK inf_err_t *inf_state_make_growable(inf_state_t *state,
    int64_t device);

/* NULL when no entry has that output_name. */
inf_state_t *inf_states_find(const inf_states_t *states,
    const char *output_name);

/* Describes what the backend is about to write. */
INF_CHECK inf_err_t *inf_state_describe(inf_state_t *state,
    inf_datatype_t datatype, const int64_t *shape, uint32_t dim_count);

/* The buffer to write: the held one if size and kind fit, else one of the
   kind asked for or of the next that can be had (GPU, pinned, CPU).  *type
   and *id become the actual ones. */
INF_CHECK inf_err_t *inf_state_reserve(inf_state_t *state, size_t size,
    inf_memory_type_t *type, int64_t *id, void **out);

/* The written buffer becomes the input; the old input the next to be written.
   Twice in a row therefore cancels out.  With same_buffer nothing moves. */
INF_CHECK inf_err_t *inf_state_commit(inf_state_t *state);

#endif /* INF_TENSOR_STATE_H */
