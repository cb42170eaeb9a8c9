/* The S3 client and the answers of a service in this process. */

#include "temp_tree.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "core/storage/access_token.h"
#include "core/storage/object_cache.h"
#include "core/storage/object_client.h"
#include "core/storage/storage.h"

#define ANSWERS_MAX 3

#define OK(body)    "HTTP/1.1 200 OK\r\nETag: \"e\"\r\n" body
#define TROUBLE     "HTTP/1.1 503 Slow Down\r\n"
#define FORBIDDEN   "HTTP/1.1 403 Forbidden\r\n"
#define MISSING     "HTTP/1.1 404 Not Found\r\n"
#define ENDLESS     "Endless"               /* in a head: another body       */

/* One request a connection; the last answer is given again and again. */
typedef struct {
    int             fd;
    pthread_t       thread;
    pthread_mutex_t lock;                   /* guards what follows           */
    const char     *answers[ANSWERS_MAX];   /* status, headers, then a body  */
    unsigned        asked;
    char            last[4096];             /* request                       */
} service_t;

static service_t service = { .lock = PTHREAD_MUTEX_INITIALIZER };
static inf_object_client_t *client;
static char address[64];

/* The next file is removed just before it is linked to. */
static bool removing;

int
link(const char *from, const char *to)
{
    if (removing) {
        removing = false;
        assert_int_equal(unlink(from), 0);
    }
    return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

static size_t
next_answer(const char *request, char *text, size_t cap)
{
    pthread_mutex_lock(&service.lock);
    snprintf(service.last, sizeof(service.last), "%s", request);
    unsigned i = service.asked++;
    while (i > 0 && (i >= ANSWERS_MAX || service.answers[i] == NULL)) {
        i--;
    }
    const char *head = service.answers[i];
    pthread_mutex_unlock(&service.lock);

    const char *body = strrchr(head, '\r') + 2;
    return (size_t) snprintf(text, cap, "%.*sContent-Length: %zu\r\n"
        "Connection: close\r\n\r\n%s", (int) (body - head), head,
        strlen(body), body);
}

/* An error's body without end: until the client has enough of it. */
static void
answer_for_ever(int fd)
{
    static const char head[] = FORBIDDEN "\r\n";
    char piece[4096];

    memset(piece, 'x', sizeof(piece));
    ssize_t n = send(fd, head, sizeof(head) - 1, MSG_NOSIGNAL);
    while (n > 0) {
        n = send(fd, piece, sizeof(piece), MSG_NOSIGNAL);
    }
}

static void
answer(int fd)
{
    char request[sizeof(service.last)] = "";
    char text[1024];
    size_t len = 0;
    ssize_t n = 1;

    while (n > 0 && strstr(request, "\r\n\r\n") == NULL) {
        n = read(fd, request + len, sizeof(request) - 1 - len);
        len += n > 0 ? (size_t) n : 0;
        request[len] = '\0';
    }
    if (n > 0) {
        size_t size = next_answer(request, text, sizeof(text));
        if (strstr(text, ENDLESS) != NULL) {
            answer_for_ever(fd);
            return;
        }
        assert_int_equal(write(fd, text, size), size);
    }
}

static void *
serve(void *arg)
{
    int fd;

    (void) arg;
    while ((fd = accept(service.fd, NULL, NULL)) >= 0) {
        answer(fd);
        close(fd);
    }
    return NULL;
}

static int
setup(void **state)
{
    (void) state;
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) }
    };
    socklen_t len = sizeof(at);

    setenv("no_proxy", "*", 1);
    setenv("AWS_ACCESS_KEY_ID", "first", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
    unsetenv("AWS_SESSION_TOKEN");
    unsetenv("TRITON_CLOUD_CREDENTIAL_PATH");
    service.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(service.fd, (struct sockaddr *) &at, len), 0);
    assert_int_equal(listen(service.fd, 16), 0);
    assert_int_equal(getsockname(service.fd, (struct sockaddr *) &at, &len),
        0);
    assert_int_equal(pthread_create(&service.thread, NULL, serve, NULL), 0);
    snprintf(address, sizeof(address), "s3://127.0.0.1:%u/bucket",
        (unsigned) ntohs(at.sin_port));
    assert_ok(inf_object_client_new(address, &client));
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    inf_object_client_free(client);
    shutdown(service.fd, SHUT_RDWR);
    pthread_join(service.thread, NULL);
    close(service.fd);
    return 0;
}

/* It gives these from now on, in this order; NULL: the one before again. */
static void
tell(const char *first, const char *second, const char *third)
{
    pthread_mutex_lock(&service.lock);
    service.answers[0] = first;
    service.answers[1] = second;
    service.answers[2] = third;
    service.asked = 0;
    pthread_mutex_unlock(&service.lock);
}

static unsigned
asked(void)
{
    pthread_mutex_lock(&service.lock);
    unsigned n = service.asked;
    pthread_mutex_unlock(&service.lock);
    return n;
}

static bool
last_request_has(const char *text)
{
    pthread_mutex_lock(&service.lock);
    bool has = strstr(service.last, text) != NULL;
    pthread_mutex_unlock(&service.lock);
    return has;
}

static inf_err_t *
read_one(size_t limit, char **data)
{
    size_t len;

    *data = NULL;
    inf_err_t *err = inf_object_client_read(client, "a b/c", limit, data, &len);
    if (err == NULL) {
        assert_int_equal(len, strlen(*data));
    }
    return err;
}

static void
expect_failure(size_t limit, inf_err_code_t code, const char *text,
    unsigned times)
{
    char *data;

    assert_error(read_one(limit, &data), code, text);
    assert_int_equal(asked(), times);
}

static inf_err_t *
fetch_into(const char *path)
{
    char key[] = "k", etag[] = "e";
    const inf_object_t object = { .key = key, .etag = etag, .size = 5 };
    const inf_object_fetch_t file = { .object = &object, .path = path };

    return inf_object_client_fetch(client, &file, 1);
}

static void
an_object_is_asked_for_once_with_a_signature(void **state)
{
    (void) state;
    char *data;

    tell(OK("bytes"), NULL, NULL);
    assert_ok(read_one(5, &data));
    assert_string_equal(data, "bytes");
    free(data);
    assert_int_equal(asked(), 1);
    assert_true(last_request_has("GET /bucket/a%20b/c HTTP/1.1"));
    assert_true(last_request_has("Credential=first/"));
}

static void
an_error_without_end_is_left(void **state)
{
    (void) state;

    tell(FORBIDDEN ENDLESS ": yes\r\n", NULL, NULL);
    expect_failure(5, INF_ERR_INTERNAL, "HTTP status 403", 2);
}

static void
claims_of_more_bytes_than_any_model_has_cost_nothing(void **state)
{
    (void) state;
    char key[] = "k", etag[] = "e";
    const inf_object_t object = { .key = key, .etag = etag,
        .size = INT64_MAX };
    const inf_object_fetch_t files[] = {
        { .object = &object, .path = "/nowhere" },
        { .object = &object, .path = "/nowhere" }
    };

    tell(MISSING, NULL, NULL);
    assert_error(inf_object_client_fetch(client, files, 2),
        INF_ERR_INVALID_ARG, "'k' have more than 8796093022208 bytes");
    assert_int_equal(asked(), 0);
}

static void
trouble_that_passes_is_not_noticed(void **state)
{
    (void) state;
    char *data;

    tell(TROUBLE, OK("bytes"), NULL);
    assert_ok(read_one(5, &data));
    assert_string_equal(data, "bytes");
    free(data);
    assert_int_equal(asked(), 2);
}

static void
what_another_try_cannot_mend_is_not_tried_again(void **state)
{
    (void) state;
    tell(MISSING, NULL, NULL);
    expect_failure(5, INF_ERR_NOT_FOUND, "cannot read 'a b/c': HTTP status"
        " 404", 1);
}

static void
an_object_beyond_the_limit_is_told_at_once(void **state)
{
    (void) state;
    tell(OK("bytes"), NULL, NULL);
    expect_failure(4, INF_ERR_INVALID_ARG, "cannot read 'a b/c': more than 4"
        " bytes", 1);
}

/* /dev/full is a disk without room. */
static void
a_full_disk_is_told_at_once(void **state)
{
    (void) state;

    tell(OK("bytes"), NULL, NULL);
    assert_error(fetch_into("/dev/full"), INF_ERR_INTERNAL,
        "cannot fetch 'k': cannot write it to disk: No space left on device");
    assert_int_equal(asked(), 1);
    assert_error(fetch_into("/nonexistent/file"), INF_ERR_INTERNAL,
        "cannot fetch 'k': cannot open /nonexistent/file: No such file");
    assert_int_equal(asked(), 1);
}

static void
an_object_that_was_replaced_is_told_at_once(void **state)
{
    (void) state;
    char *tree = tree_new();
    tree_file(tree, "file", "");
    const char *file = tree_path(tree, "file");

    tell("HTTP/1.1 200 OK\r\nETag: \"other\"\r\nbytes", NULL, NULL);
    assert_error(fetch_into(file), INF_ERR_INVALID_ARG,
        "the object changed while it was fetched: ETag \"other\", not \"e\"");
    assert_int_equal(asked(), 1);

    tell(OK("byte"), NULL, NULL);           /* one is missing                */
    assert_error(fetch_into(file), INF_ERR_INVALID_ARG, "4 bytes came, not 5");
    tell(OK("bytes"), NULL, NULL);
    assert_ok(fetch_into(file));
    tree_free(tree);
}

/* A service of tokens is none of objects. */
static void
a_token_that_is_not_found_is_no_missing_object(void **state)
{
    (void) state;
    const _Atomic bool cancelled = false;
    inf_access_token_t token;
    unsigned status;
    char url[80];

    snprintf(url, sizeof(url), "http://%s/token", address + strlen("s3://"));
    const inf_token_request_t ask = {
        .scheme = "s3://", .url = url, .link_local = true,
        .cancelled = &cancelled
    };
    tell(MISSING, NULL, NULL);
    assert_error(inf_access_token_ask(&ask, &status, &token),
        INF_ERR_INTERNAL, "/bucket/token: HTTP status 404");
    assert_int_equal(status, 404);
    tell(TROUBLE, NULL, NULL);
    assert_error(inf_access_token_ask(&ask, &status, &token),
        INF_ERR_UNAVAILABLE, "/bucket/token: HTTP status 503");
    assert_null(token.bearer);
}

/* Once, and only what can be renewed. */
static void
keys_that_were_renewed_are_read_anew(void **state)
{
    (void) state;
    char *data;

    tell(OK("bytes"), FORBIDDEN, OK("other"));
    assert_ok(read_one(5, &data));
    free(data);
    setenv("AWS_ACCESS_KEY_ID", "second", 1);
    assert_ok(read_one(5, &data));
    assert_string_equal(data, "other");
    free(data);
    assert_int_equal(asked(), 3);
    assert_true(last_request_has("Credential=second/"));
}

static void
keys_that_are_wrong_are_tried_twice(void **state)
{
    (void) state;
    tell(FORBIDDEN, NULL, NULL);
    expect_failure(5, INF_ERR_INTERNAL, "HTTP status 403", 2);
}

static void
who_was_told_to_stop_asks_nothing(void **state)
{
    (void) state;
    tell(OK("bytes"), NULL, NULL);
    inf_object_client_cancel(client);
    expect_failure(5, INF_ERR_UNAVAILABLE, "it is not asked any more", 0);
}

/* Another model's release trims the cache after the object was seen there. */
static void
an_object_that_leaves_the_cache_meanwhile_is_fetched_again(void **state)
{
    (void) state;
    static const char listing[] = OK("<ListBucketResult><Contents><Key>m/data"
        "</Key><ETag>e</ETag><Size>5</Size></Contents></ListBucketResult>");
    char *tree = tree_new();
    inf_storage_t *st;
    char *root, *local;
    char path[4200];

    setenv("TRITON_AWS_MOUNT_DIRECTORY", tree, 1);
    assert_ok(inf_storage_open(address, &st, &root));
    snprintf(path, sizeof(path), "%s/m", root);
    tell(listing, OK("bytes"), NULL);
    assert_ok(inf_storage_localize(st, path, &local));
    inf_storage_release(st, local);
    assert_int_equal(asked(), 2);

    removing = true;
    tell(listing, listing, OK("bytes"));
    assert_ok(inf_storage_localize(st, path, &local));
    assert_false(removing);
    assert_int_equal(asked(), 3);
    snprintf(path, sizeof(path), "%s/data", local);
    assert_int_equal(access(path, R_OK), 0);
    inf_storage_release(st, local);
    inf_storage_close(st);
    free(root);
    unsetenv("TRITON_AWS_MOUNT_DIRECTORY");
    tree_free(tree);
}

static void
a_model_may_have_more_files_than_a_process_may_open(void **state)
{
    (void) state;
    enum { FILES = 100 };
    static char keys[FILES][16];
    char etag[] = "e";
    inf_object_t items[FILES];
    const inf_object_listing_t listing = { .items = items, .count = FILES };
    char *tree = tree_new();
    inf_object_cache_t *cache;
    char *local = NULL;
    struct rlimit old;
    char path[4200];

    for (unsigned i = 0; i < FILES; i++) {
        snprintf(keys[i], sizeof(keys[i]), "m/%u", i);
        items[i] = (inf_object_t) { .key = keys[i], .etag = etag, .size = 5 };
    }
    setenv("TRITON_AWS_MOUNT_DIRECTORY", tree, 1);
    assert_ok(inf_object_cache_new(&inf_service_s3, &cache));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    const struct rlimit few = { 64, old.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    tell(OK("bytes"), NULL, NULL);
    inf_err_t *err = inf_object_cache_directory(cache, client, &listing, 2,
        &local);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);

    assert_ok(err);
    assert_int_equal(asked(), FILES);
    snprintf(path, sizeof(path), "%s/%u", local, FILES - 1);
    assert_int_equal(access(path, R_OK), 0);
    inf_object_cache_release(cache, local);
    inf_object_cache_free(cache);
    unsetenv("TRITON_AWS_MOUNT_DIRECTORY");
    tree_free(tree);
}

int
main(void)
{
    alarm(540);
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(an_object_is_asked_for_once_with_a_signature),
        T(an_error_without_end_is_left),
        T(claims_of_more_bytes_than_any_model_has_cost_nothing),
        T(trouble_that_passes_is_not_noticed),
        T(what_another_try_cannot_mend_is_not_tried_again),
        T(an_object_beyond_the_limit_is_told_at_once),
        T(a_full_disk_is_told_at_once),
        T(an_object_that_was_replaced_is_told_at_once),
        T(an_object_that_leaves_the_cache_meanwhile_is_fetched_again),
        T(a_model_may_have_more_files_than_a_process_may_open),
        T(a_token_that_is_not_found_is_no_missing_object),
        T(keys_that_were_renewed_are_read_anew),
        T(keys_that_are_wrong_are_tried_twice),
        T(who_was_told_to_stop_asks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
