/*
 * core_config_of.h - a configuration of the core from its text.
 *
 * Owner    The caller gets a reference.
 * Thread   any.
 * Units    none.
 * Errors   a test fails at once.
 * Route    unit tests only
 */

#ifndef INF_T_CORE_CONFIG_OF_H
#define INF_T_CORE_CONFIG_OF_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/proto/core_config.h"
#include "core/proto/message.h"
#include "core/proto/text_format.h"

/* Formatted as by printf, at most 16 KiB. */
INF_PRINTF(1, 2)
static inline inf_core_config_t *
core_config_of(const char *format, ...)
{
    char text[16384];
    ProtobufCMessage *m;
    inf_core_config_t *config;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    assert_null(inf_text_parse(&nginx_inference__core_config__descriptor,
        inf_slice_str(text), "test", &m));
    assert_null(inf_core_config_new((NginxInference__CoreConfig *) (void *) m,
        &config));
    inf_message_free(m);
    return config;
}

#endif /* INF_T_CORE_CONFIG_OF_H */
