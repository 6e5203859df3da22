#pragma once
#include <sqlite3.h>

// SQLITE_TRANSIENT is a cast, which Swift does not import.
static inline int nagare_sqlite_bind_text(sqlite3_stmt *statement, int index, const char *text, int count) {
    return sqlite3_bind_text(statement, index, text, count, SQLITE_TRANSIENT);
}
