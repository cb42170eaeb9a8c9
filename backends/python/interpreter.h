/*
 * interpreter.h - one interpreter with a model in it: started, asked, started
 *                 again when its process has ended.
 *
 * Owner    An instance has one; completing a configuration has one for itself.
 * Thread   run: one at a time.  ready: any.  A thread of its own starts the
 *          process, notices its end and takes what it sends while nothing
 *          runs.
 * Units    ns on the monotonic clock.
 * Errors   new: why the model did not start.  run: none, each request gets its
 *          own.  A process that has ended: "Stub process 'NAME' is not
 *          healthy.", UNAVAILABLE.
 * Route    instance -> [interpreter] -> link, requests, calls
 *
 * One thread at a time has the consumer role (the lock `role`): the one that
 * executes, so that a result wakes just it, or the interpreter's own.
 */

#ifndef PY_INTERPRETER_H
#define PY_INTERPRETER_H

#include "arenas.h"
#include "metrics.h"
#include "model.h"
#include "process.h"
#include "requests.h"
#include "streams.h"

typedef enum {
    PY_STARTING,
    PY_SERVING,
    PY_FAILED,             /* reason says why; it may be tried again        */
    PY_ENDED
} py_state_t;

/* How far the present process has come. */
typedef enum {
    PY_PROGRESS_NONE,
    PY_PROGRESS_HELLO,
    PY_PROGRESS_USEFUL     /* it has answered a batch                       */
} py_progress_t;

/* The model's is_ready. */
typedef struct {
    bool     defined;
    bool     probing;           /* it is being asked                         */
    uint64_t answers;           /* so far                                    */
    char     why_not[BK_ERR_MAX];           /* the last one's; "": ready     */
} py_readiness_t;

/* initialize()'s arguments, but for what the model knows. */
typedef struct {
    const char *name;
    const char *kind;
    int32_t     device;
} py_instance_name_t;

typedef struct {
    const py_model_t   *model;      /* set in new(), like the next four      */
    TRITONBACKEND_ModelInstance *instance;  /* NULL: completes a config      */
    char               *name;
    const char         *kind;
    int32_t             device;
    int                 stop_fd;
    int                 wake_fd;    /* entries were left behind              */
    pthread_t           thread;

    pthread_mutex_t     lock;       /* guards the next four                  */
    pthread_cond_t      changed;
    py_state_t          state;
    char                reason[BK_ERR_MAX];
    py_readiness_t      ready;

    pthread_mutex_t     role;       /* guards the rest; link is also set
                                       with lock held                        */
    py_link_t          *link;
    py_process_t        process;
    py_progress_t       progress;
    bool                deaf;       /* it is told to stop, and knows         */
    py_requests_t       requests;
    py_arenas_t         arenas;
    py_metrics_t        metrics;
    py_streams_t        streams;
    uint64_t            task;       /* the last one's id                     */
    bool                done;
    py_message_t        result;     /* of it                                 */
    py_writer_t         writer;
} py_interpreter_t;

BK_CHECK TRITONSERVER_Error *py_interpreter_new(py_interpreter_t **out,
    const py_model_t *model, TRITONBACKEND_ModelInstance *instance,
    const py_instance_name_t *name);
void py_interpreter_free(py_interpreter_t *in);

/* Answers and releases all requests. */
void py_interpreter_run(py_interpreter_t *in,
    TRITONBACKEND_Request **requests, uint32_t count);

/* NULL: the model is ready, as far as it says. */
BK_CHECK TRITONSERVER_Error *py_interpreter_ready(py_interpreter_t *in);

/* The model's configuration as its auto_complete_config has completed it: JSON
   for free(); NULL: there is no such function. */
BK_CHECK TRITONSERVER_Error *py_interpreter_complete(
    const py_model_t *model, char **config);

/* Carries out what the process has sent, at most a full ring of it: one that
   sends faster than that is done can keep nobody.  With the consumer role. */
void py_interpreter_drain(py_interpreter_t *in);

/* "Stub process 'NAME' is not healthy." */
BK_CHECK TRITONSERVER_Error *py_interpreter_unhealthy(
    const py_interpreter_t *in);

#endif /* PY_INTERPRETER_H */
