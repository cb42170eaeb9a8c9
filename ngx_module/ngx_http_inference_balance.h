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


/* maximum of servers of one upstream, over all configurations with requests */
#define NGX_HTTP_INFERENCE_NODES  256

#define NGX_HTTP_INFERENCE_BUCKETS        8192
#define NGX_HTTP_INFERENCE_BUCKET_PLACES  8


typedef enum {
    NGX_HTTP_INFERENCE_NODE_UNKNOWN = 0,    /* not asked yet, or the answers
                                               lack the state                */
    NGX_HTTP_INFERENCE_NODE_READY,
    NGX_HTTP_INFERENCE_NODE_NOT_READY,      /* as it reports                 */
    NGX_HTTP_INFERENCE_NODE_DOWN            /* unreachable                   */
} ngx_http_inference_node_state_e;


/* A node in shared memory; socklen 0 marks a free entry. */
typedef struct {
    ngx_sockaddr_t              sockaddr;       /* as configured             */
    socklen_t                   socklen;        /* 0: free                   */
    ngx_atomic_t                state;          /* ..._node_state_e          */
    ngx_atomic_t                requests;       /* our requests in flight    */
    ngx_atomic_t                queue;          /* reported queue length     */
    ngx_atomic_t                base;           /* requests at the report    */
    ngx_atomic_t                reported;       /* time of it, ms; 0: never  */
    ngx_atomic_t                placed;         /* time of this entry, ms    */
    ngx_atomic_t                probed;         /* start of the last probe; 0:
                                                   due                       */
    ngx_atomic_t                answered;       /* time of the last answer   */
    ngx_atomic_t                failures;       /* consecutive, of probes    */
    ngx_atomic_t                misreports;     /* 1: the last report was
                                                   invalid                   */
} ngx_http_inference_node_t;


typedef struct {
    uint64_t                    key;
    uint32_t                    node;           /* 1 + index; 0: free        */
    uint32_t                    used;           /* last use, s               */
} ngx_http_inference_sequence_t;

typedef struct {
    ngx_http_inference_sequence_t  places[NGX_HTTP_INFERENCE_BUCKET_PLACES];
} ngx_http_inference_bucket_t;


typedef struct {
    u_char                      secret[16];     /* for the keys of sequences */
    ngx_http_inference_node_t   nodes[NGX_HTTP_INFERENCE_NODES];
    ngx_http_inference_bucket_t  buckets[];     /* with "sequence=" only     */
} ngx_http_inference_nodes_t;


/* The balance of one upstream{}. */
typedef struct {
    ngx_str_t                   name;
    ngx_http_complex_value_t   *sequence;       /* NULL: no sequences        */
    in_port_t                   port;           /* of probes; 0: the node's  */
    ngx_str_t                   uri;            /* of probes                 */
    ngx_msec_t                  interval;       /* between two probes        */
    ngx_array_t                 addrs;          /* ngx_addr_t of all nodes   */
    ngx_shm_zone_t             *zone;
    ngx_http_inference_nodes_t *shared;         /* NULL: no zone yet         */
    u_char                     *file;           /* of the directive; NULL:
                                                   none                      */
    ngx_uint_t                  line;
} ngx_http_inference_balance_t;


/* The directive, and nginx's callback for an upstream's values. */
char *ngx_http_inference_balance_directive(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
void *ngx_http_inference_create_srv_conf(ngx_conf_t *cf);

/* After http{} was read: checks that no other method balances the upstream. */
ngx_int_t ngx_http_inference_balance_verify(ngx_conf_t *cf);


/* ---- balance_nodes.c ----------------------------------------------------- */

/* Adds the addresses of peers to balance->addrs. */
ngx_int_t ngx_http_inference_balance_add_nodes(
    ngx_http_inference_balance_t *balance,
    ngx_http_upstream_rr_peers_t *peers);

/* Adds the shared zone of a balanced upstream. */
ngx_int_t ngx_http_inference_balance_add_zone(ngx_conf_t *cf,
    ngx_http_inference_balance_t *balance);

/* In a worker: the entry of addr, added if missing.  NULL: no entry is free. */
ngx_http_inference_node_t *ngx_http_inference_place_node(
    ngx_http_inference_balance_t *balance, ngx_addr_t *addr);

/* The entry of an address; the search begins at hint.  NULL: none. */
ngx_http_inference_node_t *ngx_http_inference_find_node(
    ngx_http_inference_nodes_t *shared, struct sockaddr *sockaddr,
    socklen_t socklen, ngx_uint_t hint);


/* ---- balance_sequence.c -------------------------------------------------- */

/* The key of a sequence id; 0: value names no sequence. */
uint64_t ngx_http_inference_sequence_key(
    ngx_http_inference_balance_t *balance, ngx_str_t *value);

/* The node of a sequence; NULL: unknown. */
ngx_http_inference_node_t *ngx_http_inference_sequence_find(
    ngx_http_inference_balance_t *balance, uint64_t key);

/* Stores the node of a sequence; node NULL: removes the sequence.
   NGX_DECLINED: no room. */
ngx_int_t ngx_http_inference_sequence_put(
    ngx_http_inference_balance_t *balance, uint64_t key,
    ngx_http_inference_node_t *node);

/* Removes all sequences of node.  The caller holds the zone's mutex. */
void ngx_http_inference_sequence_forget(ngx_http_inference_balance_t *balance,
    ngx_http_inference_node_t *node);


/* ---- balance_peer.c ------------------------------------------------------ */

/* nginx's callback that prepares the choice of a peer for a request. */
ngx_int_t ngx_http_inference_balance_init_peer(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us);


/* ---- balance_lost.c ------------------------------------------------------ */

/* how the node of a request of a sequence was found */
typedef enum {
    NGX_HTTP_INFERENCE_SEQUENCE_STAYS = 0,      /* same node as before       */
    NGX_HTTP_INFERENCE_SEQUENCE_BEGINS,         /* no node is known          */
    NGX_HTTP_INFERENCE_SEQUENCE_MOVED,          /* its node is gone          */
    NGX_HTTP_INFERENCE_SEQUENCE_LOST            /* and the client gets an
                                                   error                     */
} ngx_http_inference_passage_e;

typedef struct {
    ngx_http_upstream_rr_peer_data_t  rrp;      /* must be first; round robin's
                                                   data, with the peers of the
                                                   current group             */
    ngx_http_upstream_rr_peers_t  *groups;      /* the second group: backup
                                                   servers                   */
    uintptr_t                  *tried;          /* a bit for each peer of all
                                                   groups                    */
    ngx_http_request_t         *request;
    ngx_http_inference_balance_t  *balance;
    ngx_http_inference_node_t  *node;           /* counts this request       */
    ngx_http_inference_node_t  *last;           /* chosen last               */
    ngx_uint_t                  index;          /* of its peer, over all
                                                   groups                    */
    uint64_t                    key;            /* 0: no sequence            */
    ngx_http_inference_passage_e  passage;
} ngx_http_inference_peer_t;

/* Installs the header filter, for responses of other handlers. */
void ngx_http_inference_lost_install_filter(void);

/* Makes peer known to that filter. */
ngx_int_t ngx_http_inference_lost_watch(ngx_http_inference_peer_t *peer);


/* ---- balance_probe.c ----------------------------------------------------- */

/* In a worker: adds the nodes of all upstreams to the zones and starts the
   probes. */
ngx_int_t ngx_http_inference_probes_init(ngx_cycle_t *cycle);


#endif /* NGX_HTTP_INFERENCE_BALANCE_H */
