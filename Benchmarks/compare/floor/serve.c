/* The measured process: one socket, one thread. */
#define _GNU_SOURCE
#include "floor.h"

#include <errno.h>
#include <netinet/udp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

enum { ARENA_BYTES = 1 << 18, PENDING_MAX = 1024, SOCKET_BUFFER_BYTES = 4 << 20, SLOTS = 16 };

struct viewer {
    struct sockaddr_in address;
    struct key *key;
};

/* A packet of this turn, decrypted in its slot. */
struct pending {
    const uint8_t *packet;
    int payload_bytes;
};

static const struct options *options;
static int fd;
static struct viewer viewers[VIEWERS_MAX];
static struct key *sources[STREAMS_MAX];
static struct pending pending[STREAMS_MAX][PENDING_MAX];
static int pending_count[STREAMS_MAX];

static uint8_t arena[ARENA_BYTES];
static size_t arena_used;
static struct mmsghdr messages[MESSAGES_MAX];
static struct iovec vectors[MESSAGES_MAX];
static union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(uint16_t))];
} controls[MESSAGES_MAX];
static int segment_bytes[MESSAGES_MAX], segment_count[MESSAGES_MAX];
static int message_count;

static void flush(void) {
    crypto_flush();
    for (int i = 0; i < message_count; i++) {
        struct msghdr *header = &messages[i].msg_hdr;
        header->msg_control = NULL;
        header->msg_controllen = 0;
        if (segment_count[i] < 2) continue;
        header->msg_control = &controls[i];
        header->msg_controllen = sizeof controls[i];
        struct cmsghdr *control = &controls[i].header;
        control->cmsg_level = SOL_UDP;
        control->cmsg_type = UDP_SEGMENT;
        control->cmsg_len = CMSG_LEN(sizeof(uint16_t));
        uint16_t value = (uint16_t)segment_bytes[i];
        memcpy(CMSG_DATA(control), &value, sizeof value);
    }
    for (int next = 0; next < message_count;) {
        int sent = sendmmsg(fd, messages + next, (unsigned)(message_count - next), 0);
        if (sent > 0)
            next += sent;
        else if (errno == EAGAIN || errno == EINTR)
            continue;
        else if (errno == ECONNREFUSED)
            next += 1; /* The viewer's socket is closed. */
        else
            die("sendmmsg");
    }
    message_count = 0;
    arena_used = 0;
}

/* Appends the bytes at the end of the arena as the next packet to the viewer. */
static void append(struct viewer *viewer, int bytes, int begins_run) {
    uint8_t *packet = arena + arena_used;
    arena_used += (size_t)bytes;
    if (!begins_run) {
        int last = message_count - 1;
        size_t run_bytes = vectors[last].iov_len;
        int is_whole = run_bytes == (size_t)segment_bytes[last] * (size_t)segment_count[last];
        if (is_whole && bytes <= segment_bytes[last] && segment_count[last] < SEGMENTS_MAX &&
            run_bytes + (size_t)bytes <= RUN_BYTES_MAX) {
            vectors[last].iov_len += (size_t)bytes;
            segment_count[last]++;
            return;
        }
    }
    int index = message_count++;
    vectors[index] = (struct iovec){packet, (size_t)bytes};
    segment_bytes[index] = bytes;
    segment_count[index] = 1;
    messages[index].msg_hdr = (struct msghdr){
        .msg_name = &viewer->address,
        .msg_namelen = sizeof viewer->address,
        .msg_iov = &vectors[index],
        .msg_iovlen = 1,
    };
}

static void forward(int stream) {
    for (int number = stream; number < options->viewers; number += options->streams) {
        struct viewer *viewer = &viewers[number];
        if (viewer->key == NULL) continue;
        int begins_run = 1;
        for (int i = 0; i < pending_count[stream]; i++) {
            if (message_count == MESSAGES_MAX || arena_used + PACKET_BYTES_MAX > ARENA_BYTES) {
                flush();
                begins_run = 1;
            }
            uint8_t *packet = arena + arena_used;
            memcpy(packet, pending[stream][i].packet, HEADER_BYTES);
            /* Each viewer's stream has an SSRC of its own. */
            packet[8] ^= 0x40;
            int bytes =
                key_protect(viewer->key, packet, pending[stream][i].packet + HEADER_BYTES, pending[stream][i].payload_bytes);
            append(viewer, bytes, begins_run || !options->uses_gso);
            begins_run = 0;
        }
    }
    pending_count[stream] = 0;
}

static void greet(const struct hello *hello, const struct sockaddr_in *from) {
    if (hello->magic != HELLO_MAGIC) return;
    if (hello->is_source) {
        if (hello->number < STREAMS_MAX && sources[hello->number] == NULL)
            sources[hello->number] = key_create(options, VIEWERS_MAX + hello->number);
    } else if (hello->number < VIEWERS_MAX) {
        viewers[hello->number].address = *from;
        if (viewers[hello->number].key == NULL) viewers[hello->number].key = key_create(options, hello->number);
    }
}

static void take(uint8_t *packet, int bytes, const struct sockaddr_in *from) {
    if (bytes < HEADER_BYTES) return;
    if (packet[0] >> 6 != 2) {
        struct hello hello;
        memcpy(&hello, packet, sizeof hello);
        greet(&hello, from);
        return;
    }
    int stream = packet[11] >> 1;
    if (sources[stream] == NULL || pending_count[stream] == PENDING_MAX) return;
    int payload = key_unprotect(sources[stream], packet, bytes);
    if (payload < 0) die("a packet did not verify");
    pending[stream][pending_count[stream]++] = (struct pending){packet, payload};
}

int serve(const struct options *given) {
    options = given;
    fd = open_socket(&options->address, SOCKET_BUFFER_BYTES, options->uses_gro);
    int poll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    if (poll < 0 || epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) != 0) die("epoll");
    struct receiver *receiver = receiver_create(SLOTS);
    puts("ready");
    fflush(stdout);
    for (;;) {
        if (epoll_wait(poll, &event, 1, -1) < 0 && errno != EINTR) die("epoll_wait");
        int count = receiver_read(receiver, fd);
        for (int i = 0; i < count; i++) {
            int bytes, segment;
            uint8_t *first = receiver_bytes(receiver, i, &bytes, &segment);
            for (int offset = 0; offset < bytes; offset += segment) {
                int left = bytes - offset;
                take(first + offset, left < segment ? left : segment, receiver_source(receiver, i));
            }
        }
        for (int stream = 0; stream < options->streams; stream++)
            if (pending_count[stream] > 0) forward(stream);
        flush();
    }
}
