#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/base/log.h"
#include "core/include/datatype.h"
#include "core/proto/json_doc.h"
#include "core/server/trace_collector.h"
#include "core/server/trace_file.h"
#include "core/server/tracer.h"

static char folder[] = "/tmp/unit-tracer-XXXXXX";

static NginxInference__TraceSettings
config(char *path)
{
    NginxInference__TraceSettings c = NGINX_INFERENCE__TRACE_SETTINGS__INIT;

    c.timestamps = true;
    c.tensors = true;
    c.rate = 1;
    c.file = path;
    return c;
}

static char *
path_of(const char *name)
{
    char *path;

    assert_true(asprintf(&path, "%s/%s", folder, name) > 0);
    return path;
}

static char *
text_of(const char *path)
{
    char *text = calloc(1, 1 << 20);
    FILE *f = fopen(path, "r");

    if (f != NULL) {
        assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
        fclose(f);
    }
    return text;
}

static inf_trace_record_t *
record_of(inf_tracer_t *tracer)
{
    inf_trace_record_t *r;
    inf_trace_setting_t *setting = inf_trace_settings_sample(
        inf_tracer_settings(tracer), "m", false);

    assert_non_null(setting);
    assert_null(inf_trace_record_new(tracer, setting, NULL,
        inf_slice(NULL, 0), &r));
    r->id = 1;
    return r;
}

static void
note_one(inf_trace_record_t *r)
{
    char name[] = "m\"\n";
    const int64_t shape[] = { 2, 1 };
    const float data[] = { 0.5f, -1.0f };

    inf_trace_record_note(r, &(inf_trace_event_t) { .kind = INF_TRACE_WHO,
        .id = 1, .span = 1, .version = 3, .name = name, .request_id = ""
    }, true);
    name[0] = 'x';
    inf_trace_record_note(r, &(inf_trace_event_t) { .kind = INF_TRACE_TIME,
        .id = 1, .ns = 7, .name = "REQUEST_START" }, false);
    inf_trace_record_note(r, &(inf_trace_event_t) { .kind = INF_TRACE_TENSOR,
        .id = 1, .name = "TENSOR_QUEUE_INPUT", .tensor = "IN",
        .datatype = INF_TYPE_FP32, .dim_count = 2, .shape = shape,
        .data = data, .size = sizeof(data) }, false);
}

static void
a_file_is_an_array_of_objects(void **state)
{
    (void) state;
    char *path = path_of("array");
    NginxInference__TraceSettings c = config(path);
    inf_tracer_t *tracer;

    assert_null(inf_tracer_new(&c, &tracer));
    assert_true(inf_tracer_is_on(tracer));
    for (int i = 0; i < 2; i++) {
        inf_trace_record_t *r = record_of(tracer);
        note_one(r);
        inf_trace_record_unref(r);
    }
    inf_tracer_ref(tracer);
    inf_tracer_stop(tracer);
    assert_int_equal(inf_tracer_dropped(tracer), 0);
    inf_tracer_unref(tracer);

    char *text = text_of(path);
    const char one[] = "{\"id\":1,\"model_name\":\"m\\\"\\n\",\"model_version\":"
        "3},{\"id\":1,\"timestamps\":[{\"name\":\"REQUEST_START\",\"ns\":7}]}"
        ",{\"id\":1,\"activity\":\"TENSOR_QUEUE_INPUT\",\"tensor\":{\"name\":"
        "\"IN\",\"data\":\"0.5,-1\",\"shape\":\"2,1\",\"dtype\":\"FP32\"}}";
    char whole[1024];
    snprintf(whole, sizeof(whole), "[%s,%s]", one, one);
    assert_string_equal(text, whole);
    unlink(path);
    free(text);
    free(path);
}

/* Of the tracer's thread alone, which has ended before it is read. */
static char lines[4096];

static void
take_line(void *userp, inf_log_level_t level, const char *file, int line_no,
    const char *line)
{
    (void) userp;
    (void) level;
    (void) file;
    (void) line_no;
    size_t len = strlen(lines);

    snprintf(lines + len, sizeof(lines) - len, "%s\n", line);
}

static void
a_file_that_cannot_be_written_is_named_and_stays_whole(void **state)
{
    (void) state;
    char *path = path_of("limited");
    NginxInference__TraceSettings c = config(path);
    struct rlimit before, limit;
    inf_tracer_t *tracer;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit) { 300, before.rlim_max };
    signal(SIGXFSZ, SIG_IGN);
    inf_log_set_sink(take_line, NULL);
    assert_null(inf_tracer_new(&c, &tracer));
    inf_trace_record_t *r = record_of(tracer);
    note_one(r);
    inf_trace_record_t *long_one = record_of(tracer);
    note_one(long_one);
    note_one(long_one);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    inf_trace_record_unref(r);
    inf_trace_record_unref(long_one);
    inf_tracer_ref(tracer);
    inf_tracer_stop(tracer);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    inf_log_set_sink(NULL, NULL);
    assert_int_equal(inf_tracer_dropped(tracer), 1);
    inf_tracer_unref(tracer);

    char said[512];
    snprintf(said, sizeof(said), "a trace is lost: cannot write trace file"
        " \"%s\": File too large\n", path);
    assert_non_null(strstr(lines, said));
    char *text = text_of(path);
    inf_json_doc_t doc = { 0 };
    assert_null(inf_json_doc_parse(&doc, inf_slice_str(text), 0));
    assert_int_equal(json_array_size(doc.root), 3);
    inf_json_doc_fini(&doc);
    unlink(path);
    free(text);
    free(path);
}

static void
strings_with_broken_lengths_end_there(void **state)
{
    (void) state;
    char *path = path_of("strings");
    NginxInference__TraceSettings c = config(path);
    inf_tracer_t *tracer;
    inf_buf_t out;
    const char data[] = "\1\0\0\0a\377\0\0\0b";

    assert_null(inf_tracer_new(&c, &tracer));
    inf_trace_record_t *r = record_of(tracer);
    inf_trace_record_note(r, &(inf_trace_event_t) { .kind = INF_TRACE_TENSOR,
        .id = 1, .name = "T", .tensor = "IN", .datatype = INF_TYPE_BYTES,
        .data = data, .size = sizeof(data) - 1 }, false);
    inf_buf_init(&out);
    inf_trace_file_text(r, &out);
    assert_non_null(strstr(inf_buf_slice(&out).data,
        "\"data\":\"\\\"a\\\"\""));
    inf_buf_fini(&out);
    inf_trace_record_free(r);
    inf_tracer_stop(tracer);
    free(path);
}

static void
too_much_memory_drops_the_record_and_is_given_back(void **state)
{
    (void) state;
    char *path = path_of("memory");
    NginxInference__TraceSettings c = config(path);
    size_t size = (size_t) 40 << 20;
    char *data = calloc(1, size);
    inf_tracer_t *tracer;

    assert_null(inf_tracer_new(&c, &tracer));
    inf_tracer_ref(tracer);
    for (int i = 0; i < 3; i++) {
        inf_trace_record_t *r = record_of(tracer);
        for (int k = 0; k < 2; k++) {
            inf_trace_record_note(r, &(inf_trace_event_t) {
                .kind = INF_TRACE_TENSOR, .id = 1, .name = "T",
                .tensor = "IN", .datatype = INF_TYPE_FP16, .data = data,
                .size = size }, false);
        }
        inf_trace_record_unref(r);
    }
    assert_int_equal(inf_tracer_dropped(tracer), 3);
    inf_trace_record_t *r = record_of(tracer);
    note_one(r);
    inf_trace_record_unref(r);
    inf_tracer_stop(tracer);
    assert_int_equal(inf_tracer_dropped(tracer), 3);
    inf_tracer_unref(tracer);
    assert_int_equal(access(path, F_OK), 0);
    unlink(path);
    free(path);
    free(data);
}

static void
a_record_that_ends_after_the_tracer_is_dropped(void **state)
{
    (void) state;
    char *path = path_of("late");
    NginxInference__TraceSettings c = config(path);
    inf_tracer_t *tracer;

    assert_null(inf_tracer_new(&c, &tracer));
    inf_trace_record_t *r = record_of(tracer);
    inf_tracer_stop(tracer);
    note_one(r);
    inf_trace_record_unref(r);
    assert_int_not_equal(access(path, F_OK), 0);
    free(path);
}

/* The collector does not exist: what is sent is lost at once. */
static void
a_full_batch_does_not_wait_for_its_time(void **state)
{
    (void) state;
    NginxInference__TraceSettings c = config((char *) "");
    inf_tracer_t *tracer;

    c.url = (char *) "http://127.0.0.1:1/v1/traces";
    c.bsp_max_queue_size = 8;
    c.bsp_max_export_batch_size = 2;
    c.bsp_schedule_delay_ms = 3600000;
    assert_null(inf_tracer_new(&c, &tracer));
    for (int i = 0; i < 2; i++) {
        usleep(50000);          /* the thread waits for the rest of a batch  */
        inf_trace_record_t *r = record_of(tracer);
        note_one(r);
        inf_trace_record_unref(r);
    }
    for (int i = 0; i < 5000 && inf_tracer_dropped(tracer) < 2; i++) {
        usleep(1000);
    }
    assert_int_equal(inf_tracer_dropped(tracer), 2);
    inf_tracer_stop(tracer);
}

static void
nothing_to_trace_to_has_no_thread(void **state)
{
    (void) state;
    NginxInference__TraceSettings c = NGINX_INFERENCE__TRACE_SETTINGS__INIT;
    inf_tracer_t *tracer;

    assert_null(inf_tracer_new(&c, &tracer));
    assert_false(inf_tracer_is_on(tracer));
    inf_tracer_stop(tracer);
    inf_tracer_stop(NULL);
}

static void
spans_are_json_and_have_ids_of_their_own(void **state)
{
    (void) state;
    char *path = path_of("spans");
    NginxInference__TraceSettings c = config(path);
    inf_tracer_t *tracer;
    inf_json_doc_t doc = { 0 };
    inf_buf_t out;
    static const char *const times[] = {
        "REQUEST_START", "COMPUTE_START", "LOOK_START", "LOOK_END",
        "COMPUTE_END", "AFTER_START", "AFTER_END", "LONE_START",
        "REQUEST_END"
    };

    assert_null(inf_tracer_new(&c, &tracer));
    inf_trace_record_t *r = record_of(tracer);
    inf_trace_record_note(r, &(inf_trace_event_t) { .kind = INF_TRACE_WHO,
        .id = 1, .span = inf_trace_record_next_span(r), .name = "m",
        .request_id = "r" }, true);
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        inf_trace_record_note(r, &(inf_trace_event_t) {
            .kind = INF_TRACE_TIME, .id = 1, .ns = 10 + i, .name = times[i]
        }, false);
    }
    inf_buf_init(&out);
    inf_buf_putc(&out, '[');
    assert_true(inf_trace_collector_text(r, &out));
    inf_buf_putc(&out, ']');
    assert_null(inf_json_doc_parse(&doc, inf_buf_slice(&out), 0));

    static const struct {
        const char *name;
        size_t      parent;             /* its place; 0: nobody              */
    } spans[] = {
        { "InferRequest", 0 }, { "m", 0 }, { "compute", 1 }, { "LOOK", 2 },
        { "AFTER", 1 }
    };
    assert_int_equal(json_array_size(doc.root), 5);
    for (size_t i = 0; i < 5; i++) {
        const json_t *s = json_array_get(doc.root, i);
        const char *parent = json_string_value(json_object_get(s,
            "parentSpanId"));
        assert_string_equal(json_string_value(json_object_get(s, "name")),
            spans[i].name);
        if (i == 0) {
            assert_null(parent);
            continue;
        }
        const json_t *above = json_array_get(doc.root, spans[i].parent);
        assert_string_equal(parent, json_string_value(json_object_get(above,
            "spanId")));
    }

    inf_json_doc_fini(&doc);
    inf_buf_fini(&out);
    inf_trace_record_free(r);
    inf_tracer_stop(tracer);
    free(path);
}

static int
make_folder(void **state)
{
    (void) state;
    return mkdtemp(folder) == NULL;
}

static int
remove_folder(void **state)
{
    (void) state;
    return rmdir(folder);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_an_array_of_objects),
        cmocka_unit_test(
            a_file_that_cannot_be_written_is_named_and_stays_whole),
        cmocka_unit_test(strings_with_broken_lengths_end_there),
        cmocka_unit_test(too_much_memory_drops_the_record_and_is_given_back),
        cmocka_unit_test(a_record_that_ends_after_the_tracer_is_dropped),
        cmocka_unit_test(a_full_batch_does_not_wait_for_its_time),
        cmocka_unit_test(nothing_to_trace_to_has_no_thread),
        cmocka_unit_test(spans_are_json_and_have_ids_of_their_own)
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
