#ifndef NAGARE_STREAM_H
#define NAGARE_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "datagram.h"

/* TCP for media: sockets that never block, with small buffers, so that nothing waits where it cannot be dropped. */

/* Opens a listening socket: AF_INET for IPv4, AF_INET6 with IPV6_V6ONLY off otherwise. Of the result only fd, error, step
 * and local are set. */
struct nagare_opened nagare_listen(struct nagare_address address, int backlog);

/* fd is -1 on failure; then error is the errno. */
struct nagare_accepted {
    int32_t fd;
    int32_t error;
    struct nagare_address remote;
};

/* Accepts one connection, and sets its options. send_buffer_bytes: what the kernel holds that is not acknowledged yet. */
struct nagare_accepted nagare_accept(int fd, int32_t send_buffer_bytes);

/* Sets the options of an accepted connection, and looks up the other side. The descriptor stays the caller's: fd is the
 * argument, or -1 on failure. */
struct nagare_accepted nagare_adopt(int fd, int32_t send_buffer_bytes);

/* Reads up to length bytes. Returns how many, 0 at the end of the stream, or the negative errno. */
int64_t nagare_stream_read(int fd, void *bytes, size_t length);

/* Writes up to length bytes. Returns how many, or the negative errno. Never raises SIGPIPE. */
int64_t nagare_stream_write(int fd, const void *bytes, size_t length);

#endif
