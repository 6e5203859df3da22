#include "Crypto.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct nagare_ring {
    uint8_t *bytes;
    size_t mask;
    _Alignas(64) _Atomic size_t written;
    _Alignas(64) _Atomic size_t read;
};

nagare_ring *nagare_ring_make(size_t capacity) {
    nagare_ring *ring = aligned_alloc(64, sizeof *ring);
    memset(ring, 0, sizeof *ring);
    ring->bytes = aligned_alloc(64, capacity);
    memset(ring->bytes, 0, capacity);
    ring->mask = capacity - 1;
    return ring;
}

void nagare_ring_free(nagare_ring *ring) {
    free(ring->bytes);
    free(ring);
}

int nagare_ring_push(nagare_ring *ring, const void *record, size_t record_bytes, const void *bytes, size_t length) {
    size_t capacity = ring->mask + 1, total = (8 + record_bytes + length + 7) & ~(size_t)7;
    size_t written = atomic_load_explicit(&ring->written, memory_order_relaxed);
    size_t read = atomic_load_explicit(&ring->read, memory_order_acquire);
    size_t rest = capacity - (written & ring->mask), skipped = rest < total ? rest : 0;
    if (written + skipped + total - read > capacity) return 0;
    if (skipped) {
        // A message is never split. It starts at the beginning if the space before the end is too small.
        *(uint32_t *)(ring->bytes + (written & ring->mask)) = 0;
        written += skipped;
    }
    uint8_t *to = ring->bytes + (written & ring->mask);
    ((uint32_t *)to)[0] = (uint32_t)(record_bytes + length);
    memcpy(to + 8, record, record_bytes);
    memcpy(to + 8 + record_bytes, bytes, length);
    atomic_store_explicit(&ring->written, written + total, memory_order_release);
    return 1;
}

size_t nagare_ring_pop(nagare_ring *ring, void *to) {
    size_t read = atomic_load_explicit(&ring->read, memory_order_relaxed);
    size_t written = atomic_load_explicit(&ring->written, memory_order_acquire);
    if (read == written) return 0;
    const uint8_t *from = ring->bytes + (read & ring->mask);
    if (*(const uint32_t *)from == 0) {
        read += ring->mask + 1 - (read & ring->mask);
        from = ring->bytes;
    }
    size_t length = *(const uint32_t *)from;
    memcpy(to, from + 8, length);
    atomic_store_explicit(&ring->read, read + ((8 + length + 7) & ~(size_t)7), memory_order_release);
    return length;
}

struct nagare_timers {
    engine *engine;
    crypto **peers;
    struct {
        int64_t deadline;
        int peer;
    } *heap;
    int count;
    int64_t period;
    uint64_t index;
    uint8_t datagram[1536];
};

nagare_timers *nagare_timers_make(int profile, int count, int64_t period, int64_t now) {
    nagare_timers *timers = calloc(1, sizeof *timers);
    timers->engine = engine_make(profile, nagare_openssl);
    timers->peers = calloc((size_t)count, sizeof *timers->peers);
    timers->heap = calloc((size_t)count, sizeof *timers->heap);
    timers->count = count;
    timers->period = period;
    for (int index = 0; index < count; index++) {
        timers->peers[index] = crypto_make(timers->engine, (unsigned)index);
        timers->heap[index].deadline = now + period * index / count;
        timers->heap[index].peer = index;
    }
    return timers;
}

void nagare_timers_free(nagare_timers *timers) {
    for (int index = 0; index < timers->count; index++) crypto_free(timers->engine, timers->peers[index]);
    engine_free(timers->engine);
    free(timers->peers);
    free(timers->heap);
    free(timers);
}

int nagare_timers_turn(nagare_timers *timers, int64_t now) {
    int served = 0;
    while (timers->heap[0].deadline <= now) {
        uint8_t plain[128];
        int peer = timers->heap[0].peer;
        size_t length = nagare_report((uint32_t)peer, (uint64_t)now, (uint32_t)now, 1, 2, "stream", plain);
        memcpy(timers->datagram, plain, 8);
        crypto_protect(timers->engine, timers->peers[peer], timers->datagram, 8, plain + 8, length - 8, timers->index++);
        // Sift the first entry down to its place.
        int64_t deadline = timers->heap[0].deadline + timers->period;
        int parent = 0;
        for (;;) {
            int child = 2 * parent + 1;
            if (child >= timers->count) break;
            if (child + 1 < timers->count && timers->heap[child + 1].deadline < timers->heap[child].deadline) child++;
            if (timers->heap[child].deadline >= deadline) break;
            timers->heap[parent] = timers->heap[child];
            parent = child;
        }
        timers->heap[parent].deadline = deadline;
        timers->heap[parent].peer = peer;
        served++;
    }
    return served;
}
