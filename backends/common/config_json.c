/* config_json.c - see config_json.h; the only file that includes jansson */

#include "config_json.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

TRITONSERVER_Error *
bk_json_parse(const char *text, size_t len, bk_json_t **out)
{
    json_error_t why;

    json_t *v = len == 0 ? json_object() : json_loadb(text, len, 0, &why);
    if (v == NULL) {
        return len == 0 ? bk_err_nomem("configuration document")
            : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "JSON document, line %d, column %d: %s", why.line, why.column,
                why.text);
    }

    *out = v;
    return NULL;
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
    it->place = it->place == NULL ? json_object_iter(it->object)
        : json_object_iter_next(it->object, it->place);
    if (it->place == NULL) {
        return false;
    }

    it->key = json_object_iter_key(it->place);
    it->value = json_object_iter_value(it->place);
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
