/*
 * journal_index.h - an index of the last journal record of each model and of
 *                   each kept message.
 *
 * Owner    The journal owns the index; the index owns its entries.
 * Thread   holds the journal's lock.
 * Units    bytes of the journal's memory.
 * Errors   out of memory.
 * Route    journal -> [journal index]
 *
 * Clients choose the keys; the time of a search does not depend on them.
 */

#ifndef INF_SERVER_JOURNAL_INDEX_H
#define INF_SERVER_JOURNAL_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

typedef struct {
    char    *key;               /* a model's name; with namespacing a line feed
                                   and the namespace follow.  For kept messages:
                                   from inf_journal_kept_key                 */
    uint16_t method;
    bool     implicit;
    uint64_t offset;            /* of the record; grows with each record     */
    uint64_t copy;              /* of its copy in the other half             */
    uint64_t size;              /* of the whole record                       */
} inf_journal_entry_t;

typedef struct {
    inf_journal_entry_t *sorted;        /* by key                            */
    size_t               count;
} inf_journal_index_t;

/* Frees the keys and the array, not x. */
void inf_journal_index_fini(inf_journal_index_t *x);

/* NULL: no such entry; valid until the next change. */
inf_journal_entry_t *inf_journal_index_find(const inf_journal_index_t *x,
    const char *key);

/* Copies e and its key, replacing an entry of that key. */
INF_CHECK inf_err_t *inf_journal_index_put(inf_journal_index_t *x,
    const inf_journal_entry_t *e);

/* Removes the entry of that key; a key of a method alone removes all entries
   kept for the method. */
void inf_journal_index_drop(inf_journal_index_t *x, const char *key);

/* Whether drop would remove an entry. */
bool inf_journal_index_has(const inf_journal_index_t *x, const char *key);

/* Sets *out to all entries, oldest record first; *out is malloc'ed and valid
   until the next change. */
INF_CHECK inf_err_t *inf_journal_index_in_order(const inf_journal_index_t *x,
    inf_journal_entry_t ***out);

/* A malloc'ed key: a line feed, the method, and with a name another line feed
   and the name; NULL: out of memory. */
char *inf_journal_kept_key(uint16_t method, const char *name);

/* The name in a key of any origin; "": none. */
const char *inf_journal_kept_name(const char *key);

#endif /* INF_SERVER_JOURNAL_INDEX_H */
