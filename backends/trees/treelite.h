/*
 * treelite.h - the library that reads model files of all kinds.
 *
 * Owner    The caller owns the forest that a load gives; treelite's own model
 *          is gone by then.
 * Thread   open: one.  load: any, several at a time.
 * Units    none.
 * Errors   NOT_FOUND: no library; the text names the package that has it.
 *          INVALID_ARG: the library's words about a file.
 * Route    model file -> [treelite] -> forest
 *
 * The library stays in the process once it is there: it holds threads and
 * names that cannot be taken back.
 */

#ifndef TREES_TREELITE_H
#define TREES_TREELITE_H

#include "forest.h"
#include "treelite_functions.h"

typedef enum {
    TREES_XGBOOST, TREES_XGBOOST_JSON, TREES_XGBOOST_UBJ, TREES_LIGHTGBM,
    TREES_CHECKPOINT
} trees_format_t;

/* Looks for library, or without one (NULL) for libtreelite.so in directory,
 * then where the system looks. */
BK_CHECK TRITONSERVER_Error *treelite_open(treelite_functions_t *out,
    const char *library, const char *directory);

/* Reads the file and copies what a forest needs; unknown: fields of XGBoost's
 * JSON that treelite does not know are passed over. */
BK_CHECK TRITONSERVER_Error *treelite_load(const treelite_functions_t *f,
    const char *path, trees_format_t format, bool unknown,
    trees_forest_t **out);

#endif /* TREES_TREELITE_H */
