/*
 * Counters in a shared zone: all workers and the supervisor add to them, and
 * nginx hands the zone on at a reload.
 */

#include "ngx_module/ngx_http_inference.h"


static ngx_int_t ngx_http_inference_init_zone(ngx_shm_zone_t *zone,
    void *data);


static ngx_http_inference_counters_t  *ngx_http_inference_zone;


ngx_http_inference_counters_t *
ngx_http_inference_counters(void)
{
    static ngx_http_inference_counters_t  nowhere;

    return ngx_http_inference_zone != NULL ? ngx_http_inference_zone
                                           : &nowhere;
}


ngx_int_t
ngx_http_inference_add_zone(ngx_conf_t *cf,
    ngx_http_inference_main_conf_t *imcf)
{
    ngx_str_t  name;

    ngx_str_set(&name, "inference");

    /* eight pages are the least that nginx's own zones have */

    imcf->shm_zone = ngx_shared_memory_add(cf, &name, 8 * ngx_pagesize,
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
