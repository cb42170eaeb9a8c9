/*
 * instance_groups.h - which instances of a model to make, and on which devices.
 *
 * Owner    The configuration stays the caller's and gets normalized groups; the
 *          list of instances belongs to the caller (fini), with everything that
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

/* Limits of instances of one model version, each of which is a thread.  The
   second applies to configurations of load requests. */
#define INF_INSTANCES_MAX           4096u
#define INF_INSTANCES_MAX_REQUESTED 1024u

/* The values are those of TRITONSERVER_InstanceGroupKind. */
typedef enum {
    INF_INSTANCE_AUTO  = 0,
    INF_INSTANCE_CPU   = 1,
    INF_INSTANCE_GPU   = 2,
    INF_INSTANCE_MODEL = 3
} inf_instance_kind_t;

/* Usable GPUs, which have the minimum compute capability. */
typedef struct {
    const int32_t *ids;
    size_t         count;
    double         min_capability;
    const char    *why_none;        /* NULL: there are some, or no driver    */

    /* Why a present GPU is not usable; NULL: unknown. */
    const char  *(*left_out)(int64_t id);
} inf_gpus_t;

/* A preferred group of a backend (TRITONBACKEND_BackendAttribute...). */
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
    const char *kind;           /* such as "KIND_NVDLA"                    */
    int64_t     id;
} inf_secondary_device_t;

typedef struct {
    char                   *name;           /* "<group>_<k>"               */
    inf_instance_kind_t     kind;           /* never AUTO                  */
    int32_t                 device_id;      /* 0 unless on a GPU           */
    bool                    passive;
    char                   *host_policy;    /* "cpu", "gpu_0", "model", or
                                               the group's own             */
    char *const            *profiles;       /* of settings                 */
    size_t                  profile_count;
    inf_secondary_device_t *secondary;
    size_t                  secondary_count;
    Inference__ModelInstanceGroup *settings;    /* of the group; NULL:
                                                   none                    */
    inf_buf_t               likeness;       /* settings without the group's
                                               name and count, packed      */
} inf_instance_spec_t;

typedef struct {
    inf_instance_spec_t *items;     /* by group, then k, then device       */
    size_t               count;
} inf_instance_specs_t;

/* Sets defaults, names and kinds; does nothing to an ensemble. */
INF_CHECK inf_err_t *inf_instance_groups_normalize(
    Inference__ModelConfig *msg, const inf_instance_host_t *host);

/* Checks the rules of normalised groups. */
INF_CHECK inf_err_t *inf_instance_groups_validate(
    const Inference__ModelConfig *msg, const inf_gpus_t *gpus);
void inf_instance_groups_find(const Inference__ModelConfig *msg,
    const inf_gpus_t *gpus, uint32_t max_instances, inf_findings_t *f);

/* Adds findings that need no normalised group and hold on any machine. */
void inf_instance_groups_find_anywhere(const Inference__ModelConfig *msg,
    inf_findings_t *f);

/* Makes the list of instances of valid groups. */
INF_CHECK inf_err_t *inf_instance_specs_make(
    const Inference__ModelConfig *msg, inf_instance_specs_t *out);
void inf_instance_specs_fini(inf_instance_specs_t *s);
void inf_instance_spec_fini(inf_instance_spec_t *spec);

/* Whether two instances have equal device and settings. */
bool inf_instance_spec_alike(const inf_instance_spec_t *a,
    const inf_instance_spec_t *b);

#endif /* INF_MODEL_INSTANCE_GROUPS_H */
