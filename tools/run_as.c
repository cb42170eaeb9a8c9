#include "run_as.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int find_named(const char *named, uid_t *uid, char *why, size_t cap);
static const char *first_local(const char *const *repositories, size_t count,
    struct stat *st);
static int become(uid_t uid, gid_t gid, char *why, size_t cap);

int
run_as_find(run_as_t *who, const char *named, const char *const *repositories,
    size_t count, char *why, size_t cap)
{
    struct stat st = { 0 };
    uid_t       uid = 0;

    *who = (run_as_t) { .uid = geteuid(), .gid = getegid() };

    if (named != NULL && find_named(named, &uid, why, cap) != 0) {
        return -1;
    }
    if (who->uid != 0) {
        if (named == NULL || uid == who->uid) {
            return 0;
        }
        snprintf(why, cap, "--user=%s: only root runs it as somebody else",
                 named);
        return -1;
    }

    if (named == NULL) {
        const char *place = first_local(repositories, count, &st);

        uid = st.st_uid;
        if (uid == 0) {
            fprintf(stderr, "inference-server: workers, core and backends run "
                    "as root, because %s%s; --user=NAME names another\n",
                    place != NULL ? place : "no repository is",
                    place != NULL ? " belongs to root" : " on this machine");
        }
    }

    const struct passwd *pw = getpwuid(uid);
    const struct group  *gr = pw != NULL ? getgrgid(pw->pw_gid) : NULL;

    if (gr == NULL) {
        who->uid = uid;
        who->gid = pw != NULL ? pw->pw_gid : named != NULL ? (gid_t) uid
                   : st.st_gid;
        return become(who->uid, who->gid, why, cap);
    }

    who->changes = uid != 0;
    who->uid = uid;
    who->gid = pw->pw_gid;
    who->user = strdup(pw->pw_name);
    who->group = strdup(gr->gr_name);
    if (who->user == NULL || who->group == NULL) {
        snprintf(why, cap, "out of memory");
        return -1;
    }
    return 0;
}

/* Finds a user by name, or by number, which need not have a name. */
static int
find_named(const char *named, uid_t *uid, char *why, size_t cap)
{
    const struct passwd *pw = getpwnam(named);

    if (pw != NULL) {
        *uid = pw->pw_uid;
        return 0;
    }
    if (strlen(named) <= 9 && strspn(named, "0123456789") == strlen(named)) {
        *uid = (uid_t) strtoul(named, NULL, 10);
        return 0;
    }

    snprintf(why, cap, "--user=%s: there is no such user", named);
    return -1;
}

static const char *
first_local(const char *const *repositories, size_t count, struct stat *st)
{
    for (size_t i = 0; i < count; i++) {
        if (strstr(repositories[i], "://") == NULL
            && stat(repositories[i], st) == 0)
        {
            return repositories[i];
        }
    }
    return NULL;
}

/* Changes the user permanently. */
static int
become(uid_t uid, gid_t gid, char *why, size_t cap)
{
    if (uid == 0) {
        return 0;
    }
    if (setgroups(0, NULL) != 0 || setgid(gid) != 0 || setuid(uid) != 0) {
        snprintf(why, cap, "cannot become user %lu: %s", (unsigned long) uid,
                 strerror(errno));
        return -1;
    }

    fprintf(stderr, "inference-server: everything runs as user %lu, who has "
            "no name\n", (unsigned long) uid);
    return 0;
}
