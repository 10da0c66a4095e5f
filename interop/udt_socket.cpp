#include "udt_socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cstring>
#include <utility>

#include "custom.h"
#include "failure.h"

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

Address Address::resolve(const std::string& text, bool ipv6) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string::npos || colon == 0) {
        throw Failure(USAGE, "not HOST:PORT: " + text);
    }
    std::string host = text.substr(0, colon);
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
        host = host.substr(1, host.size() - 2);
        ipv6 = true;
    }
    addrinfo hints{};
    hints.ai_family = ipv6 ? AF_INET6 : AF_INET;
    hints.ai_socktype = SOCK_DGRAM;
    addrinfo* found = nullptr;
    if (const int error = getaddrinfo(host.c_str(), text.substr(colon + 1).c_str(), &hints, &found); error != 0) {
        throw Failure(USAGE, text + ": " + gai_strerror(error));
    }
    Address address;
    std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
    address.length = found->ai_addrlen;
    freeaddrinfo(found);
    return address;
}

std::string Address::str() const {
    char host[NI_MAXHOST];
    char service[NI_MAXSERV];
    if (getnameinfo(raw(), length, host, sizeof host, service, sizeof service, NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        return "?";
    }
    return family() == AF_INET6 ? "[" + std::string(host) + "]:" + service : std::string(host) + ":" + service;
}

// The port sits at the same place in both address families.
std::uint16_t Address::port() const { return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port); }
void Address::set_port(std::uint16_t port) { reinterpret_cast<sockaddr_in*>(&storage)->sin_port = htons(port); }

void throw_udt_error(const std::string& what) {
    UDT::ERRORINFO& error = UDT::getlasterror();
    std::string message = what + ": " + error.getErrorMessage();
    while (!message.empty() && (message.back() == '\n' || message.back() == ' ')) {
        message.pop_back();
    }
    throw Failure(error.getErrorCode(), message);
}

UdtSocket::UdtSocket(int family, const Options& options)
    : id_(UDT::socket(family, options.messages ? SOCK_DGRAM : SOCK_STREAM, 0)) {
    if (id_ == UDT::INVALID_SOCK) {
        throw_udt_error("socket");
    }
    const auto set_if_given = [this](UDT::SOCKOPT option, const char* name, const auto& value) {
        if (value) {
            set(option, name, &*value, sizeof *value);
        }
    };
    set_if_given(UDT_MSS, "--mss", options.mss);
    // The receive buffer is limited by the flow window at the moment it is set, hence the order.
    set_if_given(UDT_FC, "--fc", options.fc);
    set_if_given(UDT_SNDBUF, "--sndbuf", options.sndbuf);
    set_if_given(UDT_RCVBUF, "--rcvbuf", options.rcvbuf);
    set_if_given(UDP_SNDBUF, "--udp-sndbuf", options.udp_sndbuf);
    set_if_given(UDP_RCVBUF, "--udp-rcvbuf", options.udp_rcvbuf);
    set_if_given(UDT_MAXBW, "--maxbw", options.maxbw);
    const linger patience{options.linger_s > 0, options.linger_s};
    set(UDT_LINGER, "--linger", &patience, sizeof patience);
    const bool rendezvous = options.mode == Mode::Rendezvous;
    set(UDT_RENDEZVOUS, "rendezvous", &rendezvous, sizeof rendezvous);
    if (options.echo_custom) {
        custom::echo(id_);
    }
}

UdtSocket::~UdtSocket() { close(); }

void UdtSocket::set(UDT::SOCKOPT option, const char* name, const void* value, int length) {
    if (UDT::setsockopt(id_, 0, option, value, length) == UDT::ERROR) {
        throw_udt_error(name);
    }
}

void UdtSocket::bind(const Address& address) {
    if (UDT::bind(id_, address.raw(), static_cast<int>(address.length)) == UDT::ERROR) {
        throw_udt_error("bind " + address.str());
    }
}

void UdtSocket::listen(int backlog) {
    if (UDT::listen(id_, backlog) == UDT::ERROR) {
        throw_udt_error("listen");
    }
}

UDTSOCKET UdtSocket::accept() {
    sockaddr_storage from{};
    int length = sizeof from;
    const UDTSOCKET accepted = UDT::accept(id_, reinterpret_cast<sockaddr*>(&from), &length);
    if (accepted == UDT::INVALID_SOCK) {
        throw_udt_error("accept");
    }
    return accepted;
}

void UdtSocket::connect(const Address& address) {
    if (UDT::connect(id_, address.raw(), static_cast<int>(address.length)) == UDT::ERROR) {
        throw_udt_error("connect " + address.str());
    }
}

void UdtSocket::close() {
    if (!std::exchange(closed_, true)) {
        UDT::close(id_);
    }
}

Address UdtSocket::local_address() const { return ask(UDT::getsockname, "getsockname"); }
Address UdtSocket::peer_address() const { return ask(UDT::getpeername, "getpeername"); }

Address UdtSocket::ask(int (*question)(UDTSOCKET, sockaddr*, int*), const char* name) const {
    Address address;
    int length = sizeof address.storage;
    if (question(id_, reinterpret_cast<sockaddr*>(&address.storage), &length) == UDT::ERROR) {
        throw_udt_error(name);
    }
    address.length = static_cast<socklen_t>(length);
    return address;
}

int UdtSocket::mss() const {
    int value = 0;
    int length = sizeof value;
    if (UDT::getsockopt(id_, 0, UDT_MSS, &value, &length) == UDT::ERROR) {
        throw_udt_error("getsockopt UDT_MSS");
    }
    return value;
}

std::optional<int> UdtSocket::unacknowledged_packets() const {
    std::int32_t packets = 0;
    int length = sizeof packets;
    if (UDT::getsockopt(id_, 0, UDT_SNDDATA, &packets, &length) == UDT::ERROR) {
        return std::nullopt;
    }
    return packets;
}

void UdtSocket::sample() {
    UDT::TRACEINFO now;
    if (UDT::perfmon(id_, &now, false) == UDT::ERROR) {
        return;
    }
    const std::lock_guard<std::mutex> lock(figures_lock_);
    figures_ = now;
    sampled_ = true;
}

void UdtSocket::add_figures(Json& json) const {
    const std::lock_guard<std::mutex> lock(figures_lock_);
    if (!sampled_) {
        return;
    }
    const auto count = [](auto value) { return static_cast<std::uint64_t>(value); };
    json.number("packets_sent", count(figures_.pktSentTotal))
        .number("packets_received", count(figures_.pktRecvTotal))
        .number("packets_retransmitted", count(figures_.pktRetransTotal))
        .number("packets_reported_lost", count(figures_.pktSndLossTotal))
        .number("packets_missed", count(figures_.pktRcvLossTotal))
        .number("acks_sent", count(figures_.pktSentACKTotal))
        .number("acks_received", count(figures_.pktRecvACKTotal))
        .number("naks_sent", count(figures_.pktSentNAKTotal))
        .number("naks_received", count(figures_.pktRecvNAKTotal))
        .number("rtt_ms", figures_.msRTT)
        .number("send_period_us", figures_.usPktSndPeriod)
        .number("flow_window", count(figures_.pktFlowWindow))
        .number("congestion_window", count(figures_.pktCongestionWindow))
        .number("bandwidth_mbps", figures_.mbpsBandwidth);
}
