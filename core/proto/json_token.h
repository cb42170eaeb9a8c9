/*
 * json_token.h - a JSON tokenizer that can stop at any byte and continue.
 *
 * Owner    The caller's memory: {0} is the initial state.
 * Thread   one at a time.
 * Units    Offsets are bytes from the text's first byte.
 * Errors   BAD: fault is the kind of the error, pos its position.
 * Route    text -> [tokenizer] -> json_scan.h (the inference request), the
 *          JSON form of messages.
 *
 * Tokens are those of RFC 8259; a string's UTF-8 is not validated, escapes of
 * surrogates must pair, numbers have at most INF_NUMBER_MAX_INPUT characters.
 * A byte order mark that the text begins with is skipped.
 * A word is any run of letters, digits, '_' and '$' that does not begin with a
 * digit, optionally after a minus; the reader decides which words are valid.
 * Lenient tokens are also strings in single quotes and numbers like 1.e5; a
 * lenient number ends where no word continues.
 */

#ifndef INF_PROTO_JSON_TOKEN_H
#define INF_PROTO_JSON_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/proto/json_plain.h"

/* UTF-8's byte order mark. */
#define INF_JSON_MARK     "\xef\xbb\xbf"
#define INF_JSON_MARK_LEN 3u

typedef enum {
    INF_JSON_TOKEN_END,         /* of the text                               */
    INF_JSON_TOKEN_AGAIN,       /* the token continues after the bytes given */
    INF_JSON_TOKEN_BAD,
    INF_JSON_TOKEN_STRING,      /* with its quotes                           */
    INF_JSON_TOKEN_NUMBER,
    INF_JSON_TOKEN_WORD,
    INF_JSON_TOKEN_SYMBOL       /* one of {}[]:,                             */
} inf_json_token_t;

typedef enum {
    INF_JSON_FAULT_BYTE,        /* no token begins with it                   */
    INF_JSON_FAULT_QUOTE,       /* a string has no end                       */
    INF_JSON_FAULT_CONTROL,     /* a control character in a string           */
    INF_JSON_FAULT_ESCAPE,
    INF_JSON_FAULT_HEX,         /* a digit of \uXXXX                         */
    INF_JSON_FAULT_SURROGATE,   /* half of a pair                            */
    INF_JSON_FAULT_NUMBER,
    INF_JSON_FAULT_FRACTION,
    INF_JSON_FAULT_EXPONENT,
    INF_JSON_FAULT_LENGTH       /* of a number                               */
} inf_json_fault_t;

typedef struct {
    uint64_t          pos;      /* next byte to read                         */
    uint64_t          start;    /* first byte of the last token              */
    uint64_t          escape;   /* '\' of the last escape, of a pair the
                                   first                                     */
    uint64_t          decoded;  /* length of the last string unescaped       */
    bool              ascii;    /* the string's bytes are ASCII, escapes
                                   aside                                     */
    bool              integer;  /* the last number: no '.', no exponent      */
    bool              lenient;  /* constant: set by the caller               */
    bool              ended;    /* BAD: the text ended inside the token      */
    inf_json_fault_t  fault;

    /* private to the tokenizer */
    uint8_t           lex;      /* state of the open token; 0: none          */
    char              quote;
    uint8_t           hex_count;
    uint16_t          hex;
    uint16_t          surrogate;    /* a high surrogate that waits for the low
                                       one; valid also with BAD               */
} inf_json_tokens_t;

/* Skips white space and returns the next byte without consuming it; -1 at
   end. */
static inline int
inf_json_tokens_peek(inf_json_tokens_t *t, const char *text, const char *end)
{
    const char *p = text + t->pos;

    if (p != end && (unsigned char) *p > ' ') {
        return (unsigned char) *p;
    }

    while (p != end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) {
        p++;
    }

    t->pos = (uint64_t) (p - text);
    return p != end ? (unsigned char) *p : -1;
}

/* Whether the last string has escapes, which are longer than the characters
   they encode. */
static inline bool
inf_json_tokens_escaped(const inf_json_tokens_t *t)
{
    return t->decoded != t->pos - t->start - 2;
}

/* Whether the last call stopped inside a token. */
static inline bool
inf_json_tokens_open(const inf_json_tokens_t *t)
{
    return t->lex != 0;
}

/*
 * Returns the next token, text[t->start .. t->pos).  text is the first byte,
 * end limits this call, final: there are no bytes after end.
 */
inf_json_token_t inf_json_tokens_next(inf_json_tokens_t *t, const char *text,
    const char *end, bool final);

/* Reads the string at pos if it is complete, ASCII and without escapes, as most
   are; otherwise false, and nothing is read.  No token may be open. */
static inline bool
inf_json_tokens_plain(inf_json_tokens_t *t, const char *text, const char *end)
{
    const char *p = text + t->pos + 1;
    const char *q = inf_json_ascii_run(p, end);

    if (q == end || *q != '"') {
        return false;
    }

    t->start = t->pos;
    t->pos = (uint64_t) (q + 1 - text);
    t->decoded = (uint64_t) (q - p);
    t->ascii = true;
    return true;
}

#endif /* INF_PROTO_JSON_TOKEN_H */
