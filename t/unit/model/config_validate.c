#include "model/config_text.h"

#include <stdio.h>

#include "core/model/config_validate.h"

/* text follows a configuration that is otherwise right; part NULL: valid. */
typedef struct {
    const char *text;
    const char *part;
} row_t;

#define ONNX "name: \"m\" backend: \"x\" "

static void
check_rows(const row_t *rows, size_t count, unsigned rules)
{
    for (size_t i = 0; i < count; i++) {
        Inference__ModelConfig *msg = config_parse_normal(rows[i].text);
        inf_findings_t f;

        inf_findings_init(&f);
        inf_config_find(msg, rules, &f);
        assert_found(&f, INF_ERR_INVALID_ARG, rows[i].part);
        inf_message_free(&msg->base);
    }
}

#define CHECK(rows, rules)                                                   \
    check_rows(rows, sizeof(rows) / sizeof(rows[0]), rules)

static void
model_level_rules_name_key_and_reason(void **state)
{
    (void) state;
    static const row_t rows[] = {
        { ONNX, NULL },
        { "backend: \"x\"",
          "name: model configuration must specify 'name'" },
        { "name: \"m\"", "backend: unexpected platform type '' for m" },
        { "name: \"m\" platform: \"caffe2\"",
          "backend: unexpected platform type 'caffe2' for m" },
        { "name: \"m\" platform: \"ensemble\" backend: \"x\"",
          "backend: Ensemble model 'm' must have platform type 'ensemble' "
          "and empty backend type" },
        { "name: \"m\" backend: \"onnxruntime\" platform: \"libtorch\"",
          "platform: unexpected 'platform' and 'backend' pair, got:libtorch, "
          "onnxruntime" },
        { "name: \"m\" backend: \"pytorch\" platform: \"libtorch\"",
          "got:libtorch, pytorch" },
        { "name: \"m\" backend: \"tensorrt\"", "got:, tensorrt;"
          " 'tensorrt_plan' is one of that backend's" },
        { "name: \"m\" backend: \"tensorflow\" platform: \"tensorrt_plan\"",
          "got:tensorrt_plan, tensorflow" },
        { "name: \"m\" backend: \"pytorch\" platform: \"torch_aoti\"", NULL },
        { "name: \"m\" backend: \"pytorch\" platform: \"pytorch_libtorch\"",
          NULL },
        { "name: \"m\" backend: \"onnxruntime\" "
          "platform: \"onnxruntime_onnx\"", NULL },
        { "name: \"m\" backend: \"tensorflow\" "
          "platform: \"tensorflow_graphdef\"", NULL },
        { "name: \"m\" backend: \"mine\" platform: \"anything\"", NULL },
        { ONNX "max_batch_size: -1", "max_batch_size: 'max_batch_size' must "
          "be non-negative value for m" },
        { ONNX "max_batch_size: 0", NULL },
        { ONNX "response_cache { enable: true } "
          "model_transaction_policy { decoupled: true }",
          "response_cache: Response Cache does not currently support model m "
          "with 'decoupled' transaction policy" },
        { ONNX "response_cache { } "
          "model_transaction_policy { decoupled: true }", NULL },
    };

    CHECK(rows, INF_RULES_MODEL);
}

static void
a_missing_version_policy_is_found_before_normalisation(void **state)
{
    (void) state;
    Inference__ModelConfig *msg = config_parse(ONNX);
    assert_error(inf_config_validate(msg, INF_RULES_MODEL),
        INF_ERR_INVALID_ARG, "must specify 'version policy' for m "
        "(version_policy)");
    inf_message_free(&msg->base);
}

static void
file_names_stay_within_their_directory(void **state)
{
    (void) state;
    static const row_t rows[] = {
        { ONNX "default_model_filename: \"a/b.onnx\"", NULL },
        { ONNX "default_model_filename: \"..model\"", NULL },
        { ONNX "default_model_filename: \"../b.onnx\"",
          "default_model_filename: file name '../b.onnx' must stay within "
          "the version directory" },
        { ONNX "default_model_filename: \"/etc/passwd\"",
          "file name '/etc/passwd'" },
        { ONNX "cc_model_filenames { key: \"7.5\" value: \"a/..\" }",
          "cc_model_filenames[\"7.5\"]: file name 'a/..'" },
        { ONNX "model_warmup { inputs { key: \"I\" value { data_type: "
          "TYPE_FP32 dims: 1 input_data_file: \"../x\" } } }",
          "model_warmup[0].inputs[\"I\"].input_data_file: file name '../x'" },
        { ONNX "model_warmup { inputs { key: \"I\" value { data_type: "
          "TYPE_FP32 dims: 1 zero_data: false } } }", NULL },
    };

    CHECK(rows, INF_RULES_MODEL);
}

static void
metric_rules(void **state)
{
    (void) state;
    static const row_t rows[] = {
        { ONNX "model_metrics { }", NULL },
        { ONNX "model_metrics { metric_control { histogram_options { "
          "buckets: 1 } } }", "model_metrics.metric_control[0]: metric "
          "control must specify 'metric_identifier'" },
        { ONNX "model_metrics { metric_control { metric_identifier { } "
          "histogram_options { buckets: 1 } } }", "metric_identifier: metric "
          "identifier must specify non-empty 'family'" },
        { ONNX "model_metrics { metric_control { metric_identifier { "
          "family: \"f\" } } }", "metric control must specify "
          "'histogram_options'" },
        { ONNX "model_metrics { metric_control { metric_identifier { "
          "family: \"f\" } histogram_options { } } }", "histogram options "
          "must specify non-empty 'buckets'" },
        { ONNX "model_metrics { metric_control { metric_identifier { "
          "family: \"f\" } histogram_options { buckets: [2, 1] } } }", NULL },
    };

    CHECK(rows, INF_RULES_MODEL);
}

#define DYNAMIC ONNX "max_batch_size: 8 dynamic_batching { "

static void
dynamic_batching_rules(void **state)
{
    (void) state;
    static const row_t rows[] = {
        { ONNX "dynamic_batching { }", NULL },
        { ONNX "dynamic_batching { preferred_batch_size: 1 }",
          "dynamic_batching.preferred_batch_size[0]: dynamic batching "
          "preferred size must be <= max batch size for m" },
        { DYNAMIC "preferred_batch_size: [4, 8] }", NULL },
        { DYNAMIC "preferred_batch_size: [4, 0] }",
          "preferred_batch_size[1]: dynamic batching preferred size must be "
          "positive for m" },
        { DYNAMIC "preferred_batch_size: [-1] }", "must be positive" },
        { DYNAMIC "preferred_batch_size: [9] }", "must be <= max batch "
          "size" },
        { DYNAMIC "priority_levels: 2 }",
          "dynamic_batching.default_priority_level: default priority level "
          "must be in range [1, 2] for m" },
        { DYNAMIC "priority_levels: 2 default_priority_level: 3 }",
          "range [1, 2]" },
        { DYNAMIC "priority_levels: 2 default_priority_level: 2 }", NULL },
        { DYNAMIC "priority_levels: 18446744073709551615 "
          "default_priority_level: 18446744073709551615 }", NULL },
        { DYNAMIC "priority_levels: 2 default_priority_level: 1 "
          "priority_queue_policy { key: 3 value { } } }",
          "dynamic_batching.priority_queue_policy[3]: priority queue policy "
          "must have priority level in range [1, 2] for m" },
        { DYNAMIC "priority_levels: 2 default_priority_level: 1 "
          "priority_queue_policy { key: 0 value { } } }", "range [1, 2]" },
        { DYNAMIC "priority_queue_policy { key: 0 value { } } }", NULL },
        { DYNAMIC "priority_queue_policy { key: 7 value { } } }", NULL },
        { DYNAMIC "preserve_ordering: true priority_levels: 2 "
          "default_priority_level: 1 }",
          "Only one priority level is allowed when 'preserve_ordering' is "
          "true for m" },
        { DYNAMIC "preserve_ordering: true priority_levels: 1 "
          "default_priority_level: 1 }", NULL },
        { DYNAMIC "preserve_ordering: true default_queue_policy { "
          "timeout_action: DELAY default_timeout_microseconds: 1 } }",
          "dynamic_batching.default_queue_policy: Queue policy can not have "
          "DELAY as timeout action when 'preserve_ordering' is true for m" },
        { DYNAMIC "preserve_ordering: true default_queue_policy { "
          "timeout_action: DELAY } }", NULL },
        { DYNAMIC "preserve_ordering: true default_queue_policy { "
          "timeout_action: REJECT default_timeout_microseconds: 1 } }",
          NULL },
        { DYNAMIC "default_queue_policy { timeout_action: DELAY "
          "default_timeout_microseconds: 1 } }", NULL },
        { DYNAMIC "preserve_ordering: true priority_levels: 1 "
          "default_priority_level: 1 priority_queue_policy { key: 1 value { "
          "timeout_action: DELAY default_timeout_microseconds: 5 } } }",
          "dynamic_batching.priority_queue_policy[1]: Queue policy can not "
          "have DELAY" },
    };

    CHECK(rows, INF_RULES_MODEL);
}

#define LIMIT(value) ONNX "parameters { key: \"INFERENCE_MAX_QUEUE_SIZE\" "  \
    "value { string_value: \"" value "\" } } "

static void
a_queue_limit_is_a_count(void **state)
{
    (void) state;
    static const row_t rows[] = {
        { LIMIT("0"), NULL },
        { LIMIT("4294967295"), NULL },
        { LIMIT("4294967296"), "parameters[\"INFERENCE_MAX_QUEUE_SIZE\"]: "
          "parameter 'INFERENCE_MAX_QUEUE_SIZE' of m must be a count from 0 "
          "to 4294967295, it is '4294967296'" },
        { LIMIT("-1"), "it is '-1'" },
        { LIMIT("1 "), "it is '1 '" },
        { LIMIT(""), "it is ''" },
        { LIMIT("99999999999999999999999999"), "must be a count" },
        { LIMIT("8") "dynamic_batching { }", "for models without a "
          "scheduling choice; m has one" },
    };

    CHECK(rows, INF_RULES_MODEL);
}

#define WRITES(value) ONNX "parameters { key: \"INFERENCE_WRITABLE_INPUTS\" "\
    "value { string_value: \"" value "\" } } "

static void
writable_inputs_are_true_or_false(void **state)
{
    (void) state;
    static const row_t rows[] = {
        { WRITES("true"), NULL },
        { WRITES("false"), NULL },
        { WRITES("1"), "parameters[\"INFERENCE_WRITABLE_INPUTS\"]: parameter"
          " 'INFERENCE_WRITABLE_INPUTS' of m must be 'true' or 'false', it is"
          " '1'" },
        { WRITES(""), "it is ''" },
    };

    CHECK(rows, INF_RULES_MODEL);
}

#define SEQUENCE ONNX "max_batch_size: 8 sequence_batching { "
#define CONTROL(kind, rest)                                                  \
    "control_input { name: \"C\" control { kind: CONTROL_SEQUENCE_" kind     \
    " " rest " } }"

static void
sequence_batching_rules(void **state)
{
    (void) state;
    static const row_t rows[] = {
        { SEQUENCE "}", NULL },
        { SEQUENCE "} response_cache { enable: true }",
          "response_cache: Response Cache does not currently support model m "
          "with sequence batching scheduler" },
        { SEQUENCE "control_input { control { kind: CONTROL_SEQUENCE_START "
          "int32_false_true: [0, 1] } } }",
          "sequence_batching.control_input[0].name: sequence batching "
          "control tensor must have a name for m" },
        { SEQUENCE CONTROL("START", "int32_false_true: [0, 1]")
          CONTROL("END", "int32_false_true: [0, 1]") "}",
          "control_input[1].name: sequence batching control tensor 'C' is "
          "specified for multiple control kinds for m" },
        { SEQUENCE CONTROL("START", "int32_false_true: [0, 1]")
          " control_input { name: \"D\" control { kind: "
          "CONTROL_SEQUENCE_START fp32_false_true: [0, 1] } } }",
          "control_input[1].control[0]: sequence batching specifies multiple "
          "CONTROL_SEQUENCE_START tensors for m" },
        { SEQUENCE CONTROL("START", "") "}",
          "sequence batching must specify either 'int32_false_true', "
          "'fp32_false_true' or 'bool_false_true' for "
          "CONTROL_SEQUENCE_START for m" },
        { SEQUENCE CONTROL("END", "int32_false_true: [0, 1] "
          "fp32_false_true: [0, 1]") "}", "specifies more than one from "
          "'int32_false_true', 'fp32_false_true' and 'bool_false_true' for "
          "CONTROL_SEQUENCE_END for m" },
        { SEQUENCE CONTROL("READY", "int32_false_true: [0]") "}",
          "sequence batching control 'int32_false_true' must have exactly 2 "
          "entries for CONTROL_SEQUENCE_READY for m" },
        { SEQUENCE CONTROL("READY", "fp32_false_true: [0, 1, 2]") "}",
          "'fp32_false_true' must have exactly 2 entries" },
        { SEQUENCE CONTROL("READY", "bool_false_true: [false]") "}",
          "'bool_false_true' must have exactly 2 entries" },
        { SEQUENCE CONTROL("READY", "bool_false_true: [false, true]") "}",
          NULL },
        { SEQUENCE CONTROL("CORRID", "data_type: TYPE_UINT64 "
          "int32_false_true: [0, 1]") "}", "must not specify either "
          "'int32_false_true', 'fp32_false_true' or 'bool_false_true' for "
          "CONTROL_SEQUENCE_CORRID for m" },
        { SEQUENCE CONTROL("CORRID", "data_type: TYPE_FP32") "}",
          "unexpected data type for control CONTROL_SEQUENCE_CORRID" },
        { SEQUENCE CONTROL("CORRID", "data_type: 99") "}",
          "unexpected data type" },
        { SEQUENCE CONTROL("CORRID", "") "}", "unexpected data type" },
        { SEQUENCE CONTROL("CORRID", "data_type: TYPE_STRING") "}", NULL },
        { SEQUENCE CONTROL("CORRID", "data_type: TYPE_INT32") "}", NULL },
        { SEQUENCE "control_input { name: \"C\" control { kind: "
          "CONTROL_SEQUENCE_START int32_false_true: [0, 1] } control { kind: "
          "CONTROL_SEQUENCE_END int32_false_true: [0, 1] } } }", NULL },
        { SEQUENCE "oldest { preferred_batch_size: 0 } }",
          "sequence_batching.oldest.preferred_batch_size[0]: sequence "
          "batching preferred batch size must be positive for m" },
        { SEQUENCE "oldest { preferred_batch_size: 9 } }", "sequence "
          "batching preferred batch size must be <= max batch size for m" },
        { SEQUENCE "oldest { preferred_batch_size: 8 } }", NULL },
        { SEQUENCE "direct { minimum_slot_utilization: 1.5 } }",
          "sequence_batching.direct.minimum_slot_utilization: sequence "
          "batching minimum slot utilization must be in range (0.0, 1.0] for "
          "m" },
        { SEQUENCE "direct { minimum_slot_utilization: -0.1 } }",
          "(0.0, 1.0]" },
        { SEQUENCE "direct { minimum_slot_utilization: nan } }",
          "(0.0, 1.0]" },
        { SEQUENCE "direct { minimum_slot_utilization: 0 } }", NULL },
        { SEQUENCE "direct { minimum_slot_utilization: 1 } }", NULL },
    };

    CHECK(rows, INF_RULES_MODEL);
}

#define STATE(state, initial)                                                \
    ONNX "sequence_batching { state { input_name: \"i\" output_name: \"o\" " \
    state " initial_state { " initial " } } }"

static void
implicit_state_rules(void **state)
{
    (void) state;
    static const row_t rows[] = {
        { STATE("data_type: TYPE_FP32 dims: [1, -1]", "data_type: TYPE_FP32 "
          "dims: [1, 4] zero_data: true name: \"z\""), NULL },
        { STATE("", "zero_data: true name: \"z\" } initial_state { "
          "zero_data: true name: \"z\""), "sequence_batching.state[0]."
          "initial_state: initial_state field for state input 'i' must "
          "contain exactly one or zero element. Found '2' elements." },
        { STATE("data_type: TYPE_FP32", "data_type: TYPE_INT32 zero_data: "
          "true name: \"z\""), "The data type used for 'initial_state' "
          "field of state 'i' does not match the state data type." },
        { STATE("", "zero_data: true"), "Field 'name' must be set when using "
          "initial_state for state input 'i'." },
        { STATE("dims: [1, 2]", "zero_data: true name: \"z\" dims: 1"),
          "Number of dimensions in 'initial_state' doesn't match the size of "
          "'state' dimensions for state input 'i'. 1 != 2" },
        { STATE("dims: [-1]", "zero_data: true name: \"z\" dims: -1"),
          "'initial_state' field for state input name 'i' contains variable "
          "dimensions. Dimension 0 is -1" },
        { STATE("dims: [3, 4]", "zero_data: true name: \"z\" dims: [3, 5]"),
          "'initial_state' dim for input name 'i' doesn't match 'state' dim "
          "description. 5 != 4" },
        { STATE("dims: [-1, -1]", "zero_data: true name: \"z\" dims: "
          "[4294967296, 4294967296]"), "exceeds maximum size of "
          "9223372036854775807" },
        { STATE("dims: 1", "name: \"z\" dims: 1"), "initial_state setting "
          "expects state'i' to have state_data set" },
        { STATE("dims: 1", "name: \"z\" dims: 1 data_file: \"../x\""),
          "file name '../x' must stay within the initial_state directory" },
        { STATE("dims: 1", "name: \"z\" dims: 1 data_file: \"x\""), NULL },
        { STATE("dims: 1", "name: \"z\" dims: 1 zero_data: true } } "
          "state { input_name: \"i\" dims: 1 initial_state { name: \"y\" "
          "dims: 1 zero_data: false"), "sequence_batching.state[1]."
          "input_name: State input name 'i' specified more than once." },
    };

    CHECK(rows, INF_RULES_STATE);
}

#define ENSEMBLE "name: \"m\" platform: \"ensemble\" "
#define ENSEMBLE_IO ENSEMBLE                                                 \
    "input { name: \"A\" data_type: TYPE_FP32 dims: 1 } "                    \
    "output { name: \"B\" data_type: TYPE_FP32 dims: 1 } "
#define MAP(key, value) "{ key: \"" key "\" value: \"" value "\" } "
#define STEP(model, in, out)                                                 \
    "step { model_name: \"" model "\" model_version: -1 input_map " in       \
    "output_map " out "} "
#define STEPS(steps) "ensemble_scheduling { " steps "}"

static void
ensemble_rules(void **state)
{
    (void) state;
    static const row_t rows[] = {
        { ENSEMBLE_IO STEPS(STEP("x", MAP("I", "A"), MAP("O", "B"))), NULL },
        { ENSEMBLE_IO STEPS(STEP("x", MAP("I", "A"), MAP("O", "t"))
          STEP("y", MAP("I", "t"), MAP("O", "B"))), NULL },
        { ENSEMBLE_IO STEPS(STEP("y", MAP("I", "t") "input_map "
          MAP("J", "t"), MAP("O", "B"))
          STEP("x", MAP("I", "A"), MAP("O", "t"))), NULL },
        { ONNX STEPS(STEP("x", MAP("I", "A"), MAP("O", "B"))),
          "ensemble_scheduling: ensemble scheduling cannot be set for model "
          "'m' whose platform is not ensemble" },
        { ENSEMBLE, "ensemble_scheduling: ensemble scheduling must be set "
          "for ensemble m whose platform is ensemble" },
        { ENSEMBLE_IO STEPS(STEP("x", MAP("I", "A"), MAP("O", "B")))
          "instance_group { }", "instance_group: instance group should not "
          "be specified for ensemble 'm'" },
        { ENSEMBLE_IO STEPS(STEP("x", MAP("I", "A"), MAP("O", "B")))
          "optimization { }", "optimization: optimization should not be "
          "specified for ensemble 'm'" },
        { ENSEMBLE_IO STEPS(STEP("x", MAP("I", "A"), MAP("O", "B")))
          "model_warmup { }", "model_warmup: model_warmup can not be "
          "specified for ensemble 'm'" },
        { ENSEMBLE_IO STEPS(""), "ensemble_scheduling.step: must specify "
          "'step' for ensemble 'm'" },
        { ENSEMBLE_IO STEPS(STEP("", MAP("I", "A"), MAP("O", "B"))),
          "ensemble_scheduling.step[0].model_name: must specify 'model_name' "
          "in step 0 of ensemble 'm'" },
        { ENSEMBLE_IO STEPS("step { model_name: \"x\" output_map "
          MAP("O", "B") "}"), "must specify 'input_map' in step 0" },
        { ENSEMBLE_IO STEPS("step { model_name: \"x\" input_map "
          MAP("I", "A") "}"), "must specify 'output_map' in step 0" },
        { ENSEMBLE_IO STEPS(STEP("x", MAP("I", "A"), MAP("O", "B"))
          STEP("y", MAP("I", "A"), MAP("O", "B"))),
          "ensemble_scheduling.step[1].output_map: ensemble tensor 'B' can "
          "appear in an output map only once for ensemble 'm' step 1" },
        { ENSEMBLE_IO STEPS(STEP("x", MAP("I", "Z"), MAP("O", "B"))),
          "input[0].name: ensemble input 'A' for ensemble m' is not used" },
        { ENSEMBLE_IO STEPS(STEP("x", MAP("I", "A"), MAP("O", "Z"))),
          "output[0].name: ensemble output 'B' for ensemble m' is not "
          "used" },
        { ENSEMBLE_IO STEPS(STEP("x", MAP("I", "A") "input_map "
          MAP("J", "B"), MAP("O", "t")) STEP("y", MAP("I", "t"),
          MAP("O", "u")) STEP("z", MAP("I", "u"), MAP("O", "v"))),
          "output 'B' for ensemble 'm' is not written" },
        { ENSEMBLE_IO STEPS(STEP("x", MAP("I", "A") "input_map "
          MAP("J", "nowhere"), MAP("O", "B"))), "output 'B' for ensemble 'm' "
          "is not written: at least one of its depending tensors, 'nowhere', "
          "is not connected" },
        { ENSEMBLE_IO STEPS(STEP("x", MAP("I", "A"), MAP("O", "B")
          "output_map " MAP("P", "spare"))), "ensemble tensor 'spare' is "
          "unused in ensemble 'm'" },
        { ENSEMBLE_IO STEPS(STEP("x", MAP("I", "A"), MAP("O", "B"))
          STEP("y", MAP("I", "loop"), MAP("O", "loop"))),
          "ensemble tensor 'loop' is unused in ensemble 'm'" },
        { ENSEMBLE_IO STEPS(STEP("x", MAP("I", "A") "input_map "
          MAP("J", "back"), MAP("O", "t")) STEP("y", MAP("I", "t"),
          MAP("O", "B") "output_map " MAP("P", "back"))),
          "output 'B' for ensemble 'm' is not written: at least one of its "
          "depending tensors, 't', is not connected" },
    };

    CHECK(rows, INF_RULES_MODEL);
}

static void
a_long_chain_of_steps_is_checked_in_linear_time(void **state)
{
    (void) state;
    enum { STEPS_IN_CHAIN = 20000 };
    inf_buf_t text;

    inf_buf_init(&text);
    inf_buf_puts(&text, ENSEMBLE "input { name: \"t0\" } output { name: ");
    inf_buf_printf(&text, "\"t%d\" } ensemble_scheduling { ",
        STEPS_IN_CHAIN);

    /* the last one comes first: the worst order for a naive pass */
    for (int i = STEPS_IN_CHAIN; i > 0; i--) {
        inf_buf_printf(&text, "step { model_name: \"x\" input_map { key: "
            "\"I\" value: \"t%d\" } output_map { key: \"O\" value: \"t%d\" } "
            "} ", i - 1, i);
    }

    inf_buf_puts(&text, "}");
    Inference__ModelConfig *msg = config_parse(text.data);
    assert_ok(inf_config_normalize(msg));
    assert_ok(inf_config_validate(msg, INF_RULES_MODEL));
    inf_message_free(&msg->base);
    inf_buf_fini(&text);
}

#define IN(rest) ONNX "input { name: \"I\" data_type: TYPE_FP32 " rest " } "
#define OUT(rest) ONNX "output { name: \"O\" data_type: TYPE_FP32 " rest " } "

static void
tensor_rules(void **state)
{
    (void) state;
    static const row_t rows[] = {
        { IN("dims: [1, -1]"), NULL },
        { OUT("dims: 3"), NULL },
        { ONNX "input { data_type: TYPE_FP32 dims: 1 }",
          "input[0].name: model input must specify 'name' for m" },
        { ONNX "input { name: \"\\xff\" data_type: TYPE_FP32 dims: 1 }",
          "input[0].name: model input '\xff' must have a 'name' that is valid"
          " UTF-8 for m" },
        { ONNX "output { data_type: TYPE_FP32 dims: 1 }",
          "output[0].name: model output must specify 'name' for m" },
        { ONNX "input { name: \"I\" dims: 1 }",
          "input[0].data_type: model input 'I' must specify 'data_type' for "
          "m" },
        { ONNX "input { name: \"I\" data_type: 99 dims: 1 }", NULL },
        { IN(""), "input[0].dims: model input 'I' must specify 'dims' for "
          "m" },
        { IN("dims: 0"), "input[0].dims: model input 'I' dimension must be "
          "integer >= 1, or -1 to indicate a variable-size dimension for m" },
        { OUT("dims: [2, -2]"), "output[0].dims: model output 'O' dimension "
          "must be integer >= 1" },
        { IN("dims: 1 reshape { }"), "input[0].reshape: model input 'I' "
          "cannot have empty reshape for non-batching model as scalar "
          "tensors are not supported for m" },
        { IN("dims: 1 reshape { }") "max_batch_size: 1", NULL },
        { IN("dims: 2 reshape { }") "max_batch_size: 1", "has different size "
          "for dims and reshape" },
        { IN("dims: -1 reshape { }") "max_batch_size: 1", "has different "
          "size for dims and reshape" },
        { IN("dims: 2 reshape { shape: [0] }"), "reshape dimensions must be "
          "integer >= 1, or -1" },
        { IN("dims: [2, 3] reshape { shape: 6 }"), NULL },
        { IN("dims: [2, 3] reshape { shape: 5 }"), "has different size for "
          "dims and reshape" },
        { IN("dims: [2, 4, -1, 6] reshape { shape: [8, -1, 1, 6] }"), NULL },
        { IN("dims: [2, 4, -1, 6] reshape { shape: [-1, 8, 6] }"),
          "has different size for dims and reshape" },
        { IN("dims: [-1, -1] reshape { shape: [-1] }"), "has different "
          "number of variable-size dimensions for dims and reshape" },
        { OUT("dims: [-1, 2] reshape { shape: [2] }"), "has different size "
          "for dims and reshape" },
        { IN("dims: [4294967296, 4294967296]"), "element count for tensor "
          "exceeds maximum size of 9223372036854775807" },
        { OUT("dims: [4294967296, 4294967296]"), "exceeds maximum size" },
        { IN("dims: [9223372036854775807]"), NULL },
        { IN("dims: [-1, 4294967296, 4294967296]"), "exceeds maximum size" },
        { IN("dims: [2] reshape { shape: [4294967296, 4294967296] }"),
          "reshape exceeds maximum size" },
        { IN("dims: [1, 2] format: FORMAT_NHWC"), "input[0].dims: model input "
          "NHWC/NCHW require 3 dims for m, 'I' has 2" },
        { IN("dims: [1, 2, 3] format: FORMAT_NCHW"), NULL },
        { IN("dims: 1 is_shape_tensor: true"), "input[0].is_shape_tensor: "
          "shape tensors are only supported for TensorRT "
          "platform for m" },
        { OUT("dims: 1 is_shape_tensor: true") "platform: \"tensorrt_plan\"",
          NULL },
        { OUT("dims: [1, 2, 3] is_non_linear_format_io: true"),
          "Non-linear IO format is only supported for the TensorRT "
          "platform" },
        { IN("dims: 1 is_non_linear_format_io: true")
          "platform: \"tensorrt_plan\"", "Non-linear IO format requires 3 "
          "dims" },
        { IN("dims: 1") "input { name: \"I\" data_type: TYPE_FP32 dims: 1 }",
          NULL },
    };

    CHECK(rows, INF_RULES_TENSORS);
}

static void
more_than_63_dimensions_are_rejected(void **state)
{
    (void) state;
    inf_buf_t text;

    for (int dims = 63; dims <= 64; dims++) {
        inf_buf_init(&text);
        inf_buf_puts(&text, ONNX "input { name: \"I\" data_type: TYPE_FP32 ");
        for (int i = 0; i < dims; i++) {
            inf_buf_puts(&text, "dims: 1 ");
        }

        inf_buf_puts(&text, "}");
        Inference__ModelConfig *msg = config_parse(text.data);
        inf_err_t *err = inf_config_validate(msg, INF_RULES_TENSORS);
        if (dims == 63) {
            assert_ok(err);

        } else {
            assert_error(err, INF_ERR_INVALID_ARG, "has more than 63 "
                "dimensions");
        }

        inf_message_free(&msg->base);
        inf_buf_fini(&text);
    }
}

#define BOTH "name: \"m\" backend: \"x\" "                                   \
    "input { name: \"I\" data_type: TYPE_FP32 dims: 1 } "                    \
    "output { name: \"O\" data_type: TYPE_FP32 dims: 1 } "                   \
    "output { name: \"P\" data_type: TYPE_FP32 dims: 1 } "

static void
batch_input_and_output_rules(void **state)
{
    (void) state;
    static const row_t rows[] = {
        { BOTH "batch_input { kind: BATCH_ELEMENT_COUNT target_name: \"T\" "
          "data_type: TYPE_INT32 source_input: \"I\" }", NULL },
        { BOTH "batch_input { kind: BATCH_ITEM_SHAPE target_name: \"T\" "
          "data_type: TYPE_FP32 }", "batch_input[0].source_input: batch "
          "input kind 'BATCH_ITEM_SHAPE' expects 1 source input, got 0" },
        { BOTH "batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT "
          "data_type: TYPE_FP32 source_input: [\"I\", \"I\"] }",
          "'BATCH_ACCUMULATED_ELEMENT_COUNT' expects 1 source input, got 2" },
        { BOTH "batch_input { data_type: TYPE_INT64 source_input: \"I\" }",
          "batch_input[0].data_type: batch input data type must be "
          "TYPE_INT32 or TYPE_FP32" },
        { BOTH "batch_input { data_type: TYPE_INT32 source_input: \"X\" }",
          "unknown source input name 'X'" },
        { BOTH "batch_input { kind: 17 data_type: TYPE_INT32 source_input: "
          "\"I\" }", "unknown batch input kind 17" },
        { BOTH "batch_output { target_name: [\"O\", \"P\"] source_input: "
          "\"I\" }", NULL },
        { BOTH "batch_output { target_name: \"O\" }", "batch_output[0]."
          "source_input: batch output kind 'BATCH_SCATTER_WITH_INPUT_SHAPE' "
          "expects 1 source input, got 0" },
        { BOTH "batch_output { target_name: \"X\" source_input: \"I\" }",
          "batch_output[0].target_name[0]: unknown target output name 'X'" },
        { BOTH "batch_output { target_name: \"O\" source_input: \"I\" } "
          "batch_output { target_name: \"O\" source_input: \"I\" }",
          "batch_output[1].target_name[0]: target output name 'O' can only "
          "be specified once" },
        { BOTH "batch_output { kind: 3 target_name: \"O\" source_input: "
          "\"I\" }", "unknown batch output kind 3" },
    };

    CHECK(rows, INF_RULES_TENSORS);
}

static void
all_findings_are_listed_at_once(void **state)
{
    (void) state;
    Inference__ModelConfig *msg = config_parse_normal(
        "name: \"m\" backend: \"x\" max_batch_size: -1 "
        "input { name: \"I\" } output { dims: 0 }");
    inf_findings_t f;

    inf_findings_init(&f);
    inf_config_find(msg, INF_RULES_ALL, &f);

    static const char *const keys[] = {
        "max_batch_size", "input[0].data_type", "input[0].dims",
        "output[0].name", "output[0].data_type", "output[0].dims"
    };

    assert_int_equal(f.count, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_string_equal(f.items[i].key, keys[i]);
    }

    inf_findings_fini(&f);
    inf_message_free(&msg->base);
}

static void
findings_beyond_the_limit_are_counted(void **state)
{
    (void) state;
    inf_findings_t f;

    inf_findings_init(&f);
    for (unsigned i = 0; i < INF_FINDINGS_MAX + 5; i++) {
        inf_findings_add(&f, INF_ERR_INVALID_ARG, "k", "number %u", i);
    }

    assert_int_equal(f.count, INF_FINDINGS_MAX);
    assert_int_equal(f.more, 5);
    assert_int_equal(inf_findings_total(&f), INF_FINDINGS_MAX + 5);
    assert_error(inf_findings_error(&f, NULL), INF_ERR_INVALID_ARG,
        "number 0 (k)");
    inf_findings_fini(&f);
}

static void
a_reshape_has_at_most_63_dimensions(void **state)
{
    (void) state;

    for (int dims = 62; dims <= 66; dims++) {
        inf_buf_t text;
        inf_buf_init(&text);
        inf_buf_puts(&text, ONNX "input { name: \"I\" data_type: TYPE_FP32 "
            "dims: 1 reshape { ");
        for (int i = 0; i < dims; i++) {
            inf_buf_puts(&text, "shape: 1 ");
        }
        inf_buf_puts(&text, "} }");

        row_t row = { text.data, dims <= 63 ? NULL : "input[0].reshape: model "
            "input 'I' reshape has more than 63 dimensions for m" };
        check_rows(&row, 1, INF_RULES_TENSORS);
        inf_buf_fini(&text);
    }
}

static void
the_first_wrong_dimension_of_an_initial_state_is_enough(void **state)
{
    (void) state;
    Inference__ModelConfig *msg = config_parse_normal(STATE("dims: [-1, -1]",
        "zero_data: true name: \"z\" dims: [0, -1]"));
    inf_findings_t f;

    inf_findings_init(&f);
    inf_config_find(msg, INF_RULES_STATE, &f);
    assert_int_equal(f.count, 1);
    assert_non_null(strstr(f.items[0].text, "Dimension 0 is 0"));
    inf_findings_fini(&f);
    inf_message_free(&msg->base);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(model_level_rules_name_key_and_reason),
        cmocka_unit_test(
            a_missing_version_policy_is_found_before_normalisation),
        cmocka_unit_test(file_names_stay_within_their_directory),
        cmocka_unit_test(metric_rules),
        cmocka_unit_test(dynamic_batching_rules),
        cmocka_unit_test(a_queue_limit_is_a_count),
        cmocka_unit_test(writable_inputs_are_true_or_false),
        cmocka_unit_test(sequence_batching_rules),
        cmocka_unit_test(implicit_state_rules),
        cmocka_unit_test(ensemble_rules),
        cmocka_unit_test(a_long_chain_of_steps_is_checked_in_linear_time),
        cmocka_unit_test(tensor_rules),
        cmocka_unit_test(more_than_63_dimensions_are_rejected),
        cmocka_unit_test(a_reshape_has_at_most_63_dimensions),
        cmocka_unit_test(
            the_first_wrong_dimension_of_an_initial_state_is_enough),
        cmocka_unit_test(batch_input_and_output_rules),
        cmocka_unit_test(all_findings_are_listed_at_once),
        cmocka_unit_test(findings_beyond_the_limit_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
