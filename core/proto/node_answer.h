/*
 * node_answer.h - the head of another server's answer: its status, and the
 *                 queue that a node's load report (ORCA) tells of.
 *
 * Owner    The caller's memory.
 * Thread   any.
 * Units    requests; bytes.
 * Errors   A text that is no HTTP/1 and a report that cannot be true are
 *          values: the caller says which node has sent them.
 * Route    socket of a fetch -> [node answer] -> state of the node.
 */

#ifndef INF_PROTO_NODE_ANSWER_H
#define INF_PROTO_NODE_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/slice.h"

/* The longest head that is read. */
#define INF_NODE_ANSWER_MAX  4096u

/* A queue that is longer is a lie: no node holds as many requests. */
#define INF_NODE_QUEUE_MAX   1000000u

/* How a load report names the queue. */
#define INF_NODE_QUEUE_NAME  "queue_depth"

typedef enum {
    INF_NODE_ANSWER_PARTIAL,    /* the head's end is still to come           */
    INF_NODE_ANSWER_GARBAGE,    /* no head of HTTP/1                         */
    INF_NODE_ANSWER_COMPLETE
} inf_node_answer_state_t;

typedef enum {
    INF_NODE_QUEUE_NONE,        /* not reported                              */
    INF_NODE_QUEUE_REPORTED,
    INF_NODE_QUEUE_INVALID      /* no number, or one out of range            */
} inf_node_queue_state_t;

typedef struct {
    uint32_t               status;      /* of HTTP: 100 to 999               */
    inf_node_queue_state_t queue_state;
    uint32_t               queue;       /* of a REPORTED one                 */
    inf_slice_t            report;      /* the report's text; empty: none    */
    size_t                 head;        /* its length                        */
    bool                   chunked;     /* the body is                       */
} inf_node_answer_t;

/* out is filled when the head is COMPLETE, and points into bytes. */
inf_node_answer_state_t inf_node_answer_read(inf_slice_t bytes,
    inf_node_answer_t *out);

#endif /* INF_PROTO_NODE_ANSWER_H */
