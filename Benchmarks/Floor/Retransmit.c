#include "Crypto.h"

#include <stdlib.h>
#include <string.h>

#define SLOT_BYTES 1536
#define KEPT 256
// The unencrypted part of a NACK, up to the media SSRC.
#define REQUEST_HEADER_BYTES 12

struct nagare_retransmit {
    engine *engine;
    crypto **receivers;
    int count, numbers;
    uint16_t next;
    size_t header_bytes, payload_bytes;
    uint8_t *kept, *requests, *block;
    size_t request_bytes;
};

nagare_retransmit *nagare_retransmit_make(int profile, int kind, int receivers, int numbers) {
    nagare_retransmit *floor = calloc(1, sizeof *floor);
    floor->engine = engine_make(profile, profile == nagare_cm_sha1_80 ? nagare_openssl : kind);
    floor->count = receivers;
    floor->numbers = numbers;
    floor->receivers = calloc((size_t)receivers, sizeof *floor->receivers);
    for (int index = 0; index < receivers; index++) {
        floor->receivers[index] = crypto_make(floor->engine, (unsigned)index + 1);
    }
    floor->kept = calloc(KEPT, SLOT_BYTES);
    floor->requests = calloc((size_t)receivers, 128);
    floor->block = calloc((size_t)receivers * (size_t)numbers, SLOT_BYTES);
    return floor;
}

void nagare_retransmit_free(nagare_retransmit *floor) {
    for (int index = 0; index < floor->count; index++) crypto_free(floor->engine, floor->receivers[index]);
    engine_free(floor->engine);
    free(floor->receivers);
    free(floor->kept);
    free(floor->requests);
    free(floor->block);
    free(floor);
}

void nagare_retransmit_fill(
    nagare_retransmit *floor, const uint8_t *packet, size_t header_bytes, size_t payload_bytes) {
    uint16_t lost[64];
    floor->header_bytes = header_bytes;
    floor->payload_bytes = payload_bytes;
    for (int index = 0; index < floor->numbers; index++) {
        uint16_t number = floor->next++;
        lost[index] = number;
        uint8_t *to = floor->kept + (size_t)(number % KEPT) * SLOT_BYTES;
        memcpy(to, packet, header_bytes + payload_bytes);
        store16(to + 2, number);
    }
    for (int index = 0; index < floor->count; index++) {
        uint8_t plain[128], *to = floor->requests + (size_t)index * 128;
        floor->request_bytes = nagare_nack(7, (uint32_t)index, lost, floor->numbers, plain);
        memcpy(to, plain, REQUEST_HEADER_BYTES);
        crypto_protect(floor->engine, floor->receivers[index], to, REQUEST_HEADER_BYTES,
            plain + REQUEST_HEADER_BYTES, floor->request_bytes - REQUEST_HEADER_BYTES, floor->next);
    }
}

int nagare_retransmit_run(nagare_retransmit *floor) {
    int sent = 0;
    uint8_t *to = floor->block;
    for (int index = 0; index < floor->count; index++) {
        uint8_t *request = floor->requests + (size_t)index * 128;
        if (!crypto_unprotect(floor->engine, floor->receivers[index], request, REQUEST_HEADER_BYTES,
                floor->request_bytes - REQUEST_HEADER_BYTES, floor->next)) {
            continue;
        }
        for (size_t offset = REQUEST_HEADER_BYTES; offset < floor->request_bytes; offset += 4) {
            uint16_t first = load16(request + offset);
            uint32_t mask = (uint32_t)load16(request + offset + 2) << 1 | 1;
            for (; mask != 0; mask &= mask - 1) {
                uint16_t number = (uint16_t)(first + __builtin_ctz(mask));
                const uint8_t *kept = floor->kept + (size_t)(number % KEPT) * SLOT_BYTES;
                if (load16(kept + 2) != number) continue;
                // The original sequence number precedes the payload (RFC 4588 §4).
                memcpy(to, kept, floor->header_bytes);
                store32(to + 8, 0x20000 + (uint32_t)index);
                store16(to + floor->header_bytes, number);
                memcpy(to + floor->header_bytes + 2, kept + floor->header_bytes, floor->payload_bytes);
                to += crypto_protect(floor->engine, floor->receivers[index], to, floor->header_bytes,
                    to + floor->header_bytes, floor->payload_bytes + 2, number);
                sent++;
            }
        }
    }
    return sent;
}
