/* xgboost_json.c - see xgboost_json.h */

#include "xgboost_json.h"

#include "xgboost_document.h"

#include <stdlib.h>
#include <string.h>


typedef struct {
    const char        *at;
    const char        *end;
    xgboost_document_t document;
} reader_t;

static bool read_all(reader_t *r);
static bool read_text(reader_t *r);
static size_t unescaped(const char *from, const char *end, char *out);
static int hex_of(const char *digits);
static bool read_word(reader_t *r);
static bool is_word(char c);
static void pass_space(reader_t *r);

TRITONSERVER_Error *
trees_xgboost_json_check(const void *data, size_t len)
{
    const char *text = data;
    reader_t r = { .at = text, .end = text + len };

    xgboost_document_init(&r.document, len);
    if (!read_all(&r) && r.document.err == NULL) {
        r.document.err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "not"
            " JSON: no value at byte %zu", (size_t) (r.at - text));
    }
    xgboost_document_fini(&r.document);
    return r.document.err;
}

/* Commas, colons and the kinds of brackets are the library's to check; so is
 * the end, which may be missing. */
static bool
read_all(reader_t *r)
{
    xgboost_document_t *d = &r->document;
    bool fits = true;

    for (pass_space(r); fits && r->at < r->end; pass_space(r)) {
        switch (*r->at) {

        case '[':
        case '{':
            r->at++;
            fits = xgboost_document_open(d);
            break;

        case ']':
        case '}':
            if (d->depth == 0) {
                return false;
            }
            r->at++;
            fits = xgboost_document_close(d);
            break;

        case ',':
        case ':':
            r->at++;
            break;

        case '"':
            r->at++;
            fits = read_text(r);
            break;

        default:
            fits = read_word(r);
        }
    }

    return fits;
}

/* A text with a colon behind it is a key. */
static bool
read_text(reader_t *r)
{
    const char *from = r->at;
    char *plain = NULL;
    bool escapes = false;

    while (r->at < r->end && *r->at != '"') {
        escapes = escapes || *r->at == '\\';
        r->at += *r->at == '\\' && r->end - r->at > 1 ? 2 : 1;
    }
    if (r->at >= r->end) {
        return true;
    }

    size_t len = (size_t) (r->at++ - from);
    if (escapes) {
        plain = malloc(len);
        if (plain == NULL) {
            r->document.err = bk_err_nomem("a text");
            return false;
        }
        len = unescaped(from, from + len, plain);
        from = plain;
    }

    pass_space(r);
    bool fits = r->at < r->end && *r->at == ':'
        ? r->document.depth > 0
            && xgboost_document_key(&r->document, from, len)
        : xgboost_document_text(&r->document, from, len);

    free(plain);
    return fits;
}

/* out has room for all of it, as no escape is shorter than its letter.
 * Letters that are not ASCII become one that is in no name. */
static size_t
unescaped(const char *from, const char *end, char *out)
{
    size_t len = 0;

    while (from < end) {
        char c = *from++;

        if (c == '\\' && from < end) {
            c = *from++;
            if (c == 'u' && end - from >= 4) {
                c = (char) hex_of(from);
                from += 4;
            } else if (c != '"' && c != '\\' && c != '/') {
                c = '?';
            }
        }
        out[len++] = c;
    }

    return len;
}

static int
hex_of(const char *digits)
{
    int n = 0;

    for (int i = 0; i < 4; i++) {
        char c = digits[i];

        n = n * 16 + (c >= '0' && c <= '9' ? c - '0'
            : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
            : '?');
    }

    return n > 0 && n < 0x80 ? n : '?';
}

/* A number, true, false, null, NaN or Infinity. */
static bool
read_word(reader_t *r)
{
    const char *from = r->at;
    bool negative = *from == '-';
    bool whole = true;
    int64_t number = 0;

    while (r->at < r->end && is_word(*r->at)) {
        char c = *r->at++;

        if (c == '-' && r->at == from + 1) {
            continue;
        }
        whole = whole && c >= '0' && c <= '9'
            && !__builtin_mul_overflow(number, 10, &number)
            && !__builtin_add_overflow(number, c - '0', &number);
    }

    if (r->at == from) {
        return false;
    }
    return whole ? xgboost_document_integer(&r->document,
        negative ? -number : number) : xgboost_document_other(&r->document);
}

static bool
is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z')
        || (c >= 'A' && c <= 'Z') || c == '-' || c == '+' || c == '.';
}

static void
pass_space(reader_t *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n'
        || *r->at == '\r' || *r->at == '\t'))
    {
        r->at++;
    }
}
