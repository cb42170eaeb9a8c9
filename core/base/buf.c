#include "core/base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUF_MIN 256

void
inf_buf_init(inf_buf_t *b)
{
    *b = (inf_buf_t) { 0 };
}

void
inf_buf_init_fixed(inf_buf_t *b, char *data, size_t cap)
{
    *b = (inf_buf_t) { .data = data, .cap = cap, .fixed = true };
    data[0] = '\0';
}

void
inf_buf_fini(inf_buf_t *b)
{
    free(b->data);
    *b = (inf_buf_t) { 0 };
}

void
inf_buf_reset(inf_buf_t *b)
{
    b->len = 0;
    b->failed = false;
    if (b->data != NULL) {
        b->data[0] = '\0';
    }
}

bool
inf_buf_reserve(inf_buf_t *b, size_t n)
{
    if (b->failed) {
        return false;
    }

    if (n < b->cap - b->len) {          /* one byte is left for the NUL */
        return true;
    }

    if (b->fixed || n > SIZE_MAX / 2 - b->len - 1) {
        b->failed = true;
        return false;
    }

    size_t cap = b->cap < BUF_MIN ? BUF_MIN : b->cap;
    while (cap - b->len <= n) {
        cap *= 2;
    }

    char *data = realloc(b->data, cap);
    if (data == NULL) {
        b->failed = true;
        return false;
    }

    b->data = data;
    b->cap = cap;
    return true;
}

void
inf_buf_put(inf_buf_t *b, const void *data, size_t len)
{
    if (!inf_buf_reserve(b, len)) {
        return;
    }

    if (len > 0) {
        memcpy(b->data + b->len, data, len);
    }
    b->len += len;
    b->data[b->len] = '\0';
}

void
inf_buf_puts(inf_buf_t *b, const char *s)
{
    inf_buf_put(b, s, strlen(s));
}

void
inf_buf_putc(inf_buf_t *b, char c)
{
    inf_buf_put(b, &c, 1);
}

void
inf_buf_printf(inf_buf_t *b, const char *fmt, ...)
{
    va_list args;
    va_list again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);

    if (n < 0 || !inf_buf_reserve(b, (size_t) n)) {
        b->failed = true;
    } else {
        vsnprintf(b->data + b->len, (size_t) n + 1, fmt, args);
        b->len += (size_t) n;
    }
    va_end(args);
}

inf_err_t *
inf_buf_status(const inf_buf_t *b)
{
    return b->failed ? inf_err_nomem() : NULL;
}

char *
inf_buf_give(inf_buf_t *b, size_t *len)
{
    if (!inf_buf_reserve(b, 0)) {
        return NULL;
    }

    char *data = b->data;
    data[b->len] = '\0';
    if (len != NULL) {
        *len = b->len;
    }
    *b = (inf_buf_t) { 0 };
    return data;
}
