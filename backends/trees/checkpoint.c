/* checkpoint.c - see checkpoint.h */

#include "checkpoint.h"

#include <inttypes.h>
#include <string.h>

#define TYPE_FLOAT      2
#define TYPE_DOUBLE     3
#define TASK_GROVES     1               /* of version 3                      */
#define TRANSFORM_MAX   256             /* bytes of a name in version 3      */
#define NUMBER          0               /* a field of the model's number type */

typedef struct {
    const char         *at;
    size_t              left;
    size_t              number;         /* bytes of a threshold or leaf      */
    TRITONSERVER_Error *err;
} cursor_t;

typedef struct {
    const char *name;
    size_t      size;                   /* of an element; NUMBER             */
    bool        array;                  /* has a count of 64 bits in front   */
} field_t;

static void check(cursor_t *c);
static void check_header(cursor_t *c);
static void check_header_3(cursor_t *c, uint64_t trees);
static void check_trees(cursor_t *c, uint64_t trees, const field_t *fields,
    size_t count, const char *end);
static void check_fields(cursor_t *c, const field_t *fields, size_t count);
static void check_optional(cursor_t *c, const char *name);
static bool take(cursor_t *c, const char *name, void *out, size_t size);
static bool skip(cursor_t *c, const char *name, uint64_t count, size_t size);

static const field_t header_fields[] = {
    { "num_feature", 4, false }, { "task_type", 1, false },
    { "average_tree_output", 1, false }, { "num_target", 4, false },
    { "num_class", 4, true }, { "leaf_vector_shape", 4, true },
    { "target_id", 4, true }, { "class_id", 4, true },
    { "postprocessor", 1, true }, { "sigmoid_alpha", 4, false },
    { "ratio_c", 4, false }, { "base_scores", 8, true },
    { "attributes", 1, true }
};

static const field_t tree_fields[] = {
    { "num_nodes", 4, false }, { "has_categorical_split", 1, false },
    { "node_type", 1, true }, { "cleft", 4, true }, { "cright", 4, true },
    { "split_index", 4, true }, { "default_left", 1, true },
    { "leaf_value", NUMBER, true }, { "threshold", NUMBER, true },
    { "cmp", 1, true }, { "category_list_right_child", 1, true },
    { "leaf_vector", NUMBER, true }, { "leaf_vector_begin", 8, true },
    { "leaf_vector_end", 8, true }, { "category_list", 4, true },
    { "category_list_begin", 8, true }, { "category_list_end", 8, true },
    { "data_count", 8, true }, { "data_count_present", 1, true },
    { "sum_hess", 8, true }, { "sum_hess_present", 1, true },
    { "gain", 8, true }, { "gain_present", 1, true }
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

TRITONSERVER_Error *
trees_checkpoint_check(const void *data, size_t len)
{
    cursor_t c = { .at = data, .left = len };

    check(&c);
    return c.err == NULL ? NULL : bk_err_add(c.err, "not a treelite"
        " checkpoint, or a part of one");
}

static void
check(cursor_t *c)
{
    int32_t version[3];
    uint8_t types[2];
    uint64_t trees;

    if (!take(c, "version", version, sizeof(version))
        || !take(c, "threshold_type", types, sizeof(types))
        || !take(c, "num_tree", &trees, sizeof(trees)))
    {
        return;
    }

    bool old = version[0] == 3 && version[1] == 9;
    if (!old && version[0] != 4) {
        c->err = bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED, "it is of version"
            " %" PRId32 ".%" PRId32 ", and 3.9 and 4 can be read", version[0],
            version[1]);
        return;
    }
    if (types[0] != types[1]
        || (types[0] != TYPE_FLOAT && types[0] != TYPE_DOUBLE))
    {
        c->err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "thresholds of type %u, leaves of type %u", types[0], types[1]);
        return;
    }

    c->number = types[0] == TYPE_DOUBLE ? 8 : 4;
    if (old) {
        check_header_3(c, trees);

    } else {
        check_header(c);
        check_trees(c, trees, tree_fields, COUNT(tree_fields), "num_opt_field"
            "_per_tree");
    }
}

static void
check_header(cursor_t *c)
{
    check_fields(c, header_fields, COUNT(header_fields));
    check_optional(c, "num_opt_field_per_model");
}

/* treelite 3 wrote its structures as they lay in memory. */
static void
check_header_3(cursor_t *c, uint64_t trees)
{
    /* a node: children, feature, number, three statistics, six bytes, and what
       alignment adds */
    const field_t fields[] = {
        { "num_nodes", 4, false }, { "has_categorical_split", 1, false },
        { "nodes", c->number == 8 ? 56 : 48, true },
        { "leaf_vector", NUMBER, true }, { "leaf_vector_begin", 8, true },
        { "leaf_vector_end", 8, true }, { "category_list", 4, true },
        { "category_offsets", 8, true }
    };
    struct {
        uint8_t  output_type;
        uint8_t  grove_per_class;
        uint8_t  pad[2];
        uint32_t classes;
        uint32_t leaf_values;
    } task;
    char transform[TRANSFORM_MAX];
    float parameters[3];
    uint8_t bytes[2];                   /* task, average_tree_output         */

    if (!skip(c, "num_feature", 1, 4)
        || !take(c, "task_type", bytes, sizeof(bytes))
        || !take(c, "task_param", &task, sizeof(task))
        || !take(c, "pred_transform", transform, sizeof(transform))
        || !take(c, "sigmoid_alpha", parameters, sizeof(parameters)))
    {
        return;
    }

    if (memchr(transform, '\0', sizeof(transform)) == NULL
        || (bytes[0] == TASK_GROVES && task.classes == 0)
        || task.classes > INT32_MAX || task.leaf_values > INT32_MAX)
    {
        c->err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "%" PRIu32
            " classes, and a transformation without an end", task.classes);
        return;
    }

    check_optional(c, "num_opt_field_per_model");
    check_trees(c, trees, fields, COUNT(fields), "num_opt_field_per_tree");
}

static void
check_trees(cursor_t *c, uint64_t trees, const field_t *fields, size_t count,
    const char *end)
{
    for (uint64_t i = 0; c->err == NULL && i < trees; i++) {
        check_fields(c, fields, count);
        check_optional(c, end);
        check_optional(c, "num_opt_field_per_node");
        if (c->err != NULL) {
            c->err = bk_err_add(c->err, "tree %" PRIu64 " of %" PRIu64, i,
                trees);
        }
    }
}

static void
check_fields(cursor_t *c, const field_t *fields, size_t count)
{
    for (size_t i = 0; c->err == NULL && i < count; i++) {
        size_t size = fields[i].size == NUMBER ? c->number : fields[i].size;
        uint64_t elements = 1;

        if (fields[i].array && !take(c, fields[i].name, &elements,
            sizeof(elements)))
        {
            return;
        }
        (void) skip(c, fields[i].name, elements, size);
    }
}

/* A count of fields, each with a name, the size of an element and how many. */
static void
check_optional(cursor_t *c, const char *name)
{
    int32_t fields = 0;

    if (c->err != NULL || !take(c, name, &fields, sizeof(fields))) {
        return;
    }

    for (int32_t i = 0; i < fields; i++) {
        uint64_t len, sizes[2];

        if (!take(c, name, &len, sizeof(len)) || !skip(c, name, len, 1)
            || !take(c, name, sizes, sizeof(sizes)))
        {
            return;
        }
        if (sizes[0] > c->left || !skip(c, name, sizes[1],
            (size_t) sizes[0]))
        {
            c->err = c->err != NULL ? c->err : bk_err_new(
                TRITONSERVER_ERROR_INVALID_ARG, "the file ends in \"%s\"",
                name);
            return;
        }
    }
}

static bool
take(cursor_t *c, const char *name, void *out, size_t size)
{
    const char *from = c->at;

    if (!skip(c, name, 1, size)) {
        return false;
    }

    memcpy(out, from, size);
    return true;
}

static bool
skip(cursor_t *c, const char *name, uint64_t count, size_t size)
{
    uint64_t bytes;

    if (__builtin_mul_overflow(count, size, &bytes) || bytes > c->left) {
        c->err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "the file ends in \"%s\"", name);
        return false;
    }

    c->at += bytes;
    c->left -= bytes;
    return true;
}
