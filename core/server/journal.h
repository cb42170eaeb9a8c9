/*
 * journal.h - a record, shared by successive cores, of models loaded and
 *             unloaded by request and of other settings made by requests; the
 *             next core restores them.
 *
 * Owner    The master keeps the memory (a memfd); this core writes it.
 * Thread   loaded, unloaded, forgotten: loaders, any number.  start, keep,
 *          forget, replay: any.  open, restore: the starting thread.
 * Units    bytes.
 * Errors   open: a file that is too small.  A load that cannot be noted is
 *          logged and not restored.
 * Route    lifecycle, client settings -> [journal] -> those of the next core
 *
 * Records are messages; the last one of a model, or of a method and name,
 * counts.  A record counts once a header names it, so a core may die at any
 * point.  Records of unloads have a bounded part of the memory: the oldest give
 * way.
 */

#ifndef INF_SERVER_JOURNAL_H
#define INF_SERVER_JOURNAL_H

#include "core/repository/lifecycle.h"

typedef struct inf_journal_s inf_journal_t;

/*
 * start_all, start_names (copied): the models loaded at the start; the unload
 * of any other model needs no record.  fd stays the caller's.
 */
INF_CHECK inf_err_t *inf_journal_open(int fd, bool start_all,
    char *const *start_names, size_t start_count, inf_journal_t **out);

/* Changes the models that are loaded at the start.  journal may be NULL. */
INF_CHECK inf_err_t *inf_journal_start(inf_journal_t *journal, bool all,
    char *const *names, size_t count);

/* journal may be NULL. */
void inf_journal_close(inf_journal_t *journal);

/* Queues the last core's loads, and the start's loads of models without a
   record.  all: repositories decide what is loaded, and recorded unloads are
   dropped. */
INF_CHECK inf_err_t *inf_journal_restore(inf_journal_t *journal,
    inf_lifecycle_t *lc, bool all);

/*
 * Keeps the message of a method other than load or unload for the next core,
 * under a name that is unique for the method.  journal may be NULL.
 */
void inf_journal_keep(inf_journal_t *journal, uint16_t method,
    const char *name, inf_slice_t message);

/* The same for an unpacked message. */
void inf_journal_keep_message(inf_journal_t *journal, uint16_t method,
    const char *name, const ProtobufCMessage *message);

/* Removes that message; name NULL: all of the method.  journal may be NULL. */
void inf_journal_forget(inf_journal_t *journal, uint16_t method,
    const char *name);

/* Removes the record of a model whose last record is an unload: its name means
   another model from now on.  journal may be NULL. */
void inf_journal_forget_unload(inf_journal_t *journal,
    const inf_model_id_t *id);

typedef inf_err_t *(*inf_journal_replay_fn)(void *userp, uint16_t method,
    inf_slice_t message);

/* Calls fn with the kept messages of a method in order, without a lock; a
   message for which fn fails is logged and forgotten.  journal may be NULL. */
void inf_journal_replay(inf_journal_t *journal, uint16_t method,
    inf_journal_replay_fn fn, void *userp);

/* Operations for the lifecycle's options; userp is the journal. */
extern const inf_load_note_ops_t inf_journal_notes;

#endif /* INF_SERVER_JOURNAL_H */
