/* datatype.c - see datatype.h */

#include "datatype.h"

#include <stddef.h>
#include <string.h>

static const char *const config_types[] = {
    "TYPE_INVALID", "TYPE_BOOL", "TYPE_UINT8", "TYPE_UINT16", "TYPE_UINT32",
    "TYPE_UINT64", "TYPE_INT8", "TYPE_INT16", "TYPE_INT32", "TYPE_INT64",
    "TYPE_FP16", "TYPE_FP32", "TYPE_FP64", "TYPE_STRING", "TYPE_BF16"
};

#define TYPE_COUNT (sizeof(config_types) / sizeof(config_types[0]))

TRITONSERVER_DataType
bk_datatype_of_config(const char *name)
{
    for (size_t i = 1; i < TYPE_COUNT; i++) {
        if (strcmp(name, config_types[i]) == 0) {
            return (TRITONSERVER_DataType) i;
        }
    }

    return TRITONSERVER_TYPE_INVALID;
}

const char *
bk_datatype_to_config(TRITONSERVER_DataType t)
{
    return (size_t) t < TYPE_COUNT ? config_types[t] : config_types[0];
}
