/*
 * element_type.h - datatypes of requests as PyTorch's element types.
 *
 * Owner    nobody.
 * Thread   any.
 * Units    none.
 * Errors   none.
 * Route    model, instance -> [element_type]
 *
 * The numbers are part of PyTorch's file format and C interface and stay.
 */

#ifndef PT_ELEMENT_TYPE_H
#define PT_ELEMENT_TYPE_H

#include "common/error.h"

#define PT_NO_TYPE (-1)

/* PT_NO_TYPE: there is none; strings have none. */
int pt_type_of(TRITONSERVER_DataType datatype);

/* INVALID: requests have none. */
TRITONSERVER_DataType pt_datatype_of(int type);

#endif /* PT_ELEMENT_TYPE_H */
