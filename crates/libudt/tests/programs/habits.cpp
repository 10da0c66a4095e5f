// What programs of libudt rely on, whatever its manual says. Prints a line for each.

#include <unistd.h>

#include <cstdio>
#include <set>
#include <thread>
#include <vector>

#include <udt/udt.h>

#include "loopback.h"

namespace {

struct Pair {
    UDTSOCKET listener, caller, accepted;

    explicit Pair(int type = SOCK_STREAM) {
        listener = UDT::socket(AF_INET, type, 0);
        sockaddr_in address = loopback(0);
        UDT::bind(listener, raw(address), sizeof address);
        UDT::listen(listener, 5);
        int length = sizeof address;
        UDT::getsockname(listener, raw(address), &length);
        address = loopback(ntohs(address.sin_port));
        caller = UDT::socket(AF_INET, type, 0);
        if (UDT::connect(caller, raw(address), sizeof address) == UDT::ERROR) std::puts("no connection");
        accepted = UDT::accept(listener, NULL, NULL);
    }
    ~Pair() {
        for (const UDTSOCKET u : {caller, accepted, listener}) UDT::close(u);
    }
};

// The code of a call that failed, or zero.
int code(int result) { return result == UDT::ERROR ? UDT::getlasterror_code() : 0; }

// Records shorter than a packet, which wait in the buffer of a slow sender. Programs take each of them by one call.
void records() {
    const int COUNT = 60, SIZE = 1000;
    const Pair p;
    const int64_t rate = 200000;
    UDT::setsockopt(p.caller, 0, UDT_MAXBW, &rate, sizeof rate);
    const std::vector<char> record(SIZE, 'x');
    for (int i = 0; i < COUNT; ++i) UDT::send(p.caller, record.data(), SIZE, 0);
    std::vector<char> room(SIZE);
    int cut = 0;
    for (int left = COUNT * SIZE; left > 0;) {
        const int got = UDT::recv(p.accepted, room.data(), SIZE, 0);
        if (got <= 0) break;
        cut += got < SIZE;
        left -= got;
    }
    std::printf("records cut: %d\n", cut);
}

// A time to live counts for retransmissions alone. Programs that want none give zero.
void short_lives() {
    const int COUNT = 10, SIZE = 5000;
    const Pair p(SOCK_DGRAM);
    const int64_t rate = 200000;
    const int patience = 2000;
    UDT::setsockopt(p.caller, 0, UDT_MAXBW, &rate, sizeof rate);
    UDT::setsockopt(p.accepted, 0, UDT_RCVTIMEO, &patience, sizeof patience);
    std::vector<char> message(SIZE, 'x');
    for (int i = 0; i < COUNT; ++i) UDT::sendmsg(p.caller, message.data(), SIZE, i % 2 * 10, true);
    int received = 0;
    while (received < COUNT && UDT::recvmsg(p.accepted, message.data(), SIZE) == SIZE) ++received;
    std::printf("short-lived messages: %d\n", received);
}

// What a blocking send takes of data that the send buffer holds, on a slow path. Programs do not look at the result.
void long_sends() {
    const int SIZE = 1000000;
    const Pair p;
    const int64_t rate = 2000000;
    UDT::setsockopt(p.caller, 0, UDT_MAXBW, &rate, sizeof rate);
    const std::vector<char> data(SIZE, 'x');
    std::printf("taken of a long send: %d\n", UDT::send(p.caller, data.data(), SIZE, 0));
}

// Descriptors of the program: none, one that is no UDP socket, one in use, and one for two sockets of UDT.
void descriptors() {
    const sockaddr_in any = loopback(0);
    const int udp = socket(AF_INET, SOCK_DGRAM, 0);
    bind(udp, raw(any), sizeof any);
    const UDTSOCKET u = UDT::socket(AF_INET, SOCK_STREAM, 0), v = UDT::socket(AF_INET, SOCK_STREAM, 0);
    std::printf("bind2 of none: %d\n", code(UDT::bind2(u, 999)));
    std::printf("bind2: %d\n", code(UDT::bind2(u, udp)));
    std::printf("bind2 again: %d\n", code(UDT::bind2(u, udp)));
    sockaddr_in address;
    int length = -1;
    std::printf("getsockname with any length: %d, ", code(UDT::getsockname(u, raw(address), &length)));
    std::printf("length %d\n", length);
    std::printf("bind to its port: %d\n", code(UDT::bind(v, raw(address), sizeof address)));
    UDT::listen(u, 1);
    const UDTSOCKET caller = UDT::socket(AF_INET, SOCK_STREAM, 0);
    std::printf("connect to it: %d\n", code(UDT::connect(caller, raw(address), sizeof address)));
    length = 0;
    const UDTSOCKET accepted = UDT::accept(u, raw(address), &length);
    std::printf("accept with any length: %d, length %d\n", accepted > 0, length);
    const UDTSOCKET other = UDT::socket(AF_INET, SOCK_STREAM, 0);
    length = sizeof address;
    UDT::getsockname(u, raw(address), &length);
    address.sin_family = AF_UNSPEC;
    std::printf("connect without a family: %d\n", code(UDT::connect(other, raw(address), sizeof address)));
    std::printf("epoll of no descriptor fails: %d\n", UDT::epoll_add_ssock(UDT::epoll_create(), 999) == UDT::ERROR);
}

// A connection that is over, for each choice of events. With libudt, it takes 50 s until a peer that was killed is noticed.
void ended() {
    const int all = UDT_EPOLL_IN | UDT_EPOLL_OUT | UDT_EPOLL_ERR;
    for (const int events : {all, int(UDT_EPOLL_IN), int(UDT_EPOLL_OUT), UDT_EPOLL_IN | UDT_EPOLL_ERR, int(UDT_EPOLL_ERR)}) {
        const Pair p;
        UDT::close(p.caller);
        while (UDT::getsockstate(p.accepted) != BROKEN) std::this_thread::yield();
        const int eid = UDT::epoll_create();
        UDT::epoll_add_usock(eid, p.accepted, &events);
        std::set<UDTSOCKET> read, write;
        const int count = UDT::epoll_wait(eid, &read, &write, 0);
        std::printf("events %d: %d = %zu + %zu\n", events, count, read.size(), write.size());
    }
    const Pair p;
    UDT::send(p.caller, "unread", 6, 0);
    UDT::close(p.caller);
    while (UDT::getsockstate(p.accepted) != BROKEN) std::this_thread::yield();
    for (const bool is_read : {false, true}) {
        char data[10];
        if (is_read) UDT::recv(p.accepted, data, sizeof data, 0);
        int event = 0, length = sizeof event;
        UDT::getsockopt(p.accepted, 0, UDT_EVENT, &event, &length);
        std::vector<UDTSOCKET> read, write, broken;
        const int count = UDT::selectEx({p.accepted}, &read, &write, &broken, 0);
        std::printf("event %d, selectEx %d = %zu + %zu + %zu\n", event, count, read.size(), write.size(), broken.size());
    }
    std::vector<UDTSOCKET> read;
    std::printf("selectEx without errors: %d\n", UDT::selectEx({p.accepted}, &read, NULL, NULL, 0));
}

}  // namespace

int main(int argc, char**) {
    UDT::startup();
    if (argc > 1) {
        ended();
        std::fflush(stdout);
        _exit(0);
    }
    descriptors();
    records();
    short_lives();
    long_sends();
    std::fflush(stdout);
    _exit(0);
}
