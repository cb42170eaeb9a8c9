/* element_type.c - see element_type.h */

#include "element_type.h"

#include <stddef.h>

static const struct {
    TRITONSERVER_DataType datatype;
    int                   type;
} types[] = {
    { TRITONSERVER_TYPE_UINT8,   0 },
    { TRITONSERVER_TYPE_INT8,    1 },
    { TRITONSERVER_TYPE_INT16,   2 },
    { TRITONSERVER_TYPE_INT32,   3 },
    { TRITONSERVER_TYPE_INT64,   4 },
    { TRITONSERVER_TYPE_FP16,    5 },
    { TRITONSERVER_TYPE_FP32,    6 },
    { TRITONSERVER_TYPE_FP64,    7 },
    { TRITONSERVER_TYPE_BOOL,   11 },
    { TRITONSERVER_TYPE_BF16,   15 },
    { TRITONSERVER_TYPE_UINT16, 27 },
    { TRITONSERVER_TYPE_UINT32, 28 },
    { TRITONSERVER_TYPE_UINT64, 29 }
};

int
pt_type_of(TRITONSERVER_DataType datatype)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (types[i].datatype == datatype) {
            return types[i].type;
        }
    }

    return PT_NO_TYPE;
}

TRITONSERVER_DataType
pt_datatype_of(int type)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (types[i].type == type) {
            return types[i].datatype;
        }
    }

    return TRITONSERVER_TYPE_INVALID;
}
