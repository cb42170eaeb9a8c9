#include "core/storage/s3_credentials.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/os/environment.h"
#include "core/proto/json_doc.h"

#define REGION_DEFAULT "us-east-1"
#define LINE_MAX_BYTES 4096
#define FILE_MAX_BYTES ((size_t) 1 << 20)

static inf_err_t *from_file(const char *file, const char *address,
    inf_s3_credentials_t *out);
static inf_err_t *read_whole(const char *file, inf_buf_t *text);
static inf_err_t *from_document(const char *file, json_t *root,
    const char *address, inf_s3_credentials_t *out);
static json_t *best_entry(json_t *entries, const char *address);
static inf_err_t *from_entry(const char *file, json_t *entry,
    inf_s3_credentials_t *out);
static inf_err_t *take_text(const char *file, json_t *entry, const char *key,
    char **out);
static inf_err_t *from_environment(inf_s3_credentials_t *out);
static inf_err_t *from_profile(const char *profile,
    inf_s3_credentials_t *out);
static inf_err_t *read_profile(const char *path, const char *section,
    inf_s3_credentials_t *out);
static inf_err_t *take_line(char *line, inf_s3_credentials_t *out);
static char *trim(char *text);
static inf_err_t *put(char **to, const char *value);
static inf_err_t *put_env(char **to, const char *name);
static void wipe(char **text);
static inf_err_t *home_path(const char *env, const char *tail, char **out);

inf_err_t *
inf_s3_credentials_find(const char *address, inf_s3_credentials_t *out)
{
    const char *file = inf_environment("TRITON_CLOUD_CREDENTIAL_PATH");

    *out = (inf_s3_credentials_t) { NULL, NULL, NULL, NULL };
    inf_err_t *err = file != NULL ? from_file(file, address, out)
        : from_environment(out);
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
    wipe(&c->key_id);
    wipe(&c->secret_key);
    wipe(&c->session_token);
    wipe(&c->region);
}

static inf_err_t *
from_file(const char *file, const char *address, inf_s3_credentials_t *out)
{
    inf_json_doc_t doc = { NULL };
    inf_buf_t text;

    inf_buf_init(&text);
    inf_err_t *err = read_whole(file, &text);
    if (err == NULL) {
        err = inf_json_doc_parse(&doc, inf_buf_slice(&text),
            INF_JSON_DOC_NO_DUPLICATES);
    }
    if (err == NULL) {
        err = from_document(file, doc.root, address, out);
    } else {
        err = inf_err_add(err, "cloud credentials '%s'", file);
    }

    inf_json_doc_fini(&doc);
    explicit_bzero(text.data, text.len);
    inf_buf_fini(&text);
    return err;
}

static inf_err_t *
read_whole(const char *file, inf_buf_t *text)
{
    char piece[LINE_MAX_BYTES];
    size_t n;

    FILE *f = fopen(file, "re");
    if (f == NULL) {
        return inf_err_recode(inf_err_os(errno, "cannot open it"),
            INF_ERR_INVALID_ARG);
    }
    if (!inf_buf_reserve(text, FILE_MAX_BYTES)) {   /* so that it is not
                                                       moved                 */
        fclose(f);
        return inf_err_nomem();
    }

    while ((n = fread(piece, 1, sizeof(piece), f)) > 0
        && n <= FILE_MAX_BYTES - text->len)
    {
        inf_buf_put(text, piece, n);
    }
    bool failed = ferror(f) != 0;
    fclose(f);
    explicit_bzero(piece, sizeof(piece));

    if (failed || n > 0) {
        return inf_err_new(INF_ERR_INVALID_ARG, failed ? "it can't be read"
            : "it has more than %zu bytes", FILE_MAX_BYTES);
    }
    return inf_buf_status(text);
}

static inf_err_t *
from_document(const char *file, json_t *root, const char *address,
    inf_s3_credentials_t *out)
{
    json_t *entries = json_object_get(root, "s3");
    if (entries != NULL && !json_is_object(entries)) {
        return inf_err_new(INF_ERR_INVALID_ARG, "cloud credentials '%s': "
            "\"s3\" must be an object", file);
    }

    json_t *entry = best_entry(entries, address);
    return entry == NULL ? inf_err_new(INF_ERR_NOT_FOUND,
            "Cannot match credential for path  %s", address)
        : from_entry(file, entry, out);
}

/* The credentials whose key is the longest prefix of the address. */
static json_t *
best_entry(json_t *entries, const char *address)
{
    json_t *best = NULL;
    json_t *entry;
    const char *key;
    size_t best_len = 0;

    json_object_foreach(entries, key, entry) {
        size_t len = strlen(key);
        if (strncmp(key, address, len) == 0
            && (best == NULL || len > best_len))
        {
            best = entry;
            best_len = len;
        }
    }
    return best;
}

static inf_err_t *
from_entry(const char *file, json_t *entry, inf_s3_credentials_t *out)
{
    char *profile = NULL;

    if (!json_is_object(entry)) {
        return inf_err_new(INF_ERR_INVALID_ARG, "cloud credentials '%s': an "
            "entry of \"s3\" must be an object", file);
    }

    inf_err_t *err = take_text(file, entry, "key_id", &out->key_id);
    if (err == NULL) {
        err = take_text(file, entry, "secret_key", &out->secret_key);
    }
    if (err == NULL) {
        err = take_text(file, entry, "session_token", &out->session_token);
    }
    if (err == NULL) {
        err = take_text(file, entry, "region", &out->region);
    }
    if (err == NULL) {
        err = take_text(file, entry, "profile", &profile);
    }
    if (err == NULL && out->key_id == NULL && profile != NULL) {
        err = from_profile(profile, out);
    }
    free(profile);
    return err;
}

/* Takes a text; NULL: missing or empty. */
static inf_err_t *
take_text(const char *file, json_t *entry, const char *key, char **out)
{
    json_t *value = json_object_get(entry, key);

    if (value == NULL) {
        return NULL;
    }
    if (!json_is_string(value)) {
        return inf_err_new(INF_ERR_INVALID_ARG, "cloud credentials '%s': "
            "\"%s\" must be a string", file, key);
    }
    return json_string_length(value) == 0 ? NULL
        : put(out, json_string_value(value));
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

static void
wipe(char **text)
{
    if (*text != NULL) {
        explicit_bzero(*text, strlen(*text));
        free(*text);
        *text = NULL;
    }
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
