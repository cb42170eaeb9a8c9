#include "services.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "die.h"

static void check_ports(const options_t *o);
static void check_range(const options_t *o);
static void check_vertex(const options_t *o);
static void check_sagemaker(void);
static void check_path(const char *what, const char *text);
static size_t count_models(const char *repository, char **first);
static bool is_unix(const service_t *s);
static void try_one(const service_t *s);
static void try_address(const service_t *s, const struct addrinfo *a);
static void try_path(const service_t *s, const char *path);

void
services_check(const options_t *o)
{
    for (size_t i = 0; i < SERVICES; i++) {
        const service_t *s = &o->service[i];

        if (s->on && !is_unix(s)
            && strpbrk(s->address, "\"\\ \t;{}'/") != NULL)
        {
            die("the address of the %s service is \"%s\", which is none",
                s->short_name, s->address);
        }
    }

    check_ports(o);
    check_range(o);
    if (o->service[SERVICE_VERTEX].on) {
        check_vertex(o);
    }
    if (o->service[SERVICE_SAGEMAKER].on) {
        check_sagemaker();
    }
}

static void
check_ports(const options_t *o)
{
    for (size_t i = 0; i < SERVICES; i++) {
        for (size_t k = 0; k < i; k++) {
            const service_t *a = &o->service[i], *b = &o->service[k];
            char             at[SERVICE_SOCKET_MAX], bt[SERVICE_SOCKET_MAX];

            services_socket(a, at);
            services_socket(b, bt);
            if (a->on && b->on && strcmp(at, bt) == 0) {
                die("--%s and --%s are both %s", a->option, b->option, at);
            }
        }
    }
}

/* Checks the ports by the range that SageMaker permits, at its address. */
static void
check_range(const options_t *o)
{
    const service_t *own = &o->service[SERVICE_SAGEMAKER];
    const char      *text = o->sagemaker_range;
    char            *dash;

    if (text == NULL || !own->on) {
        return;
    }

    long first = strtol(text, &dash, 10);
    long last = strtol(dash + 1, NULL, 10);

    for (size_t i = 0; i < SERVICES; i++) {
        const service_t *s = &o->service[i];

        if (s->on && s != own && strcmp(s->address, own->address) == 0
            && (s->port < first || s->port > last))
        {
            die("--%s=%ld is not in --sagemaker-safe-port-range=%s",
                s->option, s->port, text);
        }
    }
}

static void
check_vertex(const options_t *o)
{
    static const char *const routes[] = {
        "AIP_PREDICT_ROUTE", "AIP_HEALTH_ROUTE"
    };

    for (size_t i = 0; i < 2; i++) {
        const char *route = getenv(routes[i]);

        if (route == NULL || route[0] != '/') {
            die("--allow-vertex-ai needs a path in the environment variable "
                "%s", routes[i]);
        }
        check_path(routes[i], route);
    }
    if (o->vertex_model == NULL) {
        die("--allow-vertex-ai needs --vertex-ai-default-model where there is "
            "not a single model, in a local repository or as --load-model");
    }
    check_path("the model of --allow-vertex-ai", o->vertex_model);
}

static void
check_sagemaker(void)
{
    const char *model = getenv("SAGEMAKER_TRITON_DEFAULT_MODEL_NAME");
    const char *kind = getenv("SAGEMAKER_TRITON_INFERENCE_TYPE");

    const char *ping = getenv("SAGEMAKER_TRITON_PING_MODE");

    if (model != NULL) {
        check_path("SAGEMAKER_TRITON_DEFAULT_MODEL_NAME", model);
    }
    if (ping != NULL && ping[0] != '\0' && strcmp(ping, "ready") != 0
        && strcmp(ping, "live") != 0)
    {
        die("SAGEMAKER_TRITON_PING_MODE is ready or live, not \"%s\"", ping);
    }
    if (kind != NULL && kind[0] != '\0' && strcmp(kind, "infer") != 0
        && strcmp(kind, "generate") != 0
        && strcmp(kind, "generate_stream") != 0)
    {
        die("SAGEMAKER_TRITON_INFERENCE_TYPE is infer, generate or "
            "generate_stream, not \"%s\"", kind);
    }
}

/* Checks a path, which is written to nginx.conf unquoted. */
static void
check_path(const char *what, const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        if ((unsigned char) *c <= ' ' || strchr("\"\\;{}'$?#%\x7f", *c)) {
            die("%s is \"%s\", which has a character that is none of a path",
                what, text);
        }
    }
}

const char *
services_only_model(const options_t *o)
{
    const list_t *named = &o->load_models;
    bool          all = named->n > 0 && strcmp(named->value[0], "*") == 0;
    char         *found = NULL;
    size_t        count = 0;

    if (!all && strcasecmp(o->control_mode, "explicit") == 0) {
        for (size_t i = 0; i < named->n; i++) {
            count += !options_given_before(named, i);
        }
        return count == 1 ? named->value[0] : NULL;
    }

    for (size_t i = 0; i < o->repositories.n; i++) {
        if (!options_given_before(&o->repositories, i)) {
            count += count_models(o->repositories.value[i], &found);
        }
    }
    return count == 1 ? found : NULL;
}

/* Counts directories, and copies the name of the first that is found.  A
   repository elsewhere counts as several. */
static size_t
count_models(const char *repository, char **first)
{
    DIR                 *d = opendir(repository);
    const struct dirent *entry;
    size_t               count = 0;

    if (d == NULL) {
        return 2;
    }
    while ((entry = readdir(d)) != NULL) {
        const char *name = entry->d_name;
        struct stat st;

        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0
            || fstatat(dirfd(d), name, &st, 0) != 0 || !S_ISDIR(st.st_mode))
        {
            continue;
        }
        if (*first == NULL && (*first = strdup(name)) == NULL) {
            die("out of memory");
        }
        count++;
    }
    closedir(d);
    return count;
}

void
services_try(const options_t *o)
{
    for (size_t i = 0; i < SERVICES; i++) {
        service_t other;

        if (o->service[i].on) {
            try_one(&o->service[i]);
        }
        if (o->service[i].on && services_other_family(&o->service[i], &other))
        {
            try_one(&other);
        }
    }
}

bool
services_other_family(const service_t *s, service_t *other)
{
    const struct sockaddr_in6 any = { .sin6_family = AF_INET6 };

    if (!s->both_families || strcmp(s->address, "0.0.0.0") != 0) {
        return false;
    }

    int  fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool has = fd >= 0
        && bind(fd, (const struct sockaddr *) &any, sizeof(any)) == 0;

    if (fd >= 0) {
        close(fd);
    }
    *other = *s;
    other->address = "[::]";
    return has;
}

const char *
services_socket(const service_t *s, char socket[SERVICE_SOCKET_MAX])
{
    bool v6 = strchr(s->address, ':') != NULL && s->address[0] != '[';

    if (!is_unix(s)) {
        snprintf(socket, SERVICE_SOCKET_MAX, "%s%s%s:%ld", v6 ? "[" : "",
                 s->address, v6 ? "]" : "", s->port);
        return NULL;
    }

    snprintf(socket, SERVICE_SOCKET_MAX, "%s", s->address);
    if (s->port_in_path) {
        size_t len = strlen(socket);

        snprintf(socket + len, SERVICE_SOCKET_MAX - len, ":%ld", s->port);
    }
    return socket + strlen("unix:");
}

static bool
is_unix(const service_t *s)
{
    return strncmp(s->address, "unix:", 5) == 0;
}

static void
try_one(const service_t *s)
{
    struct addrinfo  hints = { .ai_socktype = SOCK_STREAM,
                               .ai_flags = AI_PASSIVE };
    struct addrinfo *found;
    char             address[256], port[8], socket[SERVICE_SOCKET_MAX];
    const char      *path = services_socket(s, socket);

    if (path != NULL) {
        try_path(s, path);
        return;
    }

    size_t           len = strlen(s->address);
    bool             bracketed = s->address[0] == '[' && len > 2;

    snprintf(address, sizeof(address), "%.*s",
             (int) (bracketed ? len - 2 : len), s->address + bracketed);
    snprintf(port, sizeof(port), "%ld", s->port);

    int why = getaddrinfo(address, port, &hints, &found);

    if (why != 0) {
        die("the address of the %s service is \"%s\": %s", s->short_name,
            s->address, gai_strerror(why));
    }

    try_address(s, found);
    freeaddrinfo(found);
}

/* A socket that no process listens on is of one that has ended. */
static void
try_path(const service_t *s, const char *path)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    struct addrinfo    a = { .ai_family = AF_UNIX,
                             .ai_addr = (struct sockaddr *) &at,
                             .ai_addrlen = sizeof(at) };

    if (strlen(path) >= sizeof(at.sun_path)) {
        die("the path of the %s service is longer than %zu bytes: %s",
            s->short_name, sizeof(at.sun_path) - 1, path);
    }
    strcpy(at.sun_path, path);

    int         fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct stat st;

    if (fd >= 0 && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode)
        && connect(fd, a.ai_addr, a.ai_addrlen) != 0 && errno == ECONNREFUSED)
    {
        unlink(path);
    }
    if (fd >= 0) {
        close(fd);
    }
    try_address(s, &a);
    unlink(path);
}

static void
try_address(const service_t *s, const struct addrinfo *a)
{
    const int on = 1;
    int       fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        if (s->reuse) {
            setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
        }
    }
    if (fd < 0 || bind(fd, a->ai_addr, a->ai_addrlen) != 0) {
        die("failed to start %s service: Unavailable - Socket '%s:%ld' %s"
            " (--%s)", s->short_name, s->address, s->port,
            errno == EADDRINUSE ? "already in use" : strerror(errno),
            s->option);
    }
    close(fd);
}
