/*
 * points.h - numbered points in the processing of a request, where a test can
 *            stop or end the process.
 *
 * Owner    The test owns the file that INF_POINT_AT names in the environment.
 * Thread   any.
 * Units    none.
 * Errors   none: without the file, or if it names another point, nothing
 *          happens.
 * Route    none; compiled only in builds with INF_POINTS.
 *
 * The file has one line, a point and an action: "QUEUED kill" or "QUEUED
 * stop".  The first process that reaches the point renames the file, appending
 * ".hit", so that the action runs once.
 */

#ifndef INF_BASE_POINTS_H
#define INF_BASE_POINTS_H

/* In the order of a request; t/62-points has a test of each. */
#define INF_POINTS_OF_A_REQUEST(X)                                           \
    X(BODY_RECEIVED)            /* worker: all bytes are in the arena        */\
    X(RECORD_WRITTEN)           /* worker: and so is the record              */\
    X(ENTRY_WRITTEN)            /* worker: into the ring                     */\
    X(CORE_NOTIFIED)            /* worker: by the eventfd                    */\
    X(ENTRY_TAKEN)              /* core: off the ring                        */\
    X(RECORD_COPIED)            /* core: and checked                         */\
    X(REQUEST_CHECKED)          /* core: against its model                   */\
    X(SLOT_QUEUED)              /* core: the worker can see it               */\
    X(REQUEST_QUEUED)           /* core: the model's scheduler has it        */\
    X(PAYLOAD_TAKEN)            /* core: an instance thread has formed it    */\
    X(SLOT_EXECUTING)           /* core: the worker can see it               */\
    X(BACKEND_CALLED)           /* core: about to execute                    */\
    X(OUTPUT_ALLOCATED)         /* core: in the response arena               */\
    X(RESPONSE_WRITTEN)         /* core: its record                          */\
    X(SLOT_ANSWERED)            /* core: the worker can see it               */\
    X(COMPLETION_WRITTEN)       /* core: into the ring                       */\
    X(WORKER_NOTIFIED)          /* core: by the eventfd                      */\
    X(REQUEST_RELEASED)         /* core: by the backend                      */\
    X(BACKEND_RETURNED)         /* core: from the execution                  */\
    X(COMPLETION_TAKEN)         /* worker: off the ring                      */\
    X(REPLY_OPENED)             /* worker: its record is copied and checked  */\
    X(HEAD_SENT)                /* worker: to nginx                          */\
    X(BODY_SENT)                /* worker: all of it                         */\
    X(RELEASE_WRITTEN)          /* worker: into the ring                     */\
    X(RESPONSE_RELEASED)        /* core: its memory may be used again        */

/* Points of other requests, and after an exit of the core. */
#define INF_POINTS_OF_OTHERS(X)                                              \
    X(CHANNEL_ADMITTED)         /* core: a worker has registered             */\
    X(WELCOME_TAKEN)            /* worker: the channel is up                 */\
    X(RETRY_BEGUN)              /* worker: the request's core has ended      */\
    X(RETRY_COPIED)             /* worker: it is in the next core's channel  */\
    X(MESSAGE_COMPLETE)         /* worker: of a stream                       */\
    X(RESPONSE_STREAMED)        /* worker: one of a message, to nginx        */\
    X(CALL_TAKEN)               /* core: no inference                        */\
    X(CALL_RUN)                 /* core: not answered yet                    */\
    X(SETTING_NOTED)            /* core: in the journal                      */\
    X(LOAD_NOTED)               /* core: in the journal                      */

#define INF_POINT_NUMBER(name)  INF_POINT_##name,
enum {
    INF_POINTS_OF_A_REQUEST(INF_POINT_NUMBER)
    INF_POINTS_OF_OTHERS(INF_POINT_NUMBER)
    INF_POINT_COUNT
};

#ifdef INF_POINTS

/* Runs the action if the file names this point. */
void inf_point(unsigned number);

#define INF_POINT(name)  inf_point(INF_POINT_##name)
#else
#define INF_POINT(name)  ((void) INF_POINT_##name)
#endif

#endif /* INF_BASE_POINTS_H */
