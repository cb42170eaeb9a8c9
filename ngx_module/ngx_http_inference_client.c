/*
 * This worker's channel to the core, in the event loop: made when the worker
 * starts, drained when its bell rings, and made anew when the core has died.
 *
 * A channel of a dead core stays mapped while something of it is in use: a
 * response on its way to a socket, or a body that may be handed on.
 */

#include "ngx_module/ngx_http_inference.h"

#include "core/base/clock.h"


#define NGX_HTTP_INFERENCE_BUDGET      64       /* completions in one turn  */
#define NGX_HTTP_INFERENCE_PATIENCE    10000    /* without a channel        */
#define NGX_HTTP_INFERENCE_GRACE       1000     /* of a worker that is new  */
#define NGX_HTTP_INFERENCE_MIN_PAUSE   10
#define NGX_HTTP_INFERENCE_MAX_PAUSE   1000
#define NGX_HTTP_INFERENCE_SWEEP       1000
#define NGX_HTTP_INFERENCE_FLUSH       10


typedef enum {
    ngx_http_inference_channel_greeting = 0,    /* the hello is to be sent   */
    ngx_http_inference_channel_waiting,         /* for the welcome           */
    ngx_http_inference_channel_up,
    ngx_http_inference_channel_broken,          /* to be ended by its drain  */
    ngx_http_inference_channel_dead             /* in use by somebody still  */
} ngx_http_inference_channel_state_e;


typedef struct ngx_http_inference_channel_s  ngx_http_inference_channel_t;


/* The client's own note about a slot in use. */

typedef struct {
    ngx_http_inference_channel_t        *channel;
    ngx_http_inference_ticket_t         *ticket;    /* NULL: abandoned       */
    inf_ticket_t                         name;
    inf_region_t                        *regions[NGX_HTTP_INFERENCE_REGIONS];
    ngx_uint_t                           nregions;  /* of an abandoned one   */
    unsigned                             taken:1;
    unsigned                             begun:1;   /* an execution          */
    unsigned                             final:1;
    unsigned                             released:1;
} ngx_http_inference_flight_t;


struct ngx_http_inference_channel_s {
    ngx_queue_t                          queue;     /* of dead ones          */
    ngx_http_inference_channel_state_e   state;
    uint64_t                             epoch;
    inf_client_t                        *client;
    ngx_socket_t                         socket;    /* to an external core   */

    ngx_connection_t                    *control;
    ngx_connection_t                    *bell;
    ngx_connection_t                    *core;
    ngx_event_t                          drain;

    ngx_http_inference_flight_t         *flights;   /* by slot               */
    ngx_uint_t                           held;      /* responses at the
                                                       request side          */
    unsigned                             answered:1;
};


typedef struct {
    ngx_log_t                           *log;
    ngx_http_inference_main_conf_t      *imcf;      /* NULL: no core         */

    ngx_http_inference_channel_t        *channel;
    ngx_queue_t                          dead;
    uint64_t                             epoch;

    ngx_queue_t                          waiting;   /* tickets               */
    ngx_msec_t                           down;      /* since when            */
    ngx_msec_t                           pause;     /* before the next try   */
    ngx_uint_t                           failures;  /* of tries in a row     */
    unsigned                             met:1;     /* there was a channel   */

    ngx_event_t                          retry;
    ngx_event_t                          patience;
    ngx_event_t                          sweep;
    ngx_connection_t                     dummy;
} ngx_http_inference_client_t;


static void ngx_http_inference_client_event(ngx_event_t *ev,
    ngx_event_handler_pt handler);
static void ngx_http_inference_client_retry(ngx_event_t *ev);
static void ngx_http_inference_client_later(const char *what);
static ngx_http_inference_channel_t *ngx_http_inference_channel_new(void);
static ngx_int_t ngx_http_inference_channel_connect(
    ngx_http_inference_channel_t *ch);
static ngx_uint_t ngx_http_inference_client_level(void);
static ngx_int_t ngx_http_inference_channel_error(inf_err_t *err,
    const char *what);
static ngx_connection_t *ngx_http_inference_channel_watch(
    ngx_http_inference_channel_t *ch, int fd, ngx_event_handler_pt handler,
    ngx_uint_t flags);
static void ngx_http_inference_channel_unwatch(ngx_connection_t **c);
static void ngx_http_inference_channel_hello(
    ngx_http_inference_channel_t *ch);
static void ngx_http_inference_channel_control(ngx_event_t *ev);
static void ngx_http_inference_channel_welcome(
    ngx_http_inference_channel_t *ch);
static void ngx_http_inference_channel_bell(ngx_event_t *ev);
static void ngx_http_inference_channel_drain(ngx_event_t *ev);
static void ngx_http_inference_channel_completion(
    const inf_completion_t *c, void *userp);
static void ngx_http_inference_channel_core_exit(ngx_event_t *ev);
static void ngx_http_inference_channel_break(
    ngx_http_inference_channel_t *ch);
static void ngx_http_inference_channel_death(ngx_http_inference_channel_t *ch,
    const char *why);
static ngx_uint_t ngx_http_inference_channel_detach(
    ngx_http_inference_channel_t *ch, ngx_queue_t *lost);
static void ngx_http_inference_channel_unlink(
    ngx_http_inference_channel_t *ch);
static ngx_uint_t ngx_http_inference_channel_idle(
    ngx_http_inference_channel_t *ch);
static void ngx_http_inference_channel_free(ngx_http_inference_channel_t *ch);
static ngx_http_inference_channel_t *ngx_http_inference_channel_find(
    uint64_t epoch);

static void ngx_http_inference_flight_begun(
    ngx_http_inference_flight_t *flight, ngx_uint_t begun);
static ngx_uint_t ngx_http_inference_flight_of_sequence(
    ngx_http_inference_flight_t *flight);
static void ngx_http_inference_flight_give(
    ngx_http_inference_flight_t *flight);
static void ngx_http_inference_free_regions(ngx_http_inference_channel_t *ch,
    inf_region_t **regions, ngx_uint_t *n);
static void ngx_http_inference_wake_waiting(ngx_int_t rc);
static void ngx_http_inference_client_patience(ngx_event_t *ev);
static void ngx_http_inference_client_sweep(ngx_event_t *ev);
static void ngx_http_inference_client_plan_sweep(void);


static ngx_http_inference_client_t  ngx_http_inference_client;


ngx_int_t
ngx_http_inference_client_init(ngx_cycle_t *cycle)
{
    ngx_http_inference_client_t     *client;
    ngx_http_inference_main_conf_t  *imcf;

    client = &ngx_http_inference_client;

    client->log = cycle->log;
    client->dummy.fd = (ngx_socket_t) -1;
    ngx_queue_init(&client->dead);
    ngx_queue_init(&client->waiting);

    ngx_http_inference_client_event(&client->retry,
                                    ngx_http_inference_client_retry);
    ngx_http_inference_client_event(&client->patience,
                                    ngx_http_inference_client_patience);
    ngx_http_inference_client_event(&client->sweep,
                                    ngx_http_inference_client_sweep);

    if (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE)
    {
        return NGX_OK;
    }

    imcf = ngx_http_cycle_get_module_main_conf(cycle,
                                               ngx_http_inference_module);

    if (imcf == NULL || !imcf->used
        || (imcf->external.len == 0
            && ngx_http_inference_registration() == (ngx_socket_t) -1))
    {
        return NGX_OK;
    }

    client->imcf = imcf;
    client->down = ngx_current_msec;
    client->pause = NGX_HTTP_INFERENCE_MIN_PAUSE;

    ngx_http_inference_client_retry(&client->retry);

    return NGX_OK;
}


void
ngx_http_inference_client_exit(ngx_cycle_t *cycle)
{
    ngx_queue_t                   *q;
    ngx_http_inference_client_t   *client;
    ngx_http_inference_channel_t  *ch;

    client = &ngx_http_inference_client;

    if (client->imcf == NULL) {
        return;
    }

    client->imcf = NULL;

    if (client->channel != NULL) {
        ch = client->channel;
        client->channel = NULL;
        ngx_http_inference_channel_unlink(ch);
        ngx_http_inference_channel_free(ch);
    }

    while (!ngx_queue_empty(&client->dead)) {
        q = ngx_queue_head(&client->dead);
        ngx_queue_remove(q);
        ch = ngx_queue_data(q, ngx_http_inference_channel_t, queue);
        ngx_http_inference_channel_free(ch);
    }
}


ngx_int_t
ngx_http_inference_wait_ready(ngx_http_inference_ticket_t *ticket)
{
    ngx_msec_t                    waited;
    ngx_http_inference_client_t  *client;

    client = &ngx_http_inference_client;

    if (client->imcf == NULL) {
        return NGX_ERROR;
    }

    if (ngx_http_inference_channel(NULL) != NULL) {
        return NGX_OK;
    }

    waited = ngx_current_msec - client->down;

    if (waited >= NGX_HTTP_INFERENCE_PATIENCE) {
        return NGX_ERROR;
    }

    if (!ticket->waiting) {
        ngx_queue_insert_tail(&client->waiting, &ticket->queue);
        ticket->waiting = 1;
    }

    if (!client->patience.timer_set) {
        ngx_add_timer(&client->patience, NGX_HTTP_INFERENCE_PATIENCE - waited);
    }

    return NGX_AGAIN;
}


ngx_msec_t
ngx_http_inference_grace(void)
{
    ngx_msec_t                    waited;
    ngx_http_inference_client_t  *client;

    client = &ngx_http_inference_client;

    if (client->imcf == NULL || client->met) {
        return 0;
    }

    waited = ngx_current_msec - client->down;

    return waited < NGX_HTTP_INFERENCE_GRACE
           ? NGX_HTTP_INFERENCE_GRACE - waited : 0;
}


inf_client_t *
ngx_http_inference_channel(uint64_t *epoch)
{
    ngx_http_inference_channel_t  *ch;

    ch = ngx_http_inference_client.channel;

    if (ch == NULL || ch->state != ngx_http_inference_channel_up) {
        return NULL;
    }

    if (epoch != NULL) {
        *epoch = ch->epoch;
    }

    return ch->client;
}


ngx_int_t
ngx_http_inference_submit(ngx_http_inference_ticket_t *ticket,
    uint64_t epoch, inf_submission_t *s, inf_region_t *const *regions,
    ngx_uint_t count)
{
    ngx_uint_t                      i;
    inf_ticket_t                    name;
    inf_client_result_t             rc;
    ngx_http_inference_flight_t    *flight;
    ngx_http_inference_channel_t   *ch;
    ngx_http_inference_counters_t  *counters;

    counters = ngx_http_inference_counters();
    ch = ngx_http_inference_client.channel;

    if (ch == NULL || ch->state != ngx_http_inference_channel_up
        || ch->epoch != epoch || count > NGX_HTTP_INFERENCE_REGIONS)
    {
        return NGX_ERROR;
    }

    if (!inf_client_take(ch->client, NULL, &name)) {
        (void) ngx_atomic_fetch_add(&counters->ring_full, 1);
        return NGX_BUSY;
    }

    flight = &ch->flights[name.slot];
    inf_client_set_userp(ch->client, name, flight);

    s->slot = name.slot;
    s->generation = name.generation;

    rc = inf_client_submit(ch->client, s);

    if (rc != INF_CLIENT_OK) {
        inf_client_give(ch->client, name);

        if (rc == INF_CLIENT_BROKEN) {
            ngx_http_inference_channel_break(ch);
            return NGX_ERROR;
        }

        (void) ngx_atomic_fetch_add(&counters->ring_full, 1);
        return NGX_BUSY;
    }

    ngx_memzero(flight, sizeof(ngx_http_inference_flight_t));
    flight->channel = ch;
    flight->ticket = ticket;
    flight->name = name;
    flight->taken = 1;

    /* one wake of the core for all that this turn submits */

    ngx_post_event(&ch->drain, &ngx_posted_events);

    for (i = 0; i < count; i++) {
        ticket->regions[i] = regions[i];
    }

    ticket->nregions = count;
    ticket->slot = name.slot;
    ticket->generation = name.generation;
    ticket->epoch = epoch;
    ticket->submitted = 1;
    ticket->final = 0;
    ticket->released = 0;

    if (s->op == INF_SUBMIT_INFER) {
        (void) ngx_atomic_fetch_add(&counters->requests, 1);
    }

    ngx_http_inference_client_plan_sweep();

    return NGX_OK;
}


void
ngx_http_inference_abandon(ngx_http_inference_ticket_t *ticket)
{
    ngx_uint_t                     i;
    ngx_http_inference_flight_t   *flight;
    ngx_http_inference_channel_t  *ch;

    if (ticket->waiting) {
        ngx_queue_remove(&ticket->queue);
        ticket->waiting = 0;
    }

    if (!ticket->submitted && ticket->nregions == 0) {
        return;
    }

    ch = ngx_http_inference_channel_find(ticket->epoch);

    if (ch == NULL) {
        /* the worker is leaving, its memory has gone */
        ticket->submitted = 0;
        ticket->nregions = 0;
        return;
    }

    if (!ticket->submitted || ticket->released) {
        ngx_http_inference_free_regions(ch, ticket->regions,
                                        &ticket->nregions);
    }

    if (!ticket->submitted) {
        return;
    }

    flight = &ch->flights[ticket->slot];
    ngx_http_inference_flight_begun(flight, 0);
    flight->ticket = NULL;

    for (i = 0; i < ticket->nregions; i++) {
        flight->regions[i] = ticket->regions[i];
    }

    flight->nregions = ticket->nregions;

    ticket->submitted = 0;
    ticket->nregions = 0;

    if (!flight->final) {
        inf_client_cancel(ch->client, flight->name);
        ngx_post_event(&ch->drain, &ngx_posted_events);
        (void) ngx_atomic_fetch_add(
                   &ngx_http_inference_counters()->cancelled, 1);
        ngx_http_inference_client_plan_sweep();
    }
}


void
ngx_http_inference_release(uint64_t epoch, uint64_t offset)
{
    ngx_http_inference_channel_t  *ch;

    ch = ngx_http_inference_channel_find(epoch);

    if (ch == NULL) {
        return;
    }

    ch->held--;

    if (ch->state == ngx_http_inference_channel_up) {
        inf_client_release(ch->client, offset);
        ngx_http_inference_client_plan_sweep();
    }
}


const void *
ngx_http_inference_response(uint64_t epoch, uint64_t offset, uint64_t len)
{
    ngx_http_inference_channel_t  *ch;

    ch = ngx_http_inference_channel_find(epoch);

    return ch != NULL ? inf_client_response(ch->client, offset, len) : NULL;
}


static void
ngx_http_inference_client_event(ngx_event_t *ev, ngx_event_handler_pt handler)
{
    ngx_memzero(ev, sizeof(ngx_event_t));

    ev->handler = handler;
    ev->data = &ngx_http_inference_client.dummy;
    ev->log = ngx_http_inference_client.log;
    ev->cancelable = 1;
}


/* Goes on where the last try has stopped. */

static void
ngx_http_inference_client_retry(ngx_event_t *ev)
{
    ngx_http_inference_client_t  *client;

    client = &ngx_http_inference_client;

    if (client->channel == NULL) {
        client->channel = ngx_http_inference_channel_new();

        if (client->channel == NULL) {
            ngx_http_inference_client_later(NULL);
            return;
        }
    }

    if (client->channel->state == ngx_http_inference_channel_greeting) {
        ngx_http_inference_channel_hello(client->channel);
    }
}


/* The channel of this try, if any, is of no use. */

static void
ngx_http_inference_client_later(const char *what)
{
    ngx_http_inference_client_t   *client;
    ngx_http_inference_channel_t  *ch;

    client = &ngx_http_inference_client;
    ch = client->channel;

    if (what != NULL) {
        ngx_log_error(NGX_LOG_INFO, client->log, 0, "inference: %s", what);
    }

    if (ch != NULL) {
        client->channel = NULL;
        ngx_http_inference_channel_unlink(ch);
        ngx_http_inference_channel_free(ch);
    }

    ngx_add_timer(&client->retry, client->pause);

    client->pause = ngx_min(client->pause * 2, NGX_HTTP_INFERENCE_MAX_PAUSE);
}


static ngx_http_inference_channel_t *
ngx_http_inference_channel_new(void)
{
    inf_err_t                     *err;
    inf_client_conf_t              conf;
    ngx_http_inference_client_t   *client;
    ngx_http_inference_channel_t  *ch;

    client = &ngx_http_inference_client;

    ch = ngx_calloc(sizeof(ngx_http_inference_channel_t), client->log);
    if (ch == NULL) {
        return NULL;
    }

    ch->socket = (ngx_socket_t) -1;
    ch->epoch = ++client->epoch;
    ngx_http_inference_client_event(&ch->drain,
                                    ngx_http_inference_channel_drain);
    ch->drain.data = ch;

    ch->flights = ngx_calloc(INF_MAX_SLOTS
                             * sizeof(ngx_http_inference_flight_t),
                             client->log);
    if (ch->flights == NULL) {
        goto failed;
    }

    ngx_memzero(&conf, sizeof(inf_client_conf_t));
    conf.arena_bound = (uint64_t) client->imcf->arena;
    conf.defer = 1;

    err = inf_client_new(&conf, &ch->client);

    if (err != NULL) {
        (void) ngx_http_inference_channel_error(err, "no channel");
        goto failed;
    }

    if (client->imcf->external.len > 0
        && ngx_http_inference_channel_connect(ch) != NGX_OK)
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

    return ch;

failed:

    ngx_http_inference_channel_free(ch);

    return NULL;
}


/* A core that was started elsewhere listens at a path. */

static ngx_int_t
ngx_http_inference_channel_connect(ngx_http_inference_channel_t *ch)
{
    ngx_str_t           *path;
    struct sockaddr_un   sun;

    path = &ngx_http_inference_client.imcf->external;

    ngx_memzero(&sun, sizeof(struct sockaddr_un));
    sun.sun_family = AF_UNIX;
    ngx_memcpy(sun.sun_path, path->data, path->len);

    ch->socket = socket(AF_UNIX, SOCK_SEQPACKET|SOCK_NONBLOCK|SOCK_CLOEXEC,
                        0);

    if (ch->socket == (ngx_socket_t) -1
        || connect(ch->socket, (struct sockaddr *) &sun,
                   sizeof(struct sockaddr_un)) == -1)
    {
        ngx_log_error(ngx_http_inference_client_level(),
                      ngx_http_inference_client.log, ngx_socket_errno,
                      "inference: cannot connect to the core at \"%V\"", path);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* Of many tries in a row only the first one's failure is an error. */

static ngx_uint_t
ngx_http_inference_client_level(void)
{
    return ngx_http_inference_client.failures++ == 0 ? NGX_LOG_ERR
                                                     : NGX_LOG_INFO;
}


static ngx_int_t
ngx_http_inference_channel_error(inf_err_t *err, const char *what)
{
    ngx_log_error(ngx_http_inference_client_level(),
                  ngx_http_inference_client.log, 0,
                  "inference: %s: %s", what, inf_err_msg(err));
    inf_err_free(err);

    return NGX_ERROR;
}


/* The descriptor stays the client's. */

static ngx_connection_t *
ngx_http_inference_channel_watch(ngx_http_inference_channel_t *ch, int fd,
    ngx_event_handler_pt handler, ngx_uint_t flags)
{
    ngx_connection_t  *c;

    c = ngx_get_connection(fd, ngx_http_inference_client.log);
    if (c == NULL) {
        return NULL;
    }

    c->data = ch;
    c->read->handler = handler;
    c->read->log = c->log;
    c->write->log = c->log;

    /* a leaving worker counts it neither as a leak nor as a client */

    c->read->channel = 1;
    c->write->channel = 1;

    if (ngx_add_event(c->read, NGX_READ_EVENT, flags) != NGX_OK) {
        ngx_free_connection(c);
        c->fd = (ngx_socket_t) -1;
        return NULL;
    }

    return c;
}


/* Other processes have the same files open: closing would not end events. */

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


static void
ngx_http_inference_channel_hello(ngx_http_inference_channel_t *ch)
{
    int         fd;
    bool        again;
    inf_err_t  *err;

    fd = ch->socket != (ngx_socket_t) -1 ? ch->socket
                                         : ngx_http_inference_registration();

    err = inf_client_hello(ch->client, fd, &again);

    if (err != NULL) {
        (void) ngx_http_inference_channel_error(err, "cannot register");
        ngx_http_inference_client_later(NULL);
        return;
    }

    if (again) {
        ngx_add_timer(&ngx_http_inference_client.retry,
                      NGX_HTTP_INFERENCE_MIN_PAUSE);
        return;
    }

    /* with no core alive the message waits in the socket for the next one */

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
        ngx_http_inference_client_later("the control socket was closed");
        return;
    }

    ngx_http_inference_channel_death(ch, n == 0 ? "it has closed its channel"
                                                : "it broke its channel");
}


static void
ngx_http_inference_channel_welcome(ngx_http_inference_channel_t *ch)
{
    bool                          again;
    inf_err_t                    *err;
    ngx_http_inference_client_t  *client;

    client = &ngx_http_inference_client;

    err = inf_client_welcome(ch->client, &again);

    if (err != NULL) {
        (void) ngx_http_inference_channel_error(err, "no welcome by the core");
        ngx_http_inference_client_later(NULL);
        return;
    }

    if (again) {
        return;
    }

    ch->bell = ngx_http_inference_channel_watch(ch,
                                    inf_client_bell_fd(ch->client),
                                    ngx_http_inference_channel_bell,
                                    NGX_CLEAR_EVENT);
    ch->core = ngx_http_inference_channel_watch(ch,
                                    inf_client_core_fd(ch->client),
                                    ngx_http_inference_channel_core_exit,
                                    NGX_LEVEL_EVENT);

    if (ch->bell == NULL || ch->core == NULL) {
        ngx_http_inference_client_later("no connections left for the channel");
        return;
    }

    ch->state = ngx_http_inference_channel_up;
    client->pause = NGX_HTTP_INFERENCE_MIN_PAUSE;
    client->failures = 0;
    client->met = 1;

    if (client->patience.timer_set) {
        ngx_del_timer(&client->patience);
    }

    ngx_log_error(NGX_LOG_INFO, client->log, 0,
                  "inference: connected to core %uD",
                  inf_client_core_pid(ch->client));

    ngx_post_event(&ch->drain, &ngx_posted_events);

    ngx_http_inference_wake_waiting(NGX_OK);
}


/* At the end of the turn, when the sockets have brought what they had. */

static void
ngx_http_inference_channel_bell(ngx_event_t *ev)
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

        rc = inf_client_drain(ch->client, NGX_HTTP_INFERENCE_BUDGET,
                              ngx_http_inference_channel_completion);

        if (rc == INF_CLIENT_BROKEN) {
            ngx_http_inference_channel_break(ch);
        }

        /* a completion may have found the channel broken */

        if (ch->state == ngx_http_inference_channel_up) {

            if (rc == INF_CLIENT_AGAIN || !inf_client_arm(ch->client)) {
                ngx_post_event(&ch->drain, &ngx_posted_next_events);
            }

            return;
        }
    }

    ngx_http_inference_channel_death(ch, "it wrote nonsense");
}


static void
ngx_http_inference_channel_completion(const inf_completion_t *c, void *userp)
{
    ngx_uint_t                     done;
    ngx_http_inference_flight_t   *flight;
    ngx_http_inference_ticket_t   *ticket;
    ngx_http_inference_channel_t  *ch;

    flight = userp;
    ch = flight->channel;
    ticket = flight->ticket;

    ngx_http_inference_flight_begun(flight, c->batch_size > 0);

    if (!ch->answered) {
        ch->answered = 1;
        ngx_http_inference_counters()->answered =
            inf_client_core_pid(ch->client);
    }

    if ((c->flags & INF_COMPLETE_RESPONSE) && c->length > 0) {

        if (ticket != NULL) {
            ch->held++;

        } else {
            inf_client_release(ch->client, c->offset);
        }
    }

    if (c->flags & INF_COMPLETE_FINAL) {
        flight->final = 1;
    }

    if (c->flags & INF_COMPLETE_RELEASED) {
        flight->released = 1;

        if (ticket == NULL) {
            ngx_http_inference_free_regions(ch, flight->regions,
                                            &flight->nregions);

        } else if (!ticket->keep) {
            ngx_http_inference_free_regions(ch, ticket->regions,
                                            &ticket->nregions);
        }
    }

    done = flight->final && flight->released;

    if (ticket != NULL) {
        ticket->final = flight->final;
        ticket->released = flight->released;
        ticket->submitted = !done;
    }

    if (done) {
        ngx_http_inference_flight_give(flight);
    }

    if (ticket != NULL) {
        ticket->answer(ticket, c);
    }
}


static void
ngx_http_inference_channel_core_exit(ngx_event_t *ev)
{
    ngx_connection_t              *c;
    ngx_http_inference_channel_t  *ch;

    c = ev->data;
    ch = c->data;

    ngx_http_inference_channel_death(ch, "it has ended");
}


/* Found in the middle of something: ended at the end of the turn. */

static void
ngx_http_inference_channel_break(ngx_http_inference_channel_t *ch)
{
    ch->state = ngx_http_inference_channel_broken;
    ngx_post_event(&ch->drain, &ngx_posted_events);
}


static void
ngx_http_inference_channel_death(ngx_http_inference_channel_t *ch,
    const char *why)
{
    uint32_t                      pid;
    ngx_uint_t                    n;
    ngx_queue_t                   lost, *q;
    ngx_http_inference_client_t  *client;
    ngx_http_inference_ticket_t  *ticket;

    client = &ngx_http_inference_client;
    pid = inf_client_core_pid(ch->client);

    ngx_http_inference_channel_unlink(ch);

    ch->state = ngx_http_inference_channel_dead;
    client->channel = NULL;
    client->down = ngx_current_msec;
    ngx_queue_insert_tail(&client->dead, &ch->queue);

    ngx_queue_init(&lost);
    n = ngx_http_inference_channel_detach(ch, &lost);

    ngx_log_error(NGX_LOG_WARN, client->log, 0,
                  "inference: core %uD is gone (%s), %ui requests were with it",
                  pid, why, n);

    ngx_http_inference_client_plan_sweep();
    ngx_http_inference_client_retry(&client->retry);

    /* an answer may abandon others of these, or wait for the next channel */

    while (!ngx_queue_empty(&lost)) {
        q = ngx_queue_head(&lost);
        ngx_queue_remove(q);

        ticket = ngx_queue_data(q, ngx_http_inference_ticket_t, queue);
        ticket->waiting = 0;
        ticket->answer(ticket, NULL);
    }
}


/* Nobody reads the requests' bytes any more. */

static ngx_uint_t
ngx_http_inference_channel_detach(ngx_http_inference_channel_t *ch,
    ngx_queue_t *lost)
{
    ngx_uint_t                    i, n;
    ngx_http_inference_flight_t  *flight;
    ngx_http_inference_ticket_t  *ticket;

    n = 0;

    for (i = 0; i < INF_MAX_SLOTS; i++) {
        flight = &ch->flights[i];

        if (!flight->taken) {
            continue;
        }

        ngx_http_inference_flight_begun(flight, 0);

        flight->taken = 0;
        ticket = flight->ticket;
        flight->ticket = NULL;

        ngx_http_inference_free_regions(ch, flight->regions,
                                        &flight->nregions);

        if (ticket == NULL) {
            continue;
        }

        ticket->submitted = 0;

        if (!ticket->keep) {
            ngx_http_inference_free_regions(ch, ticket->regions,
                                            &ticket->nregions);
        }

        if (ticket->final) {
            /* it has its answer */
            continue;
        }

        ticket->sequence = ngx_http_inference_flight_of_sequence(flight);
        ngx_queue_insert_tail(lost, &ticket->queue);
        ticket->waiting = 1;
        n++;
    }

    return n;
}


/* Out of the event loop. */

static void
ngx_http_inference_channel_unlink(ngx_http_inference_channel_t *ch)
{
    ngx_http_inference_channel_unwatch(&ch->control);
    ngx_http_inference_channel_unwatch(&ch->bell);
    ngx_http_inference_channel_unwatch(&ch->core);

    if (ch->drain.posted) {
        ngx_delete_posted_event(&ch->drain);
    }
}


static ngx_uint_t
ngx_http_inference_channel_idle(ngx_http_inference_channel_t *ch)
{
    return ch->held == 0 && inf_client_arena_stats(ch->client)->regions == 0;
}


static void
ngx_http_inference_channel_free(ngx_http_inference_channel_t *ch)
{
    inf_client_free(ch->client);

    if (ch->socket != (ngx_socket_t) -1) {
        (void) ngx_close_socket(ch->socket);
    }

    if (ch->flights != NULL) {
        ngx_free(ch->flights);
    }

    ngx_free(ch);
}


static ngx_http_inference_channel_t *
ngx_http_inference_channel_find(uint64_t epoch)
{
    ngx_queue_t                   *q;
    ngx_http_inference_client_t   *client;
    ngx_http_inference_channel_t  *ch;

    client = &ngx_http_inference_client;

    if (client->imcf == NULL) {
        return NULL;
    }

    if (client->channel != NULL && client->channel->epoch == epoch) {
        return client->channel;
    }

    for (q = ngx_queue_head(&client->dead);
         q != ngx_queue_sentinel(&client->dead);
         q = ngx_queue_next(q))
    {
        ch = ngx_queue_data(q, ngx_http_inference_channel_t, queue);

        if (ch->epoch == epoch) {
            return ch;
        }
    }

    return NULL;
}


/* Counts its execution once: the core has said so, or its slot does. */

static void
ngx_http_inference_flight_begun(ngx_http_inference_flight_t *flight,
    ngx_uint_t begun)
{
    uint8_t  state;

    if (flight->begun || flight->final || flight->ticket == NULL) {
        return;
    }

    if (!begun) {
        state = inf_client_slot_state(flight->channel->client, flight->name)
                & INF_SLOT_STATE_MASK;
        begun = (state == INF_SLOT_EXECUTING);
    }

    if (begun) {
        flight->begun = 1;
        flight->ticket->begun++;
    }
}


static ngx_uint_t
ngx_http_inference_flight_of_sequence(ngx_http_inference_flight_t *flight)
{
    uint8_t  state;

    state = inf_client_slot_state(flight->channel->client, flight->name);

    return (state & INF_SLOT_SEQUENCE) != 0;
}


static void
ngx_http_inference_flight_give(ngx_http_inference_flight_t *flight)
{
    inf_client_give(flight->channel->client, flight->name);

    flight->ticket = NULL;
    flight->taken = 0;
}


static void
ngx_http_inference_free_regions(ngx_http_inference_channel_t *ch,
    inf_region_t **regions, ngx_uint_t *n)
{
    while (*n > 0) {
        (*n)--;
        inf_client_free_region(ch->client, regions[*n]);
        regions[*n] = NULL;
    }
}


static void
ngx_http_inference_wake_waiting(ngx_int_t rc)
{
    ngx_queue_t                   woken, *q;
    ngx_http_inference_client_t  *client;
    ngx_http_inference_ticket_t  *ticket;

    client = &ngx_http_inference_client;

    if (ngx_queue_empty(&client->waiting)) {
        return;
    }

    /* who has to wait again does not come into this round */

    ngx_queue_init(&woken);
    ngx_queue_add(&woken, &client->waiting);
    ngx_queue_init(&client->waiting);

    while (!ngx_queue_empty(&woken)) {
        q = ngx_queue_head(&woken);
        ngx_queue_remove(q);

        ticket = ngx_queue_data(q, ngx_http_inference_ticket_t, queue);
        ticket->waiting = 0;
        ticket->ready(ticket, rc);
    }
}


static void
ngx_http_inference_client_patience(ngx_event_t *ev)
{
    ngx_http_inference_client_t  *client;

    client = &ngx_http_inference_client;

    if (ngx_http_inference_channel(NULL) != NULL) {
        return;
    }

    if (!ngx_queue_empty(&client->waiting)) {
        ngx_log_error(NGX_LOG_ERR, client->log, 0,
                      "inference: the core is out of reach for %d s, requests "
                      "are refused until it is back",
                      NGX_HTTP_INFERENCE_PATIENCE / 1000);
    }

    ngx_http_inference_wake_waiting(NGX_ERROR);
}


/* What is not urgent: memory given back, old channels, postponed entries. */

static void
ngx_http_inference_client_sweep(ngx_event_t *ev)
{
    ngx_uint_t                     again;
    ngx_queue_t                   *q, *next;
    inf_client_t                  *c;
    ngx_http_inference_client_t   *client;
    ngx_http_inference_channel_t  *ch;

    client = &ngx_http_inference_client;

    for (q = ngx_queue_head(&client->dead);
         q != ngx_queue_sentinel(&client->dead);
         q = next)
    {
        next = ngx_queue_next(q);
        ch = ngx_queue_data(q, ngx_http_inference_channel_t, queue);

        if (ngx_http_inference_channel_idle(ch)) {
            ngx_queue_remove(q);
            ngx_http_inference_channel_free(ch);
        }
    }

    again = !ngx_queue_empty(&client->dead);
    c = ngx_http_inference_channel(NULL);

    if (c != NULL) {
        inf_client_flush(c);
        (void) inf_client_trim(c, inf_clock_ns());

        again |= inf_client_arena_stats(c)->idle > 0
                 || inf_client_pending(c) > 0
                 || inf_client_slots_taken(c) > 0;
    }

    if (again) {
        ngx_http_inference_client_plan_sweep();
    }
}


static void
ngx_http_inference_client_plan_sweep(void)
{
    ngx_msec_t     delay;
    inf_client_t  *c;

    c = ngx_http_inference_channel(NULL);

    delay = c != NULL && inf_client_pending(c) > 0 ? NGX_HTTP_INFERENCE_FLUSH
                                                   : NGX_HTTP_INFERENCE_SWEEP;

    if (ngx_http_inference_client.sweep.timer_set) {

        if (delay == NGX_HTTP_INFERENCE_SWEEP) {
            return;
        }

        ngx_del_timer(&ngx_http_inference_client.sweep);
    }

    ngx_add_timer(&ngx_http_inference_client.sweep, delay);
}
