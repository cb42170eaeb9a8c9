#include "core/server/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/include/datatype.h"
#include "core/proto/message_json.h"
#include "core/proto/number.h"

#define FILE_MODE 0640
#define TEXT_KEPT (1u << 20)    /* bytes kept between traces              */

struct inf_trace_file_s {
    char      *path;
    off_t      end;             /* end of FILE after the last write; 0: none */
    int64_t    next;            /* number of the next FILE.N                 */
    bool       failing;         /* a failure was logged                      */
    inf_buf_t  text;
};

static inf_err_t *write_record(inf_trace_file_t *f, inf_trace_record_t *r);
static inf_err_t *write_text(inf_trace_file_t *f,
    inf_trace_setting_t *setting);
static inf_err_t *begin_index(inf_trace_file_t *f,
    inf_trace_setting_t *setting);
static inf_err_t *append(const char *path, off_t *end, inf_buf_t *text);
static inf_err_t *write_all(const char *path, int fd, off_t at,
    inf_slice_t text);
static bool keep_older(const char *path);
static void put_who(const inf_trace_event_t *e, inf_buf_t *out);
static void put_tensor(const inf_trace_event_t *e, inf_buf_t *out);
static void put_data(const inf_trace_event_t *e, inf_buf_t *out);
static void put_value(const inf_trace_event_t *e, const char *p,
    inf_buf_t *out);
static void put_real(double v, bool single, inf_buf_t *out);
static void put_strings(const inf_trace_event_t *e, inf_buf_t *out);

inf_err_t *
inf_trace_file_new(const char *path, inf_trace_file_t **out)
{
    inf_trace_file_t *f = calloc(1, sizeof(*f));
    char *copy = strdup(path);
    if (f == NULL || copy == NULL) {
        free(f);
        free(copy);
        return inf_err_nomem();
    }

    f->path = copy;
    inf_buf_init(&f->text);
    *out = f;
    return NULL;
}

void
inf_trace_file_free(inf_trace_file_t *f)
{
    if (f != NULL) {
        inf_buf_fini(&f->text);
        free(f->path);
        free(f);
    }
}

uint32_t
inf_trace_file_write(inf_trace_file_t *f, inf_link_t *records)
{
    uint32_t lost = 0;

    for (inf_link_t *l = records->next; l != records; l = l->next) {
        inf_err_t *err = write_record(f, inf_link_entry(l, inf_trace_record_t,
            link));
        if (err == NULL) {
            f->failing = false;
            continue;
        }
        lost++;
        if (!f->failing) {
            inf_err_log(inf_err_add(err, "a trace is lost"));
        } else {
            inf_err_free(err);
        }
        f->failing = true;
    }
    return lost;
}

void
inf_trace_file_text(inf_trace_record_t *r, inf_buf_t *out)
{
    size_t start = out->len;

    for (const inf_trace_event_t *e = inf_trace_record_events(r); e != NULL;
        e = e->next)
    {
        if (out->len > start) {
            inf_buf_putc(out, ',');
        }
        switch (e->kind) {
        case INF_TRACE_WHO:
            put_who(e, out);
            break;
        case INF_TRACE_TIME:
        case INF_TRACE_FRONT:
            inf_buf_printf(out, "{\"id\":%llu,\"timestamps\":[{\"name\":",
                (unsigned long long) e->id);
            inf_json_put_string(out, inf_slice_str(e->name));
            inf_buf_printf(out, ",\"ns\":%llu}]}", (unsigned long long) e->ns);
            break;
        case INF_TRACE_TENSOR:
            put_tensor(e, out);
            break;
        }
    }
}

static inf_err_t *
write_record(inf_trace_file_t *f, inf_trace_record_t *r)
{
    inf_buf_t *text = &f->text;

    inf_buf_reset(text);
    inf_buf_putc(text, '[');
    inf_trace_file_text(r, text);
    bool any = text->len > 1;
    inf_buf_putc(text, ']');
    inf_err_t *err = inf_buf_status(text);
    if (err == NULL && any) {
        err = write_text(f, r->setting);
    }

    if (text->cap > TEXT_KEPT) {
        inf_buf_fini(text);
        inf_buf_init(text);
    }
    return err;
}

/* Writes the text to the setting's current file. */
static inf_err_t *
write_text(inf_trace_file_t *f, inf_trace_setting_t *setting)
{
    const inf_trace_values_t *v = &setting->values;
    inf_err_t *err = NULL;

    if (v->log_frequency == 0 && v->count < 0) {
        return append(f->path, &f->end, &f->text);
    }

    if (setting->index < 0) {
        err = begin_index(f, setting);
        if (err != NULL) {
            return err;
        }
    }

    char *path;
    if (asprintf(&path, "%s.%lld", f->path, (long long) setting->index) < 0) {
        return inf_err_nomem();
    }
    off_t end = (off_t) setting->end;
    err = append(path, &end, &f->text);
    free(path);
    if (err == NULL) {
        setting->end = (uint64_t) end;
        setting->written++;
    }
    if (err == NULL && v->log_frequency != 0
        && setting->written >= v->log_frequency)
    {
        setting->index = -1;
    }
    return err;
}

/* Takes the next number without a file. */
static inf_err_t *
begin_index(inf_trace_file_t *f, inf_trace_setting_t *setting)
{
    for ( ;; ) {
        char *path;
        if (asprintf(&path, "%s.%lld", f->path, (long long) f->next) < 0) {
            return inf_err_nomem();
        }
        struct stat st;
        bool taken = lstat(path, &st) == 0;
        free(path);
        if (!taken) {
            break;
        }
        f->next++;
    }

    setting->index = f->next++;
    setting->written = 0;
    setting->end = 0;
    return NULL;
}

/* Inserts text, an array, before the closing bracket of the file's array.  A
   file whose length differs from *end was changed or removed by another
   program: a new file is begun.  A symbolic link, which anyone may create in a
   shared directory, is not followed. */
static inf_err_t *
append(const char *path, off_t *end, inf_buf_t *text)
{
    struct stat st;
    if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0
        && st.st_size != *end && !keep_older(path))
    {
        return inf_err_os(errno, "cannot rename trace file \"%s\"", path);
    }

    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY
        | O_NOFOLLOW, FILE_MODE);
    if (fd < 0) {
        int error = errno;
        return inf_err_os(error, "cannot open trace file \"%s\"%s", path,
            error == ELOOP ? ", which must be no link" : "");
    }
    int error = fstat(fd, &st) != 0 ? errno : 0;
    if (error != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return error != 0 ? inf_err_os(error, "trace file \"%s\"", path)
            : inf_err_new(INF_ERR_INVALID_ARG, "trace file \"%s\" is no"
                " regular file", path);
    }

    bool on = *end > 0 && st.st_size == *end;
    off_t at = on ? *end - 1 : 0;
    inf_err_t *err = NULL;
    if (!on && ftruncate(fd, 0) != 0) {
        err = inf_err_os(errno, "cannot empty trace file \"%s\"", path);
    }
    if (err == NULL) {
        text->data[0] = on ? ',' : '[';
        err = write_all(path, fd, at, inf_buf_slice(text));
    }
    if (err == NULL) {
        *end = at + (off_t) text->len;
    } else if (ftruncate(fd, at) != 0 || (on && pwrite(fd, "]", 1, at) != 1)) {
        *end = 0;                       /* begun again                       */
    }
    if (close(fd) != 0 && err == NULL) {
        err = inf_err_os(errno, "cannot write trace file \"%s\"", path);
    }
    return err;
}

/* Writes text in one write, unless the kernel takes less: a reader sees the
   array before or after it. */
static inf_err_t *
write_all(const char *path, int fd, off_t at, inf_slice_t text)
{
    size_t done = 0;

    while (done < text.len) {
        ssize_t n = pwrite(fd, text.data + done, text.len - done,
            at + (off_t) done);
        if (n > 0) {
            done += (size_t) n;
        } else if (n == 0 || errno != EINTR) {
            return inf_err_os(n == 0 ? EIO : errno, "cannot write trace file"
                " \"%s\"", path);
        }
    }

    return NULL;
}

/* Renames a file of another core or of an earlier start. */
static bool
keep_older(const char *path)
{
    char *older;

    if (asprintf(&older, "%s.before", path) < 0) {
        errno = ENOMEM;
        return false;
    }

    int rc = rename(path, older);
    int error = errno;
    free(older);
    errno = error;
    return rc == 0;
}

static void
put_who(const inf_trace_event_t *e, inf_buf_t *out)
{
    inf_buf_printf(out, "{\"id\":%llu,\"model_name\":",
        (unsigned long long) e->id);
    inf_json_put_string(out, inf_slice_str(e->name));
    inf_buf_printf(out, ",\"model_version\":%lld", (long long) e->version);
    if (e->request_id[0] != '\0') {
        inf_buf_puts(out, ",\"request_id\":");
        inf_json_put_string(out, inf_slice_str(e->request_id));
    }
    if (e->parent_id != 0) {
        inf_buf_printf(out, ",\"parent_id\":%llu",
            (unsigned long long) e->parent_id);
    }
    inf_buf_putc(out, '}');
}

static void
put_tensor(const inf_trace_event_t *e, inf_buf_t *out)
{
    inf_buf_printf(out, "{\"id\":%llu,\"activity\":\"%s\",\"tensor\":"
        "{\"name\":", (unsigned long long) e->id, e->name);
    inf_json_put_string(out, inf_slice_str(e->tensor));
    inf_buf_puts(out, ",\"data\":");
    put_data(e, out);
    inf_buf_puts(out, ",\"shape\":\"");
    for (uint64_t i = 0; i < e->dim_count; i++) {
        inf_buf_printf(out, "%s%lld", i > 0 ? "," : "",
            (long long) e->shape[i]);
    }
    inf_buf_printf(out, "\",\"dtype\":\"%s\"}}",
        inf_datatype_name((uint32_t) e->datatype));
}

/* Writes the values, separated by commas, as one text; Triton writes none for
   FP16 and BF16. */
static void
put_data(const inf_trace_event_t *e, inf_buf_t *out)
{
    uint32_t size = inf_datatype_size((uint32_t) e->datatype);
    inf_buf_t text;

    if (e->datatype == INF_TYPE_BYTES) {
        inf_buf_init(&text);
        put_strings(e, &text);
        inf_json_put_string(out, inf_buf_slice(&text));
        out->failed |= text.failed;
        inf_buf_fini(&text);
        return;
    }

    inf_buf_putc(out, '"');
    if (size > 0 && e->datatype != INF_TYPE_FP16
        && e->datatype != INF_TYPE_BF16)
    {
        for (size_t at = 0; at + size <= e->size; at += size) {
            inf_buf_puts(out, at > 0 ? "," : "");
            put_value(e, (const char *) e->data + at, out);
        }
    }
    inf_buf_putc(out, '"');
}

static void
put_value(const inf_trace_event_t *e, const char *p, inf_buf_t *out)
{
    union {
        uint8_t  u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
        int8_t   i8;
        int16_t  i16;
        int32_t  i32;
        int64_t  i64;
        float    f;
        double   d;
    } v;

    memcpy(&v, p, inf_datatype_size((uint32_t) e->datatype));
    switch ((inf_datatype_t) e->datatype) {
    case INF_TYPE_BOOL:
        inf_number_put_uint(out, v.u8 != 0);
        break;
    case INF_TYPE_UINT8:
        inf_number_put_uint(out, v.u8);
        break;
    case INF_TYPE_UINT16:
        inf_number_put_uint(out, v.u16);
        break;
    case INF_TYPE_UINT32:
        inf_number_put_uint(out, v.u32);
        break;
    case INF_TYPE_UINT64:
        inf_number_put_uint(out, v.u64);
        break;
    case INF_TYPE_INT8:
        inf_number_put_int(out, v.i8);
        break;
    case INF_TYPE_INT16:
        inf_number_put_int(out, v.i16);
        break;
    case INF_TYPE_INT32:
        inf_number_put_int(out, v.i32);
        break;
    case INF_TYPE_INT64:
        inf_number_put_int(out, v.i64);
        break;
    case INF_TYPE_FP32:
        put_real((double) v.f, true, out);
        break;
    case INF_TYPE_FP64:
        put_real(v.d, false, out);
        break;
    default:
        break;
    }
}

static void
put_real(double v, bool single, inf_buf_t *out)
{
    if (!isfinite(v)) {
        inf_buf_puts(out, isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
    } else if (single) {
        inf_number_put_float(out, (float) v);
    } else {
        inf_number_put_double(out, v);
    }
}

/* Writes strings up to the first invalid length. */
static void
put_strings(const inf_trace_event_t *e, inf_buf_t *out)
{
    const char *p = e->data;
    size_t left = e->size;
    uint32_t len;

    for (bool first = true; left >= sizeof(len); first = false) {
        memcpy(&len, p, sizeof(len));
        p += sizeof(len);
        left -= sizeof(len);
        if (len > left) {
            return;
        }
        inf_buf_puts(out, first ? "" : ",");
        inf_json_put_string(out, inf_slice(p, len));
        p += len;
        left -= len;
    }
}
