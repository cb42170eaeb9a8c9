/*
 * run_as.h - the user that nginx's workers and the core run as: --user.
 *
 * Owner    Names are copies that live as long as the program.
 * Thread   one.
 * Units    none.
 * Errors   a text that says what is wrong.
 * Route    launcher -> [run as] -> nginx.conf, directories
 *
 * Started by root, nginx's master stays root (ports, priorities) and the rest
 * runs as the named user or, without a name, as the repository's owner.  An
 * owner who has no name can't stand in nginx.conf: the launcher itself becomes
 * that user then, and so does everything that it starts.
 */

#ifndef TOOLS_RUN_AS_H
#define TOOLS_RUN_AS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct {
    bool        changes;        /* workers are another user than this program */
    uid_t       uid;
    gid_t       gid;
    const char *user;           /* for nginx's user directive; NULL: none    */
    const char *group;
} run_as_t;

/*
 * named NULL: the owner of the first of the repositories that lies on this
 * machine.  0; or -1, and why is set.  Warns where everything stays root.
 */
int run_as_find(run_as_t *who, const char *named,
    const char *const *repositories, size_t count, char *why, size_t cap);

#endif /* TOOLS_RUN_AS_H */
