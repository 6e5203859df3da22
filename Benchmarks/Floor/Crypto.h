#ifndef NAGARE_FLOOR_CRYPTO_H
#define NAGARE_FLOOR_CRYPTO_H

#include "Floor.h"

// One direction's session keys of one receiver.
typedef struct crypto crypto;
// The state that all keys of one encryption library share.
typedef struct engine engine;

engine *engine_make(int profile, int kind);
void engine_free(engine *engine);
crypto *crypto_make(engine *engine, unsigned seed);
void crypto_free(engine *engine, crypto *keys);
size_t crypto_tag_bytes(int profile);
// Encrypts `payload` to the place behind the header at `to`, followed by the tag. Returns the packet's length.
size_t crypto_protect(
    engine *engine, crypto *keys, uint8_t *to, size_t header_bytes, const uint8_t *payload, size_t payload_bytes,
    uint64_t index);
void crypto_flush(engine *engine);
// Decrypts in place. Returns 0 when the tag does not match.
int crypto_unprotect(
    engine *engine, crypto *keys, uint8_t *packet, size_t header_bytes, size_t payload_bytes, uint64_t index);

static inline uint16_t load16(const uint8_t *from) { return (uint16_t)(from[0] << 8 | from[1]); }
static inline uint32_t load32(const uint8_t *from) { return (uint32_t)load16(from) << 16 | load16(from + 2); }
static inline void store16(uint8_t *to, uint16_t value) {
    to[0] = (uint8_t)(value >> 8);
    to[1] = (uint8_t)value;
}
static inline void store32(uint8_t *to, uint32_t value) {
    store16(to, (uint16_t)(value >> 16));
    store16(to + 2, (uint16_t)value);
}

#endif
