/* sequences.h - what the files of the sequences backend share. */

#ifndef T_BACKENDS_SEQUENCES_H
#define T_BACKENDS_SEQUENCES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "triton/core/tritonbackend.h"

typedef enum {
    DOES_TELL,                      /* OUT is IN                             */
    DOES_SUM,                       /* OUT is the new state: old one and IN  */
    DOES_APPEND,
    DOES_STEPS                      /* IN says how many executions it takes  */
} does_t;

typedef struct {
    char        gate[512];          /* "" for none                           */
    char        record[512];
    does_t      does;
    bool        updates;
    bool        decoupled;
    unsigned    delay_ms;
    unsigned    later_ms;           /* steps: released after Execute         */
    _Atomic int executions;
} model_t;

/* One execution as its requests are told of it. */
typedef struct {
    const model_t               *model;
    TRITONBACKEND_ModelInstance *instance;
    const char                  *name;          /* the instance's            */
    int                          number;
    uint32_t                     requests;
    uint32_t                     place;
} execution_t;

typedef struct {
    const char           *name;
    TRITONBACKEND_Input  *input;
    const int64_t        *shape;
    TRITONSERVER_DataType type;
    uint32_t              dims;
    uint32_t              buffers;
    uint64_t              size;
} tensor_t;

/* Names that the C library may have too. */
#pragma GCC visibility push(hidden)

/* ---- sequences.c --------------------------------------------------------- */

TRITONSERVER_Error *open_tensor(TRITONBACKEND_Request *request,
    const char *name, tensor_t *t);

/* size bytes, malloc'ed. */
TRITONSERVER_Error *read_tensor(const tensor_t *t, void **data);

/* An INT32 tensor OUT with t's rank, count elements in its last dimension. */
TRITONSERVER_Error *write_output(TRITONBACKEND_Response *response,
    const tensor_t *t, const int32_t *values, size_t count);

/* Shape like t's, but for its last dimension; out holds 16. */
void shape_like(const tensor_t *t, int64_t last, int64_t *out);

bool wants_output(TRITONBACKEND_Request *request);

/* With what the execution was; takes err. */
void answer(const execution_t *e, TRITONBACKEND_Response *response,
    uint32_t flags, TRITONSERVER_Error *err);

/* ---- record.c ------------------------------------------------------------ */

/* A line of JSON about the execution, before it happens. */
void record(const execution_t *e, TRITONBACKEND_Request **requests);

/* ---- states.c ------------------------------------------------------------ */

TRITONSERVER_Error *accumulate(const execution_t *e,
    TRITONBACKEND_Request *request, TRITONBACKEND_Response *response);

/* ---- steps.c ------------------------------------------------------------- */

/* Answers and releases request, for good or to be executed again. */
void take_step(const execution_t *e, TRITONBACKEND_Request *request);

#pragma GCC visibility pop

#endif /* T_BACKENDS_SEQUENCES_H */
