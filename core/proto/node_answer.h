/*
 * node_answer.h - the head of another server's answer: its status, and the
 *                 queue length in a node's load report (ORCA).
 *
 * Owner    The caller's memory.
 * Thread   any.
 * Units    requests; bytes.
 * Errors   A text that is not HTTP/1, or an implausible report, is a state:
 *          the caller logs it with the node's name.
 * Route    socket of a fetch -> [node answer] -> state of the node.
 */

#ifndef INF_PROTO_NODE_ANSWER_H
#define INF_PROTO_NODE_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/slice.h"

/* The longest accepted head. */
#define INF_NODE_ANSWER_MAX  4096u

/* The longest plausible queue; a longer one is invalid. */
#define INF_NODE_QUEUE_MAX   1000000u

/* The name of the queue in a load report. */
#define INF_NODE_QUEUE_NAME  "queue_depth"

typedef enum {
    INF_NODE_ANSWER_PARTIAL,    /* the head is not complete                  */
    INF_NODE_ANSWER_GARBAGE,    /* not a head of HTTP/1                      */
    INF_NODE_ANSWER_COMPLETE
} inf_node_answer_state_t;

typedef enum {
    INF_NODE_QUEUE_NONE,        /* not reported                              */
    INF_NODE_QUEUE_REPORTED,
    INF_NODE_QUEUE_INVALID      /* not a number, or out of range             */
} inf_node_queue_state_t;

typedef struct {
    uint32_t               status;      /* of HTTP: 100 to 999               */
    inf_node_queue_state_t queue_state;
    uint32_t               queue;       /* if REPORTED                       */
    inf_slice_t            report;      /* the report's text; empty: none    */
    size_t                 head;        /* length of the head                */
    bool                   chunked;     /* whether the body is               */
} inf_node_answer_t;

/* Reads the head; out is filled if it is COMPLETE, and points into bytes. */
inf_node_answer_state_t inf_node_answer_read(inf_slice_t bytes,
    inf_node_answer_t *out);

#endif /* INF_PROTO_NODE_ANSWER_H */
