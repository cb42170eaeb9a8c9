/*
 * agent_table.h - repository agents in memory: one object per library, opened
 *                 for the first model that names it, closed after the last.
 *
 * Owner    The lifecycle owns the table; a reference keeps an agent open.
 * Thread   any; no plug-in is called under the table's lock.  A caller that
 *          needs an agent that is being opened or closed waits for that.
 * Units    none.
 * Errors   NOT_FOUND: no such library, the text says where it was looked for;
 *          INVALID_ARG: a name that is a path; otherwise what opening said.
 * Route    agents -> [agent table] -> agent operations
 */

#ifndef INF_REPOSITORY_AGENT_TABLE_H
#define INF_REPOSITORY_AGENT_TABLE_H

#include <stddef.h>

#include "core/repository/agent_ops.h"

typedef struct inf_agent_table_s inf_agent_table_t;

/* Where agents are searched for: the first directory that has
   <name>/libtritonrepoagent_<name>.so wins. */
typedef struct {
    char *const *items;
    size_t       count;
} inf_agent_dirs_t;

/* ops (NULL: agents can't be opened) outlives the table. */
INF_CHECK inf_err_t *inf_agent_table_new(const inf_agent_ops_t *ops,
    inf_agent_table_t **out);

/* t may be NULL; nobody has a reference any more. */
void inf_agent_table_free(inf_agent_table_t *t);

/* Which file an agent of that name is; malloc'ed. */
INF_CHECK inf_err_t *inf_agent_library_find(const inf_agent_dirs_t *dirs,
    const char *name, char **out);

/* The operations given to new: every agent of the table is called by them. */
const inf_agent_ops_t *inf_agent_table_ops(const inf_agent_table_t *t);

/* dirs: used for an agent that isn't open.  unref may call the agent's
   finalizer and close its library. */
INF_CHECK inf_err_t *inf_agent_table_ref(inf_agent_table_t *t,
    const inf_agent_dirs_t *dirs, const char *name, inf_agent_t **out);
void inf_agent_table_unref(inf_agent_table_t *t, inf_agent_t *agent);

#endif /* INF_REPOSITORY_AGENT_TABLE_H */
