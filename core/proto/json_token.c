/*
 * json_token.c - see json_token.h.
 *
 * The only state is the position in the open token's grammar (lex).
 */

#include <string.h>

#include "core/proto/json_plain.h"
#include "core/proto/json_token.h"
#include "core/proto/number.h"

typedef enum {
    LEX_NONE,
    LEX_MARK,                   /* a byte order mark                         */
    LEX_STRING,
    LEX_ESCAPE,                 /* after '\'                                 */
    LEX_HEX,                    /* inside \uXXXX                             */
    LEX_LOW_ESCAPE,             /* '\' of the low surrogate                  */
    LEX_LOW_U,                  /* its 'u'                                   */
    LEX_WORD,
    LEX_MINUS,
    LEX_ZERO,
    LEX_INTEGER,
    LEX_POINT,
    LEX_FRACTION,
    LEX_E,
    LEX_E_SIGN,
    LEX_EXPONENT
} lex_t;

static inf_json_token_t open_token(inf_json_tokens_t *t, char c);
static inf_json_token_t read_mark(inf_json_tokens_t *t, const char *text,
    const char *end, bool final);
static bool read_plain(inf_json_tokens_t *t, const char *text,
    const char *end);
static inf_json_token_t read_string(inf_json_tokens_t *t, const char *text,
    const char *end, bool final);
static inf_json_token_t read_string_byte(inf_json_tokens_t *t, char c);
static inf_json_token_t read_escape(inf_json_tokens_t *t, char c);
static inf_json_token_t read_hex(inf_json_tokens_t *t, char c);
static inf_json_token_t read_number(inf_json_tokens_t *t, const char *text,
    const char *end, bool final);
static lex_t number_move(lex_t lex, char c, bool lenient);
static inf_json_token_t read_word(inf_json_tokens_t *t, const char *text,
    const char *end, bool final);

static inf_json_token_t
bad(inf_json_tokens_t *t, inf_json_fault_t fault)
{
    t->fault = fault;
    return INF_JSON_TOKEN_BAD;
}

static inf_json_token_t
close_token(inf_json_tokens_t *t, inf_json_token_t token)
{
    t->lex = LEX_NONE;
    return token;
}

static bool
is_digit(char c)
{
    return (unsigned char) (c - '0') <= 9;
}

static bool
is_word(char c)
{
    return (unsigned char) ((c | 0x20) - 'a') < 26 || is_digit(c) || c == '_'
           || c == '$';
}

inf_json_token_t
inf_json_tokens_next(inf_json_tokens_t *t, const char *text, const char *end,
    bool final)
{
    if (t->lex == LEX_NONE) {
        int c = inf_json_tokens_peek(t, text, end);
        t->start = t->pos;
        if (c < 0) {
            return final ? INF_JSON_TOKEN_END : INF_JSON_TOKEN_AGAIN;
        }

        inf_json_token_t token = open_token(t, (char) c);
        if (token != INF_JSON_TOKEN_AGAIN) {
            return token;
        }
    }

    if (t->lex == LEX_MARK) {
        return read_mark(t, text, end, final);
    }

    if (t->lex == LEX_WORD) {
        return read_word(t, text, end, final);
    }

    return t->lex < LEX_WORD ? read_string(t, text, end, final)
                             : read_number(t, text, end, final);
}

/* Begins a token; AGAIN: the token continues. */
static inf_json_token_t
open_token(inf_json_tokens_t *t, char c)
{
    if (c == '"' || (c == '\'' && t->lenient)) {
        t->pos++;
        t->quote = c;
        t->decoded = 0;
        t->ascii = true;
        t->lex = LEX_STRING;
        return INF_JSON_TOKEN_AGAIN;
    }

    if (c == '-' || is_digit(c)) {
        t->pos++;
        t->lex = c == '-' ? LEX_MINUS
                          : (uint8_t) number_move(LEX_MINUS, c, false);
        return INF_JSON_TOKEN_AGAIN;
    }

    if (is_word(c)) {
        t->lex = LEX_WORD;
        return INF_JSON_TOKEN_AGAIN;
    }

    if (c == INF_JSON_MARK[0] && t->pos == 0) {
        t->lex = LEX_MARK;
        return INF_JSON_TOKEN_AGAIN;
    }

    if (memchr("{}[]:,", c, 6) == NULL) {
        return bad(t, INF_JSON_FAULT_BYTE);
    }

    t->pos++;
    return INF_JSON_TOKEN_SYMBOL;
}

/* Skips the mark and reads the token after it. */
static inf_json_token_t
read_mark(inf_json_tokens_t *t, const char *text, const char *end, bool final)
{
    while (t->pos < INF_JSON_MARK_LEN && text + t->pos != end
           && text[t->pos] == INF_JSON_MARK[t->pos])
    {
        t->pos++;
    }

    if (t->pos == INF_JSON_MARK_LEN) {
        t->lex = LEX_NONE;
        return inf_json_tokens_next(t, text, end, final);
    }

    return text + t->pos == end && !final ? INF_JSON_TOKEN_AGAIN
                                          : bad(t, INF_JSON_FAULT_BYTE);
}

/* Reads plain text up to the next quote or escape; true: the string has
   ended. */
static bool
read_plain(inf_json_tokens_t *t, const char *text, const char *end)
{
    const char *p = text + t->pos;
    const char *q = inf_json_ascii_run(p, end);

    if (q != end && (unsigned char) *q > 0x7f) {
        t->ascii = false;
        q = inf_json_plain_run(q, end);
    }

    bool whole = q != end && *q == '"';

    t->decoded += (uint64_t) (q - p);
    t->pos = (uint64_t) (q - text) + whole;
    return whole;
}

static inf_json_token_t
read_string(inf_json_tokens_t *t, const char *text, const char *end,
    bool final)
{
    inf_json_token_t token = INF_JSON_TOKEN_AGAIN;

    while (token == INF_JSON_TOKEN_AGAIN) {
        if (t->lex == LEX_STRING && t->quote == '"'
            && read_plain(t, text, end))
        {
            return close_token(t, INF_JSON_TOKEN_STRING);
        }

        if (text + t->pos == end) {
            break;
        }

        token = read_string_byte(t, text[t->pos]);
        t->pos += token != INF_JSON_TOKEN_BAD;
    }

    if (token == INF_JSON_TOKEN_AGAIN && final) {
        t->ended = true;
        return bad(t, t->lex == LEX_STRING ? INF_JSON_FAULT_QUOTE
                      : t->lex == LEX_ESCAPE ? INF_JSON_FAULT_ESCAPE
                      : t->lex == LEX_HEX ? INF_JSON_FAULT_HEX
                      : INF_JSON_FAULT_SURROGATE);
    }

    return token;
}

/* Reads a byte of a string; AGAIN: the string continues. */
static inf_json_token_t
read_string_byte(inf_json_tokens_t *t, char c)
{
    switch ((lex_t) t->lex) {

    case LEX_STRING:
        if (c == t->quote) {
            return close_token(t, INF_JSON_TOKEN_STRING);
        }

        if ((unsigned char) c < 0x20) {
            return bad(t, INF_JSON_FAULT_CONTROL);
        }

        if (c == '\\') {
            t->lex = LEX_ESCAPE;
            t->escape = t->pos;
        } else {
            t->decoded++;
            t->ascii &= (unsigned char) c < 0x80;
        }

        return INF_JSON_TOKEN_AGAIN;

    case LEX_ESCAPE:
        return read_escape(t, c);

    case LEX_HEX:
        return read_hex(t, c);

    default:                    /* an escape that must be a low surrogate */
        if (c != (t->lex == LEX_LOW_U ? 'u' : '\\')) {
            return bad(t, INF_JSON_FAULT_SURROGATE);
        }

        t->lex = t->lex == LEX_LOW_U ? LEX_HEX : LEX_LOW_U;
        t->hex = 0;
        t->hex_count = 0;
        return INF_JSON_TOKEN_AGAIN;
    }
}

static inf_json_token_t
read_escape(inf_json_tokens_t *t, char c)
{
    t->surrogate = 0;
    if (c == 'u') {
        t->lex = LEX_HEX;
        t->hex = 0;
        t->hex_count = 0;
        return INF_JSON_TOKEN_AGAIN;
    }

    if (memchr("\"\\/bfnrt'", c, t->lenient ? 9 : 8) == NULL) {
        return bad(t, INF_JSON_FAULT_ESCAPE);
    }

    t->lex = LEX_STRING;
    t->decoded++;
    return INF_JSON_TOKEN_AGAIN;
}

static inf_json_token_t
read_hex(inf_json_tokens_t *t, char c)
{
    unsigned digit = (unsigned char) c - '0';

    if (digit > 9) {
        digit = ((unsigned char) c | 0x20u) - 'a';
        if (digit > 5) {
            return bad(t, INF_JSON_FAULT_HEX);
        }

        digit += 10;
    }

    t->hex = (uint16_t) (t->hex << 4 | digit);
    if (++t->hex_count < 4) {
        return INF_JSON_TOKEN_AGAIN;
    }

    bool low = t->hex >= 0xdc00 && t->hex <= 0xdfff;
    if (low != (t->surrogate != 0)) {
        return bad(t, INF_JSON_FAULT_SURROGATE);
    }

    if (t->hex >= 0xd800 && t->hex <= 0xdbff) {
        t->surrogate = t->hex;
        t->lex = LEX_LOW_ESCAPE;
        return INF_JSON_TOKEN_AGAIN;
    }

    t->decoded += low ? 4u : 1u + (t->hex >= 0x80) + (t->hex >= 0x800);
    t->lex = LEX_STRING;
    return INF_JSON_TOKEN_AGAIN;
}

static inf_json_token_t
read_number(inf_json_tokens_t *t, const char *text, const char *end,
    bool final)
{
    const char *p = text + t->pos;
    lex_t lex = t->lex;
    lex_t next;

    while (p != end
           && (next = number_move(lex, *p, t->lenient)) != LEX_NONE)
    {
        lex = next;
        p++;

        if (lex == LEX_INTEGER || lex == LEX_FRACTION || lex == LEX_EXPONENT) {
            while (p != end && is_digit(*p)) {
                p++;
            }
        }
    }

    t->lex = (uint8_t) lex;
    t->pos = (uint64_t) (p - text);

    if (t->pos - t->start > INF_NUMBER_MAX_INPUT) {
        return bad(t, INF_JSON_FAULT_LENGTH);
    }

    if (p == end && !final) {
        return INF_JSON_TOKEN_AGAIN;
    }

    switch (lex) {
    case LEX_ZERO:
    case LEX_INTEGER:
    case LEX_FRACTION:
    case LEX_EXPONENT:
        if (t->lenient && p != end && (is_word(*p) || *p == '.')) {
            return bad(t, INF_JSON_FAULT_NUMBER);
        }

        t->integer = lex == LEX_ZERO || lex == LEX_INTEGER;
        return close_token(t, INF_JSON_TOKEN_NUMBER);

    case LEX_MINUS:
        if (p == end || !is_word(*p)) {
            return bad(t, INF_JSON_FAULT_NUMBER);
        }

        t->lex = LEX_WORD;
        return read_word(t, text, end, final);

    case LEX_POINT:
        return bad(t, INF_JSON_FAULT_FRACTION);

    default:
        return bad(t, INF_JSON_FAULT_EXPONENT);
    }
}

/* The next state; LEX_NONE: c does not belong to the number. */
static lex_t
number_move(lex_t lex, char c, bool lenient)
{
    if (is_digit(c)) {
        switch (lex) {
        case LEX_MINUS:
            return c == '0' ? LEX_ZERO : LEX_INTEGER;
        case LEX_INTEGER:
            return LEX_INTEGER;
        case LEX_POINT:
        case LEX_FRACTION:
            return LEX_FRACTION;
        case LEX_E:
        case LEX_E_SIGN:
        case LEX_EXPONENT:
            return LEX_EXPONENT;
        default:
            return LEX_NONE;
        }
    }

    if (c == '.') {
        return lex == LEX_ZERO || lex == LEX_INTEGER ? LEX_POINT : LEX_NONE;
    }

    if (c == 'e' || c == 'E') {
        return lex == LEX_ZERO || lex == LEX_INTEGER || lex == LEX_FRACTION
               || (lex == LEX_POINT && lenient) ? LEX_E : LEX_NONE;
    }

    return (c == '+' || c == '-') && lex == LEX_E ? LEX_E_SIGN : LEX_NONE;
}

static inf_json_token_t
read_word(inf_json_tokens_t *t, const char *text, const char *end, bool final)
{
    const char *p = text + t->pos;

    while (p != end && is_word(*p)) {
        p++;
    }

    t->pos = (uint64_t) (p - text);
    if (p == end && !final) {
        return INF_JSON_TOKEN_AGAIN;
    }

    return close_token(t, INF_JSON_TOKEN_WORD);
}
