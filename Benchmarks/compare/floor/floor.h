/* The floor: the minimum cost of forwarding. A bare loop decrypts each packet of a source once, encrypts it for every
 * destination and sends it. It has no sessions, feedback, statistics, history or limits. */
#ifndef FLOOR_H
#define FLOOR_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum { HEADER_BYTES = 12, TAG_BYTES_MAX = 16, PACKET_BYTES_MAX = 1500, SLOT_BYTES = 65536, MESSAGES_MAX = 64 };
/* Bounds of one message: UDP_MAX_SEGMENTS of older kernels, and less than the longest datagram. */
enum { SEGMENTS_MAX = 64, RUN_BYTES_MAX = 65000 };
enum { VIEWERS_MAX = 4096, STREAMS_MAX = 256 };

enum profile { PROFILE_GCM, PROFILE_CM };
enum crypto { CRYPTO_OPENSSL, CRYPTO_IPSEC_MB };

struct options {
    enum profile profile;
    enum crypto crypto;
    /* Whether a run of packets to one destination is sent as one message (UDP GSO). */
    int uses_gso;
    /* Whether sockets receive several packets as one message (UDP GRO). */
    int uses_gro;
    struct sockaddr_in address;
    int streams;
    int viewers;
    int video_kbps;
    int fps;
    int audio;
    double seconds;
};

/* The first datagram of a socket: "I am viewer 7" or "I am source 2". */
struct hello {
    uint32_t magic;
    uint32_t is_source;
    uint32_t number;
};
#define HELLO_MAGIC 0x6F6C6C65u

/* The first bytes of a payload. */
struct stamp {
    uint32_t magic;
    uint32_t number;
    int64_t sent_at;
};
#define STAMP_MAGIC 0x6D617473u

/* One direction's keys, for the packets of one peer. */
struct key;
struct key *key_create(const struct options *options, uint32_t number);

/* Encrypts one packet with its header at packet and its payload elsewhere. With CM of ipsec-mb the packet may be complete
 * only after crypto_flush. Returns the length of the encrypted packet. */
int key_protect(struct key *key, uint8_t *packet, const uint8_t *payload, int payload_bytes);
/* Decrypts in place. Returns the payload's length, or -1. */
int key_unprotect(struct key *key, uint8_t *packet, int bytes);
/* Reads the first count bytes of a packet's payload without verifying it. */
void key_peek(struct key *key, const uint8_t *packet, uint8_t *out, int count);
void crypto_flush(void);
int tag_bytes(enum profile profile);

int64_t now_ns(void);
_Noreturn void die(const char *what);
/* A non-blocking UDP socket of this machine. */
int open_socket(const struct sockaddr_in *address, int buffer_bytes, int uses_gro);

/* Buffers for recvmmsg. */
struct receiver;
struct receiver *receiver_create(int slots);
/* Returns the number of messages read. */
int receiver_read(struct receiver *receiver, int fd);
uint8_t *receiver_bytes(struct receiver *receiver, int index, int *bytes, int *segment_bytes);
const struct sockaddr_in *receiver_source(struct receiver *receiver, int index);

int serve(const struct options *options);
int feed(const struct options *options);

#endif
