/*
 * config_json.h - the JSON documents that core and backend exchange.
 *
 * Owner    bk_json_parse and the makers give a document to the caller, who
 *          ends it with bk_json_free.  Values found inside it are borrowed.
 * Thread   one document, one thread.
 * Units    none.
 * Errors   INVALID_ARG with line and column: a text is not JSON.  A getter
 *          returns the fallback for NULL or a value of another type, so that
 *          lookups can be chained.
 * Route    TRITONBACKEND_ModelConfig -> [config_json] -> model_config
 */

#ifndef BK_CONFIG_JSON_H
#define BK_CONFIG_JSON_H

#include "error.h"

/* The only file that knows the JSON library is config_json.c. */
typedef struct json_t bk_json_t;

typedef struct {
    bk_json_t  *object;
    void       *iter;       /* NULL before the first member                  */
    const char *key;
    bk_json_t  *value;
} bk_json_iter_t;

/* An empty text is the empty object, as the core writes a default config. */
BK_CHECK TRITONSERVER_Error *bk_json_parse(const char *text, size_t len,
    bk_json_t **out);
void bk_json_free(bk_json_t *v);

/* NULL, or 0, if there is no such value, or the argument is NULL or of another
 * type. */
bk_json_t *bk_json_member(const bk_json_t *object, const char *key);
bk_json_t *bk_json_at(const bk_json_t *array, size_t index);
size_t bk_json_count(const bk_json_t *v);

/* Steps to the next member of it->object; false at the end. */
bool bk_json_next(bk_json_iter_t *it);

/* fallback if v is NULL or of another type. */
const char *bk_json_string(const bk_json_t *v, const char *fallback);
int64_t bk_json_int(const bk_json_t *v, int64_t fallback);
bool bk_json_bool(const bk_json_t *v, bool fallback);

/* Without memory bk_json_new_* return NULL, and setters, which take NULL as a
 * value, return false. */
bk_json_t *bk_json_new_object(void);
bk_json_t *bk_json_new_array(void);
bk_json_t *bk_json_new_string(const char *s);
bk_json_t *bk_json_new_int(int64_t n);
bool bk_json_set(bk_json_t *object, const char *key, bk_json_t *value);
bool bk_json_append(bk_json_t *array, bk_json_t *value);

/* The document as compact text, which the caller frees; NULL without memory. */
char *bk_json_dump(const bk_json_t *v);

#endif /* BK_CONFIG_JSON_H */
