/*
 * registry.h - which model serves a name and version, found without a lock.
 *
 * Owner    The lifecycle owns the registry and publishes snapshots: immutable
 *          tables holding a reference of every READY model.  A reader keeps
 *          the snapshot it last saw until it reads again.
 * Thread   publish: the lifecycle, one at a time.  read: each reader object
 *          belongs to one thread; only after a change does it take the lock.
 * Units    none.
 * Errors   NOT_FOUND, UNAVAILABLE with the protocol's texts; with namespacing
 *          INVALID_ARG for a name that none has, or two have.
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
    bool                    loading;    /* some version is on its way; of one
                                           without any it isn't known which
                                           there are                         */
    bool                    gone;       /* all of it was unloaded: with
                                            namespacing as if it wasn't there */
    uint32_t                namesakes;  /* not gone, this one too; set by
                                            publish, where the name leads     */
    inf_reason_t           *lost;       /* why one that served doesn't, and
                                           will again, or one is quarantined;
                                           a reference, NULL: none is so     */
    int64_t                 lost_version;
    bool                    rebuilt;    /* likewise: a process of it has
                                           exited                            */
} inf_registry_entry_t;

typedef struct inf_registry_snapshot_s inf_registry_snapshot_t;

typedef struct {
    bool                      namespacing;  /* set before anybody reads      */
    _Atomic bool              incomplete;   /* seq_cst: models may come that
                                               aren't known by name yet      */
    inf_lock_t                lock;     /* rank 40; guards current           */
    inf_registry_snapshot_t  *current;
    _Atomic uint64_t          generation;   /* of current: raised under lock
                                               with release, read without it
                                               with acquire                  */
} inf_registry_t;

typedef struct {
    inf_registry_t          *registry;
    inf_registry_snapshot_t *snapshot;
    uint64_t                 generation;
} inf_registry_reader_t;

/* An empty registry; fini: no reader has a snapshot of it any more. */
void inf_registry_init(inf_registry_t *r);
void inf_registry_fini(inf_registry_t *r);

/*
 * Takes entries (malloc'ed array; names, texts, version arrays and model
 * references in it too) and makes them the current snapshot; frees them on
 * failure.
 */
INF_CHECK inf_err_t *inf_registry_publish(inf_registry_t *r,
    inf_registry_entry_t *entries, uint32_t count);

/* Of entries that are not published; they may be NULL, like any part. */
void inf_registry_entries_free(inf_registry_entry_t *entries, uint32_t count);

/* No snapshot until the first read; fini gives up the reference. */
void inf_registry_reader_init(inf_registry_reader_t *reader,
    inf_registry_t *registry);
void inf_registry_reader_fini(inf_registry_reader_t *reader);

/* Lets go of an outdated snapshot; false: nothing was published since. */
bool inf_registry_refresh(inf_registry_reader_t *reader);

/* version -1: the highest READY one.  *out has a reference for the caller. */
INF_CHECK inf_err_t *inf_registry_find(inf_registry_reader_t *reader,
    inf_slice_t name, int64_t version, inf_model_t **out);

/* Whether a name stands for one model: the error that find would give when
   there are two; a name that none has is fine. */
INF_CHECK inf_err_t *inf_registry_unique(inf_registry_reader_t *reader,
    inf_slice_t name);

/* All READY models in the order of their ids and versions; malloc'ed, with a
   reference of each for the caller. */
INF_CHECK inf_err_t *inf_registry_models(inf_registry_reader_t *reader,
    inf_model_t ***models, size_t *count);

/* The READY versions of a name, ascending, in arena memory. */
INF_CHECK inf_err_t *inf_registry_versions(inf_registry_reader_t *reader,
    inf_slice_t name, inf_arena_t *arena, int64_t **versions,
    uint32_t *count);

#endif /* INF_REPOSITORY_REGISTRY_H */
