#include "core/storage/azure_credentials.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/os/environment.h"
#include "core/storage/cloud_credentials.h"

static inf_err_t *from_entry(const inf_cloud_entry_t *entry,
    inf_azure_credentials_t *out, char **type);
static inf_err_t *from_environment(inf_azure_credentials_t *out, char **type);
static inf_err_t *put_env(char **to, const char *name);
static inf_err_t *take_type(const char *type, inf_azure_credentials_t *out);

inf_err_t *
inf_azure_credentials_find(const char *address, inf_azure_credentials_t *out)
{
    inf_cloud_entry_t entry;
    char *type = NULL;

    *out = (inf_azure_credentials_t) { INF_AZURE_ANONYMOUS, NULL, NULL, NULL };
    inf_err_t *err = inf_cloud_entry_find("as", address, &entry);
    if (err == NULL) {
        err = entry.file != NULL ? from_entry(&entry, out, &type)
            : from_environment(out, &type);
    }
    inf_cloud_entry_fini(&entry);
    if (err == NULL) {
        err = take_type(type, out);
        if (err != NULL) {
            err = entry.file != NULL ? inf_err_add(err, "cloud credentials"
                    " '%s': \"auth_type\"", entry.file)
                : inf_err_add(err, "AZURE_STORAGE_AUTH_TYPE");
        }
    }
    free(type);
    if (err != NULL) {
        inf_azure_credentials_fini(out);
    }
    return err;
}

void
inf_azure_credentials_fini(inf_azure_credentials_t *c)
{
    inf_cloud_wipe(&c->account);
    inf_cloud_wipe(&c->key);
    inf_cloud_wipe(&c->client_id);
    c->auth = INF_AZURE_ANONYMOUS;
}

static inf_err_t *
from_entry(const inf_cloud_entry_t *entry, inf_azure_credentials_t *out,
    char **type)
{
    const struct {
        const char  *key;
        char       **to;
    } rows[] = {
        { "account_str", &out->account },
        { "account_key", &out->key },
        { "auth_type", type },
        { "client_id", &out->client_id },
    };
    inf_err_t *err = NULL;

    if (!json_is_object(entry->value)) {
        return inf_err_new(INF_ERR_INVALID_ARG, "cloud credentials '%s': an "
            "entry of \"as\" must be an object", entry->file);
    }
    for (size_t i = 0; err == NULL && i < sizeof(rows) / sizeof(rows[0]);
        i++)
    {
        err = inf_cloud_text(entry->file, entry->value, rows[i].key,
            rows[i].to);
    }
    return err;
}

static inf_err_t *
from_environment(inf_azure_credentials_t *out, char **type)
{
    const struct {
        const char  *name;
        char       **to;
    } rows[] = {
        { "AZURE_STORAGE_ACCOUNT", &out->account },
        { "AZURE_STORAGE_KEY", &out->key },
        { "AZURE_STORAGE_AUTH_TYPE", type },
        { "AZURE_STORAGE_CLIENT_ID", &out->client_id },
    };
    inf_err_t *err = NULL;

    for (size_t i = 0; err == NULL && i < sizeof(rows) / sizeof(rows[0]);
        i++)
    {
        err = put_env(rows[i].to, rows[i].name);
    }
    return err;
}

static inf_err_t *
put_env(char **to, const char *name)
{
    const char *value = inf_environment(name);
    if (value == NULL) {
        return NULL;
    }
    *to = strdup(value);
    return *to == NULL ? inf_err_nomem() : NULL;
}

/* Without a type, and with "key", a key decides. */
static inf_err_t *
take_type(const char *type, inf_azure_credentials_t *out)
{
    if (type == NULL || strcmp(type, "key") == 0) {
        out->auth = out->key != NULL ? INF_AZURE_KEY : INF_AZURE_ANONYMOUS;
    } else if (strcmp(type, "managed_identity") == 0) {
        out->auth = INF_AZURE_MANAGED_IDENTITY;
    } else if (strcmp(type, "default") == 0) {
        out->auth = INF_AZURE_ANY_IDENTITY;
    } else {
        return inf_err_new(INF_ERR_INVALID_ARG, "'%s' is not key,"
            " managed_identity or default", type);
    }
    return NULL;
}
