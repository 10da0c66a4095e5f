// Controllers of the program for the Rust part.

#ifndef FARHAUL_LIBUDT_CONTROLLERS_H
#define FARHAUL_LIBUDT_CONTROLLERS_H

#include "../include/udt/udt.h"
#include "border.h"

// Sets UDT_CC to a clone of the CCCVirtualFactory.
FhOutcome set_controller(UDTSOCKET u, const void* factory);

#endif
