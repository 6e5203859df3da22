#pragma once
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/// The most bytes that `nagare_deflate` writes for `count` bytes.
static inline size_t nagare_deflate_bound(size_t count) { return compressBound(count) + 64; }

/// Compresses into a zlib stream (RFC 1950). Returns its length, or -1. Short input gets a small window, so that little memory
/// is allocated.
static inline long nagare_deflate(const unsigned char *in, size_t count, unsigned char *out, size_t capacity) {
    z_stream stream;
    memset(&stream, 0, sizeof stream);
    int isShort = count <= 4096;
    if (deflateInit2(&stream, isShort ? 6 : 4, Z_DEFLATED, isShort ? 12 : 15, isShort ? 5 : 8, Z_DEFAULT_STRATEGY)
        != Z_OK) {
        return -1;
    }
    stream.next_in = (unsigned char *)in;
    stream.avail_in = (uInt)count;
    stream.next_out = out;
    stream.avail_out = (uInt)capacity;
    int result = deflate(&stream, Z_FINISH);
    long length = result == Z_STREAM_END ? (long)stream.total_out : -1;
    deflateEnd(&stream);
    return length;
}

/// A zlib stream that is decompressed piece by piece.
struct nagare_inflater {
    z_stream stream;
};

/// Begins to decompress. Returns NULL when there is no memory. The input has to stay where it is until `nagare_inflate_end`.
static inline struct nagare_inflater *nagare_inflate_begin(const unsigned char *in, size_t count) {
    struct nagare_inflater *one = calloc(1, sizeof *one);
    if (one == NULL) { return NULL; }
    if (inflateInit(&one->stream) != Z_OK) {
        free(one);
        return NULL;
    }
    one->stream.next_in = (unsigned char *)in;
    one->stream.avail_in = (uInt)count;
    return one;
}

/// Decompresses up to `capacity` bytes more, and sets `count` to how many. Returns 1 at the end of the stream, 0 when there is
/// more, and -1 when the input is malformed, incomplete or has bytes behind the stream.
static inline int nagare_inflate_next(struct nagare_inflater *one, unsigned char *out, size_t capacity, size_t *count) {
    one->stream.next_out = out;
    one->stream.avail_out = (uInt)capacity;
    int result = inflate(&one->stream, Z_NO_FLUSH);
    *count = capacity - one->stream.avail_out;
    if (result == Z_STREAM_END) { return one->stream.avail_in == 0 ? 1 : -1; }
    return (result == Z_OK || result == Z_BUF_ERROR) && one->stream.avail_out == 0 ? 0 : -1;
}

static inline void nagare_inflate_end(struct nagare_inflater *one) {
    inflateEnd(&one->stream);
    free(one);
}
