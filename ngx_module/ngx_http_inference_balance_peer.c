/*
 * ngx_http_inference_balance_peer.c - the choice of a node: the one with the
 *                                     request's sequence, else the one with the
 *                                     shortest queue for its weight.
 */

#include "ngx_module/ngx_http_inference_balance.h"


/* Reports older than this are ignored.  In intervals of at least one second,
   because probes of a busy worker are late. */
#define NGX_HTTP_INFERENCE_REPORT_AGE  3

#define NGX_HTTP_INFERENCE_WORD  (8 * sizeof(uintptr_t))


typedef struct {
    ngx_http_upstream_rr_peers_t  *group;       /* of peer                   */
    ngx_http_upstream_rr_peer_t   *peer;
    ngx_http_inference_node_t     *node;        /* NULL: not in the zone     */
    ngx_uint_t                     index;       /* of peer, in all groups    */
    ngx_uint_t                     load;        /* with this request         */
    ngx_uint_t                     equal;       /* candidates with this load */
} ngx_http_inference_choice_t;


static ngx_uint_t ngx_http_inference_balance_number(
    ngx_http_upstream_rr_peers_t *groups);
static ngx_int_t ngx_http_inference_balance_get(ngx_peer_connection_t *pc,
    void *data);
static void ngx_http_inference_balance_lock(
    ngx_http_upstream_rr_peers_t *groups);
static void ngx_http_inference_balance_unlock(
    ngx_http_upstream_rr_peers_t *groups);
static void ngx_http_inference_balance_free(ngx_peer_connection_t *pc,
    void *data, ngx_uint_t state);
static ngx_int_t ngx_http_inference_balance_choose(
    ngx_http_inference_peer_t *bp, ngx_http_inference_choice_t *choice);
static ngx_int_t ngx_http_inference_balance_choose_in(
    ngx_http_inference_peer_t *bp, ngx_http_inference_node_t *keeper,
    ngx_http_inference_choice_t *choice, ngx_http_inference_choice_t *other);
static ngx_uint_t ngx_http_inference_balance_tried(
    ngx_http_inference_peer_t *bp, ngx_uint_t index);
static ngx_uint_t ngx_http_inference_balance_full(
    ngx_http_upstream_rr_peer_t *peer);
static ngx_uint_t ngx_http_inference_balance_usable(
    ngx_http_inference_peer_t *bp, ngx_http_upstream_rr_peer_t *peer,
    ngx_http_inference_node_t *node);
static void ngx_http_inference_balance_compare(
    ngx_http_inference_choice_t *choice, ngx_http_inference_choice_t *other);
static ngx_uint_t ngx_http_inference_balance_load(
    ngx_http_inference_balance_t *balance, ngx_http_upstream_rr_peer_t *peer,
    ngx_http_inference_node_t *node);
static void ngx_http_inference_balance_take(ngx_peer_connection_t *pc,
    ngx_http_inference_peer_t *bp, ngx_http_inference_choice_t *choice);
static ngx_uint_t ngx_http_inference_balance_stale(
    ngx_peer_connection_t *pc, ngx_http_inference_peer_t *bp,
    ngx_uint_t state);


ngx_int_t
ngx_http_inference_balance_init_peer(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us)
{
    ngx_str_t                      value;
    ngx_uint_t                     n;
    ngx_http_inference_peer_t     *bp;
    ngx_http_inference_balance_t  *balance;

    balance = ngx_http_conf_upstream_srv_conf(us, ngx_http_inference_module);

    bp = ngx_pcalloc(r->pool, sizeof(ngx_http_inference_peer_t));
    if (bp == NULL) {
        return NGX_ERROR;
    }

    bp->request = r;
    bp->balance = balance;

    r->upstream->peer.data = &bp->rrp;

    if (ngx_http_upstream_init_round_robin_peer(r, us) != NGX_OK) {
        return NGX_ERROR;
    }

    bp->groups = bp->rrp.peers;

    n = ngx_http_inference_balance_number(bp->groups);

    bp->tried = ngx_pcalloc(r->pool, (n / NGX_HTTP_INFERENCE_WORD + 1)
                                     * sizeof(uintptr_t));
    if (bp->tried == NULL) {
        return NGX_ERROR;
    }

    r->upstream->peer.get = ngx_http_inference_balance_get;
    r->upstream->peer.free = ngx_http_inference_balance_free;

    if (balance->sequence == NULL) {
        return NGX_OK;
    }

    if (ngx_http_complex_value(r, balance->sequence, &value) != NGX_OK) {
        return NGX_ERROR;
    }

    bp->key = ngx_http_inference_sequence_key(balance, &value);

    return bp->key ? ngx_http_inference_lost_watch(bp) : NGX_OK;
}


static ngx_uint_t
ngx_http_inference_balance_number(ngx_http_upstream_rr_peers_t *groups)
{
    ngx_uint_t                     n;
    ngx_http_upstream_rr_peers_t  *group;

    n = 0;

    for (group = groups; group; group = group->next) {
        n += group->number;
    }

    return n;
}


static ngx_int_t
ngx_http_inference_balance_get(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_inference_peer_t *bp = data;

    ngx_int_t                    rc;
    ngx_http_inference_choice_t  choice;

    pc->cached = 0;
    pc->connection = NULL;

    ngx_http_inference_balance_lock(bp->groups);

    rc = ngx_http_inference_balance_choose(bp, &choice);

    if (rc == NGX_OK) {
        ngx_http_inference_balance_take(pc, bp, &choice);
    }

    ngx_http_inference_balance_unlock(bp->groups);

    if (rc != NGX_OK) {
        pc->name = bp->groups->name;
        return NGX_BUSY;
    }

    if (bp->key && choice.node
        && ngx_http_inference_sequence_put(bp->balance, bp->key, choice.node)
           != NGX_OK)
    {
        ngx_log_error(NGX_LOG_WARN, pc->log, 0,
                      "inference: no room for one more sequence of upstream "
                      "\"%V\": its requests may go to different nodes",
                      &bp->balance->name);
    }

    return NGX_OK;
}


static void
ngx_http_inference_balance_lock(ngx_http_upstream_rr_peers_t *groups)
{
    ngx_http_upstream_rr_peers_t  *group;

    for (group = groups; group; group = group->next) {
        ngx_http_upstream_rr_peers_wlock(group);
    }
}


static void
ngx_http_inference_balance_unlock(ngx_http_upstream_rr_peers_t *groups)
{
    ngx_http_upstream_rr_peers_t  *group;

    for (group = groups; group; group = group->next) {
        ngx_http_upstream_rr_peers_unlock(group);
    }
}


/* Chooses a peer of any group.  NGX_BUSY: none. */

static ngx_int_t
ngx_http_inference_balance_choose(ngx_http_inference_peer_t *bp,
    ngx_http_inference_choice_t *choice)
{
    ngx_int_t                     rc;
    ngx_http_inference_node_t    *keeper;
    ngx_http_inference_choice_t   other;

    keeper = bp->key ? ngx_http_inference_sequence_find(bp->balance, bp->key)
                     : NULL;

    ngx_memzero(choice, sizeof(ngx_http_inference_choice_t));
    ngx_memzero(&other, sizeof(ngx_http_inference_choice_t));

    for (other.group = bp->groups; other.group;
         other.group = other.group->next)
    {
        rc = ngx_http_inference_balance_choose_in(bp, keeper, choice, &other);

        if (rc != NGX_DECLINED) {
            return rc;
        }
    }

    if (bp->passage == NGX_HTTP_INFERENCE_SEQUENCE_STAYS) {
        bp->passage = keeper ? NGX_HTTP_INFERENCE_SEQUENCE_MOVED
                             : NGX_HTTP_INFERENCE_SEQUENCE_BEGINS;
    }

    return choice->peer ? NGX_OK : NGX_BUSY;
}


/* Compares the peers of a group, unless an earlier group has a peer to choose.
   NGX_DECLINED: the keeper (node of the sequence) is not in this group. */

static ngx_int_t
ngx_http_inference_balance_choose_in(ngx_http_inference_peer_t *bp,
    ngx_http_inference_node_t *keeper, ngx_http_inference_choice_t *choice,
    ngx_http_inference_choice_t *other)
{
    ngx_http_upstream_rr_peer_t  *peer;

    for (peer = other->group->peer; peer; peer = peer->next, other->index++) {

        if (peer->down || ngx_http_inference_balance_tried(bp, other->index)) {
            continue;
        }

        other->peer = peer;
        other->node = ngx_http_inference_find_node(bp->balance->shared,
                                                   peer->sockaddr,
                                                   peer->socklen,
                                                   other->index);

        /* a node that is not ready may still have its sequences; sequences of a
           full node do not move, as they would be lost */

        if (keeper && other->node == keeper
            && keeper->state != NGX_HTTP_INFERENCE_NODE_DOWN)
        {
            *choice = *other;
            return ngx_http_inference_balance_full(peer) ? NGX_BUSY : NGX_OK;
        }

        if ((choice->peer == NULL || choice->group == other->group)
            && ngx_http_inference_balance_usable(bp, peer, other->node))
        {
            other->load = ngx_http_inference_balance_load(bp->balance, peer,
                                                          other->node);
            ngx_http_inference_balance_compare(choice, other);
        }
    }

    return NGX_DECLINED;
}


/* Whether the peer was tried.  A single peer is tried again and never marked
   failed, as in nginx. */

static ngx_uint_t
ngx_http_inference_balance_tried(ngx_http_inference_peer_t *bp,
    ngx_uint_t index)
{
    return !bp->groups->single
           && (bp->tried[index / NGX_HTTP_INFERENCE_WORD]
               & (uintptr_t) 1 << index % NGX_HTTP_INFERENCE_WORD);
}


static ngx_uint_t
ngx_http_inference_balance_full(ngx_http_upstream_rr_peer_t *peer)
{
    return peer->max_conns && peer->conns >= peer->max_conns;
}


static ngx_uint_t
ngx_http_inference_balance_usable(ngx_http_inference_peer_t *bp,
    ngx_http_upstream_rr_peer_t *peer, ngx_http_inference_node_t *node)
{
    if (node && (node->state == NGX_HTTP_INFERENCE_NODE_NOT_READY
                 || node->state == NGX_HTTP_INFERENCE_NODE_DOWN))
    {
        return 0;
    }

    if (ngx_http_inference_balance_full(peer)) {
        return 0;
    }

    return bp->groups->single
           || peer->max_fails == 0
           || peer->fails < peer->max_fails
           || ngx_time() - peer->checked > peer->fail_timeout;
}


/* Keeps the better candidate; equal ones are chosen with equal probability. */

static void
ngx_http_inference_balance_compare(ngx_http_inference_choice_t *choice,
    ngx_http_inference_choice_t *other)
{
    ngx_uint_t  mine, best, equal;

    if (choice->peer == NULL) {
        *choice = *other;
        choice->equal = 1;
        return;
    }

    mine = other->load * choice->peer->weight;
    best = choice->load * other->peer->weight;

    if (mine > best) {
        return;
    }

    equal = (mine == best) ? choice->equal + 1 : 1;

    if (equal == 1 || (ngx_uint_t) ngx_random() % equal == 0) {
        *choice = *other;
    }

    choice->equal = equal;
}


/*
 * The load of a node: its reported queue, corrected by our requests sent and
 * finished since the report.  So an old report is still useful, and a count
 * left by a killed worker cancels out.
 */

static ngx_uint_t
ngx_http_inference_balance_load(ngx_http_inference_balance_t *balance,
    ngx_http_upstream_rr_peer_t *peer, ngx_http_inference_node_t *node)
{
    ngx_int_t   load;
    ngx_msec_t  reported;

    if (node == NULL) {
        return peer->conns + 1;
    }

    load = (ngx_int_t) node->requests;
    reported = node->reported;

    /* the clock of the worker that stored it may be ahead */

    if (reported
        && (ngx_msec_int_t) (ngx_current_msec - reported)
           <= (ngx_msec_int_t) (NGX_HTTP_INFERENCE_REPORT_AGE
                                * ngx_max(balance->interval, 1000)))
    {
        load += (ngx_int_t) node->queue - (ngx_int_t) node->base;
    }

    return (load > 0) ? load + 1 : 1;
}


static void
ngx_http_inference_balance_take(ngx_peer_connection_t *pc,
    ngx_http_inference_peer_t *bp, ngx_http_inference_choice_t *choice)
{
    time_t                        now;
    ngx_http_upstream_rr_peer_t  *peer;

    now = ngx_time();
    peer = choice->peer;

    if (now - peer->checked > peer->fail_timeout) {
        peer->checked = now;
    }

    pc->sockaddr = peer->sockaddr;
    pc->socklen = peer->socklen;
    pc->name = &peer->name;

    peer->conns++;

#ifdef ngx_http_upstream_rr_peer_ref
    ngx_http_upstream_rr_peer_ref(choice->group, peer);
#endif

    bp->rrp.peers = choice->group;
    bp->rrp.current = peer;
    bp->tried[choice->index / NGX_HTTP_INFERENCE_WORD] |=
                   (uintptr_t) 1 << choice->index % NGX_HTTP_INFERENCE_WORD;

    bp->node = choice->node;
    bp->last = choice->node;
    bp->index = choice->index;

    if (bp->node) {
        (void) ngx_atomic_fetch_add(&bp->node->requests, 1);
    }
}


static void
ngx_http_inference_balance_free(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state)
{
    ngx_http_inference_peer_t *bp = data;

    /* after an hour the entry may belong to another node */

    if (bp->node
        && ngx_cmp_sockaddr(&bp->node->sockaddr.sockaddr, bp->node->socklen,
                            pc->sockaddr, pc->socklen, 1)
           == NGX_OK)
    {
        (void) ngx_atomic_fetch_add(&bp->node->requests, -1);
    }

    bp->node = NULL;

    if (bp->key && ngx_http_inference_balance_stale(pc, bp, state)) {
        bp->tried[bp->index / NGX_HTTP_INFERENCE_WORD] &=
                ~((uintptr_t) 1 << bp->index % NGX_HTTP_INFERENCE_WORD);
    }

    ngx_http_upstream_free_round_robin_peer(pc, &bp->rrp, state);
}


/* Whether the failure is a closed keepalive connection to a running node: nginx
   tries again, and the sequence must not move. */

static ngx_uint_t
ngx_http_inference_balance_stale(ngx_peer_connection_t *pc,
    ngx_http_inference_peer_t *bp, ngx_uint_t state)
{
    return pc->cached
           && (state & NGX_PEER_FAILED)
           && pc->connection
           && !pc->connection->read->timedout
           && !pc->connection->write->timedout
           && bp->request->upstream->headers_in.status_n == 0;
}
