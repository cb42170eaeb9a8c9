/*
 * engine.h - runs a model's file: TorchScript or an AOTInductor package.
 *
 * Owner    The caller of a function that opens an engine ends it with
 *          pt_engine_free.  The engine owns its signature, and results until
 *          their release.
 * Thread   Any number of threads may run an engine at the same time.
 * Units    dims are elements, with the batch dimension.
 * Errors   PyTorch's messages, with the name of the file or tensor.
 * Route    model -> [engine] -> script, aoti
 */

#ifndef PT_ENGINE_H
#define PT_ENGINE_H

#include "options.h"

#include <stddef.h>

/* The type of a list of strings; other types are PyTorch's numbers
 * (element_type.h). */
#define PT_TEXTS (-2)

#define PT_CPU        (-1)      /* a device number: no GPU                   */
#define PT_ANY_DEVICE (-2)      /* wherever the file's own tensors lie       */

/* An argument of forward(). */
typedef struct {
    char *name;                 /* for the configuration                     */
    bool  texts;                /* List[str]; otherwise a tensor             */
    bool  has_default;          /* the argument is optional                  */
} pt_parameter_t;

typedef struct {
    pt_parameter_t *parameters;
    uint32_t        parameter_count;
    bool            dict;       /* forward() takes one Dict[str, Tensor]
                                 * with any names; there are no parameters   */
    char          **outputs;    /* names; NULL where the file has none       */
    uint32_t        output_count;
} pt_signature_t;

/* A value for forward(). */
typedef struct {
    const char    *name;        /* its key in a dict                         */
    const int64_t *dims;
    void          *data;        /* PT_TEXTS: in the form of common/bytes.h   */
    uint64_t       len_bytes;
    uint64_t       elements;
    uint32_t       dims_count;
    int            type;        /* PyTorch's, or PT_TEXTS                    */
    bool           given;       /* false: the default is used                */
} pt_argument_t;

typedef struct {
    const int64_t *dims;
    const void    *data;        /* contiguous                                */
    uint64_t       len_bytes;
    uint32_t       dims_count;
    int            type;
} pt_result_t;

typedef struct {
    pt_result_t *items;         /* the caller's, for output_count results    */
    void        *held;          /* the engine's, until release               */
} pt_results_t;

typedef struct {
    TRITONSERVER_Error *(*run)(void *self, const pt_argument_t *arguments,
        uint32_t count, pt_results_t *results);
    void (*release)(void *self, pt_results_t *results);
    void (*free)(void *self);
} pt_engine_functions_t;

typedef struct {
    const pt_engine_functions_t *functions;
    void                        *self;
    pt_signature_t               signature;
} pt_engine_t;

/* Allocates the tables; false without memory. */
bool pt_signature_init(pt_signature_t *s, uint32_t parameter_count,
    uint32_t output_count);

/* engine may be NULL. */
void pt_engine_free(pt_engine_t *engine);

#endif /* PT_ENGINE_H */
