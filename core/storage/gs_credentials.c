#include "core/storage/gs_credentials.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/os/environment.h"
#include "core/base/path.h"
#include "core/storage/cloud_credentials.h"

#define GCLOUD_FILE ".config/gcloud/application_default_credentials.json"
#define TOKEN_URI   "https://oauth2.googleapis.com/token"

static inf_err_t *find_file(const char *address, bool emulator, char **out);
static inf_err_t *from_entry(const inf_cloud_entry_t *entry, char **out);
static inf_err_t *gcloud_file(char **out);
static inf_err_t *read_account(const json_t *root, inf_gs_credentials_t *c);
static inf_err_t *name_account(const json_t *root, const char *file,
    inf_gs_account_t *out);
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
    inf_err_t *err = name_account(root, c->file, &c->account);
    if (err == NULL && c->account == INF_GS_USER) {
        err = need(c, root, "client_id", &c->client_id);
        if (err == NULL) {
            err = need(c, root, "client_secret", &c->client_secret);
        }
        if (err == NULL) {
            err = need(c, root, "refresh_token", &c->refresh_token);
        }
    } else if (err == NULL) {
        err = need(c, root, "client_email", &c->client_email);
        if (err == NULL) {
            err = need(c, root, "private_key", &c->private_key);
        }
        if (err == NULL) {
            err = inf_cloud_text(c->file, root, "private_key_id",
                &c->private_key_id);
        }
    }

    if (err == NULL) {
        err = inf_cloud_text(c->file, root, "token_uri", &c->token_uri);
    }
    if (err == NULL && c->token_uri == NULL) {
        c->token_uri = strdup(TOKEN_URI);
        err = c->token_uri == NULL ? inf_err_nomem() : NULL;
    }
    if (err == NULL && !inf_cloud_url_is_private(c->token_uri)) {
        err = inf_err_new(INF_ERR_INVALID_ARG, "cloud credentials '%s': "
            "\"token_uri\" must begin with https:// (http:// only for a "
            "loopback address), not '%s'", c->file, c->token_uri);
    }
    return err;
}

/* Without a type the keys tell. */
static inf_err_t *
name_account(const json_t *root, const char *file, inf_gs_account_t *out)
{
    const char *type = json_string_value(json_object_get(root, "type"));

    if (type == NULL) {
        type = json_object_get(root, "refresh_token") != NULL
            ? "authorized_user" : "service_account";
    }
    if (strcmp(type, "authorized_user") == 0) {
        *out = INF_GS_USER;
    } else if (strcmp(type, "service_account") == 0) {
        *out = INF_GS_SERVICE;
    } else {
        return inf_err_new(INF_ERR_INVALID_ARG, "cloud credentials '%s': "
            "\"type\" must be authorized_user or service_account, not '%s'",
            file, type);
    }
    return NULL;
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
