/*
 * conformance.h - a backend that calls every function it is given and says
 *                 which rule of the interface did not hold.
 *
 * Owner    backend, model and instance states are ours, freed by their
 *          finalizers.
 * Thread   as the interface says; checks.c shares nothing.
 * Units    the interface's.
 * Errors   a rule that does not hold fails the load or the request, by name.
 * Route    core -> [lifecycle] -> checks_*.c -> report -> core
 *
 * The number before each sentence is that of the subject: 1 conventions, 3
 * life, 5 messages, 13 traces, 17 backend, 18 model, 19 instance, 20 request,
 * 21 input, 22 response, 23 factory, 25 state, 26 memory, 27 statistics.
 */

#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include "report.h"

typedef struct {
    TRITONBACKEND_Backend       *handle;
    TRITONSERVER_Message        *config;
    TRITONBACKEND_MemoryManager *manager;
} cf_backend_t;

typedef struct {
    TRITONBACKEND_Model *handle;
    cf_backend_t        *backend;
    char                *config;        /* as it was at the start            */
    char                 name[128];
    bool                 batches;
} cf_model_t;

typedef struct {
    TRITONBACKEND_ModelInstance *handle;
    cf_model_t                  *model;
    char                         name[128];
} cf_instance_t;

/* checks_backend.c */
void cf_backend_check(cf_report_t *r, cf_backend_t *b);
void cf_memory_check(cf_report_t *r, TRITONBACKEND_MemoryManager *m);
void cf_attributes_check(cf_report_t *r,
    TRITONBACKEND_BackendAttribute *attributes);

/* checks_model.c */
void cf_model_check(cf_report_t *r, cf_model_t *m);
void cf_instance_check(cf_report_t *r, cf_instance_t *i);
void cf_statistics_check(cf_report_t *r, TRITONBACKEND_ModelInstance *i);

/* The model's configuration now; malloc'ed, NULL: it could not be had. */
char *cf_model_config(TRITONBACKEND_Model *model);

/* checks_request.c */
void cf_request_check(cf_report_t *r, const cf_instance_t *i,
    TRITONBACKEND_Request *request);

/* checks_response.c: a response made and deleted, then the answer, unsent. */
void cf_response_check(cf_report_t *r, TRITONBACKEND_Request *request,
    TRITONBACKEND_Response **answer);

/* Reports one request's figures and, per response, those of its factory. */
void cf_statistics_report(cf_report_t *r, TRITONBACKEND_ModelInstance *i,
    TRITONBACKEND_Request *request, bool success);

/* X of the answer repeats A of the request. */
void cf_answer_fill(cf_report_t *r, TRITONBACKEND_Request *request,
    TRITONBACKEND_Response *answer);

/* scenarios.c: takes the request unless it gives an error. */
TRITONSERVER_Error *cf_scenario_run(const cf_instance_t *i,
    TRITONBACKEND_Request *request);

uint64_t cf_now_ns(void);

#endif /* CONFORMANCE_H */
