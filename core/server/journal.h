/*
 * journal.h - remembers, across the core's deaths, which models were loaded
 *             and unloaded by request, and what else requests have set: the
 *             next core has it again.
 *
 * Owner    The master keeps the memory (a memfd); this core writes it.
 * Thread   loaded, unloaded, forgotten: loaders, any number.  start, keep,
 *          forget, replay: any.  open, restore: the start.
 * Units    bytes.
 * Errors   open: a file that is too small.  A load that can't be noted is
 *          logged: it will not come back.
 * Route    lifecycle, client settings -> [journal] -> those of the next core
 *
 * Records are messages; the last one of a model, or of a method and name,
 * counts.  A record counts once a header names it, so a core
 * may die at any point.
 */

#ifndef INF_SERVER_JOURNAL_H
#define INF_SERVER_JOURNAL_H

#include "core/repository/lifecycle.h"

typedef struct inf_journal_s inf_journal_t;

/*
 * start_all, start_names (copied): what is loaded at the start anyway; of other
 * models an unload needs no record.  fd stays the caller's.
 */
INF_CHECK inf_err_t *inf_journal_open(int fd, bool start_all,
    char *const *start_names, size_t start_count, inf_journal_t **out);

/* The models to be loaded at the start have changed.  journal may be NULL. */
INF_CHECK inf_err_t *inf_journal_start(inf_journal_t *journal, bool all,
    char *const *names, size_t count);

/* journal may be NULL. */
void inf_journal_close(inf_journal_t *journal);

/* Queues the loads that the last core had, and what start asks for but for
   models that have a record.  all: repositories decide, so that unloads that
   were asked for before are over. */
INF_CHECK inf_err_t *inf_journal_restore(inf_journal_t *journal,
    inf_lifecycle_t *lc, bool all);

/*
 * The message of a method other than a load or unload that the next core is to
 * get again, under a name that is unique for the method.  journal may be NULL.
 */
void inf_journal_keep(inf_journal_t *journal, uint16_t method,
    const char *name, inf_slice_t message);

/* Removes that message; name NULL: all of the method.  journal may be NULL. */
void inf_journal_forget(inf_journal_t *journal, uint16_t method,
    const char *name);

typedef inf_err_t *(*inf_journal_replay_fn)(void *userp, uint16_t method,
    inf_slice_t message);

/* Gives fn the kept messages of a method in their order, without a lock; one
   for which it returns an error is logged and forgotten.  journal may be
   NULL. */
void inf_journal_replay(inf_journal_t *journal, uint16_t method,
    inf_journal_replay_fn fn, void *userp);

/* For the lifecycle's options, with the journal as userp. */
extern const inf_load_note_ops_t inf_journal_notes;

#endif /* INF_SERVER_JOURNAL_H */
