#include "core/service/last_words.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/abi/execute.h"

#define CHANNELS 1024u

/* Read by the crash handler without a lock; seq_cst. */
static _Atomic(char *) channels[CHANNELS];

static size_t compose(inf_crash_page_t *page, char *text);
static void print(const char *text, size_t len);

void
inf_last_words_add(char *text)
{
    for (size_t i = 0; i < CHANNELS; i++) {
        char *none = NULL;
        if (atomic_compare_exchange_strong(&channels[i], &none, text)) {
            return;
        }
    }
}

void
inf_last_words_remove(const char *text)
{
    for (size_t i = 0; i < CHANNELS; i++) {
        if (atomic_load(&channels[i]) == text) {
            atomic_store(&channels[i], NULL);
            return;
        }
    }
}

void
inf_last_words_say(inf_crash_page_t *page)
{
    char text[INF_CRASH_MAX + 1];
    size_t len = compose(page, text);

    for (size_t i = 0; i < CHANNELS; i++) {
        char *there = atomic_load(&channels[i]);
        if (there != NULL) {
            memcpy(there, text, len + 1);
        }
    }
    text[len++] = '\n';
    print(text, len);
}

/* Writes the text and returns its length, at most INF_CRASH_MAX - 1. */
static size_t
compose(inf_crash_page_t *page, char *text)
{
    char others[INF_CRASH_MAX - 64];
    inf_signal_text_t all, names;

    inf_signal_text_init(&all, text, INF_CRASH_MAX);
    inf_signal_text_init(&names, others, sizeof(others));

    if (inf_execution_describe(&names)) {
        inf_crash_page_note_words(page, others);
        inf_signal_text_puts(&all, others);
        inf_signal_text_puts(&all, " was executing");
    } else if (inf_crash_page_loading(page, &all)) {
        inf_signal_text_puts(&all, " was loading");
    } else if (names.len > 0) {
        inf_signal_text_puts(&all, "executing in other threads: ");
        inf_signal_text_puts(&all, others);
        inf_signal_text_puts(&all, names.cut ? " ..." : "");
    } else {
        inf_signal_text_puts(&all, "nothing was executing");
    }
    return all.len;
}

/* Writes the text without waiting for a full socket of the supervisor. */
static void
print(const char *text, size_t len)
{
    if (send(STDERR_FILENO, text, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0
        && errno == ENOTSOCK)
    {
        (void) !write(STDERR_FILENO, text, len);
    }
}
