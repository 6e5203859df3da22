#include "allocator.h"

#include <malloc.h>

struct nagare_memory nagare_memory(void) {
    struct mallinfo2 info = mallinfo2();
    return (struct nagare_memory){.free = info.fordblks, .allocated = info.uordblks + info.hblkhd};
}

void nagare_release_memory(void) { malloc_trim(0); }
