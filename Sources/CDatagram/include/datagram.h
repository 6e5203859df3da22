#ifndef NAGARE_DATAGRAM_H
#define NAGARE_DATAGRAM_H

#include <stddef.h>
#include <stdint.h>

/* UDP sockets by the batch. Everything that needs a kernel structure with a variable-length tail (msghdr, sockaddr,
 * control messages) is built here, so that the caller sees plain integers. Nothing here allocates or keeps state. */

/* Datagrams that one receive or send call carries at most. */
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
};

/* fd is -1 on failure; then error is the errno and step what failed. Buffer sizes are what the kernel granted. */
struct nagare_opened {
    int32_t fd;
    int32_t error;
    int32_t step;
    int32_t receive_buffer_bytes;
    int32_t send_buffer_bytes;
    struct nagare_address local;
};

/* Opens a non-blocking UDP socket bound to the address: AF_INET for IPv4, AF_INET6 with IPV6_V6ONLY off otherwise. */
struct nagare_opened nagare_open(struct nagare_address address, struct nagare_socket_options options);

/* One datagram that arrived, in its slot of the caller's block. */
struct nagare_received {
    uint64_t high;
    uint64_t low;
    uint32_t length;
    uint16_t port;
    /* Of several datagrams that the kernel coalesced, each but the last has this length; 0: it is one datagram. */
    uint16_t segment_bytes;
    /* Nonzero: it was longer than its slot, and its tail is lost. */
    uint32_t truncated;
};

/* Reads up to count datagrams, datagram i to block + i * stride, at most slot_bytes of it.
 * Returns how many were read, or the negative errno. */
int nagare_receive(
    int fd, void *block, size_t stride, size_t slot_bytes, struct nagare_received *received, int count);

/* One datagram to send. */
struct nagare_outgoing {
    const void *bytes;
    uint32_t length;
    uint16_t port;
    /* To have the kernel split bytes into datagrams of this length; must be 0: send it as one. */
    uint16_t segment_bytes;
    uint64_t high;
    uint64_t low;
};

/* Sends up to count datagrams in order out of a socket of the address family that is_v6 tells.
 * Returns how many left, at least 1, or the negative errno of the first. */
int nagare_send(int fd, int is_v6, const struct nagare_outgoing *outgoing, int count);

/* Takes the socket's pending error and empties its error queue, so that polling it reports data again.
 * Returns the pending errno, or 0. */
int nagare_clear_errors(int fd);

/* Datagrams that the kernel dropped at this socket since it was opened, mostly for want of receive buffer. */
uint32_t nagare_kernel_drops(int fd);

/* Names the calling thread, for debuggers and top; the kernel takes 15 bytes, the rest is cut off. */
void nagare_name_thread(const char *name);

#endif
