/*
 * ngx_http_inference_balance_probe.c - probes of an upstream's nodes: readiness
 *                                      and length of the queue, over HTTP/1.
 *                                      One worker at a time probes a node.
 */

#include "ngx_module/ngx_http_inference_balance.h"
#include "ngx_module/ngx_http_inference_fetch.h"

#include "core/proto/node_answer.h"


/* timeout of a probe, ms: longer than the kernel's first retransmission of a
   SYN */
#define NGX_HTTP_INFERENCE_PROBE_MIN  2000
#define NGX_HTTP_INFERENCE_PROBE_MAX  10000

/* maximum time before a failed probe is repeated, ms */
#define NGX_HTTP_INFERENCE_PROBE_REPEAT  1000


typedef struct {
    ngx_http_inference_fetch_t     fetch;       /* first: it is the probe    */
    ngx_sockaddr_t                 sockaddr;
    ngx_str_t                      name;        /* of the node               */
    ngx_http_inference_balance_t  *balance;
    ngx_http_inference_node_t     *node;        /* NULL: not probed          */
    ngx_msec_t                     started;
    u_char                         answer[INF_NODE_ANSWER_MAX];
} ngx_http_inference_probe_t;


/* The probes of one upstream. */
typedef struct {
    ngx_event_t                    tick;
    ngx_http_inference_balance_t  *balance;
    ngx_http_inference_probe_t    *probes;      /* one for each node         */
} ngx_http_inference_prober_t;


static ngx_int_t ngx_http_inference_prober_init(ngx_cycle_t *cycle,
    ngx_http_inference_balance_t *balance);
static ngx_int_t ngx_http_inference_probe_init(ngx_cycle_t *cycle,
    ngx_http_inference_balance_t *balance, ngx_addr_t *addr,
    ngx_http_inference_probe_t *probe);
static ngx_addr_t *ngx_http_inference_prober_place(
    ngx_http_inference_prober_t *prober);
static void ngx_http_inference_prober_tick(ngx_event_t *ev);
static ngx_uint_t ngx_http_inference_probe_due(
    ngx_http_inference_probe_t *probe);
static ngx_uint_t ngx_http_inference_probe_enough(
    ngx_http_inference_fetch_t *fetch);
static void ngx_http_inference_probe_done(ngx_http_inference_fetch_t *fetch);
static void ngx_http_inference_probe_failed(
    ngx_http_inference_probe_t *probe);
static void ngx_http_inference_probe_note(ngx_http_inference_probe_t *probe,
    inf_node_answer_t *answer);
static void ngx_http_inference_probe_report(
    ngx_http_inference_probe_t *probe, inf_node_answer_t *answer);
static void ngx_http_inference_probe_misreport(
    ngx_http_inference_probe_t *probe, const char *what, ngx_str_t *text);
static ngx_uint_t ngx_http_inference_probe_state(
    ngx_http_inference_probe_t *probe, ngx_http_inference_node_state_e state);


ngx_int_t
ngx_http_inference_probes_init(ngx_cycle_t *cycle)
{
    ngx_uint_t                       i;
    ngx_http_inference_balance_t    *balance;
    ngx_http_upstream_srv_conf_t   **uscfp;
    ngx_http_upstream_main_conf_t   *umcf;

    if (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE)
    {
        return NGX_OK;
    }

    umcf = ngx_http_cycle_get_module_main_conf(cycle,
                                               ngx_http_upstream_module);
    if (umcf == NULL) {
        return NGX_OK;
    }

    uscfp = umcf->upstreams.elts;

    for (i = 0; i < umcf->upstreams.nelts; i++) {

        if (uscfp[i]->srv_conf == NULL) {
            continue;
        }

        balance = ngx_http_conf_upstream_srv_conf(uscfp[i],
                                                  ngx_http_inference_module);

        if (balance->file
            && ngx_http_inference_prober_init(cycle, balance) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_prober_init(ngx_cycle_t *cycle,
    ngx_http_inference_balance_t *balance)
{
    ngx_uint_t                    i;
    ngx_addr_t                   *addr;
    ngx_http_inference_prober_t  *prober;

    prober = ngx_pcalloc(cycle->pool, sizeof(ngx_http_inference_prober_t));
    if (prober == NULL) {
        return NGX_ERROR;
    }

    prober->balance = balance;
    prober->probes = ngx_pcalloc(cycle->pool,
                                 balance->addrs.nelts
                                 * sizeof(ngx_http_inference_probe_t));
    if (prober->probes == NULL) {
        return NGX_ERROR;
    }

    addr = balance->addrs.elts;

    for (i = 0; i < balance->addrs.nelts; i++) {
        if (ngx_http_inference_probe_init(cycle, balance, &addr[i],
                                          &prober->probes[i])
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    addr = ngx_http_inference_prober_place(prober);

    if (addr) {
        ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                      "inference: no room yet for server %V of upstream "
                      "\"%V\" and those behind it beside those of former "
                      "configurations: they are not asked, and sequences do "
                      "not stay there", &addr->name, &balance->name);
    }

    if (ngx_process == NGX_PROCESS_SINGLE) {
        /* a reload would free the prober while its timer is set */
        ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                      "inference: \"master_process off\": nodes of upstream "
                      "\"%V\" are not asked for their queues",
                      &balance->name);
        return NGX_OK;
    }

    prober->tick.handler = ngx_http_inference_prober_tick;
    prober->tick.data = prober;
    prober->tick.log = cycle->log;
    prober->tick.cancelable = 1;

    ngx_add_timer(&prober->tick, 1);

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_probe_init(ngx_cycle_t *cycle,
    ngx_http_inference_balance_t *balance, ngx_addr_t *addr,
    ngx_http_inference_probe_t *probe)
{
    size_t                       len;
    u_char                      *p;
    ngx_http_inference_fetch_t  *fetch;

    static const char  head[] =
        " HTTP/1.1" CRLF "Host: %V" CRLF
        "Endpoint-Load-Metrics-Format: text" CRLF
        "Connection: close" CRLF CRLF;

    probe->balance = balance;
    probe->name = addr->name;

    ngx_memcpy(&probe->sockaddr, addr->sockaddr, addr->socklen);

    if (balance->port && addr->sockaddr->sa_family != AF_UNIX) {
        ngx_inet_set_port(&probe->sockaddr.sockaddr, balance->port);
    }

    len = sizeof("GET ") - 1 + balance->uri.len + sizeof(head)
          + balance->name.len;

    p = ngx_pnalloc(cycle->pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    fetch = &probe->fetch;

    ngx_http_inference_fetch_init(fetch, &probe->sockaddr.sockaddr,
                                  addr->socklen, &probe->name);

    fetch->request.data = p;

    p = ngx_sprintf(p, "GET %V", &balance->uri);
    p = ngx_sprintf(p, head, &balance->name);

    fetch->request.len = p - fetch->request.data;

    fetch->timeout = ngx_min(ngx_max(balance->interval,
                                     NGX_HTTP_INFERENCE_PROBE_MIN),
                             NGX_HTTP_INFERENCE_PROBE_MAX);
    fetch->answer = probe->answer;
    fetch->size = INF_NODE_ANSWER_MAX;
    fetch->enough = ngx_http_inference_probe_enough;
    fetch->done = ngx_http_inference_probe_done;

    return NGX_OK;
}


/* Adds entries for nodes without one; room appears when entries of removed
   servers expire.  Returns the first node without an entry; NULL: none. */

static ngx_addr_t *
ngx_http_inference_prober_place(ngx_http_inference_prober_t *prober)
{
    ngx_uint_t                   i;
    ngx_addr_t                  *addr;
    ngx_http_inference_probe_t  *probe;

    addr = prober->balance->addrs.elts;

    for (i = 0; i < prober->balance->addrs.nelts; i++) {

        probe = &prober->probes[i];

        if (probe->node) {
            continue;
        }

        probe->node = ngx_http_inference_place_node(prober->balance, &addr[i]);

        if (probe->node == NULL) {
            return &addr[i];
        }
    }

    return NULL;
}


/* Starts the probes that are due.  It runs more often than the interval; the
   first worker to run it probes the node. */

static void
ngx_http_inference_prober_tick(ngx_event_t *ev)
{
    ngx_uint_t                    i;
    ngx_http_inference_probe_t   *probe;
    ngx_http_inference_prober_t  *prober;

    prober = ev->data;

    if (ngx_exiting) {
        return;
    }

    (void) ngx_http_inference_prober_place(prober);

    for (i = 0; i < prober->balance->addrs.nelts; i++) {

        probe = &prober->probes[i];

        if (probe->node == NULL || !ngx_http_inference_probe_due(probe)) {
            continue;
        }

        ngx_http_inference_fetch_start(&probe->fetch);

        if (ngx_http_inference_fetch_runs(&probe->fetch)) {
            /* nginx closes it when this worker exits */
            probe->fetch.pc.connection->idle = 1;
        }
    }

    ngx_add_timer(ev, ngx_max(ngx_min(prober->balance->interval,
                                      NGX_HTTP_INFERENCE_PROBE_REPEAT) / 4,
                              5));
}


static ngx_uint_t
ngx_http_inference_probe_due(ngx_http_inference_probe_t *probe)
{
    ngx_msec_t         interval;
    ngx_atomic_uint_t  last, now;

    last = probe->node->probed;
    now = ngx_max(ngx_current_msec, 1);
    interval = probe->balance->interval;

    if (probe->node->failures == 1) {
        interval = ngx_min(interval, NGX_HTTP_INFERENCE_PROBE_REPEAT);
    }

    if (ngx_http_inference_fetch_runs(&probe->fetch)
        || (last
            && (ngx_msec_int_t) (now - last) < (ngx_msec_int_t) interval)
        || !ngx_atomic_cmp_set(&probe->node->probed, last, now))
    {
        return 0;
    }

    probe->started = now;

    return 1;
}


/* The head is enough; a body is ignored. */

static ngx_uint_t
ngx_http_inference_probe_enough(ngx_http_inference_fetch_t *fetch)
{
    inf_node_answer_t  answer;

    return inf_node_answer_read(inf_slice((char *) fetch->answer,
                                          fetch->received), &answer)
           != INF_NODE_ANSWER_PARTIAL;
}


static void
ngx_http_inference_probe_done(ngx_http_inference_fetch_t *fetch)
{
    ngx_str_t                    text;
    inf_node_answer_t            answer;
    ngx_http_inference_probe_t  *probe;

    probe = (ngx_http_inference_probe_t *) fetch;

    if (fetch->rc == NGX_ERROR) {
        /* an error of this process; another worker may succeed */
        (void) ngx_atomic_cmp_set(&probe->node->probed, probe->started, 0);
        return;
    }

    if ((ngx_msec_int_t) (probe->started - probe->node->answered) < 0) {
        /* a later probe of another worker has been answered */
        return;
    }

    if (fetch->rc == NGX_DECLINED) {
        ngx_http_inference_probe_failed(probe);
        return;
    }

    probe->node->failures = 0;
    probe->node->answered = ngx_current_msec;

    if (inf_node_answer_read(inf_slice((char *) fetch->answer,
                                       fetch->received), &answer)
        == INF_NODE_ANSWER_COMPLETE)
    {
        ngx_http_inference_probe_note(probe, &answer);
        return;
    }

    (void) ngx_http_inference_probe_state(probe,
                                          NGX_HTTP_INFERENCE_NODE_UNKNOWN);
    probe->node->reported = 0;

    text.data = fetch->answer;
    text.len = ngx_min(fetch->received, 64);

    ngx_http_inference_probe_misreport(probe, "answers no HTTP/1 (\"port=\" "
                                       "of \"inference_balance\" names "
                                       "another port)", &text);
}


/* Handles a failed probe.  One failure may be a lost packet: the node is asked
   again before its sequences are given up. */

static void
ngx_http_inference_probe_failed(ngx_http_inference_probe_t *probe)
{
    if (ngx_atomic_fetch_add(&probe->node->failures, 1) == 0) {
        ngx_log_error(NGX_LOG_INFO, ngx_cycle->log, probe->fetch.err,
                      "inference: node %V of upstream \"%V\" %s: it is asked "
                      "again", &probe->name, &probe->balance->name,
                      probe->fetch.why);
        return;
    }

    if (ngx_http_inference_probe_state(probe,
                                       NGX_HTTP_INFERENCE_NODE_DOWN))
    {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, probe->fetch.err,
                      "inference: node %V of upstream \"%V\" %s: it gets no "
                      "requests", &probe->name, &probe->balance->name,
                      probe->fetch.why);
    }
}


static void
ngx_http_inference_probe_note(ngx_http_inference_probe_t *probe,
    inf_node_answer_t *answer)
{
    ngx_http_inference_node_state_e  state;

    state = (answer->status == NGX_HTTP_OK)
            ? NGX_HTTP_INFERENCE_NODE_READY
            : NGX_HTTP_INFERENCE_NODE_NOT_READY;

    if (ngx_http_inference_probe_state(probe, state)) {

        if (state == NGX_HTTP_INFERENCE_NODE_READY) {
            ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                          "inference: node %V of upstream \"%V\" is ready",
                          &probe->name, &probe->balance->name);

        } else {
            ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                          "inference: node %V of upstream \"%V\" is not ready "
                          "(it answers %uD): it gets no requests",
                          &probe->name, &probe->balance->name,
                          answer->status);
        }
    }

    ngx_http_inference_probe_report(probe, answer);
}


static void
ngx_http_inference_probe_report(ngx_http_inference_probe_t *probe,
    inf_node_answer_t *answer)
{
    ngx_str_t                   text;
    ngx_http_inference_node_t  *node;

    node = probe->node;

    switch (answer->queue_state) {

    case INF_NODE_QUEUE_NONE:
        node->reported = 0;
        node->misreports = 0;
        return;

    case INF_NODE_QUEUE_INVALID:
        node->reported = 0;

        text.data = (u_char *) answer->report.data;
        text.len = ngx_min(answer->report.len, 64);

        ngx_http_inference_probe_misreport(probe, "reports an impossible "
                                           "queue", &text);
        return;

    case INF_NODE_QUEUE_REPORTED:
        node->misreports = 0;
        node->base = node->requests;
        node->queue = answer->queue;
        node->reported = ngx_max(ngx_current_msec, 1);
        return;
    }
}


/* Logs an invalid report; of consecutive ones only the first. */

static void
ngx_http_inference_probe_misreport(ngx_http_inference_probe_t *probe,
    const char *what, ngx_str_t *text)
{
    u_char  shown[4 * 64], *p;
    size_t  i;

    if (!ngx_atomic_cmp_set(&probe->node->misreports, 0, 1)) {
        return;
    }

    p = shown;

    for (i = 0; i < text->len; i++) {
        if (text->data[i] < ' ' || text->data[i] > '~') {
            p = ngx_sprintf(p, "\\x%02Xd", (int) text->data[i]);

        } else {
            *p++ = text->data[i];
        }
    }

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "inference: node %V of upstream \"%V\" %s: its queue counts "
                  "as unknown; it says \"%*s\"", &probe->name,
                  &probe->balance->name, what, (size_t) (p - shown), shown);
}


/* Sets the state; returns whether it has changed. */

static ngx_uint_t
ngx_http_inference_probe_state(ngx_http_inference_probe_t *probe,
    ngx_http_inference_node_state_e state)
{
    ngx_uint_t  changed;

    changed = (probe->node->state != (ngx_atomic_uint_t) state);

    probe->node->state = state;

    return changed;
}
