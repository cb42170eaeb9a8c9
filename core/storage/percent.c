#include "core/storage/percent.h"

#include <ctype.h>
#include <stdio.h>

static void decode(char *text, bool plus_is_space);

void
inf_percent_encode(inf_buf_t *b, const char *text, bool slashes)
{
    for (const char *p = text; *p != '\0'; p++) {
        unsigned char c = (unsigned char) *p;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
            || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_'
            || c == '~' || (slashes && c == '/');
        if (plain) {
            inf_buf_putc(b, (char) c);
        } else {
            inf_buf_printf(b, "%%%02X", c);
        }
    }
}

void
inf_percent_decode(char *text)
{
    decode(text, false);
}

void
inf_percent_decode_query(char *text)
{
    decode(text, true);
}

static void
decode(char *text, bool plus_is_space)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; from++) {
        unsigned byte;

        if (*from == '%' && isxdigit((unsigned char) from[1])
            && isxdigit((unsigned char) from[2])
            && sscanf(from + 1, "%2x", &byte) == 1 && byte != 0)
        {
            *to++ = (char) byte;
            from += 2;
        } else {
            *to++ = plus_is_space && *from == '+' ? ' ' : *from;
        }
    }
    *to = '\0';
}
