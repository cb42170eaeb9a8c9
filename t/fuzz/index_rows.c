/* Any repository index: the launcher's rows lie in it, and none of their texts
   writes over a terminal. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/index_rows.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_text(const char *text, const char *begin, const char *end)
{
    if (*text == '\0') {
        return;
    }
    if (text < begin || text + strlen(text) > end) {
        abort();
    }
    for (; *text != '\0'; text++) {
        if ((unsigned char) *text < 0x20 && *text != '\n') {
            abort();
        }
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    char *at = text;
    index_row_t row;

    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';

    while (index_row_next(&at, &row)) {
        check_text(row.name, text, text + size);
        check_text(row.version, text, text + size);
        check_text(row.state, text, text + size);
        check_text(row.reason, text, text + size);
        if (at < text || at > text + size) {
            abort();
        }
    }
    free(text);
    return 0;
}
