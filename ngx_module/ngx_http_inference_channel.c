/*
 * One channel in the event loop: it registers with the core, drains completions
 * when the core notifies it, and detects the core's exit.
 */

#include "ngx_module/ngx_http_inference_client.h"
#include "ngx_module/ngx_http_inference_counters.h"
#include "ngx_module/ngx_http_inference_leaving.h"


#define NGX_HTTP_INFERENCE_BUDGET  64           /* completions in one turn  */


static ngx_int_t ngx_http_inference_channel_connect(
    ngx_http_inference_channel_t *ch, ngx_str_t *path);
static ngx_int_t ngx_http_inference_channel_error(
    ngx_http_inference_channel_t *ch, inf_err_t *err, const char *what);
static ngx_connection_t *ngx_http_inference_channel_watch(
    ngx_http_inference_channel_t *ch, int fd, ngx_event_handler_pt handler,
    ngx_uint_t flags);
static void ngx_http_inference_channel_unwatch(ngx_connection_t **c);
static void ngx_http_inference_channel_control(ngx_event_t *ev);
static void ngx_http_inference_channel_welcome(
    ngx_http_inference_channel_t *ch);
static void ngx_http_inference_channel_notified(ngx_event_t *ev);
static void ngx_http_inference_channel_drain(ngx_event_t *ev);
static void ngx_http_inference_channel_core_exit(ngx_event_t *ev);


ngx_http_inference_channel_t *
ngx_http_inference_channel_new(ngx_http_inference_main_conf_t *imcf,
    uint64_t epoch, const ngx_http_inference_channel_handlers_t *handlers,
    ngx_log_t *log)
{
    inf_err_t                     *err;
    inf_client_conf_t              conf;
    ngx_http_inference_channel_t  *ch;

    ch = ngx_calloc(sizeof(ngx_http_inference_channel_t), log);
    if (ch == NULL) {
        return NULL;
    }

    ch->socket = (ngx_socket_t) -1;
    ch->epoch = epoch;
    ch->handlers = handlers;
    ch->log = log;

    ch->drain.handler = ngx_http_inference_channel_drain;
    ch->drain.data = ch;
    ch->drain.log = log;

    ch->in_flight = ngx_calloc(INF_MAX_SLOTS
                               * sizeof(ngx_http_inference_in_flight_t),
                               log);
    if (ch->in_flight == NULL) {
        goto failed;
    }

    ngx_memzero(&conf, sizeof(inf_client_conf_t));
    conf.arena_bound = (uint64_t) imcf->arena;
    conf.defer = 1;

    err = inf_client_new(&conf, &ch->client);

    if (err != NULL) {
        (void) ngx_http_inference_channel_error(ch, err, "no channel");
        goto failed;
    }

    if (ngx_exiting) {
        inf_client_leave(ch->client);
    }

    if (imcf->external.len > 0
        && ngx_http_inference_channel_connect(ch, &imcf->external) != NGX_OK)
    {
        goto failed;
    }

    ch->control = ngx_http_inference_channel_watch(ch,
                                       inf_client_control_fd(ch->client),
                                       ngx_http_inference_channel_control,
                                       NGX_LEVEL_EVENT);
    if (ch->control == NULL) {
        goto failed;
    }

    /* nginx calls its handler when the worker begins to exit */
    ch->control->idle = 1;

    return ch;

failed:

    ngx_http_inference_channel_free(ch);

    return NULL;
}


void
ngx_http_inference_channel_free(ngx_http_inference_channel_t *ch)
{
    inf_client_free(ch->client);

    if (ch->socket != (ngx_socket_t) -1) {
        (void) ngx_close_socket(ch->socket);
    }

    if (ch->in_flight != NULL) {
        ngx_free(ch->in_flight);
    }

    ngx_free(ch);
}


/* Connects to the socket of an external core. */

static ngx_int_t
ngx_http_inference_channel_connect(ngx_http_inference_channel_t *ch,
    ngx_str_t *path)
{
    u_char             *p, *last, why[NGX_MAX_ERROR_STR];
    ngx_err_t           err;
    struct sockaddr_un  sun;

    ngx_memzero(&sun, sizeof(struct sockaddr_un));
    sun.sun_family = AF_UNIX;
    ngx_memcpy(sun.sun_path, path->data, path->len);

    ch->socket = socket(AF_UNIX, SOCK_SEQPACKET|SOCK_NONBLOCK|SOCK_CLOEXEC,
                        0);

    if (ch->socket == (ngx_socket_t) -1
        || connect(ch->socket, (struct sockaddr *) &sun,
                   sizeof(struct sockaddr_un)) == -1)
    {
        err = ngx_socket_errno;

        last = why + sizeof(why) - 1;
        p = ngx_slprintf(why, last, "cannot connect to %V: ", path);
        p = ngx_strerror(err, p, last - p);
        *p = '\0';

        ch->handlers->rejected((char *) why);

        ngx_log_error(ch->handlers->level(), ch->log, err,
                      "inference: cannot connect to the core at \"%V\"", path);
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_channel_error(ngx_http_inference_channel_t *ch,
    inf_err_t *err, const char *what)
{
    ngx_log_error(ch->handlers->level(), ch->log, 0,
                  "inference: %s: %s", what, inf_err_msg(err));
    inf_err_free(err);

    return NGX_ERROR;
}


/* Creates a connection for a descriptor, which stays the client's. */

static ngx_connection_t *
ngx_http_inference_channel_watch(ngx_http_inference_channel_t *ch, int fd,
    ngx_event_handler_pt handler, ngx_uint_t flags)
{
    ngx_connection_t  *c;

    c = ngx_get_connection(fd, ch->log);
    if (c == NULL) {
        return NULL;
    }

    c->data = ch;
    c->read->handler = handler;
    c->read->log = c->log;
    c->write->log = c->log;

    /* not counted as an open connection when the worker exits */

    c->read->channel = 1;
    c->write->channel = 1;

    if (ngx_add_event(c->read, NGX_READ_EVENT, flags) != NGX_OK) {
        ngx_free_connection(c);
        c->fd = (ngx_socket_t) -1;
        return NULL;
    }

    return c;
}


/* Removes the descriptor's events explicitly: other processes hold the same
   file open, so close() would not end them. */

static void
ngx_http_inference_channel_unwatch(ngx_connection_t **c)
{
    if (*c == NULL) {
        return;
    }

    (void) ngx_del_event((*c)->read, NGX_READ_EVENT, 0);

    if ((*c)->read->posted) {
        ngx_delete_posted_event((*c)->read);
    }

    ngx_free_connection(*c);
    (*c)->fd = (ngx_socket_t) -1;
    *c = NULL;
}


void
ngx_http_inference_channel_hello(ngx_http_inference_channel_t *ch)
{
    int         fd;
    bool        again;
    inf_err_t  *err;

    fd = ch->socket != (ngx_socket_t) -1 ? ch->socket
                                         : ngx_http_inference_registration();

    err = inf_client_hello(ch->client, fd, &again);

    if (err != NULL) {
        (void) ngx_http_inference_channel_error(ch, err, "cannot register");
        ch->handlers->useless(ch, NULL);
        return;
    }

    if (again) {
        ch->handlers->again(ch);
        return;
    }

    /* without a core, the message stays in the socket for the next one */

    ch->state = ngx_http_inference_channel_waiting;
}


static void
ngx_http_inference_channel_control(ngx_event_t *ev)
{
    u_char                         byte;
    ssize_t                        n;
    ngx_connection_t              *c;
    ngx_http_inference_channel_t  *ch;

    c = ev->data;
    ch = c->data;

    if (c->close) {
        c->close = 0;
        inf_client_leave(ch->client);
        ngx_http_inference_leaving();
        return;
    }

    if (ch->state == ngx_http_inference_channel_waiting) {
        ngx_http_inference_channel_welcome(ch);
        return;
    }

    n = recv(c->fd, &byte, 1, MSG_DONTWAIT);

    if (n == -1 && (ngx_socket_errno == NGX_EAGAIN
                    || ngx_socket_errno == NGX_EINTR))
    {
        return;
    }

    if (ch->state == ngx_http_inference_channel_greeting) {
        ch->handlers->useless(ch, "the control socket was closed");
        return;
    }

    ch->handlers->dead(ch, n == 0 ? "it has closed its channel"
                                  : "it broke its channel");
}


static void
ngx_http_inference_channel_welcome(ngx_http_inference_channel_t *ch)
{
    bool        again;
    inf_err_t  *err;

    err = inf_client_welcome(ch->client, &again);

    if (err != NULL) {
        ch->handlers->rejected(inf_err_msg(err));
        (void) ngx_http_inference_channel_error(ch, err,
                                                "no welcome by the core");
        ch->handlers->useless(ch, NULL);
        return;
    }

    if (again) {
        return;
    }

    ch->eventfd = ngx_http_inference_channel_watch(ch,
                                    inf_client_event_fd(ch->client),
                                    ngx_http_inference_channel_notified,
                                    NGX_CLEAR_EVENT);
    ch->core = ngx_http_inference_channel_watch(ch,
                                    inf_client_core_fd(ch->client),
                                    ngx_http_inference_channel_core_exit,
                                    NGX_LEVEL_EVENT);

    if (ch->eventfd == NULL || ch->core == NULL) {
        ch->handlers->useless(ch, "no connections left for the channel");
        return;
    }

    ch->state = ngx_http_inference_channel_up;

    ngx_log_error(NGX_LOG_INFO, ch->log, 0,
                  "inference: connected to core %uD",
                  inf_client_core_pid(ch->client));

    ngx_post_event(&ch->drain, &ngx_posted_events);

    ch->handlers->up(ch);
}


/* Posts the drain for the end of the turn, after the sockets were read. */

static void
ngx_http_inference_channel_notified(ngx_event_t *ev)
{
    ngx_connection_t              *c;
    ngx_http_inference_channel_t  *ch;

    c = ev->data;
    ch = c->data;

    ngx_post_event(&ch->drain, &ngx_posted_events);
}


static void
ngx_http_inference_channel_drain(ngx_event_t *ev)
{
    inf_client_result_t            rc;
    ngx_http_inference_channel_t  *ch;

    ch = ev->data;

    if (ch->state == ngx_http_inference_channel_up) {
        inf_client_ring(ch->client);

        /* a status that is answered in this drain includes itself */
        ngx_http_inference_set_slots(inf_client_slots_taken(ch->client));

        rc = inf_client_drain(ch->client, NGX_HTTP_INFERENCE_BUDGET,
                              ch->handlers->completion);

        if (rc == INF_CLIENT_BROKEN) {
            ngx_http_inference_channel_break(ch);
        }

        ngx_http_inference_set_slots(inf_client_slots_taken(ch->client));

        /* a completion handler may have marked the channel broken */

        if (ch->state == ngx_http_inference_channel_up) {

            if (rc == INF_CLIENT_AGAIN || !inf_client_arm(ch->client)) {
                ngx_http_inference_next_turn(&ch->drain);
            }

            return;
        }
    }

    ch->handlers->dead(ch, "it wrote nonsense");
}


static void
ngx_http_inference_channel_core_exit(ngx_event_t *ev)
{
    ngx_connection_t              *c;
    ngx_http_inference_channel_t  *ch;

    c = ev->data;
    ch = c->data;

    ch->handlers->dead(ch, "it has ended");
}


void
ngx_http_inference_channel_drain_last(ngx_http_inference_channel_t *ch)
{
    ngx_uint_t  n;

    /* at most one full ring, because the core may keep writing */

    for (n = 0;
         n < INF_MAX_SLOTS && ch->state == ngx_http_inference_channel_up;
         n++)
    {
        if (inf_client_drain(ch->client, NGX_HTTP_INFERENCE_BUDGET,
                             ch->handlers->completion)
            != INF_CLIENT_AGAIN)
        {
            return;
        }
    }
}


void
ngx_http_inference_channel_break(ngx_http_inference_channel_t *ch)
{
    ch->state = ngx_http_inference_channel_broken;
    ngx_post_event(&ch->drain, &ngx_posted_events);
}


void
ngx_http_inference_channel_unlink(ngx_http_inference_channel_t *ch)
{
    ngx_http_inference_channel_unwatch(&ch->control);
    ngx_http_inference_channel_unwatch(&ch->eventfd);
    ngx_http_inference_channel_unwatch(&ch->core);

    if (ch->drain.posted) {
        ngx_delete_posted_event(&ch->drain);
    }
}


ngx_uint_t
ngx_http_inference_channel_idle(ngx_http_inference_channel_t *ch)
{
    return ch->held == 0 && inf_client_arena_stats(ch->client)->regions == 0;
}
