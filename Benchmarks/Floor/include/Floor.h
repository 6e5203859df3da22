#ifndef NAGARE_FLOOR_H
#define NAGARE_FLOOR_H

#include <stddef.h>
#include <stdint.h>

/// The floor: the forwarding path's work in plain C, without peers, counters and checks that cannot fail here. The
/// benchmarks alternate it with the product's code in one process and report the ratio.

/// SRTP protection profiles, by their DTLS numbers (RFC 5764 §4.1.2, RFC 7714 §14.2).
enum { nagare_cm_sha1_80 = 1, nagare_gcm_128 = 7, nagare_gcm_256 = 8 };
/// The encryption library: OpenSSL's EVP interface, or intel-ipsec-mb where it is installed.
enum { nagare_openssl = 0, nagare_ipsec_mb = 1 };

/// One set of session keys for each receiver, and a buffer for a turn's datagrams.
typedef struct nagare_fan_out nagare_fan_out;

nagare_fan_out *nagare_fan_out_make(int profile, int engine, int receivers, int datagrams_max);
void nagare_fan_out_free(nagare_fan_out *floor);
/// Writes one plain RTP packet for every receiver: copies the header, changes sequence number, timestamp and SSRC, and
/// encrypts the payload to the place behind that header. Starts again at the beginning of the buffer when it is full.
/// Returns the bytes written.
size_t nagare_fan_out_send(
    nagare_fan_out *floor, const uint8_t *packet, size_t header_bytes, size_t payload_bytes, uint64_t index);
/// Completes the submitted jobs of a multi-buffer engine.
void nagare_fan_out_flush(nagare_fan_out *floor);

/// Decrypts `count` packets of `length` bytes, each at the start of `stride` bytes, that `nagare_unprotect_fill`
/// encrypted; returns how many were authentic.
typedef struct nagare_unprotect nagare_unprotect;
nagare_unprotect *nagare_unprotect_make(int profile, int engine, int count);
void nagare_unprotect_free(nagare_unprotect *floor);
void nagare_unprotect_fill(nagare_unprotect *floor, const uint8_t *packet, size_t header_bytes, size_t payload_bytes);
int nagare_unprotect_run(nagare_unprotect *floor);

/// NACKs for `numbers` packets from each receiver, and the stored packets.
typedef struct nagare_retransmit nagare_retransmit;
nagare_retransmit *nagare_retransmit_make(int profile, int engine, int receivers, int numbers);
void nagare_retransmit_free(nagare_retransmit *floor);
void nagare_retransmit_fill(nagare_retransmit *floor, const uint8_t *packet, size_t header_bytes, size_t payload_bytes);
/// Decrypts the NACKs and answers them over RTX. Returns the number of retransmitted packets.
int nagare_retransmit_run(nagare_retransmit *floor);

/// The fields of a VP8 packet that forwarding needs.
typedef struct {
    uint32_t timestamp, ssrc;
    uint16_t sequence, payload_offset, payload_length, picture_id_offset, picture_id, tl0_offset;
    uint16_t level_offset, rotation_offset, delay_offset, transport_sequence;
    uint8_t payload_type, marker, starts_key_frame, tl0;
} nagare_description;
/// Returns 0 if the packet is not RTP.
int nagare_parse(const uint8_t *packet, size_t length, nagare_description *result);

/// Writes a packet for one receiver: header, one extension, and the payload with its picture id and TL0 index offset.
size_t nagare_rewrite(
    const uint8_t *packet, const nagare_description *from, uint16_t sequence_offset, uint32_t timestamp_offset,
    uint16_t picture_id_offset, uint8_t tl0_offset, uint32_t ssrc, uint8_t payload_type, uint16_t transport_sequence,
    uint8_t *to);

/// The arrivals of one peer's packets, and the missing packets.
typedef struct {
    /// Arrival times in units of 250 µs, by sequence number modulo 256.
    int64_t ticks[256];
    int64_t newest, unreported;
    int64_t missing[64];
    int missing_count;
} nagare_arrivals;
/// Records an arrival by its 16-bit sequence number, and skipped numbers as missing.
void nagare_arrived(nagare_arrivals *arrivals, uint16_t number, int64_t tick);
/// Writes transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01) about the packets since the last
/// feedback, all of which must have arrived. Returns its length.
size_t nagare_transport_feedback(nagare_arrivals *arrivals, uint8_t *to);
/// Writes a NACK (RFC 4585 §6.2.1) for the missing packets and clears their list. Returns its length.
size_t nagare_nack_missing(nagare_arrivals *arrivals, uint8_t *to);
/// Writes a NACK for the sequence numbers in `lost`, in ascending order. Returns its length.
size_t nagare_nack(uint32_t sender, uint32_t media, const uint16_t *lost, int count, uint8_t *to);
/// Writes a sender report with a source description. Returns its length.
size_t nagare_report(
    uint32_t ssrc, uint64_t ntp, uint32_t timestamp, uint32_t packets, uint32_t octets, const char *cname, uint8_t *to);

/// A bounded byte ring for one producer and one consumer. Each message follows its length.
typedef struct nagare_ring nagare_ring;
nagare_ring *nagare_ring_make(size_t capacity);
void nagare_ring_free(nagare_ring *ring);
int nagare_ring_push(nagare_ring *ring, const void *record, size_t record_bytes, const void *bytes, size_t length);
/// Copies the oldest message to `to` and removes it. Returns its length, or 0 when there is none.
size_t nagare_ring_pop(nagare_ring *ring, void *to);

/// Deadlines of `count` peers in a binary heap. Each peer is due once every `period` nanoseconds.
typedef struct nagare_timers nagare_timers;
nagare_timers *nagare_timers_make(int profile, int count, int64_t period, int64_t now);
void nagare_timers_free(nagare_timers *timers);
/// For each peer that is due, writes and encrypts a sender report and sets the next deadline. Returns their number.
int nagare_timers_turn(nagare_timers *timers, int64_t now);

#endif
