// SPDX-License-Identifier: BSD-3-Clause
// The databases: B-trees of Berkeley DB 5.3, which map each word to its place in the index. As in Psearchy's pedsort, a
// handle has no environment, the library's default cache of 256 KiB, and unique keys that end with their zero. Words come
// in sorted order, so each page is written once, and a larger cache would only defer its writing. Each thread has handles
// of its own.
#include "pedsort.h"

#include <db.h>

// What the library stores for a word.
typedef struct {
    uint64_t offset, count;
} Place;

static int reported(const char *what, int error) {
    if (error)
        fprintf(stderr, "pedsort: %s: %s\n", what, db_strerror(error));
    return error;
}

static int open_named(DB **handle, unsigned core, unsigned number, uint32_t flags) {
    char name[32];
    snprintf(name, sizeof name, "d%u.%u", core, number);
    int error = db_create(handle, NULL, 0);
    if (error)
        return reported(name, error);
    DB *const h = *handle;
    if (flags & DB_CREATE)
        error = h->set_pagesize(h, kPage);
    if (!error)
        error = h->open(h, NULL, name, NULL, DB_BTREE, flags, 0644);
    if (error)
        h->close(h, 0);
    return reported(name, error);
}

Database database_make(unsigned core, unsigned number) {
    Database d = {0};
    if (open_named(&d.handle, core, number, DB_CREATE | DB_EXCL))
        exit(1);
    return d;
}

void database_put(Database *d, const Entry *e) {
    char text[kWordRoom];
    memcpy(text, e->record.text, sizeof text);
    Place place = {.offset = e->offset, .count = e->record.count};
    DBT key = {.data = text, .size = (uint32_t)strlen(text) + 1}, data = {.data = &place, .size = sizeof place};
    if (reported(text, d->handle->put(d->handle, NULL, &key, &data, DB_NOOVERWRITE)))
        exit(1);
    ++d->entries;
}

// Without DB_NOSYNC, which would drop the pages that are still in the cache.
void database_close(Database *d) {
    if (reported("database", d->handle->close(d->handle, 0)))
        exit(1);
}

static int as_entry(const DBT *key, const DBT *data, Entry *e) {
    Place place;
    if (key->size >= sizeof e->record.text || data->size != sizeof place)
        return 0;
    memcpy(&place, data->data, sizeof place);
    *e = (Entry){.offset = place.offset, .record.count = (uint32_t)place.count};
    memcpy(e->record.text, key->data, key->size);
    return 1;
}

int database_each(unsigned core, unsigned number, int (*each)(const Entry *, void *), void *context) {
    DB *handle;
    DBC *cursor;
    if (open_named(&handle, core, number, DB_RDONLY))
        return 0;
    int well = !reported("cursor", handle->cursor(handle, NULL, &cursor, 0));
    if (well) {
        DBT key = {0}, data = {0};
        Entry e;
        int error = 0;
        while (well && !(error = cursor->get(cursor, &key, &data, DB_NEXT)))
            well = as_entry(&key, &data, &e) && each(&e, context);
        well &= error == DB_NOTFOUND;
        cursor->close(cursor);
    }
    return !handle->close(handle, 0) && well;
}
