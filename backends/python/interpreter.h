/*
 * interpreter.h - one interpreter with a model: started, used, and started
 *                 again after its process has ended.
 *
 * Owner    An instance has one; completing a configuration has its own.
 * Thread   run: one at a time.  ready: any.  Its own thread starts the process,
 *          notices its end and takes messages while nothing runs.
 * Units    ns on the monotonic clock.
 * Errors   new: why the model did not start.  run: none, each request gets its
 *          own.  After the process's end: "Stub process 'NAME' is not
 *          healthy.", UNAVAILABLE.
 * Route    instance -> [interpreter] -> link, requests, calls
 *
 * One thread at a time has the consumer role (the lock `role`): the executing
 * thread, so that a result wakes only that, or the interpreter's own.
 */

#ifndef PY_INTERPRETER_H
#define PY_INTERPRETER_H

#include "arenas.h"
#include "metrics.h"
#include "model.h"
#include "process.h"
#include "requests.h"
#include "streams.h"

/* The error after a process has ended; %s: the instance's name. */
#define PY_UNHEALTHY  "Stub process '%s' is not healthy."

typedef enum {
    PY_STARTING,
    PY_SERVING,
    PY_FAILED,             /* for reason; may be tried again                */
    PY_ENDED
} py_state_t;

/* Progress of the present process. */
typedef enum {
    PY_PROGRESS_NONE,
    PY_PROGRESS_HELLO,
    PY_PROGRESS_USEFUL,    /* has answered a batch                          */
    PY_PROGRESS_FINALIZE   /* is being stopped, ignores another stop        */
} py_progress_t;

/* The model's is_ready. */
typedef struct {
    bool     defined;
    bool     probing;           /* the process is being asked                */
    uint64_t answers;           /* so far                                    */
    char     why_not[BK_ERR_MAX];           /* last answer; "": ready        */
} py_readiness_t;

/* Arguments of initialize() that the model does not have. */
typedef struct {
    const char *name;
    const char *kind;
    int32_t     device;
} py_instance_name_t;

typedef struct {
    const py_model_t   *model;      /* set in new(), as the next four        */
    TRITONBACKEND_ModelInstance *instance;  /* NULL: completes a
                                               configuration                 */
    char               *name;
    const char         *kind;
    int32_t             device;
    int                 stop_fd;
    int                 wake_fd;    /* entries are left in the ring          */
    pthread_t           thread;

    pthread_mutex_t     lock;       /* guards the next five                  */
    pthread_cond_t      changed;
    py_state_t          state;
    char                reason[BK_ERR_MAX];
    bool                says_unhealthy;     /* reason has PY_UNHEALTHY       */
    py_readiness_t      ready;

    pthread_mutex_t     role;       /* guards the rest; link is set with lock
                                       held, too                             */
    py_link_t          *link;
    py_process_t        process;
    py_progress_t       progress;
    bool                gpu_inputs; /* it opens memory of the backend's on a
                                       GPU, and wants inputs there           */
    py_requests_t       requests;
    py_arenas_t         arenas;
    py_metrics_t        metrics;
    py_streams_t        streams;
    uint64_t            task;       /* id of the last one                    */
    bool                done;
    py_message_t        result;     /* of the task                           */
    py_writer_t         writer;
} py_interpreter_t;

/* Starts an interpreter and waits for the model to initialize. */
BK_CHECK TRITONSERVER_Error *py_interpreter_new(py_interpreter_t **out,
    const py_model_t *model, TRITONBACKEND_ModelInstance *instance,
    const py_instance_name_t *name);

/* Finalizes the model and ends the process. */
void py_interpreter_free(py_interpreter_t *in);

/* Executes requests: answers and releases all. */
void py_interpreter_run(py_interpreter_t *in,
    TRITONBACKEND_Request **requests, uint32_t count);

/* Whether the model reports that it is ready: NULL. */
BK_CHECK TRITONSERVER_Error *py_interpreter_ready(py_interpreter_t *in);

/* The configuration completed by the model's auto_complete_config, as JSON to
   be freed; NULL: no such function. */
BK_CHECK TRITONSERVER_Error *py_interpreter_complete(
    const py_model_t *model, char **config);

/* Handles what the process has sent, at most a full ring, so that a fast sender
   cannot block the caller.  With the consumer role. */
void py_interpreter_drain(py_interpreter_t *in);

/* The error "Stub process 'NAME' is not healthy." */
BK_CHECK TRITONSERVER_Error *py_interpreter_unhealthy(
    const py_interpreter_t *in);

#endif /* PY_INTERPRETER_H */
