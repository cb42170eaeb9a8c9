/*
 * json_scan.c - see json_scan.h.
 *
 * The state is the next expected token (expect) and a bit per open container,
 * besides the tokenizer's.
 */

#include <string.h>

#include "core/proto/json_scan.h"
#include "core/proto/number.h"

typedef enum {
    EXPECT_VALUE,
    EXPECT_FIRST_ELEMENT,       /* or ']'                                    */
    EXPECT_FIRST_KEY,           /* or '}'                                    */
    EXPECT_KEY,
    EXPECT_COLON,
    EXPECT_NEXT,                /* ',' or the container's end                */
    EXPECT_NOTHING              /* the root is complete                      */
} expect_t;

typedef struct {
    const char      *text;
    inf_json_event_t event;
} word_t;

#define SHORT_LEN 3u            /* of "Inf", short for Infinity              */

static const word_t words[] = {
    { "true",     INF_JSON_TRUE },
    { "false",    INF_JSON_FALSE },
    { "null",     INF_JSON_NULL },
    { "NaN",      INF_JSON_NONFINITE },
    { "Infinity", INF_JSON_NONFINITE }
};

static inf_json_event_t no_event(inf_json_scan_t *s, int c, bool final);
static bool take_separator(inf_json_scan_t *s, int c);
static inf_json_event_t open_container(inf_json_scan_t *s, bool object);
static inf_json_event_t close_container(inf_json_scan_t *s);
static inf_json_event_t string_event(inf_json_scan_t *s);
static inf_json_event_t read_token(inf_json_scan_t *s, const char *text,
    const char *end, bool final);
static inf_json_event_t read_word(inf_json_scan_t *s, const char *text);
static const char *fault_reason(const inf_json_tokens_t *t);
static void skip_numbers(inf_json_scan_t *s, const char *text,
    const char *end, inf_json_tally_t *tally);
static const char *number_end(const char *p, const char *end);
static void count_event(inf_json_tally_t *tally, const inf_json_scan_t *s,
    inf_json_event_t event);

void
inf_json_scan_init(inf_json_scan_t *s, uint32_t max_depth)
{
    memset(s, 0, sizeof(*s));
    s->expect = EXPECT_VALUE;
    s->max_depth = max_depth < INF_JSON_MAX_DEPTH ? max_depth
                                                  : INF_JSON_MAX_DEPTH;
}

inf_json_event_t
inf_json_scan_skip(inf_json_scan_t *s, const char *text, const char *end,
    bool final, uint32_t depth, inf_json_tally_t *tally)
{
    inf_json_event_t event;

    do {
        if (!inf_json_tokens_open(&s->tokens) && s->closing == ']') {
            skip_numbers(s, text, end, tally);
        }

        event = inf_json_scan_next(s, text, end, final);
        count_event(tally, s, event);

    } while (event > INF_JSON_ERROR && s->depth >= depth);

    return event;
}

static inf_json_event_t
fail(inf_json_scan_t *s, const char *reason)
{
    s->reason = reason;
    return INF_JSON_ERROR;
}

static void
after_value(inf_json_scan_t *s)
{
    s->expect = s->depth != 0 ? EXPECT_NEXT : EXPECT_NOTHING;
}

/* The event at the end of the text (c < 0), or at an unexpected c. */
static inf_json_event_t
no_event(inf_json_scan_t *s, int c, bool final)
{
    if (c < 0 && !final) {
        return INF_JSON_AGAIN;
    }

    switch ((expect_t) s->expect) {
    case EXPECT_NOTHING:
        return c < 0 ? INF_JSON_END
                     : fail(s, "The document root must not be followed by "
                            "other values.");

    case EXPECT_VALUE:
        return fail(s, s->depth == 0 ? "The document is empty."
                                     : "Invalid value.");

    case EXPECT_FIRST_ELEMENT:
        return fail(s, "Invalid value.");

    case EXPECT_FIRST_KEY:
    case EXPECT_KEY:
        return fail(s, "Missing a name for object member.");

    case EXPECT_COLON:
        return fail(s, "Missing a colon after a name of object member.");

    case EXPECT_NEXT:
        break;
    }

    return fail(s, s->closing == '}'
                ? "Missing a comma or '}' after an object member."
                : "Missing a comma or ']' after an array element.");
}

inf_json_event_t
inf_json_scan_next(inf_json_scan_t *s, const char *text, const char *end,
    bool final)
{
    if (inf_json_tokens_open(&s->tokens)) {
        return read_token(s, text, end, final);
    }

    int c = inf_json_tokens_peek(&s->tokens, text, end);

    if (s->expect >= EXPECT_COLON) {
        if (s->expect == EXPECT_NEXT && c == s->closing) {
            return close_container(s);
        }

        if (!take_separator(s, c)) {
            return no_event(s, c, final);
        }

        c = inf_json_tokens_peek(&s->tokens, text, end);
    }

    bool first = s->expect == EXPECT_FIRST_KEY
                 || s->expect == EXPECT_FIRST_ELEMENT;

    if (first && c == s->closing) {
        return close_container(s);
    }

    if (s->expect >= EXPECT_FIRST_KEY) {
        if (c != '"') {
            return no_event(s, c, final);
        }

        s->expect = EXPECT_KEY;
    }

    if (c == '"' && inf_json_tokens_plain(&s->tokens, text, end)) {
        return string_event(s);
    }

    if (c == '[' || c == '{') {
        return open_container(s, c == '{');
    }

    return c < 0 ? no_event(s, c, final) : read_token(s, text, end, final);
}

/* Takes ':' or ','; false: c is not the expected separator. */
static bool
take_separator(inf_json_scan_t *s, int c)
{
    bool colon = s->expect == EXPECT_COLON;

    if (s->expect == EXPECT_NOTHING || c != (colon ? ':' : ',')) {
        return false;
    }

    s->expect = !colon && s->closing == '}' ? EXPECT_KEY : EXPECT_VALUE;
    s->tokens.pos++;
    return true;
}

static inf_json_event_t
open_container(inf_json_scan_t *s, bool object)
{
    if (s->depth >= s->max_depth) {
        s->too_deep = true;
        return fail(s, "The values are nested too deeply.");
    }

    uint64_t bit = UINT64_C(1) << (s->depth % 64);
    uint64_t *word = &s->objects[s->depth / 64];

    *word = object ? *word | bit : *word & ~bit;
    s->closing = object ? '}' : ']';
    s->tokens.start = s->tokens.pos;
    s->depth++;
    s->tokens.pos++;
    s->expect = object ? EXPECT_FIRST_KEY : EXPECT_FIRST_ELEMENT;
    return object ? INF_JSON_OBJECT_BEGIN : INF_JSON_ARRAY_BEGIN;
}

static inf_json_event_t
close_container(inf_json_scan_t *s)
{
    bool object = s->closing == '}';

    s->tokens.start = s->tokens.pos;
    s->depth--;
    s->tokens.pos++;
    if (s->depth != 0) {
        uint32_t level = s->depth - 1;
        bool outer = (s->objects[level / 64] >> (level % 64) & 1) != 0;
        s->closing = outer ? '}' : ']';
    }

    after_value(s);
    return object ? INF_JSON_OBJECT_END : INF_JSON_ARRAY_END;
}

static inf_json_event_t
string_event(inf_json_scan_t *s)
{
    if (s->expect == EXPECT_KEY) {
        s->expect = EXPECT_COLON;
        return INF_JSON_KEY;
    }

    after_value(s);
    return INF_JSON_STRING;
}

/* Reads a key or scalar.  Not inlined, so that inf_json_scan_next saves few
   registers in the common case. */
__attribute__((noinline)) static inf_json_event_t
read_token(inf_json_scan_t *s, const char *text, const char *end, bool final)
{
    switch (inf_json_tokens_next(&s->tokens, text, end, final)) {

    case INF_JSON_TOKEN_AGAIN:
        return INF_JSON_AGAIN;

    case INF_JSON_TOKEN_STRING:
        return string_event(s);

    case INF_JSON_TOKEN_NUMBER:
        after_value(s);
        return INF_JSON_NUMBER;

    case INF_JSON_TOKEN_WORD:
        return read_word(s, text);

    case INF_JSON_TOKEN_BAD:
        return fail(s, fault_reason(&s->tokens));

    case INF_JSON_TOKEN_SYMBOL:
        s->tokens.pos = s->tokens.start;
        if (text[s->tokens.pos] == '{' || text[s->tokens.pos] == '[') {
            /* after a byte order mark; all others are opened above */
            return open_container(s, text[s->tokens.pos] == '{');
        }
        break;

    case INF_JSON_TOKEN_END:
        return no_event(s, -1, final);
    }

    return fail(s, "Invalid value.");
}

/* Reads a word; text after the word belongs to the next token. */
static inf_json_event_t
read_word(inf_json_scan_t *s, const char *text)
{
    const char *p = text + s->tokens.start;
    const char *end = text + s->tokens.pos;
    bool minus = *p == '-';
    inf_json_event_t event = INF_JSON_ERROR;

    p += minus;

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        const char *word = words[i].text;
        size_t len = 0;

        if (*word != *p || (minus && *word != 'I')
            || (words[i].event == INF_JSON_NONFINITE && !s->nonfinite))
        {
            continue;
        }

        while (p != end && word[len] != '\0' && *p == word[len]) {
            len++;
            p++;
        }

        if (word[len] == '\0' || (*word == 'I' && len == SHORT_LEN)) {
            event = words[i].event;
        }

        break;
    }

    s->tokens.pos = (uint64_t) (p - text);
    if (event == INF_JSON_ERROR) {
        return fail(s, "Invalid value.");
    }

    after_value(s);
    return event;
}

static const char *
fault_reason(const inf_json_tokens_t *t)
{
    if (t->ended) {
        return "Missing a closing quotation mark in string.";
    }

    switch (t->fault) {
    case INF_JSON_FAULT_CONTROL:
        return "Control character in string.";
    case INF_JSON_FAULT_ESCAPE:
        return "Invalid escape character in string.";
    case INF_JSON_FAULT_HEX:
        return "Incorrect hex digit after \\u escape in string.";
    case INF_JSON_FAULT_SURROGATE:
        return "The surrogate pair in string is invalid.";
    case INF_JSON_FAULT_FRACTION:
        return "Miss fraction part in number.";
    case INF_JSON_FAULT_EXPONENT:
        return "Miss exponent in number.";
    case INF_JSON_FAULT_LENGTH:
        return "The number is too long.";
    case INF_JSON_FAULT_BYTE:
    case INF_JSON_FAULT_QUOTE:
    case INF_JSON_FAULT_NUMBER:
        break;
    }

    return "Invalid value.";
}

/* Fast loop over the numbers and commas of an array.  Other tokens, and a
   number that reaches end, are left to the next event. */
static void
skip_numbers(inf_json_scan_t *s, const char *text, const char *end,
    inf_json_tally_t *tally)
{
    const char *p = text + s->tokens.pos;
    const char *q;
    uint64_t count = 0;

    if (s->expect == EXPECT_NEXT) {
        if (p == end || *p != ',') {
            return;
        }

        s->expect = EXPECT_VALUE;
        p++;
    }

    while ((q = number_end(p, end)) != NULL) {
        count++;
        if (*q != ',') {
            p = q;
            s->expect = EXPECT_NEXT;
            break;
        }

        s->expect = EXPECT_VALUE;
        p = q + 1;
        if (p != end && *p == ' ') {
            p++;
        }
    }

    s->tokens.pos = (uint64_t) (p - text);

    if (count != 0) {
        tally->count += count;
        tally->kinds |= INF_JSON_KIND_NUMBER;
    }
}

static const char *
skip_digits(const char *p, const char *end)
{
    while (p != end && (unsigned char) (*p - '0') <= 9) {
        p++;
    }

    return p;
}

/* The end of a number; NULL: not a number, too long, or it reaches end. */
static const char *
number_end(const char *p, const char *end)
{
    const char *start = p;
    const char *digits;

    if (p != end && *p == '-') {
        p++;
    }

    digits = p;
    p = skip_digits(p, end);
    if (p == digits || p == end || (*digits == '0' && p - digits > 1)) {
        return NULL;
    }

    if (*p == '.') {
        digits = ++p;
        p = skip_digits(p, end);
        if (p == digits || p == end) {
            return NULL;
        }
    }

    if (*p == 'e' || *p == 'E') {
        p++;
        if (p != end && (*p == '+' || *p == '-')) {
            p++;
        }

        digits = p;
        p = skip_digits(p, end);
        if (p == digits || p == end) {
            return NULL;
        }
    }

    return (size_t) (p - start) <= INF_NUMBER_MAX_INPUT ? p : NULL;
}

static void
count_event(inf_json_tally_t *tally, const inf_json_scan_t *s,
    inf_json_event_t event)
{
    switch (event) {

    case INF_JSON_STRING:
        tally->kinds |= INF_JSON_KIND_STRING;
        tally->string_bytes += s->tokens.decoded;
        break;

    case INF_JSON_NUMBER:
    case INF_JSON_NONFINITE:
        tally->kinds |= INF_JSON_KIND_NUMBER;
        break;

    case INF_JSON_TRUE:
    case INF_JSON_FALSE:
        tally->kinds |= INF_JSON_KIND_BOOL;
        break;

    case INF_JSON_NULL:
        tally->kinds |= INF_JSON_KIND_NULL;
        break;

    case INF_JSON_OBJECT_BEGIN:
        tally->kinds |= INF_JSON_KIND_OBJECT;
        return;

    default:
        return;
    }

    tally->count++;
}
