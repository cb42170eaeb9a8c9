#include "core/tensor/pool.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define NONE       UINT32_MAX
#define STEP_BITS  3
#define SIZE_LIMIT (UINT64_C(1) << 52)

/* The state of a granule.  A block is described by its first granule; a free
   block is found from the following one by its last granule's foot. */
struct inf_pool_block_s {
    uint32_t size;      /* granules; 0: no block begins here                 */
    uint32_t foot;      /* granules of the free block that ends here, or 0   */
    uint32_t next;      /* free blocks: in the list                          */
    uint32_t prev;      /* likewise; USED: allocated                         */
};

#define USED (UINT32_MAX - 1)

typedef struct {
    uint32_t order;
    uint32_t step;
} list_t;

static list_t list_of(uint32_t granules);
static list_t list_beyond(uint32_t granules);
static uint32_t find_fit(const inf_pool_t *pool, uint32_t granules);
static uint32_t first_from(const inf_pool_t *pool, list_t from);
static void free_insert(inf_pool_t *pool, uint32_t at, uint32_t granules);
static void free_remove(inf_pool_t *pool, uint32_t at);

inf_err_t *
inf_pool_init(inf_pool_t *pool, uint64_t size)
{
    *pool = (inf_pool_t) { 0 };
    if (size < INF_POOL_GRANULE || size > SIZE_LIMIT) {
        return inf_err_new(INF_ERR_INVALID_ARG, "a pool of %llu bytes is not"
            " possible: from %u to 2^52 are", (unsigned long long) size,
            INF_POOL_GRANULE);
    }

    while ((INF_POOL_GRANULE >> 1) >> pool->shift != 0) {
        pool->shift++;
    }
    while (size >> pool->shift > INF_POOL_GRANULES) {
        pool->shift++;
    }
    pool->count = (uint32_t) (size >> pool->shift);

    /* zeroed; entries are only touched where a block begins or ends */
    pool->blocks = calloc(pool->count, sizeof(*pool->blocks));
    if (pool->blocks == NULL) {
        return inf_err_nomem();
    }

    memset(pool->lists, 0xff, sizeof(pool->lists));
    free_insert(pool, 0, pool->count);
    return NULL;
}

void
inf_pool_fini(inf_pool_t *pool)
{
    free(pool->blocks);
    *pool = (inf_pool_t) { 0 };
}

bool
inf_pool_alloc(inf_pool_t *pool, uint64_t size, uint64_t *offset)
{
    if (size > inf_pool_size(pool)) {
        return false;
    }

    uint64_t mask = (UINT64_C(1) << pool->shift) - 1;
    uint32_t granules = (uint32_t) ((size + mask) >> pool->shift);
    granules += granules == 0;

    uint32_t at = find_fit(pool, granules);
    if (at == NONE) {
        return false;
    }

    uint32_t found = pool->blocks[at].size;
    free_remove(pool, at);
    if (found > granules) {
        free_insert(pool, at + granules, found - granules);
    }

    pool->blocks[at].size = granules;
    pool->blocks[at].prev = USED;
    pool->used += (uint64_t) granules << pool->shift;
    *offset = (uint64_t) at << pool->shift;
    return true;
}

/* Frees a block and merges it with free neighbours. */
bool
inf_pool_free(inf_pool_t *pool, uint64_t offset)
{
    uint64_t index = offset >> pool->shift;
    if (index >= pool->count || index << pool->shift != offset
        || pool->blocks[index].size == 0 || pool->blocks[index].prev != USED)
    {
        return false;
    }

    uint32_t at = (uint32_t) index;
    uint32_t granules = pool->blocks[at].size;
    uint32_t behind = at + granules;
    pool->used -= (uint64_t) granules << pool->shift;
    pool->blocks[at].size = 0;

    if (behind < pool->count && pool->blocks[behind].prev != USED) {
        granules += pool->blocks[behind].size;
        free_remove(pool, behind);
    }
    if (at > 0 && pool->blocks[at - 1].foot != 0) {
        uint32_t before = pool->blocks[at - 1].foot;
        at -= before;
        granules += before;
        free_remove(pool, at);
    }

    free_insert(pool, at, granules);
    return true;
}

/* The list of free blocks of this length. */
static list_t
list_of(uint32_t granules)
{
    uint32_t order = 31 - (uint32_t) __builtin_clz(granules);
    uint32_t step = order < STEP_BITS
        ? (granules << (STEP_BITS - order)) & (INF_POOL_STEPS - 1)
        : (granules >> (order - STEP_BITS)) & (INF_POOL_STEPS - 1);

    return (list_t) { order, step };
}

/* The first list whose blocks are all at least that long. */
static list_t
list_beyond(uint32_t granules)
{
    uint32_t order = 31 - (uint32_t) __builtin_clz(granules);
    uint32_t round = order < STEP_BITS ? 0
        : (1u << (order - STEP_BITS)) - 1;

    return list_of(granules + round);
}

/* A good fit in constant time; otherwise a search in the list of similar
   lengths. */
static uint32_t
find_fit(const inf_pool_t *pool, uint32_t granules)
{
    uint32_t at = first_from(pool, list_beyond(granules));
    if (at != NONE) {
        return at;
    }

    list_t l = list_of(granules);
    at = pool->lists[l.order][l.step];
    while (at != NONE && pool->blocks[at].size < granules) {
        at = pool->blocks[at].next;
    }
    return at;
}

static uint32_t
first_from(const inf_pool_t *pool, list_t from)
{
    if (from.order >= INF_POOL_ORDERS) {
        return NONE;
    }

    uint32_t steps = pool->steps[from.order] & (0xffu << from.step);
    if (steps == 0) {
        uint32_t orders = pool->orders & ~((2u << from.order) - 1);
        if (orders == 0) {
            return NONE;
        }
        from.order = (uint32_t) __builtin_ctz(orders);
        steps = pool->steps[from.order];
    }

    return pool->lists[from.order][__builtin_ctz(steps)];
}

static void
free_insert(inf_pool_t *pool, uint32_t at, uint32_t granules)
{
    list_t l = list_of(granules);
    uint32_t first = pool->lists[l.order][l.step];
    inf_pool_block_t *b = &pool->blocks[at];

    b->size = granules;
    b->next = first;
    b->prev = NONE;
    pool->blocks[at + granules - 1].foot = granules;
    if (first != NONE) {
        pool->blocks[first].prev = at;
    }

    pool->lists[l.order][l.step] = at;
    pool->steps[l.order] |= (uint8_t) (1u << l.step);
    pool->orders |= 1u << l.order;
}

static void
free_remove(inf_pool_t *pool, uint32_t at)
{
    inf_pool_block_t *b = &pool->blocks[at];
    list_t l = list_of(b->size);
    assert(b->prev != USED && b->size > 0);

    if (b->next != NONE) {
        pool->blocks[b->next].prev = b->prev;
    }
    if (b->prev != NONE) {
        pool->blocks[b->prev].next = b->next;
    } else {
        pool->lists[l.order][l.step] = b->next;
    }
    if (pool->lists[l.order][l.step] == NONE) {
        pool->steps[l.order] &= (uint8_t) ~(1u << l.step);
        if (pool->steps[l.order] == 0) {
            pool->orders &= ~(1u << l.order);
        }
    }

    pool->blocks[at + b->size - 1].foot = 0;
    b->size = 0;
}
