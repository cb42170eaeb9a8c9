/* Models that the rate limiter would reject, named before anything is
   loaded. */

#include "model/config_text.h"

#include <stdio.h>

#include "core/repository/rate_check.h"

#define CPU "instance_group { kind: KIND_CPU rate_limiter { "
#define GPU(on) "instance_group { kind: KIND_GPU " on " rate_limiter { "
#define R(name, count) "resources { name: '" name "' count: " #count " } "

static inf_rate_check_t *check;

/* Finding 0 as "key: text", "" if there is none. */
static const char *
finds(const char *groups)
{
    static char text[512];
    char config[1024];
    inf_findings_t f;

    snprintf(config, sizeof(config), "name: 'm' backend: 'x' %s", groups);
    Inference__ModelConfig *msg = config_parse(config);
    inf_findings_init(&f);
    assert_ok(inf_rate_check_model(check, msg, &f));
    assert_true(inf_findings_total(&f) <= 1);
    snprintf(text, sizeof(text), "%s", "");
    if (inf_findings_total(&f) == 1) {
        snprintf(text, sizeof(text), "%s: %s", f.items[0].key,
            f.items[0].text);
    }
    inf_findings_fini(&f);
    inf_message_free(&msg->base);
    return text;
}

#define finds_nothing(groups) assert_string_equal(finds(groups), "")
#define finds_part(groups, part)                                             \
    do {                                                                     \
        const char *found_ = finds(groups);                                  \
        if (strstr(found_, part) == NULL) {                                  \
            fail_msg("\"%s\" is not in \"%s\"", part, found_);               \
        }                                                                    \
    } while (0)

/* Text: the resources that there are. */
static void
open_check(const char *resources)
{
    char text[256];
    ProtobufCMessage *config;

    snprintf(text, sizeof(text), "rate_limit: RATE_LIMIT_EXECUTION_COUNT %s",
        resources);
    assert_ok(inf_text_parse(&nginx_inference__core_config__descriptor,
        inf_slice_str(text), "", &config));
    assert_ok(inf_rate_check_new((NginxInference__CoreConfig *) (void *)
        config, &check));
    assert_non_null(check);
    inf_message_free(config);
}

static void
what_makes_no_sense_is_named_by_its_key(void **state)
{
    (void) state;

    open_check("");
    finds_nothing("");
    finds_nothing("instance_group { count: 2 }");
    finds_nothing(CPU R("R", 1) R("S", 4000000000) "priority: 7 } }");
    finds_part(CPU R("R", 1) R("S", 0) "} }", "instance_group[0].rate_limiter"
        ".resources[1].count: rate_limiter.resources \"S\": count must be at"
        " least 1");
    finds_part("instance_group { } " CPU R("", 1) "} }", "instance_group[1]"
        ".rate_limiter.resources[0].name: rate_limiter.resources \"\": name"
        " must not be empty");
    finds_part(CPU R("R", 1) R("R", 2) "} }", ".resources[1].name: ");
    inf_rate_check_free(check);
}

static void
what_is_not_there_cannot_be_asked_for(void **state)
{
    (void) state;

    open_check("rate_limit_resources { name: 'R' count: 4 device: -1 }"
        " rate_limit_resources { name: 'S' count: 9 device: 3 }");
    finds_nothing(CPU R("R", 4) "} }");
    finds_part(CPU R("R", 5) "} }", "instance_group[0].rate_limiter.resources"
        "[0].count: Resource count for \"R\" is limited to 4 which will"
        " prevent scheduling of one or more model instances, the minimum"
        " required count is 5");
    finds_part(CPU R("S", 1) "} }", "is limited to 0");     /* device 0      */
    finds_nothing(GPU("gpus: 3") R("S", 9) "} }");
    finds_part(GPU("gpus: [ 3, 4 ]") R("S", 9) "} }", "is limited to 0");
    finds_nothing(GPU("") R("S", 9) R("R", 4) "} }");
    finds_part(GPU("") R("S", 10) "} }", "is limited to 9");
    finds_part("instance_group { rate_limiter { " R("T", 1) "} }",
        "is limited to 0");
    finds_nothing("instance_group { kind: KIND_CPU passive: true rate_limiter"
        " { " R("T", 1) "} }");
    inf_rate_check_free(check);
}

static void
a_resource_is_of_one_kind_over_all_models(void **state)
{
    (void) state;

    open_check("");
    finds_nothing(CPU R("R", 4) "} }");
    finds_part(CPU "resources { name: 'R' global: true count: 1 } } }",
        "instance_group[0].rate_limiter.resources[0].global: Resource \"R\" is"
        " present as both global and device-specific resource");
    finds_nothing(CPU "resources { name: 'G' global: true count: 1 } } }");
    finds_part(GPU("gpus: 1") R("G", 1) "} }", ".resources[0].global: ");
    finds_part(CPU R("N", 1) "} }" CPU "resources { name: 'N' global: true"
        " count: 1 } } }", "instance_group[1].rate_limiter: Resource \"N\" is"
        " present as both");
    inf_rate_check_free(check);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_makes_no_sense_is_named_by_its_key),
        cmocka_unit_test(what_is_not_there_cannot_be_asked_for),
        cmocka_unit_test(a_resource_is_of_one_kind_over_all_models)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
