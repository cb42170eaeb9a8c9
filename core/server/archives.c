#include "core/server/archives.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/path.h"
#include "core/include/channel.h"
#include "core/model/config_load.h"
#include "core/proto/message.h"
#include "core/proto/message_utf8.h"
#include "core/server/journal.h"
#include "core/server/low_memory.h"
#include "core/server/model_control.h"
#include "core/storage/storage.h"

typedef NginxInference__ArchiveRecord archive_t;

/* A load or unload whose model's operation runs. */
typedef struct {
    inf_server_t          *server;
    inf_arena_t            arena;
    archive_t              archive;     /* in arena; of an unload the name   */
    inf_repository_t      *item;        /* a reference                       */
    inf_err_t             *failure;     /* of the load; NULL: none           */
    size_t                 removed;     /* names after that, as name_of      */
    inf_lifecycle_done_fn  done;
    void                  *userp;
} archive_call_t;

static inf_err_t *load_allowed(const inf_server_t *server);
static archive_call_t *call_new(inf_server_t *server, const char *name,
    inf_lifecycle_done_fn done, void *userp);
static void call_free(archive_call_t *call);
static void loaded(void *userp, inf_err_t *err);
static void unloaded(void *userp, inf_err_t *err);
static void remove_next(void *userp, inf_err_t *err);
static const char *name_of(const archive_call_t *call, size_t i);
static void forget_unloads(const archive_call_t *call);
static inf_err_t *reply(inf_err_t *err);
static void note(const archive_call_t *call);
static inf_err_t *restore_one(void *userp, uint16_t method,
    inf_slice_t message);
static inf_err_t *check_name(const archive_t *archive);
static inf_err_t *add(inf_server_t *server, const archive_t *archive,
    inf_repository_t **item);
static inf_err_t *check_names(inf_server_t *server,
    const archive_t *archive);
static inf_err_t *check_address(const inf_repository_list_t *list,
    const char *address);
static bool is_known(const inf_repository_list_t *list,
    inf_registry_reader_t *models, const char *name, inf_err_t **err);
static inf_err_t *find(const char *url, const char *config_name,
    inf_arena_t *arena, archive_t *archive);
static inf_err_t *find_dirs(const inf_storage_t *st, const char *path,
    inf_arena_t *arena, archive_t *archive);
static inf_err_t *add_dir(archive_t *archive, const char *name,
    inf_arena_t *arena);
static inf_err_t *check_url(const char *url, const char *path);
static inf_err_t *choose(const inf_storage_t *st, const char *path,
    const char *config_name, archive_t *archive);
static bool is_ensemble(const inf_storage_t *st, const char *path,
    const char *dir, const char *config_name);
static inf_err_t *list_one(inf_registry_reader_t *models,
    const inf_repository_t *item, inf_arena_t *arena,
    NginxInference__ArchiveListResponse *r);

bool
inf_archive_is_change(uint16_t method)
{
    return method == INF_METHOD_ARCHIVE_LOAD
        || method == INF_METHOD_ARCHIVE_UNLOAD;
}

void
inf_archive_load(inf_server_t *server,
    const NginxInference__ArchiveLoadRequest *q, inf_lifecycle_done_fn done,
    void *userp)
{
    archive_call_t *call = call_new(server, q->model_name, done, userp);
    inf_err_t *err = call != NULL ? load_allowed(server) : inf_err_nomem();

    if (err == NULL) {
        err = inf_model_control_name(q->model_name);
    }
    if (err == NULL) {
        err = find(q->url, server->config->values->model_config_name,
            &call->arena, &call->archive);
    }
    if (err == NULL) {
        err = check_name(&call->archive);
    }
    if (err == NULL) {
        err = add(server, &call->archive, &call->item);
    }
    if (err != NULL) {
        call_free(call);
        done(userp, reply(err));
        return;
    }

    inf_lifecycle_load_async(server->lifecycle, q->model_name, NULL, false,
        loaded, call);
}

/* The configuration decides, not the worker: archives are code. */
static inf_err_t *
load_allowed(const inf_server_t *server)
{
    if ((atomic_load(&server->control) & INF_SERVER_ARCHIVES) == 0) {
        return inf_err_new(INF_ERR_UNSUPPORTED, "no location has"
            " \"inference archives\"");
    }
    return inf_model_control_is_explicit(server) ? NULL
        : inf_err_new(INF_ERR_INVALID_ARG, "repository registration is not"
            " allowed if model control mode is not EXPLICIT"
            " (inference_model_control explicit; inference-server:"
            " --model-control-mode=explicit)");
}

void
inf_archive_unload(inf_server_t *server,
    const NginxInference__ArchiveUnloadRequest *q, inf_lifecycle_done_fn done,
    void *userp)
{
    archive_call_t *call = call_new(server, q->model_name, done, userp);
    inf_err_t *err = call != NULL
        ? inf_repositories_find_alias(&server->repositories, q->model_name,
            &call->item) : inf_err_nomem();

    if (err == NULL) {
        err = inf_model_control_allowed(server);
    }
    if (err != NULL) {
        call_free(call);
        done(userp, err);
        return;
    }

    inf_lifecycle_remove_async(server->lifecycle, q->model_name, unloaded,
        call);
}

inf_err_t *
inf_archive_list(inf_server_t *server, inf_registry_reader_t *models,
    const char *name, inf_arena_t *arena,
    NginxInference__ArchiveListResponse *r)
{
    inf_repository_list_t *list = inf_repositories_take(&server->repositories);
    inf_err_t *err = NULL;

    nginx_inference__archive_list_response__init(r);
    r->models = inf_arena_alloc(arena,
        (list->count + 1) * sizeof(*r->models));
    if (r->models == NULL) {
        err = inf_err_nomem();
    }

    for (size_t i = 0; err == NULL && i < list->count; i++) {
        const inf_repository_t *item = list->items[i];
        if (item->registered && item->alias_count > 0 && (name[0] == '\0'
                || strcmp(item->aliases[0].name, name) == 0))
        {
            err = list_one(models, item, arena, r);
        }
    }
    inf_repository_list_unref(list);

    if (err == NULL && name[0] != '\0' && r->n_models == 0) {
        err = inf_err_new(INF_ERR_NOT_FOUND, "no model '%s' is loaded", name);
    } else if (err == NULL && name[0] != '\0') {
        r->found = r->models[0];
    }
    return err;
}

void
inf_archives_restore(inf_server_t *server)
{
    inf_journal_replay(server->journal, INF_METHOD_ARCHIVE_LOAD, restore_one,
        server);
}

static archive_call_t *
call_new(inf_server_t *server, const char *name, inf_lifecycle_done_fn done,
    void *userp)
{
    archive_call_t *call = calloc(1, sizeof(*call));
    if (call == NULL) {
        return NULL;
    }

    call->server = server;
    call->done = done;
    call->userp = userp;
    inf_arena_init(&call->arena);
    nginx_inference__archive_record__init(&call->archive);
    call->archive.model_name = inf_arena_strdup(&call->arena, name,
        strlen(name));
    if (call->archive.model_name == NULL) {
        call_free(call);
        return NULL;
    }

    return call;
}

/* call may be NULL. */
static void
call_free(archive_call_t *call)
{
    if (call == NULL) {
        return;
    }

    inf_arena_fini(&call->arena);
    inf_repository_unref(call->item);
    free(call);
}

static void
loaded(void *userp, inf_err_t *err)
{
    archive_call_t *call = userp;

    if (err == NULL) {
        note(call);
        call->done(call->userp, NULL);
        call_free(call);
        return;
    }

    call->failure = inf_low_memory(inf_err_msg(err))
        ? inf_err_because(err, INF_CAUSE_NO_MEMORY) : err;
    remove_next(call, NULL);
}

/* Removes the models of an archive whose load has failed, one after another,
   and then the archive.  err: of the one before. */
static void
remove_next(void *userp, inf_err_t *err)
{
    archive_call_t *call = userp;
    const char *name = err == NULL ? name_of(call, call->removed) : NULL;

    inf_err_log(err);
    if (name != NULL) {
        call->removed++;
        inf_lifecycle_remove_async(call->server->lifecycle, name, remove_next,
            call);
        return;
    }

    inf_err_log(inf_repositories_drop(&call->server->repositories,
        call->item));
    forget_unloads(call);
    call->done(call->userp, reply(call->failure));
    call_free(call);
}

/* Name number i, from 0, of the models of the archive; NULL: end. */
static const char *
name_of(const archive_call_t *call, size_t i)
{
    const inf_scan_alias_t *alias = &call->item->aliases[0];
    inf_listing_t *listing = inf_repository_listing(call->item, NULL);
    const char *dir = i < listing->entries.count
        ? listing->entries.items[i].name : NULL;

    inf_listing_unref(listing);         /* the item keeps its only one       */
    return dir != NULL && strcmp(dir, alias->dir) == 0 ? alias->name : dir;
}

static void
unloaded(void *userp, inf_err_t *err)
{
    archive_call_t *call = userp;

    if (err == NULL) {
        inf_journal_forget(call->server->journal, INF_METHOD_ARCHIVE_LOAD,
            call->archive.model_name);
        err = inf_repositories_drop(&call->server->repositories, call->item);
    }
    if (err == NULL) {
        forget_unloads(call);
    }

    call->done(call->userp, err);
    call_free(call);
}

/* Its names mean nothing without the archive, or models of other
   repositories. */
static void
forget_unloads(const archive_call_t *call)
{
    inf_model_id_t id = inf_model_id("");

    for (size_t i = 0; (id.name = name_of(call, i)) != NULL; i++) {
        inf_journal_forget_unload(call->server->journal, &id);
    }
}

/* The error of a load as the client gets it; takes err, which may be NULL. */
static inf_err_t *
reply(inf_err_t *err)
{
    return err == NULL || inf_err_code(err) == INF_ERR_ALREADY_EXISTS
        || inf_err_code(err) == INF_ERR_UNAVAILABLE
        || inf_err_code(err) == INF_ERR_UNSUPPORTED ? err
        : inf_err_recode(err, INF_ERR_INVALID_ARG);
}

static void
note(const archive_call_t *call)
{
    inf_journal_keep_message(call->server->journal, INF_METHOD_ARCHIVE_LOAD,
        call->archive.model_name, &call->archive.base);
}

static inf_err_t *
restore_one(void *userp, uint16_t method, inf_slice_t message)
{
    (void) method;
    ProtobufCMessage *m;

    inf_err_t *err = inf_message_unpack(
        &nginx_inference__archive_record__descriptor, message, &m);
    if (err != NULL) {
        return err;
    }

    err = add(userp, (const void *) m, NULL);
    inf_message_free(m);
    return err;
}

/* Checks a name that the client chose, since backends put names into commands
   (CVE-2025-23316); the operator has named directories. */
static inf_err_t *
check_name(const archive_t *archive)
{
    const char *name = archive->model_name;
    char text[INF_SCAN_PRINTABLE];

    return inf_model_name_odd(name) == NULL || strcmp(name, archive->dir) == 0
        ? NULL : inf_err_new(INF_ERR_INVALID_ARG, "failed to register '%s':"
            " the name '%s' of its model is neither of A-Z, a-z, 0-9, '_', '.'"
            " and '-' alone nor that of the directory '%s'", archive->address,
            inf_scan_printable(name, text), archive->dir);
}

/* Registers the archive; only the directories of other repositories are
   accessed. */
static inf_err_t *
add(inf_server_t *server, const archive_t *archive, inf_repository_t **item)
{
    const inf_scan_alias_t alias = {
        .dir = archive->dir, .name = archive->model_name
    };
    const inf_registration_t what = {
        .address = archive->address, .aliases = &alias, .count = 1,
        .aliases_only = archive->alone, .dirs = archive->dirs,
        .dir_count = archive->n_dirs
    };

    inf_err_t *err = check_names(server, archive);
    return err != NULL ? err
        : inf_repositories_add(&server->repositories, &what, item);
}

/* Fails if the archive's directory is a repository, or if the archive has a
   model whose name is taken: only one could serve. */
static inf_err_t *
check_names(inf_server_t *server, const archive_t *archive)
{
    inf_repository_list_t *list = inf_repositories_take(&server->repositories);
    const char *name = archive->model_name;
    size_t others = archive->alone ? 0 : archive->n_dirs;
    inf_registry_reader_t models;

    inf_registry_reader_init(&models, &server->registry);
    inf_err_t *err = check_address(list, archive->address);
    if (err == NULL && list->namespacing) {
        err = inf_err_new(INF_ERR_UNSUPPORTED, "failed to register '%s':"
            " inference_model_namespacing is on", archive->address);
    } else if (err == NULL && is_known(list, &models, name, &err)) {
        err = inf_err_new(INF_ERR_ALREADY_EXISTS, "failed to register '%s',"
            " there is a conflicting mapping for '%s'", archive->address,
            name);
    }

    for (size_t i = 0; err == NULL && i < others; i++) {
        const char *dir = archive->dirs[i];
        if (strcmp(dir, archive->dir) != 0
            && is_known(list, &models, dir, &err))
        {
            err = inf_err_new(INF_ERR_INVALID_ARG, "failed to register '%s':"
                " there is a model '%s' already", archive->address, dir);
        }
    }

    inf_registry_reader_fini(&models);
    inf_repository_list_unref(list);
    return err;
}

/* Fails if a repository has that address, with the links of a configured one
   resolved, as they are in address. */
static inf_err_t *
check_address(const inf_repository_list_t *list, const char *address)
{
    for (size_t i = 0; i < list->total; i++) {
        const inf_repository_t *item = list->items[i];
        char *path = item->registered || inf_repository_is_remote(item)
            ? NULL : realpath(item->root, NULL);
        bool same = path != NULL && strcmp(path, address) == 0;

        free(path);
        if (inf_repository_is_at(item, address)) {
            return inf_err_new(INF_ERR_ALREADY_EXISTS, "model repository '%s'"
                " has already been registered", address);
        }
        if (same) {
            return inf_err_new(INF_ERR_ALREADY_EXISTS, "model repository '%s'"
                " has already been registered as '%s'", address,
                item->address);
        }
    }

    return NULL;
}

/* Whether a repository has a model of that name, or one serves that came with a
   request. */
static bool
is_known(const inf_repository_list_t *list, inf_registry_reader_t *models,
    const char *name, inf_err_t **err)
{
    const inf_model_id_t id = { .space = "", .name = name };
    inf_model_t *model;
    inf_scan_t scan;

    *err = inf_registry_find(models, inf_slice_str(name), -1, &model);
    if (*err == NULL) {
        inf_model_unref(model);
        return true;
    }

    inf_err_free(*err);
    *err = inf_repository_list_scan(list, &id, &scan);
    if (*err != NULL) {
        return false;
    }

    bool known = scan.model_count > 0;
    inf_scan_fini(&scan);
    return known;
}

/* Finds the archive of a url; its texts are in arena. */
static inf_err_t *
find(const char *url, const char *config_name, inf_arena_t *arena,
    archive_t *archive)
{
    char *path = realpath(url, NULL);
    inf_storage_t *st = NULL;
    char *root = NULL;

    inf_err_t *err = check_url(url, path);
    if (err == NULL) {
        err = inf_storage_open(path, &st, &root);
    }
    if (err == NULL) {
        err = find_dirs(st, root, arena, archive);
    }
    if (err == NULL && !archive->alone) {
        err = choose(st, root, config_name, archive);
    }
    if (err == NULL) {
        const char *end = archive->alone ? strrchr(path, '/')
            : path + strlen(path);
        archive->address = end == path ? "/"
            : inf_arena_strdup(arena, path, (size_t) (end - path));
        err = archive->address != NULL ? NULL : inf_err_nomem();
    }

    inf_storage_close(st);
    free(root);
    free(path);
    return err;
}

/* Lists the directories that may be models: path alone, which then is the
   archive's dir, if it has a configuration, else those in it. */
static inf_err_t *
find_dirs(const inf_storage_t *st, const char *path, inf_arena_t *arena,
    archive_t *archive)
{
    inf_entries_t entries;

    inf_err_t *err = inf_storage_list(st, path, &entries);
    if (err != NULL) {
        return err;
    }

    archive->alone = inf_entries_find(&entries, "config.pbtxt") != NULL;
    archive->dirs = inf_arena_calloc(arena, entries.count + 1,
        sizeof(*archive->dirs));
    if (archive->dirs == NULL) {
        err = inf_err_nomem();
    } else if (archive->alone) {
        err = add_dir(archive, strrchr(path, '/') + 1, arena);
        archive->dir = archive->dirs[0];
    }
    for (size_t i = 0; err == NULL && !archive->alone && i < entries.count;
        i++)
    {
        const inf_entry_t *e = &entries.items[i];
        if (e->kind == INF_ENTRY_DIR
            && inf_model_name_problem(e->name, strlen(e->name)) == NULL)
        {
            err = add_dir(archive, e->name, arena);
        }
    }
    inf_entries_fini(&entries);
    return err;
}

static inf_err_t *
add_dir(archive_t *archive, const char *name, inf_arena_t *arena)
{
    char *copy = inf_arena_strdup(arena, name, strlen(name));
    if (copy == NULL) {
        return inf_err_nomem();
    }

    archive->dirs[archive->n_dirs++] = copy;
    return NULL;
}

/* path: the directory with its links resolved, or NULL with errno. */
static inf_err_t *
check_url(const char *url, const char *path)
{
    static const char *const taken[] = { "/dev", "/proc", "/sys" };

    if (url[0] != '/') {
        return inf_err_new(INF_ERR_INVALID_ARG, "failed to register '%s': the"
            " url must be the absolute path of a directory", url);
    }
    if (path == NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG, "failed to register '%s',"
            " repository not found: %s", url, strerror(errno));
    }
    if (!inf_utf8_valid(inf_slice_str(path))) {
        return inf_err_new(INF_ERR_INVALID_ARG, "failed to register '%s': the"
            " path of the directory that it leads to is not valid UTF-8",
            url);
    }

    bool bad = path[1] == '\0';
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        size_t len = strlen(taken[i]);
        bad |= strncmp(path, taken[i], len) == 0
            && (path[len] == '/' || path[len] == '\0');
    }
    return !bad ? NULL : inf_err_new(INF_ERR_INVALID_ARG, "failed to register"
        " '%s': the url cannot be / or lie in /dev, /proc or /sys", url);
}

/* Chooses the archive's dir among those of path. */
static inf_err_t *
choose(const inf_storage_t *st, const char *path, const char *config_name,
    archive_t *archive)
{
    bool ensemble = false;

    for (size_t i = 0; i < archive->n_dirs && !ensemble; i++) {
        archive->dir = archive->dirs[i];
        ensemble = is_ensemble(st, path, archive->dir, config_name);
    }

    if (archive->n_dirs == 0) {
        return inf_err_new(INF_ERR_INVALID_ARG, "failed to register '%s': it"
            " has neither a config.pbtxt nor the directory of a model", path);
    }
    return archive->n_dirs == 1 || ensemble ? NULL
        : inf_err_new(INF_ERR_INVALID_ARG, "failed to register '%s': of"
            " several models one must be an ensemble", path);
}

/* The load reports a configuration that cannot be read. */
static bool
is_ensemble(const inf_storage_t *st, const char *path, const char *dir,
    const char *config_name)
{
    const inf_config_options_t opt = { .config_name = config_name };
    Inference__ModelConfig *config = NULL;
    char *full = inf_path_join(path, dir);

    if (full != NULL) {
        inf_err_free(inf_model_config_parse(st, full, &opt, NULL, &config));
    }
    bool ensemble = config != NULL
        && strcmp(config->platform, "ensemble") == 0;

    if (config != NULL) {
        inf_message_free(&config->base);
    }
    free(full);
    return ensemble;
}

/* Adds the archive's row if its model serves. */
static inf_err_t *
list_one(inf_registry_reader_t *models, const inf_repository_t *item,
    inf_arena_t *arena, NginxInference__ArchiveListResponse *r)
{
    const char *name = item->aliases[0].name;
    inf_model_t *model;

    inf_err_t *err = inf_registry_find(models, inf_slice_str(name), -1,
        &model);
    if (err != NULL) {
        inf_err_free(err);
        return NULL;
    }
    inf_model_unref(model);

    NginxInference__Archive *row = inf_arena_alloc(arena, sizeof(*row));
    if (row == NULL) {
        return inf_err_nomem();
    }

    nginx_inference__archive__init(row);
    row->modelname = inf_arena_strdup(arena, name, strlen(name));
    row->modelurl = inf_arena_strdup(arena, item->shown,
        strlen(item->shown));
    r->models[r->n_models++] = row;
    return row->modelname != NULL && row->modelurl != NULL ? NULL
        : inf_err_nomem();
}
