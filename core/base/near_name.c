#include "core/base/near_name.h"

#include <string.h>

static size_t fold(char *dst, const char *name, size_t len);
static size_t distance_of(const char *a, size_t na, const char *b, size_t nb);

void
inf_near_name_init(inf_near_name_t *n, inf_slice_t wanted)
{
    *n = (inf_near_name_t) { .best = NULL };

    if (wanted.len > 0 && wanted.len <= INF_NEAR_NAME_MAX) {
        n->len = fold(n->wanted, wanted.data, wanted.len);
        n->distance = n->len / 3 + 2;
        if (n->distance > n->len) {     /* the letter needs no change        */
            n->distance = n->len;
        }
    }
}

void
inf_near_name_offer(inf_near_name_t *n, const char *known)
{
    char folded[INF_NEAR_NAME_MAX];
    size_t len = strlen(known);

    if (n->distance == 0 || len > sizeof(folded)) {
        return;
    }

    len = fold(folded, known, len);
    size_t distance = distance_of(n->wanted, n->len, folded, len);
    if (distance < n->distance) {
        n->distance = distance;
        n->best = known;
    }
}

static size_t
fold(char *dst, const char *name, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        char c = name[i];
        if (c == '_' || c == '-') {
            continue;
        }
        dst[n++] = c >= 'A' && c <= 'Z' ? (char) (c - 'A' + 'a') : c;
    }
    return n;
}

/* The number of bytes to add, remove or replace; both lengths are at most
   INF_NEAR_NAME_MAX. */
static size_t
distance_of(const char *a, size_t na, const char *b, size_t nb)
{
    size_t row[INF_NEAR_NAME_MAX + 1];

    for (size_t j = 0; j <= nb; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            best = row[j] + 1 < best ? row[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[nb];
}
