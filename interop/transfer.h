// What happens on one connection between being connected and being closed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "options.h"
#include "udt_socket.h"

// One established connection and the moment from which its clocks run.
struct Connection {
    std::unique_ptr<UdtSocket> socket;
    Clock::time_point start;  // connect() called, or accept() returned
    double connect_s = 0;     // how long connect() took; 0 for an accepted connection
    std::uint64_t seed = 0;   // of what this connection sends
};

// Performs the action, closes the socket and prints the connection's report. Returns the exit status.
int run_connection(Connection& connection, const Options& options);
