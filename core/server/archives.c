#include "core/server/archives.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/path.h"
#include "core/include/channel.h"
#include "core/model/config_load.h"
#include "core/proto/message.h"
#include "core/server/journal.h"
#include "core/server/low_memory.h"
#include "core/server/model_control.h"
#include "core/storage/storage.h"

/* A load or unload whose model's operation runs. */
typedef struct {
    inf_server_t          *server;
    char                  *name;
    char                  *url;         /* of a load                         */
    inf_repository_t      *item;        /* a reference                       */
    inf_lifecycle_done_fn  done;
    void                  *userp;
} archive_call_t;

/* The repository of a directory, and the model's directory in it. */
typedef struct {
    char          *address;
    char          *dir;
    bool           alone;       /* other directories there are none of the
                                   archive                                   */
    inf_entries_t  entries;     /* of the url                                */
} place_t;

static archive_call_t *call_new(inf_server_t *server, const char *name,
    const char *url, inf_lifecycle_done_fn done, void *userp);
static void call_free(archive_call_t *call);
static void loaded(void *userp, inf_err_t *err);
static void unloaded(void *userp, inf_err_t *err);
static inf_err_t *reply(inf_err_t *err);
static void note(const archive_call_t *call);
static inf_err_t *restore_one(void *userp, uint16_t method,
    inf_slice_t message);
static inf_err_t *add(inf_server_t *server, const char *name, const char *url,
    inf_repository_t **item);
static inf_err_t *check_names(const inf_server_t *server, const char *name,
    const place_t *place);
static bool is_known(const inf_repository_list_t *list, const char *name,
    inf_err_t **err);
static inf_err_t *find_place(const char *url, const char *config_name,
    place_t *out);
static inf_err_t *check_url(const char *url, const char *path);
static inf_err_t *choose(const inf_storage_t *st, const char *path,
    const inf_entries_t *entries, const char *config_name, char **dir);
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
    archive_call_t *call = call_new(server, q->model_name, q->url, done,
        userp);
    inf_err_t *err = call != NULL ? inf_model_control_allowed(server)
        : inf_err_nomem();

    if (err == NULL) {
        err = inf_model_control_name(q->model_name);
    }
    if (err == NULL) {
        err = add(server, q->model_name, q->url, &call->item);
    }
    if (err != NULL) {
        call_free(call);
        done(userp, reply(err));
        return;
    }

    inf_lifecycle_load_async(server->lifecycle, q->model_name, NULL, loaded,
        call);
}

void
inf_archive_unload(inf_server_t *server,
    const NginxInference__ArchiveUnloadRequest *q, inf_lifecycle_done_fn done,
    void *userp)
{
    archive_call_t *call = call_new(server, q->model_name, "", done, userp);
    inf_err_t *err = call != NULL ? inf_model_control_allowed(server)
        : inf_err_nomem();

    if (err == NULL) {
        err = inf_repositories_find_alias(&server->repositories,
            q->model_name, &call->item);
    }
    if (err != NULL) {
        call_free(call);
        done(userp, err);
        return;
    }

    inf_lifecycle_unload_async(server->lifecycle, q->model_name, true,
        unloaded, call);
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
call_new(inf_server_t *server, const char *name, const char *url,
    inf_lifecycle_done_fn done, void *userp)
{
    archive_call_t *call = calloc(1, sizeof(*call));
    if (call == NULL) {
        return NULL;
    }

    call->server = server;
    call->name = strdup(name);
    call->url = strdup(url);
    call->done = done;
    call->userp = userp;
    if (call->name == NULL || call->url == NULL) {
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

    free(call->name);
    free(call->url);
    inf_repository_unref(call->item);
    free(call);
}

static void
loaded(void *userp, inf_err_t *err)
{
    archive_call_t *call = userp;

    if (err == NULL) {
        note(call);
    } else {
        inf_err_log(inf_repositories_drop(&call->server->repositories,
            call->item));
        if (inf_low_memory(inf_err_msg(err))) {
            err = inf_err_because(err, INF_CAUSE_NO_MEMORY);
        }
    }

    call->done(call->userp, reply(err));
    call_free(call);
}

static void
unloaded(void *userp, inf_err_t *err)
{
    archive_call_t *call = userp;

    if (err == NULL) {
        inf_journal_forget(call->server->journal, INF_METHOD_ARCHIVE_LOAD,
            call->name);
        err = inf_repositories_drop(&call->server->repositories, call->item);
    }

    call->done(call->userp, err);
    call_free(call);
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
    NginxInference__ArchiveLoadRequest q =
        NGINX_INFERENCE__ARCHIVE_LOAD_REQUEST__INIT;

    q.model_name = call->name;
    q.url = call->url;
    inf_journal_keep_message(call->server->journal, INF_METHOD_ARCHIVE_LOAD,
        call->name, &q.base);
}

static inf_err_t *
restore_one(void *userp, uint16_t method, inf_slice_t message)
{
    (void) method;
    ProtobufCMessage *m;

    inf_err_t *err = inf_message_unpack(
        &nginx_inference__archive_load_request__descriptor, message, &m);
    if (err != NULL) {
        return err;
    }

    const NginxInference__ArchiveLoadRequest *q = (const void *) m;
    err = add(userp, q->model_name, q->url, NULL);
    inf_message_free(m);
    return err;
}

static inf_err_t *
add(inf_server_t *server, const char *name, const char *url,
    inf_repository_t **item)
{
    place_t place = { .address = NULL };

    inf_err_t *err = find_place(url,
        server->config->values->model_config_name, &place);
    if (err == NULL) {
        err = check_names(server, name, &place);
    }
    if (err == NULL) {
        const inf_scan_alias_t alias = { .dir = place.dir, .name = name };
        const inf_registration_t what = {
            .address = place.address, .aliases = &alias, .count = 1,
            .aliases_only = place.alone
        };
        err = inf_repositories_add(&server->repositories, &what, item);
    }

    inf_entries_fini(&place.entries);
    free(place.dir);
    free(place.address);
    return err;
}

/* Fails if the archive has a model whose name is one of another repository:
   neither would serve. */
static inf_err_t *
check_names(const inf_server_t *server, const char *name,
    const place_t *place)
{
    inf_repository_list_t *list = inf_repositories_take(&server->repositories);
    size_t others = place->alone ? 0 : place->entries.count;
    inf_err_t *err = NULL;
    bool there = false;

    for (size_t i = 0; i < list->count; i++) {
        there |= inf_repository_is_at(list->items[i], place->address);
    }
    if (there) {
        inf_repository_list_unref(list);
        return NULL;                    /* told when it is added             */
    }

    if (list->namespacing) {
        err = inf_err_new(INF_ERR_UNSUPPORTED, "failed to register '%s':"
            " inference_model_namespacing is on", place->address);
    } else if (is_known(list, name, &err)) {
        err = inf_err_new(INF_ERR_ALREADY_EXISTS, "failed to register '%s',"
            " there is a conflicting mapping for '%s'", place->address, name);
    }

    for (size_t i = 0; err == NULL && i < others; i++) {
        const inf_entry_t *e = &place->entries.items[i];
        if (e->kind == INF_ENTRY_DIR && strcmp(e->name, place->dir) != 0
            && is_known(list, e->name, &err))
        {
            err = inf_err_new(INF_ERR_INVALID_ARG, "failed to register '%s':"
                " there is a model '%s' in another repository",
                place->address, e->name);
        }
    }

    inf_repository_list_unref(list);
    return err;
}

static bool
is_known(const inf_repository_list_t *list, const char *name, inf_err_t **err)
{
    const inf_model_id_t id = { .space = "", .name = name };
    inf_scan_t scan;

    *err = inf_repository_list_scan(list, &id, &scan);
    if (*err != NULL) {
        return false;
    }

    bool known = scan.model_count > 0;
    inf_scan_fini(&scan);
    return known;
}

static inf_err_t *
find_place(const char *url, const char *config_name, place_t *out)
{
    char *path = realpath(url, NULL);
    inf_storage_t *st = NULL;
    char *root = NULL;

    inf_err_t *err = check_url(url, path);
    if (err == NULL) {
        err = inf_storage_open(path, &st, &root);
    }
    if (err == NULL) {
        err = inf_storage_list(st, root, &out->entries);
    }
    if (err == NULL && inf_entries_find(&out->entries, "config.pbtxt")
        == NULL)
    {
        err = choose(st, root, &out->entries, config_name, &out->dir);
    }
    if (err == NULL && out->dir == NULL) {
        char *last = strrchr(path, '/');
        out->alone = true;
        out->dir = strdup(last + 1);
        *last = '\0';
    }
    if (err == NULL) {
        out->address = strdup(path[0] != '\0' ? path : "/");
        err = out->address != NULL && out->dir != NULL ? NULL
            : inf_err_nomem();
    }

    inf_storage_close(st);
    free(root);
    free(path);
    return err;
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

    bool bad = path[1] == '\0';
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        size_t len = strlen(taken[i]);
        bad |= strncmp(path, taken[i], len) == 0
            && (path[len] == '/' || path[len] == '\0');
    }
    return !bad ? NULL : inf_err_new(INF_ERR_INVALID_ARG, "failed to register"
        " '%s': the url cannot be / or lie in /dev, /proc or /sys", url);
}

/* Chooses among the directories of path. */
static inf_err_t *
choose(const inf_storage_t *st, const char *path,
    const inf_entries_t *entries, const char *config_name, char **dir)
{
    const char *chosen = NULL;
    bool ensemble = false;
    size_t count = 0;

    for (size_t i = 0; i < entries->count && !ensemble; i++) {
        const inf_entry_t *e = &entries->items[i];
        if (e->kind == INF_ENTRY_DIR) {
            count++;
            chosen = e->name;
            ensemble = is_ensemble(st, path, chosen, config_name);
        }
    }

    if (count == 0) {
        return inf_err_new(INF_ERR_INVALID_ARG, "failed to register '%s': it"
            " has neither a config.pbtxt nor the directory of a model", path);
    }
    if (count > 1 && !ensemble) {
        return inf_err_new(INF_ERR_INVALID_ARG, "failed to register '%s': of"
            " several models one must be an ensemble", path);
    }

    *dir = strdup(chosen);
    return *dir != NULL ? NULL : inf_err_nomem();
}

/* A configuration that cannot be read is told by the load. */
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
    row->modelurl = inf_arena_strdup(arena, item->address,
        strlen(item->address));
    r->models[r->n_models++] = row;
    return row->modelname != NULL && row->modelurl != NULL ? NULL
        : inf_err_nomem();
}
