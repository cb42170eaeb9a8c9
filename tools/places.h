/*
 * places.h - the directories that the launcher creates and removes.
 *
 * Owner    The program owns the directories until places_remove.
 * Thread   one.
 * Units    none.
 * Errors   die, until nginx runs.
 * Route    run as -> [places] -> nginx.conf
 */

#ifndef TOOLS_PLACES_H
#define TOOLS_PLACES_H

#include <limits.h>
#include <sys/un.h>

#include "run_as.h"

#define OWN_SOCKET "launcher.sock"
#define SOCKET_PATH_MAX sizeof(((struct sockaddr_un *) 0)->sun_path)
#define TEMPS 5             /* temporary directories of nginx's workers */

typedef struct {
    char own[PATH_MAX];             /* nginx.conf, pid, socket; mode 0700    */
    int  own_fd;                    /* has a lock, which is free when launcher
                                       and nginx have ended                  */
    char temp[PATH_MAX];            /* contains the workers' temporary
                                       directories and is not owned by their
                                       user: nginx creates these as root, and
                                       would follow links in a directory of that
                                       user                                  */
} places_t;

/* The names of the workers' directories. */
extern const char *const temps[TEMPS];

/* Creates the directories, and removes those that killed servers have left;
   ends the process with a message on failure. */
void places_make(places_t *places, const run_as_t *who);

/* Sets the names, with XXXXXX for the random part; creates nothing. */
void places_name(places_t *places);

/* Removes the directories; ignores missing ones. */
void places_remove(const places_t *places);

/* Writes the path of a temporary directory; path has PATH_MAX bytes. */
void temp_path(char *path, const places_t *places, size_t i);

/* Writes the path of the launcher's socket, for this process and nginx; path
   has SOCKET_PATH_MAX bytes. */
void socket_path(char *path, const places_t *places);

#endif /* TOOLS_PLACES_H */
