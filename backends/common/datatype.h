/*
 * datatype.h - datatypes and their names in configurations.
 *
 * Owner    names are static.
 * Thread   any.
 * Units    none.
 * Errors   TYPE_INVALID: a name that is not known.
 * Route    configuration -> [datatype]
 */

#ifndef BK_DATATYPE_H
#define BK_DATATYPE_H

#include "error.h"

/* "TYPE_FP32" -> FP32, "TYPE_STRING" -> BYTES; INVALID when unknown. */
TRITONSERVER_DataType bk_datatype_of_config(const char *name);

/* FP32 -> "TYPE_FP32", BYTES -> "TYPE_STRING". */
const char *bk_datatype_to_config(TRITONSERVER_DataType t);

#endif /* BK_DATATYPE_H */
