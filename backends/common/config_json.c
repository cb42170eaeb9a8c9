/* config_json.c - see config_json.h; the only file that includes jansson */

#include "config_json.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define WIDE_DIGITS 19u         /* of the largest int64                      */

static json_t *parse_wide(const char *text, size_t len, json_error_t *why);
static size_t quote_wide(const char *text, size_t len, char *out);
static size_t string_len(const char *text, size_t len);

TRITONSERVER_Error *
bk_json_parse(const char *text, size_t len, bk_json_t **out)
{
    json_error_t why;

    json_t *v = len == 0 ? json_object() : json_loadb(text, len, 0, &why);
    if (v == NULL && len > 0
        && json_error_code(&why) == json_error_numeric_overflow)
    {
        v = parse_wide(text, len, &why);
    }
    if (v == NULL) {
        return len == 0 ? bk_err_nomem("configuration document")
            : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "JSON document, line %d, column %d: %s", why.line, why.column,
                why.text);
    }

    *out = v;
    return NULL;
}

/* Integers beyond int64 are read as strings, as protobuf writes them, too. */
static json_t *
parse_wide(const char *text, size_t len, json_error_t *why)
{
    char *quoted = malloc(2 * len);     /* only long numbers get quotes       */
    if (quoted == NULL) {
        return NULL;
    }

    json_t *v = json_loadb(quoted, quote_wide(text, len, quoted), 0, why);
    free(quoted);
    return v;
}

static size_t
quote_wide(const char *text, size_t len, char *out)
{
    size_t used = 0;

    for (size_t i = 0; i < len;) {
        size_t n = text[i] == '"' ? string_len(text + i, len - i) : 0;
        size_t digits = 0;
        while (n == 0 && i + digits < len && text[i + digits] >= '0'
            && text[i + digits] <= '9')
        {
            digits++;
        }
        bool wide = digits >= WIDE_DIGITS && (i == 0 || text[i - 1] == ':'
            || text[i - 1] == ',' || text[i - 1] == '[')
            && (i + digits == len || strchr(".eE", text[i + digits]) == NULL);

        n = n > 0 ? n : digits > 0 ? digits : 1;
        if (wide) {
            out[used++] = '"';
        }
        memcpy(out + used, text + i, n);
        used += n;
        if (wide) {
            out[used++] = '"';
        }
        i += n;
    }

    return used;
}

/* With both quotes; to the end where one is missing. */
static size_t
string_len(const char *text, size_t len)
{
    size_t n = 1;

    while (n < len && text[n] != '"') {
        n += text[n] == '\\' && n + 1 < len ? 2 : 1;
    }
    return n < len ? n + 1 : len;
}

void
bk_json_free(bk_json_t *v)
{
    json_decref(v);
}

bk_json_t *
bk_json_member(const bk_json_t *object, const char *key)
{
    return json_object_get(object, key);
}

bk_json_t *
bk_json_at(const bk_json_t *array, size_t index)
{
    return json_array_get(array, index);
}

size_t
bk_json_count(const bk_json_t *v)
{
    return json_is_array(v) ? json_array_size(v) : json_object_size(v);
}

bool
bk_json_next(bk_json_iter_t *it)
{
    it->iter = it->iter == NULL ? json_object_iter(it->object)
        : json_object_iter_next(it->object, it->iter);
    if (it->iter == NULL) {
        return false;
    }

    it->key = json_object_iter_key(it->iter);
    it->value = json_object_iter_value(it->iter);
    return true;
}

const char *
bk_json_string(const bk_json_t *v, const char *fallback)
{
    return json_is_string(v) ? json_string_value(v) : fallback;
}

int64_t
bk_json_int(const bk_json_t *v, int64_t fallback)
{
    if (json_is_integer(v)) {
        return json_integer_value(v);
    }

    /* protobuf's JSON writes some 64-bit numbers as strings */
    const char *text = json_string_value(v);
    if (text == NULL || text[0] == '\0') {
        return fallback;
    }

    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    return errno == 0 && *end == '\0' ? n : fallback;
}

bool
bk_json_bool(const bk_json_t *v, bool fallback)
{
    return json_is_boolean(v) ? json_is_true(v) : fallback;
}

bk_json_t *
bk_json_new_object(void)
{
    return json_object();
}

bk_json_t *
bk_json_new_array(void)
{
    return json_array();
}

bk_json_t *
bk_json_new_string(const char *s)
{
    return json_string(s);
}

bk_json_t *
bk_json_new_int(int64_t n)
{
    return json_integer(n);
}

bool
bk_json_set(bk_json_t *object, const char *key, bk_json_t *value)
{
    return json_object_set_new(object, key, value) == 0;
}

bool
bk_json_append(bk_json_t *array, bk_json_t *value)
{
    return json_array_append_new(array, value) == 0;
}

char *
bk_json_dump(const bk_json_t *v)
{
    return json_dumps(v, JSON_COMPACT);
}
