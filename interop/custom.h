// User-defined control packets (type 0x7FFF), which libudt receives and sends only through a congestion controller.
#pragma once

#include <cstdint>

#include "udt_socket.h"

namespace custom {

// Replaces the controller of this socket by one that sends a packet every 100 us, and every user-defined packet that comes
// back to the peer.
void echo(UDTSOCKET socket);

// User-defined packets echoed so far, by all sockets of the process.
std::uint64_t echoed();

}  // namespace custom
