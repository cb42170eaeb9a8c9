#include "core/repository/agents.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/log.h"
#include "core/base/object_address.h"
#include "core/proto/message.h"
#include "core/storage/storage.h"
#include "core/storage/storage_local.h"

/* The last action of the chain; written by chain_move alone. */
typedef enum {
    CHAIN_LOADING,
    CHAIN_COMPLETE,
    CHAIN_FAILED,
    CHAIN_UNLOADING
} chain_stage_t;

struct inf_agent_model_s {
    inf_agents_t                                  *chain;
    inf_agent_t                                   *agent;   /* a reference   */
    const Inference__ModelRepositoryAgents__Agent *entry;
    bool                     acting;    /* LOAD was called                   */
    bool                     loading;   /* LOAD is being called              */
    const char              *action;    /* called last; NULL: none           */
    void                    *state;
    inf_artifact_t           artifact;
    const char              *location;  /* in the chain's arena              */
    inf_private_dir_t       *directory; /* NULL: not acquired                */
    Inference__ModelConfig  *config;    /* its own; NULL: none               */
};

struct inf_agents_s {
    _Atomic chain_stage_t    stage;     /* seq_cst: each action runs once    */
    inf_agent_table_t       *table;
    const inf_agent_ops_t   *ops;
    char                    *name;      /* of the model                      */
    Inference__ModelConfig  *config;    /* before the first agent ran        */
    inf_agent_model_t       *models;    /* one each, in their order          */
    size_t                   count;     /* those with ModelInitialize called */
    inf_arena_t              arena;

    inf_storage_t           *storage;   /* where the last agent left it      */
    inf_storage_t           *own;       /* the same, if opened here          */
    const char              *dir;
};

static inf_err_t *chain_new(inf_agent_table_t *table, const char *name,
    Inference__ModelConfig *config, inf_agents_t **out);
static inf_err_t *chain_run(inf_agents_t *c, const inf_agents_model_t *model);
static inf_err_t *chain_begin(inf_agents_t *c, size_t i,
    const inf_agents_model_t *model);
static Inference__ModelConfig *config_at(inf_artifact_t artifact,
    const char *location, const inf_config_options_t *opt);
static inf_err_t *chain_settle(inf_agents_t *c,
    const inf_agents_model_t *model);
static inf_err_t *check_directory(const inf_storage_t *st, const char *dir);
static inf_err_t *open_location(inf_artifact_t artifact, const char *location,
    inf_storage_t **st, char **root);
static bool chain_move(inf_agents_t *c, chain_stage_t from, chain_stage_t to);
static void act_in_order(inf_agents_t *c, inf_agent_action_t action);
static void act_in_reverse(inf_agents_t *c, inf_agent_action_t action);
static void act(inf_agents_t *c, inf_agent_model_t *m,
    inf_agent_action_t action);
static void chain_end(inf_agents_t *c);
static void chain_free(inf_agents_t *c);
static void log_ignored(const inf_agents_t *c, const inf_agent_model_t *m,
    const char *what, inf_err_t *err);

static const char *const action_names[] = {
    [INF_AGENT_LOAD] = "LOAD",
    [INF_AGENT_LOAD_COMPLETE] = "LOAD_COMPLETE",
    [INF_AGENT_LOAD_FAIL] = "LOAD_FAIL",
    [INF_AGENT_UNLOAD] = "UNLOAD",
    [INF_AGENT_UNLOAD_COMPLETE] = "UNLOAD_COMPLETE"
};

inf_err_t *
inf_agents_load(inf_agent_table_t *table, const inf_agents_model_t *model,
    inf_agents_t **out)
{
    Inference__ModelConfig *config;
    inf_agents_t *c = NULL;

    *out = NULL;
    inf_err_t *err = inf_model_config_parse(model->storage, model->dir,
        model->config, NULL, &config);
    if (err != NULL || config == NULL) {
        return err;
    }

    if (config->model_repository_agents == NULL
        || config->model_repository_agents->n_agents == 0)
    {
        inf_message_free(&config->base);
        return NULL;
    }

    err = chain_new(table, model->name, config, &c);
    if (err != NULL) {
        return err;
    }

    err = chain_run(c, model);
    if (err == NULL) {
        err = chain_settle(c, model);
    }
    if (err != NULL) {
        inf_agents_free(c);
        return err;
    }

    *out = c;
    return NULL;
}

inf_storage_t *
inf_agents_storage(const inf_agents_t *c)
{
    return c->storage;
}

const char *
inf_agents_dir(const inf_agents_t *c)
{
    return c->dir;
}

void
inf_agents_complete(inf_agents_t *c)
{
    if (chain_move(c, CHAIN_LOADING, CHAIN_COMPLETE)) {
        act_in_reverse(c, INF_AGENT_LOAD_COMPLETE);
    }
}

void
inf_agents_fail(inf_agents_t *c)
{
    if (chain_move(c, CHAIN_LOADING, CHAIN_FAILED)) {
        act_in_reverse(c, INF_AGENT_LOAD_FAIL);
    }
}

void
inf_agents_unload(inf_agents_t *c)
{
    if (chain_move(c, CHAIN_COMPLETE, CHAIN_UNLOADING)) {
        act_in_order(c, INF_AGENT_UNLOAD);
    }
}

void
inf_agents_free(inf_agents_t *c)
{
    if (c == NULL) {
        return;
    }

    chain_end(c);
    chain_free(c);
}

/* Creates a chain; takes config. */
static inf_err_t *
chain_new(inf_agent_table_t *table, const char *name,
    Inference__ModelConfig *config, inf_agents_t **out)
{
    size_t count = config->model_repository_agents->n_agents;
    inf_agents_t *c = calloc(1, sizeof(*c));
    inf_agent_model_t *models = calloc(count, sizeof(*models));
    char *copy = strdup(name);

    if (c == NULL || models == NULL || copy == NULL) {
        free(c);
        free(models);
        free(copy);
        inf_message_free(&config->base);
        return inf_err_nomem();
    }

    atomic_init(&c->stage, CHAIN_LOADING);
    c->table = table;
    c->ops = inf_agent_table_ops(table);
    c->name = copy;
    c->config = config;
    c->models = models;
    inf_arena_init(&c->arena);
    *out = c;
    return NULL;
}

static inf_err_t *
chain_run(inf_agents_t *c, const inf_agents_model_t *model)
{
    size_t count = c->config->model_repository_agents->n_agents;

    for (size_t i = 0; i < count; i++) {
        inf_agent_model_t *m = &c->models[i];

        inf_err_t *err = chain_begin(c, i, model);
        if (err == NULL) {
            m->acting = true;
            m->loading = true;
            m->action = action_names[INF_AGENT_LOAD];
            err = c->ops->act(m->agent, m, INF_AGENT_LOAD);
            m->loading = false;
        }
        if (err != NULL) {
            return inf_err_note(err, "repo agent '%s'",
                c->config->model_repository_agents->agents[i]->name);
        }
    }

    return NULL;
}

/* Opens the agent of number i and calls ModelInitialize. */
static inf_err_t *
chain_begin(inf_agents_t *c, size_t i, const inf_agents_model_t *model)
{
    inf_agent_model_t *m = &c->models[i];

    m->chain = c;
    m->entry = c->config->model_repository_agents->agents[i];

    if (i == 0) {
        m->artifact = strstr(model->dir, "://") != NULL
            ? INF_ARTIFACT_REMOTE_FILESYSTEM : INF_ARTIFACT_FILESYSTEM;
        m->location = inf_arena_strdup(&c->arena, model->dir,
            strlen(model->dir));
        if (m->location == NULL) {
            return inf_err_nomem();
        }
    } else {
        m->artifact = c->models[i - 1].artifact;
        m->location = c->models[i - 1].location;
        m->config = config_at(m->artifact, m->location, model->config);
    }

    inf_err_t *err = inf_agent_table_ref(c->table, &model->agent_dirs,
        m->entry->name, &m->agent);
    if (err != NULL) {
        m->agent = NULL;
        inf_message_free(m->config != NULL ? &m->config->base : NULL);
        m->config = NULL;
        return err;
    }

    c->count = i + 1;
    return c->ops->model_init(m->agent, m);
}

/* Reads the configuration at a location; NULL: none, or unreadable. */
static Inference__ModelConfig *
config_at(inf_artifact_t artifact, const char *location,
    const inf_config_options_t *opt)
{
    const inf_config_options_t file = {
        .auto_complete = true, .config_name = opt->config_name
    };
    Inference__ModelConfig *config = NULL;
    inf_storage_t *st;
    char *root;

    inf_err_t *err = open_location(artifact, location, &st, &root);
    if (err == NULL) {
        err = inf_model_config_parse(st, root, &file, NULL, &config);
        free(root);
        inf_storage_close(st);
    }

    inf_err_free(err);
    return config;
}

/* Sets and checks the location that the model is loaded from. */
static inf_err_t *
chain_settle(inf_agents_t *c, const inf_agents_model_t *model)
{
    const inf_agent_model_t *last = &c->models[c->count - 1];

    if (strcmp(last->location, model->dir) == 0) {
        c->storage = model->storage;
        c->dir = last->location;
        return NULL;
    }

    char *root;
    inf_err_t *err = open_location(last->artifact, last->location, &c->own,
        &root);
    if (err == NULL) {
        c->storage = c->own;
        c->dir = inf_arena_strdup(&c->arena, root, strlen(root));
        free(root);
        err = c->dir == NULL ? inf_err_nomem()
            : check_directory(c->storage, c->dir);
    }
    if (err != NULL) {
        return inf_err_add(err, "repo agent '%s' left the model at '%.*s'",
            last->entry->name, (int) inf_object_address_shown(last->location),
            last->location);
    }

    inf_log(INF_LOG_NOTICE, "model=%s is loaded from %s, where its agents left"
        " it", c->name, c->dir);
    return NULL;
}

static inf_err_t *
check_directory(const inf_storage_t *st, const char *dir)
{
    inf_entry_t entry;

    inf_err_t *err = inf_storage_stat(st, dir, &entry);
    if (err == NULL && entry.kind != INF_ENTRY_DIR) {
        err = inf_err_new(INF_ERR_INVALID_ARG, "that is not a directory");
    }

    return err;
}

/* Opens a location; a local one is a path that is not parsed as an address. */
static inf_err_t *
open_location(inf_artifact_t artifact, const char *location,
    inf_storage_t **st, char **root)
{
    if (artifact == INF_ARTIFACT_REMOTE_FILESYSTEM) {
        return inf_storage_open(location, st, root);
    }

    size_t len = strlen(location);
    while (len > 1 && location[len - 1] == '/') {
        len--;
    }

    *root = strndup(location, len);
    if (*root == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = inf_storage_local_open(st);
    if (err != NULL) {
        free(*root);
    }
    return err;
}

/* Sets the stage; false: the stage was not from (any more), or no chain. */
static bool
chain_move(inf_agents_t *c, chain_stage_t from, chain_stage_t to)
{
    return c != NULL && atomic_compare_exchange_strong(&c->stage, &from, to);
}

static void
act_in_order(inf_agents_t *c, inf_agent_action_t action)
{
    for (size_t i = 0; i < c->count; i++) {
        act(c, &c->models[i], action);
    }
}

static void
act_in_reverse(inf_agents_t *c, inf_agent_action_t action)
{
    for (size_t i = c->count; i > 0; i--) {
        act(c, &c->models[i - 1], action);
    }
}

/* Runs an action, unless the agent had no LOAD. */
static void
act(inf_agents_t *c, inf_agent_model_t *m, inf_agent_action_t action)
{
    if (m->acting) {
        m->action = action_names[action];
        log_ignored(c, m, m->action, c->ops->act(m->agent, m, action));
    }
}

/* Runs the actions that are still due. */
static void
chain_end(inf_agents_t *c)
{
    inf_agents_fail(c);
    inf_agents_unload(c);
    if (atomic_load(&c->stage) == CHAIN_UNLOADING) {
        act_in_reverse(c, INF_AGENT_UNLOAD_COMPLETE);
    }
}

static void
chain_free(inf_agents_t *c)
{
    for (size_t i = c->count; i > 0; i--) {
        inf_agent_model_t *m = &c->models[i - 1];

        log_ignored(c, m, "ModelFinalize", c->ops->model_fini(m->agent, m));
        inf_private_dir_free(m->directory);
        inf_message_free(m->config != NULL ? &m->config->base : NULL);
        inf_agent_table_unref(c->table, m->agent);
    }

    inf_storage_close(c->own);
    inf_message_free(&c->config->base);
    inf_arena_fini(&c->arena);
    free(c->models);
    free(c->name);
    free(c);
}

static void
log_ignored(const inf_agents_t *c, const inf_agent_model_t *m,
    const char *what, inf_err_t *err)
{
    if (err != NULL) {
        inf_err_log(inf_err_add(err, "model=%s repo agent '%s': %s goes on"
            " after an error", c->name, m->entry->name, what));
    }
}

/* ---- an agent's functions on the model ----------------------------------- */

inf_err_t *
inf_agent_model_location(const inf_agent_model_t *m, inf_artifact_t *artifact,
    const char **location)
{
    if (m->location == NULL) {
        return inf_err_new(INF_ERR_INTERNAL, "Model repository location is not"
            " set (model '%s')", m->chain->name);
    }

    *artifact = m->artifact;
    *location = m->location;
    return NULL;
}

inf_err_t *
inf_agent_model_relocate(inf_agent_model_t *m, int artifact,
    const char *location)
{
    if (!m->loading) {
        return inf_err_new(INF_ERR_INVALID_ARG, "location can only be updated"
            " during TRITONREPOAGENT_ACTION_LOAD, current action type is %s%s"
            " (model '%s')", m->action != NULL ? "TRITONREPOAGENT_ACTION_" : "",
            m->action != NULL ? m->action : "not set", m->chain->name);
    }
    if (artifact != INF_ARTIFACT_FILESYSTEM
        && artifact != INF_ARTIFACT_REMOTE_FILESYSTEM)
    {
        return inf_err_new(INF_ERR_INVALID_ARG, "unknown artifact type %d",
            artifact);
    }
    if (location == NULL || location[0] == '\0') {
        return inf_err_new(INF_ERR_INVALID_ARG, "the new location of model"
            " '%s' is empty", m->chain->name);
    }

    char *copy = inf_arena_strdup(&m->chain->arena, location,
        strlen(location));
    if (copy == NULL) {
        return inf_err_nomem();
    }

    m->artifact = (inf_artifact_t) artifact;
    m->location = copy;
    return NULL;
}

inf_err_t *
inf_agent_model_acquire(inf_agent_model_t *m, int artifact,
    const char **location)
{
    if (artifact != INF_ARTIFACT_FILESYSTEM) {
        return inf_err_new(INF_ERR_INVALID_ARG, "Unexpected artifact type,"
            " expects 'TRITONREPOAGENT_ARTIFACT_FILESYSTEM', got %d",
            artifact);
    }

    if (m->directory == NULL) {
        inf_err_t *err = inf_private_dir_new(NULL, &m->directory);
        if (err != NULL) {
            m->directory = NULL;
            return err;
        }
    }

    *location = m->directory->path;
    return NULL;
}

inf_err_t *
inf_agent_model_release(inf_agent_model_t *m)
{
    if (m->directory == NULL) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "No mutable location to be"
            " deleted (model '%s')", m->chain->name);
    }

    inf_private_dir_free(m->directory);
    m->directory = NULL;
    return NULL;
}

uint32_t
inf_agent_model_parameter_count(const inf_agent_model_t *m)
{
    return (uint32_t) m->entry->n_parameters;
}

inf_err_t *
inf_agent_model_parameter(const inf_agent_model_t *m, uint32_t index,
    const char **name, const char **value)
{
    if (index >= m->entry->n_parameters) {
        return inf_err_new(INF_ERR_INVALID_ARG, "index out of range for model"
            " parameters: %u of %zu", index, m->entry->n_parameters);
    }

    *name = m->entry->parameters[index]->key;
    *value = m->entry->parameters[index]->value;
    return NULL;
}

const Inference__ModelConfig *
inf_agent_model_config(const inf_agent_model_t *m)
{
    return m == m->chain->models ? m->chain->config : m->config;
}

void *
inf_agent_model_state(const inf_agent_model_t *m)
{
    return m->state;
}

void
inf_agent_model_set_state(inf_agent_model_t *m, void *state)
{
    m->state = state;
}
