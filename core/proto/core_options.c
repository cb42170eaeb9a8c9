#include "core/proto/core_options.h"

#define ROW(name, ...) { .directive = name, __VA_ARGS__ },
#define GROUP(name, ...)                                                      \
    { .directive = name, .kind = INF_OPTION_GROUP, __VA_ARGS__ },

const inf_core_option_t inf_core_options[] = {
    INF_CORE_OPTIONS(ROW, GROUP, ROW)
};

const size_t inf_core_options_count =
    sizeof(inf_core_options) / sizeof(inf_core_options[0]);
