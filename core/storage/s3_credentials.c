#include "core/storage/s3_credentials.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/os/environment.h"
#include "core/storage/cloud_credentials.h"

#define REGION_DEFAULT "us-east-1"
#define LINE_MAX_BYTES 4096

static inf_err_t *from_entry(const inf_cloud_entry_t *entry,
    inf_s3_credentials_t *out);
static inf_err_t *from_environment(inf_s3_credentials_t *out);
static inf_err_t *from_profile(const char *profile,
    inf_s3_credentials_t *out);
static inf_err_t *read_profile(const char *path, const char *section,
    inf_s3_credentials_t *out);
static inf_err_t *take_line(char *line, inf_s3_credentials_t *out);
static char *trim(char *text);
static inf_err_t *put(char **to, const char *value);
static inf_err_t *put_env(char **to, const char *name);
static inf_err_t *home_path(const char *env, const char *tail, char **out);

inf_err_t *
inf_s3_credentials_find(const char *address, inf_s3_credentials_t *out)
{
    inf_cloud_entry_t entry;

    *out = (inf_s3_credentials_t) { .region = NULL };
    inf_err_t *err = inf_cloud_entry_find("s3", address, &entry);
    if (err == NULL) {
        err = entry.file != NULL ? from_entry(&entry, out)
            : from_environment(out);
    }
    inf_cloud_entry_fini(&entry);
    if (err == NULL && out->region == NULL) {
        err = put(&out->region, REGION_DEFAULT);
    }
    if (err == NULL && (out->key_id == NULL) != (out->secret_key == NULL)) {
        err = inf_err_new(INF_ERR_INVALID_ARG, "credentials for '%s': key and"
            " secret key are needed both, only one is given", address);
    }
    if (err != NULL) {
        inf_s3_credentials_fini(out);
    }
    return err;
}

void
inf_s3_credentials_fini(inf_s3_credentials_t *c)
{
    inf_cloud_wipe(&c->key_id);
    inf_cloud_wipe(&c->secret_key);
    inf_cloud_wipe(&c->session_token);
    inf_cloud_wipe(&c->region);
}

static inf_err_t *
from_entry(const inf_cloud_entry_t *entry, inf_s3_credentials_t *out)
{
    char *profile = NULL;
    const struct {
        const char  *key;
        char       **to;
    } rows[] = {
        { "key_id", &out->key_id },
        { "secret_key", &out->secret_key },
        { "session_token", &out->session_token },
        { "region", &out->region },
        { "profile", &profile },
    };

    if (!json_is_object(entry->value)) {
        return inf_err_new(INF_ERR_INVALID_ARG, "cloud credentials '%s': an "
            "entry of \"s3\" must be an object", entry->file);
    }

    inf_err_t *err = NULL;
    for (size_t i = 0; err == NULL && i < sizeof(rows) / sizeof(rows[0]);
        i++)
    {
        err = inf_cloud_text(entry->file, entry->value, rows[i].key,
            rows[i].to);
    }
    if (err == NULL && out->key_id == NULL && profile != NULL) {
        err = from_profile(profile, out);
    }
    free(profile);
    return err;
}

static inf_err_t *
from_environment(inf_s3_credentials_t *out)
{
    inf_err_t *err = put_env(&out->region, "AWS_DEFAULT_REGION");
    if (err == NULL) {
        err = put_env(&out->region, "AWS_REGION");
    }
    if (err != NULL) {
        return err;
    }

    if (inf_environment("AWS_ACCESS_KEY_ID") != NULL
        && inf_environment("AWS_SECRET_ACCESS_KEY") != NULL)
    {
        err = put_env(&out->key_id, "AWS_ACCESS_KEY_ID");
        if (err == NULL) {
            err = put_env(&out->secret_key, "AWS_SECRET_ACCESS_KEY");
        }
        return err != NULL ? err
            : put_env(&out->session_token, "AWS_SESSION_TOKEN");
    }

    const char *profile = inf_environment("AWS_PROFILE");
    return from_profile(profile != NULL ? profile : "default", out);
}

/* Reads a profile; missing files are ignored. */
static inf_err_t *
from_profile(const char *profile, inf_s3_credentials_t *out)
{
    char *keys = NULL;
    char *config = NULL;
    char section[256];

    inf_err_t *err = home_path("AWS_SHARED_CREDENTIALS_FILE",
        "/.aws/credentials", &keys);
    if (err == NULL) {
        err = home_path("AWS_CONFIG_FILE", "/.aws/config", &config);
    }
    if (err == NULL && keys != NULL) {
        err = read_profile(keys, profile, out);
    }
    if (err == NULL && config != NULL) {
        snprintf(section, sizeof(section), "%s%s",
            strcmp(profile, "default") == 0 ? "" : "profile ", profile);
        err = read_profile(config, section, out);
    }

    free(keys);
    free(config);
    return err;
}

/* Reads a section; values already set are kept. */
static inf_err_t *
read_profile(const char *path, const char *section, inf_s3_credentials_t *out)
{
    char line[LINE_MAX_BYTES];
    bool inside = false;
    inf_err_t *err = NULL;

    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return NULL;
    }

    while (err == NULL && fgets(line, sizeof(line), f) != NULL) {
        char *text = trim(line);
        size_t len = strlen(text);

        if (len > 1 && text[0] == '[' && text[len - 1] == ']') {
            text[len - 1] = '\0';
            inside = strcmp(trim(text + 1), section) == 0;
        } else if (inside) {
            err = take_line(text, out);
        }
    }

    fclose(f);
    explicit_bzero(line, sizeof(line));
    return err;
}

static inf_err_t *
take_line(char *line, inf_s3_credentials_t *out)
{
    const struct {
        const char  *key;
        char       **to;
    } rows[] = {
        { "aws_access_key_id", &out->key_id },
        { "aws_secret_access_key", &out->secret_key },
        { "aws_session_token", &out->session_token },
        { "region", &out->region },
    };
    char *equals = strchr(line, '=');

    if (equals == NULL || line[0] == '#' || line[0] == ';') {
        return NULL;
    }
    *equals = '\0';

    const char *key = trim(line);
    const char *value = trim(equals + 1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(key, rows[i].key) == 0 && value[0] != '\0') {
            return put(rows[i].to, value);
        }
    }
    return NULL;
}

static char *
trim(char *text)
{
    while (isspace((unsigned char) *text)) {
        text++;
    }
    size_t len = strlen(text);
    while (len > 0 && isspace((unsigned char) text[len - 1])) {
        text[--len] = '\0';
    }
    return text;
}

/* Sets a value unless there is one already. */
static inf_err_t *
put(char **to, const char *value)
{
    if (*to != NULL) {
        return NULL;
    }
    *to = strdup(value);
    return *to == NULL ? inf_err_nomem() : NULL;
}

static inf_err_t *
put_env(char **to, const char *name)
{
    const char *value = inf_environment(name);
    return value == NULL ? NULL : put(to, value);
}

/* NULL: neither the variable nor HOME is set. */
static inf_err_t *
home_path(const char *env, const char *tail, char **out)
{
    const char *value = inf_environment(env);
    const char *home = inf_environment("HOME");

    if (value == NULL && home == NULL) {
        return NULL;
    }

    size_t len = value != NULL ? strlen(value) + 1
        : strlen(home) + strlen(tail) + 1;
    *out = malloc(len);
    if (*out == NULL) {
        return inf_err_nomem();
    }
    snprintf(*out, len, "%s%s", value != NULL ? value : home,
        value != NULL ? "" : tail);
    return NULL;
}
