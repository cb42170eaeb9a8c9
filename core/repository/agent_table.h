/*
 * agent_table.h - repository agents in memory: one object per library, opened
 *                 for the first model that names it, closed after the last.
 *
 * Owner    The lifecycle owns the table; a reference keeps an agent open.
 * Thread   any; no plug-in is called under the table's lock.  A caller that
 *          needs an agent waits while it is being opened or closed.
 * Units    none.
 * Errors   NOT_FOUND: no such library, the text lists the searched places;
 *          INVALID_ARG: the name is a path; otherwise the error of opening.
 * Route    agents -> [agent table] -> agent operations
 */

#ifndef INF_REPOSITORY_AGENT_TABLE_H
#define INF_REPOSITORY_AGENT_TABLE_H

#include <stddef.h>

#include "core/repository/agent_ops.h"

typedef struct inf_agent_table_s inf_agent_table_t;

/* The directories searched for agents: the first with
   <name>/libtritonrepoagent_<name>.so is used. */
typedef struct {
    char *const *items;
    size_t       count;
} inf_agent_dirs_t;

/* ops (NULL: agents cannot be opened) outlives the table. */
INF_CHECK inf_err_t *inf_agent_table_new(const inf_agent_ops_t *ops,
    inf_agent_table_t **out);

/* t may be NULL; there are no references left. */
void inf_agent_table_free(inf_agent_table_t *t);

/* Finds the library of an agent; *out is malloc'ed. */
INF_CHECK inf_err_t *inf_agent_library_find(const inf_agent_dirs_t *dirs,
    const char *name, char **out);

/* The operations passed to new. */
const inf_agent_ops_t *inf_agent_table_ops(const inf_agent_table_t *t);

/* ref: opens the agent, found in dirs, unless it is open.  unref: may call its
   finalizer and close its library. */
INF_CHECK inf_err_t *inf_agent_table_ref(inf_agent_table_t *t,
    const inf_agent_dirs_t *dirs, const char *name, inf_agent_t **out);
void inf_agent_table_unref(inf_agent_table_t *t, inf_agent_t *agent);

#endif /* INF_REPOSITORY_AGENT_TABLE_H */
