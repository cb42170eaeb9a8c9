/*
 * run_as.h - the user of nginx's workers and the core: --user.
 *
 * Owner    Names are copies, never freed.
 * Thread   one.
 * Units    none.
 * Errors   a text with the cause.
 * Route    launcher -> [run as] -> nginx.conf, directories
 *
 * Started by root, nginx's master stays root (ports, priorities) and all other
 * processes run as the named user or, without a name, as the repository's
 * owner.  An owner without a name cannot be written to nginx.conf: the
 * launcher then changes to that user before it starts nginx.
 */

#ifndef TOOLS_RUN_AS_H
#define TOOLS_RUN_AS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct {
    bool        changes;        /* workers have another user than this
                                   program                                    */
    uid_t       uid;
    gid_t       gid;
    const char *user;           /* for the user directive; NULL: none        */
    const char *group;
} run_as_t;

/*
 * named NULL: the owner of the first local repository.  Returns 0; or -1, and
 * why is set.  Warns if everything stays root.
 */
int run_as_find(run_as_t *who, const char *named,
    const char *const *repositories, size_t count, char *why, size_t cap);

#endif /* TOOLS_RUN_AS_H */
