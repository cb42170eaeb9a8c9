#include "core/repository/model_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/log.h"
#include "core/base/path.h"
#include "core/base/refs.h"
#include "core/proto/message.h"
#include "core/proto/text_format.h"
#include "core/repository/code_upload.h"
#include "core/storage/storage_local.h"

static inf_err_t *open_private(inf_model_source_t *source,
    const inf_source_query_t *q);
static inf_err_t *take_scan(inf_model_source_t *source,
    const inf_source_query_t *q, const inf_scan_t *scan,
    const inf_repository_list_t *list);
static inf_err_t *nowhere(const inf_scan_t *scan);
static const char *first_problem(const inf_scan_t *scan);
static inf_err_t *take_versions(inf_model_source_t *source,
    const inf_scan_model_t *m);
static inf_err_t *let_agents_load(inf_model_source_t *source,
    const inf_source_query_t *q, const inf_config_options_t *opt);
static bool is_named(const char *file, const char *dir);
static inf_err_t *write_config(const inf_model_source_t *source);
static inf_err_t *bring_here(inf_model_source_t *source);

inf_err_t *
inf_model_source_open(const inf_source_query_t *q, inf_model_source_t **out)
{
    inf_model_source_t *source = calloc(1, sizeof(*source));
    if (source == NULL) {
        return inf_err_nomem();
    }

    atomic_init(&source->refs, 1);
    source->overridden = q->override != NULL && q->override->config != NULL;

    inf_err_t *err = inf_override_has_files(q->override)
        ? open_private(source, q) : take_scan(source, q, q->scan, q->list);
    if (err == NULL) {
        err = inf_model_stamp_take(source->storage, source->dir,
            &source->stamp);
    }
    if (err != NULL) {
        inf_model_source_unref(source);
        return err;
    }

    *out = source;
    return NULL;
}

inf_err_t *
inf_model_source_read(inf_model_source_t *source, const inf_source_query_t *q)
{
    inf_config_options_t opt = {
        .auto_complete = q->core_config->auto_complete,
        .config_name = q->core_config->model_config_name,
        .mapped = source->mapped
    };
    if (source->overridden) {
        opt.override_json = inf_slice_str(q->override->config);
    }

    inf_err_t *err = let_agents_load(source, q, &opt);
    if (err != NULL) {
        return err;
    }
    if (source->load_dir != source->dir) {
        opt.fallback = source->storage;
        opt.fallback_dir = source->dir;
    }

    err = inf_model_config_read(source->load_storage, source->load_dir, q->name,
        &opt, &source->config);
    if (err == NULL) {
        source->named = is_named(source->config->file, source->load_dir)
            || is_named(source->config->file, source->dir);
    }
    if (err == NULL && source->private_dir != NULL) {
        err = write_config(source);
    }
    return err != NULL ? err : bring_here(source);
}

inf_err_t *
inf_model_source_check_sent(const inf_model_source_t *source,
    const char *config_name, const Inference__ModelConfig *sent)
{
    const inf_config_options_t opt = { .config_name = config_name };
    Inference__ModelConfig *own = NULL;

    inf_err_t *unread = source->private_dir != NULL ? NULL
        : inf_model_config_parse(source->storage, source->dir, &opt, NULL,
            &own);
    inf_err_t *err = own == NULL ? NULL
        : inf_code_upload_check_inputs(sent, own);
    if (err == NULL) {
        err = inf_code_upload_check_config(sent, own);
    }

    if (own != NULL) {
        inf_message_free(&own->base);
    }
    if (err == NULL || unread == NULL) {
        inf_err_free(unread);
        return err;
    }
    inf_err_free(err);
    return unread;
}

bool
inf_model_source_same_version(const inf_model_source_t *a,
    const inf_model_source_t *b, int64_t version)
{
    return a->private_dir == NULL && b->private_dir == NULL
        && a->repository == b->repository && strcmp(a->dir, b->dir) == 0
        && inf_model_stamp_same_rest(&a->stamp, a->named, &b->stamp, b->named)
        && inf_model_stamp_same_version(&a->stamp, &b->stamp, version)
        && inf_model_source_says(a, b->config->msg,
            !inf_config_is_ensemble(a->config->msg));
}

bool
inf_model_source_says(const inf_model_source_t *source,
    const Inference__ModelConfig *msg, bool but_instances)
{
    Inference__ModelConfig x = *source->config->msg;
    Inference__ModelConfig y = *msg;

    if (but_instances) {
        x.version_policy = NULL;
        y.version_policy = NULL;
        x.n_instance_group = 0;
        y.n_instance_group = 0;
    }
    return inf_message_same(&x.base, &y.base);
}

inf_err_t *
inf_model_source_adopt(inf_model_source_t *source,
    const inf_model_source_t *other)
{
    inf_model_config_t *config;
    Inference__ModelConfig mixed = *other->config->msg;
    mixed.version_policy = source->config->msg->version_policy;
    mixed.n_instance_group = source->config->msg->n_instance_group;
    mixed.instance_group = source->config->msg->instance_group;

    inf_err_t *err = inf_model_config_copy(&mixed, source->config, &config);
    if (err != NULL) {
        return err;
    }

    inf_model_config_free(source->config);
    source->config = config;
    return NULL;
}

void
inf_model_source_swap_settings(inf_model_source_t *a, inf_model_source_t *b)
{
    const inf_model_source_t old = *a;

    a->overridden = b->overridden;
    a->config = b->config;
    a->versions = b->versions;
    a->version_count = b->version_count;
    a->stamp = b->stamp;

    b->overridden = old.overridden;
    b->config = old.config;
    b->versions = old.versions;
    b->version_count = old.version_count;
    b->stamp = old.stamp;
}

void
inf_model_source_leave(inf_model_source_t *source)
{
    if (source != NULL) {
        inf_agents_unload(source->agents);
        inf_model_source_unref(source);
    }
}

inf_model_source_t *
inf_model_source_ref(inf_model_source_t *source)
{
    atomic_fetch_add_explicit(&source->refs, 1, memory_order_relaxed);
    return source;
}

void
inf_model_source_unref(inf_model_source_t *source)
{
    if (source == NULL || !inf_refs_drop(&source->refs)) {
        return;
    }

    if (source->fetched != NULL) {
        inf_storage_release(source->fetched_from, source->fetched);
    }
    inf_storage_close(source->disk);
    inf_agents_free(source->agents);
    inf_private_dir_free(source->private_dir);
    inf_storage_close(source->private_storage);
    inf_repository_unref(source->repository);
    inf_model_stamp_fini(&source->stamp);
    inf_model_config_free(source->config);
    free(source->versions);
    free(source->dir);
    free(source);
}

/* Makes a private repository with that one model. */
static inf_err_t *
open_private(inf_model_source_t *source, const inf_source_query_t *q)
{
    inf_scan_t scan;

    if (!source->overridden) {
        return inf_err_new(INF_ERR_INVALID_ARG, "Load parameter 'config' must"
            " be specified for model file override");
    }

    const char *why = inf_model_name_problem(q->name, strlen(q->name));
    if (why != NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG, "invalid model name: %s", why);
    }

    inf_err_t *err = inf_private_dir_new(NULL, &source->private_dir);
    if (err != NULL) {
        return err;
    }

    char *dir = inf_path_join(source->private_dir->path, q->name);
    if (dir == NULL) {
        return inf_err_nomem();
    }

    err = mkdir(dir, 0700) == 0 ? NULL
        : inf_err_os(errno, "cannot create '%s'", dir);
    if (err == NULL) {
        err = inf_override_write(q->override, dir);
    }
    free(dir);
    if (err == NULL) {
        err = inf_storage_local_open(&source->private_storage);
    }
    if (err != NULL) {
        return err;
    }

    const inf_scan_root_t place = {
        .storage = source->private_storage, .root = source->private_dir->path
    };
    err = inf_scan_one(&place, 1, q->name, &scan);
    if (err == NULL) {
        err = take_scan(source, q, &scan, NULL);
        inf_scan_fini(&scan);
    }
    return err;
}

/* Takes the scan's result; list NULL: of the private directory. */
static inf_err_t *
take_scan(inf_model_source_t *source, const inf_source_query_t *q,
    const inf_scan_t *scan, const inf_repository_list_t *list)
{
    for (size_t i = 0; i < scan->problem_count; i++) {
        inf_log(scan->problems[i].level, "%s", scan->problems[i].text);
    }

    const inf_scan_model_t *m = inf_scan_find(scan, q->name);
    if (m == NULL) {
        return nowhere(scan);
    }
    if (m->duplicate) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "model appears in two or more repositories: '%s' and '%s'",
            m[0].dir, m[1].dir);
    }
    if (m->unreadable != NULL) {
        return inf_err_new(INF_ERR_INTERNAL,
            "the model's directory can't be read: %s", m->unreadable);
    }

    if (list != NULL) {
        source->repository = inf_repository_ref(list->items[m->repository]);
        source->storage = source->repository->storage;
    } else {
        source->storage = source->private_storage;
    }
    source->dir = strdup(m->dir);
    if (source->dir == NULL) {
        return inf_err_nomem();
    }

    source->mapped = m->mapped;
    source->load_storage = source->storage;
    source->load_dir = source->dir;
    return take_versions(source, m);
}

static inf_err_t *
nowhere(const inf_scan_t *scan)
{
    const char *problem = first_problem(scan);
    return problem != NULL ? inf_err_new(INF_ERR_INTERNAL, "%s", problem)
        : inf_err_new(INF_ERR_NOT_FOUND,
            "model not found in any model repository.");
}

static inf_err_t *
take_versions(inf_model_source_t *source, const inf_scan_model_t *m)
{
    int64_t *versions = calloc(m->version_count + 1, sizeof(*versions));
    if (versions == NULL) {
        return inf_err_nomem();
    }

    if (m->version_count > 0) {
        memcpy(versions, m->versions, m->version_count * sizeof(*versions));
    }
    free(source->versions);
    source->versions = versions;
    source->version_count = m->version_count;
    return NULL;
}

/* Runs the agents' LOAD.  Versions may differ afterwards, even in the same
   place. */
static inf_err_t *
let_agents_load(inf_model_source_t *source, const inf_source_query_t *q,
    const inf_config_options_t *opt)
{
    const inf_agents_model_t model = {
        .storage = source->storage, .dir = source->dir, .name = q->name,
        .config = opt,
        .agent_dirs = {
            .items = q->core_config->agent_directories,
            .count = q->core_config->n_agent_directories
        }
    };
    inf_scan_t scan;

    inf_err_t *err = inf_agents_load(q->agents, &model, &source->agents);
    if (err != NULL || source->agents == NULL) {
        return err;
    }

    const char *dir = inf_agents_dir(source->agents);
    source->load_storage = inf_agents_storage(source->agents);
    source->load_dir = strcmp(dir, source->dir) == 0 ? source->dir : dir;

    const inf_scan_root_t place = {
        .storage = source->load_storage, .root = source->load_dir
    };
    err = inf_scan_model_dir(&place, q->name, &scan);
    if (err != NULL) {
        return err;
    }

    for (size_t i = 0; i < scan.problem_count; i++) {
        inf_log(scan.problems[i].level, "%s", scan.problems[i].text);
    }
    const char *unreadable = scan.models[0].unreadable;
    err = unreadable != NULL ? inf_err_new(INF_ERR_INTERNAL,
        "the model's directory can't be read: %s", unreadable)
        : take_versions(source, &scan.models[0]);
    inf_scan_fini(&scan);
    return err;
}

/* Copies remote files to the local disk, where backends read them. */
static inf_err_t *
bring_here(inf_model_source_t *source)
{
    char *local;

    inf_err_t *err = inf_storage_localize(source->load_storage,
        source->load_dir, &local);
    if (err != NULL) {
        return err;
    }

    if (strcmp(local, source->load_dir) == 0) {
        inf_storage_release(source->load_storage, local);
        return NULL;
    }

    source->fetched_from = source->load_storage;
    source->fetched = local;
    err = inf_storage_local_open(&source->disk);
    if (err == NULL) {
        source->load_storage = source->disk;
        source->load_dir = local;
    }
    return err;
}

static const char *
first_problem(const inf_scan_t *scan)
{
    for (size_t i = 0; i < scan->problem_count; i++) {
        if (scan->problems[i].level == INF_LOG_ERROR) {
            return scan->problems[i].text;
        }
    }

    return NULL;
}

/* Whether file, which may be NULL, is in dir. */
static bool
is_named(const char *file, const char *dir)
{
    size_t len = strlen(dir);
    return file != NULL && strncmp(file, dir, len) == 0
        && strncmp(file + len, "/configs/", 9) == 0;
}

/* Writes config.pbtxt beside the files, where backends may read it. */
static inf_err_t *
write_config(const inf_model_source_t *source)
{
    inf_buf_t text;
    inf_buf_init(&text);

    inf_err_t *err = inf_text_print(&source->config->msg->base, &text);
    if (err == NULL) {
        err = inf_buf_status(&text);
    }
    if (err == NULL) {
        inf_override_file_t file = {
            "config.pbtxt", text.data != NULL ? text.data : "", text.len
        };
        const inf_override_t one = { .files = &file, .file_count = 1 };
        err = inf_override_write(&one, source->dir);
    }

    inf_buf_fini(&text);
    return err;
}
