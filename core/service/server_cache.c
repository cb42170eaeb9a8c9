#include "core/service/server_cache.h"

#include "core/proto/message_json.h"

static inf_err_t *write_config(const NginxInference__CoreConfig *config,
    inf_buf_t *json);

inf_err_t *
inf_server_cache_open(inf_server_cache_t *c,
    const NginxInference__CoreConfig *config)
{
    inf_buf_t json;
    *c = (inf_server_cache_t) { .plugin = NULL };
    if (config->cache_name[0] == '\0') {
        return NULL;
    }

    inf_buf_init(&json);
    inf_err_t *err = write_config(config, &json);
    if (err == NULL) {
        const inf_cache_spec_t spec = {
            .name = config->cache_name,
            .config = inf_buf_slice(&json).data,
            .dirs = (const char *const *) config->cache_directories,
            .dir_count = config->n_cache_directories
        };
        err = inf_cache_plugin_open(&spec, &c->plugin);
    }
    inf_buf_fini(&json);
    if (err != NULL) {
        return err;
    }

    /* "local" lives in one process, whoever built it: the others may share
       what they hold, and so need keys that are the same everywhere */
    const inf_response_cache_options_t options = {
        .ops = &inf_cache_plugin_ops,
        .cache = c->plugin,
        .quick = inf_cache_plugin_is_builtin(c->plugin),
        .shared = !inf_slice_eq(inf_slice_str(config->cache_name),
            inf_slice_str("local"))
    };
    err = inf_response_cache_new(&options, &c->cache);
    if (err != NULL) {
        inf_server_cache_close(c);
    }
    return err;
}

void
inf_server_cache_close(inf_server_cache_t *c)
{
    inf_response_cache_free(c->cache);
    inf_cache_plugin_close(c->plugin);
    *c = (inf_server_cache_t) { .plugin = NULL };
}

/* The text as a program gave it, or the settings as an object of strings. */
static inf_err_t *
write_config(const NginxInference__CoreConfig *config, inf_buf_t *json)
{
    if (config->cache_config[0] != '\0') {
        inf_buf_puts(json, config->cache_config);
        return inf_buf_status(json);
    }

    inf_buf_putc(json, '{');
    for (size_t i = 0; i < config->n_cache_settings; i++) {
        const NginxInference__BackendSetting *s = config->cache_settings[i];
        if (i > 0) {
            inf_buf_putc(json, ',');
        }
        inf_json_put_string(json, inf_slice_str(s->key));
        inf_buf_putc(json, ':');
        inf_json_put_string(json, inf_slice_str(s->value));
    }
    inf_buf_putc(json, '}');
    return inf_buf_status(json);
}
