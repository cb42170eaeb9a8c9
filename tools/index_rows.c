#include "index_rows.h"

#include <stdlib.h>
#include <string.h>

static char *decode(char *to, char **from);
static char *put_utf8(char *to, unsigned long c);

bool
index_row_next(char **at, index_row_t *row)
{
    char *open = strchr(*at, '{');

    *row = (index_row_t) { "", "", "", "" };
    if (open == NULL) {
        return false;
    }
    *at = open + 1;

    while (**at != '}') {
        char *key = index_string_next(at);

        if (key == NULL || **at != ':') {
            return false;
        }

        char *value = index_string_next(at);

        if (value == NULL || (**at != ',' && **at != '}')) {
            return false;
        }
        *(strcmp(key, "name") == 0 ? &row->name
          : strcmp(key, "version") == 0 ? &row->version
          : strcmp(key, "state") == 0 ? &row->state : &row->reason) = value;
    }
    return true;
}

/* The closing quote is overwritten by a NUL; *at is after it. */
char *
index_string_next(char **at)
{
    char *from = strchr(*at, '"');

    if (from == NULL) {
        return NULL;
    }

    char *text = ++from;
    char *to = text;

    while (*from != '"') {
        to = decode(to, &from);
        if (to == NULL) {
            return NULL;
        }
    }
    *at = from + 1;
    *to = '\0';
    return text;
}

/* Decodes an escape to a printable character, which is not longer than the
   escape; NULL: not an escape of JSON. */
static char *
decode(char *to, char **from)
{
    static const char letters[] = "bfnrt", meant[] = "  \n  ";

    if ((unsigned char) **from < 0x20) {
        return NULL;
    }
    if (**from != '\\') {
        *to = *(*from)++;
        return to + 1;
    }

    char        letter = (*from)[1];
    const char *known = letter != '\0' ? strchr(letters, letter) : NULL;

    if (letter == 'u') {
        char hex[5] = "";

        strncpy(hex, *from + 2, 4);
        if (strspn(hex, "0123456789abcdefABCDEF") != 4) {
            return NULL;
        }
        *from += 6;
        return put_utf8(to, strtoul(hex, NULL, 16));
    }
    if (known == NULL && (letter == '\0' || strchr("\"\\/", letter) == NULL)) {
        return NULL;
    }
    *to = known != NULL ? meant[known - letters] : letter;
    *from += 2;
    return to + 1;
}

/* Encodes a character; control characters, which the server escapes, become
   '?'. */
static char *
put_utf8(char *to, unsigned long c)
{
    if (c < 0x20) {
        *to++ = '?';

    } else if (c < 0x80) {
        *to++ = (char) c;

    } else if (c < 0x800) {
        *to++ = (char) (0xc0 | c >> 6);
        *to++ = (char) (0x80 | (c & 0x3f));

    } else {
        *to++ = (char) (0xe0 | c >> 12);
        *to++ = (char) (0x80 | (c >> 6 & 0x3f));
        *to++ = (char) (0x80 | (c & 0x3f));
    }
    return to;
}
