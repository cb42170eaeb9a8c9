#include "core/model/histogram.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define S  UINT64_C(1000000000)

const uint64_t inf_histogram_bounds_ns[INF_HISTOGRAM_BOUNDS] = {
    10 * US, 25 * US, 50 * US, 100 * US, 250 * US, 500 * US,
    1 * MS, 2500 * US, 5 * MS, 10 * MS, 25 * MS, 50 * MS,
    100 * MS, 250 * MS, 500 * MS, 1 * S, 2500 * MS, 5 * S,
    10 * S, 30 * S, 60 * S
};

const char *const inf_histogram_bounds_text[INF_HISTOGRAM_BOUNDS] = {
    "1e-05", "2.5e-05", "5e-05", "0.0001", "0.00025", "0.0005",
    "0.001", "0.0025", "0.005", "0.01", "0.025", "0.05",
    "0.1", "0.25", "0.5", "1", "2.5", "5",
    "10", "30", "60"
};

/* The first bound that a time of so many bits may not exceed. */
const uint8_t inf_histogram_first[65] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 7, 8, 9,
    10, 11, 12, 13, 14, 15, 16, 16, 17, 18, 19, 20, 21, 21, 21, 21, 21, 21, 21,
    21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21,
    21, 21
};

void
inf_histogram_fold(inf_histogram_t *into, const inf_histogram_t *from)
{
    for (uint32_t i = 0; i <= INF_HISTOGRAM_BOUNDS; i++) {
        into->counts[i] += from->counts[i];
    }
}
