/*
 * Counters in a shared zone, to which all workers and the supervisor add; nginx
 * keeps the zone across reloads.
 */

#include "ngx_module/ngx_http_inference_counters.h"

#include "core/base/clock.h"


typedef struct {
    const char  *name;
    const char  *help;
    size_t       offset;
} ngx_http_inference_counter_family_t;


static unsigned long long ngx_http_inference_counter_value(
    ngx_http_inference_counter_family_t *f);
static void ngx_http_inference_gauges_text(inf_buf_t *out);
static void ngx_http_inference_gauge_text(inf_buf_t *out, const char *name,
    const char *help, uint64_t value);
static ngx_int_t ngx_http_inference_init_zone(ngx_shm_zone_t *zone,
    void *data);


static ngx_http_inference_counters_t  *ngx_http_inference_zone;
static ngx_uint_t  ngx_http_inference_turn;     /* an event handler runs     */


static ngx_http_inference_counter_family_t
    ngx_http_inference_counter_families[] =
{
    { "requests", "inferences that workers gave to the core",
      offsetof(ngx_http_inference_counters_t, requests) },

    { "failed", "requests that workers answered with an error",
      offsetof(ngx_http_inference_counters_t, failed) },

    { "cancelled", "requests that workers gave up before they were answered",
      offsetof(ngx_http_inference_counters_t, cancelled) },

    { "retried", "inferences that went to the next core when theirs had ended",
      offsetof(ngx_http_inference_counters_t, retried) },

    { "arena_full", "requests rejected because the request arena was full",
      offsetof(ngx_http_inference_counters_t, arena_full) },

    { "ring_full", "requests rejected because too many were in flight",
      offsetof(ngx_http_inference_counters_t, ring_full) },

    { "core_starts", "cores that were started",
      offsetof(ngx_http_inference_counters_t, core_starts) },

    { "core_deaths", "cores that died",
      offsetof(ngx_http_inference_counters_t, core_deaths) },

    { "core_hangs", "cores that hung and were ended for it",
      offsetof(ngx_http_inference_counters_t, core_hangs) },

    { "suspects", "inferences that went to the next core to execute alone",
      offsetof(ngx_http_inference_counters_t, suspects) },

    { "out_of_tries", "inferences that failed because their cores ended",
      offsetof(ngx_http_inference_counters_t, out_of_tries) },

    { "log_dropped", "lines of the core's log that were lost",
      offsetof(ngx_http_inference_counters_t, log_dropped) },

    { "slices", "turns after which a request's work went on in a later one",
      offsetof(ngx_http_inference_counters_t, slices) },

    { NULL, NULL, 0 }
};


ngx_http_inference_counters_t *
ngx_http_inference_counters(void)
{
    static ngx_http_inference_counters_t  nowhere;

    return ngx_http_inference_zone != NULL ? ngx_http_inference_zone
                                           : &nowhere;
}


void
ngx_http_inference_counters_text(inf_buf_t *out)
{
    ngx_uint_t                            i;
    ngx_http_inference_counter_family_t  *f;

    for (i = 0; ngx_http_inference_counter_families[i].name; i++) {
        f = &ngx_http_inference_counter_families[i];

        inf_buf_printf(out, "# HELP nginx_inference_%s_total %s\n"
                       "# TYPE nginx_inference_%s_total counter\n"
                       "nginx_inference_%s_total %llu\n",
                       f->name, f->help, f->name, f->name,
                       ngx_http_inference_counter_value(f));
    }

    inf_buf_printf(out,
                   "# HELP nginx_inference_longest_turn_us "
                   "longest time that one request held up a worker's "
                   "event loop\n"
                   "# TYPE nginx_inference_longest_turn_us gauge\n"
                   "nginx_inference_longest_turn_us %.3f\n",
                   (double) ngx_http_inference_counters()->longest_ns / 1e3);

    ngx_http_inference_gauges_text(out);
}


void
ngx_http_inference_counters_json(inf_buf_t *out)
{
    ngx_uint_t                            i;
    ngx_http_inference_counter_family_t  *f;

    inf_buf_putc(out, '{');

    for (i = 0; ngx_http_inference_counter_families[i].name; i++) {
        f = &ngx_http_inference_counter_families[i];

        inf_buf_printf(out, "%s\"%s\":%llu", i ? "," : "", f->name,
                       ngx_http_inference_counter_value(f));
    }

    inf_buf_putc(out, '}');
}


static unsigned long long
ngx_http_inference_counter_value(ngx_http_inference_counter_family_t *f)
{
    return *(ngx_atomic_t *) ((u_char *) ngx_http_inference_counters()
                              + f->offset);
}


/* Sums the gauges of all workers, except those of processes that no longer
   exist. */

void
ngx_http_inference_sum_gauges(ngx_http_inference_gauges_t *sum)
{
    ngx_uint_t                    i;
    ngx_http_inference_gauges_t  *of;

    ngx_memzero(sum, sizeof(ngx_http_inference_gauges_t));

    for (i = 0; i < NGX_MAX_PROCESSES; i++) {

        of = &ngx_http_inference_counters()->gauges[i];

        if (of->used + of->reserved + of->slots == 0
            || (kill((pid_t) of->pid, 0) == -1 && ngx_errno == ESRCH))
        {
            continue;
        }

        sum->used += of->used;
        sum->reserved += of->reserved;
        sum->slots += of->slots;
    }

    /* the call itself takes one slot */

    if (sum->slots) {
        sum->slots--;
    }
}


static void
ngx_http_inference_gauges_text(inf_buf_t *out)
{
    ngx_http_inference_gauges_t  sum;

    ngx_http_inference_sum_gauges(&sum);

    ngx_http_inference_gauge_text(out, "request_arena_used_bytes",
                                  "bytes of requests held in the workers' "
                                  "arenas", sum.used);

    ngx_http_inference_gauge_text(out, "request_arena_reserved_bytes",
                                  "bytes announced by requests and not "
                                  "received yet", sum.reserved);

    ngx_http_inference_gauge_text(out, "slots_taken",
                                  "other requests and calls that workers "
                                  "have in the core", sum.slots);
}


static void
ngx_http_inference_gauge_text(inf_buf_t *out, const char *name,
    const char *help, uint64_t value)
{
    inf_buf_printf(out, "# HELP nginx_inference_%s %s\n"
                   "# TYPE nginx_inference_%s gauge\n"
                   "nginx_inference_%s %llu\n",
                   name, help, name, name, (unsigned long long) value);
}


uint64_t
ngx_http_inference_turn_begin(void)
{
    if (ngx_http_inference_turn) {
        return 0;
    }

    ngx_http_inference_turn = 1;

    return inf_clock_ns();
}


void
ngx_http_inference_turn_end(uint64_t began_ns)
{
    ngx_atomic_t       *longest;
    ngx_atomic_uint_t   ns, old;

    if (began_ns == 0) {
        return;
    }

    ngx_http_inference_turn = 0;

    ns = (ngx_atomic_uint_t) (inf_clock_ns() - began_ns);
    longest = &ngx_http_inference_counters()->longest_ns;

    do {
        old = *longest;
    } while (ns > old && !ngx_atomic_cmp_set(longest, old, ns));
}


void
ngx_http_inference_set_gauges(uint64_t used, uint64_t reserved, uint32_t slots)
{
    ngx_http_inference_gauges_t  *own;

    own = &ngx_http_inference_counters()->gauges[ngx_process_slot];

    own->pid = ngx_pid;
    own->used = used;
    own->reserved = reserved;
    own->slots = slots;
}


void
ngx_http_inference_set_slots(uint32_t slots)
{
    ngx_http_inference_counters()->gauges[ngx_process_slot].slots = slots;
}


ngx_int_t
ngx_http_inference_add_zone(ngx_conf_t *cf,
    ngx_http_inference_main_conf_t *imcf)
{
    ngx_str_t  name;

    ngx_str_set(&name, "inference");

    /* eight pages are the minimum of a zone */

    imcf->shm_zone = ngx_shared_memory_add(cf, &name,
                          8 * ngx_pagesize
                          + ngx_align(sizeof(ngx_http_inference_counters_t),
                                      ngx_pagesize),
                          &ngx_http_inference_module);
    if (imcf->shm_zone == NULL) {
        return NGX_ERROR;
    }

    imcf->shm_zone->init = ngx_http_inference_init_zone;

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_init_zone(ngx_shm_zone_t *zone, void *data)
{
    ngx_slab_pool_t                *shpool;
    ngx_http_inference_counters_t  *counters;

    shpool = (ngx_slab_pool_t *) zone->shm.addr;
    counters = data;

    if (counters == NULL && zone->shm.exists) {
        counters = shpool->data;
    }

    if (counters == NULL) {
        counters = ngx_slab_calloc(shpool,
                                   sizeof(ngx_http_inference_counters_t));
        if (counters == NULL) {
            return NGX_ERROR;
        }

        shpool->data = counters;
    }

    zone->data = counters;
    ngx_http_inference_zone = counters;

    return NGX_OK;
}
