/* files of every kind with random damage, which treelite reads after the
   backend's checks: none ends the process or keeps it busy */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/trees/treelite.h"

#define FILES     "t/fuzz/corpus/trees_file/"
#define LARGEST   (1 << 16)             /* bytes of a file                   */
#define PROCESSES 4                     /* for each file                     */
#define DAMAGES   500                   /* in each process                   */
#define SECONDS   60                    /* of a processor, for each process  */
#define MEMORY    (4ull << 30)

static treelite_functions_t treelite;

typedef struct {
    const char    *name;
    trees_format_t format;
} file_t;

static const file_t files[] = {
    { "json_categories", TREES_XGBOOST_JSON },
    { "json_dart", TREES_XGBOOST_JSON },
    { "lgb_categories", TREES_LIGHTGBM },
    { "skl", TREES_CHECKPOINT },
    { "ubj_categories", TREES_XGBOOST_UBJ },
    { "ubj_vectors", TREES_XGBOOST_UBJ },
    { "version3", TREES_CHECKPOINT },
    { "xgb", TREES_CHECKPOINT },
    { "xgboost", TREES_XGBOOST }
};

static size_t
read_file(const char *name, unsigned char *out)
{
    char path[256];

    (void) snprintf(path, sizeof(path), FILES "%s", name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t len = fread(out, 1, LARGEST, f);
    assert_true(len > 0 && len < LARGEST);
    (void) fclose(f);
    return len;
}

static size_t
below(size_t n)
{
    return (size_t) rand() % n;
}

/* A byte, a digit, a number that is a limit, bytes from elsewhere, or bytes
   that are missing. */
static size_t
damage(unsigned char *data, size_t len)
{
    static const int32_t limits[] = {
        0, -1, 1, INT32_MAX, INT32_MIN, 1 << 24, 1 << 30, 255
    };
    size_t at = below(len - 8), from = below(len - 8), n = 1 + below(8);
    int32_t limit = limits[below(sizeof(limits) / sizeof(limits[0]))];

    switch (below(6)) {

    case 0:
        data[at] = (unsigned char) below(256);
        break;

    case 1:
        data[at] ^= (unsigned char) (1u << below(8));
        break;

    case 2:
        for (size_t i = at; i < len; i++) {
            if (data[i] >= '0' && data[i] <= '9') {
                data[i] = (unsigned char) ("0123456789-"[below(11)]);
                break;
            }
        }
        break;

    case 3:
        limit = below(2) == 0 ? limit : (int32_t) __builtin_bswap32(
            (uint32_t) limit);
        memcpy(data + at, &limit, sizeof(limit));
        break;

    case 4:
        memmove(data + at, data + from, n);
        break;

    default:
        memmove(data + at, data + at + n, len - at - n);
        len -= n;
        break;
    }

    return len;
}

/* Loads the file with damage after damage; the process ends with how many of
   them gave a model. */
static void
load_damaged(const file_t *file, unsigned seed, const char *path)
{
    static unsigned char whole[LARGEST], data[LARGEST];
    const struct rlimit seconds = { SECONDS, SECONDS };
    size_t len = read_file(file->name, whole);
    int loaded = 0;

    static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL };
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        (void) signal(faults[i], SIG_DFL);      /* cmocka goes on after one  */
    }

    srand(seed);
    (void) setrlimit(RLIMIT_CPU, &seconds);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    /* a sanitizer has reserved more than that */
    const struct rlimit memory = { MEMORY, MEMORY };
    (void) setrlimit(RLIMIT_AS, &memory);
#endif
    for (int i = 0; i < DAMAGES; i++) {
        trees_forest_t *forest = NULL;
        size_t left = len;

        memcpy(data, whole, len);
        for (size_t n = 1 + below(3); n > 0; n--) {
            left = damage(data, left);
        }

        FILE *f = fopen(path, "wb");
        if (f == NULL || fwrite(data, 1, left, f) != left || fclose(f) != 0) {
            _exit(200);
        }
        TRITONSERVER_Error *err = treelite_load(&treelite, path, file->format,
            below(2) == 0, &forest);
        if (err == NULL) {
            loaded++;
            trees_forest_free(forest);
        } else {
            TRITONSERVER_ErrorDelete(err);
        }
    }

    _exit(loaded < 100 ? loaded : 100);
}

static void
damaged_files_end_no_process(void **state)
{
    int loaded = 0;

    (void) state;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        for (unsigned seed = 0; seed < PROCESSES; seed++) {
            char path[] = "/tmp/trees_damage.XXXXXX";
            int status = 0;

            int fd = mkstemp(path);
            assert_true(fd != -1);
            (void) close(fd);
            pid_t pid = fork();
            assert_true(pid != -1);
            if (pid == 0) {
                load_damaged(&files[i], seed, path);
            }
            assert_int_equal(waitpid(pid, &status, 0), pid);
            if (!WIFEXITED(status) || WEXITSTATUS(status) > 100) {
                fail_msg("%s, seed %u: status %x; the file is %s",
                    files[i].name, seed, (unsigned) status, path);
            }
            loaded += WEXITSTATUS(status);
            (void) unlink(path);
        }
    }

    /* much of it changes a number of the model, and no more */
    assert_true(loaded > 100);
}

static void
whole_files_load(void **state)
{
    (void) state;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        trees_forest_t *forest = NULL;
        char path[256];

        (void) snprintf(path, sizeof(path), FILES "%s", files[i].name);
        TRITONSERVER_Error *err = treelite_load(&treelite, path,
            files[i].format, false, &forest);
        if (err != NULL) {
            fail_msg("%s", TRITONSERVER_ErrorMessage(err));
        }
        trees_forest_free(forest);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_files_load),
        cmocka_unit_test(damaged_files_end_no_process)
    };

    TRITONSERVER_Error *err = treelite_open(&treelite, NULL, TREELITE_LIB);
    if (err != NULL) {
        print_message("skipped: %s\n", TRITONSERVER_ErrorMessage(err));
        TRITONSERVER_ErrorDelete(err);
        return 0;
    }

    return cmocka_run_group_tests(tests, NULL, NULL);
}
