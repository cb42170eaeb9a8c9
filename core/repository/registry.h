/*
 * registry.h - finds the model of a name and version without a lock.
 *
 * Owner    The lifecycle owns the registry and publishes snapshots: immutable
 *          tables with a reference of every READY model.  A reader keeps its
 *          snapshot until it reads again.
 * Thread   publish: the lifecycle, one at a time.  read: a reader object
 *          belongs to one thread, and takes the lock only after a change.
 * Units    none.
 * Errors   NOT_FOUND, UNAVAILABLE with the protocol's texts; with namespacing
 *          INVALID_ARG for a name that no model, or two models have.
 * Route    lifecycle -> [registry] -> intake, calls
 */

#ifndef INF_REPOSITORY_REGISTRY_H
#define INF_REPOSITORY_REGISTRY_H

#include <stdatomic.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/lock.h"
#include "core/base/slice.h"
#include "core/model/model.h"
#include "core/repository/reason.h"

typedef struct {
    int64_t      version;
    inf_model_t *model;         /* a reference; NULL: not ready              */
} inf_registry_version_t;

typedef struct {
    char                   *name;
    char                   *space;      /* its namespace; NULL: none         */
    size_t                  name_len;
    uint64_t                hash;
    inf_registry_version_t *versions;   /* ascending                         */
    uint32_t                version_count;
    bool                    loading;    /* a version is loading; without
                                           versions: they are not known yet  */
    bool                    gone;       /* unloaded completely: with namespacing
                                           treated as absent                  */
    uint32_t                namesakes;  /* entries not gone, including this one;
                                           set by publish in the name's first
                                           entry                              */
    inf_reason_t           *interrupted;    /* why a version left service for a
                                               while or is quarantined; a
                                               reference, NULL: none         */
    int64_t                 interrupted_version;
    bool                    rebuilt;    /* and a process of it has exited    */
} inf_registry_entry_t;

typedef struct inf_registry_snapshot_s inf_registry_snapshot_t;

typedef struct {
    bool                      namespacing;  /* set before the first read     */
    _Atomic bool              incomplete;   /* seq_cst: more models may follow
                                               whose names are not known yet */
    inf_lock_t                lock;     /* rank 40; guards current           */
    inf_registry_snapshot_t  *current;
    _Atomic uint64_t          generation;   /* of current: written under lock
                                               with release, read without it
                                               with acquire                  */
} inf_registry_t;

typedef struct {
    inf_registry_t          *registry;
    inf_registry_snapshot_t *snapshot;
    uint64_t                 generation;
} inf_registry_reader_t;

/* Initializes an empty registry.  fini: no reader has a snapshot. */
void inf_registry_init(inf_registry_t *r);
void inf_registry_fini(inf_registry_t *r);

/*
 * Makes entries the current snapshot.  Takes the malloc'ed array with its
 * names, texts, version arrays and model references, and frees it on failure.
 */
INF_CHECK inf_err_t *inf_registry_publish(inf_registry_t *r,
    inf_registry_entry_t *entries, uint32_t count);

/* Frees unpublished entries; entries, and any part, may be NULL. */
void inf_registry_entries_free(inf_registry_entry_t *entries, uint32_t count);

/* A reader has no snapshot before its first read; fini drops its reference. */
void inf_registry_reader_init(inf_registry_reader_t *reader,
    inf_registry_t *registry);
void inf_registry_reader_fini(inf_registry_reader_t *reader);

/* Drops an outdated snapshot; false: it is current. */
bool inf_registry_refresh(inf_registry_reader_t *reader);

/* Finds a model; version -1: the highest READY one.  *out is a reference. */
INF_CHECK inf_err_t *inf_registry_find(inf_registry_reader_t *reader,
    inf_slice_t name, int64_t version, inf_model_t **out);

/* Whether an error of find says that no such model or version serves. */
bool inf_registry_lacks(const inf_err_t *err);

/* Fails as find does if two models have the name; an unknown name is no
   error. */
INF_CHECK inf_err_t *inf_registry_unique(inf_registry_reader_t *reader,
    inf_slice_t name);

/* All READY models by id and version; malloc'ed, with a reference each. */
INF_CHECK inf_err_t *inf_registry_models(inf_registry_reader_t *reader,
    inf_model_t ***models, size_t *count);

/* The READY versions of a name, ascending, in the arena. */
INF_CHECK inf_err_t *inf_registry_versions(inf_registry_reader_t *reader,
    inf_slice_t name, inf_arena_t *arena, int64_t **versions,
    uint32_t *count);

#endif /* INF_REPOSITORY_REGISTRY_H */
