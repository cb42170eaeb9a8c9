/* lifecycle_terms.c - the options that may change while the server runs. */

#include "core/repository/lifecycle_parts.h"

#include <stdlib.h>

inf_err_t *
inf_lifecycle_terms_new(const inf_lifecycle_options_t *options,
    void (*release)(void *userp), void *userp, inf_lifecycle_terms_t **out)
{
    inf_lifecycle_terms_t *t = calloc(1, sizeof(*t));
    if (t == NULL) {
        return inf_err_nomem();
    }

    atomic_init(&t->refs, 1);
    t->options = *options;
    t->release = release;
    t->userp = userp;
    *out = t;
    return NULL;
}

inf_lifecycle_terms_t *
inf_lifecycle_terms_ref(inf_lifecycle_terms_t *t)
{
    atomic_fetch_add(&t->refs, 1);
    return t;
}

void
inf_lifecycle_terms_unref(inf_lifecycle_terms_t *t)
{
    if (t == NULL || atomic_fetch_sub(&t->refs, 1) > 1) {
        return;
    }

    if (t->release != NULL) {
        t->release(t->userp);
    }
    free(t);
}

inf_err_t *
inf_lifecycle_set_terms(inf_lifecycle_t *lc, inf_lifecycle_terms_t *t)
{
    inf_lifecycle_options_t o = lc->options;

    o.backend_dirs = t->options.backend_dirs;
    o.backend_dir_count = t->options.backend_dir_count;
    o.agent_dirs = t->options.agent_dirs;
    o.agent_dir_count = t->options.agent_dir_count;
    o.settings = t->options.settings;
    o.setting_count = t->options.setting_count;
    o.host_policies = t->options.host_policies;
    o.auto_complete = t->options.auto_complete;
    o.code_upload = t->options.code_upload;
    o.load_retries = t->options.load_retries;

    inf_err_t *err = inf_agent_table_look_in(lc->agents, o.agent_dirs,
        o.agent_dir_count);
    if (err != NULL) {
        inf_lifecycle_terms_unref(t);
        return err;
    }

    t->options = o;
    inf_lock(&lc->lock);
    inf_lifecycle_terms_t *old = lc->terms;
    lc->terms = t;
    inf_unlock(&lc->lock);

    inf_lifecycle_terms_unref(old);
    inf_backend_table_compare(lc->backends, &o);
    return NULL;
}

inf_lifecycle_terms_t *
inf_lifecycle_take_terms(inf_lifecycle_t *lc)
{
    inf_lock(&lc->lock);
    inf_lifecycle_terms_t *t = inf_lifecycle_terms_ref(lc->terms);
    inf_unlock(&lc->lock);
    return t;
}
