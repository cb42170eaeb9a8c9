#include "core/proto/index_join.h"

#include <stdlib.h>
#include <string.h>

#include "core/proto/json_doc.h"

static const char *const members[] = { "name", "version", "state", "reason" };

/* NULL: not a string, or not valid in a message. */
static const char *
text_of(const json_t *value)
{
    const char *text = json_string_value(value);

    return text != NULL && strlen(text) == json_string_length(value) ? text
        : NULL;
}

/* NULL: the row has no name. */
static const char *
name_of(const json_t *row)
{
    return text_of(json_object_get(row, "name"));
}

static int
compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* Lists the names of our rows, sorted. */
static inf_err_t *
list_names(const json_t *rows, const char ***out, size_t *count)
{
    size_t i;
    json_t *row;
    const char **names = malloc((json_array_size(rows) + 1) * sizeof(*names));

    if (names == NULL) {
        return inf_err_nomem();
    }

    *count = 0;
    json_array_foreach(rows, i, row) {
        const char *name = name_of(row);
        if (name != NULL) {
            names[(*count)++] = name;
        }
    }

    qsort(names, *count, sizeof(*names), compare_names);
    *out = names;
    return NULL;
}

/* Appends a row with the members of an index only. */
static inf_err_t *
put_row(const json_t *row, bool first, inf_buf_t *out)
{
    json_t *copy = json_object();

    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        json_t *v = json_object_get(row, members[i]);
        if (text_of(v) != NULL && json_object_set(copy, members[i], v) != 0) {
            json_decref(copy);
            return inf_err_nomem();
        }
    }

    inf_buf_puts(out, first ? "" : ",");
    inf_err_t *err = inf_json_doc_put(copy, out);
    json_decref(copy);
    return err;
}

static inf_err_t *
join_rows(const json_t *ours, const json_t *theirs, inf_buf_t *out)
{
    const char **names = NULL;
    size_t count = 0;
    size_t i;
    json_t *row;
    bool first = true;

    inf_err_t *err = list_names(ours, &names, &count);
    if (err != NULL) {
        return err;
    }

    inf_buf_puts(out, "[");

    json_array_foreach(ours, i, row) {
        err = put_row(row, first, out);
        if (err != NULL) {
            goto done;
        }
        first = false;
    }

    json_array_foreach(theirs, i, row) {
        const char *name = name_of(row);
        if (name == NULL || name[0] == '\0'
            || bsearch(&name, names, count, sizeof(*names), compare_names))
        {
            continue;
        }
        err = put_row(row, first, out);
        if (err != NULL) {
            goto done;
        }
        first = false;
    }

    inf_buf_puts(out, "]");
    err = inf_buf_status(out);

done:

    free(names);
    return err;
}

inf_err_t *
inf_index_join(inf_slice_t ours, inf_slice_t theirs, inf_buf_t *out)
{
    size_t before = out->len;
    inf_json_doc_t own = { NULL };
    inf_json_doc_t other = { NULL };

    inf_err_t *err = inf_json_doc_parse(&own, ours, 0);
    if (err == NULL) {
        err = inf_json_doc_parse(&other, theirs, 0);
    }
    if (err == NULL
        && (!json_is_array(own.root) || !json_is_array(other.root)))
    {
        err = inf_err_new(INF_ERR_INVALID_ARG, "an index is a list");
    }
    if (err == NULL) {
        err = join_rows(own.root, other.root, out);
    }
    if (err != NULL && out->len > before) {
        out->len = before;
    }

    inf_json_doc_fini(&own);
    inf_json_doc_fini(&other);
    return err;
}
