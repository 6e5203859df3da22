#define _GNU_SOURCE
#include "floor.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: floor serve|feed [--profile gcm|cm] [--crypto openssl|ipsec-mb] [--send gso|plain] [--gro 0|1]\n"
    "                        [--address IP] [--port N] [--streams N] [--viewers N] [--kbps N] [--fps N] [--audio]\n"
    "                        [--seconds S]\n";

int main(int count, char **arguments) {
    struct options options = {
        .profile = PROFILE_GCM,
        .crypto = CRYPTO_OPENSSL,
        .uses_gso = 1,
        .uses_gro = 1,
        .address = {.sin_family = AF_INET, .sin_port = htons(18084), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)},
        .streams = 1,
        .viewers = 1,
        .video_kbps = 1500,
        .fps = 30,
        .seconds = 10,
    };
    static const struct option known[] = {
        {"profile", required_argument, NULL, 'p'}, {"crypto", required_argument, NULL, 'c'},
        {"send", required_argument, NULL, 's'}, {"gro", required_argument, NULL, 'g'},
        {"address", required_argument, NULL, 'a'}, {"port", required_argument, NULL, 'P'},
        {"streams", required_argument, NULL, 'n'}, {"viewers", required_argument, NULL, 'v'},
        {"kbps", required_argument, NULL, 'k'}, {"fps", required_argument, NULL, 'f'},
        {"audio", no_argument, NULL, 'A'}, {"seconds", required_argument, NULL, 'S'}, {NULL, 0, NULL, 0}};
    for (int option; (option = getopt_long(count, arguments, "", known, NULL)) != -1;) {
        switch (option) {
        case 'p': options.profile = strcmp(optarg, "cm") == 0 ? PROFILE_CM : PROFILE_GCM; break;
        case 'c': options.crypto = strcmp(optarg, "ipsec-mb") == 0 ? CRYPTO_IPSEC_MB : CRYPTO_OPENSSL; break;
        case 's': options.uses_gso = strcmp(optarg, "plain") != 0; break;
        case 'g': options.uses_gro = atoi(optarg); break;
        case 'a':
            if (inet_pton(AF_INET, optarg, &options.address.sin_addr) != 1) die("not an IPv4 address");
            break;
        case 'P': options.address.sin_port = htons((uint16_t)atoi(optarg)); break;
        case 'n': options.streams = atoi(optarg); break;
        case 'v': options.viewers = atoi(optarg); break;
        case 'k': options.video_kbps = atoi(optarg); break;
        case 'f': options.fps = atoi(optarg); break;
        case 'A': options.audio = 1; break;
        case 'S': options.seconds = atof(optarg); break;
        default: fputs(usage, stderr); return 64;
        }
    }
    /* The SSRC has seven bits for the stream's number. */
    if (optind + 1 != count || options.streams < 1 || options.streams > 128 || options.viewers < 1 ||
        options.viewers > VIEWERS_MAX || options.fps < 1) {
        fputs(usage, stderr);
        return 64;
    }
    if (strcmp(arguments[optind], "serve") == 0) return serve(&options);
    if (strcmp(arguments[optind], "feed") == 0) return feed(&options);
    fputs(usage, stderr);
    return 64;
}
