#include "core/storage/s3_listing.h"

#include <expat.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/storage/percent.h"

#define DEPTH_MAX 16
#define TEXT_MAX  4096u             /* of one element                        */

typedef enum {
    ELEMENT_OTHER,
    ELEMENT_ROOT,
    ELEMENT_CONTENTS,
    ELEMENT_PREFIXES,
    ELEMENT_KEY,
    ELEMENT_ETAG,
    ELEMENT_SIZE,
    ELEMENT_MODIFIED,
    ELEMENT_PREFIX,
    ELEMENT_NEXT,
    ELEMENT_TRUNCATED,
    ELEMENT_ENCODING
} element_t;

typedef struct {
    XML_Parser            parser;
    inf_object_listing_t *listing;
    inf_object_t          object;       /* entry being read                  */
    element_t             at[DEPTH_MAX];
    int                   depth;
    bool                  truncated;    /* more pages follow                 */
    bool                  encoded;      /* keys are, as in a URL             */
    const char           *problem;      /* a literal; NULL: none             */
    bool                  nomem;
    size_t                len;
    char                  text[TEXT_MAX + 1];
} reader_t;

static void XMLCALL on_doctype(void *userp, const XML_Char *name,
    const XML_Char *system_id, const XML_Char *public_id, int internal);
static void XMLCALL on_start(void *userp, const XML_Char *name,
    const XML_Char **attributes);
static void XMLCALL on_end(void *userp, const XML_Char *name);
static void XMLCALL on_text(void *userp, const XML_Char *data, int len);
static element_t name_element(const char *name, element_t parent, int depth);
static void take_value(reader_t *r, element_t e);
static void take_text(reader_t *r, char **to);
static void take_object(reader_t *r, bool prefix);
static inf_err_t *finish_page(const reader_t *r, size_t first);
static int64_t parse_time(const char *text);
static void stop(reader_t *r, const char *problem);
static inf_err_t *parse_failed(reader_t *r);

void
inf_s3_listing_put_query(inf_buf_t *url, const inf_object_page_t *page)
{
    if (page->token != NULL) {
        inf_buf_puts(url, "continuation-token=");
        inf_percent_encode(url, page->token, false);
        inf_buf_putc(url, '&');
    }
    inf_buf_puts(url, page->recursive ? "encoding-type=url&list-type=2"
        : "delimiter=%2F&encoding-type=url&list-type=2");
    if (page->limit > 0) {
        inf_buf_printf(url, "&max-keys=%zu", page->limit);
    }
    inf_buf_puts(url, "&prefix=");
    inf_percent_encode(url, page->prefix, false);
}

inf_err_t *
inf_s3_listing_parse(inf_object_listing_t *l, const char *xml, size_t len)
{
    if (len > INT32_MAX) {
        return inf_err_new(INF_ERR_INTERNAL,
            "a page of the listing is too large");
    }

    reader_t *r = calloc(1, sizeof(*r));
    XML_Parser parser = r == NULL ? NULL : XML_ParserCreate("UTF-8");
    if (parser == NULL) {
        free(r);
        return inf_err_nomem();
    }

    free(l->next);
    l->next = NULL;
    r->parser = parser;
    r->listing = l;
    XML_SetUserData(parser, r);
    XML_SetStartDoctypeDeclHandler(parser, on_doctype);
    XML_SetElementHandler(parser, on_start, on_end);
    XML_SetCharacterDataHandler(parser, on_text);

    size_t first = l->count;
    inf_err_t *err = NULL;
    if (XML_Parse(parser, xml, (int) len, 1) != XML_STATUS_OK) {
        err = parse_failed(r);
    }
    if (err == NULL) {
        err = finish_page(r, first);
    }
    if (err != NULL) {
        inf_object_listing_cut(l, first);
    }

    XML_ParserFree(parser);
    inf_object_fini(&r->object);
    free(r);
    return err;
}

/* Decodes and checks the keys from first on, and the page's end. */
static inf_err_t *
finish_page(const reader_t *r, size_t first)
{
    inf_object_listing_t *l = r->listing;

    for (size_t i = first; i < l->count; i++) {
        if (r->encoded) {
            inf_percent_decode_query(l->items[i].key);
        }
        if (strlen(l->items[i].key) > INF_OBJECT_KEY_MAX) {
            return inf_err_new(INF_ERR_INTERNAL, "the listing has a key of"
                " more than %u bytes", INF_OBJECT_KEY_MAX);
        }
    }

    if (!r->truncated) {
        free(l->next);
        l->next = NULL;
        return NULL;
    }
    return l->next != NULL && l->next[0] != '\0' ? NULL
        : inf_err_new(INF_ERR_INTERNAL, "the listing is truncated without a"
            " token for its next page");
}

/* Parses "2026-11-21T15:24:46.000Z"; -1: invalid. */
static int64_t
parse_time(const char *text)
{
    struct tm tm = { 0 };
    double fraction = 0;
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);

    if (end == NULL) {
        return -1;
    }
    if (*end == '.') {
        char *after;
        fraction = strtod(end, &after);
        end = after;
    }
    if (strcmp(end, "Z") != 0 || fraction < 0 || fraction >= 1) {
        return -1;
    }

    time_t seconds = timegm(&tm);
    return seconds < 0 || seconds >= INT64_MAX / 1000000000 ? -1
        : (int64_t) seconds * 1000000000 + (int64_t) (fraction * 1e9);
}

/* Rejects a DOCTYPE, which a listing does not have, so no entity is declared or
   expanded. */
static void XMLCALL
on_doctype(void *userp, const XML_Char *name, const XML_Char *system_id,
    const XML_Char *public_id, int internal)
{
    (void) name;
    (void) system_id;
    (void) public_id;
    (void) internal;

    stop(userp, "a document type is declared");
}

static void XMLCALL
on_start(void *userp, const XML_Char *name, const XML_Char **attributes)
{
    reader_t *r = userp;
    (void) attributes;

    if (r->depth == DEPTH_MAX) {
        stop(r, "elements are nested too deep");
        return;
    }

    element_t parent = r->depth > 0 ? r->at[r->depth - 1] : ELEMENT_OTHER;
    element_t e = name_element(name, parent, r->depth);
    r->at[r->depth++] = e;
    r->len = 0;
    if (r->depth == 1 && e != ELEMENT_ROOT) {
        stop(r, "it is no ListBucketResult");
    }
}

static element_t
name_element(const char *name, element_t parent, int depth)
{
    static const struct {
        element_t    parent;
        const char  *name;
        element_t    element;
    } rows[] = {
        { ELEMENT_ROOT, "Contents", ELEMENT_CONTENTS },
        { ELEMENT_ROOT, "CommonPrefixes", ELEMENT_PREFIXES },
        { ELEMENT_ROOT, "NextContinuationToken", ELEMENT_NEXT },
        { ELEMENT_ROOT, "IsTruncated", ELEMENT_TRUNCATED },
        { ELEMENT_ROOT, "EncodingType", ELEMENT_ENCODING },
        { ELEMENT_CONTENTS, "Key", ELEMENT_KEY },
        { ELEMENT_CONTENTS, "ETag", ELEMENT_ETAG },
        { ELEMENT_CONTENTS, "Size", ELEMENT_SIZE },
        { ELEMENT_CONTENTS, "LastModified", ELEMENT_MODIFIED },
        { ELEMENT_PREFIXES, "Prefix", ELEMENT_PREFIX },
    };

    if (depth == 0) {
        return strcmp(name, "ListBucketResult") == 0 ? ELEMENT_ROOT
            : ELEMENT_OTHER;
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].parent == parent && strcmp(rows[i].name, name) == 0) {
            return rows[i].element;
        }
    }
    return ELEMENT_OTHER;
}

static void XMLCALL
on_text(void *userp, const XML_Char *data, int len)
{
    reader_t *r = userp;
    size_t n = (size_t) len;

    if (r->depth == 0 || r->at[r->depth - 1] < ELEMENT_KEY) {
        return;                     /* white space between elements          */
    }
    if (n > TEXT_MAX - r->len) {
        stop(r, "the text of an element is too long");
        return;
    }
    memcpy(r->text + r->len, data, n);
    r->len += n;
}

static void XMLCALL
on_end(void *userp, const XML_Char *name)
{
    reader_t *r = userp;
    (void) name;

    element_t e = r->at[--r->depth];
    r->text[r->len] = '\0';
    take_value(r, e);
    r->len = 0;
}

static void
take_value(reader_t *r, element_t e)
{
    char *end;

    switch (e) {
    case ELEMENT_KEY:
    case ELEMENT_PREFIX:
        take_text(r, &r->object.key);
        break;
    case ELEMENT_ETAG:
        take_text(r, &r->object.etag);
        break;
    case ELEMENT_SIZE:
        r->object.size = strtoull(r->text, &end, 10);
        if (end == r->text || *end != '\0' || r->text[0] == '-') {
            stop(r, "a size is no number");
        }
        break;
    case ELEMENT_MODIFIED:
        r->object.modified_ns = parse_time(r->text);
        if (r->object.modified_ns < 0) {
            stop(r, "a time is not of the form 2026-11-21T15:24:46.000Z");
        }
        break;
    case ELEMENT_NEXT:
        take_text(r, &r->listing->next);
        break;
    case ELEMENT_TRUNCATED:
        r->truncated = strcmp(r->text, "true") == 0;
        break;
    case ELEMENT_ENCODING:
        r->encoded = strcmp(r->text, "url") == 0;
        break;
    case ELEMENT_CONTENTS:
    case ELEMENT_PREFIXES:
        take_object(r, e == ELEMENT_PREFIXES);
        break;
    case ELEMENT_OTHER:
    case ELEMENT_ROOT:
        break;
    }
}

/* Takes the text, without an ETag's quotes. */
static void
take_text(reader_t *r, char **to)
{
    const char *text = r->text;
    size_t len = r->len;

    if (to == &r->object.etag) {
        while (len > 0 && text[0] == '"') {
            text++;
            len--;
        }
        while (len > 0 && text[len - 1] == '"') {
            len--;
        }
    }

    free(*to);
    *to = strndup(text, len);
    if (*to == NULL) {
        r->nomem = true;
        stop(r, "out of memory");
    }
}

static void
take_object(reader_t *r, bool prefix)
{
    if (r->object.key == NULL || r->object.key[0] == '\0'
        || (!prefix && r->object.etag == NULL))
    {
        stop(r, "an entry has no key or no ETag");
        return;
    }

    if (!inf_object_listing_take(r->listing, &r->object)) {
        r->nomem = true;
        stop(r, "out of memory");
    }
}

static void
stop(reader_t *r, const char *problem)
{
    if (r->problem == NULL) {
        r->problem = problem;
        XML_StopParser(r->parser, XML_FALSE);
    }
}

static inf_err_t *
parse_failed(reader_t *r)
{
    enum XML_Error code = XML_GetErrorCode(r->parser);

    if (r->nomem || code == XML_ERROR_NO_MEMORY) {
        return inf_err_nomem();
    }
    return inf_err_new(INF_ERR_INTERNAL, "the listing, line %lu, column %lu:"
        " %s", (unsigned long) XML_GetCurrentLineNumber(r->parser),
        (unsigned long) XML_GetCurrentColumnNumber(r->parser),
        r->problem != NULL ? r->problem : XML_ErrorString(code));
}
