// The functions of namespace UDT without types of the C++ library.

#include <stdint.h>

#include "../include/udt/ccc.h"
#include "../include/udt/udt.h"
#include "controllers.h"
#include "error.h"

namespace {

int narrow(const FhOutcome& outcome) { return static_cast<int>(value_of(outcome)); }

const uint8_t* bytes(const char* buffer) { return reinterpret_cast<const uint8_t*>(buffer); }
uint8_t* bytes(char* buffer) { return reinterpret_cast<uint8_t*>(buffer); }

// Tells the peers of closed connections before the process ends, as far as the program did not call UDT::cleanup.
struct Farewell {
    ~Farewell() { fh_udt_leave(); }
} farewell;

}  // namespace

namespace UDT {

int startup() { return narrow(fh_udt_startup()); }
int cleanup() { return narrow(fh_udt_cleanup()); }
UDTSOCKET socket(int af, int type, int) { return narrow(fh_udt_socket(af, type)); }
int bind(UDTSOCKET u, const struct sockaddr* name, int namelen) { return narrow(fh_udt_bind(u, name, namelen)); }
int bind2(UDTSOCKET u, UDPSOCKET udpsock) { return narrow(fh_udt_bind2(u, udpsock)); }
int listen(UDTSOCKET u, int backlog) { return narrow(fh_udt_listen(u, backlog)); }
UDTSOCKET accept(UDTSOCKET u, struct sockaddr* addr, int* addrlen) { return narrow(fh_udt_accept(u, addr, addrlen)); }
int connect(UDTSOCKET u, const struct sockaddr* name, int namelen) { return narrow(fh_udt_connect(u, name, namelen)); }
int close(UDTSOCKET u) { return narrow(fh_udt_close(u)); }

int getpeername(UDTSOCKET u, struct sockaddr* name, int* namelen) {
    return narrow(fh_udt_getpeername(u, name, namelen));
}

int getsockname(UDTSOCKET u, struct sockaddr* name, int* namelen) {
    return narrow(fh_udt_getsockname(u, name, namelen));
}

int getsockopt(UDTSOCKET u, int, SOCKOPT optname, void* optval, int* optlen) {
    return narrow(fh_udt_getsockopt(u, optname, optval, optlen));
}

int setsockopt(UDTSOCKET u, int, SOCKOPT optname, const void* optval, int) {
    if (optname == UDT_CC) {
        return narrow(set_controller(u, optval));
    }
    return narrow(fh_udt_setsockopt(u, optname, optval));
}

int send(UDTSOCKET u, const char* buf, int len, int) { return narrow(fh_udt_send(u, bytes(buf), len, false)); }
int recv(UDTSOCKET u, char* buf, int len, int) { return narrow(fh_udt_recv(u, bytes(buf), len, false)); }

int sendmsg(UDTSOCKET u, const char* buf, int len, int ttl, bool inorder) {
    return narrow(fh_udt_sendmsg(u, bytes(buf), len, ttl, inorder));
}

int recvmsg(UDTSOCKET u, char* buf, int len) { return narrow(fh_udt_recvmsg(u, bytes(buf), len)); }
int perfmon(UDTSOCKET u, TRACEINFO* perf, bool clear) { return narrow(fh_udt_perfmon(u, perf, clear)); }

UDTSTATUS getsockstate(UDTSOCKET u) {
    const FhOutcome outcome = fh_udt_getsockstate(u);
    return outcome.code == 0 ? static_cast<UDTSTATUS>(outcome.value) : NONEXIST;
}

int epoll_create() { return narrow(fh_udt_epoll_create()); }
int epoll_add_usock(int eid, UDTSOCKET u, const int* events) { return narrow(fh_udt_epoll_add_usock(eid, u, events)); }
int epoll_add_ssock(int eid, SYSSOCKET s, const int* events) { return narrow(fh_udt_epoll_add_ssock(eid, s, events)); }
int epoll_remove_usock(int eid, UDTSOCKET u) { return narrow(fh_udt_epoll_remove_usock(eid, u)); }
int epoll_remove_ssock(int eid, SYSSOCKET s) { return narrow(fh_udt_epoll_remove_ssock(eid, s)); }
int epoll_release(int eid) { return narrow(fh_udt_epoll_release(eid)); }

}  // namespace UDT
