/* The walker of backend trees beside treelite's own predictor (GTIL) and
   XGBoost's in-place predict: the same model, the same rows, one thread, taken
   in turns; times are of the processor, so that other programs' do not count.

     bench_trees MODEL.json FEATURES libtreelite.so libxgboost.so ROWS... */

#include "trees/postprocess.h"
#include "trees/treelite.h"
#include "trees/walk.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TURNS_MOST 2000
#define TIME_NS    1500000000u          /* for all turns of a size           */

typedef void (*predict_t)(uint64_t rows);

static struct {
    trees_forest_t *forest;
    float          *rows;
    float          *sums;               /* ours                              */
    float          *gtil;
    const float    *xgboost;

    void           *model;              /* treelite's                        */
    void           *config;
    int (*gtil_predict)(void *, const void *, const char *, uint64_t, void *,
        void *);

    void           *booster;
    int (*dense)(void *, const char *, const char *, void *,
        const uint64_t **, uint64_t *, const float **);
} bench;

static void
stop(const char *what)
{
    fprintf(stderr, "bench_trees: %s\n", what);
    exit(1);
}

static void *
function(void *library, const char *name)
{
    void *f = library == NULL ? NULL : dlsym(library, name);
    if (f == NULL) {
        stop(dlerror());
    }

    return f;
}

static void
open_ours(const char *path, const char *library)
{
    treelite_functions_t f;

    TRITONSERVER_Error *err = treelite_open(&f, library, ".");
    if (err == NULL) {
        err = treelite_load(&f, path, TREES_XGBOOST_JSON, false,
            &bench.forest);
    }
    if (err != NULL) {
        stop(TRITONSERVER_ErrorMessage(err));
    }
}

static void
open_gtil(const char *path, const char *library)
{
    void *so = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    int (*load)(const char *, const char *, void **) = (int (*)(const char *,
        const char *, void **)) function(so, "TreeliteLoadXGBoostModelJSON");
    int (*configure)(const char *, void **) = (int (*)(const char *,
        void **)) function(so, "TreeliteGTILParseConfig");

    bench.gtil_predict = (int (*)(void *, const void *, const char *,
        uint64_t, void *, void *)) function(so, "TreeliteGTILPredict");
    if (load(path, "{}", &bench.model) != 0 || configure(
        "{\"predict_type\": \"default\", \"nthread\": 1}", &bench.config)
        != 0)
    {
        stop("treelite does not read the model");
    }
}

static void
open_xgboost(const char *path, const char *library)
{
    void *so = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    int (*create)(const void *, uint64_t, void **) = (int (*)(const void *,
        uint64_t, void **)) function(so, "XGBoosterCreate");
    int (*load)(void *, const char *) = (int (*)(void *, const char *))
        function(so, "XGBoosterLoadModel");
    int (*set)(void *, const char *, const char *) = (int (*)(void *,
        const char *, const char *)) function(so, "XGBoosterSetParam");

    bench.dense = (int (*)(void *, const char *, const char *, void *,
        const uint64_t **, uint64_t *, const float **)) function(so,
        "XGBoosterPredictFromDense");
    if (create(NULL, 0, &bench.booster) != 0
        || load(bench.booster, path) != 0
        || set(bench.booster, "nthread", "1") != 0)
    {
        stop("XGBoost does not read the model");
    }
}

static void
predict_ours(uint64_t rows)
{
    trees_walk_sums(bench.forest, bench.rows, rows, bench.sums);
    trees_postprocess(bench.forest, rows, bench.sums);
}

static void
predict_gtil(uint64_t rows)
{
    if (bench.gtil_predict(bench.model, bench.rows, "float32", rows,
        bench.gtil, bench.config) != 0)
    {
        stop("treelite does not predict");
    }
}

static void
predict_xgboost(uint64_t rows)
{
    char values[256];
    const uint64_t *shape;
    uint64_t dims;

    snprintf(values, sizeof(values), "{\"data\": [%" PRIuPTR ", true],"
        " \"shape\": [%" PRIu64 ", %" PRIu32 "], \"typestr\": \"<f4\","
        " \"version\": 3}", (uintptr_t) bench.rows, rows,
        bench.forest->features);
    if (bench.dense(bench.booster, values, "{\"type\": 0, \"training\": false,"
        " \"iteration_begin\": 0, \"iteration_end\": 0, \"strict_shape\":"
        " false, \"missing\": NaN, \"cache_id\": 0}", NULL, &shape, &dims,
        &bench.xgboost) != 0)
    {
        stop("XGBoost does not predict");
    }
}

static uint64_t
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;

    return x < y ? -1 : x > y;
}

/* All three have to say the same before they are compared. */
static void
compare(uint64_t rows)
{
    for (uint64_t i = 0; i < rows; i++) {
        float off = fabsf(bench.sums[i] - bench.xgboost[i]);

        if (bench.sums[i] != bench.gtil[i]
            || !(off <= 1e-4f * (1 + fabsf(bench.sums[i]))))
        {
            stop("the predictions differ");
        }
    }
}

static void
measure(uint64_t rows)
{
    static const predict_t all[] = {
        predict_ours, predict_gtil, predict_xgboost
    };
    static double us[3][TURNS_MOST];
    double median[3];
    int turns = 0;

    for (uint64_t begin = now_ns(); turns < TURNS_MOST
         && (turns < 5 || now_ns() - begin < TIME_NS); turns++)
    {
        for (int k = 0; k < 3; k++) {
            uint64_t start = now_ns();

            all[k](rows);
            us[k][turns] = (double) (now_ns() - start) / 1000;
        }
    }

    compare(rows);
    for (int k = 0; k < 3; k++) {
        qsort(us[k], (size_t) turns, sizeof(us[k][0]), by_value);
        median[k] = us[k][turns / 2];
    }
    printf("%5" PRIu64 " rows: ours %8.1f us, GTIL %9.1f us (%.1f times),"
        " XGBoost %8.1f us (%.2f times); medians of %d\n", rows, median[0],
        median[1], median[1] / median[0], median[2], median[2] / median[0],
        turns);
}

int
main(int argc, char **argv)
{
    uint64_t most = 1;

    if (argc < 6) {
        stop("usage: MODEL FEATURES libtreelite.so libxgboost.so ROWS...");
    }

    open_ours(argv[1], argv[3]);
    open_gtil(argv[1], argv[3]);
    open_xgboost(argv[1], argv[4]);
    for (int i = 5; i < argc; i++) {
        uint64_t rows = strtoull(argv[i], NULL, 10);
        most = rows > most ? rows : most;
    }

    bench.rows = calloc(most * bench.forest->features, sizeof(float));
    bench.sums = calloc(most * bench.forest->columns, sizeof(float));
    bench.gtil = calloc(most * bench.forest->columns, sizeof(float));
    if (bench.rows == NULL || bench.sums == NULL || bench.gtil == NULL
        || bench.forest->columns != 1 || bench.forest->doubles
        || (uint64_t) atoi(argv[2]) != bench.forest->features)
    {
        stop("no memory, or a model of another kind");
    }
    for (uint64_t i = 0; i < most * bench.forest->features; i++) {
        bench.rows[i] = (float) rand() / (float) RAND_MAX;
    }

    for (int i = 5; i < argc; i++) {
        measure(strtoull(argv[i], NULL, 10));
    }
    return 0;
}
