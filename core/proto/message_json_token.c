#include "core/proto/message_json_token.h"

#include <string.h>

#include "core/proto/message_number.h"
#include "core/proto/message_utf8.h"

static void tokens_string(inf_jtokens_t *t, char quote);
static bool tokens_escape(inf_jtokens_t *t);
static bool tokens_unicode(inf_jtokens_t *t);
static void tokens_number(inf_jtokens_t *t);
static void tokens_word(inf_jtokens_t *t);
static void tokens_bad(inf_jtokens_t *t, size_t at, const char *reason);
static int tokens_peek(const inf_jtokens_t *t);
static size_t tokens_digits(inf_jtokens_t *t);
static bool code_at(inf_slice_t s, size_t at, uint32_t *code);
static bool is_word(int c);

void
inf_jtokens_init(inf_jtokens_t *t, inf_slice_t text)
{
    *t = (inf_jtokens_t) { .text = text };
    inf_jtokens_next(t);
}

void
inf_jtokens_next(inf_jtokens_t *t)
{
    if (t->kind == INF_JTOKEN_BAD) {
        return;
    }

    int c = tokens_peek(t);
    while (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
        t->at++;
        c = tokens_peek(t);
    }

    size_t start = t->at;
    t->token = inf_slice(t->text.data + start, 0);
    t->kind = INF_JTOKEN_END;
    if (c < 0) {
        return;
    }

    if (c == '"' || c == '\'') {
        tokens_string(t, (char) c);
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        tokens_number(t);
    } else if (is_word(c)) {
        tokens_word(t);
    } else if (c > 0 && strchr("{}[]:,", c) != NULL) {
        t->kind = INF_JTOKEN_SYMBOL;
        t->at++;
    } else {
        tokens_bad(t, t->at, "no JSON value begins with this byte");
    }

    if (t->kind != INF_JTOKEN_BAD) {
        t->token.len = t->at - start;
    }
}

size_t
inf_jtokens_offset(const inf_jtokens_t *t)
{
    return (size_t) (t->token.data - t->text.data);
}

void
inf_jtoken_unescape(inf_slice_t token, inf_buf_t *out)
{
    static const char letters[] = "bfnrt";
    static const char meant[] = "\b\f\n\r\t";
    inf_slice_t s = inf_slice(token.data + 1, token.len - 2);
    size_t at = 0;

    while (at < s.len) {
        const char *slash = memchr(s.data + at, '\\', s.len - at);
        size_t plain = slash == NULL ? s.len - at
            : (size_t) (slash - s.data) - at;
        inf_buf_put(out, s.data + at, plain);
        at += plain;
        if (slash == NULL) {
            return;
        }

        char c = s.data[at + 1];
        const char *letter = memchr(letters, c, sizeof(letters) - 1);
        if (letter != NULL) {
            inf_buf_putc(out, meant[letter - letters]);
        } else if (c != 'u') {
            inf_buf_putc(out, c);
        }
        at += 2;
        if (c != 'u') {
            continue;
        }

        uint32_t code = 0;
        uint32_t low = 0;
        char utf8[4];
        (void) code_at(s, at, &code);
        at += 4;
        if (code >= 0xd800 && code <= 0xdbff) {     /* its other half follows */
            (void) code_at(s, at + 2, &low);
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            at += 6;
        }
        inf_buf_put(out, utf8, inf_utf8_put(utf8, code));
    }
}

static void
tokens_string(inf_jtokens_t *t, char quote)
{
    size_t start = t->at++;

    for (;;) {
        int c = tokens_peek(t);

        if (c < 0) {
            tokens_bad(t, start, "the string has no end");
            return;
        }
        if (c < 0x20) {
            tokens_bad(t, t->at, "a control character in a string must be "
                "escaped");
            return;
        }
        if (c == '\\') {
            if (!tokens_escape(t)) {
                return;
            }
            continue;
        }
        t->at++;
        if (c == quote) {
            break;
        }
    }

    inf_slice_t s = inf_slice(t->text.data + start, t->at - start);
    size_t valid = inf_utf8_valid_prefix(s);
    if (valid < s.len) {
        tokens_bad(t, start + valid, "the string is not valid UTF-8");
        return;
    }
    t->kind = INF_JTOKEN_STRING;
}

static bool
tokens_escape(inf_jtokens_t *t)
{
    int c = t->text.len - t->at > 1
        ? (unsigned char) t->text.data[t->at + 1] : -1;

    if (c == 'u') {
        return tokens_unicode(t);
    }
    if (c > 0 && strchr("bfnrt\"'\\/", c) != NULL) {
        t->at += 2;
        return true;
    }
    tokens_bad(t, t->at, "unknown escape in string");
    return false;
}

/* Stands on "\u". */
static bool
tokens_unicode(inf_jtokens_t *t)
{
    uint32_t code;
    uint32_t low;

    if (!code_at(t->text, t->at + 2, &code)) {
        tokens_bad(t, t->at, "\\u must be followed by four hexadecimal digits");
        return false;
    }
    if (code < 0xd800 || code > 0xdfff) {
        t->at += 6;
        return true;
    }

    if (code > 0xdbff || t->text.len - t->at < 12
        || t->text.data[t->at + 6] != '\\' || t->text.data[t->at + 7] != 'u'
        || !code_at(t->text, t->at + 8, &low) || low < 0xdc00 || low > 0xdfff)
    {
        tokens_bad(t, t->at, "half of a surrogate pair in string");
        return false;
    }
    t->at += 12;
    return true;
}

static void
tokens_number(inf_jtokens_t *t)
{
    size_t start = t->at;

    if (tokens_peek(t) == '-') {
        t->at++;
    }
    size_t whole = tokens_digits(t);
    if (whole == 0 && is_word(tokens_peek(t))) {
        tokens_word(t);                     /* -Infinity, bare              */
        return;
    }
    if (tokens_peek(t) == '.') {
        t->at++;
        tokens_digits(t);
    }
    if (tokens_peek(t) == 'e' || tokens_peek(t) == 'E') {
        t->at++;
        if (tokens_peek(t) == '+' || tokens_peek(t) == '-') {
            t->at++;
        }
        tokens_digits(t);
    }

    double v;
    inf_slice_t s = inf_slice(t->text.data + start, t->at - start);
    bool zeros = whole > 1 && s.data[s.data[0] == '-' ? 1 : 0] == '0';
    if (whole == 0 || zeros || is_word(tokens_peek(t))
        || s.data[s.len - 1] == '.' || tokens_peek(t) == '.'
        || !inf_number_parse_double(s, &v))
    {
        tokens_bad(t, start, "this is not a JSON number");
        return;
    }
    t->kind = INF_JTOKEN_NUMBER;
}

static void
tokens_word(inf_jtokens_t *t)
{
    while (is_word(tokens_peek(t))) {
        t->at++;
    }
    t->kind = INF_JTOKEN_WORD;
}

static void
tokens_bad(inf_jtokens_t *t, size_t at, const char *reason)
{
    t->kind = INF_JTOKEN_BAD;
    t->reason = reason;
    t->token = inf_slice(t->text.data + at, 0);
}

static int
tokens_peek(const inf_jtokens_t *t)
{
    return t->at < t->text.len ? (unsigned char) t->text.data[t->at] : -1;
}

static size_t
tokens_digits(inf_jtokens_t *t)
{
    size_t start = t->at;

    while (tokens_peek(t) >= '0' && tokens_peek(t) <= '9') {
        t->at++;
    }
    return t->at - start;
}

/* Exactly four hexadecimal digits. */
static bool
code_at(inf_slice_t s, size_t at, uint32_t *code)
{
    uint64_t v;

    if (at > s.len || s.len - at < 4
        || !inf_number_parse_digits(inf_slice(s.data + at, 4), 16, &v))
    {
        return false;
    }
    *code = (uint32_t) v;
    return true;
}

static bool
is_word(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'
        || c == '$' || (c >= '0' && c <= '9');
}
