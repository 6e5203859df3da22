#include "Crypto.h"

#include <stdlib.h>
#include <string.h>

#define SLOT_BYTES 1536

struct nagare_fan_out {
    engine *engine;
    crypto **receivers;
    int count;
    uint8_t *block;
    size_t block_bytes, position;
};

nagare_fan_out *nagare_fan_out_make(int profile, int kind, int receivers, int datagrams_max) {
    nagare_fan_out *floor = calloc(1, sizeof *floor);
    floor->engine = engine_make(profile, kind);
    floor->count = receivers;
    floor->receivers = calloc((size_t)receivers, sizeof *floor->receivers);
    for (int index = 0; index < receivers; index++) {
        floor->receivers[index] = crypto_make(floor->engine, (unsigned)index + 1);
    }
    floor->block_bytes = (size_t)datagrams_max * SLOT_BYTES;
    floor->block = aligned_alloc(64, floor->block_bytes);
    memset(floor->block, 0, floor->block_bytes);
    return floor;
}

void nagare_fan_out_free(nagare_fan_out *floor) {
    for (int index = 0; index < floor->count; index++) crypto_free(floor->engine, floor->receivers[index]);
    engine_free(floor->engine);
    free(floor->receivers);
    free(floor->block);
    free(floor);
}

size_t nagare_fan_out_send(
    nagare_fan_out *floor, const uint8_t *packet, size_t header_bytes, size_t payload_bytes, uint64_t index) {
    size_t sent = 0;
    uint32_t timestamp = load32(packet + 4);
    for (int receiver = 0; receiver < floor->count; receiver++) {
        if (floor->position + SLOT_BYTES > floor->block_bytes) {
            crypto_flush(floor->engine);
            floor->position = 0;
        }
        uint8_t *to = floor->block + floor->position;
        memcpy(to, packet, header_bytes);
        store16(to + 2, (uint16_t)index);
        store32(to + 4, timestamp + (uint32_t)receiver * 1000);
        store32(to + 8, 0x10000 + (uint32_t)receiver);
        size_t length = crypto_protect(
            floor->engine, floor->receivers[receiver], to, header_bytes, packet + header_bytes, payload_bytes, index);
        floor->position += length;
        sent += length;
    }
    return sent;
}

void nagare_fan_out_flush(nagare_fan_out *floor) { crypto_flush(floor->engine); }

struct nagare_unprotect {
    engine *engine;
    crypto *keys;
    int count;
    size_t header_bytes, payload_bytes;
    uint64_t first;
    uint8_t *packets;
};

nagare_unprotect *nagare_unprotect_make(int profile, int kind, int count) {
    nagare_unprotect *floor = calloc(1, sizeof *floor);
    // CM uses OpenSSL: `crypto_unprotect` has no CM for intel-ipsec-mb, and both libraries make the same packets.
    floor->engine = engine_make(profile, profile == nagare_cm_sha1_80 ? nagare_openssl : kind);
    floor->keys = crypto_make(floor->engine, 1);
    floor->count = count;
    floor->packets = calloc((size_t)count, SLOT_BYTES);
    return floor;
}

void nagare_unprotect_free(nagare_unprotect *floor) {
    crypto_free(floor->engine, floor->keys);
    engine_free(floor->engine);
    free(floor->packets);
    free(floor);
}

void nagare_unprotect_fill(
    nagare_unprotect *floor, const uint8_t *packet, size_t header_bytes, size_t payload_bytes) {
    floor->first += (uint64_t)floor->count;
    floor->header_bytes = header_bytes;
    floor->payload_bytes = payload_bytes;
    for (int index = 0; index < floor->count; index++) {
        uint8_t *to = floor->packets + (size_t)index * SLOT_BYTES;
        memcpy(to, packet, header_bytes);
        store16(to + 2, (uint16_t)(floor->first + (uint64_t)index));
        crypto_protect(floor->engine, floor->keys, to, header_bytes, packet + header_bytes, payload_bytes,
            floor->first + (uint64_t)index);
    }
}

int nagare_unprotect_run(nagare_unprotect *floor) {
    int authentic = 0;
    for (int index = 0; index < floor->count; index++) {
        authentic += crypto_unprotect(floor->engine, floor->keys, floor->packets + (size_t)index * SLOT_BYTES,
            floor->header_bytes, floor->payload_bytes, floor->first + (uint64_t)index);
    }
    return authentic;
}
