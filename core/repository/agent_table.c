#include "core/repository/agent_table.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/buf.h"
#include "core/base/lock.h"
#include "core/base/queue.h"

#define AGENTS_RANK 12

typedef enum {
    ENTRY_OPENING,          /* one thread opens it, others wait            */
    ENTRY_OPEN,
    ENTRY_CLOSING           /* the last user closes it, others wait        */
} entry_state_t;

typedef struct {
    inf_link_t     link;    /* in t->entries                               */
    entry_state_t  state;
    char          *name;
    inf_agent_t   *agent;   /* while OPEN                                  */
    size_t         refs;
} entry_t;

struct inf_agent_table_s {
    const inf_agent_ops_t *ops;         /* set in new()                      */
    inf_lock_t             lock;        /* rank 12; guards the rest          */
    inf_cond_t             changed;     /* an entry is OPEN or gone          */
    inf_link_t             entries;
};

static inf_err_t *check_name(const char *name);
static entry_t *find_locked(inf_agent_table_t *t, const char *name)
    INF_NEEDS(t->lock);
static entry_t *settled_locked(inf_agent_table_t *t, const char *name)
    INF_NEEDS(t->lock);
static entry_t *entry_new(const char *name);
static void entry_free(entry_t *e);
static inf_err_t *open_agent(const inf_agent_table_t *t,
    const inf_agent_dirs_t *dirs, const char *name, inf_agent_t **out);

inf_err_t *
inf_agent_table_new(const inf_agent_ops_t *ops, inf_agent_table_t **out)
{
    inf_agent_table_t *t = calloc(1, sizeof(*t));
    if (t == NULL) {
        return inf_err_nomem();
    }

    t->ops = ops;
    inf_lock_init(&t->lock, AGENTS_RANK);
    inf_cond_init(&t->changed);
    inf_link_init(&t->entries);
    *out = t;
    return NULL;
}

void
inf_agent_table_free(inf_agent_table_t *t)
{
    if (t == NULL) {
        return;
    }

    inf_cond_fini(&t->changed);
    inf_lock_fini(&t->lock);
    free(t);
}

inf_err_t *
inf_agent_library_find(const inf_agent_dirs_t *dirs, const char *name,
    char **out)
{
    inf_buf_t searched;

    inf_err_t *err = check_name(name);
    if (err != NULL) {
        return err;
    }
    inf_buf_init(&searched);

    for (size_t i = 0; i < dirs->count; i++) {
        struct stat sb;
        char *path;

        if (asprintf(&path, "%s/%s/libtritonrepoagent_%s.so",
            dirs->items[i], name, name) < 0)
        {
            inf_buf_fini(&searched);
            return inf_err_nomem();
        }

        if (stat(path, &sb) == 0 && S_ISREG(sb.st_mode)) {
            inf_buf_fini(&searched);
            *out = path;
            return NULL;
        }

        inf_buf_printf(&searched, "%s%s/%s", searched.len > 0 ? ", " : "",
            dirs->items[i], name);
        free(path);
    }

    err = inf_buf_status(&searched);
    if (err == NULL) {
        err = inf_err_new(INF_ERR_NOT_FOUND, "unable to find"
            " 'libtritonrepoagent_%s.so' for repo agent '%s', searched: %s",
            name, name, searched.len > 0 ? searched.data : "nowhere (no"
            " directory of agents is set)");
    }
    inf_buf_fini(&searched);
    return err;
}

const inf_agent_ops_t *
inf_agent_table_ops(const inf_agent_table_t *t)
{
    return t->ops;
}

inf_err_t *
inf_agent_table_ref(inf_agent_table_t *t, const inf_agent_dirs_t *dirs,
    const char *name, inf_agent_t **out)
{
    entry_t *mine = entry_new(name);
    if (mine == NULL) {
        return inf_err_nomem();
    }

    inf_lock(&t->lock);
    entry_t *e = settled_locked(t, name);
    if (e != NULL) {
        e->refs++;
        *out = e->agent;
        inf_unlock(&t->lock);
        entry_free(mine);
        return NULL;
    }
    inf_list_push_back(&t->entries, &mine->link);
    inf_unlock(&t->lock);

    inf_agent_t *agent = NULL;
    inf_err_t *err = open_agent(t, dirs, name, &agent);

    inf_lock(&t->lock);
    if (err == NULL) {
        mine->state = ENTRY_OPEN;
        mine->agent = agent;
        mine->refs = 1;
    } else {
        inf_link_remove(&mine->link);
    }
    inf_unlock(&t->lock);
    inf_cond_broadcast(&t->changed);

    if (err != NULL) {
        entry_free(mine);
        return err;
    }

    *out = agent;
    return NULL;
}

void
inf_agent_table_unref(inf_agent_table_t *t, inf_agent_t *agent)
{
    entry_t *last = NULL;

    inf_lock(&t->lock);
    for (inf_link_t *l = t->entries.next; l != &t->entries; l = l->next) {
        entry_t *e = inf_link_entry(l, entry_t, link);
        if (e->state == ENTRY_OPEN && e->agent == agent) {
            if (--e->refs == 0) {
                e->state = ENTRY_CLOSING;
                last = e;
            }
            break;
        }
    }
    inf_unlock(&t->lock);

    if (last == NULL) {
        return;
    }

    t->ops->close(agent);

    inf_lock(&t->lock);
    inf_link_remove(&last->link);
    inf_unlock(&t->lock);
    inf_cond_broadcast(&t->changed);
    entry_free(last);
}

/* Rejects a name that leads out of the searched directories. */
static inf_err_t *
check_name(const char *name)
{
    if (name[0] == '\0' || strchr(name, '/') != NULL
        || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
    {
        return inf_err_new(INF_ERR_INVALID_ARG, "repo agent name '%s' must be"
            " the name of an agent, not a path", name);
    }

    return NULL;
}

static entry_t *
find_locked(inf_agent_table_t *t, const char *name)
{
    for (inf_link_t *l = t->entries.next; l != &t->entries; l = l->next) {
        entry_t *e = inf_link_entry(l, entry_t, link);
        if (strcmp(e->name, name) == 0) {
            return e;
        }
    }

    return NULL;
}

/* The open entry of that name, after waiting; NULL: none. */
static entry_t *
settled_locked(inf_agent_table_t *t, const char *name)
{
    for (;;) {
        entry_t *e = find_locked(t, name);
        if (e == NULL || e->state == ENTRY_OPEN) {
            return e;
        }

        inf_cond_wait(&t->changed, &t->lock);
    }
}

static entry_t *
entry_new(const char *name)
{
    entry_t *e = calloc(1, sizeof(*e));
    if (e == NULL) {
        return NULL;
    }

    inf_link_init(&e->link);
    e->state = ENTRY_OPENING;
    e->name = strdup(name);
    if (e->name == NULL) {
        free(e);
        return NULL;
    }

    return e;
}

static void
entry_free(entry_t *e)
{
    free(e->name);
    free(e);
}

static inf_err_t *
open_agent(const inf_agent_table_t *t, const inf_agent_dirs_t *dirs,
    const char *name, inf_agent_t **out)
{
    char *library = NULL;

    if (t->ops == NULL) {
        return inf_err_new(INF_ERR_UNSUPPORTED, "repo agent '%s' can't be"
            " loaded: this server loads no agents", name);
    }

    inf_err_t *err = inf_agent_library_find(dirs, name, &library);
    if (err == NULL) {
        err = t->ops->open(name, library, out);
        free(library);
    }

    return err;
}
