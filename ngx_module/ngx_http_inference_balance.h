/*
 * ngx_http_inference_balance.h - "inference_balance queue": which node of an
 *                                upstream{} gets a request.
 *
 * Owner    Configuration belongs to its cycle's pool; nodes and sequences lie
 *          in a shared zone that reloads keep; a probe belongs to its worker.
 * Thread   the worker's event loop; shared fields are atomic, sequences are
 *          under the zone's mutex.
 * Units    ms, requests.
 * Errors   nginx return codes; the state of a node is logged when it changes.
 * Route    probe -> node <- peer (with sequence) -> nginx's upstream; lost.
 */

#ifndef NGX_HTTP_INFERENCE_BALANCE_H
#define NGX_HTTP_INFERENCE_BALANCE_H

#include "ngx_module/ngx_http_inference.h"


/* servers of one upstream, of all configurations that still have requests */
#define NGX_HTTP_INFERENCE_NODES  256

#define NGX_HTTP_INFERENCE_BUCKETS        8192
#define NGX_HTTP_INFERENCE_BUCKET_PLACES  8


typedef enum {
    NGX_HTTP_INFERENCE_NODE_UNKNOWN = 0,    /* not asked yet, or its answers
                                               say nothing                   */
    NGX_HTTP_INFERENCE_NODE_READY,
    NGX_HTTP_INFERENCE_NODE_NOT_READY,      /* it says so                    */
    NGX_HTTP_INFERENCE_NODE_DOWN            /* it cannot be reached          */
} ngx_http_inference_node_state_e;


/* In shared memory; an address of {} is a free entry. */
typedef struct {
    ngx_sockaddr_t              sockaddr;       /* as the configuration says */
    socklen_t                   socklen;        /* 0: free                   */
    ngx_atomic_t                state;          /* ..._node_state_e          */
    ngx_atomic_t                requests;       /* ours that are there       */
    ngx_atomic_t                queue;          /* as it was reported, ...   */
    ngx_atomic_t                base;           /* ... with so many of ours  */
    ngx_atomic_t                reported;       /* when, ms; 0: never        */
    ngx_atomic_t                placed;         /* when it got this entry    */
    ngx_atomic_t                probed;         /* when the last probe began;
                                                   0: one is due             */
    ngx_atomic_t                answered;       /* when it last did          */
    ngx_atomic_t                failures;       /* of probes, in a row       */
    ngx_atomic_t                misreports;     /* 1: so was the last one    */
} ngx_http_inference_node_t;


typedef struct {
    uint64_t                    key;
    uint32_t                    node;           /* 1 + its index; 0: free    */
    uint32_t                    used;           /* when, s                   */
} ngx_http_inference_sequence_t;

typedef struct {
    ngx_http_inference_sequence_t  places[NGX_HTTP_INFERENCE_BUCKET_PLACES];
} ngx_http_inference_bucket_t;


typedef struct {
    u_char                      secret[16];     /* of the sequences' keys    */
    ngx_http_inference_node_t   nodes[NGX_HTTP_INFERENCE_NODES];
    ngx_http_inference_bucket_t  buckets[];     /* of a balance with
                                                   "sequence="               */
} ngx_http_inference_nodes_t;


/* Of an upstream{}. */
typedef struct {
    ngx_str_t                   name;
    ngx_http_complex_value_t   *sequence;       /* NULL: none stick          */
    in_port_t                   port;           /* of probes; 0: the node's  */
    ngx_str_t                   uri;            /* of them                   */
    ngx_msec_t                  interval;       /* between two               */
    ngx_array_t                 addrs;          /* ngx_addr_t of all nodes   */
    ngx_shm_zone_t             *zone;
    ngx_http_inference_nodes_t *shared;         /* NULL: no such zone yet    */
    u_char                     *file;           /* where the directive
                                                   stands; NULL: nowhere     */
    ngx_uint_t                  line;
} ngx_http_inference_balance_t;


/* The directive, and nginx's callback for an upstream's values. */
char *ngx_http_inference_balance_directive(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
void *ngx_http_inference_create_srv_conf(ngx_conf_t *cf);

/* Once all of http{} is read: no other method has taken an upstream over. */
ngx_int_t ngx_http_inference_balance_verify(ngx_conf_t *cf);


/* ---- balance_nodes.c ----------------------------------------------------- */

/* Adds the addresses of peers to those of balance. */
ngx_int_t ngx_http_inference_balance_add_nodes(
    ngx_http_inference_balance_t *balance,
    ngx_http_upstream_rr_peers_t *peers);

/* Adds the shared zone of a balanced upstream. */
ngx_int_t ngx_http_inference_balance_add_zone(ngx_conf_t *cf,
    ngx_http_inference_balance_t *balance);

/* In a worker: its entry, a new one if need be.  NULL: there is no room. */
ngx_http_inference_node_t *ngx_http_inference_place_node(
    ngx_http_inference_balance_t *balance, ngx_addr_t *addr);

/* NULL: an address without an entry. */
ngx_http_inference_node_t *ngx_http_inference_find_node(
    ngx_http_inference_nodes_t *shared, struct sockaddr *sockaddr,
    socklen_t socklen, ngx_uint_t hint);


/* ---- balance_sequence.c -------------------------------------------------- */

/* 0: a value that is no sequence. */
uint64_t ngx_http_inference_sequence_key(
    ngx_http_inference_balance_t *balance, ngx_str_t *value);

/* NULL: not known, or forgotten. */
ngx_http_inference_node_t *ngx_http_inference_sequence_find(
    ngx_http_inference_balance_t *balance, uint64_t key);

/* The sequence is there from now on; NULL: nowhere.  NGX_DECLINED: there is no
   room. */
ngx_int_t ngx_http_inference_sequence_put(
    ngx_http_inference_balance_t *balance, uint64_t key,
    ngx_http_inference_node_t *node);

/* Those of node are nowhere.  The caller holds the zone's mutex. */
void ngx_http_inference_sequence_forget(ngx_http_inference_balance_t *balance,
    ngx_http_inference_node_t *node);


/* ---- balance_peer.c ------------------------------------------------------ */

/* nginx's callback for a request: it gets a peer. */
ngx_int_t ngx_http_inference_balance_init_peer(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us);


/* ---- balance_lost.c ------------------------------------------------------ */

/* How a request of a sequence has found its node. */
typedef enum {
    NGX_HTTP_INFERENCE_SEQUENCE_STAYS = 0,      /* it is where it was        */
    NGX_HTTP_INFERENCE_SEQUENCE_BEGINS,         /* no node is known to have
                                                   it                        */
    NGX_HTTP_INFERENCE_SEQUENCE_MOVED,          /* the node that had it is
                                                   gone                      */
    NGX_HTTP_INFERENCE_SEQUENCE_LOST            /* and its client is told    */
} ngx_http_inference_passage_e;

typedef struct {
    ngx_http_upstream_rr_peer_data_t  rrp;      /* first: round robin's own;
                                                   its peers are the group of
                                                   the current one           */
    ngx_http_upstream_rr_peers_t  *groups;      /* backup servers are the next
                                                   one                       */
    uintptr_t                  *tried;          /* bits of peers, in all     */
    ngx_http_request_t         *request;
    ngx_http_inference_balance_t  *balance;
    ngx_http_inference_node_t  *node;           /* counts this request       */
    ngx_http_inference_node_t  *last;           /* that was chosen           */
    ngx_uint_t                  index;          /* of its peer, in all       */
    uint64_t                    key;            /* 0: of no sequence         */
    ngx_http_inference_passage_e  passage;
} ngx_http_inference_peer_t;

/* Answers of other handlers pass through it. */
void ngx_http_inference_lost_install_filter(void);

/* Lets that filter find peer. */
ngx_int_t ngx_http_inference_lost_watch(ngx_http_inference_peer_t *peer);


/* ---- balance_probe.c ----------------------------------------------------- */

/* In a worker: the nodes of all upstreams have entries, and are asked from now
   on. */
ngx_int_t ngx_http_inference_probes_init(ngx_cycle_t *cycle);


#endif /* NGX_HTTP_INFERENCE_BALANCE_H */
