#define _GNU_SOURCE
#include "floor.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

struct receiver {
    int slots;
    uint8_t *bytes;
    struct mmsghdr messages[MESSAGES_MAX];
    struct iovec vectors[MESSAGES_MAX];
    struct sockaddr_in sources[MESSAGES_MAX];
    char control[MESSAGES_MAX][CMSG_SPACE(sizeof(int))];
};

int64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

_Noreturn void die(const char *what) {
    fprintf(stderr, "error: %s: %s\n", what, strerror(errno));
    exit(1);
}

int open_socket(const struct sockaddr_in *address, int buffer_bytes, int uses_gro) {
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0) die("socket");
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof buffer_bytes) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof buffer_bytes) != 0)
        die("setsockopt");
    if (uses_gro && setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on) != 0) die("UDP_GRO");
    if (bind(fd, (const struct sockaddr *)address, sizeof *address) != 0) die("bind");
    return fd;
}

struct receiver *receiver_create(int slots) {
    struct receiver *receiver = calloc(1, sizeof *receiver);
    if (receiver == NULL) die("memory");
    receiver->slots = slots;
    receiver->bytes = malloc((size_t)slots * SLOT_BYTES);
    if (receiver->bytes == NULL) die("memory");
    for (int i = 0; i < slots; i++) {
        receiver->vectors[i] = (struct iovec){receiver->bytes + (size_t)i * SLOT_BYTES, SLOT_BYTES};
        struct msghdr *header = &receiver->messages[i].msg_hdr;
        header->msg_iov = &receiver->vectors[i];
        header->msg_iovlen = 1;
        header->msg_name = &receiver->sources[i];
        header->msg_control = receiver->control[i];
    }
    return receiver;
}

int receiver_read(struct receiver *receiver, int fd) {
    for (int i = 0; i < receiver->slots; i++) {
        receiver->messages[i].msg_hdr.msg_namelen = sizeof receiver->sources[i];
        receiver->messages[i].msg_hdr.msg_controllen = sizeof receiver->control[i];
    }
    int count = recvmmsg(fd, receiver->messages, (unsigned)receiver->slots, MSG_DONTWAIT, NULL);
    return count > 0 ? count : 0;
}

uint8_t *receiver_bytes(struct receiver *receiver, int index, int *bytes, int *segment_bytes) {
    struct mmsghdr *message = &receiver->messages[index];
    *bytes = (int)message->msg_len;
    *segment_bytes = *bytes;
    struct cmsghdr *control = CMSG_FIRSTHDR(&message->msg_hdr);
    if (control && control->cmsg_level == IPPROTO_UDP && control->cmsg_type == UDP_GRO) {
        int value;
        memcpy(&value, CMSG_DATA(control), sizeof value);
        if (value > 0) *segment_bytes = value;
    }
    return receiver->vectors[index].iov_base;
}

const struct sockaddr_in *receiver_source(struct receiver *receiver, int index) { return &receiver->sources[index]; }
