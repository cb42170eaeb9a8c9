#include "core/server/load_report.h"

#include "core/server/metric_registry.h"

#define FAMILY "nv_trt_llm_kv_cache_block_metrics"
#define LABEL  "kv_cache_block_type"

/* A larger value is not a number of tokens. */
#define MAX_TOKENS 9e18

static bool
find(const char *type, double *value)
{
    return inf_metric_find_gauge(FAMILY,
        &(inf_metric_label_t) { LABEL, type }, value) && *value >= 0;
}

bool
inf_load_report(double *used, uint64_t *tokens)
{
    double used_blocks, max_blocks, block_tokens;

    if (!find("used", &used_blocks) || !find("max", &max_blocks)
        || !find("tokens_per", &block_tokens)
        || !(max_blocks * block_tokens <= MAX_TOKENS)
        || !(used_blocks <= MAX_TOKENS))
    {
        return false;
    }

    *used = max_blocks > 0 ? used_blocks / max_blocks : 0;
    *tokens = (uint64_t) (max_blocks * block_tokens);
    return true;
}
