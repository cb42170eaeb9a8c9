#include "core/proto/json_doc.h"

#include <stdlib.h>
#include <string.h>

#include "core/proto/json_scan.h"
#include "core/proto/message_path.h"

static bool has_many_values(inf_slice_t text);
static size_t mark_len(inf_slice_t text);
static inf_err_t *parse_error(inf_slice_t text, size_t mark,
    const json_error_t *error);

inf_err_t *
inf_json_doc_parse(inf_json_doc_t *doc, inf_slice_t text, unsigned flags)
{
    size_t how = JSON_DECODE_ANY | JSON_ALLOW_NUL;
    size_t mark = mark_len(text);
    json_error_t error;

    if (has_many_values(text)) {
        doc->root = NULL;
        return inf_err_new(INF_ERR_INVALID_ARG, "JSON: more than %u values",
            INF_JSON_DOC_VALUES);
    }

    how |= flags & INF_JSON_DOC_NO_DUPLICATES ? JSON_REJECT_DUPLICATES : 0;
    doc->root = json_loadb(text.len > mark ? text.data + mark : "",
        text.len - mark, how, &error);
    return doc->root != NULL ? NULL : parse_error(text, mark, &error);
}

/* jansson takes no byte order mark. */
static size_t
mark_len(inf_slice_t text)
{
    return text.len >= INF_JSON_MARK_LEN
        && memcmp(text.data, INF_JSON_MARK, INF_JSON_MARK_LEN) == 0
        ? INF_JSON_MARK_LEN : 0;
}

const char *
inf_json_doc_fault(inf_slice_t text, size_t *offset)
{
    inf_json_scan_t scan;
    inf_json_event_t event;

    inf_json_scan_init(&scan, INF_JSON_MAX_DEPTH);
    do {
        event = inf_json_scan_next(&scan, text.data, text.data + text.len,
                                   true);
    } while (event != INF_JSON_END && event != INF_JSON_ERROR
        && event != INF_JSON_AGAIN);

    *offset = (size_t) scan.tokens.pos;
    return event == INF_JSON_ERROR ? scan.reason : NULL;
}

void
inf_json_doc_fini(inf_json_doc_t *doc)
{
    json_decref(doc->root);
    doc->root = NULL;
}

bool
inf_json_doc_uint64(const json_t *v, uint64_t *out)
{
    *out = (uint64_t) json_integer_value(v);
    return json_is_integer(v) && json_integer_value(v) >= 0;
}

bool
inf_json_doc_string(const json_t *v, inf_slice_t *out)
{
    *out = inf_slice(json_string_value(v), json_string_length(v));
    return json_is_string(v);
}

/* Counts values by their preceding characters.  Up to its fault this also holds
   for invalid JSON. */
static bool
has_many_values(inf_slice_t text)
{
    unsigned n = 1;
    bool string = false;

    for (size_t i = 0; i < text.len && n <= INF_JSON_DOC_VALUES; i++) {
        char c = text.data[i];

        if (c == '"') {
            string = !string;
        } else if (string) {
            i += c == '\\';
        } else {
            n += c == ',' || c == '[' || c == '{';
        }
    }
    return n > INF_JSON_DOC_VALUES;
}

static inf_err_t *
parse_error(inf_slice_t text, size_t mark, const json_error_t *error)
{
    size_t at;

    /* jansson reports a lack of memory for a token as a wrong token */
    if (error->text[0] == '\0'
        || json_error_code(error) == json_error_out_of_memory
        || (json_error_code(error) == json_error_invalid_syntax
            && inf_json_doc_fault(text, &at) == NULL))
    {
        return inf_err_nomem();
    }

    size_t offset = mark + (error->position > 0 ? (size_t) error->position
                                                : 0);
    size_t line;
    size_t column;

    offset = offset < text.len ? offset : text.len;
    inf_path_position(text, offset, &line, &column);
    return inf_err_new(INF_ERR_INVALID_ARG,
        "JSON: line %zu, column %zu (byte %zu): %s", line, column, offset,
        error->text);
}

inf_err_t *
inf_json_doc_put(const json_t *v, inf_buf_t *out)
{
    char *text = json_dumps(v, JSON_COMPACT);
    if (text == NULL) {
        return inf_err_nomem();
    }

    inf_buf_puts(out, text);
    free(text);
    return inf_buf_status(out);
}
