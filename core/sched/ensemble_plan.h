/*
 * ensemble_plan.h - the steps of an ensemble and the tensors between them as
 *                   one constant table, checked against the composing models.
 *
 * Owner    The ensemble owns its plan; the plan holds a reference to the model
 *          of each step, and refers to the ensemble's configuration.
 * Thread   any, after new().
 * Units    steps, tensors and domains are indexes.
 * Errors   INF_ERR_INVALID_ARG: the models do not fit together; the text names
 *          the ensemble, the tensor and the models.
 * Route    loader -> [plan] -> flow, step requests
 *
 * A domain is a source of items: domain 0 is the request itself, and every step
 * with a decoupled model begins one, because each of its responses is an item.
 * A step reads tensors of one domain only, so that only values of one item are
 * combined.
 */

#ifndef INF_SCHED_ENSEMBLE_PLAN_H
#define INF_SCHED_ENSEMBLE_PLAN_H

#include "core/base/arena.h"
#include "core/model/model.h"

#define INF_PLAN_NONE UINT32_MAX

/* A set of steps: a bit each, in words of 64. */
typedef uint64_t inf_plan_steps_t;

static inline bool
inf_plan_steps_has(const inf_plan_steps_t *set, uint32_t step)
{
    return (set[step / 64] >> (step % 64)) & 1u;
}

/* A model's input or output, and the tensor it is mapped to. */
typedef struct {
    const inf_config_tensor_t *config;
    uint32_t                   tensor;
} inf_plan_port_t;

typedef struct {
    const char                *name;
    const inf_config_tensor_t *output;      /* the ensemble's output; NULL:
                                               none                          */
    uint32_t                   datatype;
    uint32_t                   producer;    /* step; NONE: the client        */
    uint32_t                   domain;
    uint32_t                   place;       /* index within the domain       */
    uint32_t                   consumer_count;
    const uint32_t            *consumers;   /* steps, without repetition     */
    bool                       batched;     /* in the producer's output      */
    bool                       to_gpu;      /* a consumer has a GPU instance */
} inf_plan_tensor_t;

typedef struct {
    inf_model_t     *model;                 /* holds a reference             */
    inf_plan_port_t *inputs;
    uint32_t         input_count;
    inf_plan_port_t *outputs;
    uint32_t         output_count;
    uint32_t         domain;                /* of its inputs                 */
    uint32_t         out_domain;            /* of its outputs                */
    bool             batched;
} inf_plan_step_t;

typedef struct {
    uint32_t parent;                        /* NONE: domain 0                */
    uint32_t depth;
    uint32_t tensor_count;
    const uint32_t *tensors;                /* by place                      */
} inf_plan_domain_t;

typedef struct {
    inf_model_t            *model;          /* the ensemble, no reference    */
    inf_plan_step_t        *steps;
    uint32_t                step_count;
    uint32_t                step_words;     /* of a set of steps             */
    inf_plan_tensor_t      *tensors;
    uint32_t                tensor_count;
    inf_plan_domain_t      *domains;
    uint32_t                domain_count;
    uint32_t                most_tensors;   /* maximum of a domain           */
    const uint32_t         *inputs;         /* tensor of each input          */
    const uint32_t         *outputs;        /* tensor of each output         */
    const inf_plan_steps_t *needs;          /* by output: steps it needs     */
    uint32_t                max_inflight;   /* limit per step; 0: none       */
    uint32_t                height;         /* depth of nested ensembles     */
    bool                    batched;
    inf_arena_t             arena;
} inf_plan_t;

/* Creates the plan; composing[i] is the model of step i.  On error *at is the
   step that does not fit, or INF_PLAN_NONE; at may be NULL. */
INF_CHECK inf_err_t *inf_plan_new(inf_model_t *model,
    inf_model_t *const *composing, size_t count, uint32_t *at,
    inf_plan_t **out);

/* plan may be NULL. */
void inf_plan_free(inf_plan_t *plan);

/* Adds the steps that the output needs to set, which is zeroed at first. */
void inf_plan_add_needs(const inf_plan_t *plan, uint32_t output,
    inf_plan_steps_t *set);

#endif /* INF_SCHED_ENSEMBLE_PLAN_H */
