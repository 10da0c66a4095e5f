// The functions of the Rust part (src/border/), and what it calls.

#ifndef FARHAUL_LIBUDT_BORDER_H
#define FARHAUL_LIBUDT_BORDER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct CPerfMon;

extern "C" {

// A value, or a code other than zero with the system's error number.
struct FhOutcome {
    int64_t value;
    int32_t code;
    int32_t error_number;
};

// Ids of sockets, which a call replaces by those that are ready. A null pointer is no set.
struct FhIds {
    int32_t* ids;
    size_t count;
};

// What a controller reads of its connection, and what it has set.
struct FhView {
    double max_window;
    int32_t bandwidth;
    int32_t recv_rate;
    int32_t mss;
    int32_t sent;
    int32_t rtt;
};

struct FhSettings {
    double period;
    double window;
    int32_t ack_period;
    int32_t ack_interval;
    int32_t rto;
};

struct FhPacket {
    int32_t seq;
    int32_t message;
    int32_t stamp;
    int32_t payload;
};

// The functions of controllers. None throws.
struct FhCalls {
    void* (*create)(void* factory, int32_t socket);
    void (*destroy_factory)(void* factory);
    void (*destroy)(void* controller);
    void (*init)(void* controller, const FhView* view, FhSettings* settings);
    void (*close)(void* controller);
    void (*on_ack)(void* controller, const FhView* view, int32_t seq, FhSettings* settings);
    void (*on_loss)(void* controller, const FhView* view, const int32_t* list, int32_t words, FhSettings* settings);
    void (*on_timeout)(void* controller, const FhView* view, FhSettings* settings);
    void (*on_sent)(void* controller, const FhView* view, const FhPacket* packets, size_t count, FhSettings* settings);
    void (*on_received)(void* controller, const FhView* view, const FhPacket* packets, size_t count, FhSettings* settings);
    void (*on_custom)(void* controller, const FhView* view, int32_t kind, uint8_t* body, int32_t bytes, FhSettings* settings);
};

typedef void (*FhTake)(void* context, int32_t set, int32_t id);

FhOutcome fh_udt_startup();
FhOutcome fh_udt_cleanup();
FhOutcome fh_udt_leave();
FhOutcome fh_udt_socket(int32_t family, int32_t kind);
FhOutcome fh_udt_bind(int32_t socket, const sockaddr* name, int32_t length);
FhOutcome fh_udt_bind2(int32_t socket, int32_t descriptor);
FhOutcome fh_udt_listen(int32_t socket, int32_t backlog);
FhOutcome fh_udt_accept(int32_t socket, sockaddr* name, int32_t* length);
FhOutcome fh_udt_connect(int32_t socket, const sockaddr* name, int32_t length);
FhOutcome fh_udt_close(int32_t socket);
FhOutcome fh_udt_getpeername(int32_t socket, sockaddr* name, int32_t* length);
FhOutcome fh_udt_getsockname(int32_t socket, sockaddr* name, int32_t* length);
FhOutcome fh_udt_getsockstate(int32_t socket);
FhOutcome fh_udt_getsockopt(int32_t socket, int32_t option, void* value, int32_t* length);
FhOutcome fh_udt_setsockopt(int32_t socket, int32_t option, const void* value);
FhOutcome fh_udt_takes_controller(int32_t socket);
FhOutcome fh_udt_set_controller(int32_t socket, void* factory, const FhCalls* calls);
FhOutcome fh_udt_send_custom(int32_t socket, uint16_t kind, const uint8_t* body, int64_t length);
FhOutcome fh_udt_send(int32_t socket, const uint8_t* data, int64_t length, bool endless);
FhOutcome fh_udt_recv(int32_t socket, uint8_t* out, int64_t length, bool endless);
FhOutcome fh_udt_sendmsg(int32_t socket, const uint8_t* message, int64_t length, int32_t ttl, bool in_order);
FhOutcome fh_udt_recvmsg(int32_t socket, uint8_t* out, int64_t length);
FhOutcome fh_udt_signal_error(int32_t socket, uint32_t code);
FhOutcome fh_udt_perfmon(int32_t socket, CPerfMon* figures, bool clear);
FhOutcome fh_udt_select(FhIds* sets, int64_t milliseconds);
FhOutcome fh_udt_select_ex(const int32_t* ids, int32_t* events, size_t count, int32_t wanted, int64_t milliseconds);
FhOutcome fh_udt_epoll_create();
FhOutcome fh_udt_epoll_add_usock(int32_t poll, int32_t socket, const int32_t* events);
FhOutcome fh_udt_epoll_add_ssock(int32_t poll, int32_t descriptor, const int32_t* events);
FhOutcome fh_udt_epoll_remove_usock(int32_t poll, int32_t socket);
FhOutcome fh_udt_epoll_remove_ssock(int32_t poll, int32_t descriptor);
FhOutcome fh_udt_epoll_release(int32_t poll);
FhOutcome fh_udt_epoll_wait(int32_t poll, int32_t wanted, int64_t milliseconds, FhTake take, void* context);

}

#endif
