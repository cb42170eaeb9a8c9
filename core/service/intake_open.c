/* intake_open.c - creates an intake, attaches its server, and closes it. */

#include "core/service/intake_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "core/base/os/events.h"
#include "core/tensor/memory.h"
#include "core/wire/sockets.h"

static void wake_for_suspects(void *userp);
static inf_err_t *admission_open(inf_intake_t *in);
static void watch_repositories(inf_intake_t *in,
    const NginxInference__CoreConfig *config);
static inf_err_t *ignored_open(inf_intake_t *in);

inf_err_t *
inf_intake_new(const inf_intake_options_t *options, inf_intake_t **out)
{
    inf_intake_t *in = calloc(1, sizeof(*in));
    if (in == NULL) {
        return inf_err_nomem();
    }

    in->options = *options;
    inf_link_init(&in->sessions);
    inf_suspect_queue_init(&in->suspects, wake_for_suspects, in);
    inf_intake_role_init(&in->role);
    in->wake_fd = -1;
    in->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    inf_err_t *err = in->epoll_fd >= 0 ? NULL
        : inf_err_os(errno, "epoll_create1");

    if (err == NULL) {
        err = inf_eventfd_new(&in->wake_fd);
    }
    if (err == NULL) {
        in->wake = INF_INTAKE_WAKE;
        err = inf_events_add(in->epoll_fd, in->wake_fd, EPOLLIN, &in->wake);
    }
    if (err == NULL) {
        err = admission_open(in);
    }
    if (err == NULL && options->configure_fd >= 0) {
        in->configure = INF_INTAKE_CONFIGURE;
        err = inf_events_add(in->epoll_fd, options->configure_fd, EPOLLIN,
            &in->configure);
    }
    if (err != NULL) {
        inf_intake_free(in);
        return err;
    }

    *out = in;
    return NULL;
}

static void
wake_for_suspects(void *userp)
{
    inf_intake_wake(userp);
}

static inf_err_t *
admission_open(inf_intake_t *in)
{
    const inf_admission_options_t options = {
        .registration_fd = in->options.registration_fd,
        .configure_fd = in->options.configure_fd,
        .listen_fd = in->options.listen_fd,
        .users = in->options.users,
        .user_count = in->options.user_count,
        .response_bound = in->options.response_bound,
        .pinned_bytes = in->options.pinned_bytes,
        .generation = in->options.generation,
        .channels = &in->sessions,
        .admitted = inf_intake_add_session,
        .userp = in
    };

    inf_err_t *err = inf_admission_new(&options, &in->admission);
    if (err != NULL) {
        return err;
    }

    in->registration = INF_INTAKE_ADMISSION;
    return inf_events_add(in->epoll_fd, inf_admission_fd(in->admission),
        EPOLLIN, &in->registration);
}

inf_err_t *
inf_intake_attach(inf_intake_t *in, inf_server_t *server)
{
    in->server = server;
    inf_registry_reader_init(&in->models, &server->registry);

    inf_err_t *err = inf_control_new(server, &in->control);
    if (err == NULL && inf_memory_pins() && in->options.pinned_bytes > 0) {
        err = inf_arena_pinner_new(&in->pinner);
    }
    if (err == NULL) {
        watch_repositories(in, server->config->values);
        in->state = INF_INTAKE_ATTACHED;
        inf_intake_role_give(&in->role);
    }
    return err;
}

void
inf_intake_configure(inf_intake_t *in, inf_core_config_t *config, bool log)
{
    watch_repositories(in, config->values);
    inf_control_configure(in->control, config, log);
}

/* Watches repositories for new models, in mode none only: other modes load
   them. */
static void
watch_repositories(inf_intake_t *in, const NginxInference__CoreConfig *config)
{
    bool none = config->model_control == NGINX_INFERENCE__MODEL_CONTROL__NONE;

    if (none && in->ignored == NULL) {
        inf_err_t *err = ignored_open(in);
        if (err != NULL) {
            inf_log(INF_LOG_INFO, "repositories are not watched for new"
                " directories: %s", inf_err_msg(err));
            inf_err_free(err);
        }
    }
    if (in->ignored != NULL) {
        inf_ignored_models_watch(in->ignored, config->repositories,
            none ? config->n_repositories : 0);
    }
}

static inf_err_t *
ignored_open(inf_intake_t *in)
{
    inf_ignored_models_t *ignored;

    inf_err_t *err = inf_ignored_models_new(&ignored);
    if (err != NULL) {
        return err;
    }

    in->ignoring = INF_INTAKE_IGNORED;
    err = inf_events_add(in->epoll_fd, inf_ignored_models_fd(ignored),
        EPOLLIN, &in->ignoring);
    if (err != NULL) {
        inf_ignored_models_free(ignored);
        return err;
    }

    in->ignored = ignored;
    return NULL;
}

void
inf_intake_close(inf_intake_t *in)
{
    inf_intake_stop(in);
    if (in->state == INF_INTAKE_ATTACHED) {
        inf_intake_role_take_last(&in->role);
    }

    while (!inf_list_empty(&in->sessions)) {
        inf_intake_end_session(in, inf_link_entry(in->sessions.next,
            inf_intake_session_t, peer.link), "the core ends");
    }
    inf_admission_free(in->admission);
    in->admission = NULL;
    inf_arena_pinner_free(in->pinner);
    in->pinner = NULL;
    inf_ignored_models_free(in->ignored);
    in->ignored = NULL;

    in->state = INF_INTAKE_CLOSED;
    inf_control_free(in->control);
    in->control = NULL;
    if (in->server != NULL) {
        inf_registry_reader_fini(&in->models);
        in->server = NULL;
    }
}

void
inf_intake_free(inf_intake_t *in)
{
    if (in == NULL) {
        return;
    }

    if (in->state != INF_INTAKE_CLOSED) {
        inf_intake_close(in);
    }
    if (in->wake_fd >= 0) {
        close(in->wake_fd);
    }
    if (in->epoll_fd >= 0) {
        close(in->epoll_fd);
    }
    free(in);
}

void
inf_intake_wake(inf_intake_t *in)
{
    inf_eventfd_notify(in->wake_fd);
}

void
inf_intake_leave(inf_intake_t *in)
{
    inf_intake_leave_t stays = INF_INTAKE_STAYS;
    atomic_compare_exchange_strong(&in->leave, &stays, INF_INTAKE_TO_LEAVE);
    inf_eventfd_notify(in->wake_fd);
}

void
inf_intake_stop(inf_intake_t *in)
{
    inf_intake_role_stop(&in->role);
    inf_eventfd_notify(in->wake_fd);
}
