/* The contract of the header: null pointers, error objects, cancellation, time-outs, forks. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../examples/check.h"

#define MUST(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
            exit(1); \
        } \
    } while (0)

/* The call fails with this result, an error object with the same code, and words with these in them. */
static void fails(farhaul_result result, farhaul_error **error, farhaul_result expected, const char *words) {
    if (result != expected || farhaul_error_result(*error) != expected || !strstr(farhaul_error_message(*error), words)) {
        fprintf(stderr, "%d, and not %d: %s\n", (int)result, (int)expected, farhaul_error_message(*error));
        exit(1);
    }
    farhaul_error_free(*error);
}

static void nulls(void) {
    farhaul_error *error = NULL;
    farhaul_options *options = farhaul_options_new();
    farhaul_endpoint *endpoint;
    fails(farhaul_endpoint_open(NULL, "127.0.0.1:0", &endpoint, &error), &error, FARHAUL_RESULT_NULL_ARGUMENT, "options");
    fails(farhaul_endpoint_open(options, NULL, &endpoint, &error), &error, FARHAUL_RESULT_NULL_ARGUMENT, "address");
    fails(farhaul_endpoint_open(options, "127.0.0.1:0", &endpoint, &error), &error, FARHAUL_RESULT_INVALID_ARGUMENT,
          "choose the protection");
    fails(farhaul_endpoint_open(options, "nonsense", &endpoint, &error), &error, FARHAUL_RESULT_NAME_UNRESOLVED, "resolve");
    check(farhaul_options_plain(options, NULL), NULL);
    fails(farhaul_endpoint_open(options, "127.0.0.1:0", NULL, &error), &error, FARHAUL_RESULT_NULL_ARGUMENT, "out");
    fails(farhaul_options_set_size(options, 77, 1, &error), &error, FARHAUL_RESULT_INVALID_ARGUMENT, "77");
    fails(farhaul_options_set_protocol(options, "warp", &error), &error, FARHAUL_RESULT_INVALID_ARGUMENT, "warp");
    fails(farhaul_options_set_protocol(options, "\xff", &error), &error, FARHAUL_RESULT_INVALID_ARGUMENT, "UTF-8");
    fails(farhaul_options_trust_server(options, "ssh-rsa AAAA", &error), &error, FARHAUL_RESULT_INVALID_ARGUMENT, "key");
    check(farhaul_options_set_controller(options, "warp", &error), &error);
    fails(farhaul_endpoint_open(options, "127.0.0.1:0", &endpoint, &error), &error, FARHAUL_RESULT_INVALID_ARGUMENT, "warp");
    farhaul_key *key;
    fails(farhaul_key_load("/nowhere/key", &key, &error), &error, FARHAUL_RESULT_NOT_FOUND, "/nowhere/key");
    farhaul_options_free(options);

    /* No error is wanted, and none leaks. */
    MUST(farhaul_read(NULL, NULL, 0, NULL, NULL) == FARHAUL_RESULT_NULL_ARGUMENT);
    MUST(farhaul_error_message(NULL)[0] == 0 && farhaul_error_result(NULL) == FARHAUL_RESULT_OK);
    MUST(farhaul_watch_descriptor(NULL) == -1 && farhaul_endpoint_port(NULL) == 0 && !farhaul_key_public(NULL));
    MUST(strchr(farhaul_version(), '.') != NULL);
    MUST(strstr(farhaul_strerror(FARHAUL_RESULT_PEER_LOST), "peer") && farhaul_strerror(-5));
    farhaul_canceller_cancel(NULL);
    farhaul_cancellation_cancel(NULL);
    farhaul_access_free(NULL);
    farhaul_canceller_free(NULL);
    farhaul_connection_free(NULL);
    farhaul_copy_free(NULL);
    farhaul_endpoint_free(NULL);
    farhaul_error_free(NULL);
    farhaul_files_free(NULL);
    farhaul_key_free(NULL);
    farhaul_listener_free(NULL);
    farhaul_options_free(NULL);
    farhaul_watch_free(NULL);
    farhaul_cancellation_free(NULL);
}

static void copies(void) {
    farhaul_error *error;
    farhaul_copy *copy;
    const char *here[] = {"a"};
    fails(farhaul_copy_new(here, 1, "b", 0, NULL, &copy, &error), &error, FARHAUL_RESULT_INVALID_ARGUMENT, "this machine");
    fails(farhaul_copy_new(here, 1, "udt://h:9/", 1u << 20, NULL, &copy, &error), &error, FARHAUL_RESULT_INVALID_ARGUMENT,
          "flags");
    fails(farhaul_copy_new(NULL, 1, "udt://h:9/", 0, NULL, &copy, &error), &error, FARHAUL_RESULT_NULL_ARGUMENT, "sources");
    const char *stream[] = {"-"};
    fails(farhaul_copy_new(stream, 1, "udt://h:9/x", 0, NULL, &copy, &error), &error, FARHAUL_RESULT_INVALID_ARGUMENT, "-");
    const char *sources[] = {"/nowhere/at/all"};
    check(farhaul_copy_new(sources, 1, "udt://127.0.0.1:9/", 0, NULL, &copy, &error), &error);
    fails(farhaul_copy_shard(copy, 4, 3, &error), &error, FARHAUL_RESULT_INVALID_ARGUMENT, "I/N");
    check(farhaul_copy_shard(copy, 3, 3, &error), &error);
    farhaul_report report;
    MUST(farhaul_copy_run(copy, NULL, NULL, NULL, &report, &error) != FARHAUL_RESULT_OK && report.files == 0);
    MUST(strstr(farhaul_error_message(error), "/nowhere/at/all"));
    farhaul_error_free(error);
    farhaul_copy_free(copy);
}

static void *accept_until_cancelled(void *argument) {
    farhaul_connection *connection;
    farhaul_error *error;
    fails(farhaul_accept(argument, &connection, &error), &error, FARHAUL_RESULT_CANCELLED, "cancelled");
    return NULL;
}

static void connections(void) {
    farhaul_error *error;
    farhaul_options *options = farhaul_options_new();
    check(farhaul_options_plain(options, &error), &error);
    farhaul_endpoint *listening, *calling;
    check(farhaul_endpoint_open(options, "127.0.0.1:0", &listening, &error), &error);
    check(farhaul_endpoint_open(options, "127.0.0.1:0", &calling, &error), &error);
    farhaul_options_free(options);
    farhaul_listener *listener, *second;
    check(farhaul_listen(listening, &listener, &error), &error);
    fails(farhaul_listen(listening, &second, &error), &error, FARHAUL_RESULT_ADDRESS_IN_USE, "listener");
    char small[4], address[64];
    fails(farhaul_endpoint_local_address(listening, small, sizeof small, &error), &error, FARHAUL_RESULT_INVALID_ARGUMENT,
          "bytes");
    check(farhaul_endpoint_local_address(listening, address, sizeof address, &error), &error);

    /* A canceller ends a call that waits on another thread. */
    farhaul_canceller *canceller;
    check(farhaul_listener_canceller(listener, &canceller, &error), &error);
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, accept_until_cancelled, listener) == 0);
    farhaul_canceller_cancel(canceller);
    pthread_join(thread, NULL);
    farhaul_canceller_reset(canceller);
    farhaul_canceller_free(canceller);

    farhaul_connection *caller, *called, *nobody;
    check(farhaul_connect(calling, address, &caller, &error), &error);
    check(farhaul_accept(listener, &called, &error), &error);
    MUST(farhaul_try_accept(listener, &nobody, &error) == FARHAUL_RESULT_WOULD_BLOCK && !error);
    char byte;
    size_t count;
    MUST(farhaul_try_read(called, &byte, 1, &count, &error) == FARHAUL_RESULT_WOULD_BLOCK && count == 0 && !error);
    check(farhaul_connection_set_read_timeout(called, 20, &error), &error);
    fails(farhaul_read(called, &byte, 1, &count, &error), &error, FARHAUL_RESULT_TIMED_OUT, "20ms");
    fails(farhaul_read(called, NULL, 1, &count, &error), &error, FARHAUL_RESULT_NULL_ARGUMENT, "buffer");
    fails(farhaul_read(called, &byte, (size_t)-1, &count, &error), &error, FARHAUL_RESULT_INVALID_ARGUMENT, "length");
    farhaul_received received;
    fails(farhaul_recv_message(called, &byte, 1, &received, &error), &error, FARHAUL_RESULT_INVALID_ARGUMENT, "stream");
    fails(farhaul_connection_finish_sending(caller, &error), &error, FARHAUL_RESULT_UNSUPPORTED, "direction");
    fails(farhaul_connection_peer_key(caller, address, sizeof address, &error), &error, FARHAUL_RESULT_UNSUPPORTED, "encrypted");
    fails(farhaul_send_file(caller, -1, 0, 1, &error), &error, FARHAUL_RESULT_INVALID_ARGUMENT, "descriptor");

    /* A child has copies of the handles and none of the threads: nothing waits there, and nothing breaks here. */
    pid_t child = fork();
    if (child == 0) {
        fails(farhaul_read(called, &byte, 1, &count, &error), &error, FARHAUL_RESULT_FORKED, "forked");
        MUST(!farhaul_options_new());
        farhaul_connection_free(caller);
        farhaul_endpoint_free(calling);
        farhaul_wait_idle();
        _exit(0);
    }
    int status;
    MUST(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);

    /* An end that is freed without a finish is no end of the stream. */
    check(farhaul_write_all(caller, "x", 1, &error), &error);
    check(farhaul_connection_set_read_timeout(called, 10000, &error), &error);
    check(farhaul_read(called, &byte, 1, &count, &error), &error);
    MUST(count == 1 && byte == 'x');
    farhaul_connection_free(caller);
    fails(farhaul_read(called, &byte, 1, &count, &error), &error, FARHAUL_RESULT_ABORTED, "");
    farhaul_connection_free(called);
    farhaul_listener_free(listener);
    farhaul_endpoint_free(calling);
    farhaul_endpoint_free(listening);
}

int main(void) {
    nulls();
    copies();
    connections();
    farhaul_wait_idle();
    puts("the contract holds");
    return 0;
}
