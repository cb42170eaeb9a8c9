#include "core/server/memory_options.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "core/proto/core_config.h"
#include "core/proto/number.h"
#include "core/tensor/memory.h"

static void copy_sizes(inf_memory_pool_size_t *to,
    NginxInference__CudaPool *const *from, size_t count);
static inf_err_t *min_capability(const NginxInference__CoreConfig *config,
    double *out);

inf_err_t *
inf_memory_share_configured(const NginxInference__CoreConfig *config)
{
    /* Beside a preloaded allocator the first malloc_trim() sets up the C
       library's own, and a second one meanwhile crashes.  Backends call it in
       several threads at once. */
    malloc_trim(0);

    size_t pools = config->n_cuda_pools;
    size_t ranges = config->n_cuda_virtual_sizes;
    inf_memory_options_t options = {
        .pinned_bytes = config->pinned_pool_bytes,
        .cuda_count = pools,
        .virtual_count = ranges,
        .peer_access = config->peer_access
    };

    inf_err_t *err = min_capability(config, &options.min_capability);
    if (err != NULL) {
        return err;
    }

    inf_memory_pool_size_t *sizes = calloc(pools + ranges + 1,
        sizeof(*sizes));
    if (sizes == NULL) {
        return inf_err_nomem();
    }
    copy_sizes(sizes, config->cuda_pools, pools);
    copy_sizes(sizes + pools, config->cuda_virtual_sizes, ranges);

    options.cuda = sizes;
    options.virtual = sizes + pools;
    err = inf_memory_share(&options);
    free(sizes);
    return err;
}

static void
copy_sizes(inf_memory_pool_size_t *to, NginxInference__CudaPool *const *from,
    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        to[i].device = from[i]->device;
        to[i].bytes = from[i]->bytes;
    }
}

static inf_err_t *
min_capability(const NginxInference__CoreConfig *config, double *out)
{
    const char *set = inf_core_config_setting(config, "",
        INF_MIN_CAPABILITY_KEY);
    const char *text = set != NULL ? set : INF_MEMORY_CAPABILITY_TEXT;

    text += strspn(text, " ");
    return inf_number_parse_double(inf_slice_str(text), out)
        && *out >= 0.0 && *out <= 1000.0 ? NULL
        : inf_err_new(INF_ERR_INVALID_ARG, "backend setting %s: \"%s\" is no"
            " compute capability", INF_MIN_CAPABILITY_KEY, text);
}
