/*
 * option_table.h - all options of the command line: what values they take,
 *                  where these are kept, what --help says.
 *
 * Owner    none; constant.
 * Thread   any.
 * Units    those of the options.
 * Errors   a row's check: die.
 * Route    [option table] -> options: parsing, help, defaults
 */

#ifndef TOOLS_OPTION_TABLE_H
#define TOOLS_OPTION_TABLE_H

#include <stddef.h>

/* In Triton's order; the last is ours. */
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
    KIND_PATTERN,       /* may be empty                                      */
    KIND_CHOICE,        /* one of words, in any case of letters              */
    KIND_LIST,          /* repeatable, not empty                             */
    KIND_NUMBER,
    KIND_BOOL,
    KIND_VERBOSE,       /* a number, or true and false                       */
    KIND_FLAG,          /* given or not, no value                            */
    KIND_HELP,
    KIND_CORE           /* as the core's table says, with its help           */
} option_kind_t;

#define NOT_KEPT 0      /* offset of a value that is checked and no more     */

typedef struct {
    const char     *name;
    option_group_t  group;
    option_kind_t   kind;
    size_t          offset;         /* into options_t                        */
    const char     *standard;       /* the default, as on the command line;
                                       NULL: none                            */
    const char     *help;
    long            min;
    long            max;
    const char     *words;          /* of a choice, by blanks                */
    void          (*check)(const char *name, const char *value);
    const char     *deprecated;     /* in favour of that option              */
    const char     *no_effect;      /* and what to use instead, or why       */
} option_t;

extern const option_t option_table[];
extern const size_t option_table_count;
extern const char *const option_groups[GROUPS];

/* NULL: none has that name. */
const option_t *option_find(const char *name, size_t len);

/* The one option of tritonserver's whose name begins so; NULL: none, or
   several do. */
const option_t *option_begins(const char *name, size_t len);

#endif /* TOOLS_OPTION_TABLE_H */
