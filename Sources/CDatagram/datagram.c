#define _GNU_SOURCE
#include "datagram.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* SO_MEMINFO's tail is SK_MEMINFO_DROPS; older C libraries lack the option's name. */
#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif

/* How many queued errors one call throws away; the next readiness takes up what remains. */
#define ERROR_QUEUE_DRAIN_MAX 64

static const uint64_t v4_prefix = 0x0000FFFF00000000ULL;

union socket_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static uint64_t load_big_endian(const uint8_t *bytes) {
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) value = value << 8 | bytes[i];
    return value;
}

static void store_big_endian(uint8_t *bytes, uint64_t value) {
    for (int i = 7; i >= 0; i--) {
        bytes[i] = (uint8_t)value;
        value >>= 8;
    }
}

static int is_v4(uint64_t high, uint64_t low) { return high == 0 && low >> 32 == 0xFFFF; }

/* Returns the length written, or 0 when a socket of that family cannot carry the address. */
static socklen_t to_socket_address(
    int is_v6, uint64_t high, uint64_t low, uint16_t port, union socket_address *address) {
    memset(address, 0, sizeof *address);
    if (is_v6) {
        address->v6.sin6_family = AF_INET6;
        address->v6.sin6_port = htons(port);
        store_big_endian(address->v6.sin6_addr.s6_addr, high);
        store_big_endian(address->v6.sin6_addr.s6_addr + 8, low);
        return sizeof address->v6;
    }
    if (!is_v4(high, low)) return 0;
    address->v4.sin_family = AF_INET;
    address->v4.sin_port = htons(port);
    address->v4.sin_addr.s_addr = htonl((uint32_t)low);
    return sizeof address->v4;
}

static void from_socket_address(
    const union socket_address *address, uint64_t *high, uint64_t *low, uint16_t *port) {
    if (address->any.sa_family == AF_INET6) {
        *high = load_big_endian(address->v6.sin6_addr.s6_addr);
        *low = load_big_endian(address->v6.sin6_addr.s6_addr + 8);
        *port = ntohs(address->v6.sin6_port);
    } else {
        *high = 0;
        *low = v4_prefix | ntohl(address->v4.sin_addr.s_addr);
        *port = ntohs(address->v4.sin_port);
    }
}

/* Returns what the kernel granted, in the caller's count: it reports the double that it books. */
static int32_t size_buffer(int fd, int option, int force_option, int32_t bytes, int force) {
    int value = bytes;
    if (bytes > 0 && !(force && setsockopt(fd, SOL_SOCKET, force_option, &value, sizeof value) == 0))
        (void)setsockopt(fd, SOL_SOCKET, option, &value, sizeof value);
    socklen_t length = sizeof value;
    if (getsockopt(fd, SOL_SOCKET, option, &value, &length) != 0) return 0;
    return value / 2;
}

struct nagare_opened nagare_open(struct nagare_address address, struct nagare_socket_options options) {
    struct nagare_opened opened = {.fd = -1, .step = NAGARE_STEP_SOCKET};
    int is_v6 = !is_v4(address.high, address.low);
    int fd = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP);
    if (fd < 0) {
        opened.error = errno;
        return opened;
    }
    opened.step = NAGARE_STEP_OPTIONS;
    int off = 0;
    if (is_v6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0) goto failed;
    opened.receive_buffer_bytes =
        size_buffer(fd, SO_RCVBUF, SO_RCVBUFFORCE, options.receive_buffer_bytes, options.force_buffers);
    opened.send_buffer_bytes =
        size_buffer(fd, SO_SNDBUF, SO_SNDBUFFORCE, options.send_buffer_bytes, options.force_buffers);

    opened.step = NAGARE_STEP_BIND;
    union socket_address local;
    socklen_t length = to_socket_address(is_v6, address.high, address.low, address.port, &local);
    if (bind(fd, &local.any, length) != 0) goto failed;
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

int nagare_receive(
    int fd, void *block, size_t stride, size_t slot_bytes, struct nagare_received *received, int count) {
    struct mmsghdr messages[NAGARE_BATCH_MAX];
    struct iovec vectors[NAGARE_BATCH_MAX];
    union socket_address sources[NAGARE_BATCH_MAX];
    if (count > NAGARE_BATCH_MAX) count = NAGARE_BATCH_MAX;
    for (int i = 0; i < count; i++) {
        vectors[i].iov_base = (uint8_t *)block + (size_t)i * stride;
        vectors[i].iov_len = slot_bytes;
        messages[i].msg_hdr = (struct msghdr){
            .msg_name = &sources[i],
            .msg_namelen = sizeof sources[i],
            .msg_iov = &vectors[i],
            .msg_iovlen = 1,
        };
    }
    int result;
    do {
        result = recvmmsg(fd, messages, (unsigned)count, MSG_DONTWAIT, NULL);
    } while (result < 0 && errno == EINTR);
    if (result < 0) return -errno;
    for (int i = 0; i < result; i++) {
        received[i].length = messages[i].msg_len;
        received[i].segment_bytes = 0;
        received[i].truncated = (messages[i].msg_hdr.msg_flags & MSG_TRUNC) != 0;
        from_socket_address(&sources[i], &received[i].high, &received[i].low, &received[i].port);
    }
    return result;
}

int nagare_send(int fd, int is_v6, const struct nagare_outgoing *outgoing, int count) {
    struct mmsghdr messages[NAGARE_BATCH_MAX];
    struct iovec vectors[NAGARE_BATCH_MAX];
    union socket_address targets[NAGARE_BATCH_MAX];
    if (count > NAGARE_BATCH_MAX) count = NAGARE_BATCH_MAX;
    for (int i = 0; i < count; i++) {
        socklen_t length =
            to_socket_address(is_v6, outgoing[i].high, outgoing[i].low, outgoing[i].port, &targets[i]);
        if (length == 0) {
            if (i == 0) return -EAFNOSUPPORT;
            count = i;
            break;
        }
        vectors[i].iov_base = (void *)outgoing[i].bytes;
        vectors[i].iov_len = outgoing[i].length;
        messages[i].msg_hdr = (struct msghdr){
            .msg_name = &targets[i],
            .msg_namelen = length,
            .msg_iov = &vectors[i],
            .msg_iovlen = 1,
        };
    }
    int result;
    do {
        result = sendmmsg(fd, messages, (unsigned)count, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (result < 0 && errno == EINTR);
    return result < 0 ? -errno : result;
}

int nagare_clear_errors(int fd) {
    int pending = 0;
    socklen_t length = sizeof pending;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &pending, &length) != 0) pending = errno;
    for (int i = 0; i < ERROR_QUEUE_DRAIN_MAX; i++) {
        uint8_t byte, control[512];
        struct iovec vector = {.iov_base = &byte, .iov_len = 1};
        struct msghdr message = {
            .msg_iov = &vector,
            .msg_iovlen = 1,
            .msg_control = control,
            .msg_controllen = sizeof control,
        };
        if (recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) break;
    }
    return pending;
}

uint32_t nagare_kernel_drops(int fd) {
    uint32_t values[SK_MEMINFO_VARS] = {0};
    socklen_t length = sizeof values;
    if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, values, &length) != 0) return 0;
    return length > SK_MEMINFO_DROPS * sizeof values[0] ? values[SK_MEMINFO_DROPS] : 0;
}

void nagare_name_thread(const char *name) {
    char cut[16];
    strncpy(cut, name, sizeof cut - 1);
    cut[sizeof cut - 1] = 0;
    (void)pthread_setname_np(pthread_self(), cut);
}
