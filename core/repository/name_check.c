#include "core/repository/name_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/near_name.h"

#define PLACE "\"%s %s\" in %s: "
#define PLACE_OF(n) (n)->load ? "inference_load_model" : "inference_model", \
    (n)->name, (n)->place

static inf_err_t *report(const inf_name_check_t *c, inf_log_level_t level,
    inf_buf_t *text);
static inf_log_level_t level_of(const inf_name_check_t *c,
    const NginxInference__NamedModel *n);
static bool has(const int64_t *versions, size_t count, int64_t version);
static void put_versions(inf_buf_t *text, const int64_t *versions,
    size_t count);

inf_err_t *
inf_name_check_unknown(const inf_name_check_t *c, const inf_scan_t *scan)
{
    inf_err_t *err = NULL;

    for (size_t i = 0; err == NULL && i < c->config->n_named_models; i++) {
        const NginxInference__NamedModel *n = c->config->named_models[i];
        inf_near_name_t near;
        inf_buf_t text;

        if (inf_scan_find(scan, n->name) != NULL) {
            continue;
        }

        inf_near_name_init(&near, inf_slice_str(n->name));
        for (size_t k = 0; k < scan->model_count; k++) {
            inf_near_name_offer(&near, scan->models[k].name);
        }

        inf_buf_init(&text);
        inf_buf_printf(&text, PLACE "no repository has a model of that name",
            PLACE_OF(n));
        if (near.best != NULL) {
            inf_buf_printf(&text, "; did you mean \"%s\"?", near.best);
        }
        err = report(c, level_of(c, n), &text);
    }
    return err;
}

inf_err_t *
inf_name_check_versions(const inf_name_check_t *c, const inf_scan_model_t *m,
    const int64_t *served, size_t count)
{
    inf_err_t *err = NULL;

    for (size_t i = 0; err == NULL && i < c->config->n_named_models; i++) {
        const NginxInference__NamedModel *n = c->config->named_models[i];
        inf_buf_t text;

        if (n->version == 0 || strcmp(n->name, m->name) != 0
            || has(served, count, n->version))
        {
            continue;
        }

        inf_buf_init(&text);
        if (has(m->versions, m->version_count, n->version)) {
            inf_buf_printf(&text, PLACE "the model's version_policy leaves "
                "version %" PRId64 " out; it serves", PLACE_OF(n),
                n->version);
        } else {
            inf_buf_printf(&text, PLACE "the model has no version %" PRId64
                "; it has", PLACE_OF(n), n->version);
        }
        put_versions(&text, served, count);
        err = report(c, level_of(c, n), &text);
    }
    return err;
}

/* Calls the reporter with text, and frees it. */
static inf_err_t *
report(const inf_name_check_t *c, inf_log_level_t level, inf_buf_t *text)
{
    inf_err_t *err = inf_buf_status(text);

    if (err == NULL) {
        c->fn(c->userp, level, inf_buf_slice(text).data);
    }
    inf_buf_fini(text);
    return err;
}

/* Error if the model can never be loaded, warning if a request or a poll may
   load it. */
static inf_log_level_t
level_of(const inf_name_check_t *c, const NginxInference__NamedModel *n)
{
    return n->load || c->config->model_control
        == NGINX_INFERENCE__MODEL_CONTROL__NONE ? INF_LOG_ERROR : INF_LOG_WARN;
}

static bool
has(const int64_t *versions, size_t count, int64_t version)
{
    for (size_t i = 0; i < count; i++) {
        if (versions[i] == version) {
            return true;
        }
    }
    return false;
}

static void
put_versions(inf_buf_t *text, const int64_t *versions, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        inf_buf_printf(text, "%s %" PRId64, i > 0 ? "," : "", versions[i]);
    }
}
