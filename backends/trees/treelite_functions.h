/*
 * treelite_functions.h - what the backend calls of treelite, declared here
 *                        because its header is not beside its library.
 *
 * Owner    a model belongs to who loaded it, until free_model; frames and
 *          texts are treelite's.
 * Thread   any; one model, one thread.
 * Units    as the library's.
 * Errors   0 is success, else last_error has the thread's text.
 * Route    treelite.c looks the functions up by these rows.
 */

#ifndef TREES_TREELITE_FUNCTIONS_H
#define TREES_TREELITE_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

typedef void *treelite_model_t;

typedef struct {
    void   *data;
    char   *format;
    size_t  size;                       /* of an element                     */
    size_t  count;
} treelite_frame_t;

/* field, exported name, parameters; every one returns int */
#define TREELITE_FUNCTIONS(ROW)                                               \
    ROW(load_xgboost, TreeliteLoadXGBoostModelLegacyBinary,                   \
        (const char *path, const char *options, treelite_model_t *out))       \
    ROW(load_xgboost_json, TreeliteLoadXGBoostModelJSON,                      \
        (const char *path, const char *options, treelite_model_t *out))       \
    ROW(load_xgboost_ubj, TreeliteLoadXGBoostModelUBJSON,                     \
        (const char *path, const char *options, treelite_model_t *out))       \
    ROW(load_lightgbm, TreeliteLoadLightGBMModel,                             \
        (const char *path, const char *options, treelite_model_t *out))       \
    ROW(load_checkpoint, TreeliteDeserializeModelFromFile,                    \
        (const char *path, treelite_model_t *out))                            \
    ROW(free_model, TreeliteFreeModel, (treelite_model_t model))              \
    ROW(header_field, TreeliteGetHeaderField, (treelite_model_t model,        \
        const char *name, treelite_frame_t *out))                             \
    ROW(tree_field, TreeliteGetTreeField, (treelite_model_t model,            \
        uint64_t tree, const char *name, treelite_frame_t *out))              \
    ROW(set_log, TreeliteRegisterLogCallback,                                 \
        (void (*callback)(const char *)))                                     \
    ROW(set_warning, TreeliteRegisterWarningCallback,                         \
        (void (*callback)(const char *)))

typedef struct {
    const char *(*last_error)(void);    /* TreeliteGetLastError              */
#define TREELITE_FIELD(field, symbol, parameters) int (*field) parameters;
    TREELITE_FUNCTIONS(TREELITE_FIELD)
#undef TREELITE_FIELD
} treelite_functions_t;

#endif /* TREES_TREELITE_FUNCTIONS_H */
