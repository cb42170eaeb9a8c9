/*
 * datatype.h - tensor element types: the numbers of the ABI, the names of
 *              KServe v2.
 *
 * Owner    nobody.
 * Thread   any.
 * Units    sizes are bytes per element; 0 for BYTES (variable) and INVALID.
 * Errors   an unknown name is INF_TYPE_INVALID.
 * Route    the wire, the channel, model configuration and backends all use
 *          these numbers (TRITONSERVER_DataType and inference.DataType agree).
 */

#ifndef INF_DATATYPE_H
#define INF_DATATYPE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum {
    INF_TYPE_INVALID = 0,
    INF_TYPE_BOOL    = 1,
    INF_TYPE_UINT8   = 2,
    INF_TYPE_UINT16  = 3,
    INF_TYPE_UINT32  = 4,
    INF_TYPE_UINT64  = 5,
    INF_TYPE_INT8    = 6,
    INF_TYPE_INT16   = 7,
    INF_TYPE_INT32   = 8,
    INF_TYPE_INT64   = 9,
    INF_TYPE_FP16    = 10,
    INF_TYPE_FP32    = 11,
    INF_TYPE_FP64    = 12,
    INF_TYPE_BYTES   = 13,
    INF_TYPE_BF16    = 14
} inf_datatype_t;

#define INF_TYPE_COUNT 15
#define INF_MAX_DIMS   64       /* more dimensions than any runtime takes   */

/* The wire names, padded with zeros: one word each to compare. */
static const char inf_datatype_names[INF_TYPE_COUNT][8] = {
    "", "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16",
    "INT32", "INT64", "FP16", "FP32", "FP64", "BYTES", "BF16"
};

/* Wire name ("FP32"); "<invalid>" for numbers out of range. */
static inline const char *
inf_datatype_name(uint32_t t)
{
    return t != INF_TYPE_INVALID && t < INF_TYPE_COUNT ? inf_datatype_names[t]
                                                       : "<invalid>";
}

static inline uint32_t
inf_datatype_size(uint32_t t)
{
    static const uint8_t sizes[INF_TYPE_COUNT] = {
        0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 0, 2
    };

    return t < INF_TYPE_COUNT ? sizes[t] : 0;
}

/* Case-sensitive, wire names only. */
static inline inf_datatype_t
inf_datatype_parse(const char *name, size_t len)
{
    char text[sizeof(inf_datatype_names[0])] = "";

    if (len == 0 || len >= sizeof(text)) {
        return INF_TYPE_INVALID;
    }

    memcpy(text, name, len);
    for (uint32_t t = 1; t < INF_TYPE_COUNT; t++) {
        const char *n = inf_datatype_names[t];
        if (memcmp(n, text, sizeof(text)) == 0 && n[len - 1] != '\0') {
            return (inf_datatype_t) t;
        }
    }

    return INF_TYPE_INVALID;
}

#endif /* INF_DATATYPE_H */
