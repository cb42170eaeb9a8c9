#include "core/proto/text_format_token.h"

#include <string.h>

#include "core/proto/message_utf8.h"
#include "core/proto/number.h"

#define CODE_MAX 0x10ffffu

typedef struct {
    inf_slice_t   text;
    size_t        at;
    inf_token_t   token;        /* token being read                          */
    const char   *reason;
} lexer_t;

static void lexer_blank(lexer_t *l);
static void lexer_token(lexer_t *l);
static void lexer_name(lexer_t *l);
static void lexer_number(lexer_t *l);
static bool lexer_fraction(lexer_t *l);
static void lexer_string(lexer_t *l);
static bool lexer_escape(lexer_t *l);
static void lexer_bad(lexer_t *l, const char *reason);
static int lexer_peek(const lexer_t *l, size_t ahead);
static size_t lexer_digits(lexer_t *l, bool (*is)(int));
static bool is_name_start(int c);
static bool is_digit(int c);
static bool is_octal(int c);
static bool is_hex(int c);
static uint32_t unescape_number(inf_slice_t s, size_t *at, unsigned base,
    size_t max);
static uint32_t unescape_code(inf_slice_t s, size_t *at);

inf_token_t
inf_text_token(inf_slice_t text, size_t *at, const char **reason)
{
    lexer_t l = { .text = text, .at = *at };

    lexer_blank(&l);
    lexer_token(&l);
    if (l.token.kind == INF_TOKEN_BAD) {
        *reason = l.reason;
    }

    *at = l.at;
    return l.token;
}

void
inf_token_unescape(inf_slice_t token, inf_buf_t *out)
{
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

        static const char letters[] = "abfnrtv";
        static const char meant[] = "\a\b\f\n\r\t\v";
        char c = s.data[at + 1];
        const char *letter = memchr(letters, c, sizeof(letters) - 1);

        if (letter != NULL) {
            inf_buf_putc(out, meant[letter - letters]);
            at += 2;
        } else if (is_octal((unsigned char) c)) {
            at += 1;
            inf_buf_putc(out, (char) unescape_number(s, &at, 8, 3));
        } else if (c == 'x') {
            at += 2;
            inf_buf_putc(out, (char) unescape_number(s, &at, 16, 2));
        } else if (c == 'u' || c == 'U') {
            char utf8[4];
            inf_buf_put(out, utf8, inf_utf8_put(utf8, unescape_code(s, &at)));
        } else {
            inf_buf_putc(out, c);
            at += 2;
        }
    }
}

bool
inf_token_integer(inf_slice_t token, uint64_t *out)
{
    if (token.len > 2 && token.data[0] == '0'
        && (token.data[1] == 'x' || token.data[1] == 'X'))
    {
        return inf_number_parse_digits(inf_slice(token.data + 2,
            token.len - 2), 16, out);
    }
    return inf_number_parse_digits(token, token.data[0] == '0' ? 8 : 10, out);
}

/* Skips white space and comments. */
static void
lexer_blank(lexer_t *l)
{
    for (;;) {
        int c = lexer_peek(l, 0);

        if (c == '#') {
            const char *from = l->text.data + l->at;
            const char *end = memchr(from, '\n', l->text.len - l->at);
            size_t len = end == NULL ? l->text.len - l->at
                : (size_t) (end - from);

            /* a NUL byte is invalid in comments too */
            end = memchr(from, '\0', len);
            l->at += end == NULL ? len : (size_t) (end - from);
            continue;
        }
        if (c < 0 || memchr(" \n\t\r\v\f", c, 6) == NULL) {
            return;
        }
        l->at++;
    }
}

static void
lexer_token(lexer_t *l)
{
    size_t start = l->at;

    l->token = (inf_token_t) {
        .kind = INF_TOKEN_END,
        .text = inf_slice(l->text.data + start, 0),
        .at = start
    };

    int c = lexer_peek(l, 0);
    if (c < 0) {
        return;
    }

    if (is_name_start(c)) {
        lexer_name(l);
    } else if (is_digit(c) || (c == '.' && is_digit(lexer_peek(l, 1)))) {
        lexer_number(l);
    } else if (c == '"' || c == '\'') {
        lexer_string(l);
    } else if (c < 0x20 || c >= 0x7f) {
        lexer_bad(l, c == '\0' ? "a NUL byte: this is no text"
            : "only strings and comments may hold such a byte");
    } else {
        l->token.kind = INF_TOKEN_SYMBOL;
        l->at++;
    }

    if (l->token.kind != INF_TOKEN_BAD) {
        l->token.text.len = l->at - start;
    }
}

static void
lexer_name(lexer_t *l)
{
    l->token.kind = INF_TOKEN_NAME;
    while (is_name_start(lexer_peek(l, 0)) || is_digit(lexer_peek(l, 0))) {
        l->at++;
    }
}

static void
lexer_number(lexer_t *l)
{
    l->token.kind = INF_TOKEN_INTEGER;

    if (lexer_peek(l, 0) == '0'
        && (lexer_peek(l, 1) == 'x' || lexer_peek(l, 1) == 'X'))
    {
        l->at += 2;
        if (lexer_digits(l, is_hex) == 0) {
            lexer_bad(l, "\"0x\" must be followed by hexadecimal digits");
            return;
        }
    } else if (lexer_peek(l, 0) == '0' && is_digit(lexer_peek(l, 1))) {
        lexer_digits(l, is_octal);
        if (is_digit(lexer_peek(l, 0))) {
            lexer_bad(l, "a number that begins with 0 is octal");
            return;
        }
    } else if (!lexer_fraction(l)) {
        return;
    }

    if (is_name_start(lexer_peek(l, 0))) {
        lexer_bad(l, "a space is missing between number and name");
    } else if (lexer_peek(l, 0) == '.') {
        lexer_bad(l, "the number has a point too many");
    }
}

/* Reads a decimal number; false: invalid. */
static bool
lexer_fraction(lexer_t *l)
{
    lexer_digits(l, is_digit);

    if (lexer_peek(l, 0) == '.') {
        l->token.kind = INF_TOKEN_REAL;
        l->at++;
        lexer_digits(l, is_digit);
    }

    int c = lexer_peek(l, 0);
    if (c == 'e' || c == 'E') {
        l->token.kind = INF_TOKEN_REAL;
        l->at++;
        if (lexer_peek(l, 0) == '+' || lexer_peek(l, 0) == '-') {
            l->at++;
        }
        if (lexer_digits(l, is_digit) == 0) {
            lexer_bad(l, "\"e\" must be followed by an exponent");
            return false;
        }
    }

    c = lexer_peek(l, 0);
    if (c == 'f' || c == 'F') {
        l->token.kind = INF_TOKEN_REAL;
        l->at++;
    }
    return true;
}

static void
lexer_string(lexer_t *l)
{
    int quote = lexer_peek(l, 0);

    l->token.kind = INF_TOKEN_STRING;
    l->at++;
    for (;;) {
        int c = lexer_peek(l, 0);

        if (c < 0) {
            lexer_bad(l, "the string has no end");
            return;
        }
        if (c == '\n') {
            lexer_bad(l, "a string ends on the line where it begins");
            return;
        }
        if (c == '\0') {
            lexer_bad(l, "a string cannot hold a raw NUL byte");
            return;
        }
        if (c == '\\') {
            if (!lexer_escape(l)) {
                return;
            }
            continue;
        }
        l->at++;
        if (c == quote) {
            return;
        }
    }
}

/* Skips one escape; false: invalid. */
static bool
lexer_escape(lexer_t *l)
{
    int c = lexer_peek(l, 1);
    size_t digits = 0;

    if (c > 0 && strchr("abfnrtv\\?'\"01234567", c) != NULL) {
        l->at += 2;
        return true;
    }

    if (c == 'x') {
        digits = 1;
    } else if (c == 'u') {
        digits = 4;
    } else if (c == 'U') {
        digits = 8;
    } else {
        lexer_bad(l, "unknown escape in string");
        return false;
    }

    for (size_t i = 0; i < digits; i++) {
        if (!is_hex(lexer_peek(l, 2 + i))) {
            lexer_bad(l, "an escape in the string lacks hexadecimal digits");
            return false;
        }
    }

    size_t at = l->at + 2;
    if (c == 'U' && unescape_number(l->text, &at, 16, 8) > CODE_MAX) {
        lexer_bad(l, "an escape in the string is no Unicode character");
        return false;
    }
    l->at += 2 + digits;
    return true;
}

/* Makes the token BAD, at the position of the fault. */
static void
lexer_bad(lexer_t *l, const char *reason)
{
    l->reason = reason;
    l->token.kind = INF_TOKEN_BAD;
    l->token.at = l->at;
}

static int
lexer_peek(const lexer_t *l, size_t ahead)
{
    return ahead < l->text.len - l->at
        ? (unsigned char) l->text.data[l->at + ahead] : -1;
}

static size_t
lexer_digits(lexer_t *l, bool (*is)(int))
{
    size_t start = l->at;

    while (is(lexer_peek(l, 0))) {
        l->at++;
    }
    return l->at - start;
}

static bool
is_name_start(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool
is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool
is_octal(int c)
{
    return c >= '0' && c <= '7';
}

static bool
is_hex(int c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Reads up to max digits at *at and moves past them. */
static uint32_t
unescape_number(inf_slice_t s, size_t *at, unsigned base, size_t max)
{
    size_t n = 0;

    while (n < max && *at + n < s.len) {
        int c = (unsigned char) s.data[*at + n];
        if (!(base == 8 ? is_octal(c) : is_hex(c))) {
            break;
        }
        n++;
    }

    uint64_t v = 0;
    (void) inf_number_parse_digits(inf_slice(s.data + *at, n), base, &v);
    *at += n;
    return (uint32_t) v;
}

/* Reads the escape at *at, "\u" or "\U"; a surrogate pair gives one
   character. */
static uint32_t
unescape_code(inf_slice_t s, size_t *at)
{
    size_t digits = s.data[*at + 1] == 'u' ? 4 : 8;
    *at += 2;
    uint32_t code = unescape_number(s, at, 16, digits);

    if (code < 0xd800 || code > 0xdbff || s.len - *at < 6
        || s.data[*at] != '\\' || s.data[*at + 1] != 'u')
    {
        return code;
    }

    size_t next = *at + 2;
    uint32_t low = unescape_number(s, &next, 16, 4);
    if (low < 0xdc00 || low > 0xdfff) {
        return code;
    }
    *at = next;
    return 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
}
