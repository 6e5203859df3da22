#ifndef NAGARE_ALLOCATOR_H
#define NAGARE_ALLOCATOR_H

#include <stddef.h>

/* Bytes that the process has freed and the C library keeps, and bytes that it has allocated. */
struct nagare_memory {
    size_t free;
    size_t allocated;
};
struct nagare_memory nagare_memory(void);

/* Gives the system the pages of that memory. The C library still counts it as free. */
void nagare_release_memory(void);

#endif
