/* One thread, no waiting calls: a caller sends 4 MiB to a listener, and both ends live in one epoll loop. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "check.h"

enum { TOTAL = 4 << 20, BLOCK = 64 << 10 };

/* Waits for a watch under a number that epoll gives back. */
static void add(int epoll, const farhaul_watch *watch, unsigned number) {
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = number};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, farhaul_watch_descriptor(watch), &event) != 0) {
        perror("epoll_ctl");
        exit(1);
    }
}

static void *need(void *memory) {
    if (!memory) {
        fputs("no memory\n", stderr);
        exit(1);
    }
    return memory;
}

/* Sends until there is no room. Returns whether everything was taken. */
static int send_more(const farhaul_connection *connection, const char *block, size_t *sent) {
    while (*sent < TOTAL) {
        size_t left = TOTAL - *sent, count;
        farhaul_error *error;
        farhaul_result result = farhaul_try_write(connection, block, left < BLOCK ? left : BLOCK, &count, &error);
        if (result == FARHAUL_RESULT_WOULD_BLOCK) {
            return 0;
        }
        check(result, &error);
        *sent += count;
    }
    return 1;
}

/* Receives until there is nothing. Returns whether the stream has ended. */
static int receive_more(const farhaul_connection *connection, char *block, size_t *received) {
    for (;;) {
        size_t count;
        farhaul_error *error;
        farhaul_result result = farhaul_try_read(connection, block, BLOCK, &count, &error);
        if (result == FARHAUL_RESULT_WOULD_BLOCK) {
            return 0;
        }
        check(result, &error);
        if (count == 0) {
            return 1;
        }
        *received += count;
    }
}

int main(void) {
    farhaul_error *error;
    farhaul_options *options = farhaul_options_new();
    check(farhaul_options_plain(options, &error), &error);
    farhaul_endpoint *listening, *calling;
    check(farhaul_endpoint_open(options, "127.0.0.1:0", &listening, &error), &error);
    check(farhaul_endpoint_open(options, "127.0.0.1:0", &calling, &error), &error);
    farhaul_options_free(options);
    farhaul_listener *listener;
    check(farhaul_listen(listening, &listener, &error), &error);
    char address[64];
    check(farhaul_endpoint_local_address(listening, address, sizeof address, &error), &error);
    farhaul_connection *sender, *receiver = NULL;
    check(farhaul_begin_connect(calling, address, &sender, &error), &error);

    enum { LISTENER, SENDER, RECEIVER };
    farhaul_watch *watches[3] = {NULL, NULL, NULL};
    check(farhaul_listener_watch(listener, &watches[LISTENER], &error), &error);
    check(farhaul_connection_watch(sender, &watches[SENDER], &error), &error);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    add(epoll, watches[LISTENER], LISTENER);
    add(epoll, watches[SENDER], SENDER);

    char *block = need(calloc(1, BLOCK));
    size_t sent = 0, received = 0;
    int is_finishing = 0, has_ended = 0;
    while (!has_ended) {
        struct epoll_event events[3];
        int count = epoll_wait(epoll, events, 3, 20000);
        if (count <= 0) {
            fputs("nothing happened for 20 s\n", stderr);
            return 1;
        }
        for (int index = 0; index < count; index++) {
            unsigned which = events[index].data.u32;
            uint32_t ready;
            check(farhaul_watch_check(watches[which], &ready, &error), &error);
            if (which == LISTENER && ready & FARHAUL_READY_READABLE && !receiver) {
                check(farhaul_try_accept(listener, &receiver, &error), &error);
                check(farhaul_connection_watch(receiver, &watches[RECEIVER], &error), &error);
                add(epoll, watches[RECEIVER], RECEIVER);
            } else if (which == SENDER && ready & FARHAUL_READY_WRITABLE && !is_finishing) {
                if (send_more(sender, block, &sent)) {
                    check(farhaul_connection_finish_in_background(sender, &error), &error);
                    is_finishing = 1;
                } else {
                    /* Arms the watch behind the call that would have blocked. */
                    check(farhaul_watch_check(watches[SENDER], &ready, &error), &error);
                }
            } else if (which == RECEIVER && ready & FARHAUL_READY_READABLE) {
                has_ended = receive_more(receiver, block, &received);
                if (!has_ended) {
                    check(farhaul_watch_check(watches[RECEIVER], &ready, &error), &error);
                }
            }
        }
    }
    printf("%zu bytes sent, %zu received\n", sent, received);

    close(epoll);
    free(block);
    for (int index = 0; index < 3; index++) {
        farhaul_watch_free(watches[index]);
    }
    farhaul_connection_free(sender);
    farhaul_connection_free(receiver);
    farhaul_listener_free(listener);
    farhaul_endpoint_free(calling);
    farhaul_endpoint_free(listening);
    farhaul_wait_idle();
    return received == TOTAL ? 0 : 1;
}
