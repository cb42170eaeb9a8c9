/*
 * xgboost_document.h - checks that the trees in a document of XGBoost are
 *                      closed.
 *
 * Owner    The caller owns the document, which keeps nothing of a text.
 * Thread   one document, one thread.
 * Units    bytes; levels of arrays and objects.
 * Errors   After the first fault each event returns false, and err is
 *          INVALID_ARG with tree and field.
 * Route    xgboost_json, xgboost_ubj -> [xgboost_document] -> treelite
 *
 * The readers of JSON and UBJSON report the contents of a file as events.
 * treelite compares the lengths of some arrays only, does not check the
 * range of indices, appends to a field that occurs twice, and recurses for
 * each level.
 */

#ifndef TREES_XGBOOST_DOCUMENT_H
#define TREES_XGBOOST_DOCUMENT_H

#include "common/error.h"

#include <stddef.h>
#include <stdint.h>

#define XGBOOST_DEPTH_MOST 200          /* a model has about ten levels      */

/* field, name in the file; the first ones are whole numbers, which are kept */
#define XGBOOST_TREE_FIELDS(ROW)                                              \
    ROW(LEFT, "left_children")                                                \
    ROW(RIGHT, "right_children")                                              \
    ROW(PARENTS, "parents")                                                   \
    ROW(FEATURES, "split_indices")                                            \
    ROW(KINDS, "split_type")                                                  \
    ROW(CATEGORIES, "categories")                                             \
    ROW(CATEGORY_NODES, "categories_nodes")                                   \
    ROW(CATEGORY_BEGINS, "categories_segments")                               \
    ROW(CATEGORY_COUNTS, "categories_sizes")                                  \
    ROW(THRESHOLDS, "split_conditions")                                       \
    ROW(DEFAULT_LEFT, "default_left")                                         \
    ROW(GAINS, "loss_changes")                                                \
    ROW(HESSIANS, "sum_hessian")                                              \
    ROW(VECTORS, "leaf_weights")

enum {
#define XGBOOST_ENUM(field, name) XGBOOST_##field,
    XGBOOST_TREE_FIELDS(XGBOOST_ENUM)
#undef XGBOOST_ENUM
    XGBOOST_FIELD_COUNT
};

#define XGBOOST_KEPT_COUNT (XGBOOST_CATEGORY_COUNTS + 1)

typedef struct {
    bool     seen;
    size_t   count;
    int32_t *kept;
    size_t   cap;
} xgboost_field_t;

typedef struct {
    uint8_t  place;                     /* its place in a model              */
    uint8_t  next;                      /* place of the last key             */
    uint8_t  field;                     /* its field of a tree               */
} xgboost_level_t;

typedef struct {
    TRITONSERVER_Error *err;
    size_t              len;            /* of the file                       */
    xgboost_level_t     levels[XGBOOST_DEPTH_MOST];
    size_t              depth;
    xgboost_field_t     fields[XGBOOST_FIELD_COUNT];    /* of the tree       */
    int64_t             nodes;
    int64_t             leaf_values;
    size_t              trees;
    size_t              tree_infos;
    unsigned            models;
    int64_t             targets;
} xgboost_document_t;

/* Begins the document of a file of len bytes. */
void xgboost_document_init(xgboost_document_t *d, size_t len);
void xgboost_document_fini(xgboost_document_t *d);

/* The events: an array or object begins or ends, a key, a string, a whole
 * number. */
bool xgboost_document_open(xgboost_document_t *d);
bool xgboost_document_close(xgboost_document_t *d);
bool xgboost_document_key(xgboost_document_t *d, const char *key, size_t len);
bool xgboost_document_text(xgboost_document_t *d, const char *text,
    size_t len);
bool xgboost_document_integer(xgboost_document_t *d, int64_t number);

/* Any other value that is neither array nor object. */
bool xgboost_document_other(xgboost_document_t *d);

#endif /* TREES_XGBOOST_DOCUMENT_H */
