#include "core/storage/percent.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>

static void decode(char *text, bool plus_is_space);

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
