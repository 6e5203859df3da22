#ifndef NAGARE_ALLOCATOR_H
#define NAGARE_ALLOCATOR_H

#include <stddef.h>

/* Bytes that the process has freed and the C library keeps. */
size_t nagare_free_memory(void);

/* Gives the system the pages of that memory. The C library still counts it as free. */
void nagare_release_memory(void);

#endif
