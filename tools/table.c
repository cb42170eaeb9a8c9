#include "table.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "die.h"

static void print_rule(FILE *f, const table_t *t);
static void print_row(FILE *f, const table_t *t, char *const *cells);

void
table_add(table_t *t, ...)
{
    va_list args;
    char  **wider = realloc(t->cells, (t->n + t->columns) * sizeof(char *));

    if (wider == NULL) {
        die("out of memory");
    }
    t->cells = wider;

    va_start(args, t);
    for (size_t c = 0; c < t->columns; c++) {
        char *cell = strdup(va_arg(args, const char *));

        if (cell == NULL) {
            die("out of memory");
        }
        for (const char *line = cell; line != NULL; ) {
            size_t      len = strcspn(line, "\n");

            t->width[c] = len > t->width[c] ? len : t->width[c];
            line = line[len] == '\n' ? line + len + 1 : NULL;
        }
        t->cells[t->n++] = cell;
    }
    va_end(args);
}

void
table_print(FILE *f, const table_t *t)
{
    print_rule(f, t);
    for (size_t row = 0; row < t->n; row += t->columns) {
        print_row(f, t, t->cells + row);
        if (row == 0) {
            print_rule(f, t);
        }
    }
    print_rule(f, t);
    fputc('\n', f);
}

static void
print_rule(FILE *f, const table_t *t)
{
    for (size_t c = 0; c < t->columns; c++) {
        fputc('+', f);
        for (size_t i = 0; i < t->width[c] + 2; i++) {
            fputc('-', f);
        }
    }
    fputs("+\n", f);
}

/* Writes a row; a cell with several lines gives several lines. */
static void
print_row(FILE *f, const table_t *t, char *const *cells)
{
    const char *rest[TABLE_COLUMNS_MAX];
    bool        more = true;

    memcpy(rest, cells, t->columns * sizeof(char *));
    while (more) {
        more = false;
        for (size_t c = 0; c < t->columns; c++) {
            size_t len = strcspn(rest[c], "\n");

            fprintf(f, "| %.*s%*s ", (int) len, rest[c],
                    (int) (t->width[c] - len), "");
            rest[c] += len + (rest[c][len] == '\n');
            more |= rest[c][0] != '\0';
        }
        fputs("|\n", f);
    }
}

void
table_free(table_t *t)
{
    for (size_t i = 0; i < t->n; i++) {
        free(t->cells[i]);
    }
    free(t->cells);
}
