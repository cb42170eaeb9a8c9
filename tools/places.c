#include "places.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "die.h"

#define OWN_PREFIX "inference-server-"
#define TEMP_LINK  "temp"   /* in own: where the workers' directories are */

const char *const temps[TEMPS] = {
    "client_body", "proxy", "fastcgi", "uwsgi", "scgi"
};

static void place_name(char *path, const char *tmp, const char *suffix);
static void place_make(char *path);
static bool too_long(const places_t *places);
static void lock_own(places_t *places);
static void link_temp(const places_t *places);
static void remove_abandoned(const char *fresh);
static bool is_abandoned(places_t *places);
static bool is_own(const char *path);
static void remove_as_owner(const char *path);
static void place_remove(const char *path);
static int remove_entry(const char *path, const struct stat *st, int type,
    struct FTW *ftw);

void
places_make(places_t *places, const run_as_t *who)
{
    places_name(places);
    remove_abandoned(places->own);
    place_make(places->own);
    lock_own(places);
    place_make(places->temp);
    link_temp(places);
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
    int n = snprintf(path, PATH_MAX, "%s/" OWN_PREFIX "%sXXXXXX", tmp, suffix);

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

/* nginx's processes inherit the descriptor, and with it the lock. */
static void
lock_own(places_t *places)
{
    places->own_fd = open(places->own, O_RDONLY | O_DIRECTORY);
    if (places->own_fd < 0) {
        die("cannot open %s: %s", places->own, strerror(errno));
    }
    flock(places->own_fd, LOCK_EX);
}

static void
link_temp(const places_t *places)
{
    if (symlinkat(places->temp, places->own_fd, TEMP_LINK) != 0) {
        die("cannot make a link in %s: %s", places->own, strerror(errno));
    }
}

/* Removes the directories of killed servers, which are beside fresh. */
static void
remove_abandoned(const char *fresh)
{
    places_t             left;
    const struct dirent *entry;
    const char          *name = strrchr(fresh, '/') + 1;
    char                 tmp[PATH_MAX];

    snprintf(tmp, sizeof(tmp), "%.*s", (int) (name - fresh), fresh);

    DIR *dir = opendir(tmp);

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (strlen(entry->d_name) != strlen(name)
            || strncmp(entry->d_name, name, sizeof(OWN_PREFIX) - 1) != 0)
        {
            continue;
        }

        strcpy(stpcpy(left.own, tmp), entry->d_name);
        left.own_fd = open(left.own, O_RDONLY | O_DIRECTORY | O_NOFOLLOW
                           | O_CLOEXEC);
        if (left.own_fd >= 0) {
            if (is_abandoned(&left)) {
                places_remove(&left);
            }
            close(left.own_fd);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

/* Whether all processes of its server have ended: the link is made under the
   lock, which they hold.  Without a link a launcher is just starting. */
static bool
is_abandoned(places_t *places)
{
    struct stat st;
    ssize_t     len = readlinkat(places->own_fd, TEMP_LINK, places->temp,
                                 sizeof(places->temp) - 1);

    places->temp[len > 0 ? len : 0] = '\0';
    return len > 0 && fstat(places->own_fd, &st) == 0
        && st.st_uid == geteuid()
        && flock(places->own_fd, LOCK_EX | LOCK_NB) == 0;
}

void
places_remove(const places_t *places)
{
    char path[PATH_MAX];

    for (size_t i = 0; i < TEMPS && is_own(places->temp); i++) {
        temp_path(path, places, i);
        remove_as_owner(path);
    }
    rmdir(places->temp);
    place_remove(places->own);
}

/* Whether it is a directory of this user's and no link: nobody else can replace
   that in a directory of temporary files. */
static bool
is_own(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode)
        && st.st_uid == geteuid();
}

/* Removes a directory of the workers as their user, so that a link created
   there by a worker cannot affect files of root. */
static void
remove_as_owner(const char *path)
{
    struct stat st;
    uid_t       own = geteuid();

    if (lstat(path, &st) != 0 || seteuid(st.st_uid) != 0) {
        return;
    }
    place_remove(path);
    if (seteuid(own) == 0) {
        rmdir(path);
    }
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
