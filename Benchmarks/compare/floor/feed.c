/* The floor's load generator, like `nagare load` for the other servers. It sends the same media in the same bursts, receives
 * it at one socket per viewer, and measures loss and latency. One thread. */
#define _GNU_SOURCE
#include "floor.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

/* The same as in SyntheticVideo and SyntheticAudio. */
enum { VIDEO_PAYLOAD_BYTES = 1100, AUDIO_PAYLOAD_BYTES = 120, AUDIO_MS = 20 };
enum { SOCKET_BUFFER_BYTES = 1 << 20, LATENCY_US_MAX = 1000000, SLOTS = 8 };
static const int64_t second_ns = 1000000000;

struct source {
    int fd;
    struct key *key;
    int64_t next_video, next_audio;
    uint16_t sequence[2];
};

static const struct options *options;
static struct source sources[STREAMS_MAX];
static int viewer_fds[VIEWERS_MAX];
static struct key *viewer_keys[VIEWERS_MAX];
static uint64_t sent_to_viewers, received, measured_received;
static uint32_t latencies[LATENCY_US_MAX + 1];
static int is_measuring;

static int build(struct source *source, int stream, int is_audio, int payload_bytes, uint8_t *packet) {
    uint8_t payload[PACKET_BYTES_MAX];
    struct stamp stamp = {STAMP_MAGIC, source->sequence[is_audio], now_ns()};
    memset(payload, 0x5A, (size_t)payload_bytes);
    memcpy(payload, &stamp, sizeof stamp);
    uint16_t sequence = source->sequence[is_audio]++;
    memset(packet, 0, HEADER_BYTES);
    packet[0] = 0x80;
    packet[1] = is_audio ? 111 : 96;
    packet[2] = (uint8_t)(sequence >> 8);
    packet[3] = (uint8_t)sequence;
    packet[11] = (uint8_t)(stream << 1 | is_audio);
    sent_to_viewers += (uint64_t)((options->viewers - stream + options->streams - 1) / options->streams);
    return key_protect(source->key, packet, payload, payload_bytes);
}

/* Sends the bytes in packets of segment bytes. */
static void send_burst(int fd, uint8_t *bytes, size_t count, int segment) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(uint16_t))];
    } control = {0};
    struct iovec vector = {bytes, count};
    struct msghdr message = {
        .msg_name = (void *)&options->address,
        .msg_namelen = sizeof options->address,
        .msg_iov = &vector,
        .msg_iovlen = 1,
    };
    if (options->uses_gso && count > (size_t)segment) {
        uint16_t value = (uint16_t)segment;
        control.header = (struct cmsghdr){
            .cmsg_level = SOL_UDP, .cmsg_type = UDP_SEGMENT, .cmsg_len = CMSG_LEN(sizeof value)};
        memcpy(CMSG_DATA(&control.header), &value, sizeof value);
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        if (sendmsg(fd, &message, 0) < 0) die("sendmsg");
        return;
    }
    for (size_t offset = 0; offset < count; offset += (size_t)segment) {
        size_t left = count - offset;
        vector = (struct iovec){bytes + offset, left < (size_t)segment ? left : (size_t)segment};
        if (sendmsg(fd, &message, 0) < 0) die("sendmsg");
    }
}

static void make_video(struct source *source, int stream) {
    static uint8_t burst[RUN_BYTES_MAX];
    size_t used = 0;
    int segment = 0;
    for (int left = options->video_kbps * 125 / options->fps; left > 0; left -= VIDEO_PAYLOAD_BYTES) {
        int payload = left < VIDEO_PAYLOAD_BYTES ? left : VIDEO_PAYLOAD_BYTES;
        if (payload < (int)sizeof(struct stamp)) payload = sizeof(struct stamp);
        if (used + PACKET_BYTES_MAX > sizeof burst) break;
        int bytes = build(source, stream, 0, payload, burst + used);
        if (segment == 0) segment = bytes;
        used += (size_t)bytes;
    }
    crypto_flush();
    send_burst(source->fd, burst, used, segment);
}

static void make_audio(struct source *source, int stream) {
    uint8_t packet[PACKET_BYTES_MAX];
    int bytes = build(source, stream, 1, AUDIO_PAYLOAD_BYTES, packet);
    crypto_flush();
    send_burst(source->fd, packet, (size_t)bytes, bytes);
}

/* Sends the media that is due. Returns the time of the next. */
static int64_t make_media(int64_t now) {
    int64_t next = INT64_MAX;
    for (int i = 0; i < options->streams; i++) {
        struct source *source = &sources[i];
        if (options->video_kbps > 0 && source->next_video <= now) {
            make_video(source, i);
            source->next_video += second_ns / options->fps;
        }
        if (options->audio && source->next_audio <= now) {
            make_audio(source, i);
            source->next_audio += AUDIO_MS * 1000000LL;
        }
        if (options->video_kbps > 0 && source->next_video < next) next = source->next_video;
        if (options->audio && source->next_audio < next) next = source->next_audio;
    }
    return next;
}

static void receive(struct receiver *receiver, int number) {
    int count = receiver_read(receiver, viewer_fds[number]);
    int64_t now = now_ns();
    for (int i = 0; i < count; i++) {
        int bytes, segment;
        const uint8_t *first = receiver_bytes(receiver, i, &bytes, &segment);
        for (int offset = 0; offset < bytes; offset += segment) {
            struct stamp stamp;
            key_peek(viewer_keys[number], first + offset, (uint8_t *)&stamp, sizeof stamp);
            if (stamp.magic != STAMP_MAGIC) die("a packet that this run did not send");
            received++;
            if (!is_measuring) continue;
            measured_received++;
            int64_t us = (now - stamp.sent_at) / 1000;
            latencies[us < 0 ? 0 : us > LATENCY_US_MAX ? LATENCY_US_MAX : us]++;
        }
    }
}

static double latency_ms(double fraction) {
    uint64_t rank = (uint64_t)(fraction * (double)measured_received), seen = 0;
    for (int us = 0; us <= LATENCY_US_MAX; us++) {
        seen += latencies[us];
        if (seen > rank) return us / 1000.0;
    }
    return 0;
}

static void greet(int fd, int is_source, int number) {
    struct hello hello = {HELLO_MAGIC, (uint32_t)is_source, (uint32_t)number};
    if (sendto(fd, &hello, sizeof hello, 0, (const struct sockaddr *)&options->address, sizeof options->address) < 0)
        die("sendto");
}

static void open_all(int poll) {
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr = options->address.sin_addr};
    for (int i = 0; i < options->viewers; i++) {
        viewer_fds[i] = open_socket(&any, SOCKET_BUFFER_BYTES, options->uses_gro);
        viewer_keys[i] = key_create(options, (uint32_t)i);
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
        if (epoll_ctl(poll, EPOLL_CTL_ADD, viewer_fds[i], &event) != 0) die("epoll_ctl");
        greet(viewer_fds[i], 0, i);
    }
    int64_t start = now_ns() + second_ns / 2;
    for (int i = 0; i < options->streams; i++) {
        sources[i].fd = open_socket(&any, SOCKET_BUFFER_BYTES, 0);
        sources[i].key = key_create(options, (uint32_t)(VIEWERS_MAX + i));
        /* Sources do not send at the same instant, like publishers that joined at different times. */
        sources[i].next_video = start + second_ns / options->fps * i / options->streams;
        sources[i].next_audio = start + AUDIO_MS * 1000000LL * i / options->streams;
        greet(sources[i].fd, 1, i);
    }
}

static void show_progress(int seconds, uint64_t packets) {
    int clients = options->viewers + options->streams;
    fprintf(stderr, "%d s  %d/%d connected  %llu packets/s\n", seconds, clients, clients, (unsigned long long)packets);
}

int feed(const struct options *given) {
    options = given;
    int poll = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    struct epoll_event events[256], event = {.events = EPOLLIN, .data.u32 = VIEWERS_MAX};
    if (poll < 0 || timer < 0 || epoll_ctl(poll, EPOLL_CTL_ADD, timer, &event) != 0) die("epoll");
    open_all(poll);
    struct receiver *receiver = receiver_create(SLOTS);
    const int64_t begun = now_ns(), from = begun + 3 * second_ns / 2;
    const int64_t until = from + (int64_t)(options->seconds * 1e9), end = until + second_ns / 2;
    int64_t next_line = begun + second_ns, next = 0, timed = 0;
    uint64_t before = 0;
    int lines = 0;
    for (int64_t now = begun; now < end; now = now_ns()) {
        is_measuring = now >= from && now < until;
        if (now < until) next = make_media(now);
        if (now >= until) next = end;
        int64_t due = next < next_line ? next : next_line;
        if (due != timed) {
            struct itimerspec at = {.it_value = {due / second_ns, due % second_ns}};
            if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL) != 0) die("timerfd_settime");
            timed = due;
        }
        int count = epoll_wait(poll, events, 256, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.u32 < VIEWERS_MAX) receive(receiver, (int)events[i].data.u32);
        }
        uint64_t expirations;
        if (read(timer, &expirations, sizeof expirations) < 0 && errno != EAGAIN) die("timerfd");
        if (now_ns() >= next_line) {
            show_progress(++lines, received - before);
            before = received;
            next_line += second_ns;
        }
    }
    printf("{\"window\": {\"seconds\": %.3f, \"packetsPerSecond\": %.1f, \"video\": {\"packetsReceived\": %llu, "
           "\"packetsLost\": %lld, \"latencyMilliseconds\": {\"p50\": %.3f, \"p99\": %.3f}}}}\n",
        options->seconds, (double)measured_received / options->seconds, (unsigned long long)measured_received,
        (long long)(sent_to_viewers - received), latency_ms(0.5), latency_ms(0.99));
    return 0;
}
