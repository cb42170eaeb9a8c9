#include "core/sched/rate_limiter.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Turns that a returning instance may be behind the others. */
#define RATE_CREDIT 8u

/* Reviews in a row, without a return of what it lacks, at which resources are
   kept for an instance; where executions call other models and where they are
   not known to. */
#define RATE_REVIEWS_CALLS  2u
#define RATE_REVIEWS       60u

typedef struct {
    inf_link_t  link;           /* in l->resources                           */
    char       *name;
    bool        global;
    int32_t     device;         /* 0 if global                               */
    uint64_t    copies;
    uint64_t    used;           /* may exceed copies after an unload         */
    uint64_t    returns;        /* number of releases                        */
    uint64_t    instances;      /* number of instances that need it          */
    uint64_t    time;           /* latest start of an execution with it      */
    inf_link_t  users;          /* rate_use_t: of each class with this need  */
} rate_resource_t;

typedef struct {
    inf_link_t        link;     /* in resource->users                        */
    inf_rate_class_t *cls;
    rate_resource_t  *resource;
    uint64_t          count;
} rate_use_t;

/* Instances with equal needs and priority: if the first cannot run, none
   can. */
struct inf_rate_class_s {
    inf_link_t  link;           /* in l->classes                             */
    inf_link_t  candidate;      /* in l->candidates                          */
    inf_link_t  asking;         /* by start, then by asked                   */
    uint32_t    instances;
    uint32_t    priority;
    uint64_t    passed;         /* executions of others that delayed it since
                                   its last grant                            */
    bool        late;           /* passed too often                          */
    uint64_t    seen;           /* the round that counted it                 */
    size_t      use_count;
    rate_use_t  uses[];
};

struct inf_rate_limiter_s {
    inf_link_t           resources;
    inf_link_t           classes;
    inf_link_t           candidates;    /* classes affected by an event      */
    uint64_t             questions;
    uint64_t             rounds;
    uint32_t             late;          /* number of late classes            */
    bool                 calls;         /* executions call other models      */
    inf_rate_resource_t *given;         /* configured; names are copies      */
    size_t               given_count;
};

static inf_err_t *check_need(const inf_rate_limiter_t *l, int32_t device,
    const inf_rate_need_t *needs, size_t at, const char **field);
static inf_err_t *check_kind(const inf_rate_limiter_t *l,
    const inf_rate_need_t *needs, size_t at, const char **field);
static bool given_copies(const inf_rate_limiter_t *l, const char *name,
    bool global, int32_t device, uint64_t *copies);
static inf_err_t *class_get(inf_rate_limiter_t *l, int32_t device,
    uint32_t priority, const inf_rate_need_t *needs, size_t count,
    inf_rate_class_t **out);
static bool class_is(const inf_rate_class_t *c, int32_t device,
    uint32_t priority, const inf_rate_need_t *needs, size_t count);
static inf_err_t *class_new(inf_rate_limiter_t *l, int32_t device,
    uint32_t priority, const inf_rate_need_t *needs, size_t count,
    inf_rate_class_t **out);
static void class_free(inf_rate_limiter_t *l, inf_rate_class_t *c);
static inf_err_t *resource_get(inf_rate_limiter_t *l, const char *name,
    bool global, int32_t device, rate_resource_t **out);
static rate_resource_t *resource_find(const inf_rate_limiter_t *l,
    const char *name, bool global, int32_t device);
static void resource_count(const inf_rate_limiter_t *l, rate_resource_t *r);
static void resource_free(rate_resource_t *r);
static uint64_t resource_left(const rate_resource_t *r);
static uint64_t returns_of(const inf_rate_class_t *c);
static uint64_t time_of(const inf_rate_class_t *c);
static void consider(inf_rate_limiter_t *l, inf_rate_class_t *c);
static void consider_rivals(inf_rate_limiter_t *l, const inf_rate_class_t *c);
static inf_rate_instance_t *first_of(const inf_rate_class_t *c);
static uint64_t phase_of(const inf_rate_class_t *c);
static bool goes_before(const inf_rate_class_t *a, const inf_rate_class_t *b);
static bool may_go(const inf_rate_limiter_t *l, const inf_rate_class_t *c);
static bool is_free(const inf_rate_class_t *c);
static bool delays(const rate_use_t *use, const rate_use_t *other);
static void grant(inf_rate_limiter_t *l, inf_rate_class_t *c);
static void count_passed(inf_rate_limiter_t *l, const inf_rate_class_t *c);
static void pass(inf_rate_limiter_t *l, inf_rate_class_t *c);
static void forget_passed(inf_rate_limiter_t *l, inf_rate_class_t *c);

inf_err_t *
inf_rate_limiter_new(const inf_rate_resource_t *resources, size_t count,
    inf_rate_limiter_t **out)
{
    inf_rate_limiter_t *l = calloc(1, sizeof(*l));
    if (l == NULL) {
        return inf_err_nomem();
    }

    inf_link_init(&l->resources);
    inf_link_init(&l->classes);
    inf_link_init(&l->candidates);
    l->given = calloc(count + 1, sizeof(*l->given));
    if (l->given == NULL) {
        inf_rate_limiter_free(l);
        return inf_err_nomem();
    }

    for (size_t i = 0; i < count; i++) {
        char *name = strdup(resources[i].name);
        if (name == NULL) {
            inf_rate_limiter_free(l);
            return inf_err_nomem();
        }
        l->given[l->given_count] = resources[i];
        l->given[l->given_count++].name = name;
    }

    *out = l;
    return NULL;
}

void
inf_rate_limiter_free(inf_rate_limiter_t *l)
{
    if (l == NULL) {
        return;
    }

    assert(inf_list_empty(&l->classes));
    for (size_t i = 0; i < l->given_count; i++) {
        free((char *) l->given[i].name);
    }
    free(l->given);
    free(l);
}

inf_err_t *
inf_rate_limiter_check(const inf_rate_limiter_t *l, int32_t device,
    const inf_rate_need_t *needs, size_t count, size_t *at,
    const char **field)
{
    const char *what = NULL;
    inf_err_t *err = NULL;
    size_t k;

    for (k = 0; k < count; k++) {
        err = check_need(l, device, needs, k, &what);
        if (err != NULL) {
            break;
        }
    }

    if (at != NULL) {
        *at = k;
    }
    if (field != NULL) {
        *field = what;
    }
    return err;
}

inf_err_t *
inf_rate_limiter_add(inf_rate_limiter_t *l, inf_rate_instance_t *i,
    int32_t device, uint32_t priority, const inf_rate_need_t *needs,
    size_t count)
{
    priority = priority == 0 ? 1 : priority < INF_RATE_PRIORITY_MAX ? priority
        : INF_RATE_PRIORITY_MAX;

    inf_err_t *err = inf_rate_limiter_check(l, device, needs, count, NULL,
        NULL);
    if (err == NULL) {
        err = class_get(l, device, priority, needs, count, &i->cls);
    }
    if (err != NULL) {
        return err;
    }

    inf_link_init(&i->link);
    i->state = INF_RATE_IDLE;
    i->cls->instances++;
    for (size_t k = 0; k < count; k++) {
        i->cls->uses[k].resource->instances++;
    }
    consider_rivals(l, i->cls);     /* there may be more copies              */
    return NULL;
}

void
inf_rate_limiter_remove(inf_rate_limiter_t *l, inf_rate_instance_t *i)
{
    inf_rate_class_t *c = i->cls;

    assert(i->state != INF_RATE_GRANTED);
    inf_rate_limiter_withdraw(l, i);
    i->cls = NULL;
    for (size_t k = 0; k < c->use_count; k++) {
        c->uses[k].resource->instances--;
    }
    if (--c->instances == 0) {
        class_free(l, c);
    }
}

void
inf_rate_limiter_ask(inf_rate_limiter_t *l, inf_rate_instance_t *i, bool again)
{
    inf_rate_class_t *c = i->cls;
    uint64_t floor = time_of(c);

    if (again) {
        uint64_t credit = (uint64_t) RATE_CREDIT * c->priority;
        floor = floor > credit ? floor - credit : 0;
    }

    assert(i->state == INF_RATE_IDLE);
    i->state = INF_RATE_ASKING;
    i->reviews = 0;
    i->asked = ++l->questions;
    i->start = i->finish > floor ? i->finish : floor;

    /* behind those already asking, unless it has used less */
    inf_link_t *at = &c->asking;
    while (at->prev != &c->asking && inf_link_entry(at->prev,
            inf_rate_instance_t, link)->start > i->start)
    {
        at = at->prev;
    }
    inf_link_insert(at, &i->link);
    consider(l, c);
}

void
inf_rate_limiter_expect_calls(inf_rate_limiter_t *l)
{
    l->calls = true;
}

void
inf_rate_limiter_review(inf_rate_limiter_t *l, inf_rate_instance_t *i)
{
    bool late = i->state == INF_RATE_ASKING && i->cls->late;
    uint64_t returns = returns_of(i->cls);

    if (returns != i->returns) {
        i->returns = returns;
        i->reviews = 0;
    }
    i->reviews = late ? i->reviews + 1 : 0;
    if (i->reviews >= (l->calls ? RATE_REVIEWS_CALLS : RATE_REVIEWS)) {
        forget_passed(l, i->cls);
        consider_rivals(l, i->cls);
        i->reviews = 0;
    }
}

/* Releases of what the class lacks; while it is late, each brings its turn
   nearer. */
static uint64_t
returns_of(const inf_rate_class_t *c)
{
    uint64_t returns = 0;

    for (size_t k = 0; k < c->use_count; k++) {
        const rate_resource_t *r = c->uses[k].resource;
        returns += resource_left(r) < c->uses[k].count ? r->returns : 0;
    }
    return returns;
}

void
inf_rate_limiter_withdraw(inf_rate_limiter_t *l, inf_rate_instance_t *i)
{
    if (i->state != INF_RATE_ASKING) {
        return;
    }

    /* resources kept for it are available to others */
    inf_link_remove(&i->link);
    i->state = INF_RATE_IDLE;
    if (inf_list_empty(&i->cls->asking)) {
        forget_passed(l, i->cls);
    }
    consider(l, i->cls);
    consider_rivals(l, i->cls);
}

void
inf_rate_limiter_release(inf_rate_limiter_t *l, inf_rate_instance_t *i,
    bool executed)
{
    inf_rate_class_t *c = i->cls;

    assert(i->state == INF_RATE_GRANTED);
    i->state = INF_RATE_IDLE;
    if (executed) {
        i->finish = i->start + c->priority;
        i->turns++;
    }

    for (size_t k = 0; k < c->use_count; k++) {
        c->uses[k].resource->returns++;
        c->uses[k].resource->used -= c->uses[k].count;
    }
    consider_rivals(l, c);
}

inf_rate_instance_t *
inf_rate_limiter_next(inf_rate_limiter_t *l)
{
    inf_rate_class_t *best = NULL;

    for (inf_link_t *k = l->candidates.next; k != &l->candidates; ) {
        inf_rate_class_t *c = inf_link_entry(k, inf_rate_class_t, candidate);
        k = k->next;

        if (inf_list_empty(&c->asking) || !may_go(l, c)) {
            inf_link_remove(&c->candidate);
        } else if (best == NULL || goes_before(c, best)) {
            best = c;
        }
    }

    if (best == NULL) {
        return NULL;
    }

    inf_rate_instance_t *i = first_of(best);
    grant(l, best);
    return i;
}

void
inf_rate_limiter_each(const inf_rate_limiter_t *l, inf_rate_resource_fn fn,
    void *userp)
{
    for (const inf_link_t *link = l->resources.next; link != &l->resources;
        link = link->next)
    {
        const rate_resource_t *r = inf_link_entry(link, rate_resource_t, link);
        fn(userp, r->name, r->global, r->device, r->copies, r->used);
    }
}

uint64_t
inf_rate_limiter_copies(const inf_rate_limiter_t *l, const char *name,
    bool global, int32_t device)
{
    const rate_resource_t *r = resource_find(l, name, global, device);
    return r != NULL ? r->copies : 0;
}

uint64_t
inf_rate_limiter_used(const inf_rate_limiter_t *l, const char *name,
    bool global, int32_t device)
{
    const rate_resource_t *r = resource_find(l, name, global, device);
    return r != NULL ? r->used : 0;
}

static inf_err_t *
check_need(const inf_rate_limiter_t *l, int32_t device,
    const inf_rate_need_t *needs, size_t at, const char **field)
{
    const inf_rate_need_t *n = &needs[at];
    uint64_t copies;

    inf_err_t *err = check_kind(l, needs, at, field);
    if (err != NULL) {
        return err;
    }

    if (given_copies(l, n->name, n->global, device, &copies)
        && copies < n->count)
    {
        *field = "count";
        return inf_err_new(INF_ERR_INVALID_ARG, "Resource count for"
            " \"%s\" is limited to %llu which will prevent scheduling of"
            " one or more model instances, the minimum required count is"
            " %llu", n->name, (unsigned long long) copies,
            (unsigned long long) n->count);
    }

    return NULL;
}

/* Checks that all instances use a name as the same kind, and each names it
   once. */
static inf_err_t *
check_kind(const inf_rate_limiter_t *l, const inf_rate_need_t *needs,
    size_t at, const char **field)
{
    const inf_rate_need_t *n = &needs[at];
    bool both = false;

    *field = n->name[0] != '\0' && n->count == 0 ? "count" : "name";
    if (n->name[0] == '\0' || n->count == 0) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "rate_limiter.resources \"%s\": %s", n->name,
            n->name[0] == '\0' ? "name must not be empty"
            : "count must be at least 1");
    }

    for (size_t k = 0; k < at; k++) {
        if (strcmp(needs[k].name, n->name) != 0) {
            continue;
        }
        if (needs[k].global == n->global) {
            return inf_err_new(INF_ERR_INVALID_ARG, "rate_limiter.resources"
                " \"%s\": named more than once", n->name);
        }
        both = true;
    }

    for (inf_link_t *k = l->resources.next; k != &l->resources; k = k->next) {
        const rate_resource_t *r = inf_link_entry(k, rate_resource_t, link);
        both = both || (r->global != n->global
            && strcmp(r->name, n->name) == 0);
    }

    *field = "global";
    return !both ? NULL : inf_err_new(INF_ERR_INVALID_ARG, "Resource \"%s\" is"
        " present as both global and device-specific resource in the model"
        " configuration.", n->name);
}

/* The configured copies; false: nothing is configured. */
static bool
given_copies(const inf_rate_limiter_t *l, const char *name, bool global,
    int32_t device, uint64_t *copies)
{
    *copies = 0;

    for (size_t i = 0; i < l->given_count; i++) {
        const inf_rate_resource_t *g = &l->given[i];
        if (strcmp(g->name, name) != 0 || (!global && g->device != device
            && g->device != INF_RATE_EVERY_DEVICE
            && device != INF_RATE_ANY_DEVICE))
        {
            continue;
        }

        /* of repeated ones for a device the smallest counts */
        uint64_t least = g->count;
        for (size_t k = 0; k < l->given_count; k++) {
            const inf_rate_resource_t *h = &l->given[k];
            if (h->device == g->device && h->count < least
                && strcmp(h->name, name) == 0)
            {
                least = h->count;
            }
        }
        *copies = least > *copies ? least : *copies;
    }

    return l->given_count > 0;
}

static inf_err_t *
class_get(inf_rate_limiter_t *l, int32_t device, uint32_t priority,
    const inf_rate_need_t *needs, size_t count, inf_rate_class_t **out)
{
    for (inf_link_t *k = l->classes.next; k != &l->classes; k = k->next) {
        inf_rate_class_t *c = inf_link_entry(k, inf_rate_class_t, link);
        if (class_is(c, device, priority, needs, count)) {
            *out = c;
            return NULL;
        }
    }

    return class_new(l, device, priority, needs, count, out);
}

static bool
class_is(const inf_rate_class_t *c, int32_t device, uint32_t priority,
    const inf_rate_need_t *needs, size_t count)
{
    if (c->priority != priority || c->use_count != count) {
        return false;
    }

    for (size_t k = 0; k < count; k++) {
        const rate_resource_t *r = c->uses[k].resource;
        if (c->uses[k].count != needs[k].count
            || r->global != needs[k].global
            || (!r->global && r->device != device)
            || strcmp(r->name, needs[k].name) != 0)
        {
            return false;
        }
    }

    return true;
}

static inf_err_t *
class_new(inf_rate_limiter_t *l, int32_t device, uint32_t priority,
    const inf_rate_need_t *needs, size_t count, inf_rate_class_t **out)
{
    inf_rate_class_t *c = calloc(1, sizeof(*c) + count * sizeof(c->uses[0]));
    if (c == NULL) {
        return inf_err_nomem();
    }

    inf_link_init(&c->candidate);
    inf_link_init(&c->asking);
    c->priority = priority;
    inf_list_push_back(&l->classes, &c->link);

    for (size_t k = 0; k < count; k++) {
        rate_use_t *use = &c->uses[k];

        inf_err_t *err = resource_get(l, needs[k].name, needs[k].global,
            device, &use->resource);
        if (err != NULL) {
            class_free(l, c);
            return err;
        }

        use->cls = c;
        use->count = needs[k].count;
        inf_list_push_back(&use->resource->users, &use->link);
        c->use_count++;
        resource_count(l, use->resource);
    }

    *out = c;
    return NULL;
}

static void
class_free(inf_rate_limiter_t *l, inf_rate_class_t *c)
{
    inf_link_remove(&c->link);
    inf_link_remove(&c->candidate);

    for (size_t k = 0; k < c->use_count; k++) {
        rate_resource_t *r = c->uses[k].resource;

        inf_link_remove(&c->uses[k].link);
        if (inf_list_empty(&r->users)) {
            resource_free(r);
        } else {
            resource_count(l, r);
        }
    }

    free(c);
}

static inf_err_t *
resource_get(inf_rate_limiter_t *l, const char *name, bool global,
    int32_t device, rate_resource_t **out)
{
    *out = resource_find(l, name, global, device);
    if (*out != NULL) {
        return NULL;
    }

    rate_resource_t *r = calloc(1, sizeof(*r));
    char *copy = strdup(name);
    if (r == NULL || copy == NULL) {
        free(r);
        free(copy);
        return inf_err_nomem();
    }

    r->name = copy;
    r->global = global;
    r->device = global ? 0 : device;
    inf_link_init(&r->users);
    inf_list_push_back(&l->resources, &r->link);
    *out = r;
    return NULL;
}

static rate_resource_t *
resource_find(const inf_rate_limiter_t *l, const char *name, bool global,
    int32_t device)
{
    for (inf_link_t *k = l->resources.next; k != &l->resources; k = k->next) {
        rate_resource_t *r = inf_link_entry(k, rate_resource_t, link);
        if (r->global == global && (global || r->device == device)
            && strcmp(r->name, name) == 0)
        {
            return r;
        }
    }

    return NULL;
}

static void
resource_count(const inf_rate_limiter_t *l, rate_resource_t *r)
{
    if (given_copies(l, r->name, r->global, r->device, &r->copies)) {
        return;
    }

    for (inf_link_t *k = r->users.next; k != &r->users; k = k->next) {
        const rate_use_t *use = inf_link_entry(k, rate_use_t, link);
        r->copies = use->count > r->copies ? use->count : r->copies;
    }
}

static void
resource_free(rate_resource_t *r)
{
    inf_link_remove(&r->link);
    free(r->name);
    free(r);
}

static uint64_t
resource_left(const rate_resource_t *r)
{
    return r->used < r->copies ? r->copies - r->used : 0;
}

/* The virtual time of the class's competitors. */
static uint64_t
time_of(const inf_rate_class_t *c)
{
    uint64_t time = c->use_count > 0 ? c->uses[0].resource->time : 0;

    for (size_t k = 1; k < c->use_count; k++) {
        uint64_t other = c->uses[k].resource->time;
        time = other < time ? other : time;
    }

    return time;
}

static void
consider(inf_rate_limiter_t *l, inf_rate_class_t *c)
{
    if (inf_list_empty(&c->candidate) && !inf_list_empty(&c->asking)) {
        inf_list_push_back(&l->candidates, &c->candidate);
    }
}

/* Makes all classes candidates that share a need with c, including c. */
static void
consider_rivals(inf_rate_limiter_t *l, const inf_rate_class_t *c)
{
    for (size_t k = 0; k < c->use_count; k++) {
        inf_link_t *users = &c->uses[k].resource->users;
        for (inf_link_t *u = users->next; u != users; u = u->next) {
            consider(l, inf_link_entry(u, rate_use_t, link)->cls);
        }
    }
}

/* The first asking instance of the class. */
static inf_rate_instance_t *
first_of(const inf_rate_class_t *c)
{
    return inf_link_entry(c->asking.next, inf_rate_instance_t, link);
}

/* A turn is due at its end, p turns of priority 1 behind its start: of two that
   begin together priority 2 goes after two turns of priority 1.  Bounded, so
   that the first turn of a very low priority comes soon. */
static uint64_t
phase_of(const inf_rate_class_t *c)
{
    return c->priority < RATE_CREDIT ? c->priority : RATE_CREDIT;
}

static bool
goes_before(const inf_rate_class_t *a, const inf_rate_class_t *b)
{
    const inf_rate_instance_t *x = first_of(a);
    const inf_rate_instance_t *y = first_of(b);

    if (a->late != b->late) {
        return a->late;
    }
    uint64_t mine = x->start + phase_of(a), theirs = y->start + phase_of(b);
    if (mine != theirs) {
        return mine < theirs;
    }
    if (a->priority != b->priority) {
        return a->priority < b->priority;
    }
    return x->asked < y->asked;
}

/* Whether the class's resources are free and no late class needs them. */
static bool
may_go(const inf_rate_limiter_t *l, const inf_rate_class_t *c)
{
    if (!is_free(c)) {
        return false;
    }

    for (size_t k = 0; l->late > 0 && k < c->use_count; k++) {
        const inf_link_t *users = &c->uses[k].resource->users;
        for (const inf_link_t *u = users->next; u != users; u = u->next) {
            const rate_use_t *other = inf_link_entry(u, rate_use_t, link);
            if (other->cls != c && other->cls->late
                && delays(&c->uses[k], other) && goes_before(other->cls, c))
            {
                return false;
            }
        }
    }

    return true;
}

static bool
is_free(const inf_rate_class_t *c)
{
    for (size_t k = 0; k < c->use_count; k++) {
        if (resource_left(c->uses[k].resource) < c->uses[k].count) {
            return false;
        }
    }

    return true;
}

/* Whether both use one resource, and use leaves too little for other. */
static bool
delays(const rate_use_t *use, const rate_use_t *other)
{
    uint64_t left = resource_left(use->resource);
    return left < use->count || left - use->count < other->count;
}

static void
grant(inf_rate_limiter_t *l, inf_rate_class_t *c)
{
    inf_rate_instance_t *i = first_of(c);
    bool late = c->late;

    count_passed(l, c);
    forget_passed(l, c);
    inf_link_remove(&i->link);
    i->state = INF_RATE_GRANTED;

    for (size_t k = 0; k < c->use_count; k++) {
        rate_resource_t *r = c->uses[k].resource;
        r->used += c->uses[k].count;
        r->time = i->start > r->time ? i->start : r->time;
    }

    if (late) {
        consider_rivals(l, c);      /* nothing is kept for it any more       */
    }
}

/* Counts a passed execution for each asking class that now lacks a resource. */
static void
count_passed(inf_rate_limiter_t *l, const inf_rate_class_t *c)
{
    l->rounds++;
    for (size_t k = 0; k < c->use_count; k++) {
        inf_link_t *users = &c->uses[k].resource->users;
        for (inf_link_t *u = users->next; u != users; u = u->next) {
            const rate_use_t *other = inf_link_entry(u, rate_use_t, link);
            inf_rate_class_t *o = other->cls;
            if (o != c && o->seen != l->rounds && !inf_list_empty(&o->asking)
                && delays(&c->uses[k], other))
            {
                o->seen = l->rounds;
                pass(l, o);
            }
        }
    }
}

/*
 * A class is late when as many executions have passed as its rivals could get
 * by their priorities: at most p + 1 between two of priority p.
 */
static void
pass(inf_rate_limiter_t *l, inf_rate_class_t *c)
{
    uint64_t rivals = 0;

    if (c->late || ++c->passed <= c->priority) {
        return;
    }

    for (size_t k = 0; k < c->use_count; k++) {
        uint64_t n = c->uses[k].resource->instances;
        rivals = n > rivals ? n : rivals;
    }

    if (c->passed >= ((uint64_t) c->priority + 1) * rivals) {
        c->late = true;
        l->late++;
        consider(l, c);
    }
}

static void
forget_passed(inf_rate_limiter_t *l, inf_rate_class_t *c)
{
    l->late -= c->late;
    c->late = false;
    c->passed = 0;
}
