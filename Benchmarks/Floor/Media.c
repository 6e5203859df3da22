#include "Crypto.h"

#include <stdlib.h>
#include <string.h>

int nagare_parse(const uint8_t *packet, size_t length, nagare_description *result) {
    if (length < 12 || packet[0] >> 6 != 2) return 0;
    size_t header = 12 + 4 * (size_t)(packet[0] & 15);
    memset(result, 0, sizeof *result);
    if (packet[0] & 0x10) {
        if (length < header + 4) return 0;
        size_t offset = header + 4, end = offset + 4 * (size_t)load16(packet + header + 2);
        if (length < end) return 0;
        if (load16(packet + header) == 0xBEDE) {
            while (offset < end) {
                uint8_t id = packet[offset] >> 4;
                size_t bytes = (size_t)(packet[offset] & 15) + 1;
                if (packet[offset] == 0) {
                    offset++;
                    continue;
                }
                if (offset + 1 + bytes > end || id == 15) break;
                switch (id) {
                case 3: if (bytes >= 2) result->transport_sequence = load16(packet + offset + 1); break;
                case 5: result->level_offset = (uint16_t)(offset + 1); break;
                case 6: result->rotation_offset = (uint16_t)(offset + 1); break;
                case 7: result->delay_offset = (uint16_t)(offset + 1); break;
                default: break;
                }
                offset += 1 + bytes;
            }
        }
        header = end;
    }
    if (length < header) return 0;
    if (packet[0] & 0x20) {
        size_t padding = packet[length - 1];
        if (padding == 0 || padding > length - header) return 0;
        length -= padding;
    }
    result->marker = packet[1] >> 7;
    result->payload_type = packet[1] & 0x7F;
    result->sequence = load16(packet + 2);
    result->timestamp = load32(packet + 4);
    result->ssrc = load32(packet + 8);
    result->payload_offset = (uint16_t)header;
    result->payload_length = (uint16_t)(length - header);
    // The VP8 payload descriptor (RFC 7741 §4.2).
    const uint8_t *payload = packet + header;
    size_t bytes = length - header, offset = 1;
    if (bytes < 1) return 1;
    uint8_t extended = 0;
    if (payload[0] & 0x80) {
        if (bytes < 2) return 1;
        extended = payload[1];
        offset = 2;
    }
    if (extended & 0x80) {
        if (bytes < offset + 2) return 1;
        result->picture_id_offset = (uint16_t)(header + offset);
        if (payload[offset] & 0x80) {
            result->picture_id = load16(payload + offset) & 0x7FFF;
            offset += 2;
        } else {
            result->picture_id = payload[offset];
            offset += 1;
        }
    }
    if (extended & 0x40) {
        if (bytes < offset + 1) return 1;
        result->tl0_offset = (uint16_t)(header + offset);
        result->tl0 = payload[offset];
        offset += 1;
    }
    if (extended & 0x30) offset += 1;
    if (bytes > offset) {
        result->starts_key_frame = (payload[0] & 0x10) != 0 && (payload[0] & 7) == 0 && (payload[offset] & 1) == 0;
    }
    return 1;
}

size_t nagare_rewrite(
    const uint8_t *packet, const nagare_description *from, uint16_t sequence_offset, uint32_t timestamp_offset,
    uint16_t picture_id_offset, uint8_t tl0_offset, uint32_t ssrc, uint8_t payload_type, uint16_t transport_sequence,
    uint8_t *to) {
    to[0] = 0x90;
    to[1] = (uint8_t)(from->marker << 7 | payload_type);
    store16(to + 2, (uint16_t)(from->sequence + sequence_offset));
    store32(to + 4, from->timestamp + timestamp_offset);
    store32(to + 8, ssrc);
    store16(to + 12, 0xBEDE);
    store16(to + 14, 2);
    to[16] = 0x22;
    memcpy(to + 17, packet + 4, 3);
    to[20] = 0x31;
    store16(to + 21, transport_sequence);
    to[23] = 0;
    memcpy(to + 24, packet + from->payload_offset, from->payload_length);
    uint8_t *payload = to + 24;
    if (from->picture_id_offset != 0) {
        store16(payload + from->picture_id_offset - from->payload_offset,
            0x8000 | ((from->picture_id + picture_id_offset) & 0x7FFF));
    }
    if (from->tl0_offset != 0) payload[from->tl0_offset - from->payload_offset] = (uint8_t)(from->tl0 + tl0_offset);
    return 24 + from->payload_length;
}

static size_t finish(uint8_t *start, size_t length) {
    store16(start + 2, (uint16_t)(length / 4 - 1));
    return length;
}

void nagare_arrived(nagare_arrivals *arrivals, uint16_t number, int64_t tick) {
    int64_t sequence = arrivals->newest + (int16_t)(uint16_t)(number - (uint16_t)arrivals->newest);
    arrivals->ticks[sequence & 255] = tick;
    if (sequence <= arrivals->newest) {
        for (int index = 0; index < arrivals->missing_count; index++) {
            if (arrivals->missing[index] == sequence) arrivals->missing[index] = arrivals->missing[--arrivals->missing_count];
        }
        return;
    }
    for (int64_t gap = arrivals->newest + 1; gap < sequence && arrivals->missing_count < 64; gap++) {
        arrivals->missing[arrivals->missing_count++] = gap;
    }
    arrivals->newest = sequence;
}

size_t nagare_nack_missing(nagare_arrivals *arrivals, uint8_t *to) {
    uint16_t lost[64];
    for (int index = 0; index < arrivals->missing_count; index++) lost[index] = (uint16_t)arrivals->missing[index];
    size_t length = nagare_nack(1, 2, lost, arrivals->missing_count, to);
    arrivals->missing_count = 0;
    return length;
}

size_t nagare_transport_feedback(nagare_arrivals *arrivals, uint8_t *to) {
    int64_t first = arrivals->unreported, end = arrivals->newest + 1;
    to[0] = 0x8F;
    to[1] = 205;
    store32(to + 4, 1);
    store32(to + 8, 2);
    store16(to + 12, (uint16_t)first);
    store16(to + 14, (uint16_t)(end - first));
    int64_t reference = arrivals->ticks[first & 255] / 256;
    store32(to + 16, (uint32_t)(reference << 8));
    size_t length = 20;
    // All packets arrived: status vectors of seven two-bit symbols, the last one incomplete.
    uint16_t chunk = 0xC000;
    int filled = 0;
    int64_t previous = reference * 256;
    for (int64_t sequence = first; sequence < end; sequence++) {
        int64_t delta = arrivals->ticks[sequence & 255] - previous;
        previous += delta;
        chunk |= (uint16_t)((delta >= 0 && delta < 256 ? 1 : 2) << (12 - 2 * filled));
        if (++filled == 7 || sequence == end - 1) {
            store16(to + length, chunk);
            length += 2;
            chunk = 0xC000;
            filled = 0;
        }
    }
    previous = reference * 256;
    for (int64_t sequence = first; sequence < end; sequence++) {
        int64_t delta = arrivals->ticks[sequence & 255] - previous;
        previous += delta;
        if (delta >= 0 && delta < 256) {
            to[length++] = (uint8_t)delta;
        } else {
            store16(to + length, (uint16_t)delta);
            length += 2;
        }
    }
    while (length % 4 != 0) to[length++] = 0;
    arrivals->unreported = end;
    return finish(to, length);
}

size_t nagare_nack(uint32_t sender, uint32_t media, const uint16_t *lost, int count, uint8_t *to) {
    to[0] = 0x81;
    to[1] = 205;
    store32(to + 4, sender);
    store32(to + 8, media);
    size_t length = 12;
    for (int index = 0; index < count;) {
        uint16_t first = lost[index++], mask = 0;
        while (index < count && (uint16_t)(lost[index] - first) <= 16) {
            mask |= (uint16_t)(1 << ((uint16_t)(lost[index++] - first) - 1));
        }
        store16(to + length, first);
        store16(to + length + 2, mask);
        length += 4;
    }
    return finish(to, length);
}

size_t nagare_report(
    uint32_t ssrc, uint64_t ntp, uint32_t timestamp, uint32_t packets, uint32_t octets, const char *cname,
    uint8_t *to) {
    to[0] = 0x80;
    to[1] = 200;
    store32(to + 4, ssrc);
    store32(to + 8, (uint32_t)(ntp >> 32));
    store32(to + 12, (uint32_t)ntp);
    store32(to + 16, timestamp);
    store32(to + 20, packets);
    store32(to + 24, octets);
    finish(to, 28);
    uint8_t *source = to + 28;
    size_t name = strlen(cname), length = 10 + name;
    source[0] = 0x81;
    source[1] = 202;
    store32(source + 4, ssrc);
    source[8] = 1;
    source[9] = (uint8_t)name;
    memcpy(source + 10, cname, name);
    do source[length++] = 0;
    while (length % 4 != 0);
    return 28 + finish(source, length);
}
