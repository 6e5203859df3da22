#include "allocator.h"

#include <malloc.h>

size_t nagare_free_memory(void) { return mallinfo2().fordblks; }

void nagare_release_memory(void) { malloc_trim(0); }
