/* metrics.c - see metrics.h */

#include "metrics.h"

#include <stdlib.h>

#include "messages.h"

#define LABELS_MAX  64u
#define BUCKETS_MAX 4096u

static TRITONSERVER_Error *family_new(py_metrics_t *m, py_reader_t *r,
    py_writer_t *w);
static TRITONSERVER_Error *family_delete(py_metrics_t *m, uint64_t id);
static TRITONSERVER_Error *metric_new(py_metrics_t *m, uint64_t family,
    py_reader_t *r, py_writer_t *w);
static TRITONSERVER_Error *place_find(py_metrics_t *m, uint32_t *at);
static TRITONSERVER_Error *metric_make(py_metrics_t *m, uint64_t family,
    py_reader_t *r, TRITONSERVER_Metric **out);
static TRITONSERVER_Error *read_labels(py_reader_t *r,
    TRITONSERVER_Parameter **labels, uint32_t *count);
static TRITONSERVER_Error *read_buckets(py_reader_t *r,
    TRITONSERVER_MetricArgs **out);
static TRITONSERVER_Error *metric_change(TRITONSERVER_Metric *metric,
    py_reader_t *r);
static TRITONSERVER_Metric *metric_of(const py_metrics_t *m, uint64_t id);

void
py_metrics_fini(py_metrics_t *m)
{
    for (size_t i = 0; i < m->metric_count; i++) {
        if (m->metrics[i].metric != NULL) {
            bk_err_log(TRITONSERVER_MetricDelete(m->metrics[i].metric),
                "cannot delete a metric");
        }
    }
    for (size_t i = 0; i < m->family_count; i++) {
        if (m->families[i].family != NULL) {
            bk_err_log(TRITONSERVER_MetricFamilyDelete(
                m->families[i].family), "cannot delete a metric family");
        }
    }

    free(m->metrics);
    free(m->families);
    *m = (py_metrics_t) { 0 };
}

TRITONSERVER_Error *
py_metrics_call(py_metrics_t *m, py_up_t kind, uint64_t id,
    py_reader_t *r, py_writer_t *w)
{
    if (kind == PY_UP_FAMILY_NEW) {
        return family_new(m, r, w);
    }
    if (kind == PY_UP_FAMILY_DELETE) {
        py_write_none(w);
        return family_delete(m, id);
    }
    if (kind == PY_UP_METRIC_NEW) {
        return metric_new(m, id, r, w);
    }

    TRITONSERVER_Metric *metric = metric_of(m, id);
    if (metric == NULL) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "Invalid metric operation as the corresponding 'MetricFamily' "
            "has been deleted.");
    }

    if (kind == PY_UP_METRIC_VALUE) {
        double value = 0;
        TRITONSERVER_Error *err = TRITONSERVER_MetricValue(metric, &value);
        py_write_double(w, value);
        return err;
    }

    py_write_none(w);
    if (kind == PY_UP_METRIC_SET) {
        return metric_change(metric, r);
    }

    m->metrics[(uint32_t) id].metric = NULL;
    return TRITONSERVER_MetricDelete(metric);
}

/* Creates a family from [kind, name, description]. */
static TRITONSERVER_Error *
family_new(py_metrics_t *m, py_reader_t *r, py_writer_t *w)
{
    const char *name, *description;
    int64_t kind;

    if (!py_read_list_of(r, 3) || !py_read_int(r, &kind)
        || !py_read_text(r, &name, NULL)
        || !py_read_text(r, &description, NULL) || kind < 0
        || kind > TRITONSERVER_METRIC_KIND_HISTOGRAM)
    {
        return py_error_message("metric family");
    }

    py_family_t *wider = realloc(m->families,
        (m->family_count + 1) * sizeof(*wider));
    if (wider == NULL) {
        return bk_err_nomem("a metric family");
    }

    m->families = wider;
    TRITONSERVER_Error *err = TRITONSERVER_MetricFamilyNew(
        &m->families[m->family_count].family, (TRITONSERVER_MetricKind) kind,
        name, description);
    if (err == NULL) {
        py_write_uint(w, m->family_count++);
    }
    return err;
}

/* Deletes a family after its metrics. */
static TRITONSERVER_Error *
family_delete(py_metrics_t *m, uint64_t id)
{
    if (id >= m->family_count || m->families[id].family == NULL) {
        return NULL;
    }

    for (size_t i = 0; i < m->metric_count; i++) {
        if (m->metrics[i].family == id && m->metrics[i].metric != NULL) {
            bk_err_log(TRITONSERVER_MetricDelete(m->metrics[i].metric),
                "cannot delete a metric");
            m->metrics[i].metric = NULL;
        }
    }

    TRITONSERVER_Error *err = TRITONSERVER_MetricFamilyDelete(
        m->families[id].family);
    m->families[id].family = NULL;
    return err;
}

static TRITONSERVER_Error *
metric_new(py_metrics_t *m, uint64_t family, py_reader_t *r,
    py_writer_t *w)
{
    if (family >= m->family_count || m->families[family].family == NULL) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "the metric family was deleted");
    }

    uint32_t at;
    TRITONSERVER_Error *err = place_find(m, &at);
    if (err != NULL) {
        return err;
    }

    py_metric_t *place = &m->metrics[at];
    err = metric_make(m, family, r, &place->metric);
    if (err != NULL) {
        place->metric = NULL;
        return err;
    }

    place->family = family;
    place->generation++;
    py_write_uint(w, (uint64_t) place->generation << 32 | at);
    return NULL;
}

/* Finds the place of a deleted metric, or adds one. */
static TRITONSERVER_Error *
place_find(py_metrics_t *m, uint32_t *at)
{
    for (*at = 0; *at < m->metric_count; ++*at) {
        if (m->metrics[*at].metric == NULL) {
            return NULL;
        }
    }

    py_metric_t *wider = *at == UINT32_MAX ? NULL : realloc(m->metrics,
        ((size_t) *at + 1) * sizeof(*wider));
    if (wider == NULL) {
        return bk_err_nomem("a metric");
    }

    m->metrics = wider;
    m->metrics[*at] = (py_metric_t) { 0 };
    m->metric_count++;
    return NULL;
}

/* Creates a metric from [[[name, value]...], [bucket...] or none]. */
static TRITONSERVER_Error *
metric_make(py_metrics_t *m, uint64_t family, py_reader_t *r,
    TRITONSERVER_Metric **out)
{
    TRITONSERVER_Parameter *labels[LABELS_MAX];
    TRITONSERVER_MetricArgs *buckets = NULL;
    uint32_t count = 0;

    TRITONSERVER_Error *err = !py_read_list_of(r, 2)
        ? py_error_message("metric") : read_labels(r, labels, &count);
    if (err == NULL) {
        err = read_buckets(r, &buckets);
    }
    if (err == NULL) {
        err = TRITONSERVER_MetricNewWithArgs(out,
            m->families[family].family,
            (const TRITONSERVER_Parameter **) labels, count, buckets);
    }

    bk_err_log(TRITONSERVER_MetricArgsDelete(buckets),
        "cannot delete a metric's arguments");
    for (uint32_t i = 0; i < count; i++) {
        TRITONSERVER_ParameterDelete(labels[i]);
    }
    return err;
}

/* Reads labels; count: number created, even on error. */
static TRITONSERVER_Error *
read_labels(py_reader_t *r, TRITONSERVER_Parameter **labels, uint32_t *count)
{
    const char *name, *value;
    uint32_t n;

    if (!py_read_list(r, &n)) {
        return py_error_message("list of labels");
    }
    if (n > LABELS_MAX) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "a metric has at most %u labels", LABELS_MAX);
    }

    for (uint32_t i = 0; i < n; i++) {
        if (!py_read_list_of(r, 2) || !py_read_text(r, &name, NULL)
            || !py_read_text(r, &value, NULL))
        {
            return py_error_message("label");
        }

        labels[i] = TRITONSERVER_ParameterNew(name,
            TRITONSERVER_PARAMETER_STRING, value);
        if (labels[i] == NULL) {
            return bk_err_nomem("a label");
        }
        *count = i + 1;
    }
    return NULL;
}

static TRITONSERVER_Error *
read_buckets(py_reader_t *r, TRITONSERVER_MetricArgs **out)
{
    uint32_t n;

    if (py_read_none(r)) {
        return NULL;
    }
    if (!py_read_list(r, &n)) {
        return py_error_message("list of buckets");
    }
    if (n > BUCKETS_MAX) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "a histogram has at most %u buckets", BUCKETS_MAX);
    }

    double *bounds = calloc((size_t) n + 1, sizeof(*bounds));
    TRITONSERVER_Error *err = bounds == NULL ? bk_err_nomem("buckets")
        : NULL;
    for (uint32_t i = 0; i < n && err == NULL; i++) {
        if (!py_read_double(r, &bounds[i])) {
            err = py_error_message("bucket");
        }
    }
    if (err == NULL) {
        err = TRITONSERVER_MetricArgsNew(out);
    }
    if (err == NULL) {
        err = TRITONSERVER_MetricArgsSetHistogram(*out, bounds, n);
    }

    free(bounds);
    return err;
}

/* Changes a metric by [operation, value]. */
static TRITONSERVER_Error *
metric_change(TRITONSERVER_Metric *metric, py_reader_t *r)
{
    int64_t op;
    double value;

    if (!py_read_list_of(r, 2) || !py_read_int(r, &op)
        || !py_read_double(r, &value))
    {
        return py_error_message("change of a metric");
    }

    switch (op) {
    case PY_METRIC_INCREMENT:
        return TRITONSERVER_MetricIncrement(metric, value);
    case PY_METRIC_ASSIGN:
        return TRITONSERVER_MetricSet(metric, value);
    case PY_METRIC_OBSERVE:
        return TRITONSERVER_MetricObserve(metric, value);
    default:
        return py_error_message("operation on a metric");
    }
}

static TRITONSERVER_Metric *
metric_of(const py_metrics_t *m, uint64_t id)
{
    uint32_t at = (uint32_t) id;

    return at < m->metric_count && m->metrics[at].generation == id >> 32
        ? m->metrics[at].metric : NULL;
}
