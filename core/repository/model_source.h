/*
 * model_source.h - where the files of one load of a model are, what its
 *                  configuration says and which versions it wants.
 *
 * Owner    Shared by reference: the model's record keeps that of the last
 *          good load, each version made from it keeps it too.  The last
 *          reference removes a private directory.
 * Thread   made by one thread, then read by anyone.
 * Units    none.
 * Errors   NOT_FOUND: no repository has it.  INVALID_ARG, INTERNAL: why it
 *          can't be read.
 * Route    lifecycle, scan -> [model source] -> configuration -> model load
 *
 * inf_model_source_open settles the model's directory, inf_model_source_read
 * lets its repository agents have it before the configuration is read.
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
    inf_private_dir_t  *private_dir;    /* above dir; NULL: dir is a
                                           repository's                      */
    inf_storage_t      *private_storage;
    inf_agents_t       *agents;         /* NULL: it has none                 */
    inf_storage_t      *load_storage;   /* where it is loaded from: the      */
    const char         *load_dir;       /* same, or where agents left it; a
                                           copy on this machine's disk       */
    inf_storage_t      *fetched_from;   /* NULL: it lies there itself        */
    char               *fetched;        /* the copy                          */
    inf_storage_t      *disk;           /* for the copy                      */
    bool                overridden;     /* config came with the request      */
    bool                mapped;         /* its name is a repository's alias  */
    bool                named;          /* config is one of configs/         */
    inf_model_config_t *config;         /* as read; nobody changes it        */
    int64_t            *versions;       /* there are, ascending              */
    size_t              version_count;
    inf_model_stamp_t   stamp;          /* when it was read                  */
} inf_model_source_t;

typedef struct {
    const inf_repository_list_t *list;  /* for open, unless the request brings
                                           files: what was scanned, and what
                                           was found there                   */
    const inf_scan_t            *scan;
    const char                  *name;
    const inf_override_t        *override;  /* NULL: as the repository has it */
    inf_agent_table_t           *agents;    /* for read, like the next       */
    const NginxInference__CoreConfig *core_config;
} inf_source_query_t;

/* Settles the directory, or writes the files, and takes the stamp.  The
   configuration is not read yet: that may be spared. */
INF_CHECK inf_err_t *inf_model_source_open(const inf_source_query_t *q,
    inf_model_source_t **out);
INF_CHECK inf_err_t *inf_model_source_read(inf_model_source_t *source,
    const inf_source_query_t *q);

/*
 * Whether a request may bring the configuration sent without code upload
 * (code_upload.h), judged by the repository's own, which is read once.  Of a
 * private directory nothing is read: the model has no configuration of its
 * own there.  One that can't be read is an error only where it decides.
 */
INF_CHECK inf_err_t *inf_model_source_check_sent(
    const inf_model_source_t *source, const char *config_name,
    const Inference__ModelConfig *sent);

/* The versions that the version policy selects; malloc'ed. */
INF_CHECK inf_err_t *inf_model_source_choose(const inf_model_source_t *source,
    const char *name, int64_t **versions, size_t *count);

/*
 * Whether a version made from a can serve for b: neither its own files, nor
 * what all versions share, nor the configuration differ, but for instance
 * groups and version policy.  It is false where agents may have read other
 * files.
 */
bool inf_model_source_same_version(const inf_model_source_t *a,
    const inf_model_source_t *b, int64_t version);

/* Whether their configurations are the same altogether; and whether source's is
   msg but for instance groups and version policy. */
bool inf_model_source_same_config(const inf_model_source_t *a,
    const inf_model_source_t *b);
bool inf_model_source_says(const inf_model_source_t *source,
    const Inference__ModelConfig *msg);

/* Replaces source's configuration by that of other, but for instance groups and
   version policy. */
INF_CHECK inf_err_t *inf_model_source_adopt(inf_model_source_t *source,
    const inf_model_source_t *other);

/* Each gets what the other has read; places and agents stay. */
void inf_model_source_swap_settings(inf_model_source_t *a,
    inf_model_source_t *b);

/* Actions of its agents: the load has ended well, or badly; its versions go
   out of service.  Each does nothing without agents or when it was called. */
void inf_model_source_complete(inf_model_source_t *source);
void inf_model_source_fail(inf_model_source_t *source);

/* Gives the reference up, too; source may be NULL. */
void inf_model_source_leave(inf_model_source_t *source);

/* One more reference; returns source. */
inf_model_source_t *inf_model_source_ref(inf_model_source_t *source);

/* source may be NULL. */
void inf_model_source_unref(inf_model_source_t *source);

#endif /* INF_REPOSITORY_MODEL_SOURCE_H */
