/*
 * lifecycle.h - loads and unloads model versions, and knows their states.
 *
 * Owner    The server owns it.  It holds one reference of every READY model
 *          and owns all backends until it is freed.
 * Thread   load, wait, index, stop: any thread; loading runs on its own
 *          loader threads.
 * Units    ns, ms where a name says so.
 * Errors   A load's failure becomes the version's state and reason.
 *          UNAVAILABLE: it is stopping.
 * Route    scan -> [lifecycle] -> plug-in operations -> registry
 */

#ifndef INF_REPOSITORY_LIFECYCLE_H
#define INF_REPOSITORY_LIFECYCLE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/buf.h"
#include "core/model/config_storage.h"
#include "core/repository/plugin_ops.h"
#include "core/repository/registry.h"
#include "core/sched/response_cache.h"
#include "core/sched/runtime.h"

typedef struct inf_lifecycle_s inf_lifecycle_t;

/* As the repository index names them. */
typedef enum {
    INF_VERSION_LOADING,
    INF_VERSION_READY,
    INF_VERSION_UNLOADING,
    INF_VERSION_UNAVAILABLE
} inf_version_state_t;

const char *inf_version_state_name(inf_version_state_t state);

/* key of a setting with an empty backend goes to every backend. */
typedef struct {
    const char *backend;
    const char *key;
    const char *value;
} inf_backend_setting_t;

/* Who wants to know what is being loaded; the service fills it in. */
typedef struct {
    /* An error: the version must not be loaded.  *mark is for end. */
    inf_err_t *(*begin)(void *userp, const char *name, int64_t version,
        void **mark);
    void (*end)(void *userp, void *mark);
} inf_load_watch_ops_t;

typedef struct {
    struct inf_server_s         *server;
    const inf_plugin_ops_t      *plugins;
    inf_registry_t              *registry;
    void                       (*changed)(void *userp); /* after a publish   */
    void                        *userp;
    const char *const           *backend_dirs;      /* these outlive it      */
    size_t                       backend_dir_count;
    const inf_backend_setting_t *settings;
    size_t                       setting_count;
    bool                         auto_complete;
    uint32_t                     load_threads;
    uint64_t                     spin_ns;
    inf_host_policies_t          host_policies;     /* these outlive it too  */
    inf_gpus_t                   gpus;              /* that models may use   */
    const char                  *config_name;       /* configs/<name>.pbtxt
                                                       first; NULL: none     */
    bool                         summaries;         /* of latencies          */
    bool                         histograms;
    const inf_idle_ops_t        *idle;              /* for instance threads  */
    void                        *idle_userp;
    inf_response_cache_t        *cache;             /* NULL: none            */
    const inf_load_watch_ops_t  *watch;             /* NULL: nobody          */
    void                        *watch_userp;
} inf_lifecycle_options_t;

INF_CHECK inf_err_t *inf_lifecycle_new(const inf_lifecycle_options_t *options,
    inf_lifecycle_t **out);

/* After inf_lifecycle_stop; calls the backends' finalizers. */
void inf_lifecycle_free(inf_lifecycle_t *lc);

/*
 * Queues the load of a model: its configuration is read, versions chosen by
 * its policy, each loaded.  versions: what the directory holds, ascending;
 * all texts and the array are copied.  storage must outlive the lifecycle.
 */
INF_CHECK inf_err_t *inf_lifecycle_load(inf_lifecycle_t *lc,
    inf_storage_t *storage, const char *name, const char *dir,
    const int64_t *versions, size_t version_count);

/* Records a model that can't be loaded at all, with the reason. */
INF_CHECK inf_err_t *inf_lifecycle_refuse(inf_lifecycle_t *lc,
    const char *name, const char *reason);

/* Waits until nothing is queued or loading. */
void inf_lifecycle_wait(inf_lifecycle_t *lc);

/* Whether nothing is queued or loading, and whether every version that is
   wanted is READY. */
bool inf_lifecycle_settled(inf_lifecycle_t *lc);
bool inf_lifecycle_all_ready(inf_lifecycle_t *lc);

/* One row for the index; version -1: the model has none. */
typedef void (*inf_lifecycle_row_fn)(void *userp, const char *name,
    int64_t version, inf_version_state_t state, const char *reason);

/* By name, versions ascending; fn runs under the lifecycle's lock. */
void inf_lifecycle_index(inf_lifecycle_t *lc, inf_lifecycle_row_fn fn,
    void *userp);

/* Unpublishes everything and waits, at most timeout_ns, until the last model
   is destroyed.  false: some still live. */
bool inf_lifecycle_stop(inf_lifecycle_t *lc, uint64_t timeout_ns);

#endif /* INF_REPOSITORY_LIFECYCLE_H */
