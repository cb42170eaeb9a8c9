/*
 * instance_groups.h - which instances of a model to make, and where.
 *
 * Owner    The configuration stays the caller's and gets normalised groups;
 *          the list of instances belongs to the caller (fini), with all that
 *          its items refer to.
 * Thread   one at a time per configuration.
 * Units    none.
 * Errors   INVALID_ARG: "instance group <g> of model <m> ...".
 * Route    loader: backend's preferred groups -> [instance groups] ->
 *          instances
 */

#ifndef INF_MODEL_INSTANCE_GROUPS_H
#define INF_MODEL_INSTANCE_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/buf.h"
#include "core/base/error.h"
#include "core/model/config_findings.h"
#include "model_config.pb-c.h"

/* More instances of one model version are rejected: each is a thread.  The
   second is for a configuration that comes with a load request. */
#define INF_INSTANCES_MAX           4096u
#define INF_INSTANCES_MAX_REQUESTED 1024u

/* The values are those of TRITONSERVER_InstanceGroupKind. */
typedef enum {
    INF_INSTANCE_AUTO  = 0,
    INF_INSTANCE_CPU   = 1,
    INF_INSTANCE_GPU   = 2,
    INF_INSTANCE_MODEL = 3
} inf_instance_kind_t;

/* GPUs that may be used, i.e. with the minimum compute capability. */
typedef struct {
    const int32_t *ids;
    size_t         count;
    double         min_capability;
    const char    *why_none;        /* NULL: there are some, or no driver    */

    /* Why a GPU that is there is not among them; NULL: nothing is known. */
    const char  *(*left_out)(int64_t id);
} inf_gpus_t;

/* A group as a backend prefers it (TRITONBACKEND_BackendAttribute...). */
typedef struct {
    inf_instance_kind_t  kind;
    uint64_t             count;         /* 0: no preference                */
    const uint64_t      *gpus;
    size_t               gpu_count;
} inf_preferred_group_t;

typedef struct {
    const inf_preferred_group_t *preferred;
    size_t                       preferred_count;
    inf_gpus_t                   gpus;
} inf_instance_host_t;

typedef struct {
    const char *kind;           /* "KIND_NVDLA"                            */
    int64_t     id;
} inf_secondary_device_t;

typedef struct {
    char                   *name;           /* "<group>_<k>"               */
    inf_instance_kind_t     kind;           /* never AUTO                  */
    int32_t                 device_id;      /* 0 unless GPU                */
    bool                    passive;
    char                   *host_policy;    /* "cpu", "gpu_0", "model", or
                                               the group's own             */
    char *const            *profiles;       /* of settings                 */
    size_t                  profile_count;
    inf_secondary_device_t *secondary;
    size_t                  secondary_count;
    Inference__ModelInstanceGroup *settings;    /* the group's; NULL: none */
    inf_buf_t               likeness;       /* settings but for the group's
                                               name and count, packed      */
} inf_instance_spec_t;

typedef struct {
    inf_instance_spec_t *items;     /* by group, then k, then device       */
    size_t               count;
} inf_instance_specs_t;

/* Defaults, names and kinds; does nothing to an ensemble. */
INF_CHECK inf_err_t *inf_instance_groups_normalize(
    Inference__ModelConfig *msg, const inf_instance_host_t *host);

/* The rules; normalised groups only. */
INF_CHECK inf_err_t *inf_instance_groups_validate(
    const Inference__ModelConfig *msg, const inf_gpus_t *gpus);
void inf_instance_groups_find(const Inference__ModelConfig *msg,
    const inf_gpus_t *gpus, uint32_t max_instances, inf_findings_t *f);

/* Findings that need no normalised group and hold on any machine. */
void inf_instance_groups_find_anywhere(const Inference__ModelConfig *msg,
    inf_findings_t *f);

/* The flat list; groups must have passed validation. */
INF_CHECK inf_err_t *inf_instance_specs_make(
    const Inference__ModelConfig *msg, inf_instance_specs_t *out);
void inf_instance_specs_fini(inf_instance_specs_t *s);
void inf_instance_spec_fini(inf_instance_spec_t *spec);

/* Whether an instance of one would do for the other: neither device nor
   settings differ. */
bool inf_instance_spec_alike(const inf_instance_spec_t *a,
    const inf_instance_spec_t *b);

#endif /* INF_MODEL_INSTANCE_GROUPS_H */
