/* Messages with boundaries: in order, and with a time to live. */
#include <string.h>

#include "check.h"

int main(void) {
    farhaul_error *error;
    farhaul_options *options = farhaul_options_new();
    check(farhaul_options_plain(options, &error), &error);
    farhaul_endpoint *listening, *calling;
    check(farhaul_endpoint_open(options, "127.0.0.1:0", &listening, &error), &error);
    check(farhaul_endpoint_open(options, "127.0.0.1:0", &calling, &error), &error);
    farhaul_options_free(options);
    farhaul_listener *listener;
    check(farhaul_listen_for_messages(listening, &listener, &error), &error);
    char address[64];
    check(farhaul_endpoint_local_address(listening, address, sizeof address, &error), &error);
    farhaul_connection *sender, *receiver;
    check(farhaul_connect_for_messages(calling, address, &sender, &error), &error);
    check(farhaul_accept(listener, &receiver, &error), &error);

    const char *texts[] = {"over the hills", "and far away"};
    for (size_t index = 0; index < 2; index++) {
        /* Delivered within 5 s, or not at all, and after earlier ones. */
        check(farhaul_send_message(sender, texts[index], strlen(texts[index]), 5000, true, &error), &error);
    }
    for (size_t index = 0; index < 2; index++) {
        char text[64];
        farhaul_received received;
        check(farhaul_recv_message(receiver, text, sizeof text, &received, &error), &error);
        printf("%.*s\n", (int)received.length, text);
    }
    check(farhaul_connection_finish(sender, &error), &error);

    farhaul_connection_free(sender);
    farhaul_connection_free(receiver);
    farhaul_listener_free(listener);
    farhaul_endpoint_free(calling);
    farhaul_endpoint_free(listening);
    farhaul_wait_idle();
    return 0;
}
