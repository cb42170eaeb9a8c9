/*
 * places.h - the directories that the launcher makes and removes.
 *
 * Owner    The directories are the program's until places_remove.
 * Thread   one.
 * Units    none.
 * Errors   die, until nginx runs.
 * Route    run as -> [places] -> nginx.conf
 */

#ifndef TOOLS_PLACES_H
#define TOOLS_PLACES_H

#include <limits.h>
#include <stddef.h>

#include "run_as.h"

#define OWN_SOCKET "launcher.sock"
#define TEMPS 5             /* temporary directories of nginx's workers */

typedef struct {
    char own[PATH_MAX];             /* nginx.conf, pid, socket; mode 0700    */
    char temp[PATH_MAX];            /* holds the workers' temporary
                                       directories, and is never theirs: nginx
                                       makes these as root, in a directory of
                                       theirs it would follow their links    */
} places_t;

/* The uses of the workers' directories. */
extern const char *const temps[TEMPS];

/* Ends the process with a message on failure. */
void places_make(places_t *places, const run_as_t *who);

/* Their names with XXXXXX for what a start chooses; nothing is made. */
void places_name(places_t *places);

/* Ignores what has gone. */
void places_remove(const places_t *places, const run_as_t *who);

/* Of that temporary directory; path holds PATH_MAX. */
void temp_path(char *path, const places_t *places, size_t i);

/* Of the launcher's own socket: 0; -1: no socket can have so long a path. */
int socket_path(char *path, size_t cap, const places_t *places);

#endif /* TOOLS_PLACES_H */
