#include "core/proto/metadata_join.h"

#include "core/proto/json_doc.h"

static inf_err_t *join_extensions(const json_t *ours, const json_t *theirs,
    inf_buf_t *out);
static bool is_listed(const json_t *list, const json_t *text);

inf_err_t *
inf_metadata_join(inf_slice_t ours, inf_slice_t theirs, inf_buf_t *out)
{
    inf_json_doc_t own = { NULL };
    inf_json_doc_t other = { NULL };

    inf_err_t *err = inf_json_doc_parse(&own, ours, 0);
    if (err == NULL) {
        err = inf_json_doc_parse(&other, theirs, 0);
    }
    if (err == NULL) {
        err = join_extensions(own.root, other.root, out);
    }

    inf_json_doc_fini(&own);
    inf_json_doc_fini(&other);
    return err;
}

static inf_err_t *
join_extensions(const json_t *ours, const json_t *theirs, inf_buf_t *out)
{
    const json_t *listed = json_object_get(ours, "extensions");
    const json_t *wanted = json_object_get(theirs, "extensions");
    size_t i;
    json_t *text;

    if (!json_is_array(listed) || !json_is_array(wanted)) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "a server's metadata list its extensions");
    }

    json_t *joined = json_copy((json_t *) (uintptr_t) ours);
    json_t *both = json_array();
    bool failed = false;

    json_array_foreach(listed, i, text) {
        failed |= is_listed(wanted, text)
            && json_array_append(both, text) != 0;
    }
    failed |= json_object_set_new(joined, "extensions", both) != 0;

    inf_err_t *err = failed ? inf_err_nomem() : inf_json_doc_put(joined, out);
    json_decref(joined);
    return err;
}

static bool
is_listed(const json_t *list, const json_t *text)
{
    size_t i;
    json_t *other;

    json_array_foreach(list, i, other) {
        if (json_equal(other, text)) {
            return true;
        }
    }
    return false;
}
