#define _GNU_SOURCE
#include "stream.h"

#include "address.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <unistd.h>

/* Older C libraries lack the option's name. */
#ifndef TCP_NOTSENT_LOWAT
#define TCP_NOTSENT_LOWAT 25
#endif

/* A stream counts as writable again when no more than this waits in the kernel unsent. */
#define NOTSENT_BYTES 16384

struct nagare_opened nagare_listen(struct nagare_address address, int backlog) {
    struct nagare_opened opened = {.fd = -1, .step = NAGARE_STEP_SOCKET};
    int is_v6 = !is_v4(address.high, address.low);
    int fd = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    if (fd < 0) {
        opened.error = errno;
        return opened;
    }
    opened.step = NAGARE_STEP_OPTIONS;
    int off = 0;
    if (is_v6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0) goto failed;
    /* A port whose last connections are still in TIME_WAIT can be opened again. */
    int on = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) goto failed;

    opened.step = NAGARE_STEP_BIND;
    union socket_address local;
    socklen_t length = to_socket_address(is_v6, address.high, address.low, address.port, &local);
    if (bind(fd, &local.any, length) != 0 || listen(fd, backlog) != 0) goto failed;
    length = sizeof local;
    if (getsockname(fd, &local.any, &length) != 0) goto failed;
    from_socket_address(&local, &opened.local.high, &opened.local.low, &opened.local.port);
    opened.fd = fd;
    return opened;

failed:
    opened.error = errno;
    close(fd);
    return opened;
}

static void set_options(int fd, int32_t send_buffer_bytes) {
    /* Without one of these options the connection works, with more delay. */
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_buffer_bytes, sizeof send_buffer_bytes);
    int unsent = NOTSENT_BYTES;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
}

struct nagare_accepted nagare_accept(int fd, int32_t send_buffer_bytes) {
    struct nagare_accepted accepted = {.fd = -1};
    union socket_address remote;
    memset(&remote, 0, sizeof remote);
    socklen_t length = sizeof remote;
    do {
        accepted.fd = accept4(fd, &remote.any, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    } while (accepted.fd < 0 && errno == EINTR);
    if (accepted.fd < 0) {
        accepted.error = errno;
        return accepted;
    }
    set_options(accepted.fd, send_buffer_bytes);
    from_socket_address(&remote, &accepted.remote.high, &accepted.remote.low, &accepted.remote.port);
    return accepted;
}

struct nagare_accepted nagare_adopt(int fd, int32_t send_buffer_bytes) {
    struct nagare_accepted accepted = {.fd = -1};
    union socket_address remote;
    memset(&remote, 0, sizeof remote);
    socklen_t length = sizeof remote;
    if (getpeername(fd, &remote.any, &length) != 0) {
        accepted.error = errno;
        return accepted;
    }
    if (remote.any.sa_family != AF_INET && remote.any.sa_family != AF_INET6) {
        accepted.error = EAFNOSUPPORT;
        return accepted;
    }
    set_options(fd, send_buffer_bytes);
    accepted.fd = fd;
    from_socket_address(&remote, &accepted.remote.high, &accepted.remote.low, &accepted.remote.port);
    return accepted;
}

int64_t nagare_stream_read(int fd, void *bytes, size_t length) {
    ssize_t count;
    do {
        count = recv(fd, bytes, length, MSG_DONTWAIT);
    } while (count < 0 && errno == EINTR);
    return count < 0 ? -errno : count;
}

int64_t nagare_stream_write(int fd, const void *bytes, size_t length) {
    ssize_t count;
    do {
        count = send(fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (count < 0 && errno == EINTR);
    return count < 0 ? -errno : count;
}
