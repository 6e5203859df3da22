#ifndef NAGARE_ADDRESS_H
#define NAGARE_ADDRESS_H

#include <endian.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

/* Addresses as two big-endian halves, and as the kernel takes them. */

static const uint64_t v4_prefix = 0x0000FFFF00000000ULL;

union socket_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static inline uint64_t load_big_endian(const uint8_t *bytes) {
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return be64toh(value);
}

static inline void store_big_endian(uint8_t *bytes, uint64_t value) {
    value = htobe64(value);
    memcpy(bytes, &value, sizeof value);
}

static inline int is_v4(uint64_t high, uint64_t low) { return high == 0 && low >> 32 == 0xFFFF; }

/* Returns the length written, or 0 when a socket of that family cannot carry the address. */
static inline socklen_t to_socket_address(
    int is_v6, uint64_t high, uint64_t low, uint16_t port, union socket_address *address) {
    if (is_v6) {
        address->v6.sin6_family = AF_INET6;
        address->v6.sin6_port = htons(port);
        address->v6.sin6_flowinfo = 0;
        address->v6.sin6_scope_id = 0;
        store_big_endian(address->v6.sin6_addr.s6_addr, high);
        store_big_endian(address->v6.sin6_addr.s6_addr + 8, low);
        return sizeof address->v6;
    }
    if (!is_v4(high, low)) return 0;
    address->v4.sin_family = AF_INET;
    address->v4.sin_port = htons(port);
    address->v4.sin_addr.s_addr = htonl((uint32_t)low);
    memset(address->v4.sin_zero, 0, sizeof address->v4.sin_zero);
    return sizeof address->v4;
}

static inline void from_socket_address(
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

#endif
