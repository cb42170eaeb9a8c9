#include "core/storage/listing_reader.h"

#include <expat.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/storage/object_http.h"
#include "core/storage/percent.h"

#define DEPTH_MAX 16
#define TEXT_MAX  4096u             /* of one element                        */

typedef struct {
    const inf_listing_form_t *form;
    XML_Parser                parser;
    inf_object_listing_t     *listing;
    inf_object_t              object;       /* entry being read              */
    inf_listing_element_t     at[DEPTH_MAX];
    int                       depth;
    bool                      truncated;    /* more pages follow             */
    bool                      encoded;      /* keys are, as in a URL         */
    bool                      directory;    /* entry being read is one       */
    const char               *problem;      /* a constant; NULL: none        */
    size_t                    len;
    char                      text[TEXT_MAX + 1];
} reader_t;

static const char no_memory[] = "out of memory";

static void XMLCALL on_doctype(void *userp, const XML_Char *name,
    const XML_Char *system_id, const XML_Char *public_id, int internal);
static void XMLCALL on_start(void *userp, const XML_Char *name,
    const XML_Char **attributes);
static void XMLCALL on_end(void *userp, const XML_Char *name);
static void XMLCALL on_text(void *userp, const XML_Char *data, int len);
static bool is_escaped(const XML_Char **attributes);
static inf_listing_element_t name_element(const inf_listing_form_t *form,
    const char *name, inf_listing_element_t parent, int depth);
static void take_value(reader_t *r, inf_listing_element_t e);
static void take_text(reader_t *r, char **to);
static void take_object(reader_t *r, bool prefix);
static inf_err_t *finish_page(const reader_t *r, size_t first);
static void stop(reader_t *r, const char *problem);
static inf_err_t *parse_failed(reader_t *r);

inf_err_t *
inf_listing_read(inf_object_listing_t *l, const inf_listing_form_t *form,
    const char *xml, size_t len)
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
    r->form = form;
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
        if (l->items[i].etag == NULL
            && !inf_object_is_directory(&l->items[i]))
        {
            return inf_err_new(INF_ERR_INTERNAL, "the listing has a prefix"
                " that does not end in a slash");
        }
    }

    bool more = r->form->flagged ? r->truncated
        : l->next != NULL && l->next[0] != '\0';
    if (!more) {
        free(l->next);
        l->next = NULL;
        return NULL;
    }
    return l->next != NULL && l->next[0] != '\0' ? NULL
        : inf_err_new(INF_ERR_INTERNAL, "the listing is truncated without a"
            " token for its next page");
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

    if (r->depth == DEPTH_MAX) {
        stop(r, "elements are nested too deep");
        return;
    }

    inf_listing_element_t parent = r->depth > 0 ? r->at[r->depth - 1]
        : INF_LISTING_OTHER;
    inf_listing_element_t e = name_element(r->form, name, parent, r->depth);
    if ((e == INF_LISTING_KEY || e == INF_LISTING_PREFIX)
        && is_escaped(attributes))
    {
        e = INF_LISTING_ESCAPED;
    }
    r->at[r->depth++] = e;
    r->len = 0;
    if (r->depth == 1 && e != INF_LISTING_ROOT) {
        stop(r, r->form->other_root);
    }
}

/* Azure's mark of a name that XML cannot hold; S3 has no such attribute. */
static bool
is_escaped(const XML_Char **attributes)
{
    for (size_t i = 0; attributes[i] != NULL; i += 2) {
        if (strcmp(attributes[i], "Encoded") == 0) {
            return strcmp(attributes[i + 1], "true") == 0;
        }
    }
    return false;
}

static inf_listing_element_t
name_element(const inf_listing_form_t *form, const char *name,
    inf_listing_element_t parent, int depth)
{
    if (depth == 0) {
        return strcmp(name, form->root) == 0 ? INF_LISTING_ROOT
            : INF_LISTING_OTHER;
    }
    for (size_t i = 0; i < form->count; i++) {
        if (form->rows[i].parent == parent
            && strcmp(form->rows[i].name, name) == 0)
        {
            return form->rows[i].element;
        }
    }
    return INF_LISTING_OTHER;
}

static void XMLCALL
on_text(void *userp, const XML_Char *data, int len)
{
    reader_t *r = userp;
    size_t n = (size_t) len;

    if (r->depth == 0 || r->at[r->depth - 1] < INF_LISTING_KEY) {
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

    inf_listing_element_t e = r->at[--r->depth];
    r->text[r->len] = '\0';
    take_value(r, e);
    r->len = 0;
}

static void
take_value(reader_t *r, inf_listing_element_t e)
{
    char *end;

    switch (e) {
    case INF_LISTING_ESCAPED:
        inf_percent_decode(r->text);
        r->len = strlen(r->text);
        take_text(r, &r->object.key);
        break;
    case INF_LISTING_KEY:
    case INF_LISTING_PREFIX:
        take_text(r, &r->object.key);
        break;
    case INF_LISTING_ETAG:
        take_text(r, &r->object.etag);
        break;
    case INF_LISTING_SIZE:
        r->object.size = strtoull(r->text, &end, 10);
        if (r->text[0] < '0' || r->text[0] > '9' || *end != '\0'
            || r->object.size > INT64_MAX)
        {
            stop(r, "a size is no number");
        }
        break;
    case INF_LISTING_MODIFIED:
        r->object.modified_ns = r->form->parse_time(r->text);
        if (r->object.modified_ns < 0) {
            stop(r, r->form->time_form);
        }
        break;
    case INF_LISTING_NEXT:
        take_text(r, &r->listing->next);
        break;
    case INF_LISTING_TRUNCATED:
        r->truncated = strcmp(r->text, "true") == 0;
        break;
    case INF_LISTING_ENCODING:
        r->encoded = strcmp(r->text, "url") == 0;
        break;
    case INF_LISTING_TYPE:
        r->directory = strcmp(r->text, "directory") == 0;
        break;
    case INF_LISTING_OBJECT:
    case INF_LISTING_PREFIXES:
        take_object(r, e == INF_LISTING_PREFIXES);
        break;
    case INF_LISTING_OTHER:
    case INF_LISTING_ROOT:
    case INF_LISTING_ENTRIES:
    case INF_LISTING_PROPERTIES:
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
        /* requests repeat it in quotes */
        if (len > 0 && (!inf_object_http_is_header(inf_slice(text, len))
            || memchr(text, '"', len) != NULL))
        {
            stop(r, "an ETag has a character that no header may have");
        }
    }

    free(*to);
    *to = strndup(text, len);
    if (*to == NULL) {
        stop(r, no_memory);
    }
}

static void
take_object(reader_t *r, bool prefix)
{
    bool directory = r->directory;

    r->directory = false;
    if (directory) {
        inf_object_fini(&r->object);
        return;
    }
    if (r->object.key == NULL || r->object.key[0] == '\0'
        || (!prefix && r->object.etag == NULL))
    {
        stop(r, "an entry has no key or no ETag");
        return;
    }

    if (!inf_object_listing_take(r->listing, &r->object)) {
        stop(r, no_memory);
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

    if (r->problem == no_memory || code == XML_ERROR_NO_MEMORY) {
        return inf_err_nomem();
    }
    return inf_err_new(INF_ERR_INTERNAL, "the listing, line %lu, column %lu:"
        " %s", (unsigned long) XML_GetCurrentLineNumber(r->parser),
        (unsigned long) XML_GetCurrentColumnNumber(r->parser),
        r->problem != NULL ? r->problem : XML_ErrorString(code));
}
