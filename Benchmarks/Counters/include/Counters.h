#ifndef NAGARE_COUNTERS_H
#define NAGARE_COUNTERS_H

#include <stdint.h>

/// How often the process has called what a hot path must not, since it started. Counted without atomics: exact while
/// one thread runs.
///
/// The executable's own definitions of these functions come before those of the shared libraries, so every call is
/// seen that the modules under measure make, and of the C library's functions also those that OpenSSL, libsrtp2 and
/// the Swift runtime make. Calls of the Swift runtime within itself are bound to it and are not seen here; callgrind
/// sees them.
typedef struct {
    /// malloc, calloc, realloc and their aligned kin.
    uint64_t allocations;
    uint64_t frees;
    /// swift_allocObject; each is an allocation too.
    uint64_t objects;
    /// Strong, unowned and weak references taken up.
    uint64_t retains;
    /// References let go.
    uint64_t releases;
    /// Mutexes and read-write locks taken.
    uint64_t locks;
    /// Dynamic exclusivity checks: swift_beginAccess.
    uint64_t accesses;
    /// Accesses to a global that is initialised lazily: swift_once.
    uint64_t onces;
    /// Tasks made, enqueued or moved to another executor.
    uint64_t hops;
    /// Casts and look-ups that search the runtime's tables.
    uint64_t casts;
} nagare_counts;

nagare_counts nagare_counts_now(void);

/// Callgrind collects from here to `nagare_collect_end`; nothing without it. It must run with --instr-atstart=no.
void nagare_collect_begin(void);
/// Writes what was collected to a file of its own, described as `name`.
void nagare_collect_end(const char *name);

#endif
