/* The floor: the least that forwarding costs. A bare loop that decrypts what a source sends once, encrypts it for every
 * destination and sends it, with nothing else in it: no sessions, feedback, statistics, history or limits. */
#ifndef FLOOR_H
#define FLOOR_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum { HEADER_BYTES = 12, TAG_BYTES_MAX = 16, PACKET_BYTES_MAX = 1500, SLOT_BYTES = 65536, MESSAGES_MAX = 64 };
/* Segments of one message: the kernel's UDP_MAX_SEGMENTS of older versions, and less than its longest datagram. */
enum { SEGMENTS_MAX = 64, RUN_BYTES_MAX = 65000 };
enum { VIEWERS_MAX = 4096, STREAMS_MAX = 256 };

enum profile { PROFILE_GCM, PROFILE_CM };
enum crypto { CRYPTO_OPENSSL, CRYPTO_IPSEC_MB };

struct options {
    enum profile profile;
    enum crypto crypto;
    /* One message for a run of packets to one destination (UDP GSO), or a message a packet. */
    int uses_gso;
    /* Whether sockets take several packets as one message (UDP GRO). */
    int uses_gro;
    struct sockaddr_in address;
    int streams;
    int viewers;
    int video_kbps;
    int fps;
    int audio;
    double seconds;
};

/* What a socket tells the server at the beginning: "I am viewer 7" or "I am source 2". */
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

/* Encrypts one packet: the header stands at packet, the payload is read from elsewhere. With ipsec-mb's CM the end of it
 * may wait for crypto_flush. Returns the protected length, which is exact at once. */
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

/* Slots for recvmmsg, made once. */
struct receiver;
struct receiver *receiver_create(int slots);
/* Returns the messages read, 0 when there are none. */
int receiver_read(struct receiver *receiver, int fd);
uint8_t *receiver_bytes(struct receiver *receiver, int index, int *bytes, int *segment_bytes);
const struct sockaddr_in *receiver_source(struct receiver *receiver, int index);

int serve(const struct options *options);
int feed(const struct options *options);

#endif
