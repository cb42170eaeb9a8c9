/*
 * engine.h - what runs a model's file: TorchScript or an AOTInductor package.
 *
 * Owner    An engine owns its signature; open gives the engine to the caller,
 *          who ends it with pt_engine_free.  Results live until released.
 * Thread   Any number of threads may run an engine at the same time.
 * Units    dims are elements, with the batch dimension.
 * Errors   what PyTorch says, with the file or the tensor it is about.
 * Route    model -> [engine] -> script, aoti
 */

#ifndef PT_ENGINE_H
#define PT_ENGINE_H

#include "options.h"

#include <stddef.h>

/* Beside PyTorch's numbers of element types (element_type.h): a list of
 * strings. */
#define PT_TEXTS (-2)

#define PT_CPU        (-1)      /* in place of a GPU's number                */
#define PT_ANY_DEVICE (-2)      /* wherever the file's own tensors lie       */

/* An argument of forward(). */
typedef struct {
    char *name;                 /* as a configuration may call it            */
    bool  texts;                /* List[str]; otherwise a tensor             */
    bool  has_default;          /* it may be left out                        */
} pt_parameter_t;

typedef struct {
    pt_parameter_t *parameters;
    uint32_t        parameter_count;
    bool            dict;       /* forward() takes one Dict[str, Tensor]:
                                 * there are no parameters, any name goes    */
    char          **outputs;    /* names; NULL where the file has none       */
    uint32_t        output_count;
} pt_signature_t;

/* A value for forward(). */
typedef struct {
    const char    *name;        /* its key in a dict                         */
    const int64_t *dims;
    void          *data;        /* texts: as common/bytes.h has them         */
    uint64_t       len_bytes;
    uint64_t       elements;
    uint32_t       dims_count;
    int            type;        /* PyTorch's, or PT_TEXTS                    */
    bool           given;       /* otherwise its default counts              */
} pt_argument_t;

typedef struct {
    const int64_t *dims;
    const void    *data;        /* one element behind the other              */
    uint64_t       len_bytes;
    uint32_t       dims_count;
    int            type;
} pt_result_t;

typedef struct {
    pt_result_t *items;         /* room for output_count, the caller's       */
    void        *held;          /* the engine's own                          */
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

/* Tables of that size, for the engine's names; false without memory. */
bool pt_signature_init(pt_signature_t *s, uint32_t parameter_count,
    uint32_t output_count);

/* engine may be NULL. */
void pt_engine_free(pt_engine_t *engine);

#endif /* PT_ENGINE_H */
