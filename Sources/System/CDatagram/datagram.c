#define _GNU_SOURCE
#include "datagram.h"

#include "address.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* SO_MEMINFO's tail is SK_MEMINFO_DROPS; older C libraries lack the option's name. */
#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif

/* Older C libraries lack these names too. */
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

/* How many queued errors one call throws away; the next readiness takes up what remains. */
#define ERROR_QUEUE_DRAIN_MAX 64

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
    int value = 0;
    socklen_t value_length = sizeof value;
    opened.knows_gso = getsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &value, &value_length) == 0;
    int on = 1;
    opened.uses_gro =
        options.uses_gro && setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on) == 0;

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

/* The one control message that comes with data: the segment size of UDP_GRO. */
union received_control {
    struct cmsghdr header;
    uint8_t bytes[CMSG_SPACE(sizeof(int))];
};

/* A length that spreads the slots' beginnings over the sets of the caches, where most datagrams end. */
#define SLOT_STAGGER 1216

struct nagare_receiver {
    struct mmsghdr messages[NAGARE_BATCH_MAX];
    struct iovec vectors[NAGARE_BATCH_MAX];
    union socket_address sources[NAGARE_BATCH_MAX];
    union received_control controls[NAGARE_BATCH_MAX];
    struct nagare_received received[NAGARE_BATCH_MAX];
    unsigned slots;
    uint8_t *block;
};

struct nagare_receiver *nagare_receiver_create(int slots, size_t slot_bytes) {
    if (slots < 1 || slots > NAGARE_BATCH_MAX) return NULL;
    struct nagare_receiver *receiver = calloc(1, sizeof *receiver);
    if (receiver == NULL) return NULL;
    size_t stride = (slot_bytes + SLOT_STAGGER + 63) / 64 * 64;
    receiver->slots = (unsigned)slots;
    receiver->block = aligned_alloc(64, stride * (size_t)slots);
    if (receiver->block == NULL) {
        free(receiver);
        return NULL;
    }
    for (int i = 0; i < slots; i++) {
        receiver->vectors[i].iov_base = receiver->block + stride * (size_t)i;
        receiver->vectors[i].iov_len = slot_bytes;
        receiver->received[i].bytes = receiver->vectors[i].iov_base;
        receiver->messages[i].msg_hdr = (struct msghdr){
            .msg_name = &receiver->sources[i],
            .msg_namelen = sizeof receiver->sources[i],
            .msg_iov = &receiver->vectors[i],
            .msg_iovlen = 1,
            .msg_control = &receiver->controls[i],
            .msg_controllen = sizeof receiver->controls[i],
        };
    }
    return receiver;
}

void nagare_receiver_destroy(struct nagare_receiver *receiver) {
    if (receiver == NULL) return;
    free(receiver->block);
    free(receiver);
}

const struct nagare_received *nagare_receiver_messages(const struct nagare_receiver *receiver) {
    return receiver->received;
}

static int32_t segment_bytes(struct msghdr *header) {
    struct cmsghdr *control = CMSG_FIRSTHDR(header);
    if (control == NULL || control->cmsg_level != IPPROTO_UDP || control->cmsg_type != UDP_GRO) return 0;
    if (control->cmsg_len < CMSG_LEN(sizeof(int))) return 0;
    int value;
    memcpy(&value, CMSG_DATA(control), sizeof value);
    return value;
}

int nagare_receive(struct nagare_receiver *receiver, int fd) {
    int result;
    do {
        result = recvmmsg(fd, receiver->messages, receiver->slots, MSG_DONTWAIT, NULL);
    } while (result < 0 && errno == EINTR);
    if (result < 0) return -errno;
    for (int i = 0; i < result; i++) {
        struct msghdr *header = &receiver->messages[i].msg_hdr;
        struct nagare_received *received = &receiver->received[i];
        received->length = receiver->messages[i].msg_len;
        received->segment_bytes = segment_bytes(header);
        received->truncated = (header->msg_flags & MSG_TRUNC) != 0;
        from_socket_address(&receiver->sources[i], &received->high, &received->low, &received->port);
        /* What the kernel has changed is set again for the next call. */
        header->msg_namelen = sizeof receiver->sources[i];
        header->msg_controllen = sizeof receiver->controls[i];
        header->msg_flags = 0;
    }
    return result;
}

/* The control messages that go with data: the segment size of UDP_SEGMENT, and the ECN bits of IP_TOS or IPV6_TCLASS. */
union sent_control {
    struct cmsghdr header;
    uint8_t bytes[CMSG_SPACE(sizeof(uint16_t)) + CMSG_SPACE(sizeof(int))];
};

static void add_control(struct msghdr *header, union sent_control *space, int level, int type, const void *value, size_t size) {
    header->msg_control = space;
    struct cmsghdr *control = (struct cmsghdr *)(space->bytes + header->msg_controllen);
    control->cmsg_level = level;
    control->cmsg_type = type;
    control->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(control), value, size);
    header->msg_controllen += CMSG_SPACE(size);
}

int nagare_send(int fd, int is_v6, const struct nagare_outgoing *outgoing, int count) {
    struct mmsghdr messages[NAGARE_BATCH_MAX];
    struct iovec vectors[NAGARE_BATCH_MAX];
    union socket_address targets[NAGARE_BATCH_MAX];
    union sent_control controls[NAGARE_BATCH_MAX];
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
        struct msghdr *header = &messages[i].msg_hdr;
        *header = (struct msghdr){
            .msg_name = &targets[i],
            .msg_namelen = length,
            .msg_iov = &vectors[i],
            .msg_iovlen = 1,
        };
        if (outgoing[i].segment_bytes != 0 && outgoing[i].length > outgoing[i].segment_bytes)
            add_control(
                header, &controls[i], IPPROTO_UDP, UDP_SEGMENT, &outgoing[i].segment_bytes, sizeof(uint16_t));
        if (outgoing[i].ecn != 0) {
            int field = outgoing[i].ecn;
            /* An IPv6 socket sends to IPv4 by the IPv4 stack, which takes its own option. */
            int to_v4 = is_v4(outgoing[i].high, outgoing[i].low);
            add_control(
                header, &controls[i], to_v4 ? IPPROTO_IP : IPPROTO_IPV6, to_v4 ? IP_TOS : IPV6_TCLASS, &field,
                sizeof field);
        }
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
