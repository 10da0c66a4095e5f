// libudt's sockets with an owner: errors become exceptions, options are applied in the order libudt needs.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#if __has_include(<udt/udt.h>)
#include <udt/udt.h>
#else
#include <udt.h>
#endif

#include "options.h"
#include "report.h"

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start);

// A resolved address; "HOST:PORT" or "[V6]:PORT".
struct Address {
    sockaddr_storage storage{};
    socklen_t length = 0;

    static Address resolve(const std::string& text, bool ipv6);
    std::string str() const;
    int family() const { return storage.ss_family; }
    std::uint16_t port() const;
    void set_port(std::uint16_t port);
    const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// Throws Failure with libudt's last error of this thread.
[[noreturn]] void throw_udt_error(const std::string& what);

class UdtSocket {
public:
    UdtSocket(int family, const Options& options);
    explicit UdtSocket(UDTSOCKET accepted) : id_(accepted) {}
    ~UdtSocket();
    UdtSocket(const UdtSocket&) = delete;
    UdtSocket& operator=(const UdtSocket&) = delete;

    UDTSOCKET id() const { return id_; }
    void bind(const Address& address);
    void listen(int backlog);
    UDTSOCKET accept();
    void connect(const Address& address);
    void close();

    bool connected() const { return UDT::getsockstate(id_) == CONNECTED; }
    Address local_address() const;
    Address peer_address() const;
    int mss() const;
    // Packets in the send buffer that the peer has not acknowledged; nothing when libudt no longer tells.
    std::optional<int> unacknowledged_packets() const;

    // Remembers libudt's figures: perfmon() has no answer any more once the peer has closed.
    void sample();
    void add_figures(Json& json) const;

private:
    Address ask(int (*question)(UDTSOCKET, sockaddr*, int*), const char* name) const;
    void set(UDT::SOCKOPT option, const char* name, const void* value, int length);

    UDTSOCKET id_;
    bool closed_ = false;
    bool sampled_ = false;
    UDT::TRACEINFO figures_{};
    mutable std::mutex figures_lock_;
};
