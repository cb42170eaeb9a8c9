/* lifecycle_publish.c - publishes the serving models. */

#include "core/repository/lifecycle_parts.h"

#include <stdlib.h>

#include "core/base/log.h"

static inf_err_t *snapshot_entries(inf_lifecycle_t *lc,
    inf_registry_entry_t **out, uint32_t *count);
static bool serves_locked(const inf_model_record_t *r);

void
inf_lifecycle_publish(inf_lifecycle_t *lc)
{
    inf_lock(&lc->publish_lock);
    inf_lifecycle_publish_unlock(lc);
}

void
inf_lifecycle_publish_unlock(inf_lifecycle_t *lc)
{
    inf_registry_entry_t *entries = NULL;
    uint32_t count = 0;

    inf_err_t *err = snapshot_entries(lc, &entries, &count);
    if (err == NULL) {
        err = inf_registry_publish(lc->options.registry, entries, count);
    }
    inf_lock(&lc->lock);
    lc->unpublished = err != NULL;
    inf_unlock(&lc->lock);
    inf_unlock(&lc->publish_lock);

    if (err != NULL) {
        inf_cond_signal(&lc->reap);
        inf_err_log(inf_err_add(err, "cannot publish the models; trying"
            " again"));
        return;
    }

    lc->options.changed(lc->options.userp);
}

static inf_err_t *
snapshot_entries(inf_lifecycle_t *lc, inf_registry_entry_t **out,
    uint32_t *count)
{
    inf_lock(&lc->lock);

    const inf_model_record_t *r = NULL;
    uint32_t n = 0;
    inf_registry_entry_t *entries = calloc(lc->set.model_count + 1,
        sizeof(*entries));
    bool ok = entries != NULL;

    while (ok && (r = inf_model_set_next(&lc->set, r)) != NULL) {
        if (serves_locked(r)) {
            ok = inf_model_record_entry(r, &entries[n++]);
        }
    }

    inf_unlock(&lc->lock);

    if (!ok) {
        inf_registry_entries_free(entries, n);
        return inf_err_nomem();
    }

    *out = entries;
    *count = n;
    return NULL;
}

/* Whether the record has, had or will have a version, or its configuration
   leaves none. */
static bool
serves_locked(const inf_model_record_t *r)
{
    return r->version_count > 0
        || r->rejected == INF_REJECTED_VERSIONLESS
        || ((r->who & INF_WANTED_AT_START) != 0 && !r->rejected);
}
