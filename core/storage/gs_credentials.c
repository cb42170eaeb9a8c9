#include "core/storage/gs_credentials.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/os/environment.h"
#include "core/base/path.h"
#include "core/storage/cloud_credentials.h"

#define GCLOUD_FILE ".config/gcloud/application_default_credentials.json"
#define TOKEN_URI   "https://oauth2.googleapis.com/token"
#define STS_URI     "https://sts.googleapis.com/v1/token"
#define LIFETIME_S  3600u       /* of an impersonated account's token        */

typedef struct {
    const char  *key;
    char       **to;
} row_t;

static inf_err_t *find_file(const char *address, bool emulator, char **out);
static inf_err_t *from_entry(const inf_cloud_entry_t *entry, char **out);
static inf_err_t *gcloud_file(char **out);
static inf_err_t *read_account(const json_t *root, inf_gs_credentials_t *c);
static const char *type_of(const json_t *root);
static inf_err_t *read_target(const json_t *root, inf_gs_credentials_t *c);
static inf_err_t *read_keys(const json_t *root, inf_gs_credentials_t *c);
static inf_err_t *read_external(const json_t *root, inf_gs_credentials_t *c);
static inf_err_t *read_source(const json_t *source, inf_gs_credentials_t *c);
static inf_err_t *read_header(const json_t *headers, inf_gs_credentials_t *c);
static inf_err_t *read_token_uri(const json_t *root, inf_gs_credentials_t *c);
static inf_err_t *check_private(const inf_gs_credentials_t *c,
    const char *key, const char *url);
static inf_err_t *need_all(const inf_gs_credentials_t *c, const json_t *root,
    const row_t *rows, size_t count);
static inf_err_t *need(const inf_gs_credentials_t *c, const json_t *root,
    const char *key, char **out);

inf_err_t *
inf_gs_credentials_find(const char *address, bool emulator,
    inf_gs_credentials_t *out)
{
    inf_json_doc_t doc = { NULL };

    *out = (inf_gs_credentials_t) { .account = INF_GS_ANONYMOUS };
    inf_err_t *err = find_file(address, emulator, &out->file);
    if (err == NULL && out->file == NULL) {
        out->account = emulator && inf_environment("GCE_METADATA_HOST") == NULL
            ? INF_GS_ANONYMOUS : INF_GS_METADATA;
        return NULL;
    }

    if (err == NULL) {
        err = inf_cloud_file_parse(out->file, &doc);
    }
    if (err == NULL) {
        err = read_account(doc.root, out);
    }
    inf_cloud_json_fini(&doc);
    if (err != NULL) {
        inf_gs_credentials_fini(out);
    }
    return err;
}

void
inf_gs_credentials_fini(inf_gs_credentials_t *c)
{
    inf_cloud_wipe(&c->file);
    inf_cloud_wipe(&c->token_uri);
    inf_cloud_wipe(&c->client_id);
    inf_cloud_wipe(&c->client_secret);
    inf_cloud_wipe(&c->refresh_token);
    inf_cloud_wipe(&c->client_email);
    inf_cloud_wipe(&c->private_key);
    inf_cloud_wipe(&c->private_key_id);
    inf_cloud_wipe(&c->audience);
    inf_cloud_wipe(&c->subject_type);
    inf_cloud_wipe(&c->source_file);
    inf_cloud_wipe(&c->source_url);
    inf_cloud_wipe(&c->source_header);
    inf_cloud_wipe(&c->source_value);
    inf_cloud_wipe(&c->source_field);
    inf_cloud_wipe(&c->impersonation_url);
    inf_cloud_wipe(&c->delegates);
    c->account = INF_GS_ANONYMOUS;
}

/* *out stays NULL: no file. */
static inf_err_t *
find_file(const char *address, bool emulator, char **out)
{
    const char *named = inf_environment("GOOGLE_APPLICATION_CREDENTIALS");
    inf_cloud_entry_t entry;

    inf_err_t *err = inf_cloud_entry_find("gs", address, &entry);
    if (err == NULL && entry.file != NULL) {
        err = from_entry(&entry, out);
    } else if (err == NULL && named != NULL) {
        *out = strdup(named);
        err = *out == NULL ? inf_err_nomem() : NULL;
    } else if (err == NULL && !emulator) {
        err = gcloud_file(out);
    }
    inf_cloud_entry_fini(&entry);
    return err;
}

/* The entry of a prefix is the name of a file; "": none. */
static inf_err_t *
from_entry(const inf_cloud_entry_t *entry, char **out)
{
    if (!json_is_string(entry->value)) {
        return inf_err_new(INF_ERR_INVALID_ARG, "cloud credentials '%s': an "
            "entry of \"gs\" must be the name of a file", entry->file);
    }
    if (json_string_length(entry->value) == 0) {
        return NULL;
    }
    *out = strdup(json_string_value(entry->value));
    return *out == NULL ? inf_err_nomem() : NULL;
}

static inf_err_t *
gcloud_file(char **out)
{
    const char *home = inf_environment("HOME");

    if (home == NULL) {
        return NULL;
    }
    char *file = inf_path_join(home, GCLOUD_FILE);
    if (file == NULL) {
        return inf_err_nomem();
    }
    if (access(file, F_OK) == 0) {
        *out = file;
    } else {
        free(file);
    }
    return NULL;
}

static inf_err_t *
read_account(const json_t *root, inf_gs_credentials_t *c)
{
    inf_err_t *err = NULL;

    c->lifetime_s = LIFETIME_S;
    if (strcmp(type_of(root), "impersonated_service_account") == 0) {
        err = read_target(root, c);
        root = json_object_get(root, "source_credentials");
        if (err == NULL && !json_is_object(root)) {
            err = inf_err_new(INF_ERR_INVALID_ARG, "cloud credentials '%s': "
                "\"source_credentials\" must be an object", c->file);
        }
    }
    if (err == NULL) {
        err = read_keys(root, c);
    }
    if (err == NULL) {
        err = read_token_uri(root, c);
    }
    return err != NULL || c->impersonation_url == NULL ? err
        : check_private(c, "service_account_impersonation_url",
            c->impersonation_url);
}

/* Without a type the keys tell. */
static const char *
type_of(const json_t *root)
{
    const char *type = json_string_value(json_object_get(root, "type"));

    if (type != NULL) {
        return type;
    }
    return json_object_get(root, "refresh_token") != NULL ? "authorized_user"
        : "service_account";
}

/* The account that is impersonated. */
static inf_err_t *
read_target(const json_t *root, inf_gs_credentials_t *c)
{
    const json_t *delegates = json_object_get(root, "delegates");

    if (json_array_size(delegates) > 0) {
        c->delegates = json_dumps(delegates, JSON_COMPACT);
        if (c->delegates == NULL) {
            return inf_err_nomem();
        }
    }
    return need(c, root, "service_account_impersonation_url",
        &c->impersonation_url);
}

static inf_err_t *
read_keys(const json_t *root, inf_gs_credentials_t *c)
{
    const char *type = type_of(root);
    const row_t user[] = {
        { "client_id", &c->client_id },
        { "client_secret", &c->client_secret },
        { "refresh_token", &c->refresh_token },
    };
    const row_t service[] = {
        { "client_email", &c->client_email },
        { "private_key", &c->private_key },
    };

    if (strcmp(type, "authorized_user") == 0) {
        c->account = INF_GS_USER;
        return need_all(c, root, user, 3);
    }
    if (strcmp(type, "service_account") == 0) {
        c->account = INF_GS_SERVICE;
        inf_err_t *err = need_all(c, root, service, 2);
        return err != NULL ? err : inf_cloud_text(c->file, root,
            "private_key_id", &c->private_key_id);
    }
    if (strcmp(type, "external_account") == 0) {
        c->account = INF_GS_EXTERNAL;
        return read_external(root, c);
    }
    return inf_err_new(INF_ERR_INVALID_ARG, "cloud credentials '%s': "
        "\"type\" must be authorized_user, service_account, external_account"
        " or impersonated_service_account, not '%s'", c->file, type);
}

/* Those of people (workforce identity federation) have more keys. */
static inf_err_t *
read_external(const json_t *root, inf_gs_credentials_t *c)
{
    static const char *const others[] = { "client_id",
        "workforce_pool_user_project" };
    const row_t rows[] = {
        { "audience", &c->audience },
        { "subject_token_type", &c->subject_type },
    };
    const json_t *life = json_object_get(json_object_get(root,
        "service_account_impersonation"), "token_lifetime_seconds");

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (json_object_get(root, others[i]) != NULL) {
            return inf_err_new(INF_ERR_INVALID_ARG, "cloud credentials '%s': "
                "\"%s\" of an external account is not supported", c->file,
                others[i]);
        }
    }
    if (json_integer_value(life) > 0 && json_integer_value(life) < 86400) {
        c->lifetime_s = (unsigned) json_integer_value(life);
    }

    inf_err_t *err = need_all(c, root, rows, 2);
    if (err == NULL) {
        err = inf_cloud_text(c->file, root,
            "service_account_impersonation_url", &c->impersonation_url);
    }
    return err != NULL ? err
        : read_source(json_object_get(root, "credential_source"), c);
}

/* AWS's has a URL, too, which gives no token. */
static inf_err_t *
read_source(const json_t *source, inf_gs_credentials_t *c)
{
    const json_t *format = json_object_get(source, "format");
    const char *type = json_string_value(json_object_get(format, "type"));

    inf_err_t *err = inf_cloud_text(c->file, source, "file", &c->source_file);
    if (err == NULL) {
        err = inf_cloud_text(c->file, source, "url", &c->source_url);
    }
    if (err != NULL) {
        return err;
    }
    if (json_object_get(source, "environment_id") != NULL
        || (c->source_file == NULL && (c->source_url == NULL
            || !inf_cloud_url_is_web(c->source_url))))
    {
        return inf_err_new(INF_ERR_INVALID_ARG, "cloud credentials '%s': "
            "\"credential_source\" must have a \"file\" or a \"url\" (http://"
            " or https://) of a token; others are not supported", c->file);
    }

    if (type != NULL && strcmp(type, "json") == 0) {
        err = need(c, format, "subject_token_field_name", &c->source_field);
    } else if (type != NULL && strcmp(type, "text") != 0) {
        err = inf_err_new(INF_ERR_INVALID_ARG, "cloud credentials '%s': "
            "\"format\" must be json or text, not '%s'", c->file, type);
    }
    return err != NULL ? err
        : read_header(json_object_get(source, "headers"), c);
}

static inf_err_t *
read_header(const json_t *headers, inf_gs_credentials_t *c)
{
    if (json_object_size(headers) > 1) {
        return inf_err_new(INF_ERR_INVALID_ARG, "cloud credentials '%s': "
            "\"headers\" has more than one, which is not supported", c->file);
    }

    const char *name = json_object_iter_key(json_object_iter(
        (json_t *) headers));
    if (name == NULL) {
        return NULL;
    }
    c->source_header = strdup(name);
    return c->source_header == NULL ? inf_err_nomem()
        : need(c, headers, name, &c->source_value);
}

static inf_err_t *
read_token_uri(const json_t *root, inf_gs_credentials_t *c)
{
    bool external = c->account == INF_GS_EXTERNAL;
    const char *key = external ? "token_url" : "token_uri";

    inf_err_t *err = inf_cloud_text(c->file, root, key, &c->token_uri);
    if (err == NULL && c->token_uri == NULL) {
        c->token_uri = strdup(external ? STS_URI : TOKEN_URI);
        err = c->token_uri == NULL ? inf_err_nomem() : NULL;
    }
    return err != NULL ? err : check_private(c, key, c->token_uri);
}

static inf_err_t *
check_private(const inf_gs_credentials_t *c, const char *key, const char *url)
{
    return inf_cloud_url_is_private(url) ? NULL
        : inf_err_new(INF_ERR_INVALID_ARG, "cloud credentials '%s': "
            "\"%s\" must begin with https:// (http:// only for a "
            "loopback address), not '%s'", c->file, key, url);
}

static inf_err_t *
need_all(const inf_gs_credentials_t *c, const json_t *root, const row_t *rows,
    size_t count)
{
    inf_err_t *err = NULL;

    for (size_t i = 0; err == NULL && i < count; i++) {
        err = need(c, root, rows[i].key, rows[i].to);
    }
    return err;
}

static inf_err_t *
need(const inf_gs_credentials_t *c, const json_t *root, const char *key,
    char **out)
{
    inf_err_t *err = inf_cloud_text(c->file, root, key, out);

    if (err == NULL && *out == NULL) {
        err = inf_err_new(INF_ERR_INVALID_ARG, "cloud credentials '%s': "
            "\"%s\" is missing", c->file, key);
    }
    return err;
}
