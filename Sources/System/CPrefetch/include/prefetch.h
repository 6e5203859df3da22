#pragma once

#include <stddef.h>

/// Asks the processor to bring memory into its cache, so that the loads that follow wait for all of it at once and not for one line
/// after another. Nothing is read, so every address is allowed.
static inline void nagare_prefetch(const void *memory, size_t bytes) {
    for (size_t offset = 0; offset < bytes; offset += 64) __builtin_prefetch((const char *)memory + offset, 1);
}
