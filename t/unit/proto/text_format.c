#include "proto/message_fixture.h"

#include <math.h>

#include "core/proto/message_json.h"
#include "core/proto/text_format.h"

#define FIXTURES "t/fixtures/config/"
#define HISTOGRAM_OPTIONS \
    (&inference__model_metrics__metric_control__histogram_options__descriptor)

static Inference__ModelConfig *
parse_file(const char *name)
{
    char path[256];
    inf_buf_t text;
    ProtobufCMessage *m;

    snprintf(path, sizeof(path), "%s%s", FIXTURES, name);
    assert_true(read_file(path, &text));
    must(inf_text_parse(&inference__model_config__descriptor,
        inf_buf_slice(&text), path, &m));
    inf_buf_fini(&text);
    return (Inference__ModelConfig *) m;
}

static void
everything_in_the_fixture_is_read(void **state)
{
    (void) state;
    Inference__ModelConfig *c = parse_file("everything.pbtxt");

    assert_string_equal(c->name, "everything_model");
    assert_string_equal(c->platform, "onnxruntime_onnx");
    assert_int_equal(c->max_batch_size, 16);

    assert_int_equal(c->version_policy->policy_choice_case,
        INFERENCE__MODEL_VERSION_POLICY__POLICY_CHOICE_SPECIFIC);
    assert_int_equal(c->version_policy->specific->n_versions, 3);
    assert_int_equal(c->version_policy->specific->versions[1], 8);
    assert_int_equal(c->version_policy->specific->versions[2], 31);

    assert_int_equal(c->n_input, 3);
    assert_string_equal(c->input[0]->name,
        "tab\there \"quoted\" 'single' ABC\xf0\x9f\x98\x80 \\ ?");
    assert_int_equal(c->input[0]->n_dims, 3);
    assert_int_equal(c->input[0]->dims[1], -3);
    assert_int_equal(c->input[0]->reshape->n_shape, 2);
    assert_int_equal((int) c->input[1]->data_type, 99);
    assert_int_equal(c->input[1]->n_dims, 3);
    assert_int_equal(c->input[1]->dims[2], 3);
    assert_true(c->input[1]->optional);
    assert_string_equal(c->input[2]->name, "colon");
    assert_int_equal(c->n_output, 1);
    assert_int_equal(c->output[0]->data_type, INFERENCE__DATA_TYPE__TYPE_BF16);
    assert_non_null(c->output[0]->reshape);

    Inference__ModelRateLimiter *limiter = c->instance_group[0]->rate_limiter;
    assert_int_equal(limiter->n_resources, 2);
    assert_false(limiter->resources[0]->global);
    assert_true(limiter->resources[1]->global);

    Inference__ModelDynamicBatching *d = c->dynamic_batching;
    assert_int_equal(c->scheduling_choice_case,
        INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_DYNAMIC_BATCHING);
    assert_true(d->priority_levels == UINT64_MAX);
    assert_int_equal(d->n_priority_queue_policy, 3);
    assert_int_equal(d->priority_queue_policy[1]->key, 2);
    assert_int_equal(d->priority_queue_policy[1]->value->max_queue_size, 7);
    assert_non_null(d->priority_queue_policy[2]->value);

    assert_true(c->optimization->input_pinned_memory != NULL);
    assert_false(c->optimization->input_pinned_memory->enable);
    assert_int_equal(
        c->model_warmup[0]->inputs[0]->value->input_data_type_case,
        INFERENCE__MODEL_WARMUP__INPUT__INPUT_DATA_TYPE_ZERO_DATA);
    inf_message_free(&c->base);
}

static void
the_last_entry_of_a_map_key_wins(void **state)
{
    (void) state;
    Inference__ModelConfig *c = parse_file("everything.pbtxt");

    assert_int_equal(c->n_parameters, 3);
    for (size_t i = 0; i < 3; i++) {
        const Inference__ModelConfig__ParametersEntry *e = c->parameters[i];
        assert_string_equal(e->value->string_value,
            strcmp(e->key, "a") == 0 ? "new"
            : strcmp(e->key, "b") == 0 ? "yes" : e->key);
    }
    assert_string_not_equal(c->parameters[0]->key, c->parameters[1]->key);
    assert_string_not_equal(c->parameters[1]->key, c->parameters[2]->key);
    assert_string_not_equal(c->parameters[0]->key, c->parameters[2]->key);

    assert_int_equal(c->n_metric_tags, 2);
    bool first = strcmp(c->metric_tags[0]->key, "k") == 0;
    assert_string_equal(c->metric_tags[!first]->key, "k");
    assert_string_equal(c->metric_tags[!first]->value, "w");
    assert_string_equal(c->metric_tags[first]->key, "only");
    assert_string_equal(c->metric_tags[first]->value, "");
    inf_message_free(&c->base);
}

static void
floats_take_all_their_forms(void **state)
{
    (void) state;
    Inference__ModelConfig *c = parse_file("everything.pbtxt");

    Inference__ModelMetrics__MetricControl *m =
        c->model_metrics->metric_control[0];
    const double *b = m->histogram_options->buckets;
    assert_int_equal(m->histogram_options->n_buckets, 8);
    assert_true(b[0] == 0.5 && b[1] == 0.5 && b[2] == 0.5 && b[3] == 1);
    assert_true(b[4] == -2.5 && isinf(b[5]) && b[6] < 0 && isinf(b[6]));
    assert_true(isnan(b[7]));
    inf_message_free(&c->base);
}

static void
empty_and_comment_only_files_are_the_empty_configuration(void **state)
{
    (void) state;
    static const char *const names[] = { "empty.pbtxt", "comment.pbtxt" };

    for (size_t i = 0; i < 2; i++) {
        Inference__ModelConfig *c = parse_file(names[i]);
        assert_int_equal(inf_message_packed_len(&c->base), 0);
        inf_message_free(&c->base);
    }
}

static void
crlf_line_ends_are_white_space(void **state)
{
    (void) state;
    Inference__ModelConfig *c = parse_file("crlf.pbtxt");

    assert_string_equal(c->name, "crlf");
    assert_int_equal(c->max_batch_size, 4);
    assert_string_equal(c->input[0]->name, "a");
    inf_message_free(&c->base);
}

static void
printed_text_reads_back_as_the_same_message(void **state)
{
    (void) state;
    static const char *const names[] = {
        "everything.pbtxt", "ensemble.pbtxt", "sequence.pbtxt",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        Inference__ModelConfig *c = parse_file(names[i]);
        ProtobufCMessage *again;
        inf_buf_t text;

        inf_buf_init(&text);
        must(inf_text_print(&c->base, &text));
        must(inf_text_parse(c->base.descriptor, inf_buf_slice(&text), "p",
            &again));
        assert_same_message(&c->base, again);
        inf_buf_fini(&text);
        inf_message_free(again);
        inf_message_free(&c->base);
    }
}

static const ProtobufCMessageDescriptor *
descriptor_named(const char *name)
{
    static const ProtobufCMessageDescriptor *const known[] = {
        &inference__model_config__descriptor,
        &inference__model_input__descriptor,
        &inference__model_rate_limiter__descriptor,
        &inference__model_dynamic_batching__descriptor,
        HISTOGRAM_OPTIONS,
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(known[i]->name + strlen("inference."), name) == 0) {
            return known[i];
        }
    }
    fail_msg("no message %s", name);
    return NULL;
}

/* The case begins at text: expected error, lines, perhaps "%Message". */
static char *
check_reject(char *text)
{
    const char *message = "ModelConfig";
    char expected[256];
    ProtobufCMessage *m;

    char *end = strstr(text, "\n\n");
    char *next = end != NULL ? end + 2 : text + strlen(text);
    if (end == NULL) {
        end = next - 1;
    }
    *end = '\0';

    char *body = strchr(text, '\n');
    assert_non_null(body);
    snprintf(expected, sizeof(expected), "f.pbtxt:%.*s", (int) (body - text),
        text);
    char *percent = strstr(body + 1, "\n%");
    if (percent != NULL) {
        *percent = '\0';
        message = percent + 2;
    }

    must_fail(inf_text_parse(descriptor_named(message),
        inf_slice_str(body + 1), "f.pbtxt", &m), expected);
    return next;
}

static void
every_reject_names_file_line_column_and_key(void **state)
{
    (void) state;
    inf_buf_t text;
    size_t n = 0;

    assert_true(read_file(FIXTURES "rejects.txt", &text));
    for (char *at = text.data; *at != '\0'; n++) {
        at = check_reject(at);
    }
    assert_true(n > 40);
    inf_buf_fini(&text);
}

static void
a_byte_order_mark_is_an_error(void **state)
{
    (void) state;
    ProtobufCMessage *m;

    must_fail(inf_text_parse(&inference__model_config__descriptor,
        INF_SLICE("\xef\xbb\xbfname: \"x\""), "b", &m), "b:1:1: ");
}

static void
a_zero_byte_ends_no_comment(void **state)
{
    (void) state;
    ProtobufCMessage *m;

    must_fail(inf_text_parse(&inference__model_config__descriptor,
        INF_SLICE("# a\xff\0b\nname: \"x\""), "b", &m),
        "b:1:5: a NUL byte: this is no text");
    must_fail(inf_text_parse(&inference__model_config__descriptor,
        INF_SLICE("\0"), "b", &m), "b:1:1: a NUL byte");
    must(inf_text_parse(&inference__model_config__descriptor,
        INF_SLICE("# a\xff\x01"), "b", &m));
    inf_message_free(m);
}

static void
strings_need_not_be_utf8(void **state)
{
    (void) state;
    ProtobufCMessage *m;

    must(inf_text_parse(&inference__model_config__descriptor,
        INF_SLICE("name: \"a\\377\xfe\""), "b", &m));
    assert_string_equal(((Inference__ModelConfig *) m)->name, "a\xff\xfe");
    inf_message_free(m);
}

static void
a_zero_byte_is_fine_where_bytes_are_kept(void **state)
{
    (void) state;
    ProtobufCMessage *m;

    must(inf_text_parse(&inference__model_repository_parameter__descriptor,
        INF_SLICE("bytes_param: \"a\\0b\""), "b", &m));
    Inference__ModelRepositoryParameter *p = (void *) m;
    assert_int_equal(p->bytes_param.len, 3);
    assert_memory_equal(p->bytes_param.data, "a\0b", 3);
    inf_message_free(m);
}

static void
integers_reach_their_limits(void **state)
{
    (void) state;
    ProtobufCMessage *m;

    must(inf_text_parse(&inference__model_input__descriptor, INF_SLICE(
        "dims: [ -9223372036854775808, 9223372036854775807, "
        "-0x8000000000000000, 01777 ] data_type: -1"), "b", &m));
    Inference__ModelInput *in = (void *) m;
    assert_true(in->dims[0] == INT64_MIN && in->dims[1] == INT64_MAX);
    assert_true(in->dims[2] == INT64_MIN && in->dims[3] == 01777);
    assert_int_equal((int) in->data_type, -1);
    inf_message_free(m);

    must_fail(inf_text_parse(&inference__model_input__descriptor,
        INF_SLICE("dims: 9223372036854775808"), "b", &m),
        "b:1:7: dims: Integer out of range (9223372036854775808)");
    must_fail(inf_text_parse(&inference__model_input__descriptor,
        INF_SLICE("dims: -9223372036854775809"), "b", &m),
        "b:1:8: dims: Integer out of range (9223372036854775809)");
}

static void
a_default_value_may_be_given_again(void **state)
{
    (void) state;
    ProtobufCMessage *m;

    must(inf_text_parse(&inference__model_config__descriptor, INF_SLICE(
        "max_batch_size: 0 name: '' max_batch_size: 8 name: 'x'"), "b", &m));
    Inference__ModelConfig *c = (void *) m;
    assert_int_equal(c->max_batch_size, 8);
    assert_string_equal(c->name, "x");
    inf_message_free(m);

    must_fail(inf_text_parse(&inference__model_config__descriptor, INF_SLICE(
        "max_batch_size: 0 max_batch_size: 8 max_batch_size: 0"), "b", &m),
        "b:1:37: max_batch_size: specified multiple times");
    must_fail(inf_text_parse(&inference__model_config__descriptor, INF_SLICE(
        "response_cache { } response_cache { }"), "b", &m),
        "b:1:20: response_cache: specified multiple times");
}

static void
surrogate_escapes_join(void **state)
{
    (void) state;
    ProtobufCMessage *m;

    must(inf_text_parse(&inference__model_config__descriptor,
        INF_SLICE("name: \"\\ud83d\\ude00\\u00e9\""), "b", &m));
    assert_string_equal(((Inference__ModelConfig *) m)->name,
        "\xf0\x9f\x98\x80\xc3\xa9");
    inf_message_free(m);
}

static void
the_core_configuration_is_read_with_its_defaults(void **state)
{
    (void) state;
    ProtobufCMessage *m;

    must(inf_text_parse(&nginx_inference__core_config__descriptor, INF_SLICE(
        "repositories: ['/a', '/b'] model_control: POLL auto_complete: false "
        "log { verbose: 2 } backend_settings { key: 'k' value: 'v' }"),
        "b", &m));
    NginxInference__CoreConfig *c = (void *) m;
    assert_int_equal(c->n_repositories, 2);
    assert_int_equal(c->model_control, NGINX_INFERENCE__MODEL_CONTROL__POLL);
    assert_false(c->auto_complete);
    assert_true(c->strict_readiness && !c->has_strict_readiness);
    assert_int_equal(c->load_threads, 4);
    assert_true(c->log->info && c->log->verbose == 2);
    assert_string_equal(c->backend_settings[0]->backend, "");
    assert_string_equal(c->external_path, "");

    /* what a writer sets by hand is marked, packed and read back */
    c->auto_complete = true;
    c->drain_ms = 5;
    c->generation = 7;
    inf_message_mark_set(m);
    assert_true(c->has_drain_ms && c->has_generation && !c->has_auto_complete);

    inf_buf_t bytes;
    ProtobufCMessage *again;
    inf_buf_init(&bytes);
    must(inf_message_pack(m, &bytes));
    must(inf_message_unpack(m->descriptor, inf_buf_slice(&bytes), &again));
    NginxInference__CoreConfig *d = (void *) again;
    assert_true(d->drain_ms == 5 && d->generation == 7 && d->auto_complete);
    assert_true(d->poll_interval_ms == 15000);
    inf_buf_fini(&bytes);
    inf_message_free(again);
    inf_message_free(m);
}

/* A message that holds itself, which no message of ours does. */
typedef struct node_s node_t;
struct node_s {
    ProtobufCMessage   base;
    node_t            *child;
};

static const ProtobufCMessageDescriptor node_descriptor;

static void
node_init(ProtobufCMessage *m)
{
    *(node_t *) m = (node_t) { .base = { .descriptor = &node_descriptor } };
}

static const ProtobufCFieldDescriptor node_fields[1] = { {
    .name = "child",
    .id = 1,
    .label = PROTOBUF_C_LABEL_NONE,
    .type = PROTOBUF_C_TYPE_MESSAGE,
    .offset = offsetof(node_t, child),
    .descriptor = &node_descriptor,
} };
static const unsigned node_by_name[1] = { 0 };
static const ProtobufCIntRange node_ranges[2] = { { 1, 0 }, { 0, 1 } };

static const ProtobufCMessageDescriptor node_descriptor = {
    .magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
    .name = "node",
    .short_name = "Node",
    .c_name = "Node",
    .package_name = "",
    .sizeof_message = sizeof(node_t),
    .n_fields = 1,
    .fields = node_fields,
    .fields_sorted_by_name = node_by_name,
    .n_field_ranges = 1,
    .field_ranges = node_ranges,
    .message_init = node_init,
};

static void
nesting_has_a_bound(void **state)
{
    (void) state;
    ProtobufCMessage *m;
    inf_buf_t text;

    inf_buf_init(&text);
    for (unsigned i = 0; i < INF_MESSAGE_DEPTH - 1; i++) {
        inf_buf_puts(&text, "child{");
    }
    size_t deepest = text.len;
    for (unsigned i = 0; i < INF_MESSAGE_DEPTH - 1; i++) {
        inf_buf_puts(&text, "}");
    }
    must(inf_text_parse(&node_descriptor, inf_buf_slice(&text), "b", &m));
    inf_message_free(m);

    inf_buf_reset(&text);
    for (unsigned i = 0; i < 100000; i++) {
        inf_buf_puts(&text, "child{");
    }
    char expected[64];
    snprintf(expected, sizeof(expected), "b:1:%zu: child.child.child.",
        deepest + sizeof("child{"));
    must_fail(inf_text_parse(&node_descriptor, inf_buf_slice(&text), "b", &m),
        expected);
    inf_buf_fini(&text);
}

static void
nesting_of_json_has_the_same_bound(void **state)
{
    (void) state;
    ProtobufCMessage *m;
    inf_buf_t text;

    inf_buf_init(&text);
    for (unsigned i = 0; i < INF_MESSAGE_DEPTH - 1; i++) {
        inf_buf_puts(&text, "{child:");
    }
    size_t deepest = text.len + sizeof("{child:") - 1;
    inf_buf_puts(&text, "{");
    for (unsigned i = 0; i < INF_MESSAGE_DEPTH; i++) {
        inf_buf_puts(&text, "}");
    }
    must(inf_message_from_json(&node_descriptor, inf_buf_slice(&text), &m));
    inf_message_free(m);

    inf_buf_reset(&text);
    for (unsigned i = 0; i < 100000; i++) {
        inf_buf_puts(&text, "{child:");
    }
    char expected[64];
    snprintf(expected, sizeof(expected), "objects are nested too deep at byte "
        "%zu", deepest);

    inf_err_t *err = inf_message_from_json(&node_descriptor,
        inf_buf_slice(&text), &m);
    assert_non_null(err);
    assert_non_null(strstr(inf_err_msg(err), expected));
    inf_err_free(err);
    inf_buf_fini(&text);
}

/* Cutting a text anywhere, or changing any byte, never crashes and never
   passes for the whole. */
static void
every_prefix_is_the_end_or_an_error(void **state)
{
    (void) state;
    inf_buf_t text;

    assert_true(read_file(FIXTURES "everything.pbtxt", &text));
    for (size_t n = 0; n < text.len; n++) {
        ProtobufCMessage *m = NULL;
        char *copy = malloc(n + 1);     /* so that overreads are seen */
        memcpy(copy, text.data, n);
        inf_err_t *err = inf_text_parse(&inference__model_config__descriptor,
            inf_slice(copy, n), "b", &m);
        if (err != NULL) {
            assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
            inf_err_free(err);
        } else {
            inf_message_free(m);
        }
        free(copy);
    }
    inf_buf_fini(&text);
}

static void
a_key_is_found_where_it_stands(void **state)
{
    (void) state;
    static const char text[] =
        "name: \"m\"\n"
        "input [ { name: \"A\" },\n"
        "  { name: \"B\" dims: [ 1,\n"
        "      -5 ] } ]\n"
        "input { name: \"C\" }\n"
        "parameters { key: \"one\" value { string_value: \"1\" } }\n"
        "  parameters: { value { string_value: \"2\" } key: \"two\" }\n"
        "dynamic_batching { priority_levels: 3\n"
        "  priority_queue_policy { key: 7 value { max_queue_size: 1 } } }\n";
    static const struct {
        const char  *key;
        size_t       line;
        size_t       column;
    } rows[] = {
        { "name", 1, 1 }, { "input", 2, 9 }, { "input[0]", 2, 9 },
        { "input[0].name", 2, 11 }, { "input[1].dims", 3, 23 },
        { "input[1].dims[1]", 4, 7 }, { "input[2].name", 5, 9 },
        { "input[2].dims", 5, 1 }, { "input[3].dims", 1, 1 },
        { "parameters[\"one\"]", 6, 1 }, { "parameters[\"two\"].x", 7, 3 },
        { "parameters[\"tw\"]", 1, 1 }, { "parameters[\"twos\"]", 1, 1 },
        { "dynamic_batching.priority_levels", 8, 20 },
        { "dynamic_batching.priority_queue_policy[7].max_queue_size", 9, 3 },
        { "dynamic_batching.priority_queue_policy[8]", 8, 1 },
        { "backend", 1, 1 }, { "", 1, 1 }, { "input[", 1, 1 },
        { "input[]", 1, 1 }, { "inputs", 1, 1 }, { "nam", 1, 1 },
        { "name.more", 1, 1 }, { "output[0].dims", 1, 1 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        inf_text_place_t at = { 0, 0 };
        must(inf_text_locate(&inference__model_config__descriptor,
            inf_slice_str(text), inf_slice_str(rows[i].key), &at));
        if (at.line != rows[i].line || at.column != rows[i].column) {
            fail_msg("%s: %zu:%zu, not %zu:%zu", rows[i].key, at.line,
                at.column, rows[i].line, rows[i].column);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_in_the_fixture_is_read),
        cmocka_unit_test(the_last_entry_of_a_map_key_wins),
        cmocka_unit_test(floats_take_all_their_forms),
        cmocka_unit_test(
            empty_and_comment_only_files_are_the_empty_configuration),
        cmocka_unit_test(crlf_line_ends_are_white_space),
        cmocka_unit_test(printed_text_reads_back_as_the_same_message),
        cmocka_unit_test(every_reject_names_file_line_column_and_key),
        cmocka_unit_test(a_byte_order_mark_is_an_error),
        cmocka_unit_test(a_zero_byte_ends_no_comment),
        cmocka_unit_test(strings_need_not_be_utf8),
        cmocka_unit_test(a_zero_byte_is_fine_where_bytes_are_kept),
        cmocka_unit_test(integers_reach_their_limits),
        cmocka_unit_test(a_default_value_may_be_given_again),
        cmocka_unit_test(surrogate_escapes_join),
        cmocka_unit_test(the_core_configuration_is_read_with_its_defaults),
        cmocka_unit_test(nesting_has_a_bound),
        cmocka_unit_test(nesting_of_json_has_the_same_bound),
        cmocka_unit_test(every_prefix_is_the_end_or_an_error),
        cmocka_unit_test(a_key_is_found_where_it_stands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
