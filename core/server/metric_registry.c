#include "core/server/metric_registry.h"

#include <locale.h>
#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/lock.h"
#include "core/proto/message_utf8.h"
#include "core/proto/number.h"

#define METRICS_RANK    70
#define METRIC_WHOLE_MAX 1e15   /* below it "%.16g" writes whole numbers without
                                   point and exponent                        */
#define LABEL_TEXT_MAX 128      /* of a searched label                       */
#define METRIC_TEXT_MAX 48      /* "%.16g" of any double, with room to spare */

struct inf_metric_series_s {
    inf_metric_series_t *next;          /* registry's lock                   */
    size_t               users;         /* registry's lock: Metric objects   */
    size_t               refs;          /* registry's lock: users, a reader  */

    inf_metric_family_t *family;        /* set in new, then constant         */
    char                *labels;        /* rendered, sorted, without braces  */
    size_t               bound_count;
    double              *bounds;

    _Atomic double       value;         /* relaxed; of a histogram the sum   */
    _Atomic uint64_t    *counts;        /* relaxed; one per bound, then +Inf */
};

struct inf_metric_family_s {
    inf_metric_family_t *next;          /* registry's lock                   */
    inf_metric_series_t *first;         /* registry's lock                   */
    inf_metric_series_t *last;          /* registry's lock                   */

    inf_metric_kind_t    kind;          /* set in new, then constant         */
    char                *name;
    char                *description;
};

/* Rank 70; guards the list of families and their registration. */
static inf_lock_t registry_lock = {
    .mutex = PTHREAD_MUTEX_INITIALIZER, .rank = METRICS_RANK
};
static inf_metric_family_t *registry_first;     /* registry_lock             */
static inf_metric_family_t *registry_last;      /* registry_lock             */

static inf_metric_family_t *family_new(inf_metric_kind_t kind,
    const char *name, const char *description);
static void family_free(inf_metric_family_t *f);
static inf_metric_family_t *family_find_locked(const char *name)
    INF_NEEDS(registry_lock);
static inf_err_t *series_new(inf_metric_family_t *f, char *labels,
    const double *bounds, size_t bound_count, inf_metric_series_t **out);
static void series_free(inf_metric_series_t *series);
static inf_metric_series_t *series_find_locked(inf_metric_family_t *f,
    const char *labels) INF_NEEDS(registry_lock);
static inf_metric_series_t *series_unref_locked(inf_metric_series_t *series)
    INF_NEEDS(registry_lock);
static inf_metric_series_t *series_next(inf_metric_family_t *f,
    inf_metric_series_t *at);
static inf_err_t *labels_render(const inf_metric_family_t *f,
    const inf_metric_label_t *labels, size_t count, char **out);
static inf_err_t *labels_check(const inf_metric_family_t *f,
    const inf_metric_label_t *labels, size_t count);
static void labels_sort(const inf_metric_label_t **sorted, size_t count);
static bool has_label(const char *labels, const char *label);
static bool name_is_valid(const char *name, bool colon);
static bool bounds_rise(const double *bounds, size_t count);
static void put_escaped(inf_buf_t *out, const char *text, bool quotes);
static void put_family(inf_buf_t *out, const inf_metric_family_t *f);
static bool has_head(const inf_buf_t *out, const char *name);
static void put_series(inf_buf_t *out, const inf_metric_series_t *series);
static void put_histogram(inf_buf_t *out, const inf_metric_series_t *series);
static void put_sample(inf_buf_t *out, const inf_metric_series_t *series,
    const char *suffix, const char *bound);
static void number_text(char text[METRIC_TEXT_MAX], double value);

inf_err_t *
inf_metric_family_get(inf_metric_kind_t kind, const char *name,
    const char *description, inf_metric_family_t **out)
{
    if (!name_is_valid(name, true)) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "Invalid metric name '%s'", name);
    }

    inf_metric_family_t *made = family_new(kind, name, description);
    if (made == NULL) {
        return inf_err_nomem();
    }

    inf_lock(&registry_lock);

    inf_metric_family_t *f = family_find_locked(name);
    if (f == NULL) {
        if (registry_last == NULL) {
            registry_first = made;
        } else {
            registry_last->next = made;
        }
        registry_last = made;
        f = made;
        made = NULL;
    }

    inf_unlock(&registry_lock);

    family_free(made);
    if (f->kind != kind) {
        return inf_err_new(INF_ERR_INVALID_ARG, "Family name already exists"
            " with different type ('%s')", name);
    }

    *out = f;
    return NULL;
}

inf_metric_kind_t
inf_metric_family_kind(const inf_metric_family_t *f)
{
    return f->kind;
}

const char *
inf_metric_family_name(const inf_metric_family_t *f)
{
    return f->name;
}

inf_err_t *
inf_metric_series_get(inf_metric_family_t *f, const inf_metric_label_t *labels,
    size_t label_count, const double *bounds, size_t bound_count,
    inf_metric_series_t **out)
{
    char *text = NULL;
    inf_err_t *err = labels_render(f, labels, label_count, &text);
    if (err != NULL) {
        return err;
    }

    inf_metric_series_t *made = NULL;
    err = series_new(f, text, bounds, bound_count, &made);
    if (err != NULL) {
        free(text);
        return err;
    }

    inf_lock(&registry_lock);

    inf_metric_series_t *series = series_find_locked(f, text);
    if (series == NULL) {
        if (f->last == NULL) {
            f->first = made;
        } else {
            f->last->next = made;
        }
        f->last = made;
        series = made;
        made = NULL;
    }
    series->users++;
    series->refs++;

    inf_unlock(&registry_lock);

    series_free(made);
    *out = series;
    return NULL;
}

void
inf_metric_series_drop(inf_metric_series_t *series)
{
    if (series == NULL) {
        return;
    }

    inf_lock(&registry_lock);
    series->users--;
    inf_metric_series_t *dead = series_unref_locked(series);
    inf_unlock(&registry_lock);

    series_free(dead);
}

void
inf_metric_add(inf_metric_series_t *series, double value)
{
    double have = atomic_load_explicit(&series->value, memory_order_relaxed);

    while (!atomic_compare_exchange_weak_explicit(&series->value, &have,
            have + value, memory_order_relaxed, memory_order_relaxed))
    {
        continue;
    }
}

void
inf_metric_set(inf_metric_series_t *series, double value)
{
    atomic_store_explicit(&series->value, value, memory_order_relaxed);
}

double
inf_metric_value(const inf_metric_series_t *series)
{
    return atomic_load_explicit(&series->value, memory_order_relaxed);
}

bool
inf_metric_find_gauge(const char *family, const inf_metric_label_t *label,
    double *value)
{
    const inf_metric_series_t *found = NULL;
    char text[LABEL_TEXT_MAX];
    int n = snprintf(text, sizeof(text), "%s=\"%s\"", label->name,
        label->value);

    if (n < 0 || (size_t) n >= sizeof(text)) {
        return false;
    }

    inf_lock(&registry_lock);
    const inf_metric_family_t *f = family_find_locked(family);
    for (const inf_metric_series_t *s = f != NULL
         && f->kind == INF_METRIC_GAUGE ? f->first : NULL; s != NULL;
         s = s->next)
    {
        found = s->users > 0 && has_label(s->labels, text) ? s : found;
    }
    if (found != NULL) {
        *value = inf_metric_value(found);
    }
    inf_unlock(&registry_lock);
    return found != NULL;
}

/* Whether labels contains label, at the start or after a comma; quotes in
   values are escaped. */
static bool
has_label(const char *labels, const char *label)
{
    const char *at = labels;

    while ((at = strstr(at, label)) != NULL) {
        if (at == labels || at[-1] == ',') {
            return true;
        }
        at++;
    }
    return false;
}

void
inf_metric_observe(inf_metric_series_t *series, double value)
{
    size_t low = 0;
    size_t high = series->bound_count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (value <= series->bounds[mid]) {
            high = mid;
        } else {
            low = mid + 1;
        }
    }

    atomic_fetch_add_explicit(&series->counts[low], 1, memory_order_relaxed);
    inf_metric_add(series, value);
}

void
inf_metric_put_head(inf_buf_t *out, const char *name, const char *help,
    const char *type)
{
    inf_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name,
        type);
}

void
inf_metric_put_one(inf_buf_t *out, const char *name, const char *help,
    const char *type, double value)
{
    inf_metric_put_head(out, name, help, type);
    inf_buf_printf(out, "%s ", name);
    inf_metric_put_number(out, value);
    inf_buf_putc(out, '\n');
}

void
inf_metric_put_number(inf_buf_t *out, double value)
{
    char text[METRIC_TEXT_MAX];

    if (value >= 0 && value < METRIC_WHOLE_MAX
        && value == (double) (uint64_t) value)
    {
        inf_metric_put_count(out, (uint64_t) value);
        return;
    }

    number_text(text, value);
    inf_buf_puts(out, text);
}

void
inf_metric_put_count(inf_buf_t *out, uint64_t count)
{
    char text[INF_NUMBER_MAX_TEXT];
    inf_buf_put(out, text, inf_number_write_uint64(text, count));
}

void
inf_metrics_format(inf_buf_t *out)
{
    inf_lock(&registry_lock);
    inf_metric_family_t *f = registry_first;
    inf_unlock(&registry_lock);

    while (f != NULL) {
        inf_metric_series_t *series = series_next(f, NULL);
        if (series != NULL) {
            put_family(out, f);
        }
        while (series != NULL) {
            put_series(out, series);
            series = series_next(f, series);
        }

        inf_lock(&registry_lock);
        f = f->next;
        inf_unlock(&registry_lock);
    }
}

static inf_metric_family_t *
family_new(inf_metric_kind_t kind, const char *name, const char *description)
{
    inf_metric_family_t *f = calloc(1, sizeof(*f));
    if (f == NULL) {
        return NULL;
    }

    f->kind = kind;
    f->name = strdup(name);
    f->description = strdup(description != NULL ? description : "");
    if (f->name == NULL || f->description == NULL) {
        family_free(f);
        return NULL;
    }

    return f;
}

static void
family_free(inf_metric_family_t *f)
{
    if (f != NULL) {
        free(f->name);
        free(f->description);
        free(f);
    }
}

static inf_metric_family_t *
family_find_locked(const char *name)
{
    inf_metric_family_t *f = registry_first;
    while (f != NULL && strcmp(f->name, name) != 0) {
        f = f->next;
    }
    return f;
}

/* Takes labels on success. */
static inf_err_t *
series_new(inf_metric_family_t *f, char *labels, const double *bounds,
    size_t bound_count, inf_metric_series_t **out)
{
    if (!bounds_rise(bounds, bound_count)) {
        return inf_err_new(INF_ERR_INVALID_ARG, "Bucket Boundaries must be"
            " strictly sorted ('%s')", f->name);
    }

    inf_metric_series_t *series = calloc(1, sizeof(*series));
    if (series == NULL) {
        return inf_err_nomem();
    }

    series->family = f;
    if (f->kind == INF_METRIC_HISTOGRAM) {
        series->bounds = calloc(bound_count + 1, sizeof(*series->bounds));
        series->counts = calloc(bound_count + 1, sizeof(*series->counts));
        if (series->bounds == NULL || series->counts == NULL) {
            series_free(series);
            return inf_err_nomem();
        }
        if (bound_count > 0) {
            memcpy(series->bounds, bounds, bound_count * sizeof(*bounds));
        }
        series->bound_count = bound_count;
    }

    series->labels = labels;
    *out = series;
    return NULL;
}

static void
series_free(inf_metric_series_t *series)
{
    if (series != NULL) {
        free(series->labels);
        free(series->bounds);
        free(series->counts);
        free(series);
    }
}

/* Finds a series with users; one held only by a reader is skipped. */
static inf_metric_series_t *
series_find_locked(inf_metric_family_t *f, const char *labels)
{
    inf_metric_series_t *series = f->first;
    while (series != NULL
        && (series->users == 0 || strcmp(series->labels, labels) != 0))
    {
        series = series->next;
    }
    return series;
}

/* Drops a reference; returns the unlinked series after the last one, to be
   freed without the lock. */
static inf_metric_series_t *
series_unref_locked(inf_metric_series_t *series)
{
    if (--series->refs > 0) {
        return NULL;
    }

    inf_metric_family_t *f = series->family;
    inf_metric_series_t *before = NULL;
    for (inf_metric_series_t *s = f->first; s != series; s = s->next) {
        before = s;
    }

    if (before == NULL) {
        f->first = series->next;
    } else {
        before->next = series->next;
    }
    if (f->last == series) {
        f->last = before;
    }
    return series;
}

/* The next series with users after at (NULL: the first), with a reference;
   drops the reference to at.  Text is written without the lock between
   calls. */
static inf_metric_series_t *
series_next(inf_metric_family_t *f, inf_metric_series_t *at)
{
    inf_lock(&registry_lock);

    inf_metric_series_t *next = at == NULL ? f->first : at->next;
    while (next != NULL && next->users == 0) {
        next = next->next;
    }
    if (next != NULL) {
        next->refs++;
    }
    inf_metric_series_t *dead = at != NULL ? series_unref_locked(at) : NULL;

    inf_unlock(&registry_lock);

    series_free(dead);
    return next;
}

/* Renders a="1",b="2"; equal label sets give equal texts. */
static inf_err_t *
labels_render(const inf_metric_family_t *f, const inf_metric_label_t *labels,
    size_t count, char **out)
{
    inf_err_t *err = labels_check(f, labels, count);
    if (err != NULL) {
        return err;
    }

    const inf_metric_label_t **sorted = calloc(count + 1, sizeof(*sorted));
    if (sorted == NULL) {
        return inf_err_nomem();
    }
    for (size_t i = 0; i < count; i++) {
        sorted[i] = &labels[i];
    }
    labels_sort(sorted, count);

    inf_buf_t text;
    inf_buf_init(&text);
    for (size_t i = 0; i < count; i++) {
        if (i + 1 < count
            && strcmp(sorted[i]->name, sorted[i + 1]->name) == 0)
        {
            continue;                   /* the last of the same name counts  */
        }
        if (text.len > 0) {
            inf_buf_putc(&text, ',');
        }
        inf_buf_puts(&text, sorted[i]->name);
        inf_buf_puts(&text, "=\"");
        put_escaped(&text, sorted[i]->value, true);
        inf_buf_putc(&text, '"');
    }
    free((void *) sorted);

    err = inf_buf_status(&text);
    if (err == NULL) {
        size_t len;
        *out = inf_buf_give(&text, &len);
        err = *out != NULL ? NULL : inf_err_nomem();
    }
    inf_buf_fini(&text);
    return err;
}

static inf_err_t *
labels_check(const inf_metric_family_t *f, const inf_metric_label_t *labels,
    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *name = labels[i].name;
        bool reserved = f->kind == INF_METRIC_HISTOGRAM
            && strcmp(name, "le") == 0;

        if (reserved || !name_is_valid(name, false)) {
            return inf_err_new(INF_ERR_INVALID_ARG,
                "Invalid label name '%s' of metric family '%s'", name,
                f->name);
        }
    }

    return NULL;
}

/* Sorts by the bytes of the names, stably; label sets are small. */
static void
labels_sort(const inf_metric_label_t **sorted, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const inf_metric_label_t *label = sorted[i];
        size_t at = i;
        while (at > 0 && strcmp(sorted[at - 1]->name, label->name) > 0) {
            sorted[at] = sorted[at - 1];
            at--;
        }
        sorted[at] = label;
    }
}

/* Whether name has only letters, digits and '_' (families: also ':'); a leading
   "__" is reserved. */
static bool
name_is_valid(const char *name, bool colon)
{
    if (name == NULL || name[0] == '\0' || strncmp(name, "__", 2) == 0
        || (name[0] >= '0' && name[0] <= '9'))
    {
        return false;
    }

    for (const char *p = name; *p != '\0'; p++) {
        if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z')
            || (*p >= '0' && *p <= '9') || *p == '_'
            || (colon && *p == ':')))
        {
            return false;
        }
    }

    return true;
}

static bool
bounds_rise(const double *bounds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (isnan(bounds[i]) || (i > 0 && !(bounds[i - 1] < bounds[i]))) {
            return false;
        }
    }

    return true;
}

/* Replaces invalid UTF-8: one bad byte would make the whole text
   unreadable. */
static void
put_escaped(inf_buf_t *out, const char *text, bool quotes)
{
    size_t begin = out->len;

    for (const char *p = text != NULL ? text : ""; *p != '\0'; p++) {
        if (*p == '\n') {
            inf_buf_puts(out, "\\n");
        } else if (*p == '\\' || (quotes && *p == '"')) {
            inf_buf_putc(out, '\\');
            inf_buf_putc(out, *p);
        } else {
            inf_buf_putc(out, *p);
        }
    }
    if (out->len > begin) {
        inf_utf8_repair(out->data + begin, out->len - begin);
    }
}

/* Writes the head, unless a family of the server's own has that name: a second
   head would make the text invalid. */
static void
put_family(inf_buf_t *out, const inf_metric_family_t *f)
{
    static const char *const kinds[] = { "counter", "gauge", "histogram" };

    if (has_head(out, f->name)) {
        return;
    }
    if (f->description[0] != '\0') {
        inf_buf_printf(out, "# HELP %s ", f->name);
        put_escaped(out, f->description, false);
        inf_buf_putc(out, '\n');
    }
    inf_buf_printf(out, "# TYPE %s %s\n", f->name, kinds[f->kind]);
}

static bool
has_head(const inf_buf_t *out, const char *name)
{
    size_t len = strlen(name);
    const char *at = out->data;

    while (at != NULL && (at = strstr(at, "# TYPE ")) != NULL) {
        at += strlen("# TYPE ");
        if (strncmp(at, name, len) == 0 && at[len] == ' ') {
            return true;
        }
    }
    return false;
}

static void
put_series(inf_buf_t *out, const inf_metric_series_t *series)
{
    if (series->family->kind == INF_METRIC_HISTOGRAM) {
        put_histogram(out, series);
        return;
    }

    put_sample(out, series, "", NULL);
    inf_metric_put_number(out, inf_metric_value(series));
    inf_buf_putc(out, '\n');
}

/* Writes a histogram; each count is read once, so that _count equals the +Inf
   bucket. */
static void
put_histogram(inf_buf_t *out, const inf_metric_series_t *series)
{
    inf_buf_t buckets;
    uint64_t total = 0;
    char bound[METRIC_TEXT_MAX];

    inf_buf_init(&buckets);
    for (size_t i = 0; i <= series->bound_count; i++) {
        total += atomic_load_explicit(&series->counts[i],
            memory_order_relaxed);
        number_text(bound, i < series->bound_count ? series->bounds[i]
            : INFINITY);
        if (i < series->bound_count && isinf(series->bounds[i])
            && series->bounds[i] > 0)
        {
            continue;                   /* the last line is that bucket      */
        }
        put_sample(&buckets, series, "_bucket", bound);
        inf_buf_printf(&buckets, "%llu\n", (unsigned long long) total);
    }

    put_sample(out, series, "_count", NULL);
    inf_buf_printf(out, "%llu\n", (unsigned long long) total);
    put_sample(out, series, "_sum", NULL);
    inf_metric_put_number(out, inf_metric_value(series));
    inf_buf_putc(out, '\n');
    inf_buf_put(out, buckets.data, buckets.len);
    out->failed = out->failed || buckets.failed;
    inf_buf_fini(&buckets);
}

/* Writes name_suffix{labels,le="bound"} and a space. */
static void
put_sample(inf_buf_t *out, const inf_metric_series_t *series,
    const char *suffix, const char *bound)
{
    inf_buf_puts(out, series->family->name);
    inf_buf_puts(out, suffix);

    if (series->labels[0] != '\0' || bound != NULL) {
        inf_buf_putc(out, '{');
        inf_buf_puts(out, series->labels);
        if (bound != NULL) {
            inf_buf_printf(out, "%sle=\"%s\"",
                series->labels[0] != '\0' ? "," : "", bound);
        }
        inf_buf_putc(out, '}');
    }
    inf_buf_putc(out, ' ');
}

/* Formats a number as Triton's frontend: 16 digits, "Nan", "+Inf", "-Inf".  The
   decimal point of the locale, which an embedding program may have set, is
   replaced. */
static void
number_text(char text[METRIC_TEXT_MAX], double value)
{
    if (isnan(value) || isinf(value)) {
        strcpy(text, isnan(value) ? "Nan" : value > 0 ? "+Inf" : "-Inf");
        return;
    }

    snprintf(text, METRIC_TEXT_MAX, "%.16g", value);

    const char *point = localeconv()->decimal_point;
    char *at = strcmp(point, ".") != 0 ? strstr(text, point) : NULL;
    if (at != NULL) {
        size_t len = strlen(point);
        *at = '.';
        memmove(at + 1, at + len, strlen(at + len) + 1);
    }
}
