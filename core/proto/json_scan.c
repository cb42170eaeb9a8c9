/*
 * json_scan.c - see json_scan.h.
 *
 * The token that may come next (expect) and how far the open one is (lex) are
 * all the state there is, besides a bit per open container.
 */

#include <string.h>

#include "core/proto/json_plain.h"
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

typedef enum {
    LEX_NONE,
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

typedef struct {
    const char      *text;
    inf_json_event_t event;
} word_t;

#define WORD_INFINITY   4u
#define WORD_INF_LEN    3u

static const word_t words[] = {
    { "true",     INF_JSON_TRUE },
    { "false",    INF_JSON_FALSE },
    { "null",     INF_JSON_NULL },
    { "NaN",      INF_JSON_NONFINITE },
    { "Infinity", INF_JSON_NONFINITE }      /* or its first three letters */
};

static bool in_object(const inf_json_scan_t *s);
static inf_json_event_t step(inf_json_scan_t *s, const char *text,
    const char *end, bool final);
static bool open_word(inf_json_scan_t *s, char c);
static inf_json_event_t open_value(inf_json_scan_t *s, char c);
static inf_json_event_t open_container(inf_json_scan_t *s, bool object);
static inf_json_event_t close_container(inf_json_scan_t *s, bool object);
static inf_json_event_t read_token(inf_json_scan_t *s, const char *text,
    const char *end, bool final);
static inf_json_event_t read_string(inf_json_scan_t *s, const char *text,
    const char *end);
static inf_json_event_t read_string_byte(inf_json_scan_t *s, char c);
static inf_json_event_t read_hex(inf_json_scan_t *s, char c);
static inf_json_event_t read_number(inf_json_scan_t *s, const char *text,
    const char *end, bool final);
static lex_t number_move(lex_t lex, char c);
static inf_json_event_t read_word(inf_json_scan_t *s, const char *text,
    const char *end, bool final);
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

/* Where this call must stop; *final: nothing can come after that. */
static const char *
horizon(const inf_json_scan_t *s, const char *text, size_t avail, bool last,
    size_t budget, bool *final)
{
    size_t room = avail - (size_t) s->pos;

    *final = last && room <= budget;
    return text + s->pos + (room < budget ? room : budget);
}

inf_json_event_t
inf_json_scan_next(inf_json_scan_t *s, const char *text, size_t avail,
    bool last, size_t *budget)
{
    bool final;
    const char *end = horizon(s, text, avail, last, *budget, &final);
    uint64_t from = s->pos;
    inf_json_event_t event = step(s, text, end, final);

    *budget -= (size_t) (s->pos - from);
    return event;
}

inf_json_event_t
inf_json_scan_skip(inf_json_scan_t *s, const char *text, size_t avail,
    bool last, size_t *budget, uint32_t depth, inf_json_tally_t *tally)
{
    bool final;
    const char *end = horizon(s, text, avail, last, *budget, &final);
    uint64_t from = s->pos;
    inf_json_event_t event;

    do {
        if (s->lex == LEX_NONE && !in_object(s)) {
            skip_numbers(s, text, end, tally);
        }

        event = step(s, text, end, final);
        count_event(tally, s, event);

    } while (event > INF_JSON_ERROR && s->depth >= depth);

    *budget -= (size_t) (s->pos - from);
    return event;
}

static inf_json_event_t
fail(inf_json_scan_t *s, const char *reason)
{
    s->reason = reason;
    return INF_JSON_ERROR;
}

static bool
is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static bool
in_object(const inf_json_scan_t *s)
{
    uint32_t level = s->depth - 1;

    return (s->objects[level / 64] >> (level % 64) & 1) != 0;
}

static void
after_value(inf_json_scan_t *s)
{
    s->expect = s->depth != 0 ? EXPECT_NEXT : EXPECT_NOTHING;
}

static inf_json_event_t
text_ends(inf_json_scan_t *s, bool final)
{
    if (!final) {
        return INF_JSON_AGAIN;
    }

    switch ((expect_t) s->expect) {
    case EXPECT_NOTHING:
        return INF_JSON_END;

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

    return fail(s, in_object(s)
                ? "Missing a comma or } after an object member."
                : "Missing a comma or ] after an array element.");
}

/* Up to the next event. */
static inf_json_event_t
step(inf_json_scan_t *s, const char *text, const char *end, bool final)
{
    if (s->lex != LEX_NONE) {
        return read_token(s, text, end, final);
    }

    for ( ;; ) {
        const char *p = text + s->pos;
        while (p != end && is_space(*p)) {
            p++;
        }

        s->pos = (uint64_t) (p - text);
        if (p == end) {
            return text_ends(s, final);
        }

        s->token = s->pos;

        switch ((expect_t) s->expect) {

        case EXPECT_NEXT:
            if (*p == (in_object(s) ? '}' : ']')) {
                return close_container(s, *p == '}');
            }

            if (*p != ',') {
                return text_ends(s, true);
            }

            s->expect = in_object(s) ? EXPECT_KEY : EXPECT_VALUE;
            s->pos++;
            continue;

        case EXPECT_COLON:
            if (*p != ':') {
                return text_ends(s, true);
            }

            s->expect = EXPECT_VALUE;
            s->pos++;
            continue;

        case EXPECT_FIRST_KEY:
            if (*p == '}') {
                return close_container(s, true);
            }

            /* fall through */

        case EXPECT_KEY:
            if (*p != '"') {
                return text_ends(s, true);
            }

            s->key = true;
            break;

        case EXPECT_FIRST_ELEMENT:
            if (*p == ']') {
                return close_container(s, false);
            }

            /* fall through */

        case EXPECT_VALUE:
            s->key = false;
            if (*p != '"') {
                inf_json_event_t event = open_value(s, *p);
                if (event != INF_JSON_AGAIN) {
                    return event;
                }

                return read_token(s, text, end, final);
            }

            break;

        case EXPECT_NOTHING:
            return fail(s, "The document root must not be followed by other "
                        "values.");
        }

        s->pos++;
        s->lex = LEX_STRING;
        s->decoded = 0;
        s->escaped = false;
        return read_token(s, text, end, final);
    }
}

/* AGAIN: a token is open now. */
static inf_json_event_t
open_value(inf_json_scan_t *s, char c)
{
    if (c == '[' || c == '{') {
        return open_container(s, c == '{');
    }

    lex_t number = c == '-' ? LEX_MINUS : number_move(LEX_MINUS, c);
    if (number != LEX_NONE) {
        s->lex = (uint8_t) number;
        s->pos++;
        return INF_JSON_AGAIN;
    }

    if (!open_word(s, c)) {
        return fail(s, "Invalid value.");
    }

    return INF_JSON_AGAIN;
}

static bool
open_word(inf_json_scan_t *s, char c)
{
    for (uint8_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (words[i].text[0] == c
            && (words[i].event != INF_JSON_NONFINITE || s->nonfinite))
        {
            s->lex = LEX_WORD;
            s->word = i;
            s->word_pos = 1;
            s->pos++;
            return true;
        }
    }

    return false;
}

static inf_json_event_t
open_container(inf_json_scan_t *s, bool object)
{
    if (s->depth >= s->max_depth) {
        return fail(s, "The values are nested too deeply.");
    }

    uint64_t bit = UINT64_C(1) << (s->depth % 64);
    uint64_t *word = &s->objects[s->depth / 64];

    *word = object ? *word | bit : *word & ~bit;
    s->depth++;
    s->pos++;
    s->expect = object ? EXPECT_FIRST_KEY : EXPECT_FIRST_ELEMENT;
    return object ? INF_JSON_OBJECT_BEGIN : INF_JSON_ARRAY_BEGIN;
}

static inf_json_event_t
close_container(inf_json_scan_t *s, bool object)
{
    s->depth--;
    s->pos++;
    after_value(s);
    return object ? INF_JSON_OBJECT_END : INF_JSON_ARRAY_END;
}

static inf_json_event_t
read_token(inf_json_scan_t *s, const char *text, const char *end, bool final)
{
    inf_json_event_t event;

    if (s->lex == LEX_WORD) {
        return read_word(s, text, end, final);
    }

    if (s->lex >= LEX_MINUS) {
        return read_number(s, text, end, final);
    }

    event = read_string(s, text, end);
    if (event == INF_JSON_AGAIN && final) {
        return fail(s, "Missing a closing quotation mark in string.");
    }

    return event;
}

static inf_json_event_t
read_string(inf_json_scan_t *s, const char *text, const char *end)
{
    const char *p = text + s->pos;

    while (p != end) {
        if (s->lex == LEX_STRING) {
            const char *q = inf_json_plain_run(p, end);
            s->decoded += (uint64_t) (q - p);
            s->pos += (uint64_t) (q - p);
            p = q;
            if (p == end) {
                break;
            }
        }

        inf_json_event_t event = read_string_byte(s, *p);
        if (event == INF_JSON_ERROR) {
            return event;
        }

        s->pos++;
        p++;
        if (event != INF_JSON_AGAIN) {
            return event;
        }
    }

    return INF_JSON_AGAIN;
}

/* AGAIN: the string goes on. */
static inf_json_event_t
read_string_byte(inf_json_scan_t *s, char c)
{
    switch ((lex_t) s->lex) {

    case LEX_STRING:
        if (c == '"') {
            s->lex = LEX_NONE;
            if (s->key) {
                s->expect = EXPECT_COLON;
                return INF_JSON_KEY;
            }

            after_value(s);
            return INF_JSON_STRING;
        }

        if (c != '\\') {
            return fail(s, "Control character in string.");
        }

        s->lex = LEX_ESCAPE;
        s->escaped = true;
        return INF_JSON_AGAIN;

    case LEX_ESCAPE:
        if (c == 'u') {
            s->lex = LEX_HEX;
            s->hex = 0;
            s->hex_count = 0;
            s->surrogate = 0;
            return INF_JSON_AGAIN;
        }

        if (c == '\0' || strchr("\"\\/bfnrt", c) == NULL) {
            return fail(s, "Invalid escape character in string.");
        }

        s->lex = LEX_STRING;
        s->decoded++;
        return INF_JSON_AGAIN;

    case LEX_HEX:
        return read_hex(s, c);

    case LEX_LOW_ESCAPE:
    case LEX_LOW_U:
        if (c != (s->lex == LEX_LOW_U ? 'u' : '\\')) {
            return fail(s, "The surrogate pair in string is invalid.");
        }

        s->lex = s->lex == LEX_LOW_U ? LEX_HEX : LEX_LOW_U;
        s->hex = 0;
        s->hex_count = 0;
        return INF_JSON_AGAIN;

    default:
        return fail(s, "Invalid value.");
    }
}

static inf_json_event_t
read_hex(inf_json_scan_t *s, char c)
{
    unsigned digit = (unsigned char) c - '0';

    if (digit > 9) {
        digit = ((unsigned char) c | 0x20u) - 'a';
        if (digit > 5) {
            return fail(s, "Incorrect hex digit after \\u escape in string.");
        }

        digit += 10;
    }

    s->hex = (uint16_t) (s->hex << 4 | digit);
    if (++s->hex_count < 4) {
        return INF_JSON_AGAIN;
    }

    bool low = s->hex >= 0xdc00 && s->hex <= 0xdfff;
    if (low != (s->surrogate != 0)) {
        return fail(s, "The surrogate pair in string is invalid.");
    }

    if (s->hex >= 0xd800 && s->hex <= 0xdbff) {
        s->surrogate = s->hex;
        s->lex = LEX_LOW_ESCAPE;
        return INF_JSON_AGAIN;
    }

    s->decoded += low ? 4u : 1u + (s->hex >= 0x80) + (s->hex >= 0x800);
    s->lex = LEX_STRING;
    return INF_JSON_AGAIN;
}

static inf_json_event_t
read_number(inf_json_scan_t *s, const char *text, const char *end, bool final)
{
    const char *p = text + s->pos;
    lex_t lex = s->lex;
    lex_t next = lex;

    while (p != end && (next = number_move(lex, *p)) != LEX_NONE) {
        lex = next;
        p++;
    }

    s->lex = (uint8_t) lex;
    s->pos = (uint64_t) (p - text);

    if (s->pos - s->token > INF_NUMBER_MAX_INPUT) {
        return fail(s, "The number is too long.");
    }

    if (p == end && !final) {
        return INF_JSON_AGAIN;
    }

    switch (lex) {
    case LEX_ZERO:
    case LEX_INTEGER:
    case LEX_FRACTION:
    case LEX_EXPONENT:
        s->lex = LEX_NONE;
        after_value(s);
        return INF_JSON_NUMBER;

    case LEX_MINUS:
        if (s->nonfinite && p != end && *p == 'I') {
            (void) open_word(s, 'I');
            return read_word(s, text, end, final);
        }

        return fail(s, "Invalid value.");

    case LEX_POINT:
        return fail(s, "Miss fraction part in number.");

    default:
        return fail(s, "Miss exponent in number.");
    }
}

/* LEX_NONE: c does not belong to the number. */
static lex_t
number_move(lex_t lex, char c)
{
    if (c >= '0' && c <= '9') {
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
               ? LEX_E : LEX_NONE;
    }

    return (c == '+' || c == '-') && lex == LEX_E ? LEX_E_SIGN : LEX_NONE;
}

static inf_json_event_t
read_word(inf_json_scan_t *s, const char *text, const char *end, bool final)
{
    const word_t *word = &words[s->word];
    const char *p = text + s->pos;

    while (p != end && word->text[s->word_pos] != '\0'
           && *p == word->text[s->word_pos])
    {
        s->word_pos++;
        p++;
    }

    s->pos = (uint64_t) (p - text);
    bool whole = word->text[s->word_pos] == '\0';
    if (!whole && p == end && !final) {
        return INF_JSON_AGAIN;
    }

    if (!whole && (s->word != WORD_INFINITY || s->word_pos != WORD_INF_LEN)) {
        return fail(s, "Invalid value.");
    }

    s->lex = LEX_NONE;
    after_value(s);
    return word->event;
}

/* The hot loop, inside an array: numbers and commas, whole numbers only;
   anything else, and what may go on behind end, is left to step(). */
static void
skip_numbers(inf_json_scan_t *s, const char *text, const char *end,
    inf_json_tally_t *tally)
{
    const char *p = text + s->pos;
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

    s->pos = (uint64_t) (p - text);

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

/* NULL: no number, or one that reaches end or is too long. */
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
        tally->string_bytes += s->decoded;
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
