#include "core/model/versions.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"

#define VERSIONS_MISSING_LOGGED 10u

static bool version_is_reserved(inf_slice_t name);
static int version_compare(const void *a, const void *b);
static size_t versions_latest(int64_t *versions, size_t count, uint32_t n);
static inf_err_t *versions_specific(
    const Inference__ModelVersionPolicy__Specific *policy,
    const char *model_name, int64_t *versions, size_t *count);

inf_version_verdict_t
inf_version_parse(inf_slice_t name, int64_t *version)
{
    if (version_is_reserved(name)) {
        return INF_VERSION_RESERVED;
    }

    if (name.len == 0) {
        return INF_VERSION_NOT_A_NUMBER;
    }

    for (size_t i = 0; i < name.len; i++) {
        if (name.data[i] < '0' || name.data[i] > '9') {
            return INF_VERSION_NOT_A_NUMBER;
        }
    }

    if (name.len > 1 && name.data[0] == '0') {
        return INF_VERSION_LEADING_ZERO;
    }

    int64_t value = 0;
    for (size_t i = 0; i < name.len; i++) {
        int64_t digit = name.data[i] - '0';
        if (value > (INT64_MAX - digit) / 10) {
            return INF_VERSION_TOO_LARGE;
        }

        value = value * 10 + digit;
    }

    *version = value;
    return INF_VERSION_OK;
}

const char *
inf_version_verdict_text(inf_version_verdict_t v)
{
    switch (v) {
    case INF_VERSION_OK:
    case INF_VERSION_RESERVED:
        break;
    case INF_VERSION_NOT_A_NUMBER:
        return "which fails to convert to integral number";
    case INF_VERSION_LEADING_ZERO:
        return "which contains leading zeros in its directory name";
    case INF_VERSION_TOO_LARGE:
        return "whose number is above 9223372036854775807";
    }

    return NULL;
}

size_t
inf_versions_sort(int64_t *versions, size_t count)
{
    if (count < 2) {
        return count;
    }

    qsort(versions, count, sizeof(*versions), version_compare);

    size_t kept = 1;
    for (size_t i = 1; i < count; i++) {
        if (versions[i] != versions[kept - 1]) {
            versions[kept++] = versions[i];
        }
    }

    return kept;
}

inf_err_t *
inf_versions_choose(const Inference__ModelVersionPolicy *policy,
    const char *model_name, int64_t *versions, size_t count, size_t *chosen)
{
    size_t n = count;

    if (policy == NULL) {
        n = versions_latest(versions, count, 1);

    } else if (policy->policy_choice_case
        == INFERENCE__MODEL_VERSION_POLICY__POLICY_CHOICE_LATEST)
    {
        n = versions_latest(versions, count, policy->latest->num_versions);

    } else if (policy->policy_choice_case
        == INFERENCE__MODEL_VERSION_POLICY__POLICY_CHOICE_SPECIFIC)
    {
        inf_err_t *err = versions_specific(policy->specific, model_name,
            versions, &n);
        if (err != NULL) {
            return err;
        }
    }

    if (n == 0) {
        inf_err_t *err = inf_err_new(INF_ERR_INVALID_ARG, "at least one "
            "version must be available under the version policy of model "
            "'%s'", model_name);
        return count > 0 ? err
            : inf_err_note(err, "no version directory: put the model's file"
                " into %s/1, which is empty for a model without files",
                model_name);
    }

    *chosen = n;
    return NULL;
}

inf_err_t *
inf_versions_select(const Inference__ModelVersionPolicy *policy,
    const char *model_name, const int64_t *versions, size_t count,
    int64_t **out, size_t *chosen)
{
    int64_t *list = calloc(count + 1, sizeof(*list));
    if (list == NULL) {
        return inf_err_nomem();
    }

    if (count > 0) {
        memcpy(list, versions, count * sizeof(*list));
    }

    inf_err_t *err = inf_versions_choose(policy, model_name, list, count,
        chosen);
    if (err != NULL) {
        free(list);
        return err;
    }

    *out = list;
    return NULL;
}

static bool
version_is_reserved(inf_slice_t name)
{
    return inf_slice_eq(name, INF_SLICE("warmup"))
        || inf_slice_eq(name, INF_SLICE("initial_state"))
        || inf_slice_eq(name, INF_SLICE("configs"));
}

static int
version_compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *) a;
    int64_t y = *(const int64_t *) b;
    return (x > y) - (x < y);
}

static size_t
versions_latest(int64_t *versions, size_t count, uint32_t n)
{
    if (count <= n) {
        return count;
    }

    if (n > 0) {
        memmove(versions, versions + (count - n), n * sizeof(*versions));
    }

    return n;
}

static inf_err_t *
versions_specific(const Inference__ModelVersionPolicy__Specific *policy,
    const char *model_name, int64_t *versions, size_t *count)
{
    bool *wanted = calloc(*count + 1, sizeof(*wanted));
    if (wanted == NULL) {
        return inf_err_nomem();
    }

    size_t missing = 0;
    for (size_t i = 0; i < policy->n_versions; i++) {
        const int64_t *hit = bsearch(&policy->versions[i], versions, *count,
            sizeof(*versions), version_compare);
        if (hit != NULL) {
            wanted[hit - versions] = true;

        } else if (missing++ < VERSIONS_MISSING_LOGGED) {
            inf_log(INF_LOG_WARN, "version %lld is specified for model '%s', "
                "but the version directory is not present",
                (long long) policy->versions[i], model_name);
        }
    }

    if (missing > VERSIONS_MISSING_LOGGED) {
        inf_log(INF_LOG_WARN, "model '%s': %zu more specified versions have "
            "no directory", model_name, missing - VERSIONS_MISSING_LOGGED);
    }

    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        if (wanted[i]) {
            versions[kept++] = versions[i];
        }
    }

    free(wanted);
    *count = kept;
    return NULL;
}
