#include "core/proto/core_config.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/refs.h"
#include "core/proto/message.h"

static inf_err_t *copy(const NginxInference__CoreConfig *values,
    inf_core_config_t **out);
static inf_err_t *complete(NginxInference__CoreConfig *values);
static void fill_zeros(NginxInference__TraceSettings *trace);
static inf_err_t *check_host_policies(const NginxInference__CoreConfig *c);
static inf_err_t *read_host_policies(inf_core_config_t *c);
static bool option_is_same(const inf_core_option_t *option,
    const inf_core_config_t *a, const inf_core_config_t *b);

inf_err_t *
inf_core_config_new(NginxInference__CoreConfig *values,
    inf_core_config_t **out)
{
    inf_err_t *err = check_host_policies(values);
    if (err != NULL) {
        return err;
    }

    inf_message_mark_set(&values->base);
    return copy(values, out);
}

inf_core_config_t *
inf_core_config_ref(inf_core_config_t *c)
{
    atomic_fetch_add(&c->refs, 1);
    return c;
}

void
inf_core_config_unref(inf_core_config_t *c)
{
    if (c == NULL || !inf_refs_drop(&c->refs)) {
        return;
    }

    free(c->host_settings);
    inf_message_free(c->values != NULL ? &c->values->base : NULL);
    free(c);
}

inf_err_t *
inf_core_config_reload(const inf_core_config_t *now,
    const inf_core_config_t *wanted, inf_core_config_t **out)
{
    inf_core_config_t *old;

    inf_err_t *err = copy(now->values, &old);
    if (err != NULL) {
        return err;
    }
    err = copy(wanted->values, out);
    if (err != NULL) {
        inf_core_config_unref(old);
        return err;
    }

    for (size_t i = 0; i < inf_core_options_count; i++) {
        const inf_core_option_t *o = &inf_core_options[i];
        ProtobufCMessage *from, *to;
        if (o->field == NULL || o->setting != NULL
            || o->reload != INF_RELOAD_CORE)
        {
            continue;
        }
        const ProtobufCFieldDescriptor *f = inf_core_option_field(o,
            old->values, &from);
        inf_core_option_field(o, (*out)->values, &to);
        inf_field_swap(from, to, f);
    }

    inf_core_config_unref(old);
    return NULL;
}

void
inf_core_config_differences(const inf_core_config_t *a,
    const inf_core_config_t *b, inf_option_reload_t reload, char *text,
    size_t cap)
{
    const char *last = "";
    size_t len = 0;

    text[0] = '\0';
    for (size_t i = 0; i < inf_core_options_count; i++) {
        const inf_core_option_t *o = &inf_core_options[i];
        const char *name = o->logged != NULL ? o->logged : o->directive;
        if (o->field == NULL || o->reload != reload || strcmp(name, last) == 0
            || option_is_same(o, a, b))
        {
            continue;
        }

        snprintf(text + len, cap - len, "%s%s", len > 0 ? ", " : "", name);
        len += strlen(text + len);
        last = name;
    }
}

const char *
inf_core_config_setting(const NginxInference__CoreConfig *values,
    const char *backend, const char *key)
{
    const char *found = NULL;

    for (size_t i = 0; i < values->n_backend_settings; i++) {
        const NginxInference__BackendSetting *s = values->backend_settings[i];
        if (strcmp(s->backend, backend) == 0 && strcmp(s->key, key) == 0) {
            found = s->value;
        }
    }
    return found;
}

const ProtobufCFieldDescriptor *
inf_core_option_field(const inf_core_option_t *option,
    NginxInference__CoreConfig *values, ProtobufCMessage **in)
{
    const char *name = option->field;
    const char *dot = strchr(name, '.');

    *in = &values->base;
    if (dot != NULL) {
        const ProtobufCFieldDescriptor *f = inf_field_find(
            values->base.descriptor, inf_slice(name, (size_t) (dot - name)));
        assert(f != NULL);
        *in = (ProtobufCMessage *) (uintptr_t) inf_field_get(&values->base, f,
            0).m;
        name = dot + 1;
    }

    assert(*in != NULL);
    return inf_field_find((*in)->descriptor, inf_slice_str(name));
}

/* Copies values whose has_ flags are set. */
static inf_err_t *
copy(const NginxInference__CoreConfig *values, inf_core_config_t **out)
{
    ProtobufCMessage *m = NULL;
    inf_core_config_t *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return inf_err_nomem();
    }

    atomic_init(&c->refs, 1);
    inf_err_t *err = inf_message_clone(&values->base, &m);
    c->values = (NginxInference__CoreConfig *) (void *) m;
    if (err == NULL) {
        err = complete(c->values);
    }
    if (err == NULL) {
        fill_zeros(c->values->trace);
        err = read_host_policies(c);
    }
    if (err != NULL) {
        inf_core_config_unref(c);
        return err;
    }

    *out = c;
    return NULL;
}

/* Creates missing messages, with the defaults of their fields. */
static inf_err_t *
complete(NginxInference__CoreConfig *values)
{
    const ProtobufCMessageDescriptor *desc = values->base.descriptor;

    for (unsigned i = 0; i < desc->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &desc->fields[i];
        ProtobufCMessage *made;
        if (f->type != PROTOBUF_C_TYPE_MESSAGE || inf_field_is_repeated(f)
            || inf_field_count(&values->base, f) > 0)
        {
            continue;
        }
        inf_err_t *err = inf_field_put_message(&values->base, f, &made);
        if (err != NULL) {
            return err;
        }
    }
    return NULL;
}

/* A queue or batch of no traces would bring none away. */
static void
fill_zeros(NginxInference__TraceSettings *trace)
{
    static const NginxInference__TraceSettings standard =
        NGINX_INFERENCE__TRACE_SETTINGS__INIT;

    if (trace->bsp_max_queue_size == 0) {
        trace->bsp_max_queue_size = standard.bsp_max_queue_size;
    }
    if (trace->bsp_schedule_delay_ms == 0) {
        trace->bsp_schedule_delay_ms = standard.bsp_schedule_delay_ms;
    }
    if (trace->bsp_max_export_batch_size == 0) {
        trace->bsp_max_export_batch_size = standard.bsp_max_export_batch_size;
    }
}

/* Checks the host policies, which may come from any source. */
static inf_err_t *
check_host_policies(const NginxInference__CoreConfig *c)
{
    for (size_t i = 0; i < c->n_host_policies; i++) {
        const NginxInference__HostPolicySetting *p = c->host_policies[i];
        inf_err_t *err = inf_host_setting_check(p->key, p->value);
        if (err != NULL) {
            return inf_err_add(err, "host policy '%s'", p->policy);
        }
    }
    return NULL;
}

static inf_err_t *
read_host_policies(inf_core_config_t *c)
{
    size_t count = c->values->n_host_policies;

    c->host_settings = calloc(count + 1, sizeof(*c->host_settings));
    if (c->host_settings == NULL) {
        return inf_err_nomem();
    }

    for (size_t i = 0; i < count; i++) {
        const NginxInference__HostPolicySetting *p =
            c->values->host_policies[i];
        c->host_settings[i] = (inf_host_setting_t) {
            .policy = p->policy, .key = p->key, .value = p->value
        };
    }
    c->host_policies = (inf_host_policies_t) { c->host_settings, count };
    return NULL;
}

static bool
option_is_same(const inf_core_option_t *option, const inf_core_config_t *a,
    const inf_core_config_t *b)
{
    ProtobufCMessage *in_a, *in_b;

    if (option->setting != NULL) {
        const char *x = inf_core_config_setting(a->values, "",
            option->setting);
        const char *y = inf_core_config_setting(b->values, "",
            option->setting);
        return strcmp(x != NULL ? x : "", y != NULL ? y : "") == 0;
    }

    const ProtobufCFieldDescriptor *f = inf_core_option_field(option,
        a->values, &in_a);
    inf_core_option_field(option, b->values, &in_b);
    return inf_field_same(in_a, in_b, f);
}
