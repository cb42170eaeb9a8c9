/*
 * config_load.h - from a model's directory to a checked configuration.
 *
 * Owner    The configuration belongs to the caller.
 * Thread   any; calls share nothing.
 * Units    none.
 * Errors   INTERNAL: file missing in strict mode, unreadable, or not in text
 *          format (file:line:column: key).  INVALID_ARG: a broken rule (file:
 *          key: the right form), or the override is not JSON.
 * Route    storage -> [reader: parse, infer, normalise, validate] -> loader
 */

#ifndef INF_MODEL_CONFIG_LOAD_H
#define INF_MODEL_CONFIG_LOAD_H

#include <stdbool.h>

#include "core/base/slice.h"
#include "core/model/config_findings.h"
#include "core/model/model_config.h"
#include "core/model/config_storage.h"

/* Maximum size of a file. */
#define INF_CONFIG_FILE_MAX ((size_t) 16 << 20)

typedef struct {
    bool        auto_complete;  /* false: strict mode                      */
    const char *config_name;    /* tries configs/<name>.pbtxt first; NULL:
                                   none                                    */
    inf_slice_t override_json;  /* data NULL: reads the file               */
    bool        mapped;         /* the model's name is an alias and differs
                                   from the configuration's                */

    /* where to look for the file if model_dir has none; NULL: nowhere */
    const inf_storage_t *fallback;
    const char          *fallback_dir;
} inf_config_options_t;

/* Reads a configuration; model_dir is a full path in st's notation, without a
   trailing slash. */
INF_CHECK inf_err_t *inf_model_config_read(const inf_storage_t *st,
    const char *model_dir, const char *model_name,
    const inf_config_options_t *opt, inf_model_config_t **out);

/* The same, but adds all broken rules to f with their places.  *out may be set
   even then; NULL: not parsable. */
void inf_model_config_check(const inf_storage_t *st, const char *model_dir,
    const char *model_name, const inf_config_options_t *opt,
    inf_findings_t *f, inf_model_config_t **out);

/* Sets the places of all findings in c's file. */
void inf_model_config_place(const inf_model_config_t *c,
    const inf_storage_t *st, inf_findings_t *f);

/*
 * The first of f as an error with its line and column in c's file.  NULL: f is
 * empty.
 */
INF_CHECK inf_err_t *inf_model_config_explain(const inf_model_config_t *c,
    const inf_storage_t *st, inf_findings_t *f);

/*
 * Parses the configuration without completing or checking it; free it with
 * inf_message_free.  *out NULL: no file.  *file (unless file is NULL) is the
 * path, to be freed, or NULL without a file.
 */
INF_CHECK inf_err_t *inf_model_config_parse(const inf_storage_t *st,
    const char *model_dir, const inf_config_options_t *opt, char **file,
    Inference__ModelConfig **out);

#endif /* INF_MODEL_CONFIG_LOAD_H */
