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

void
inf_histogram_fold(inf_histogram_t *into, const inf_histogram_t *from)
{
    for (uint32_t i = 0; i <= INF_HISTOGRAM_BOUNDS; i++) {
        into->counts[i] += from->counts[i];
    }
}
