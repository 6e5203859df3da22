#pragma once
#include <stddef.h>
#include <hiredis/hiredis.h>
