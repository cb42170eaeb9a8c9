#include "core/model/instance_groups.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/model/config_edit.h"
#include "core/proto/message.h"

typedef Inference__ModelInstanceGroup group_t;

#define GPUS_TOLD 8             /* maximum of omitted GPUs in a text         */

#define KIND_AUTO  INFERENCE__MODEL_INSTANCE_GROUP__KIND__KIND_AUTO
#define KIND_GPU   INFERENCE__MODEL_INSTANCE_GROUP__KIND__KIND_GPU
#define KIND_CPU   INFERENCE__MODEL_INSTANCE_GROUP__KIND__KIND_CPU
#define KIND_MODEL INFERENCE__MODEL_INSTANCE_GROUP__KIND__KIND_MODEL

/* A group being checked, for texts. */
typedef struct {
    const Inference__ModelConfig *msg;
    const group_t                *group;
    size_t                        index;
    const inf_gpus_t             *gpus;
    inf_findings_t               *findings;
} check_t;

static bool groups_apply(const Inference__ModelConfig *msg);
static inf_err_t *groups_add_default(Inference__ModelConfig *msg,
    const inf_instance_host_t *host);
static inf_err_t *default_take(group_t *group,
    const inf_preferred_group_t *preferred, const inf_gpus_t *gpus,
    bool *taken);
static inf_err_t *group_normalize(Inference__ModelConfig *msg, size_t index,
    const inf_instance_host_t *host);
static inf_err_t *group_name(const Inference__ModelConfig *msg,
    group_t *group, size_t index);
static void group_resolve_auto(group_t *group, const inf_gpus_t *gpus);
static inf_err_t *group_prefer(group_t *group,
    const inf_instance_host_t *host);
static int32_t group_default_count(const group_t *group,
    const char *backend);
static inf_err_t *group_all_gpus(group_t *group, const inf_gpus_t *gpus);
static bool gpu_is_supported(const inf_gpus_t *gpus, int64_t id);
static int32_t count_of(uint64_t count);
static inf_instance_kind_t kind_of(const group_t *group);
static void check_group(const check_t *c);
static void check_anywhere(const check_t *c);
static void check_gpus(const check_t *c);
static void check_any_gpu(const check_t *c);
static void check_gpu_ids(const check_t *c);
static void check_profiles(const check_t *c);
static void check_total(const Inference__ModelConfig *msg,
    uint32_t max_instances, inf_findings_t *f);
static void check_add(const check_t *c, inf_err_code_t code,
    const char *field, const char *text);
static void check_add_buf(const check_t *c, const char *field,
    inf_buf_t *text);
static bool profile_is_valid(const char *profile);
static uint64_t group_instances(const group_t *group);
static inf_err_t *spec_fill(inf_instance_spec_t *spec, const group_t *group,
    int32_t k, int32_t device);
static inf_err_t *spec_settings(inf_instance_spec_t *spec,
    const group_t *group);
static char *spec_host_policy(const group_t *group, int32_t device);
static bool spec_secondary(inf_instance_spec_t *spec, const group_t *group);

inf_err_t *
inf_instance_groups_normalize(Inference__ModelConfig *msg,
    const inf_instance_host_t *host)
{
    if (!groups_apply(msg)) {
        return NULL;
    }

    if (msg->n_instance_group == 0) {
        inf_err_t *err = groups_add_default(msg, host);
        if (err != NULL) {
            return err;
        }
    }

    for (size_t i = 0; i < msg->n_instance_group; i++) {
        inf_err_t *err = group_normalize(msg, i, host);
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

inf_err_t *
inf_instance_groups_validate(const Inference__ModelConfig *msg,
    const inf_gpus_t *gpus)
{
    inf_findings_t f;
    inf_findings_init(&f);
    inf_instance_groups_find(msg, gpus, INF_INSTANCES_MAX, &f);
    inf_err_t *err = inf_findings_error(&f, NULL);
    inf_findings_fini(&f);
    return err;
}

void
inf_instance_groups_find(const Inference__ModelConfig *msg,
    const inf_gpus_t *gpus, uint32_t max_instances, inf_findings_t *f)
{
    if (!groups_apply(msg)) {
        return;
    }

    if (msg->n_instance_group == 0) {
        inf_findings_add(f, INF_ERR_INVALID_ARG, "instance_group",
            "must specify one or more 'instance group's for %s", msg->name);
    }

    for (size_t i = 0; i < msg->n_instance_group; i++) {
        check_t c = { msg, msg->instance_group[i], i, gpus, f };
        check_group(&c);
    }

    check_total(msg, max_instances, f);
}

void
inf_instance_groups_find_anywhere(const Inference__ModelConfig *msg,
    inf_findings_t *f)
{
    for (size_t i = 0; groups_apply(msg) && i < msg->n_instance_group; i++) {
        check_t c = { msg, msg->instance_group[i], i, NULL, f };
        check_anywhere(&c);
    }
}

inf_err_t *
inf_instance_specs_make(const Inference__ModelConfig *msg,
    inf_instance_specs_t *out)
{
    uint64_t total = 0;

    *out = (inf_instance_specs_t) { NULL, 0 };
    for (size_t i = 0; i < msg->n_instance_group; i++) {
        total += group_instances(msg->instance_group[i]);
    }

    out->items = calloc((size_t) total + 1, sizeof(*out->items));
    if (out->items == NULL) {
        return inf_err_nomem();
    }

    for (size_t i = 0; i < msg->n_instance_group; i++) {
        const group_t *group = msg->instance_group[i];
        size_t devices = group->kind == KIND_GPU ? group->n_gpus : 1;

        for (int32_t k = 0; k < group->count; k++) {
            for (size_t d = 0; d < devices; d++) {
                int32_t device = group->kind == KIND_GPU ? group->gpus[d] : 0;
                inf_err_t *err = spec_fill(&out->items[out->count++], group,
                    k, device);
                if (err != NULL) {
                    inf_instance_specs_fini(out);
                    return err;
                }
            }
        }
    }

    return NULL;
}

void
inf_instance_specs_fini(inf_instance_specs_t *s)
{
    for (size_t i = 0; i < s->count; i++) {
        inf_instance_spec_fini(&s->items[i]);
    }

    free(s->items);
    *s = (inf_instance_specs_t) { NULL, 0 };
}

void
inf_instance_spec_fini(inf_instance_spec_t *spec)
{
    free(spec->name);
    free(spec->host_policy);
    free(spec->secondary);
    inf_message_free((ProtobufCMessage *) spec->settings);
    inf_buf_fini(&spec->likeness);
}

bool
inf_instance_spec_alike(const inf_instance_spec_t *a,
    const inf_instance_spec_t *b)
{
    return a->device_id == b->device_id && a->likeness.len == b->likeness.len
        && (a->likeness.len == 0
            || memcmp(a->likeness.data, b->likeness.data, a->likeness.len)
                == 0);
}

static bool
groups_apply(const Inference__ModelConfig *msg)
{
    return msg->scheduling_choice_case
        != INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_ENSEMBLE_SCHEDULING;
}

/* Adds a group named like the model, shaped by the first preferred group that
   is possible. */
static inf_err_t *
groups_add_default(Inference__ModelConfig *msg,
    const inf_instance_host_t *host)
{
    group_t *group;
    inf_err_t *err = inf_config_put_message(&msg->base, "instance_group",
        &group);
    if (err == NULL) {
        err = inf_config_put_text(&group->base, "name", msg->name);
    }

    bool taken = false;
    for (size_t i = 0; err == NULL && !taken && i < host->preferred_count;
        i++)
    {
        err = default_take(group, &host->preferred[i], &host->gpus, &taken);
    }

    return err;
}

static inf_err_t *
default_take(group_t *group, const inf_preferred_group_t *preferred,
    const inf_gpus_t *gpus, bool *taken)
{
    bool gpu = preferred->kind == INF_INSTANCE_GPU;
    if (gpu && gpus->count == 0) {
        return NULL;
    }

    for (size_t i = 0; i < preferred->gpu_count; i++) {
        bool listed = preferred->gpus[i] <= INT32_MAX && (gpu
            ? gpu_is_supported(gpus, (int64_t) preferred->gpus[i])
            : preferred->kind == INF_INSTANCE_AUTO);

        if (listed) {
            inf_err_t *err = inf_config_put_int(&group->base, "gpus",
                (int64_t) preferred->gpus[i]);
            if (err != NULL) {
                return err;
            }
        }
    }

    if (gpu && preferred->gpu_count > 0 && group->n_gpus == 0) {
        return NULL;                    /* none of its GPUs is here */
    }

    switch (preferred->kind) {
    case INF_INSTANCE_AUTO:
        group->kind = KIND_AUTO;
        break;
    case INF_INSTANCE_CPU:
        group->kind = KIND_CPU;
        break;
    case INF_INSTANCE_GPU:
        group->kind = KIND_GPU;
        break;
    case INF_INSTANCE_MODEL:
        group->kind = KIND_MODEL;
        break;
    }

    group->count = count_of(preferred->count);
    *taken = true;
    return NULL;
}

static inf_err_t *
group_normalize(Inference__ModelConfig *msg, size_t index,
    const inf_instance_host_t *host)
{
    group_t *group = msg->instance_group[index];

    inf_err_t *err = group_name(msg, group, index);
    if (err != NULL) {
        return err;
    }

    group_resolve_auto(group, &host->gpus);
    err = group_prefer(group, host);
    if (err != NULL) {
        return err;
    }

    if (group->count < 1) {
        group->count = group_default_count(group, msg->backend);
    }

    return group_all_gpus(group, &host->gpus);
}

static inf_err_t *
group_name(const Inference__ModelConfig *msg, group_t *group, size_t index)
{
    if (group->name[0] != '\0') {
        return NULL;
    }

    char *name = NULL;
    if (asprintf(&name, "%s_%zu", msg->name, index) < 0) {
        return inf_err_nomem();
    }

    inf_err_t *err = inf_config_put_text(&group->base, "name", name);
    free(name);
    return err;
}

static void
group_resolve_auto(group_t *group, const inf_gpus_t *gpus)
{
    if (group->kind != KIND_AUTO) {
        return;
    }

    group->kind = gpus->count > 0 ? KIND_GPU : KIND_CPU;
    for (size_t i = 0; i < group->n_gpus; i++) {
        if (!gpu_is_supported(gpus, group->gpus[i])) {
            group->kind = KIND_CPU;
        }
    }
}

/* Fills fields that the configuration leaves unset from preferred groups of the
   same kind. */
static inf_err_t *
group_prefer(group_t *group, const inf_instance_host_t *host)
{
    for (size_t i = 0; i < host->preferred_count; i++) {
        const inf_preferred_group_t *preferred = &host->preferred[i];
        if (preferred->kind != kind_of(group)) {
            continue;
        }

        if (group->kind == KIND_GPU && group->n_gpus == 0
            && preferred->gpu_count > 0)
        {
            for (size_t k = 0; k < preferred->gpu_count; k++) {
                if (preferred->gpus[k] > INT32_MAX
                    || !gpu_is_supported(&host->gpus,
                        (int64_t) preferred->gpus[k]))
                {
                    continue;
                }

                inf_err_t *err = inf_config_put_int(&group->base, "gpus",
                    (int64_t) preferred->gpus[k]);
                if (err != NULL) {
                    return err;
                }
            }

            if (group->n_gpus == 0) {
                continue;
            }
        }

        if (group->count < 1) {
            group->count = count_of(preferred->count);
        }
    }

    return NULL;
}

static int32_t
group_default_count(const group_t *group, const char *backend)
{
    bool two = group->kind == KIND_CPU
        && (strcmp(backend, "onnxruntime") == 0
            || strcmp(backend, "tensorflow") == 0);
    return two ? 2 : 1;
}

static inf_err_t *
group_all_gpus(group_t *group, const inf_gpus_t *gpus)
{
    if (group->kind != KIND_GPU || group->n_gpus > 0) {
        return NULL;
    }

    for (size_t i = 0; i < gpus->count; i++) {
        inf_err_t *err = inf_config_put_int(&group->base, "gpus",
            gpus->ids[i]);
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

static bool
gpu_is_supported(const inf_gpus_t *gpus, int64_t id)
{
    for (size_t i = 0; i < gpus->count; i++) {
        if (gpus->ids[i] == id) {
            return true;
        }
    }

    return false;
}

static int32_t
count_of(uint64_t count)
{
    return count > INT32_MAX ? INT32_MAX : (int32_t) count;
}

/* Converts the kind: the ABI and the .proto file use different numbers. */
static inf_instance_kind_t
kind_of(const group_t *group)
{
    switch (group->kind) {
    case KIND_GPU:
        return INF_INSTANCE_GPU;
    case KIND_CPU:
        return INF_INSTANCE_CPU;
    case KIND_MODEL:
        return INF_INSTANCE_MODEL;
    default:
        return INF_INSTANCE_AUTO;
    }
}

static void
check_group(const check_t *c)
{
    if (c->group->kind == KIND_GPU) {
        check_gpus(c);

    } else if (c->group->kind == KIND_AUTO) {
        check_add(c, INF_ERR_INTERNAL, "kind",
            "has unexpected kind KIND_AUTO");
    }

    check_anywhere(c);
}

/* Checks that do not depend on the machine's GPUs. */
static void
check_anywhere(const check_t *c)
{
    switch ((unsigned) c->group->kind) {
    case KIND_MODEL:
        if (c->group->n_gpus > 0) {
            check_add(c, INF_ERR_INVALID_ARG, "gpus",
                "has kind KIND_MODEL but specifies one or more GPUs");
        }

        break;

    case KIND_CPU:
        if (c->group->n_gpus > 0) {
            check_add(c, INF_ERR_INVALID_ARG, "gpus",
                "has kind KIND_CPU but specifies one or more GPUs");
        }

        break;

    case KIND_GPU:
    case KIND_AUTO:
        break;

    default:                            /* a file may contain any number */
        check_add(c, INF_ERR_INVALID_ARG, "kind", "has an unknown kind; "
            "known are KIND_AUTO, KIND_GPU, KIND_CPU and KIND_MODEL");
    }

    check_profiles(c);
}

static void
check_gpus(const check_t *c)
{
    if (c->group->n_gpus > 0) {
        check_gpu_ids(c);
        return;
    }

    if (c->gpus->count == 0) {
        check_any_gpu(c);
        return;
    }

    check_add(c, INF_ERR_INVALID_ARG, "gpus",
        "has kind KIND_GPU but specifies no GPUs");
}

/* Checks that there is a GPU; adds the reason unless the machine has none. */
static void
check_any_gpu(const check_t *c)
{
    inf_buf_t text;

    inf_buf_init(&text);
    inf_buf_printf(&text, "has kind KIND_GPU but no GPUs are available");
    if (c->gpus->why_none != NULL) {
        inf_buf_printf(&text, ": %s", c->gpus->why_none);
    }
    for (int64_t id = 0; c->gpus->left_out != NULL && id < GPUS_TOLD; id++) {
        const char *why = c->gpus->left_out(id);
        if (why != NULL) {
            inf_buf_printf(&text, "; GPU %d is left out: %s", (int) id, why);
        }
    }
    check_add_buf(c, "kind", &text);
}

static void
check_gpu_ids(const check_t *c)
{
    inf_buf_t text;

    for (size_t i = 0; i < c->group->n_gpus; i++) {
        int32_t id = c->group->gpus[i];
        if (gpu_is_supported(c->gpus, id)) {
            continue;
        }

        inf_buf_init(&text);
        inf_buf_printf(&text, "specifies invalid or unsupported gpu id %d. "
            "GPUs with at least the minimum required CUDA compute "
            "compatibility of %f are:", id, c->gpus->min_capability);

        for (size_t k = 0; k < c->gpus->count; k++) {
            inf_buf_printf(&text, " %d", c->gpus->ids[k]);
        }

        const char *why = c->gpus->left_out != NULL ? c->gpus->left_out(id)
            : NULL;
        if (why != NULL) {
            inf_buf_printf(&text, "; GPU %d is left out: %s", id, why);
        } else if (c->gpus->why_none != NULL) {
            inf_buf_printf(&text, "; there are none: %s", c->gpus->why_none);
        }

        check_add_buf(c, "gpus", &text);
    }
}

static void
check_profiles(const check_t *c)
{
    if (c->group->n_profile == 0) {
        return;
    }

    if (strcmp(c->msg->platform, "tensorrt_plan") != 0) {
        inf_buf_t text;

        inf_buf_init(&text);
        inf_buf_printf(&text, "and platform %sspecifies profile field which "
            "is only supported for TensorRT models", c->msg->platform);
        check_add_buf(c, "profile", &text);
        return;
    }

    for (size_t i = 0; i < c->group->n_profile; i++) {
        if (!profile_is_valid(c->group->profile[i])) {
            check_add(c, INF_ERR_INVALID_ARG, "profile", "specifies invalid "
                "profile. The field should contain the string "
                "representation of a non-negative integer");
        }
    }
}

/* Checks the total number; the finding is at the largest group. */
static void
check_total(const Inference__ModelConfig *msg, uint32_t max_instances,
    inf_findings_t *f)
{
    char key[INF_KEY_MAX];
    uint64_t total = 0;
    uint64_t most = 0;
    size_t largest = 0;

    for (size_t i = 0; i < msg->n_instance_group; i++) {
        uint64_t n = group_instances(msg->instance_group[i]);
        total = n > UINT64_MAX - total ? UINT64_MAX : total + n;
        largest = n > most ? i : largest;
        most = n > most ? n : most;
    }

    if (total > max_instances) {
        inf_findings_add(f, INF_ERR_INVALID_ARG,
            inf_key(key, "instance_group[%zu].count", largest),
            "instance groups of model %s ask for %" PRIu64 " instances, the "
            "limit %sis %" PRIu32, msg->name, total,
            max_instances < INF_INSTANCES_MAX ? "for a load request " : "",
            max_instances);
    }
}

static void
check_add(const check_t *c, inf_err_code_t code, const char *field,
    const char *text)
{
    char key[INF_KEY_MAX];
    char name[INF_KEY_MAX];

    /* its name after normalization */
    inf_key(name, "%s_%zu", c->msg->name, c->index);
    inf_findings_add(c->findings, code,
        inf_key(key, "instance_group[%zu].%s", c->index, field),
        "instance group %s of model %s %s",
        c->group->name[0] != '\0' ? c->group->name : name, c->msg->name,
        text);
}

/* Adds a finding; frees text. */
static void
check_add_buf(const check_t *c, const char *field, inf_buf_t *text)
{
    if (text->failed) {
        c->findings->lost++;

    } else {
        check_add(c, INF_ERR_INVALID_ARG, field, text->data);
    }

    inf_buf_fini(text);
}

static bool
profile_is_valid(const char *profile)
{
    size_t len = strlen(profile);
    return len > 0 && len < 10 && strspn(profile, "0123456789") == len;
}

static uint64_t
group_instances(const group_t *group)
{
    uint64_t count = group->count < 1 ? 0 : (uint64_t) group->count;
    uint64_t devices = group->kind == KIND_GPU ? group->n_gpus : 1;
    uint64_t product;

    return __builtin_mul_overflow(count, devices, &product) ? UINT64_MAX
                                                            : product;
}

static inf_err_t *
spec_fill(inf_instance_spec_t *spec, const group_t *group, int32_t k,
    int32_t device)
{
    inf_buf_init(&spec->likeness);
    inf_err_t *err = spec_settings(spec, group);
    if (err != NULL) {
        return err;
    }

    spec->kind = kind_of(group);
    spec->device_id = device;
    spec->passive = group->passive;
    spec->profiles = spec->settings->profile;
    spec->profile_count = spec->settings->n_profile;

    if (asprintf(&spec->name, "%s_%d", group->name, k) < 0) {
        spec->name = NULL;
        return inf_err_nomem();
    }

    spec->host_policy = spec_host_policy(group, device);
    if (spec->host_policy == NULL || !spec_secondary(spec, group)) {
        return inf_err_nomem();
    }

    return NULL;
}

static inf_err_t *
spec_settings(inf_instance_spec_t *spec, const group_t *group)
{
    ProtobufCMessage *copy;
    group_t plain = *group;

    inf_err_t *err = inf_message_clone(&group->base, &copy);
    if (err != NULL) {
        return err;
    }

    spec->settings = (group_t *) (void *) copy;
    plain.name = (char *) (uintptr_t) "";
    plain.count = 0;
    return inf_message_pack(&plain.base, &spec->likeness);
}

static char *
spec_host_policy(const group_t *group, int32_t device)
{
    if (group->host_policy[0] != '\0') {
        return strdup(group->host_policy);
    }

    if (group->kind == KIND_GPU) {
        char *name = NULL;
        return asprintf(&name, "gpu_%d", device) < 0 ? NULL : name;
    }

    return strdup(group->kind == KIND_MODEL ? "model" : "cpu");
}

static bool
spec_secondary(inf_instance_spec_t *spec, const group_t *group)
{
    if (group->n_secondary_devices == 0) {
        return true;
    }

    spec->secondary = calloc(group->n_secondary_devices,
        sizeof(*spec->secondary));
    if (spec->secondary == NULL) {
        return false;
    }

    for (size_t i = 0; i < group->n_secondary_devices; i++) {
        spec->secondary[i].kind = "KIND_NVDLA";
        spec->secondary[i].id = group->secondary_devices[i]->device_id;
    }

    spec->secondary_count = group->n_secondary_devices;
    return true;
}
