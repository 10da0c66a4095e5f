// What the program prints: one JSON object a line on standard output, never torn by another thread.
#pragma once

#include <cstdint>
#include <string>

// A flat JSON object, built field by field.
class Json {
public:
    Json& text(const char* name, const std::string& value);
    Json& number(const char* name, std::uint64_t value);
    Json& number(const char* name, double value);
    Json& signed_number(const char* name, std::int64_t value);
    Json& boolean(const char* name, bool value);
    Json& null(const char* name);
    Json& object(const char* name, const Json& value);
    std::string str() const { return "{" + fields_ + "}"; }

private:
    Json& field(const char* name, const std::string& value);
    std::string fields_;
};

// {"code":…,"message":…}
Json error_json(int code, const std::string& message);

// Prints one line and flushes it.
void print_line(const std::string& line);

// Processor time of the whole process since start_process_clock(), and its peak memory.
void start_process_clock();
void add_process_figures(Json& json);

// What the system gave the buffers of this process's UDP sockets, in the measure in which they are asked for; the
// least of several sockets. libudt itself only repeats what was asked.
struct UdpBuffers {
    std::uint64_t recv = 0;
    std::uint64_t send = 0;
};
UdpBuffers udp_buffers();

// Ends the process with exit status 8 and a named error if it is still there after `seconds`.
void start_watchdog(double seconds);
