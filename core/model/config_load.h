/*
 * config_load.h - from a model's directory to a checked configuration.
 *
 * Owner    The configuration belongs to the caller.
 * Thread   any; nothing is shared between calls.
 * Units    none.
 * Errors   INTERNAL: file missing in strict mode, unreadable, or not in text
 *          format (file:line:column: key).  INVALID_ARG: a rule is broken
 *          (file: key: what would be right), or the override is not JSON.
 * Route    storage -> [reader: parse, infer, normalise, validate] -> loader
 */

#ifndef INF_MODEL_CONFIG_LOAD_H
#define INF_MODEL_CONFIG_LOAD_H

#include <stdbool.h>

#include "core/base/slice.h"
#include "core/model/config_findings.h"
#include "core/model/model_config.h"
#include "core/model/config_storage.h"

/* A longer file is rejected before it is parsed. */
#define INF_CONFIG_FILE_MAX ((size_t) 16 << 20)

typedef struct {
    bool        auto_complete;  /* false: strict                           */
    const char *config_name;    /* configs/<name>.pbtxt first; NULL: none  */
    inf_slice_t override_json;  /* data NULL: read the file                */
    bool        mapped;         /* the model's name is what a program called
                                   it, and not the configuration's         */

    /* where the file is looked for when model_dir has none; NULL: nowhere */
    const inf_storage_t *fallback;
    const char          *fallback_dir;
} inf_config_options_t;

/* model_dir is a whole path in st's spelling, without a trailing slash. */
INF_CHECK inf_err_t *inf_model_config_read(const inf_storage_t *st,
    const char *model_dir, const char *model_name,
    const inf_config_options_t *opt, inf_model_config_t **out);

/* The same with all broken rules, which are added to f, each with its place.
   *out may be set even then; it is NULL if nothing could be parsed. */
void inf_model_config_check(const inf_storage_t *st, const char *model_dir,
    const char *model_name, const inf_config_options_t *opt,
    inf_findings_t *f, inf_model_config_t **out);

/* Gives all of f their places in c's file, looked up now. */
void inf_model_config_place(const inf_model_config_t *c,
    const inf_storage_t *st, inf_findings_t *f);

/*
 * The first of f as an error that says where it stands in c's file: line and
 * column of the key, looked up now.  NULL: f is empty.
 */
INF_CHECK inf_err_t *inf_model_config_explain(const inf_model_config_t *c,
    const inf_storage_t *st, inf_findings_t *f);

/*
 * The configuration as written, neither completed nor checked; the caller
 * frees it with inf_message_free.  *out is NULL when there is no file.  file
 * may be NULL; *file is the path of what was read, the caller's to free, NULL
 * where no file was.
 */
INF_CHECK inf_err_t *inf_model_config_parse(const inf_storage_t *st,
    const char *model_dir, const inf_config_options_t *opt, char **file,
    Inference__ModelConfig **out);

#endif /* INF_MODEL_CONFIG_LOAD_H */
