#include "core/service/load_settings.h"

#include <stdlib.h>

#include "core/proto/message.h"

struct inf_load_settings_s {
    NginxInference__CoreConfig *config;     /* a copy                        */
    inf_backend_setting_t      *settings;
    inf_host_setting_t         *host_settings;
};

static inf_err_t *read_host_policies(inf_load_settings_t *s);

inf_err_t *
inf_load_settings_new(const NginxInference__CoreConfig *config,
    inf_load_settings_t **out)
{
    ProtobufCMessage *copy = NULL;
    inf_load_settings_t *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = inf_message_clone(&config->base, &copy);
    if (err != NULL) {
        free(s);
        return err;
    }
    s->config = (NginxInference__CoreConfig *) (void *) copy;

    size_t count = s->config->n_backend_settings;
    s->settings = calloc(count + 1, sizeof(*s->settings));
    for (size_t i = 0; s->settings != NULL && i < count; i++) {
        s->settings[i] = (inf_backend_setting_t) {
            .backend = s->config->backend_settings[i]->backend,
            .key = s->config->backend_settings[i]->key,
            .value = s->config->backend_settings[i]->value
        };
    }

    err = s->settings != NULL ? read_host_policies(s) : inf_err_nomem();
    if (err != NULL) {
        inf_load_settings_free(s);
        return err;
    }

    *out = s;
    return NULL;
}

void
inf_load_settings_free(void *userp)
{
    inf_load_settings_t *s = userp;
    if (s == NULL) {
        return;
    }

    free(s->settings);
    free(s->host_settings);
    inf_message_free(&s->config->base);
    free(s);
}

void
inf_load_settings_fill(const inf_load_settings_t *s,
    inf_lifecycle_options_t *options)
{
    const NginxInference__CoreConfig *c = s->config;

    options->backend_dirs = (const char *const *) c->backend_directories;
    options->backend_dir_count = c->n_backend_directories;
    options->agent_dirs = (const char *const *) c->agent_directories;
    options->agent_dir_count = c->n_agent_directories;
    options->settings = s->settings;
    options->setting_count = c->n_backend_settings;
    options->auto_complete = c->auto_complete;
    options->code_upload = c->code_upload;
    options->load_retries = c->load_retries;
    options->host_policies = (inf_host_policies_t) {
        s->host_settings, c->n_host_policies
    };
}

/* Checked here too: a configuration may come from anywhere. */
static inf_err_t *
read_host_policies(inf_load_settings_t *s)
{
    size_t count = s->config->n_host_policies;

    s->host_settings = calloc(count + 1, sizeof(*s->host_settings));
    if (s->host_settings == NULL) {
        return inf_err_nomem();
    }

    for (size_t i = 0; i < count; i++) {
        const NginxInference__HostPolicySetting *p =
            s->config->host_policies[i];
        inf_err_t *err = inf_host_setting_check(p->key, p->value);
        if (err != NULL) {
            return inf_err_add(err, "host policy '%s'", p->policy);
        }
        s->host_settings[i] = (inf_host_setting_t) {
            .policy = p->policy, .key = p->key, .value = p->value
        };
    }

    return NULL;
}
