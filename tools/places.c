#include "places.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "die.h"

const char *const temps[TEMPS] = {
    "client_body", "proxy", "fastcgi", "uwsgi", "scgi"
};

static void place_name(char *path, const char *tmp, const char *suffix);
static void place_make(char *path);
static bool too_long(const places_t *places);
static void open_own(places_t *places);
static void place_remove(const char *path);
static int remove_entry(const char *path, const struct stat *st, int type,
    struct FTW *ftw);

void
places_make(places_t *places, const run_as_t *who)
{
    places_name(places);
    place_make(places->own);
    if (too_long(places)) {
        open_own(places);
    }
    place_make(places->temp);
    if (who->changes && chmod(places->temp, 0711) != 0) {
        die("cannot open %s to user %s: %s", places->temp, who->user,
            strerror(errno));
    }
}

void
places_name(places_t *places)
{
    const char *tmp = getenv("TMPDIR");
    char        full[PATH_MAX];

    if (tmp == NULL || tmp[0] == '\0') {
        tmp = "/tmp";
    }
    if (realpath(tmp, full) != NULL) {      /* nginx has another directory   */
        tmp = full;
    }

    place_name(places->own, tmp, "");
    place_name(places->temp, tmp, "temp-");
}

static void
place_name(char *path, const char *tmp, const char *suffix)
{
    int n = snprintf(path, PATH_MAX, "%s/inference-server-%sXXXXXX", tmp,
                     suffix);

    if (n >= PATH_MAX) {
        die("the path of TMPDIR is too long");
    }
}

static void
place_make(char *path)
{
    if (mkdtemp(path) == NULL) {
        die("cannot make a directory %s: %s (TMPDIR says where)", path,
            strerror(errno));
    }
}

/* Removes the workers' directories as their user, so that a link created there
   by a worker cannot affect files of root. */
void
places_remove(const places_t *places, const run_as_t *who)
{
    char path[PATH_MAX];

    if (who->changes && seteuid(who->uid) == 0) {
        for (size_t i = 0; i < TEMPS; i++) {
            temp_path(path, places, i);
            place_remove(path);
        }
        if (seteuid(0) != 0) {
            return;
        }
        for (size_t i = 0; i < TEMPS; i++) {
            temp_path(path, places, i);
            rmdir(path);
        }
        rmdir(places->temp);

    } else if (!who->changes) {
        place_remove(places->temp);
    }

    place_remove(places->own);
}

static void
place_remove(const char *path)
{
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static int
remove_entry(const char *path, const struct stat *st, int type,
    struct FTW *ftw)
{
    (void) st;
    (void) type;
    (void) ftw;

    return remove(path);
}

void
temp_path(char *path, const places_t *places, size_t i)
{
    int n = snprintf(path, PATH_MAX, "%s/%s", places->temp, temps[i]);

    if (n >= PATH_MAX) {
        die("the path of %s is too long", places->temp);
    }
}

void
socket_path(char *path, const places_t *places)
{
    if (too_long(places)) {
        snprintf(path, SOCKET_PATH_MAX, "/proc/self/fd/%d/" OWN_SOCKET,
                 places->own_fd);
        return;
    }
    snprintf(path, SOCKET_PATH_MAX, "%s/" OWN_SOCKET, places->own);
}

static bool
too_long(const places_t *places)
{
    return strlen(places->own) + sizeof("/" OWN_SOCKET) > SOCKET_PATH_MAX;
}

/* nginx inherits the descriptor. */
static void
open_own(places_t *places)
{
    places->own_fd = open(places->own, O_PATH | O_DIRECTORY);
    if (places->own_fd < 0) {
        die("cannot open %s: %s", places->own, strerror(errno));
    }
}
