#include "pieces.h"

#include <errno.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "die.h"

static bool pieces_in(pieces_t *p, const char *dir);
static bool find_nginx(char *out);

void
pieces_find(pieces_t *p)
{
    char    self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (n < 0) {
        die("cannot find this program: %s", strerror(errno));
    }
    self[n] = '\0';

    char *dir = dirname(self);
    char  lib[PATH_MAX + 32];

    snprintf(lib, sizeof(lib), "%s/../lib/nginx-inference", dir);
    if (!pieces_in(p, dir) && !pieces_in(p, lib)) {
        die("ngx_http_inference_module.so and inference-core are neither in "
            "%s nor in %s", dir, lib);
    }
    if (!find_nginx(p->nginx)) {
        die("no nginx: not in $INFERENCE_NGINX, on the PATH, nor in "
            "/usr/sbin");
    }
}

static bool
pieces_in(pieces_t *p, const char *dir)
{
    char path[PATH_MAX + 64];

    snprintf(path, sizeof(path), "%s/ngx_http_inference_module.so", dir);
    if (realpath(path, p->module) == NULL) {
        return false;
    }
    snprintf(path, sizeof(path), "%s/inference-core", dir);
    if (realpath(path, p->core) == NULL) {
        return false;
    }
    snprintf(path, sizeof(path), "%s/backends", dir);
    return realpath(path, p->backends) != NULL;
}

static bool
find_nginx(char *out)
{
    const char *named = getenv("INFERENCE_NGINX");

    if (named != NULL && named[0] != '\0') {
        return realpath(named, out) != NULL && access(out, X_OK) == 0;
    }

    const char *path = getenv("PATH");
    char       *dirs;

    if (asprintf(&dirs, "%s:/usr/sbin:/usr/local/sbin",
                 path != NULL ? path : "") < 0)
    {
        die("out of memory");
    }

    bool  found = false;
    char *rest = dirs;
    char *dir;

    while (!found && (dir = strsep(&rest, ":")) != NULL) {
        char name[PATH_MAX];

        if (snprintf(name, sizeof(name), "%s/nginx", dir)
                < (int) sizeof(name)
            && dir[0] == '/' && access(name, X_OK) == 0)
        {
            found = realpath(name, out) != NULL;
        }
    }
    free(dirs);
    return found;
}
