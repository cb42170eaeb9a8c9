#include "core/repository/strategy_search.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/path.h"
#include "core/model/config_parameter.h"
#include "core/model/config_storage.h"
#include "core/storage/storage_local.h"

#define PARAMETER "TRITON_BATCH_STRATEGY_PATH"
#define FILENAME  "batchstrategy.so"

static inf_err_t *search_configured(const inf_model_t *model,
    const char *name, char **path);
static bool is_of_sequences(const inf_model_t *model);
static inf_err_t *rejected(const char *path);
static const char *in_model(const char *dir, const char *name);
static inf_err_t *escapes(const inf_model_t *model, const char *name);
static inf_err_t *search_default(const inf_model_t *model,
    const NginxInference__CoreConfig *config, char **path);
static inf_err_t *search_dir(const char *dir, const char *name, char **path);
static bool is_file(const char *path);

inf_err_t *
inf_strategy_search(const inf_model_t *model,
    const NginxInference__CoreConfig *config, char **path)
{
    const char *name = inf_config_parameter(model->built, PARAMETER);

    *path = NULL;
    if (name != NULL && is_of_sequences(model)) {
        return rejected(name);
    }

    inf_err_t *err = name != NULL ? search_configured(model, name, path)
        : search_default(model, config, path);

    if (err == NULL && *path != NULL && is_of_sequences(model)) {
        err = rejected(*path);
    }
    if (err != NULL) {
        free(*path);
        *path = NULL;
    }
    return err;
}

static bool
is_of_sequences(const inf_model_t *model)
{
    return model->built->scheduling_choice_case
        == INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_SEQUENCE_BATCHING;
}

static inf_err_t *
rejected(const char *path)
{
    return inf_err_new(INF_ERR_INVALID_ARG, PARAMETER " cannot be specified"
        " with sequence batcher, using default batching strategy (%s)", path);
}

static inf_err_t *
search_configured(const inf_model_t *model, const char *name, char **path)
{
    const char *const inner[] = { name, in_model(model->dir, name) };
    bool within = false;
    bool found = false;

    for (size_t i = 0; i < 2 && !found; i++) {
        if (!inf_path_is_inner(inner[i])) {
            continue;
        }
        within = true;
        free(*path);
        *path = inf_path_join(model->dir, inner[i]);
        if (*path == NULL) {
            return inf_err_nomem();
        }
        found = is_file(*path);
    }
    if (!within) {
        return escapes(model, name);
    }
    if (!found) {
        return inf_err_new(INF_ERR_NOT_FOUND, "Batching library path not"
            " found: %s", *path);
    }

    inf_err_t *err = inf_local_contain(model->dir, *path);
    if (err != NULL && inf_err_code(err) == INF_ERR_UNSUPPORTED) {
        inf_err_free(err);
        err = escapes(model, name);
    }
    return err;
}

/* The part of name behind the model's directory, which it may have in front
   whole or, as a path from the directory of the server's start would have it,
   without its first components.  name, if it has none of it. */
static const char *
in_model(const char *dir, const char *name)
{
    size_t dir_len = strlen(dir);

    for (const char *end = strchr(name, '/'); end != NULL;
        end = strchr(end + 1, '/'))
    {
        size_t len = (size_t) (end - name);
        if (len > 0 && len <= dir_len
            && memcmp(dir + dir_len - len, name, len) == 0
            && (len == dir_len || dir[dir_len - len - 1] == '/'))
        {
            return end + 1;
        }
    }
    return name;
}

static inf_err_t *
escapes(const inf_model_t *model, const char *name)
{
    return inf_err_new(INF_ERR_INVALID_ARG, "model '%s': batch strategy"
        " library '%s' (parameter " PARAMETER ") is outside of the model's"
        " directory '%s'", model->name, name, model->dir);
}

static inf_err_t *
search_default(const inf_model_t *model,
    const NginxInference__CoreConfig *config, char **path)
{
    char version[32];
    snprintf(version, sizeof(version), "%" PRId64, model->version);

    inf_err_t *err = search_dir(model->dir, version, path);
    if (err == NULL && *path == NULL) {
        err = search_dir(model->dir, ".", path);
    }
    for (size_t i = 0; err == NULL && *path == NULL
        && i < config->n_backend_directories; i++)
    {
        err = search_dir(config->backend_directories[i],
            model->built->backend, path);
    }
    return err;
}

static inf_err_t *
search_dir(const char *dir, const char *name, char **path)
{
    if (asprintf(path, "%s/%s/" FILENAME, dir, name) < 0) {
        *path = NULL;
        return inf_err_nomem();
    }

    if (!is_file(*path)) {
        free(*path);
        *path = NULL;
    }
    return NULL;
}

static bool
is_file(const char *path)
{
    struct stat sb;
    return stat(path, &sb) == 0 && S_ISREG(sb.st_mode);
}
