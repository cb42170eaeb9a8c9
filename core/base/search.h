/*
 * search.h - binary search in a sorted array.
 *
 * Owner    that of the array.
 * Thread   any that may read the array.
 * Units    items.
 * Errors   none.
 * Route    sorted arrays -> [search]
 */

#ifndef INF_BASE_SEARCH_H
#define INF_BASE_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

/* Like bsearch(), with compare(key, item); if the key is missing, *found is
   false and the result is the index at which to insert it. */
static inline size_t
inf_search(const void *key, const void *items, size_t count, size_t size,
    int (*compare)(const void *key, const void *item), bool *found)
{
    size_t low = 0, high = count;

    *found = false;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = compare(key, (const char *) items + mid * size);
        if (order == 0) {
            *found = true;
            return mid;
        }
        if (order > 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

#endif /* INF_BASE_SEARCH_H */
