/*
 * mortal.c - a backend that dies of the signal that an input names.
 *
 * IN is INT32: 0 is answered with OUT, 0; another number is a signal to die of,
 * 100 more than that the same in a thread of the backend's own, and 200 more
 * after Execute has returned.
 */

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"

static void *
die(void *arg)
{
    int signo = *(int *) arg;

    if (signo == SIGSEGV) {
        *(volatile int *) (uintptr_t) 8 = 1;
    } else if (signo == SIGABRT) {
        abort();
    }
    raise(signo);
    return NULL;
}

static void *
die_later(void *arg)
{
    usleep(200000);
    return die(arg);
}

static TRITONSERVER_Error *
answer(TRITONBACKEND_Request *request, TRITONBACKEND_Response *response,
    void *userp)
{
    (void) request;
    (void) userp;
    return answer_int32(response, "OUT", 0);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
    TRITONBACKEND_Request **requests, const uint32_t count)
{
    (void) instance;

    for (uint32_t i = 0; i < count; i++) {
        const void *data;
        uint64_t    size;
        int32_t     number;
        static int  signo;
        pthread_t   thread;

        TRITONSERVER_Error *err = answer_read(requests[i], "IN", &data, &size);
        if (err != NULL) {
            return err;
        }
        memcpy(&number, data, sizeof(number));
        signo = number % 100;
        if (number > 200
            && pthread_create(&thread, NULL, die_later, &signo) == 0)
        {
            return NULL;            /* it has the requests                   */
        }
        if (number > 100 && pthread_create(&thread, NULL, die, &signo) == 0) {
            pthread_join(thread, NULL);
        } else if (number != 0) {
            die(&signo);
        }
    }
    return answer_each(requests, count, answer, NULL);
}
