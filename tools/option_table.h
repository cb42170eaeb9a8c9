/*
 * option_table.h - the table of command line options: their values, where
 *                  these are stored, and the texts of --help.
 *
 * Owner    none; constant.
 * Thread   any.
 * Units    those of the options.
 * Errors   a row's check: die.
 * Route    [option table] -> options: parsing, help, defaults
 */

#ifndef TOOLS_OPTION_TABLE_H
#define TOOLS_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>

/* In Triton's order; the last is our own. */
typedef enum {
    GROUP_GLOBAL,
    GROUP_SERVER,
    GROUP_LOGGING,
    GROUP_REPOSITORY,
    GROUP_HTTP,
    GROUP_GRPC,
    GROUP_SAGEMAKER,
    GROUP_VERTEX,
    GROUP_METRICS,
    GROUP_TRACING,
    GROUP_BACKEND,
    GROUP_AGENT,
    GROUP_CACHE,
    GROUP_RATE_LIMIT,
    GROUP_MEMORY,
    GROUP_DEPRECATED,
    GROUP_OURS,
    GROUPS
} option_group_t;

typedef enum {
    KIND_TEXT,          /* not empty                                         */
    KIND_OPTIONAL,      /* text; an empty one counts as none                 */
    KIND_CHOICE,        /* one of words, ignoring case                       */
    KIND_LIST,          /* repeatable, not empty                             */
    KIND_NUMBER,
    KIND_BOOL,
    KIND_VERBOSE,       /* a number, or true or false                        */
    KIND_FLAG,          /* no value                                          */
    KIND_HELP,
    KIND_CORE           /* from the core's table, with its help              */
} option_kind_t;

#define NOT_KEPT 0      /* offset of a value that is only checked            */

typedef struct {
    const char     *name;
    option_group_t  group;
    option_kind_t   kind;
    size_t          offset;         /* into options_t                        */
    const char     *standard;       /* default, as on the command line; NULL:
                                       none                                  */
    const char     *help;
    long            min;
    long            max;
    bool            nearest;        /* a number beyond min or max counts as
                                       that, with a warning                  */
    const char     *words;          /* of a choice, by blanks                */
    const char     *empty;          /* of the core's: an empty value means
                                       this, with a warning; NULL: an error  */
    void          (*check)(const char *name, const char *value);
    const char   *(*normal)(const char *name, const char *value);
                                    /* checks, too; returns the value to keep,
                                       a warning says where it is another    */
    const char     *deprecated;     /* replaced by this option               */
    const char     *no_effect;      /* reason, or what to use instead        */
} option_t;

extern const option_t option_table[];
extern const size_t option_table_count;
extern const char *const option_groups[GROUPS];

/* NULL: no option has that name. */
const option_t *option_find(const char *name, size_t len);

/* The first option of tritonserver behind after (NULL: of all) with this
   abbreviation; NULL: none. */
const option_t *option_begins(const char *name, size_t len,
    const option_t *after);

#endif /* TOOLS_OPTION_TABLE_H */
