/*
 * state.h - the states of a sequence between its requests: a set of named
 *           states, each with a committed buffer and one to write.
 *
 * Owner    The sequence's slot owns the set; requests of the sequence point to
 *          it while they execute.
 * Thread   one at a time: a sequence has one request executing.
 * Units    bytes; shapes from the backend.
 * Errors   INVALID_ARG, out of memory; the driver's error of a copy.
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
    inf_growable_t     *growable;       /* memory of input; NULL: not
                                           growable                          */
    inf_state_buffer_t  input;          /* committed: the next input         */
    inf_state_buffer_t  output;         /* written by the backend            */
    const void         *read;           /* input at the start of the request */
    inf_state_buffer_t  kept;           /* memory of read, after the state no
                                           longer uses it                    */

    struct {                            /* malloc'ed; freed with the state   */
        struct inf_buffer_attributes_s *attributes;
    } abi;
} inf_state_t;

typedef struct inf_states_s {
    inf_state_t *first;                 /* in order of addition              */
    inf_state_t *last;
} inf_states_t;

/* An empty set; NULL: out of memory. */
inf_states_t *inf_states_new(void);
void inf_states_free(inf_states_t *states);

/* Adds a state whose committed buffer is a copy of initial (size bytes of host
   memory; NULL: zeros), in pinned memory if there is any.  Names and shape are
   copied. */
INF_CHECK inf_err_t *inf_states_add(inf_states_t *states,
    const char *output_name, const char *input_name, bool same_buffer,
    const inf_state_buffer_t *initial);

/* Resets the state for a new sequence after the last request's release: the
   committed buffer is as after add with that initial value.  After an error the
   set must be freed. */
INF_CHECK inf_err_t *inf_state_renew(inf_state_t *state,
    const inf_state_buffer_t *initial);

/* Called before a request is executed and after the previous one was released:
   the committed buffer does not move until the release. */
void inf_state_begin(inf_state_t *state);

/* For use_growable_memory: moves the state to that GPU, or for
   INF_GROWABLE_HOST to host memory, where it grows in place.  INVALID_ARG: it
   has two buffers. */
INF_CHECK inf_err_t *inf_state_make_growable(inf_state_t *state,
    int64_t device);

/* NULL: no state has that output_name. */
inf_state_t *inf_states_find(const inf_states_t *states,
    const char *output_name);

/* Sets datatype and shape of the buffer to write. */
INF_CHECK inf_err_t *inf_state_describe(inf_state_t *state,
    inf_datatype_t datatype, const int64_t *shape, uint32_t dim_count);

/* The buffer to write: the present one if size and kind match, else one of the
   requested kind or the next available (GPU, pinned, CPU).  *type and *id are
   set to the actual ones. */
INF_CHECK inf_err_t *inf_state_reserve(inf_state_t *state, size_t size,
    inf_memory_type_t *type, int64_t *id, void **out);

/* Makes the written buffer the input, and the old input the next to write; a
   second commit undoes the first.  With same_buffer nothing changes. */
INF_CHECK inf_err_t *inf_state_commit(inf_state_t *state);

#endif /* INF_TENSOR_STATE_H */
