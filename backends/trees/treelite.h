/*
 * treelite.h - the library that reads model files of all kinds.
 *
 * Owner    The caller owns the loaded forest; treelite's model is freed
 *          before.
 * Thread   open: one.  load: any, several at a time.
 * Units    none.
 * Errors   NOT_FOUND: no library; the text names the package that has it.
 *          INVALID_ARG: the library's message on a file.
 * Route    model file -> [treelite] -> forest
 *
 * The library stays in the process: its threads and symbols cannot be
 * removed.
 */

#ifndef TREES_TREELITE_H
#define TREES_TREELITE_H

#include "forest.h"
#include "treelite_functions.h"

typedef enum {
    TREES_XGBOOST, TREES_XGBOOST_JSON, TREES_XGBOOST_UBJ, TREES_LIGHTGBM,
    TREES_CHECKPOINT
} trees_format_t;

/* Opens library; NULL: libtreelite.so in directory, or in the system's library
 * path. */
BK_CHECK TRITONSERVER_Error *treelite_open(treelite_functions_t *out,
    const char *library, const char *directory);

/* Reads the file and copies what a forest needs; unknown: fields of XGBoost's
 * JSON that treelite does not know are passed over. */
BK_CHECK TRITONSERVER_Error *treelite_load(const treelite_functions_t *f,
    const char *path, trees_format_t format, bool unknown,
    trees_forest_t **out);

#endif /* TREES_TREELITE_H */
