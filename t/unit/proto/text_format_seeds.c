/* Reads every configuration snippet in the documents of the seeds:
   fenced blocks whose first word is a field of the model configuration. */
#include "proto/message_fixture.h"

#include <dirent.h>

#include "core/proto/text_format.h"

static bool
is_config(inf_slice_t block)
{
    size_t at = 0;
    size_t n = 0;

    while (at < block.len && memchr(" \t\r\n", block.data[at], 4) != NULL) {
        at++;
    }
    while (at + n < block.len && (block.data[at + n] == '_'
        || (block.data[at + n] >= 'a' && block.data[at + n] <= 'z')))
    {
        n++;
    }
    return inf_field_find(&inference__model_config__descriptor,
        inf_slice(block.data + at, n)) != NULL;
}

/* The line at at, without its end; moves at past it. */
static inf_slice_t
take_line(inf_slice_t text, size_t *at)
{
    const char *from = text.data + *at;
    const char *end = memchr(from, '\n', text.len - *at);
    size_t len = end == NULL ? text.len - *at : (size_t) (end - from);

    *at += len + (end != NULL);
    return inf_slice(from, len);
}

static bool
is_fence(inf_slice_t line)
{
    while (line.len > 0 && (line.data[0] == ' ' || line.data[0] == '\t')) {
        line.data++;
        line.len--;
    }
    return line.len >= 3 && memcmp(line.data, "```", 3) == 0;
}

static size_t
parse_document(const char *path, inf_slice_t text)
{
    size_t at = 0;
    size_t start = 0;
    size_t parsed = 0;
    bool inside = false;

    while (at < text.len) {
        size_t line_at = at;
        if (!is_fence(take_line(text, &at))) {
            continue;
        }

        inf_slice_t block = inf_slice(text.data + start, line_at - start);
        if (inside && is_config(block)) {
            ProtobufCMessage *m;
            must(inf_text_parse(&inference__model_config__descriptor, block,
                path, &m));
            assert_true(inf_message_packed_len(m) > 0);
            inf_message_free(m);
            parsed++;
        }
        inside = !inside;
        start = at;
    }
    return parsed;
}

static void
every_snippet_of_the_documents_is_read(void **state)
{
    (void) state;
    char folder[512];
    const char *shared = getenv("INF_SHARED");

    snprintf(folder, sizeof(folder), "%s/seeds",
        shared != NULL ? shared : "../shared");
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        print_message("no folder %s: its documents are not read\n", folder);
        skip();
    }

    size_t parsed = 0;
    struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        char path[1024];
        inf_buf_t text;

        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.' && read_file(path, &text)) {
            parsed += parse_document(path, inf_buf_slice(&text));
            inf_buf_fini(&text);
        }
    }
    closedir(dir);
    print_message("%zu snippets read\n", parsed);
    assert_true(parsed > 0);
}

static void
an_indented_block_is_found_in_a_document(void **state)
{
    (void) state;

    assert_int_equal(parse_document("d", INF_SLICE(
        "text\n\n    ```json\n    instance_group [ { count: 1 } ]\n    ```\n"
        "```\nA: [R1: 4]\n```\n```\nname: \"x\"\n```\n")), 2);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_snippet_of_the_documents_is_read),
        cmocka_unit_test(an_indented_block_is_found_in_a_document),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
