/* call_spec.c - see call_spec.h */

#include "call_spec.h"

#include "common/config_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX   32
#define LEAVES_MAX  4096
#define NAME_SIZE   1024        /* of a name, with its final zero            */

typedef struct {
    char   **items;
    uint32_t count;
    char     name[NAME_SIZE];   /* of the present node                       */
} leaves_t;

static TRITONSERVER_Error *spec_parse(const char *text, const char *what,
    bk_json_t **root, const bk_json_t **top);
static TRITONSERVER_Error *read_inputs(leaves_t *l, const bk_json_t *top);
static TRITONSERVER_Error *read_node(leaves_t *l, const bk_json_t *node,
    size_t len, unsigned depth);
static TRITONSERVER_Error *read_children(leaves_t *l, const bk_json_t *node,
    const bk_json_t *keys, size_t len, unsigned depth);
static TRITONSERVER_Error *node_keys(const bk_json_t *node, bk_json_t **root,
    const bk_json_t **keys);
static TRITONSERVER_Error *leaf_add(leaves_t *l);
static void leaves_fini(leaves_t *l);
static TRITONSERVER_Error *signature_fill(pt_signature_t *s, leaves_t *in,
    leaves_t *out);

TRITONSERVER_Error *
pt_call_spec_read(pt_signature_t *s, const char *in, const char *out)
{
    leaves_t inputs = { 0 };
    leaves_t outputs = { 0 };
    const bk_json_t *top;
    bk_json_t *root;

    TRITONSERVER_Error *err = spec_parse(in, "input", &root, &top);
    if (err == NULL) {
        err = read_inputs(&inputs, top);
        bk_json_free(root);
    }
    if (err == NULL) {
        err = spec_parse(out, "output", &root, &top);
    }
    if (err == NULL) {
        strcpy(outputs.name, "RESULT");
        err = read_node(&outputs, top, strlen(outputs.name), 0);
        bk_json_free(root);
    }
    if (err == NULL) {
        err = signature_fill(s, &inputs, &outputs);
    }

    leaves_fini(&inputs);
    leaves_fini(&outputs);
    return err;
}

/* The text is [version, node]. */
static TRITONSERVER_Error *
spec_parse(const char *text, const char *what, bk_json_t **root,
    const bk_json_t **top)
{
    TRITONSERVER_Error *err = bk_json_parse(text, strlen(text), root);
    if (err != NULL) {
        return bk_err_add(err, "%s specification of the package", what);
    }

    *top = bk_json_at(*root, 1);
    if (bk_json_int(bk_json_at(*root, 0), 0) != 1
        || bk_json_count(*root) != 2)
    {
        bk_json_free(*root);
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
            "%s specification of the package is of another version than 1",
            what);
    }

    return NULL;
}

/* The top node is a tuple of positional arguments and a dict of named ones. */
static TRITONSERVER_Error *
read_inputs(leaves_t *l, const bk_json_t *top)
{
    const bk_json_t *children = bk_json_member(top, "children_spec");

    if (bk_json_count(children) != 2) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
            "input specification of the package has %zu parts, not positional "
            "and named arguments", bk_json_count(children));
    }

    strcpy(l->name, "ARGS");
    TRITONSERVER_Error *err = read_children(l, bk_json_at(children, 0), NULL,
        strlen(l->name), 1);
    if (err != NULL) {
        return err;
    }

    const bk_json_t *named = bk_json_at(children, 1);
    const bk_json_t *keys;
    bk_json_t *root;

    err = node_keys(named, &root, &keys);
    if (err == NULL) {
        strcpy(l->name, "KWARGS");
        err = read_children(l, named, keys, strlen(l->name), 1);
        bk_json_free(root);
    }

    return err;
}

static TRITONSERVER_Error *
read_node(leaves_t *l, const bk_json_t *node, size_t len, unsigned depth)
{
    const bk_json_t *keys;
    bk_json_t *root;

    if (depth > DEPTH_MAX) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
            "specification of the package is nested more than %d deep",
            DEPTH_MAX);
    }

    /* a leaf's type is null */
    if (bk_json_string(bk_json_member(node, "type"), NULL) == NULL) {
        return leaf_add(l);
    }

    TRITONSERVER_Error *err = node_keys(node, &root, &keys);
    if (err == NULL) {
        err = read_children(l, node, keys, len, depth);
        bk_json_free(root);
    }

    return err;
}

/* Appends each child's key to l->name, and restores its length len. */
static TRITONSERVER_Error *
read_children(leaves_t *l, const bk_json_t *node, const bk_json_t *keys,
    size_t len, unsigned depth)
{
    const bk_json_t *children = bk_json_member(node, "children_spec");

    for (size_t i = 0; i < bk_json_count(children); i++) {
        size_t room = sizeof(l->name) - len;
        const char *key = bk_json_string(bk_json_at(keys, i), NULL);

        int n = key != NULL ? snprintf(l->name + len, room, "[%s]", key)
            : snprintf(l->name + len, room, "[%zu]", i);
        if (n < 0 || (size_t) n >= room) {
            return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
                "name of a tensor of the package is longer than %d bytes",
                NAME_SIZE - 1);
        }

        TRITONSERVER_Error *err = read_node(l, bk_json_at(children, i),
            len + (size_t) n, depth + 1);
        if (err != NULL) {
            return err;
        }
    }

    l->name[len] = '\0';
    return NULL;
}

/* The context of a dict has its keys, as an array or as the text of one. */
static TRITONSERVER_Error *
node_keys(const bk_json_t *node, bk_json_t **root, const bk_json_t **keys)
{
    const bk_json_t *context = bk_json_member(node, "context");
    const char *text = bk_json_string(context, NULL);

    *root = NULL;
    *keys = context;
    if (text == NULL || text[0] != '[') {
        return NULL;
    }

    TRITONSERVER_Error *err = bk_json_parse(text, strlen(text), root);
    *keys = *root;
    return err == NULL ? NULL : bk_err_add(err, "keys in a specification of "
        "the package");
}

static TRITONSERVER_Error *
leaf_add(leaves_t *l)
{
    if (l->count == LEAVES_MAX) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
            "package has more than %d tensors", LEAVES_MAX);
    }

    char **wider = realloc(l->items, (l->count + 1) * sizeof(*wider));
    if (wider == NULL) {
        return bk_err_nomem("names of a package's tensors");
    }

    l->items = wider;
    l->items[l->count] = strdup(l->name);
    if (l->items[l->count] == NULL) {
        return bk_err_nomem("name of a package's tensor");
    }

    l->count++;
    return NULL;
}

static void
leaves_fini(leaves_t *l)
{
    for (uint32_t i = 0; i < l->count; i++) {
        free(l->items[i]);
    }
    free(l->items);
}

static TRITONSERVER_Error *
signature_fill(pt_signature_t *s, leaves_t *in, leaves_t *out)
{
    if (!pt_signature_init(s, in->count, out->count)) {
        return bk_err_nomem("names of a package's tensors");
    }

    for (uint32_t i = 0; i < in->count; i++) {
        s->parameters[i].name = in->items[i];
        in->items[i] = NULL;
    }
    for (uint32_t i = 0; i < out->count; i++) {
        s->outputs[i] = out->items[i];
        out->items[i] = NULL;
    }

    return NULL;
}
