#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/proto/node_answer.h"

#define OK "HTTP/1.1 200 OK\r\n"
#define REPORT "Endpoint-Load-Metrics: "
#define QUEUE "named_metrics.queue_depth="

static inf_node_answer_state_t
answer_of(const char *text, inf_node_answer_t *out)
{
    return inf_node_answer_read(inf_slice(text, strlen(text)), out);
}

static void
a_queue_is_read(void **state)
{
    (void) state;
    static const struct {
        const char *text;
        uint32_t    queue;
    } cases[] = {
        { OK REPORT "TEXT " QUEUE "0\r\n\r\n", 0 },
        { OK REPORT "TEXT " QUEUE "17\r\n\r\n", 17 },
        { OK REPORT "TEXT " QUEUE "1000000\r\n\r\n", 1000000 },
        { OK "A: b\r\nendpoint-load-metrics:TEXT " QUEUE "3\n\n", 3 },
        { OK REPORT "TEXT cpu_utilization=0.3, " QUEUE "4, rps=1\r\n\r\n", 4 },
        { OK REPORT "TEXT a=1," QUEUE "5\r\n\r\n", 5 }
    };
    inf_node_answer_t a;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(answer_of(cases[i].text, &a),
                         INF_NODE_ANSWER_COMPLETE);
        assert_int_equal(a.status, 200);
        assert_int_equal(a.queue_state, INF_NODE_QUEUE_REPORTED);
        assert_int_equal(a.queue, cases[i].queue);
    }
}

static void
an_impossible_queue_is_invalid(void **state)
{
    (void) state;
    static const char *const texts[] = {
        "TEXT " QUEUE, "TEXT " QUEUE "-1", "TEXT " QUEUE "1000001",
        "TEXT " QUEUE "4294967296", "TEXT " QUEUE "1e3", "TEXT " QUEUE "1.5",
        "TEXT " QUEUE "+1", "TEXT " QUEUE " 1", "TEXT " QUEUE "1;",
        "JSON {\"named_metrics\":{\"queue_depth\":1}}", QUEUE "1", "TEXT"
    };
    inf_node_answer_t a;
    char text[256];

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        text[0] = '\0';
        strcat(strcat(strcat(text, OK REPORT), texts[i]), "\r\n\r\n");
        assert_int_equal(answer_of(text, &a), INF_NODE_ANSWER_COMPLETE);
        assert_int_equal(a.queue_state, INF_NODE_QUEUE_INVALID);
        assert_int_equal(a.report.len, strlen(texts[i]));
    }
}

static void
no_report_says_nothing(void **state)
{
    (void) state;
    static const char *const texts[] = {
        OK "\r\n", OK REPORT "\r\n\r\n", OK REPORT "TEXT a=1\r\n\r\n",
        OK REPORT "TEXT x" QUEUE "1\r\n\r\n", OK "Endpoint-Load: TEXT\r\n\r\n",
        OK "Endpoint-Load-Metrics-Format: text\r\n\r\n"
    };
    inf_node_answer_t a;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(answer_of(texts[i], &a), INF_NODE_ANSWER_COMPLETE);
        assert_int_equal(a.queue_state, INF_NODE_QUEUE_NONE);
    }
}

static void
a_status_is_read(void **state)
{
    (void) state;
    inf_node_answer_t a;

    assert_int_equal(answer_of("HTTP/1.0 503\r\n\r\n", &a),
                     INF_NODE_ANSWER_COMPLETE);
    assert_int_equal(a.status, 503);
    assert_int_equal(answer_of("HTTP/1.1 100 \n\n", &a),
                     INF_NODE_ANSWER_COMPLETE);
    assert_int_equal(a.status, 100);
}

static void
a_head_comes_in_pieces(void **state)
{
    (void) state;
    static const char text[] = OK "A: b\r\n" REPORT "TEXT " QUEUE "8\r\n\r\n";
    inf_node_answer_t a;

    for (size_t i = 0; i < sizeof(text) - 1; i++) {
        assert_int_equal(inf_node_answer_read(inf_slice(text, i), &a),
                         INF_NODE_ANSWER_PARTIAL);
    }
    assert_int_equal(answer_of(text, &a), INF_NODE_ANSWER_COMPLETE);
    assert_int_equal(a.queue, 8);
}

static void
other_bytes_are_garbage(void **state)
{
    (void) state;
    static const char *const texts[] = {
        "h", "HTTP/2", "HTTP/1.x 200 OK\r\n", "HTTP/1.1  200\r\n",
        "HTTP/1.1 2000\r\n", "HTTP/1.1 20\r\n", "HTTP/1.1 099 x\r\n",
        "HTTP/1.1\r\n", "HTTP/1.1 2x0 OK\r\n", "HTTP/1.1 200OK\r\n", "\r\n"
    };
    inf_node_answer_t a;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(answer_of(texts[i], &a), INF_NODE_ANSWER_GARBAGE);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_queue_is_read),
        cmocka_unit_test(an_impossible_queue_is_invalid),
        cmocka_unit_test(no_report_says_nothing),
        cmocka_unit_test(a_status_is_read),
        cmocka_unit_test(a_head_comes_in_pieces),
        cmocka_unit_test(other_bytes_are_garbage)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
