#include "core/storage/cloud_credentials.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/object_address.h"
#include "core/base/os/environment.h"

#define PIECE_BYTES    4096
#define FILE_MAX_BYTES ((size_t) 1 << 20)

static inf_err_t *without_words(inf_err_t *err);
static void wipe_strings(json_t *value);
static json_t *best_entry(json_t *entries, const char *address);

inf_err_t *
inf_cloud_entry_find(const char *service, const char *address,
    inf_cloud_entry_t *out)
{
    *out = (inf_cloud_entry_t) {
        .file = inf_environment("TRITON_CLOUD_CREDENTIAL_PATH"),
        .service = service,
    };
    if (out->file == NULL) {
        return NULL;
    }

    inf_err_t *err = inf_cloud_file_parse(out->file, &out->doc);
    if (err != NULL) {
        return err;
    }

    json_t *entries = json_object_get(out->doc.root, service);
    if (entries != NULL && !json_is_object(entries)) {
        return inf_err_new(INF_ERR_INVALID_ARG, "cloud credentials '%s': "
            "\"%s\" must be an object", out->file, service);
    }
    out->value = best_entry(entries, address);
    return out->value != NULL ? NULL : inf_err_new(INF_ERR_NOT_FOUND,
        "Cannot match credential for path  %.*s",
        (int) inf_object_address_shown(address), address);
}

void
inf_cloud_entry_fini(inf_cloud_entry_t *e)
{
    inf_cloud_json_fini(&e->doc);
}

inf_err_t *
inf_cloud_file_parse(const char *file, inf_json_doc_t *doc)
{
    inf_buf_t text;

    *doc = (inf_json_doc_t) { NULL };
    inf_buf_init(&text);
    inf_err_t *err = inf_cloud_file_read(file, &text);
    if (err == NULL) {
        err = inf_json_doc_parse(doc, inf_buf_slice(&text),
            INF_JSON_DOC_NO_DUPLICATES);
    }
    if (err != NULL) {
        err = inf_err_add(without_words(err), "cloud credentials '%s'", file);
    }

    inf_cloud_wipe_buf(&text);
    return err;
}

/* An error without the words of the file, which may be a secret. */
static inf_err_t *
without_words(inf_err_t *err)
{
    const char *text = inf_err_msg(err);
    const char *words = strstr(text, " near ");

    if (words == NULL) {
        return err;
    }
    inf_err_t *other = inf_err_new(inf_err_code(err), "%.*s",
        (int) (words - text), text);
    inf_err_free(err);
    return other;
}

inf_err_t *
inf_cloud_file_read(const char *file, inf_buf_t *text)
{
    char piece[PIECE_BYTES];
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

void
inf_cloud_json_fini(inf_json_doc_t *doc)
{
    wipe_strings(doc->root);
    inf_json_doc_fini(doc);
}

/* The parser bounds the depth. */
static void
wipe_strings(json_t *value)
{
    const char *key;
    json_t *item;
    size_t i;

    json_object_foreach(value, key, item) {
        wipe_strings(item);
    }
    json_array_foreach(value, i, item) {
        wipe_strings(item);
    }
    if (json_is_string(value)) {
        explicit_bzero((char *) json_string_value(value),
            json_string_length(value));
    }
}

/* The entry whose key is the longest prefix of the address. */
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

inf_err_t *
inf_cloud_text(const char *file, const json_t *object, const char *key,
    char **out)
{
    const json_t *value = json_object_get(object, key);

    if (value == NULL) {
        return NULL;
    }
    if (!json_is_string(value)) {
        return inf_err_new(INF_ERR_INVALID_ARG, "cloud credentials '%s': "
            "\"%s\" must be a string", file, key);
    }
    if (json_string_length(value) == 0 || *out != NULL) {
        return NULL;
    }
    *out = strdup(json_string_value(value));
    return *out == NULL ? inf_err_nomem() : NULL;
}

void
inf_cloud_wipe(char **text)
{
    if (*text != NULL) {
        explicit_bzero(*text, strlen(*text));
        free(*text);
        *text = NULL;
    }
}

void
inf_cloud_wipe_buf(inf_buf_t *b)
{
    if (b->data != NULL) {
        explicit_bzero(b->data, b->len);
    }
    inf_buf_fini(b);
}

bool
inf_cloud_url_is_plain(const char *url)
{
    return strncmp(url, "http://", 7) == 0;
}

bool
inf_cloud_url_is_web(const char *url)
{
    return inf_cloud_url_is_plain(url) || strncmp(url, "https://", 8) == 0;
}

bool
inf_cloud_url_is_private(const char *url)
{
    static const char *const hosts[] = { "localhost", "127.0.0.1", "[::1]" };

    if (!inf_cloud_url_is_plain(url)) {
        return inf_cloud_url_is_web(url);
    }
    url += 7;
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        size_t len = strlen(hosts[i]);
        if (strncmp(url, hosts[i], len) == 0) {
            const char *rest = url + len;
            if (*rest == ':') {
                rest += 1 + strspn(rest + 1, "0123456789");
            }
            return *rest == '/' || *rest == '\0';
        }
    }
    return false;
}
