/*
 * model_source.h - the source of one load of a model: its files, its
 *                  configuration and the versions it selects.
 *
 * Owner    Shared by reference: by the model's record after a good load, and by
 *          each version made from it.  The last reference removes a private
 *          directory.
 * Thread   made by one thread, then read by any.
 * Units    none.
 * Errors   NOT_FOUND: no repository has the model.  INVALID_ARG, INTERNAL: why
 *          it cannot be read.
 * Route    lifecycle, scan -> [model source] -> configuration -> model load
 *
 * inf_model_source_open finds the model's directory; inf_model_source_read runs
 * its repository agents before it reads the configuration.
 */

#ifndef INF_REPOSITORY_MODEL_SOURCE_H
#define INF_REPOSITORY_MODEL_SOURCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/os/private_dir.h"
#include "core/model/config_load.h"
#include "core/proto/core_config.h"
#include "core/repository/agents.h"
#include "core/repository/model_stamp.h"
#include "core/repository/override.h"
#include "core/repository/repositories.h"

typedef struct {
    _Atomic uint32_t    refs;           /* up relaxed, down acq_rel          */
    inf_repository_t   *repository;     /* a reference; NULL: private_dir    */
    inf_storage_t      *storage;        /* of either                         */
    char               *dir;            /* of the model                      */
    inf_private_dir_t  *private_dir;    /* above dir; NULL: dir is in a
                                           repository                        */
    inf_storage_t      *private_storage;
    inf_agents_t       *agents;         /* NULL: no agents                   */
    inf_storage_t      *load_storage;   /* storage and directory to          */
    const char         *load_dir;       /* load from: the same, or left by
                                           agents; a copy on the local disk  */
    inf_storage_t      *fetched_from;   /* NULL: no copy                     */
    char               *fetched;        /* the copy                          */
    inf_storage_t      *disk;           /* for the copy                      */
    bool                overridden;     /* config came with the request      */
    bool                mapped;         /* its name is an alias              */
    bool                named;          /* config is from configs/           */
    inf_model_config_t *config;         /* as read; constant                 */
    int64_t            *versions;       /* present ones, ascending           */
    size_t              version_count;
    inf_model_stamp_t   stamp;          /* when the files were read          */
} inf_model_source_t;

typedef struct {
    const inf_repository_list_t *list;  /* for open, unless the request brings
                                           files: the list scanned, and the
                                           result                            */
    const inf_scan_t            *scan;
    const char                  *name;
    const inf_override_t        *override;  /* NULL: files as they are        */
    inf_agent_table_t           *agents;    /* for read, as is the next      */
    const NginxInference__CoreConfig *core_config;
} inf_source_query_t;

/* open: finds the directory, or writes the request's files, and takes the
   stamp. read: reads the configuration, which is not always necessary. */
INF_CHECK inf_err_t *inf_model_source_open(const inf_source_query_t *q,
    inf_model_source_t **out);
INF_CHECK inf_err_t *inf_model_source_read(inf_model_source_t *source,
    const inf_source_query_t *q);

/*
 * Checks whether a request may bring the configuration sent without code upload
 * (code_upload.h), by the repository's own configuration, which is read once.
 * A private directory has none.  If it cannot be read, that is an error only
 * where it matters.
 */
INF_CHECK inf_err_t *inf_model_source_check_sent(
    const inf_model_source_t *source, const char *config_name,
    const Inference__ModelConfig *sent);

/*
 * Whether a version made from a can serve for b: its files, the files shared by
 * all versions and the configuration are equal, except instance groups and
 * version policy.  false if agents may have read other files.
 */
bool inf_model_source_same_version(const inf_model_source_t *a,
    const inf_model_source_t *b, int64_t version);

/* Whether source's configuration equals msg; but_instances: except instance
   groups, which change while a version serves, and version policy. */
bool inf_model_source_says(const inf_model_source_t *source,
    const Inference__ModelConfig *msg, bool but_instances);

/* Replaces source's configuration by that of other, except instance groups and
   version policy. */
INF_CHECK inf_err_t *inf_model_source_adopt(inf_model_source_t *source,
    const inf_model_source_t *other);

/* Exchanges what both have read; places and agents stay. */
void inf_model_source_swap_settings(inf_model_source_t *a,
    inf_model_source_t *b);

/* Runs the agents' UNLOAD, because the versions leave service, and drops the
   reference; source may be NULL. */
void inf_model_source_leave(inf_model_source_t *source);

/* Adds a reference; returns source. */
inf_model_source_t *inf_model_source_ref(inf_model_source_t *source);

/* source may be NULL. */
void inf_model_source_unref(inf_model_source_t *source);

#endif /* INF_REPOSITORY_MODEL_SOURCE_H */
