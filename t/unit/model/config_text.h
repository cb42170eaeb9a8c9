/*
 * config_text.h - configurations for tests, written as text.
 *
 * Owner    The parser frees with inf_message_free.
 * Thread   one.
 * Units    none.
 * Errors   a test fails at once.
 * Route    unit tests only
 */

#ifndef INF_T_MODEL_CONFIG_TEXT_H
#define INF_T_MODEL_CONFIG_TEXT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/base/error.h"
#include "core/model/config_findings.h"
#include "core/model/config_normalize.h"
#include "core/proto/message.h"
#include "core/proto/text_format.h"
#include "model_config.pb-c.h"

static inline Inference__ModelConfig *
config_parse(const char *text)
{
    ProtobufCMessage *msg = NULL;
    inf_err_t *err = inf_text_parse(&inference__model_config__descriptor,
        inf_slice_str(text), "test", &msg);
    if (err != NULL) {
        fail_msg("%s in: %s", inf_err_msg(err), text);
    }

    return (Inference__ModelConfig *) msg;
}

static inline Inference__ModelConfig *
config_parse_normal(const char *text)
{
    Inference__ModelConfig *msg = config_parse(text);
    assert_null(inf_config_normalize(msg));
    return msg;
}

/* err has that code and part in its text.  Frees err. */
static inline void
assert_error(inf_err_t *err, inf_err_code_t code, const char *part)
{
    if (err == NULL) {
        fail_msg("no error, expected: %s", part);
    }

    if (strstr(inf_err_msg(err), part) == NULL) {
        fail_msg("expected \"%s\" in \"%s\"", part, inf_err_msg(err));
    }

    if (inf_err_code(err) != code) {
        fail_msg("code %d, expected %d: %s", (int) inf_err_code(err),
            (int) code, inf_err_msg(err));
    }

    inf_err_free(err);
}

/* The first finding has that code, and part in "<key>: <text>"; part NULL:
   there is none.  Frees the texts. */
static inline void
assert_found(inf_findings_t *f, inf_err_code_t code, const char *part)
{
    if (part == NULL) {
        assert_int_equal(inf_findings_total(f), 0);
    } else {
        assert_true(f->count > 0);
        assert_error(inf_err_new(f->items[0].code, "%s: %s", f->items[0].key,
            f->items[0].text), code, part);
    }
    inf_findings_fini(f);
}

static inline void
assert_ok(inf_err_t *err)
{
    if (err != NULL) {
        fail_msg("unexpected error: %s", inf_err_msg(err));
    }
}

#endif /* INF_T_MODEL_CONFIG_TEXT_H */
