#ifndef NAGARE_COUNTERS_H
#define NAGARE_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

/// The number of calls, since the start of the process, of functions that a hot path must not call. The counters are not
/// atomic: they are exact while one thread runs.
///
/// The executable's definitions of these functions take precedence over those of the shared libraries. So all calls from
/// the measured modules are counted, and all calls of C library functions from OpenSSL, libsrtp2 and the Swift runtime.
/// The Swift runtime's calls of its own functions are not counted here, but callgrind counts them.
typedef struct {
    /// malloc, calloc, realloc and their aligned variants.
    uint64_t allocations;
    uint64_t frees;
    /// swift_allocObject. Each is also an allocation.
    uint64_t objects;
    /// Strong, unowned and weak references retained.
    uint64_t retains;
    /// References released.
    uint64_t releases;
    /// Mutexes and read-write locks taken.
    uint64_t locks;
    /// Dynamic exclusivity checks: swift_beginAccess.
    uint64_t accesses;
    /// Accesses to lazily initialised globals: swift_once.
    uint64_t onces;
    /// Tasks created, enqueued or moved to another executor.
    uint64_t hops;
    /// Casts and lookups that search the runtime's tables.
    uint64_t casts;
} nagare_counts;

nagare_counts nagare_counts_now(void);

/// CPU time of this thread in nanoseconds.
uint64_t nagare_thread_nanoseconds(void);

/// Bytes of the heap that are in use.
uint64_t nagare_heap_bytes(void);

/// A UDP socket whose datagrams go to another one of this process over the loopback, where they are discarded; -1 on failure.
/// It stays open.
int nagare_sink_open(void);
/// Sends datagrams of `segment_bytes` each, the last one perhaps shorter, in one call (UDP GSO).
int64_t nagare_sink_send(int fd, const void *bytes, size_t length, uint16_t segment_bytes);

/// Starts callgrind's collection, until `nagare_collect_end`. Callgrind must run with --instr-atstart=no. Does nothing
/// without callgrind.
void nagare_collect_begin(void);
/// Ends the collection and writes it to a file of its own, which contains `name`.
void nagare_collect_end(const char *name);

#endif
