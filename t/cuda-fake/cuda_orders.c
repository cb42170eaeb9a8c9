/* cuda_orders.c - what a test tells the driver: by calls, or for a whole
   process by the environment. */

#include "inside.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void clear_rules_locked(void);

EXPORTED void
fake_cuda_reset(void)
{
    pthread_mutex_lock(&fake_lock);
    fake.count = 2;
    fake.counted = true;
    fake.waits = 0;
    fake.calls = 0;
    fake.failures = 0;
    fake.fail_at = 0;
    fake.fail_function = NULL;
    fake.wrong = 0;
    fake.pageable = 0;
    memset(fake.functions, 0, sizeof(fake.functions));
    memset(fake.kernels, 0, sizeof(fake.kernels));
    memset(fake.moved, 0, sizeof(fake.moved));
    memset(fake.copies, 0, sizeof(fake.copies));
    clear_rules_locked();
    for (int i = 0; i < DEVICES; i++) {
        fake.devices[i].occupied = 0;
        fake.devices[i].broken = INF_CU_SUCCESS;
        memset(fake.devices[i].reaches, 0, sizeof(fake.devices[i].reaches));
    }
    pthread_mutex_unlock(&fake_lock);
}

static void
clear_rules_locked(void)
{
    fake.rule_count = 0;
    fake.hang[0] = '\0';
    fake.fault[0] = '\0';
    pthread_cond_broadcast(&fake_changed);
}

EXPORTED void
fake_cuda_set_devices(int count)
{
    assert(count >= 0 && count <= DEVICES);
    fake.counted = true;
    fake.count = count;
}

EXPORTED void
fake_cuda_fail_nth(uint64_t n, int rc)
{
    pthread_mutex_lock(&fake_lock);
    fake.fail_at = n == 0 ? 0 : fake.calls + n;
    fake.fail_rc = rc;
    pthread_mutex_unlock(&fake_lock);
}

EXPORTED void
fake_cuda_fail(const char *function, int rc)
{
    fake.fail_function = function;
    fake.fail_function_rc = rc;
}

/* ---- rules --------------------------------------------------------------- */

static void
add_rules_locked(const char *text)
{
    while (*text != '\0' && *text != '\n') {
        rule_t r = { .device = -1 };
        int used = 0;

        if (sscanf(text, "%127[A-Za-z0-9_]:%d:%lu%n", r.function, &r.code,
                &r.calls, &used) < 3 || r.calls == 0
            || fake.rule_count == RULES)
        {
            fprintf(stderr, "fake driver: no rule: %s\n", text);
            abort();
        }
        text += used;
        if (sscanf(text, ":%d%n", &r.device, &used) == 1) {
            text += used;
        }
        text += *text == ',';
        fake.rules[fake.rule_count++] = r;
    }
}

EXPORTED void
fake_cuda_fail_rules(const char *rules)
{
    pthread_mutex_lock(&fake_lock);
    add_rules_locked(rules);
    pthread_mutex_unlock(&fake_lock);
}

/* A file of rules is in the place of those before from the moment it is there,
   and is gone then; an empty line: there are none. */
static void
take_rules_locked(void)
{
    char text[1024];
    FILE *f = fopen(fake.rules_path, "r");

    if (f == NULL) {
        return;
    }
    size_t len = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    if (len > 0 && unlink(fake.rules_path) == 0) {
        text[len] = '\0';
        fake.rule_count = 0;
        add_rules_locked(text);
    }
}

static result_t
rule_locked(const char *function, int device)
{
    for (size_t i = 0; i < fake.rule_count; i++) {
        rule_t *r = &fake.rules[i];
        if (r->calls > 0 && strcmp(r->function, function) == 0
            && (r->device < 0 || r->device == device) && --r->calls == 0)
        {
            if (device >= 0) {
                break_locked(device, r->code);
            }
            return r->code;
        }
    }
    return INF_CU_SUCCESS;
}

/* ---- devices that are broken --------------------------------------------- */

/* Errors after which a context answers nothing else. */
static bool
is_sticky(result_t rc)
{
    switch (rc) {
    case 701:               /* too many resources for a launch               */
    case 704:               /* about peers                                   */
    case 705:
    case 708:               /* about contexts                                */
    case 709:
    case 711:               /* about pinned memory                           */
    case 712:
    case 713:
        return false;
    default:
        return (rc >= 700 && rc < 800) || rc == UNKNOWN;
    }
}

void
break_locked(int device, result_t rc)
{
    device_t *d = &fake.devices[device];

    if (is_sticky(rc) && d->broken == INF_CU_SUCCESS) {
        d->broken = rc;
    }
}

EXPORTED void
fake_cuda_break(int device, int rc)
{
    pthread_mutex_lock(&fake_lock);
    fake.devices[device].broken = rc;
    pthread_mutex_unlock(&fake_lock);
}

/* The file has the numbers of the devices that are lost. */
static void
lose_locked(void)
{
    char text[64];
    FILE *f = fopen(fake.lost_path, "r");

    if (f == NULL) {
        return;
    }
    size_t len = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    for (size_t i = 0; i < len; i++) {
        if (text[i] >= '0' && text[i] < '0' + DEVICES) {
            break_locked(text[i] - '0', UNKNOWN);
        }
    }
}

/* Calls that a broken context does not concern. */
static bool
is_exempt(const char *function)
{
    static const char *const names[] = {
        "cuDeviceGetCount", "cuDeviceGet", "cuDeviceCanAccessPeer",
        "cuDriverGetVersion", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2",
        "cuDeviceGetName", "cuDeviceGetUuid", "cuDeviceGetAttribute"
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        if (strcmp(names[i], function) == 0) {
            return true;
        }
    }
    return false;
}

result_t
ordered_locked(const char *function, int device)
{
    result_t rc = INF_CU_SUCCESS;

    if (fake.rules_path != NULL) {
        take_rules_locked();
    }
    if (fake.lost_path != NULL) {
        lose_locked();
    }

    if (fake.rule_count > 0) {
        rc = rule_locked(function, device);
    }
    if (fake.calls == fake.fail_at) {
        rc = fake.fail_rc;
    }
    if (fake.fail_function != NULL
        && strcmp(fake.fail_function, function) == 0)
    {
        rc = fake.fail_function_rc;
    }
    if (rc == INF_CU_SUCCESS && device >= 0 && !is_exempt(function)) {
        rc = fake.devices[device].broken;
    }
    return rc;
}

/* ---- kernels ------------------------------------------------------------- */

EXPORTED void
fake_cuda_hang(const char *kernel)
{
    pthread_mutex_lock(&fake_lock);
    snprintf(fake.hang, sizeof(fake.hang), "%s", kernel != NULL ? kernel : "");
    pthread_cond_broadcast(&fake_changed);
    pthread_mutex_unlock(&fake_lock);
}

EXPORTED void
fake_cuda_fault_in(const char *kernel)
{
    pthread_mutex_lock(&fake_lock);
    snprintf(fake.fault, sizeof(fake.fault), "%s",
        kernel != NULL ? kernel : "");
    pthread_mutex_unlock(&fake_lock);
}

/* ---- the environment ----------------------------------------------------- */

/* FAKE_CUDA_CAPABILITY: "8.0,9.0,..." */
static void
read_capabilities_locked(void)
{
    const char *text = getenv("FAKE_CUDA_CAPABILITY");

    for (int i = 0; i < DEVICES; i++) {
        device_t *d = &fake.devices[i];
        d->major = i == 0 ? 8 : i == 1 ? 5 : 9;
        d->minor = i == 1 ? 2 : 0;
        if (text != NULL && sscanf(text, "%d.%d", &d->major, &d->minor) == 2) {
            text = strchr(text, ',');
            text = text != NULL ? text + 1 : NULL;
        }
    }
}

static void
read_name(const char *variable, char *name)
{
    const char *text = getenv(variable);

    if (text != NULL) {
        snprintf(name, NAME, "%s", text);
    }
}

void
read_environment_locked(void)
{
    if (fake.configured) {
        return;
    }
    fake.configured = true;
    read_capabilities_locked();

    const char *text = getenv("FAKE_CUDA_DEVICES");
    if (!fake.counted && text != NULL && isdigit((unsigned char) *text)
        && atoi(text) <= DEVICES)
    {
        fake.count = atoi(text);
    }
    text = getenv("FAKE_CUDA_FAIL");
    if (text != NULL) {
        add_rules_locked(text);
    }
    read_name("FAKE_CUDA_HANG", fake.hang);
    read_name("FAKE_CUDA_FAULT", fake.fault);
    fake.rules_path = getenv("FAKE_CUDA_FAIL_FILE");
    fake.lost_path = getenv("FAKE_CUDA_LOST");
    fake.counts_path = getenv("FAKE_CUDA_COUNTS");
}
