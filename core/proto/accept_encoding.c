#include "core/proto/accept_encoding.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#define FULL_WEIGHT 1000

static inf_slice_t next_part(inf_slice_t *list, char separator);
static bool is_word(inf_slice_t text, const char *word);
static int weight_of(inf_slice_t parameters);
static int read_weight(inf_slice_t value);

inf_encoding_t
inf_accept_encoding(inf_slice_t value)
{
    static const char *const names[] = {
        [INF_ENCODING_IDENTITY] = "identity",
        [INF_ENCODING_DEFLATE] = "deflate",
        [INF_ENCODING_GZIP] = "gzip"
    };
    inf_encoding_t best = INF_ENCODING_IDENTITY;
    int best_weight = 0;

    while (value.len != 0) {
        inf_slice_t parameters = next_part(&value, ',');
        inf_slice_t name = next_part(&parameters, ';');
        int weight = weight_of(parameters);

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            if (weight > best_weight && is_word(name, names[i])) {
                best = (inf_encoding_t) i;
                best_weight = weight;
            }
        }
    }

    return best;
}

/* The part up to the next separator, without blanks around it. */
static inf_slice_t
next_part(inf_slice_t *list, char separator)
{
    const char *p = list->data;
    const char *end = p + list->len;
    const char *at = list->len != 0 ? memchr(p, separator, list->len) : NULL;
    const char *stop = at != NULL ? at : end;
    const char *next = at != NULL ? at + 1 : end;

    *list = inf_slice(next, (size_t) (end - next));

    while (p < stop && (*p == ' ' || *p == '\t')) {
        p++;
    }

    while (p < stop && (stop[-1] == ' ' || stop[-1] == '\t')) {
        stop--;
    }

    return inf_slice(p, (size_t) (stop - p));
}

static bool
is_word(inf_slice_t text, const char *word)
{
    return text.len == strlen(word)
        && strncasecmp(text.data, word, text.len) == 0;
}

/* The weight in thousandths; -1: invalid. */
static int
weight_of(inf_slice_t parameters)
{
    int weight = FULL_WEIGHT;

    while (parameters.len != 0) {
        inf_slice_t value = next_part(&parameters, ';');

        if (value.len >= 2 && strncasecmp(value.data, "q=", 2) == 0) {
            weight = read_weight(inf_slice(value.data + 2, value.len - 2));
        }
    }

    return weight;
}

/* Reads "0" or "1" with up to three decimals. */
static int
read_weight(inf_slice_t value)
{
    if (value.len == 0 || value.len > 5
        || (value.data[0] != '0' && value.data[0] != '1')
        || (value.len > 1 && value.data[1] != '.'))
    {
        return -1;
    }

    int weight = (value.data[0] - '0') * FULL_WEIGHT;
    int unit = FULL_WEIGHT;

    for (size_t i = 2; i < value.len; i++) {
        if (value.data[i] < '0' || value.data[i] > '9') {
            return -1;
        }

        unit /= 10;
        weight += (value.data[i] - '0') * unit;
    }

    return weight <= FULL_WEIGHT ? weight : -1;
}
