/*
 * archives.h - models that clients load from directories of their choice: the
 *              directory is registered as a repository, in which one directory
 *              holds the model under the client's name for it.
 *
 * Owner    The set of repositories holds them; the journal has a copy of each.
 * Thread   load, unload: one at a time; list: any; restore: the starting
 *          thread.  done is called on a loader thread, or at once in the
 *          caller's.
 * Units    none.
 * Errors   NOT_FOUND: no archive has this name.  ALREADY_EXISTS: a model has
 *          the name, or the directory is registered.  UNSUPPORTED: with
 *          namespacing, or no location is for archives.  INVALID_ARG: a load,
 *          and models are not loaded by request, the directory is invalid, or
 *          the load fails; the cause is NO_MEMORY if the text of its error says
 *          so.  UNAVAILABLE: an unload, and models are not unloaded by request.
 *          A failed load leaves nothing registered.
 * Route    REST -> [archives] -> repositories, lifecycle, journal
 *
 * Source: the multi-model endpoints of Amazon SageMaker, as Triton has them.
 */

#ifndef INF_SERVER_ARCHIVES_H
#define INF_SERVER_ARCHIVES_H

#include "core/server/server.h"
#include "core_calls.pb-c.h"

/* Whether the method loads or unloads an archive; such calls run one at a time,
   and may wait for a file system. */
bool inf_archive_is_change(uint16_t method);

/*
 * Registers the directory q->url and loads its model: the directory itself if
 * it has a config.pbtxt, else its only subdirectory, or that of an ensemble.
 * Its other directories are models, too, of names that are not taken.
 */
void inf_archive_load(inf_server_t *server,
    const NginxInference__ArchiveLoadRequest *q, inf_lifecycle_done_fn done,
    void *userp);

/* Unloads the model and all that was loaded only with it, then forgets the
   directory. */
void inf_archive_unload(inf_server_t *server,
    const NginxInference__ArchiveUnloadRequest *q, inf_lifecycle_done_fn done,
    void *userp);

/* Answers one model that serves, or with an empty name all of them; the texts
   of *r are in arena. */
INF_CHECK inf_err_t *inf_archive_list(inf_server_t *server,
    inf_registry_reader_t *models, const char *name, inf_arena_t *arena,
    NginxInference__ArchiveListResponse *r);

/* Registers the archives of the last core as their loads found them, without
   access to their directories; called before models are loaded. */
void inf_archives_restore(inf_server_t *server);

#endif /* INF_SERVER_ARCHIVES_H */
