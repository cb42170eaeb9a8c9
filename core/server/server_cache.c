#include "core/server/server_cache.h"

#include <string.h>

#include "core/base/log.h"
#include "core/cache/cache_secret.h"
#include "core/proto/json_doc.h"
#include "core/proto/message_json.h"

#define KEY_SECRET "key-secret"

static inf_err_t *write_spec(const NginxInference__CoreConfig *config,
    inf_buf_t *json, inf_cache_spec_t *spec);
static inf_err_t *make_cache(inf_server_cache_t *c,
    const NginxInference__CoreConfig *config);
static inf_err_t *read_secret(const NginxInference__CoreConfig *config,
    unsigned char secret[INF_CACHE_HASH_BYTES], bool *any);
static inf_err_t *find_secret(const NginxInference__CoreConfig *config,
    inf_buf_t *path);
static inf_err_t *write_config(const NginxInference__CoreConfig *config,
    inf_buf_t *json);

inf_err_t *
inf_server_cache_open(inf_server_cache_t *c, const inf_cache_opener_t *opener,
    const NginxInference__CoreConfig *config)
{
    inf_cache_spec_t spec;
    inf_buf_t json;
    *c = (inf_server_cache_t) { .opener = NULL };
    if (config->cache_name[0] == '\0') {
        return NULL;
    }

    c->opener = opener;
    inf_buf_init(&json);
    inf_err_t *err = write_spec(config, &json, &spec);
    if (err == NULL) {
        err = opener->open(&spec, &c->plugin);
    }
    inf_buf_fini(&json);
    if (err != NULL) {
        return err;
    }

    err = make_cache(c, config);
    if (err != NULL) {
        inf_server_cache_close(c);
    }
    return err;
}

inf_err_t *
inf_server_cache_check(const inf_cache_opener_t *opener,
    const NginxInference__CoreConfig *config)
{
    inf_cache_spec_t spec;
    inf_buf_t json;
    if (config->cache_name[0] == '\0') {
        return NULL;
    }

    inf_buf_init(&json);
    inf_err_t *err = write_spec(config, &json, &spec);
    if (err == NULL) {
        err = opener->check(&spec);
    }
    inf_buf_fini(&json);
    if (err != NULL) {
        return err;
    }

    unsigned char secret[INF_CACHE_HASH_BYTES];
    bool any;
    err = read_secret(config, secret, &any);
    explicit_bzero(secret, sizeof(secret));
    return inf_err_add(err, "response cache \"%s\"", config->cache_name);
}

/* Fills spec, which borrows from json. */
static inf_err_t *
write_spec(const NginxInference__CoreConfig *config, inf_buf_t *json,
    inf_cache_spec_t *spec)
{
    inf_err_t *err = write_config(config, json);

    *spec = (inf_cache_spec_t) {
        .name = config->cache_name,
        .config = inf_buf_slice(json).data,
        .dirs = (const char *const *) config->cache_directories,
        .dir_count = config->n_cache_directories
    };
    return err;
}

static inf_err_t *
make_cache(inf_server_cache_t *c, const NginxInference__CoreConfig *config)
{
    unsigned char secret[INF_CACHE_HASH_BYTES];
    inf_response_cache_options_t options = {
        .ops = c->opener->ops,
        .cache = c->plugin,
        .quick = c->opener->is_builtin(c->plugin)
    };
    bool any;

    inf_err_t *err = read_secret(config, secret, &any);
    if (any) {
        options.secret = secret;
        options.secret_len = sizeof(secret);
    }
    if (err == NULL) {
        err = inf_response_cache_new(&options, &c->cache);
    }

    /* "local" lives in one process, also if it is a plug-in */
    if (err == NULL && !any
        && strcmp(config->cache_name, "local") != 0)
    {
        inf_log(INF_LOG_WARN, "response cache \"%s\": without a " KEY_SECRET
            " its keys are of this process alone: other servers, and the next"
            " core, find nothing that it stores", config->cache_name);
    }
    explicit_bzero(secret, sizeof(secret));
    return err;
}

void
inf_server_cache_close(inf_server_cache_t *c)
{
    inf_response_cache_free(c->cache);
    inf_err_free(c->failure);
    if (c->opener != NULL) {
        c->opener->close(c->plugin);
    }
    *c = (inf_server_cache_t) { .opener = NULL };
}

/* any: the configuration names a file. */
static inf_err_t *
read_secret(const NginxInference__CoreConfig *config,
    unsigned char secret[INF_CACHE_HASH_BYTES], bool *any)
{
    inf_buf_t path;

    inf_buf_init(&path);
    inf_err_t *err = find_secret(config, &path);
    *any = err == NULL && path.len > 0;
    if (*any) {
        err = inf_cache_secret_read(inf_buf_slice(&path).data, secret);
    }
    inf_buf_fini(&path);
    return err;
}

/* The path of the secret's file; empty: none. */
static inf_err_t *
find_secret(const NginxInference__CoreConfig *config, inf_buf_t *path)
{
    inf_json_doc_t doc = { .root = NULL };
    inf_slice_t text;

    for (size_t i = 0; i < config->n_cache_settings; i++) {
        const NginxInference__BackendSetting *s = config->cache_settings[i];
        if (strcmp(s->key, KEY_SECRET) == 0) {
            inf_buf_reset(path);
            inf_buf_puts(path, s->value);
        }
    }
    if (config->cache_config[0] == '\0') {
        return inf_buf_status(path);
    }

    /* a plug-in may accept a text that is not JSON */
    inf_err_t *err = inf_json_doc_parse(&doc,
        inf_slice_str(config->cache_config), 0);
    if (err != NULL) {
        inf_err_free(err);
        return NULL;
    }

    const json_t *v = json_is_object(doc.root)
        ? json_object_get(doc.root, KEY_SECRET) : NULL;
    if (v != NULL && inf_json_doc_string(v, &text)) {
        inf_buf_put(path, text.data, text.len);
    } else if (v != NULL) {
        err = inf_err_new(INF_ERR_INVALID_ARG, KEY_SECRET " must be a string");
    }
    inf_json_doc_fini(&doc);
    return err != NULL ? err : inf_buf_status(path);
}

/* Writes the text of an embedding program, or the settings without the core's
   own as an object of strings. */
static inf_err_t *
write_config(const NginxInference__CoreConfig *config, inf_buf_t *json)
{
    if (config->cache_config[0] != '\0') {
        inf_buf_puts(json, config->cache_config);
        return inf_buf_status(json);
    }

    inf_buf_putc(json, '{');
    for (size_t i = 0, n = 0; i < config->n_cache_settings; i++) {
        const NginxInference__BackendSetting *s = config->cache_settings[i];
        if (strcmp(s->key, KEY_SECRET) == 0) {
            continue;
        }
        if (n++ > 0) {
            inf_buf_putc(json, ',');
        }
        inf_json_put_string(json, inf_slice_str(s->key));
        inf_buf_putc(json, ':');
        inf_json_put_string(json, inf_slice_str(s->value));
    }
    inf_buf_putc(json, '}');
    return inf_buf_status(json);
}
