// One direction of a connection: sending or receiving a stream, a file or messages.
#pragma once

#include <cstdint>
#include <optional>

#include "content.h"
#include "failure.h"
#include "options.h"
#include "transfer.h"

// What one direction of a connection carried. Times count from the connection's start.
struct Half {
    std::uint64_t bytes = 0;
    std::uint64_t messages = 0;
    std::optional<std::uint64_t> digest;
    std::optional<double> first_s;
    std::optional<double> last_s;
    std::optional<Failure> failure;

    void mark(const Connection& connection) {
        last_s = seconds_since(connection.start);
        first_s = first_s.value_or(*last_s);
    }
};

// Both throw Failure; what was carried until then stands in `half` and `log`.
void send_half(Connection& connection, const Options& options, Half& half);
void recv_half(Connection& connection, const Options& options, Half& half, content::MessageLog& log);
