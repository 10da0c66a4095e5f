/* A question and its answer over an encrypted stream. Each end knows the other one's key. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <string.h>

#include "check.h"

/* Reads the stream of the next caller to its end, and answers. */
static void *serve(void *argument) {
    const farhaul_listener *listener = argument;
    farhaul_connection *connection;
    farhaul_error *error;
    check(farhaul_accept(listener, &connection, &error), &error);
    char key[128];
    check(farhaul_connection_peer_key(connection, key, sizeof key, &error), &error);
    char buffer[4096];
    size_t total = 0, count;
    do {
        check(farhaul_read(connection, buffer, sizeof buffer, &count, &error), &error);
        total += count;
    } while (count > 0);
    printf("%zu bytes from %.11s...\n", total, key);
    check(farhaul_write_all(connection, "thanks", 6, &error), &error);
    check(farhaul_connection_finish(connection, &error), &error);
    farhaul_connection_free(connection);
    return NULL;
}

int main(void) {
    farhaul_error *error;
    farhaul_key *alice, *bob;
    check(farhaul_key_generate(&alice, &error), &error);
    check(farhaul_key_generate(&bob, &error), &error);

    /* Bob listens, and admits Alice. */
    farhaul_options *options = farhaul_options_new();
    check(farhaul_options_identity(options, bob, &error), &error);
    check(farhaul_options_trust_client(options, farhaul_key_public(alice), &error), &error);
    farhaul_endpoint *listening;
    check(farhaul_endpoint_open(options, "127.0.0.1:0", &listening, &error), &error);
    farhaul_options_free(options);
    farhaul_listener *listener;
    check(farhaul_listen(listening, &listener, &error), &error);
    char address[64];
    check(farhaul_endpoint_local_address(listening, address, sizeof address, &error), &error);
    pthread_t thread;
    if (pthread_create(&thread, NULL, serve, listener) != 0) {
        return 1;
    }

    /* Alice connects, and trusts Bob. */
    options = farhaul_options_new();
    check(farhaul_options_identity(options, alice, &error), &error);
    check(farhaul_options_trust_server(options, farhaul_key_public(bob), &error), &error);
    check(farhaul_options_set_time(options, FARHAUL_TIME_CONNECT, 10000, &error), &error);
    farhaul_endpoint *calling;
    check(farhaul_endpoint_open(options, "127.0.0.1:0", &calling, &error), &error);
    farhaul_options_free(options);
    farhaul_connection *connection;
    check(farhaul_connect(calling, address, &connection, &error), &error);
    char data[100000];
    memset(data, 'x', sizeof data);
    check(farhaul_write_all(connection, data, sizeof data, &error), &error);
    /* Bob reads to the end of the question. His answer comes the other way. */
    check(farhaul_connection_finish_sending(connection, &error), &error);
    char answer[16];
    size_t length = 0, count;
    do {
        check(farhaul_read(connection, answer + length, sizeof answer - length, &count, &error), &error);
        length += count;
    } while (count > 0);
    printf("the answer: %.*s\n", (int)length, answer);
    /* Both directions have ended, and everything has arrived. */
    check(farhaul_connection_finish(connection, &error), &error);
    farhaul_stats stats;
    check(farhaul_connection_stats(connection, &stats, &error), &error);
    printf("%llu bytes acknowledged\n", (unsigned long long)stats.bytes_acknowledged);

    pthread_join(thread, NULL);
    farhaul_connection_free(connection);
    farhaul_listener_free(listener);
    farhaul_endpoint_free(calling);
    farhaul_endpoint_free(listening);
    farhaul_key_free(alice);
    farhaul_key_free(bob);
    farhaul_wait_idle();
    return 0;
}
