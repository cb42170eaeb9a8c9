/*
 * journal_index.h - where the last record of each model, and of each thing
 *                   that is kept, lies in the journal.
 *
 * Owner    The journal owns the index; an entry is the index's.
 * Thread   as the journal's lock.
 * Units    bytes of the journal's memory.
 * Errors   out of memory.
 * Route    journal -> [journal index]
 *
 * Clients choose the keys: a search takes as long for any of them.
 */

#ifndef INF_SERVER_JOURNAL_INDEX_H
#define INF_SERVER_JOURNAL_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

typedef struct {
    char    *key;               /* a model's name; with namespacing a line
                                   feed and the namespace follow.  Of what is
                                   kept: as inf_journal_kept_key makes it    */
    uint16_t method;
    bool     implicit;
    uint64_t offset;            /* of the record; a later one's is larger    */
    uint64_t copy;              /* of its copy in the other half             */
    uint64_t size;              /* of all of it                              */
} inf_journal_entry_t;

typedef struct {
    inf_journal_entry_t *sorted;        /* by key                            */
    size_t               count;
} inf_journal_index_t;

/* Frees the keys, not x. */
void inf_journal_index_fini(inf_journal_index_t *x);

/* NULL: there is none; valid until the next change. */
inf_journal_entry_t *inf_journal_index_find(const inf_journal_index_t *x,
    const char *key);

/* Copies e and its key, in the place of an entry with that key. */
INF_CHECK inf_err_t *inf_journal_index_put(inf_journal_index_t *x,
    const inf_journal_entry_t *e);

/* The entry of that key, if there is one; a key of a method alone: all that is
   kept of the method. */
void inf_journal_index_drop(inf_journal_index_t *x, const char *key);

/* Whether drop would find something. */
bool inf_journal_index_has(const inf_journal_index_t *x, const char *key);

/* count of them, oldest record first; to be freed, valid until the next
   change. */
INF_CHECK inf_err_t *inf_journal_index_in_order(const inf_journal_index_t *x,
    inf_journal_entry_t ***out);

/* A line feed, the method, and with a name another one and the name; NULL: out
   of memory. */
char *inf_journal_kept_key(uint16_t method, const char *name);

/* The name in a key, which anybody may have written; "": there is none. */
const char *inf_journal_kept_name(const char *key);

#endif /* INF_SERVER_JOURNAL_INDEX_H */
