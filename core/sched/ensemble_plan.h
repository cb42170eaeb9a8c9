/*
 * ensemble_plan.h - the steps of an ensemble and the tensors between them as
 *                   one table that never changes: what the models it is
 *                   composed of say is checked while it is made.
 *
 * Owner    The ensemble owns its plan; the plan holds a reference to the
 *          model of each step, and views of the ensemble's configuration.
 * Thread   any, after new().
 * Units    steps, tensors and domains are indexes.
 * Errors   INF_ERR_INVALID_ARG: the models don't fit together; the text names
 *          the ensemble, the tensor and the models.
 * Route    loader -> [plan] -> flow, step requests
 *
 * A domain is a source of items: domain 0 is the request itself, and every
 * step whose model is decoupled starts one, because each of its responses is
 * an item of its own.  A step reads tensors of one domain alone, so that the
 * values of one item meet and no others.
 */

#ifndef INF_SCHED_ENSEMBLE_PLAN_H
#define INF_SCHED_ENSEMBLE_PLAN_H

#include "core/base/arena.h"
#include "core/model/model.h"

#define INF_PLAN_NONE UINT32_MAX

/* A set of steps: one bit each, in words of 64. */
typedef uint64_t inf_plan_steps_t;

static inline bool
inf_plan_steps_has(const inf_plan_steps_t *set, uint32_t step)
{
    return (set[step / 64] >> (step % 64)) & 1u;
}

/* A model's input or output, and the tensor that it is mapped to. */
typedef struct {
    const inf_config_tensor_t *config;
    uint32_t                   tensor;
} inf_plan_port_t;

typedef struct {
    const char                *name;
    const inf_config_tensor_t *output;      /* the ensemble's; NULL: none    */
    uint32_t                   datatype;
    uint32_t                   producer;    /* step; NONE: the client        */
    uint32_t                   domain;
    uint32_t                   place;       /* among those of the domain     */
    uint32_t                   consumer_count;
    const uint32_t            *consumers;   /* steps, each once              */
    bool                       batched;     /* as the producer makes it      */
    bool                       to_gpu;      /* a consumer has an instance on a
                                               GPU                           */
} inf_plan_tensor_t;

typedef struct {
    inf_model_t     *model;                 /* a reference                   */
    inf_plan_port_t *inputs;
    uint32_t         input_count;
    inf_plan_port_t *outputs;
    uint32_t         output_count;
    uint32_t         domain;                /* of what it reads              */
    uint32_t         out_domain;            /* of what it writes             */
    bool             batched;
} inf_plan_step_t;

typedef struct {
    uint32_t parent;                        /* NONE: domain 0's              */
    uint32_t depth;
    uint32_t tensor_count;
    const uint32_t *tensors;                /* by place                      */
} inf_plan_domain_t;

typedef struct {
    inf_model_t            *model;          /* the ensemble's, no reference  */
    inf_plan_step_t        *steps;
    uint32_t                step_count;
    uint32_t                step_words;     /* of a set of steps             */
    inf_plan_tensor_t      *tensors;
    uint32_t                tensor_count;
    inf_plan_domain_t      *domains;
    uint32_t                domain_count;
    uint32_t                most_tensors;   /* of a domain                   */
    const uint32_t         *inputs;         /* tensor of each of its inputs  */
    const uint32_t         *outputs;        /* likewise                      */
    const inf_plan_steps_t *needs;          /* of each output: the steps     */
    uint32_t                max_inflight;   /* of a step; 0: no limit        */
    uint32_t                height;         /* ensembles within ensembles    */
    bool                    batched;
    inf_arena_t             arena;
} inf_plan_t;

/* composing[i] is the model of step i.  On error *at is the step that doesn't
   fit, or INF_PLAN_NONE; at may be NULL. */
INF_CHECK inf_err_t *inf_plan_new(inf_model_t *model,
    inf_model_t *const *composing, size_t count, uint32_t *at,
    inf_plan_t **out);

/* plan may be NULL. */
void inf_plan_free(inf_plan_t *plan);

/* The steps that wanted outputs need are added to set, which is zeroed. */
void inf_plan_add_needs(const inf_plan_t *plan, uint32_t output,
    inf_plan_steps_t *set);

#endif /* INF_SCHED_ENSEMBLE_PLAN_H */
