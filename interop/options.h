// The command line as a plain structure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

enum class Mode { Listen, Connect, Rendezvous, Content };
enum class Action { None, Send, Recv, Both, Echo };

struct Options {
    Mode mode = Mode::Listen;
    Action action = Action::None;
    std::string local;  // ADDR:PORT to bind; may be empty for a client
    std::string peer;   // HOST:PORT to connect to
    bool ipv6 = false;
    int sockets = 1;

    // What is sent and what is awaited.
    std::optional<std::uint64_t> bytes;
    std::optional<std::uint64_t> expect;
    std::uint64_t seed = 1;
    std::string file;
    std::string out;
    bool use_sendfile = false;
    bool use_recvfile = false;
    double seconds = 0;  // > 0: send for so long
    bool unchecked = false;
    double interval_s = 0;  // > 0: say every so often how much has arrived

    // Message mode.
    bool messages = false;
    std::size_t message_size = 1456;
    std::uint64_t count = 1;
    int ttl_ms = -1;
    bool in_order = false;

    bool echo_custom = false;  // user-defined control packets go back

    // libudt's own settings; unset ones keep its defaults.
    std::optional<int> mss, fc, sndbuf, rcvbuf, udp_sndbuf, udp_rcvbuf;
    std::optional<std::int64_t> maxbw;
    int linger_s = 180;

    int start_delay_ms = 0;
    std::optional<int> close_delay_ms;
    double timeout_s = 60;

    bool sends() const { return action == Action::Send || action == Action::Both; }
    bool receives() const { return action == Action::Recv || action == Action::Both; }
};

extern const char* const USAGE_TEXT;

// Throws Failure(USAGE) with a sentence about the first thing that is wrong.
Options parse_options(int argc, char** argv);
