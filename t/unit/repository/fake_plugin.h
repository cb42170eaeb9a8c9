/*
 * fake_plugin.h - plug-in operations for tests: they write down what was
 *                 called and fail where they are told to.
 *
 * Owner    the test; fake_reset before and after.
 * Thread   any: what is written down is under a mutex.
 * Units    none.
 * Errors   as told.
 * Route    unit tests only
 *
 * The operations keep the promise of core/abi/plugin.h: a failing init of a
 * model or an instance is followed by its finalizer at once.
 */

#ifndef INF_T_REPOSITORY_FAKE_PLUGIN_H
#define INF_T_REPOSITORY_FAKE_PLUGIN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/repository/lifecycle.h"
#include "core/repository/plugin_ops.h"

#define FAKE_TRACE_SIZE 65536

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    char            trace[FAKE_TRACE_SIZE]; /* "open x;init m/1;..."         */
    char            settings[4096];         /* of the last open              */
    const char     *fail;                   /* call to fail, "init m/1"      */
    const char     *hold;                   /* call that waits for release   */
    const char     *hold_prefix;            /* and all that begin like this  */
    uint32_t        held;                   /* calls waiting there now       */
    bool            parallel;               /* what a backend says of itself */
    uint32_t        execution_policy;
} fake_t;

static fake_t fake = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .changed = PTHREAD_COND_INITIALIZER
};

static inline void
fake_reset(void)
{
    pthread_mutex_lock(&fake.lock);
    fake.trace[0] = '\0';
    fake.fail = NULL;
    fake.hold = NULL;
    fake.hold_prefix = NULL;
    fake.held = 0;
    fake.parallel = false;
    fake.execution_policy = 0;
    pthread_mutex_unlock(&fake.lock);
}

/* Writes the call down, waits if told so; true: it has to fail. */
static inline bool
fake_call(const char *call)
{
    pthread_mutex_lock(&fake.lock);
    strncat(fake.trace, call, FAKE_TRACE_SIZE - strlen(fake.trace) - 1);
    strncat(fake.trace, ";", FAKE_TRACE_SIZE - strlen(fake.trace) - 1);

    fake.held++;
    while ((fake.hold != NULL && strcmp(fake.hold, call) == 0)
        || (fake.hold_prefix != NULL && strncmp(fake.hold_prefix, call,
            strlen(fake.hold_prefix)) == 0))
    {
        pthread_cond_broadcast(&fake.changed);
        pthread_cond_wait(&fake.changed, &fake.lock);
    }
    fake.held--;
    bool fails = fake.fail != NULL && strcmp(fake.fail, call) == 0;
    pthread_mutex_unlock(&fake.lock);
    return fails;
}

/* The call that waits from now on; those that wait already go on to wait. */
static inline void
fake_hold(const char *call)
{
    pthread_mutex_lock(&fake.lock);
    fake.hold = call;
    pthread_mutex_unlock(&fake.lock);
}

static inline void
fake_release(void)
{
    pthread_mutex_lock(&fake.lock);
    fake.hold = NULL;
    fake.hold_prefix = NULL;
    pthread_cond_broadcast(&fake.changed);
    pthread_mutex_unlock(&fake.lock);
}

/* Until so many calls are being held at once. */
static inline void
fake_wait_held(uint32_t count)
{
    pthread_mutex_lock(&fake.lock);
    while (fake.held < count) {
        pthread_cond_wait(&fake.changed, &fake.lock);
    }
    pthread_mutex_unlock(&fake.lock);
}

/* How often the call was made. */
static inline int
fake_count(const char *call)
{
    char whole[300];
    int n = 0;

    pthread_mutex_lock(&fake.lock);
    snprintf(whole, sizeof(whole), "%s;", call);
    for (const char *p = fake.trace; (p = strstr(p, whole)) != NULL; p++) {
        n += p == fake.trace || p[-1] == ';';
    }
    pthread_mutex_unlock(&fake.lock);
    return n;
}

/* Whether a stands before b in the trace. */
static inline bool
fake_before(const char *a, const char *b)
{
    pthread_mutex_lock(&fake.lock);
    const char *x = strstr(fake.trace, a);
    const char *y = strstr(fake.trace, b);
    bool before = x != NULL && y != NULL && x < y;
    pthread_mutex_unlock(&fake.lock);
    return before;
}

static inline inf_err_t *
fake_open(const char *name, const char *library, const char *dir,
    const inf_plugin_setting_t *settings, size_t count, inf_backend_t **out)
{
    char call[300];
    snprintf(call, sizeof(call), "open %s", name);

    pthread_mutex_lock(&fake.lock);
    fake.settings[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(fake.settings);
        snprintf(fake.settings + len, sizeof(fake.settings) - len, "%s=%s;",
            settings[i].key, settings[i].value);
    }
    pthread_mutex_unlock(&fake.lock);

    *out = NULL;
    if (fake_call(call)) {
        return inf_err_new(INF_ERR_INTERNAL, "told to fail: %s", call);
    }

    inf_backend_t *b = calloc(1, sizeof(*b));
    inf_link_init(&b->repository.link);
    b->name = strdup(name);
    b->library = strdup(library);
    b->dir = strdup(dir);
    b->parallel_loading = fake.parallel;
    b->execution_policy = fake.execution_policy;
    *out = b;
    return NULL;
}

static inline void
fake_close(inf_backend_t *b)
{
    char call[300];
    snprintf(call, sizeof(call), "close %s", b->name);
    fake_call(call);
    free(b->name);
    free(b->library);
    free(b->dir);
    free(b);
}

static inline bool
fake_model_call(const char *what, const inf_model_t *m)
{
    char call[300];
    snprintf(call, sizeof(call), "%s %s/%lld", what, m->name,
        (long long) m->version);
    return fake_call(call);
}

static inline bool
fake_instance_call(const char *what, const inf_instance_t *i)
{
    char call[300];
    snprintf(call, sizeof(call), "%s %s/%lld", what, i->spec->name,
        (long long) i->model->version);
    return fake_call(call);
}

static inline inf_err_t *
fake_model_init(inf_model_t *m)
{
    if (fake_model_call("init", m)) {
        fake_model_call("fini", m);
        return inf_err_new(INF_ERR_UNSUPPORTED, "told to fail");
    }
    return NULL;
}

static inline void
fake_model_fini(inf_model_t *m)
{
    fake_model_call("fini", m);
}

static inline void
fake_instance_fini(inf_instance_t *i)
{
    if (i->abi.initialized) {
        i->abi.initialized = false;
        fake_instance_call("ifini", i);
    }
}

static inline inf_err_t *
fake_instance_init(inf_instance_t *i)
{
    i->abi.initialized = true;
    if (fake_instance_call("iinit", i)) {
        fake_instance_fini(i);
        return inf_err_new(INF_ERR_UNAVAILABLE, "no room");
    }
    return NULL;
}

static inline void
fake_execute(inf_instance_t *instance, inf_request_t **requests,
    uint32_t count)
{
    fake_instance_call("exec", instance);
    for (uint32_t i = 0; i < count; i++) {
        inf_request_release(requests[i], 1);
    }
}

static const inf_executor_t fake_executor = { .execute = fake_execute };

static const inf_plugin_ops_t fake_ops = {
    .open = fake_open,
    .close = fake_close,
    .model_init = fake_model_init,
    .model_fini = fake_model_fini,
    .instance_init = fake_instance_init,
    .instance_fini = fake_instance_fini,
    .executor = &fake_executor
};

#endif /* INF_T_REPOSITORY_FAKE_PLUGIN_H */
