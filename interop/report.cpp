#include "report.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <thread>

#include "failure.h"

namespace {

std::mutex output;
rusage baseline{};

double seconds(const timeval& time) { return static_cast<double>(time.tv_sec) + time.tv_usec / 1e6; }

std::string quoted(const std::string& text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            result += '\\';
            result += c;
        } else {
            result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
        }
    }
    return result + "\"";
}

// VmHWM and not ru_maxrss: the latter survives exec and may be the figure of whoever started us.
std::uint64_t peak_memory_kb() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
        if (word == "VmHWM:") {
            std::uint64_t kilobytes = 0;
            status >> kilobytes;
            return kilobytes;
        }
    }
    return 0;
}

}  // namespace

Json& Json::field(const char* name, const std::string& value) {
    fields_ += fields_.empty() ? "" : ",";
    fields_ += quoted(name) + ":" + value;
    return *this;
}

Json& Json::text(const char* name, const std::string& value) { return field(name, quoted(value)); }
Json& Json::number(const char* name, std::uint64_t value) { return field(name, std::to_string(value)); }
Json& Json::signed_number(const char* name, std::int64_t value) { return field(name, std::to_string(value)); }
Json& Json::boolean(const char* name, bool value) { return field(name, value ? "true" : "false"); }
Json& Json::null(const char* name) { return field(name, "null"); }
Json& Json::object(const char* name, const Json& value) { return field(name, value.str()); }

Json& Json::number(const char* name, double value) {
    if (!std::isfinite(value)) {
        return null(name);
    }
    char text[48];
    std::snprintf(text, sizeof text, std::fabs(value) >= 1e6 ? "%.0f" : "%.6f", value);
    return field(name, text);
}

Json error_json(int code, const std::string& message) {
    Json json;
    json.signed_number("code", code).text("message", message);
    return json;
}

void print_line(const std::string& line) {
    const std::lock_guard<std::mutex> lock(output);
    std::fputs((line + "\n").c_str(), stdout);
    std::fflush(stdout);
}

void start_process_clock() { getrusage(RUSAGE_SELF, &baseline); }

void add_process_figures(Json& json) {
    rusage now{};
    getrusage(RUSAGE_SELF, &now);
    json.number("cpu_user_s", seconds(now.ru_utime) - seconds(baseline.ru_utime))
        .number("cpu_system_s", seconds(now.ru_stime) - seconds(baseline.ru_stime))
        .number("max_rss_kb", peak_memory_kb());
}

UdpBuffers udp_buffers() {
    UdpBuffers least;
    const auto option = [](int socket, int name) {
        int value = 0;
        socklen_t length = sizeof value;
        return getsockopt(socket, SOL_SOCKET, name, &value, &length) == 0 ? value : 0;
    };
    const auto take = [](std::uint64_t& least_so_far, int doubled) {
        const auto bytes = static_cast<std::uint64_t>(doubled) / 2;  // Linux tells twice what was asked for
        least_so_far = least_so_far == 0 ? bytes : std::min(least_so_far, bytes);
    };
    for (int socket = 0; socket < 1024; ++socket) {
        if (option(socket, SO_TYPE) == SOCK_DGRAM) {
            take(least.recv, option(socket, SO_RCVBUF));
            take(least.send, option(socket, SO_SNDBUF));
        }
    }
    return least;
}

void start_watchdog(double limit_s) {
    std::thread([limit_s] {
        std::this_thread::sleep_for(std::chrono::duration<double>(limit_s));
        char message[80];
        std::snprintf(message, sizeof message, "timeout: not finished after %g s", limit_s);
        Json json;
        json.object("error", error_json(TIMEOUT, message));
        print_line(json.str());
        // Not exit(): the other threads sit in libudt calls that may never return.
        _exit(TIMEOUT);
    }).detach();
}
