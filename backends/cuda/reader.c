/* reader.c - see reader.h */

#include "reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 512
#define SHOWN    24             /* characters of what is there               */

static void skip_blanks(gpu_reader_t *r);
static bool is_letter(char c);
static bool is_digit(char c);

bool
gpu_reader_take(gpu_reader_t *r, const char *sign)
{
    size_t len = strlen(sign);

    skip_blanks(r);
    if (strncmp(r->text + r->at, sign, len) != 0) {
        return false;
    }

    r->at += len;
    return true;
}

TRITONSERVER_Error *
gpu_reader_expect(gpu_reader_t *r, const char *sign)
{
    return gpu_reader_take(r, sign) ? NULL
        : gpu_reader_error(r, "\"%s\" is missing", sign);
}

bool
gpu_reader_word(gpu_reader_t *r, gpu_word_t *word)
{
    skip_blanks(r);
    const char *p = r->text + r->at;

    if (*p == '\'') {
        const char *end = strchr(p + 1, '\'');
        if (end == NULL || end == p + 1) {
            return false;
        }
        *word = (gpu_word_t) { p + 1, (size_t) (end - p - 1) };
        r->at += word->len + 2;
        return true;
    }

    size_t len = 0;
    while (is_letter(p[len]) || (len > 0 && is_digit(p[len]))) {
        len++;
    }
    *word = (gpu_word_t) { p, len };
    r->at += len;
    return len > 0;
}

bool
gpu_reader_number(gpu_reader_t *r, int64_t *number, bool *fits)
{
    int64_t n = 0;

    skip_blanks(r);
    size_t from = r->at;
    *fits = true;
    for (; is_digit(r->text[r->at]); r->at++) {
        *fits = *fits && !__builtin_mul_overflow(n, INT64_C(10), &n)
            && !__builtin_add_overflow(n, (int64_t) (r->text[r->at] - '0'),
                &n);
    }

    *number = n;
    return r->at > from;
}

bool
gpu_reader_real(gpu_reader_t *r, double *number)
{
    char *end;

    skip_blanks(r);
    *number = strtod(r->text + r->at, &end);
    if (end == r->text + r->at) {
        return false;
    }

    r->at = (size_t) (end - r->text);
    return true;
}

bool
gpu_reader_at_end(gpu_reader_t *r)
{
    skip_blanks(r);
    return r->text[r->at] == '\0';
}

bool
gpu_word_is(gpu_word_t word, const char *text)
{
    return strlen(text) == word.len && memcmp(word.text, text, word.len) == 0;
}

TRITONSERVER_Error *
gpu_reader_error(const gpu_reader_t *r, const char *fmt, ...)
{
    const char *rest = r->text + r->at;
    char what[TEXT_MAX];
    va_list args;

    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);

    return rest[0] == '\0'
        ? bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "parameter \"%s\", at its end: %s", r->parameter, what)
        : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "parameter \"%s\", character %zu (\"%.*s\"): %s", r->parameter,
            r->at + 1, SHOWN, rest, what);
}

static void
skip_blanks(gpu_reader_t *r)
{
    r->at += strspn(r->text + r->at, " \t\r\n");
}

static bool
is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}
