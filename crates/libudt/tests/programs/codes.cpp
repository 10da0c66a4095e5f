// Prints a table of calls that fail, options, states and events. Run with two libraries, it compares them.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <thread>

#include <udt/ccc.h>
#include <udt/udt.h>

#include "loopback.h"

namespace {

void row(const char* what, long long value) { std::printf("%s = %lld\n", what, value); }

// The code of a call that failed, or its value.
void call(const char* what, long long result) {
    if (result == UDT::ERROR) {
        std::printf("%s: error %d\n", what, UDT::getlasterror_code());
        UDT::getlasterror().clear();
    } else {
        std::printf("%s: %lld\n", what, result);
    }
}

int port_of(UDTSOCKET u) {
    sockaddr_in address;
    int length = sizeof address;
    UDT::getsockname(u, reinterpret_cast<sockaddr*>(&address), &length);
    return ntohs(address.sin_port);
}

int bound(UDTSOCKET u) {
    const sockaddr_in any = loopback(0);
    return UDT::bind(u, raw(any), sizeof any);
}

template <typename T>
int set(UDTSOCKET u, UDT::SOCKOPT option, T value) {
    return UDT::setsockopt(u, 0, option, &value, sizeof value);
}

template <typename T>
void get(const char* what, UDTSOCKET u, UDT::SOCKOPT option) {
    T value = T();
    int length = sizeof value;
    if (UDT::getsockopt(u, 0, option, &value, &length) == UDT::ERROR) {
        call(what, UDT::ERROR);
    } else {
        std::printf("%s = %lld, %d bytes\n", what, static_cast<long long>(value), length);
    }
}

struct Pair {
    UDTSOCKET listener, caller, accepted;
};

Pair pair(int type) {
    Pair made;
    made.listener = UDT::socket(AF_INET, type, 0);
    bound(made.listener);
    UDT::listen(made.listener, 5);
    made.caller = UDT::socket(AF_INET, type, 0);
    const sockaddr_in there = loopback(port_of(made.listener));
    if (UDT::connect(made.caller, raw(there), sizeof there) == UDT::ERROR) {
        call("connect", UDT::ERROR);
    }
    made.accepted = UDT::accept(made.listener, NULL, NULL);
    return made;
}

void sockets_without_connection() {
    char data[16];
    call("socket of an unknown type", UDT::socket(AF_INET, 77, 0));
    const UDTSOCKET u = UDT::socket(AF_INET, SOCK_STREAM, 0);
    row("state of a new socket", UDT::getsockstate(u));
    call("send, new", UDT::send(u, data, 8, 0));
    call("recv, new", UDT::recv(u, data, 8, 0));
    call("sendmsg on a stream", UDT::sendmsg(u, data, 8));
    call("recvmsg on a stream", UDT::recvmsg(u, data, 8));
    call("listen, new", UDT::listen(u, 5));
    call("accept, new", UDT::accept(u, NULL, NULL));
    UDT::TRACEINFO trace;
    call("perfmon, new", UDT::perfmon(u, &trace));
    sockaddr_in address;
    int length = sizeof address;
    call("getsockname, new", UDT::getsockname(u, reinterpret_cast<sockaddr*>(&address), &length));
    call("getpeername, new", UDT::getpeername(u, reinterpret_cast<sockaddr*>(&address), &length));
    call("bind", bound(u));
    row("state of a bound socket", UDT::getsockstate(u));
    call("bind again", bound(u));
    call("listen with a backlog of zero", UDT::listen(u, 0));
    call("accept, bound", UDT::accept(u, NULL, NULL));
    call("listen", UDT::listen(u, 5));
    call("listen again", UDT::listen(u, 5));
    row("state of a listener", UDT::getsockstate(u));
    call("send, listener", UDT::send(u, data, 8, 0));
    call("connect, listener", UDT::connect(u, raw(loopback(9)), sizeof(sockaddr_in)));
    call("RCVSYN off", set(u, UDT_RCVSYN, false));
    call("accept without callers", UDT::accept(u, NULL, NULL));
    const UDTSOCKET second = UDT::socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in same = loopback(port_of(u));
    call("bind to the same port", UDT::bind(second, raw(same), sizeof same));
    call("listen on the same port", UDT::listen(second, 5));
    const UDTSOCKET alone = UDT::socket(AF_INET, SOCK_STREAM, 0);
    set(alone, UDT_REUSEADDR, false);
    call("bind alone to the same port", UDT::bind(alone, raw(same), sizeof same));
    call("close", UDT::close(u));
    call("close again", UDT::close(u));
    row("state of a closed socket", UDT::getsockstate(u));
    row("state of no socket", UDT::getsockstate(12345));
    call("send, none", UDT::send(12345, data, 8, 0));
    call("bind, none", bound(12345));
    const UDTSOCKET met = UDT::socket(AF_INET, SOCK_STREAM, 0);
    set(met, UDT_RENDEZVOUS, true);
    call("rendezvous without bind", UDT::connect(met, raw(same), sizeof same));
    bound(met);
    call("listen for a rendezvous", UDT::listen(met, 5));
}

void options() {
    const UDTSOCKET u = UDT::socket(AF_INET, SOCK_STREAM, 0);
    get<int>("MSS", u, UDT_MSS);
    get<bool>("SNDSYN", u, UDT_SNDSYN);
    get<bool>("RCVSYN", u, UDT_RCVSYN);
    get<int>("FC", u, UDT_FC);
    get<int>("SNDBUF", u, UDT_SNDBUF);
    get<int>("RCVBUF", u, UDT_RCVBUF);
    get<int>("UDP SNDBUF", u, UDP_SNDBUF);
    get<int>("UDP RCVBUF", u, UDP_RCVBUF);
    get<bool>("RENDEZVOUS", u, UDT_RENDEZVOUS);
    get<int>("SNDTIMEO", u, UDT_SNDTIMEO);
    get<int>("RCVTIMEO", u, UDT_RCVTIMEO);
    get<bool>("REUSEADDR", u, UDT_REUSEADDR);
    get<int64_t>("MAXBW", u, UDT_MAXBW);
    get<int>("STATE", u, UDT_STATE);
    get<int>("EVENT", u, UDT_EVENT);
    get<int>("SNDDATA", u, UDT_SNDDATA);
    get<int>("RCVDATA", u, UDT_RCVDATA);
    get<int>("MAXMSG", u, UDT_MAXMSG);
    get<intptr_t>("CC of a new socket", u, UDT_CC);
    linger patience;
    int length = sizeof patience;
    call("get LINGER", UDT::getsockopt(u, 0, UDT_LINGER, &patience, &length));
    row("linger", patience.l_onoff * 1000 + patience.l_linger);
    length = 4;
    call("get LINGER with too little room", UDT::getsockopt(u, 0, UDT_LINGER, &patience, &length));
    call("set STATE", set(u, UDT_STATE, 1));
    call("set MAXMSG", set(u, UDT_MAXMSG, 1));
    call("MSS 75", set(u, UDT_MSS, 75));
    call("MSS 76", set(u, UDT_MSS, 76));
    call("MSS 1400", set(u, UDT_MSS, 1400));
    get<int>("SNDBUF after MSS", u, UDT_SNDBUF);
    call("FC 0", set(u, UDT_FC, 0));
    call("FC 5", set(u, UDT_FC, 5));
    get<int>("FC", u, UDT_FC);
    call("RCVBUF 0", set(u, UDT_RCVBUF, 0));
    call("RCVBUF 100 MB", set(u, UDT_RCVBUF, 100000000));
    get<int>("RCVBUF below FC", u, UDT_RCVBUF);
    call("FC 10000", set(u, UDT_FC, 10000));
    call("RCVBUF 1 MB", set(u, UDT_RCVBUF, 1000000));
    get<int>("RCVBUF", u, UDT_RCVBUF);
    call("SNDBUF -1", set(u, UDT_SNDBUF, -1));
    call("SNDBUF 1 MB", set(u, UDT_SNDBUF, 1000000));
    get<int>("SNDBUF", u, UDT_SNDBUF);
    call("UDP SNDBUF 100", set(u, UDP_SNDBUF, 100));
    get<int>("UDP SNDBUF", u, UDP_SNDBUF);
    call("MAXBW", set(u, UDT_MAXBW, int64_t(1000000)));
    get<int64_t>("MAXBW", u, UDT_MAXBW);
    bound(u);
    call("MSS, bound", set(u, UDT_MSS, 1400));
    call("SNDBUF, bound", set(u, UDT_SNDBUF, 1000000));
    call("RCVBUF, bound", set(u, UDT_RCVBUF, 1000000));
    call("UDP RCVBUF, bound", set(u, UDP_RCVBUF, 1000000));
    call("REUSEADDR, bound", set(u, UDT_REUSEADDR, true));
    call("FC, bound", set(u, UDT_FC, 9999));
    call("RENDEZVOUS, bound", set(u, UDT_RENDEZVOUS, false));
    call("LINGER, bound", set(u, UDT_LINGER, patience));
    call("set, none", set(12345, UDT_FC, 9999));
    // Nothing looks at the pointer.
    void* const nowhere = reinterpret_cast<void*>(16);
    for (int option = UDT_MSS; option <= UDT_RCVDATA; ++option) {
        const UDT::SOCKOPT name = static_cast<UDT::SOCKOPT>(option);
        for (const UDTSOCKET none : {UDT::INVALID_SOCK, 12345}) {
            call("set to nothing, none", UDT::setsockopt(none, 0, name, nowhere, 4));
            call("get to nothing, none", UDT::getsockopt(none, 0, name, nowhere, static_cast<int*>(nowhere)));
        }
    }
}

void streams() {
    char data[64] = "a stream";
    const Pair p = pair(SOCK_STREAM);
    row("state, connected", UDT::getsockstate(p.caller));
    row("state, accepted", UDT::getsockstate(p.accepted));
    call("connect, connected", UDT::connect(p.caller, raw(loopback(9)), sizeof(sockaddr_in)));
    call("bind, connected", bound(p.caller));
    call("listen, connected", UDT::listen(p.caller, 5));
    call("FC, connected", set(p.caller, UDT_FC, 9999));
    call("RENDEZVOUS, connected", set(p.caller, UDT_RENDEZVOUS, true));
    CCCFactory<CCC> factory;
    call("CC, connected", UDT::setsockopt(p.caller, 0, UDT_CC, &factory, sizeof factory));
    call("CC to nothing, connected", UDT::setsockopt(p.caller, 0, UDT_CC, reinterpret_cast<void*>(16), sizeof factory));
    get<int>("MSS, connected", p.caller, UDT_MSS);
    get<int>("STATE, connected", p.caller, UDT_STATE);
    get<int>("EVENT, connected", p.caller, UDT_EVENT);
    call("sendmsg on a stream", UDT::sendmsg(p.caller, data, 8));
    call("send of nothing", UDT::send(p.caller, data, 0, 0));
    call("send", UDT::send(p.caller, data, 8, 0));
    call("recv", UDT::recv(p.accepted, data, sizeof data, 0));
    call("RCVTIMEO", set(p.accepted, UDT_RCVTIMEO, 50));
    call("recv until the time-out", UDT::recv(p.accepted, data, 8, 0));
    call("RCVSYN off", set(p.accepted, UDT_RCVSYN, false));
    call("recv without data", UDT::recv(p.accepted, data, 8, 0));
    UDT::TRACEINFO trace;
    call("perfmon", UDT::perfmon(p.caller, &trace));
    std::fstream none("/nonexistent/file", std::ios::in | std::ios::binary);
    int64_t offset = 0;
    call("sendfile of no file", UDT::sendfile(p.caller, none, offset, 10));
    call("sendfile2 of no file", UDT::sendfile2(p.caller, "/nonexistent/file", &offset, 10));
    const char* const name = "codes.tmp";
    std::ofstream(name) << "twelve bytes";
    offset = 3;
    call("sendfile2", UDT::sendfile2(p.caller, name, &offset, 5));
    row("offset behind it", offset);
    set(p.accepted, UDT_RCVSYN, true);
    int64_t written = 0;
    call("recvfile2", UDT::recvfile2(p.accepted, name, &written, 5));
    row("offset behind it", written);
    unlink(name);
    call("send, last", UDT::send(p.caller, data, 8, 0));
    // It signals an error, which a later sendfile of the peer would tell.
    call("recvfile2 to no file", UDT::recvfile2(p.accepted, "/nonexistent/file", &offset, 10));
    call("close", UDT::close(p.caller));
    set(p.accepted, UDT_RCVSYN, true);
    set(p.accepted, UDT_RCVTIMEO, -1);
    call("recv, last", UDT::recv(p.accepted, data, sizeof data, 0));
    call("recv at the end", UDT::recv(p.accepted, data, sizeof data, 0));
    call("send at the end", UDT::send(p.accepted, data, 8, 0));
    row("state at the end", UDT::getsockstate(p.accepted));
    call("perfmon at the end", UDT::perfmon(p.accepted, &trace));
    call("close, accepted", UDT::close(p.accepted));
    call("close, listener", UDT::close(p.listener));
}

void messages() {
    char data[64] = "a message";
    const Pair p = pair(SOCK_DGRAM);
    call("send of messages", UDT::send(p.caller, data, 8, 0));
    call("recv of messages", UDT::recv(p.caller, data, 8, 0));
    int64_t offset = 0;
    call("sendfile2 of messages", UDT::sendfile2(p.caller, "/nonexistent/file", &offset, 10));
    call("sendmsg", UDT::sendmsg(p.caller, data, 9, -1, true));
    call("sendmsg of nothing", UDT::sendmsg(p.caller, data, 0));
    call("recvmsg with little room", UDT::recvmsg(p.accepted, data, 4));
    set(p.accepted, UDT_RCVTIMEO, 50);
    call("recvmsg of the rest", UDT::recvmsg(p.accepted, data, 8));
    static char large[20000000];
    call("sendmsg of 20 MB", UDT::sendmsg(p.caller, large, sizeof large));
    UDT::close(p.caller);
    set(p.accepted, UDT_RCVTIMEO, -1);
    call("recvmsg at the end", UDT::recvmsg(p.accepted, data, 8));
    UDT::close(p.accepted);
    UDT::close(p.listener);
}

// Waits until the library has noticed.
bool eventually(bool (*holds)(const Pair&), const Pair& p) {
    for (int i = 0; i < 500; ++i) {
        if (holds(p)) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
}

void polls() {
    char data[64] = "events";
    call("epoll_wait, none", UDT::epoll_wait(777, NULL, NULL, 0));
    call("epoll_release, none", UDT::epoll_release(777));
    const int eid = UDT::epoll_create();
    std::set<UDTSOCKET> readers, writers;
    call("epoll_wait, endless and empty", UDT::epoll_wait(eid, &readers, &writers, -1));
    call("epoll_wait, empty", UDT::epoll_wait(eid, &readers, &writers, 20));
    call("epoll_add_usock, none", UDT::epoll_add_usock(eid, 12345));
    const Pair p = pair(SOCK_STREAM);
    const int in = UDT_EPOLL_IN, out = UDT_EPOLL_OUT;
    call("epoll_add_usock", UDT::epoll_add_usock(eid, p.accepted, &in));
    call("epoll_wait without data", UDT::epoll_wait(eid, &readers, &writers, 20));
    UDT::send(p.caller, data, 8, 0);
    call("epoll_wait with data", UDT::epoll_wait(eid, &readers, NULL, 5000));
    row("readers", static_cast<long long>(readers.count(p.accepted) * 10 + readers.size()));
    UDT::recv(p.accepted, data, sizeof data, 0);
    call("epoll_wait after reading", UDT::epoll_wait(eid, &readers, NULL, 20));
    call("epoll_add_usock to write", UDT::epoll_add_usock(eid, p.caller, &out));
    call("epoll_wait for room", UDT::epoll_wait(eid, NULL, &writers, 5000));
    row("writers", static_cast<long long>(writers.count(p.caller) * 10 + writers.size()));
    call("epoll_remove_usock", UDT::epoll_remove_usock(eid, p.caller));
    call("epoll_wait without writers", UDT::epoll_wait(eid, NULL, &writers, 20));
    int fds[2];
    if (pipe(fds) != 0) return;
    call("epoll_add_ssock", UDT::epoll_add_ssock(eid, fds[0], &in));
    std::set<SYSSOCKET> system_readers;
    call("epoll_wait, an empty pipe", UDT::epoll_wait(eid, NULL, NULL, 20, &system_readers));
    if (write(fds[1], "x", 1) != 1) return;
    call("epoll_wait, a pipe", UDT::epoll_wait(eid, NULL, NULL, 5000, &system_readers));
    row("system readers", static_cast<long long>(system_readers.count(fds[0])));
    UDTSOCKET few[1];
    int count = 1;
    UDT::send(p.caller, data, 8, 0);
    call("epoll_wait2", UDT::epoll_wait2(eid, few, &count, NULL, NULL, 5000));
    row("epoll_wait2 found", few[0] == p.accepted ? count : -1);
    UDT::recv(p.accepted, data, sizeof data, 0);

    ud_set set;
    UD_ZERO(&set);
    UD_SET(p.accepted, &set);
    timeval soon = {0, 20000};
    call("select without data", UDT::select(0, &set, NULL, NULL, &soon));
    row("selected", static_cast<long long>(set.size()));
    UD_SET(p.caller, &set);
    call("select to write", UDT::select(0, NULL, &set, NULL, &soon));
    std::vector<UDTSOCKET> all, ready;
    all.push_back(p.accepted);
    call("selectEx without data", UDT::selectEx(all, &ready, NULL, NULL, 20));
    UDT::send(p.caller, data, 8, 0);
    call("selectEx with data", UDT::selectEx(all, &ready, NULL, NULL, 5000));
    UD_ZERO(&set);
    UD_SET(12345, &set);
    call("select, none", UDT::select(0, &set, NULL, NULL, &soon));
    UDT::close(p.caller);
    eventually([](const Pair& p) { return UDT::getsockstate(p.accepted) == BROKEN; }, p);
    call("epoll_wait at the end", UDT::epoll_wait(eid, &readers, NULL, 5000));
    UDT::close(p.accepted);
    call("epoll_release", UDT::epoll_release(eid));
    UDT::close(p.listener);
}

void connecting() {
    const int closed = socket(AF_INET, SOCK_DGRAM, 0);
    sockaddr_in nobody = loopback(0);
    socklen_t length = sizeof nobody;
    bind(closed, raw(nobody), length);
    getsockname(closed, reinterpret_cast<sockaddr*>(&nobody), &length);
    const UDTSOCKET u = UDT::socket(AF_INET, SOCK_STREAM, 0);
    call("connect to nobody", UDT::connect(u, raw(nobody), sizeof nobody));
    row("state after it", UDT::getsockstate(u));
    set(u, UDT_RCVSYN, false);
    call("connect again", UDT::connect(u, raw(nobody), sizeof nobody));
    const UDTSOCKET late = UDT::socket(AF_INET, SOCK_STREAM, 0);
    set(late, UDT_RCVSYN, false);
    call("connect at once", UDT::connect(late, raw(nobody), sizeof nobody));
    row("state, connecting", UDT::getsockstate(late));
    call("FC, connecting", set(late, UDT_FC, 9999));
    char data[8];
    call("send, connecting", UDT::send(late, data, 8, 0));
    call("recv, connecting", UDT::recv(late, data, 8, 0));
    const int eid = UDT::epoll_create();
    UDT::epoll_add_usock(eid, late);
    std::set<UDTSOCKET> writers;
    call("epoll_wait, connecting", UDT::epoll_wait(eid, NULL, &writers, 20));

    const UDTSOCKET messages = UDT::socket(AF_INET, SOCK_DGRAM, 0);
    bound(messages);
    UDT::listen(messages, 5);
    const UDTSOCKET stream = UDT::socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in there = loopback(port_of(messages));
    call("a stream to a listener for messages", UDT::connect(stream, raw(there), sizeof there));
    const UDTSOCKET right = UDT::socket(AF_INET, SOCK_DGRAM, 0);
    set(right, UDT_RCVSYN, false);
    call("connect at once to a listener", UDT::connect(right, raw(there), sizeof there));
    UDT::epoll_add_usock(eid, right);
    call("epoll_wait, connected", UDT::epoll_wait(eid, NULL, &writers, 5000));
    row("state, connected", UDT::getsockstate(right));
}

}  // namespace

int main() {
    UDT::startup();
    sockets_without_connection();
    options();
    streams();
    messages();
    polls();
    connecting();
    std::fflush(stdout);
    _exit(0);
}
