#pragma once
#include <stddef.h>
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

/// Decompresses a whole zlib stream. Returns the length of the output, -1 when the input is malformed, incomplete or has bytes
/// behind it, and -2 when the output is longer than `capacity`.
static inline long nagare_inflate(const unsigned char *in, size_t count, unsigned char *out, size_t capacity) {
    z_stream stream;
    memset(&stream, 0, sizeof stream);
    if (inflateInit(&stream) != Z_OK) { return -1; }
    stream.next_in = (unsigned char *)in;
    stream.avail_in = (uInt)count;
    stream.next_out = out;
    stream.avail_out = (uInt)capacity;
    int result = inflate(&stream, Z_FINISH);
    long length = -1;
    if (result == Z_STREAM_END) {
        if (stream.avail_in == 0) { length = (long)stream.total_out; }
    } else if ((result == Z_OK || result == Z_BUF_ERROR) && stream.avail_out == 0) {
        length = -2;
    }
    inflateEnd(&stream);
    return length;
}
