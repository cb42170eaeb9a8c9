#include "core/base/os/signal_text.h"

void
inf_signal_text_init(inf_signal_text_t *t, char *data, size_t cap)
{
    *t = (inf_signal_text_t) { .data = data, .cap = cap };
    data[0] = '\0';
}

void
inf_signal_text_puts(inf_signal_text_t *t, const char *s)
{
    while (*s != '\0' && t->len + 1 < t->cap) {
        t->data[t->len++] = *s++;
    }
    t->data[t->len] = '\0';
    t->cut |= *s != '\0';
}

void
inf_signal_text_number(inf_signal_text_t *t, uint64_t n)
{
    char digits[24];
    char *p = digits + sizeof(digits) - 1;

    *p = '\0';
    do {
        *--p = (char) ('0' + n % 10);
        n /= 10;
    } while (n > 0);
    inf_signal_text_puts(t, p);
}
