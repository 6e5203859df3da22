#ifndef NAGARE_DATAGRAM_H
#define NAGARE_DATAGRAM_H

#include <stddef.h>
#include <stdint.h>

/* UDP sockets by the batch. Everything that needs a kernel structure with a variable-length tail (msghdr, sockaddr,
 * control messages) is built here, so that the caller sees plain integers. Only a receiver is allocated and keeps
 * anything. */

/* Messages that one receive or send call carries at most. */
#define NAGARE_BATCH_MAX 64

/* An address as two big-endian halves in host integers; IPv4 is ::ffff:a.b.c.d. The port is in host order. */
struct nagare_address {
    uint64_t high;
    uint64_t low;
    uint16_t port;
};

enum nagare_step { NAGARE_STEP_SOCKET = 1, NAGARE_STEP_OPTIONS = 2, NAGARE_STEP_BIND = 3 };

struct nagare_socket_options {
    /* As the caller counts them; the kernel books twice as much for its own overhead. */
    int32_t receive_buffer_bytes;
    int32_t send_buffer_bytes;
    /* Try to exceed the kernel's limit, which needs CAP_NET_ADMIN. */
    int32_t force_buffers;
    /* Whether the kernel may hand over several datagrams of one sender as one message (UDP_GRO). */
    int32_t uses_gro;
};

/* fd is -1 on failure; then error is the errno and step what failed. Buffer sizes are what the kernel granted. */
struct nagare_opened {
    int32_t fd;
    int32_t error;
    int32_t step;
    int32_t receive_buffer_bytes;
    int32_t send_buffer_bytes;
    /* Nonzero: the kernel knows UDP_SEGMENT. One that does not would send a run as one fragmented datagram. */
    int32_t knows_gso;
    /* Nonzero: UDP_GRO was asked for and is on. */
    int32_t uses_gro;
    struct nagare_address local;
};

/* Opens a non-blocking UDP socket bound to the address: AF_INET for IPv4, AF_INET6 with IPV6_V6ONLY off otherwise. */
struct nagare_opened nagare_open(struct nagare_address address, struct nagare_socket_options options);

/* One message that arrived, in its slot. */
struct nagare_received {
    void *bytes;
    uint64_t high;
    uint64_t low;
    uint32_t length;
    /* What the kernel said: of several datagrams that it coalesced, each but the last has this length. 0: it said
     * nothing, it is one datagram. */
    int32_t segment_bytes;
    uint16_t port;
    /* Nonzero: it was longer than its slot, and its tail is lost. */
    uint16_t truncated;
};

/* Slots to read into, with the kernel's structures about them made once. */
struct nagare_receiver;

/* Makes `slots` slots (1...NAGARE_BATCH_MAX) of slot_bytes. NULL when memory is out. */
struct nagare_receiver *nagare_receiver_create(int slots, size_t slot_bytes);
void nagare_receiver_destroy(struct nagare_receiver *receiver);

/* What the last call of nagare_receive read; as many elements as it returned. The address never changes. */
const struct nagare_received *nagare_receiver_messages(const struct nagare_receiver *receiver);

/* Reads as many messages as there are slots at most. Returns how many were read, or the negative errno. */
int nagare_receive(struct nagare_receiver *receiver, int fd);

/* One message to send. */
struct nagare_outgoing {
    const void *bytes;
    uint64_t high;
    uint64_t low;
    uint32_t length;
    uint16_t port;
    /* Where length is more than this, the kernel splits bytes into datagrams of this length (UDP_SEGMENT). */
    uint16_t segment_bytes;
    /* The datagrams that it is; for the caller. */
    uint16_t segments;
    /* The two ECN bits of the IP headers. */
    uint16_t ecn;
};

/* Sends up to count messages in order out of a socket of the address family that is_v6 tells.
 * Returns how many left, at least 1, or the negative errno of the first. */
int nagare_send(int fd, int is_v6, const struct nagare_outgoing *outgoing, int count);

/* Takes the socket's pending error and empties its error queue, so that polling it reports data again.
 * Returns the pending errno, or 0. */
int nagare_clear_errors(int fd);

/* Datagrams that the kernel dropped at this socket since it was opened, mostly for want of receive buffer. */
uint32_t nagare_kernel_drops(int fd);

#endif
