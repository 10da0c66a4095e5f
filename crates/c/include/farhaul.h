/* Farhaul: reliable bulk data transfer over UDP for long fat networks. Made by cbindgen from the crate farhaul-c: change that.
 *
 * The guide is the page "From C" of the book. The examples are in crates/c/examples.
 *
 * Results. A call that can fail returns a farhaul_result. If its last argument, a farhaul_error **, is not null, it points to a new
 * error object after a failure and to null after anything else. farhaul_error_free frees it. farhaul_strerror explains a result.
 *
 * Ownership. A call that gives a handle writes it through its argument `out`, after a success alone. Each handle has one function
 * that frees it, which takes a null pointer as well. A handle may be freed before or after those it came from. No call may use it
 * any more then, and none may be running. Texts that a call returns say how long they live. Arguments stay the caller's.
 *
 * Pointers. A text ends with NUL, and a buffer has the length beside it. Both stay unchanged while the call runs, and descriptors of
 * files stay open. A handle, text or buffer that must be there and is null gives FARHAUL_RESULT_NULL_ARGUMENT. Results that nobody wants
 * may be null. Two arguments of one call that the call writes through must not overlap.
 *
 * Threads. Any number of threads may use one handle at a time, unless its type says otherwise. Calls that wait end by time-outs,
 * by a canceller, or with their connection: none waits for ever on a dead peer.
 *
 * Processes. Handles belong to the process that made them, because threads stand behind them. In a process that was forked off a
 * user of this library, each call fails with FARHAUL_RESULT_FORKED, and freeing does nothing. A program that it executes starts anew.
 */

#ifndef FARHAUL_H
#define FARHAUL_H



#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>


// The longest time for a connection attempt. Default 5 s.
#define FARHAUL_TIME_CONNECT 1

// The longest time for a rendezvous. Default 30 s.
#define FARHAUL_TIME_RENDEZVOUS 2

// The silence of a peer that ends a connection. Default 30 s.
#define FARHAUL_TIME_PEER 3

// The longest time without progress that `farhaul_connection_finish` waits. Default 30 s.
#define FARHAUL_TIME_LINGER 4

// The time between signs of life of an idle connection. Default 10 s.
#define FARHAUL_TIME_KEEP_ALIVE 5

// The largest packet in bytes, with all headers: 576 to 65 535, default 1500.
#define FARHAUL_SIZE_PACKET 1

// The cap of the send buffer of a connection in bytes. Default 512 MiB.
#define FARHAUL_SIZE_SEND_BUFFER 2

// The cap of the receive buffer of a connection in bytes. Default 512 MiB.
#define FARHAUL_SIZE_RECV_BUFFER 3

// The receive buffer of the UDP port in bytes. Default 32 MiB.
#define FARHAUL_SIZE_UDP_RECV_BUFFER 4

// The largest number of connections that wait to be accepted. Default 1024.
#define FARHAUL_SIZE_BACKLOG 5

// The largest number of connections of the port. Default 65 536.
#define FARHAUL_SIZE_CONNECTIONS 6

// The handshake has succeeded; of a listener: it is open.
#define FARHAUL_READY_CONNECTED 1

// A read gives bytes, a message, the end or an error at once; of a listener: an accept does.
#define FARHAUL_READY_READABLE 2

// A write takes bytes or gives an error at once.
#define FARHAUL_READY_WRITABLE 4

// The connection or the listener has ended. What has arrived may still be readable.
#define FARHAUL_READY_ENDED 8

// Copy directories with their contents.
#define FARHAUL_COPY_RECURSIVE 1

// Keep a whole tree as it is: links, owners, modes, attributes, access control lists. Includes `FARHAUL_COPY_RECURSIVE`.
#define FARHAUL_COPY_ARCHIVE 2

// Change nothing, and report what would change.
#define FARHAUL_COPY_DRY_RUN 4

// Read each file again from the disk before it gets its name.
#define FARHAUL_COPY_VERIFY_DISK 8

// Compare files that the target has by their content, and not by size and time.
#define FARHAUL_COPY_COMPARE_CONTENT 16

// Leave files that exist at the target as they are.
#define FARHAUL_COPY_KEEP_EXISTING 32

// Replace a file of that name.
#define FARHAUL_PUT_REPLACE 1

// Make missing directories on the way.
#define FARHAUL_PUT_PARENTS 2

// The result of a call. Its number never changes its meaning, and later versions may have more.
typedef enum farhaul_result {
  // The call did what it should.
  FARHAUL_RESULT_OK = 0,
  // Nothing can be done now. Wait until the watch is ready, and call again.
  FARHAUL_RESULT_WOULD_BLOCK = 1,
  // Any failure without its own code.
  FARHAUL_RESULT_FAILED = 2,
  // A pointer is null that must not be.
  FARHAUL_RESULT_NULL_ARGUMENT = 3,
  // An argument has no meaning, or is out of its range.
  FARHAUL_RESULT_INVALID_ARGUMENT = 4,
  // A defect of this library. Free the handle and report the message.
  FARHAUL_RESULT_PANIC = 5,
  // The handle belongs to the parent process.
  FARHAUL_RESULT_FORKED = 6,
  // The time-out of the call has passed. The connection survives.
  FARHAUL_RESULT_TIMED_OUT = 7,
  // It was cancelled.
  FARHAUL_RESULT_CANCELLED = 8,
  // This side has finished the connection or its direction before.
  FARHAUL_RESULT_FINISHED = 9,
  // This side has closed the connection or the listener.
  FARHAUL_RESULT_CLOSED = 10,
  // The peer has closed the connection.
  FARHAUL_RESULT_CLOSED_BY_PEER = 11,
  // The peer gave up the connection: what it sent may be incomplete.
  FARHAUL_RESULT_ABORTED = 12,
  // The peer is silent, too slow, or left.
  FARHAUL_RESULT_PEER_LOST = 13,
  // Nobody answers at the address, or UDP is blocked on the way.
  FARHAUL_RESULT_CONNECT_TIMEOUT = 14,
  // The peer refused the connection.
  FARHAUL_RESULT_REFUSED = 15,
  // TCP gets through to the peer, UDP does not.
  FARHAUL_RESULT_UDP_BLOCKED = 16,
  // The host name has no address.
  FARHAUL_RESULT_NAME_UNRESOLVED = 17,
  // There is no route to the address, or it is of the other family.
  FARHAUL_RESULT_NO_ROUTE = 18,
  // Another program has the UDP port, or the port has a listener.
  FARHAUL_RESULT_ADDRESS_IN_USE = 19,
  // The UDP port cannot be opened.
  FARHAUL_RESULT_ADDRESS_UNAVAILABLE = 20,
  // One side does not trust the key of the other one.
  FARHAUL_RESULT_NOT_ADMITTED = 21,
  // The handshake of the encryption failed.
  FARHAUL_RESULT_HANDSHAKE = 22,
  // The peer speaks another protocol or another version.
  FARHAUL_RESULT_PROTOCOL = 23,
  // The connection, its protocol or this system cannot do that.
  FARHAUL_RESULT_UNSUPPORTED = 24,
  // The message is longer than the send buffer or the window of the peer.
  FARHAUL_RESULT_MESSAGE_TOO_LONG = 25,
  // The port is at its limit of connections.
  FARHAUL_RESULT_TOO_MANY_CONNECTIONS = 26,
  // The stream or the file ended before the announced number of bytes.
  FARHAUL_RESULT_ENDED_EARLY = 27,
  // The system refused a thread, randomness or a descriptor.
  FARHAUL_RESULT_SYSTEM = 28,
  // There is no such file or directory.
  FARHAUL_RESULT_NOT_FOUND = 29,
  // Something has the name already.
  FARHAUL_RESULT_ALREADY_EXISTS = 30,
  // A directory is there, and not a file.
  FARHAUL_RESULT_IS_DIRECTORY = 31,
  // Something else is there, and not a directory.
  FARHAUL_RESULT_NOT_DIRECTORY = 32,
  // A directory that is to be removed or replaced has entries.
  FARHAUL_RESULT_DIRECTORY_NOT_EMPTY = 33,
  // A system denied a permission.
  FARHAUL_RESULT_PERMISSION_DENIED = 34,
  // A file changed while it was read.
  FARHAUL_RESULT_SOURCE_CHANGED = 35,
  // Some files were not copied, the others were.
  FARHAUL_RESULT_FILES_FAILED = 36,
  // The server refused the request.
  FARHAUL_RESULT_ACCESS_DENIED = 37,
  // The key of the server is not known here.
  FARHAUL_RESULT_HOST_KEY_UNKNOWN = 38,
  // The server has another key than before.
  FARHAUL_RESULT_HOST_KEY_CHANGED = 39,
  // ssh did not reach the remote host, or not log in there.
  FARHAUL_RESULT_SSH_FAILED = 40,
  // The remote host lacks the program farhaul.
  FARHAUL_RESULT_REMOTE_PROGRAM_MISSING = 41,
  // The received bytes differ from the sent ones.
  FARHAUL_RESULT_INTEGRITY = 42,
  // A file of this host cannot be read or written.
  FARHAUL_RESULT_LOCAL_IO = 43,
  // A disk is full.
  FARHAUL_RESULT_DISK_FULL = 44,
  // The server is at its limit of sessions.
  FARHAUL_RESULT_BUSY = 45,
} farhaul_result;

// The kind of an event.
typedef enum farhaul_event_kind {
  // The sender has listed everything: `size` bytes in `count` files.
  FARHAUL_EVENT_KIND_EXPECTED = 0,
  // The file `path` of `size` bytes begins to move.
  FARHAUL_EVENT_KIND_BEGUN = 1,
  // Time passes. `bytes` have been acknowledged or received so far. Every 20 ms or so.
  FARHAUL_EVENT_KIND_MOVED = 2,
  // The file `path` of `size` bytes has its final name. Both sides have compared its digest.
  FARHAUL_EVENT_KIND_PLACED = 3,
  // The target has the file `path` already.
  FARHAUL_EVENT_KIND_KEPT = 4,
  // The directory `path` is complete, or a link was made.
  FARHAUL_EVENT_KIND_MADE = 5,
  // The entry `path` was removed from the target.
  FARHAUL_EVENT_KIND_DELETED = 6,
  // `path` was not copied, for the reason in `message`.
  FARHAUL_EVENT_KIND_FAILED = 7,
  // The connection was lost. Another attempt begins after `size` milliseconds. Counts begin anew.
  FARHAUL_EVENT_KIND_RETRYING = 8,
  // `message` says what limits the copy, or what somebody should look at.
  FARHAUL_EVENT_KIND_WARNING = 9,
} farhaul_event_kind;

// The kind of an entry.
typedef enum farhaul_node_kind {
  // A regular file.
  FARHAUL_NODE_KIND_FILE = 0,
  // A directory.
  FARHAUL_NODE_KIND_DIRECTORY = 1,
  // A symbolic link.
  FARHAUL_NODE_KIND_LINK = 2,
  // A device, pipe or socket.
  FARHAUL_NODE_KIND_OTHER = 3,
} farhaul_node_kind;

// How copies and file services reach the other host: keys, ssh, rates. A null pointer in its place is the default: the user's own
// key, known hosts and ssh, as the command has them. One thread at a time changes it, and any number may use it.
typedef struct farhaul_access farhaul_access;

// Ends copies from another thread.
typedef struct farhaul_cancellation farhaul_cancellation;

// Ends the calls that wait at a port, a listener or a connection. It may outlive them.
typedef struct farhaul_canceller farhaul_canceller;

// A connection with one peer, which carries a stream of bytes or messages. Any number of threads may use it: one may read while
// another one writes.
typedef struct farhaul_connection farhaul_connection;

// A copy to be run, once or again. One thread at a time changes it.
typedef struct farhaul_copy farhaul_copy;

// A UDP port with its connections. Any number of threads may use it. Connections and listeners live on when it is freed.
typedef struct farhaul_endpoint farhaul_endpoint;

// Why a call failed. Each call that takes a `farhaul_error **` makes a new one if it fails. Free it.
typedef struct farhaul_error farhaul_error;

// The files of one host, over one connection. Any number of threads may use it, and their requests overtake each other.
typedef struct farhaul_files farhaul_files;

// The private key of a side. It never changes, and any number of threads and options may use it.
typedef struct farhaul_key farhaul_key;

// Accepts connections of one kind at a port. Any number of threads may use it.
typedef struct farhaul_listener farhaul_listener;

// Settings of a port. They are checked when a port is opened. One thread at a time changes them.
typedef struct farhaul_options farhaul_options;

// The readiness of one connection or listener, as a descriptor for poll and epoll.
//
// ```text
// farhaul_watch_check ─▶ what is ready now, and the descriptor is armed for the rest
//        ▲                       │ nothing to do
//        └── the descriptor is readable ◀── poll, epoll
// ```
typedef struct farhaul_watch farhaul_watch;

// A received message.
typedef struct farhaul_received {
  // Bytes written to the buffer.
  size_t length;
  // The buffer was shorter than the message. The rest of the message is lost.
  bool truncated;
  // There is no message: the peer has closed the connection, and none is known to be missing.
  bool ended;
} farhaul_received;

// Counters since the connection was opened, and present estimates. Zero where a protocol does not tell.
typedef struct farhaul_stats {
  // Microseconds since the connection was opened.
  uint64_t elapsed_us;
  // Data packets sent, retransmissions included.
  uint64_t packets_sent;
  // Data packets received, duplicates included.
  uint64_t packets_received;
  // Data packets sent again.
  uint64_t packets_retransmitted;
  // Packets that the peer reported lost.
  uint64_t packets_lost;
  // Bytes taken from the program.
  uint64_t bytes_written;
  // Bytes that the peer has acknowledged.
  uint64_t bytes_acknowledged;
  // Bytes that arrived.
  uint64_t bytes_received;
  // Bytes given to the program.
  uint64_t bytes_read;
  // The smoothed round-trip time in microseconds.
  uint64_t rtt_us;
  // The smallest one of the last ten to twenty seconds.
  uint64_t min_rtt_us;
  // The congestion window in packets.
  uint32_t congestion_window;
  // Packets sent and not acknowledged.
  uint32_t in_flight;
  // Free room for writing, in bytes.
  uint64_t send_buffer_free;
  // Free room for what arrives, in bytes.
  uint64_t recv_buffer_free;
  // Payload of a full packet in bytes.
  uint32_t payload_size;
  // The cap of the send rate in bits per second; zero without one.
  uint64_t max_rate;
} farhaul_stats;

// An event. Its texts live as long as the callback runs.
typedef struct farhaul_event {
  // What happened. Later versions may have more kinds: ignore unknown ones.
  enum farhaul_event_kind kind;
  // The path in the copy, in the bytes of its name; empty if the kind has none.
  const char *path;
  // Words for people; empty if the kind has none.
  const char *message;
  // As the kind says.
  uint64_t size;
  // As the kind says.
  uint64_t bytes;
  // As the kind says.
  uint64_t count;
} farhaul_event;

// Hears events on any thread of a copy, one or several at a time. It must not wait long, not free the copy, and not leave by
// `longjmp` or an exception.
typedef void (*farhaul_event_callback)(void *context,
                                       const struct farhaul_event *event);

// What a copy did.
typedef struct farhaul_report {
  // Bytes of content of the files that were copied.
  uint64_t bytes;
  // Files that were copied.
  uint64_t files;
  // Files that the target had already.
  uint64_t kept;
  // Directories that were made or completed.
  uint64_t directories;
  // Files and directories that were not copied.
  uint64_t failed;
  // Entries that were removed from the target.
  uint64_t deleted;
  // Microseconds from connecting to the last confirmation.
  uint64_t elapsed_us;
  // Payload per second at the receiver, in bits; zero if no time passed.
  uint64_t goodput;
  // Data packets sent again.
  uint64_t packets_retransmitted;
  // Both sides have compared digests.
  bool verified;
} farhaul_report;

// The properties of an entry.
typedef struct farhaul_file_info {
  // Its kind.
  enum farhaul_node_kind kind;
  // Permission bits, with set-user-id, set-group-id and sticky.
  uint32_t mode;
  // Bytes of a file, and zero for everything else.
  uint64_t size;
  // When its content last changed: seconds since 1970.
  int64_t mtime_seconds;
  // The nanoseconds of that.
  uint32_t mtime_nanoseconds;
} farhaul_file_info;

// Gets the entries of a directory in ascending order of their names, on the thread that lists them. The name lives as long as the
// callback runs. It ends the list by returning false, and may make other requests.
typedef bool (*farhaul_entry_callback)(void *context,
                                       const char *name,
                                       const struct farhaul_file_info *info);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of the library that the program runs with: `0.1.0`. The text lives for ever.
const char *farhaul_version(void);

// The meaning of a result in one sentence. The text lives for ever.
const char *farhaul_strerror(int32_t result);

// The code of an error. That of no error is `FARHAUL_RESULT_OK`.
enum farhaul_result farhaul_error_result(const struct farhaul_error *error);

// What failed, on which file or address, why, and what to do next: one line, without its end. The text lives as long as the
// error. That of no error is empty.
const char *farhaul_error_message(const struct farhaul_error *error);

// Frees an error. A null pointer is no error, and is ignored.
void farhaul_error_free(struct farhaul_error *error);

// Makes a new key, which lives in memory alone.
enum farhaul_result farhaul_key_generate(struct farhaul_key **out,
                                         struct farhaul_error **error);

// Reads a private key from a file of OpenSSH or PEM: Ed25519 without a passphrase, as `farhaul key` makes it.
enum farhaul_result farhaul_key_load(const char *path,
                                     struct farhaul_key **out,
                                     struct farhaul_error **error);

// The public key, as in a `.pub` file of OpenSSH: `ssh-ed25519 AAAA…`. The text lives as long as the key. Null for no key.
const char *farhaul_key_public(const struct farhaul_key *key);

// Frees a key. Options that have it keep what they need.
void farhaul_key_free(struct farhaul_key *key);

// New settings, with the defaults. Neither plain nor encrypted is chosen: call `farhaul_options_plain` or
// `farhaul_options_identity`. Null if the process was forked off a user of this library.
struct farhaul_options *farhaul_options_new(void);

// Frees settings. Ports that were opened with them keep what they need.
void farhaul_options_free(struct farhaul_options *options);

// Connections are neither encrypted nor authenticated, and compatible with libudt. Everybody on the path can read, change and
// forge all data.
enum farhaul_result farhaul_options_plain(struct farhaul_options *options,
                                          struct farhaul_error **error);

// Connections are encrypted and authenticated (TLS 1.3), and this side has this key.
enum farhaul_result farhaul_options_identity(struct farhaul_options *options,
                                             const struct farhaul_key *key,
                                             struct farhaul_error **error);

// Trusts one more server, to which this side connects, by its public key: `ssh-ed25519 AAAA…`.
enum farhaul_result farhaul_options_trust_server(struct farhaul_options *options,
                                                 const char *public_key,
                                                 struct farhaul_error **error);

// Admits one more client to a listener of the port, by its public key.
enum farhaul_result farhaul_options_trust_client(struct farhaul_options *options,
                                                 const char *public_key,
                                                 struct farhaul_error **error);

// The protocol by its name with options: `udt`, `udt-2004`, `rbudp:payload=1460`. Default `udt`.
enum farhaul_result farhaul_options_set_protocol(struct farhaul_options *options,
                                                 const char *name,
                                                 struct farhaul_error **error);

// The congestion controller by its name with options: `union`, `udt`, `fixed:rate=500mbit`. Default: that of the protocol.
enum farhaul_result farhaul_options_set_controller(struct farhaul_options *options,
                                                   const char *name,
                                                   struct farhaul_error **error);

// The cap of the send rate of each connection in bits per second, headers and retransmissions included. Above zero.
enum farhaul_result farhaul_options_set_max_rate(struct farhaul_options *options,
                                                 uint64_t bits_per_second,
                                                 struct farhaul_error **error);

// Sets a time, one of `FARHAUL_TIME_…`, in milliseconds. Above zero, and at most a year.
enum farhaul_result farhaul_options_set_time(struct farhaul_options *options,
                                             uint32_t time,
                                             uint64_t milliseconds,
                                             struct farhaul_error **error);

// Sets a size or a number, one of `FARHAUL_SIZE_…`.
enum farhaul_result farhaul_options_set_size(struct farhaul_options *options,
                                             uint32_t size,
                                             uint64_t value,
                                             struct farhaul_error **error);

// Opens a UDP port at an address of this host: `0.0.0.0:0` or `[::]:9000`. Port 0 lets the system choose.
enum farhaul_result farhaul_endpoint_open(const struct farhaul_options *options,
                                          const char *address,
                                          struct farhaul_endpoint **out,
                                          struct farhaul_error **error);

// Writes the address of the port as text into a buffer of `size` bytes: `127.0.0.1:9000`. 64 bytes are always enough.
enum farhaul_result farhaul_endpoint_local_address(const struct farhaul_endpoint *endpoint,
                                                   char *buffer,
                                                   size_t size,
                                                   struct farhaul_error **error);

// The number of the UDP port. Zero for no endpoint.
uint16_t farhaul_endpoint_port(const struct farhaul_endpoint *endpoint);

// Counts datagrams that the system dropped at this port because its buffer was full. Fails where the system does not count.
enum farhaul_result farhaul_endpoint_drops(const struct farhaul_endpoint *endpoint,
                                           uint32_t *count,
                                           struct farhaul_error **error);

// Makes a canceller for every call of the port, its listener and its connections.
enum farhaul_result farhaul_endpoint_canceller(const struct farhaul_endpoint *endpoint,
                                               struct farhaul_canceller **out,
                                               struct farhaul_error **error);

// Frees an endpoint. The port is closed once its connections and its listener are freed as well.
void farhaul_endpoint_free(struct farhaul_endpoint *endpoint);

// Waits until peers know about the end of all connections of this process that were finished or closed, at most a few seconds.
// Call it at the end of a program.
void farhaul_wait_idle(void);

// Begins to accept streams at a port, which has one listener at a time.
enum farhaul_result farhaul_listen(const struct farhaul_endpoint *endpoint,
                                   struct farhaul_listener **out,
                                   struct farhaul_error **error);

// The same for connections that carry messages.
enum farhaul_result farhaul_listen_for_messages(const struct farhaul_endpoint *endpoint,
                                                struct farhaul_listener **out,
                                                struct farhaul_error **error);

// Waits for the next connection. A peer cannot make it fail.
enum farhaul_result farhaul_accept(const struct farhaul_listener *listener,
                                   struct farhaul_connection **out,
                                   struct farhaul_error **error);

// The same without waiting: `FARHAUL_RESULT_WOULD_BLOCK` if there is no connection yet.
enum farhaul_result farhaul_try_accept(const struct farhaul_listener *listener,
                                       struct farhaul_connection **out,
                                       struct farhaul_error **error);

// Makes a watch that is readable while a connection waits to be accepted.
enum farhaul_result farhaul_listener_watch(const struct farhaul_listener *listener,
                                           struct farhaul_watch **out,
                                           struct farhaul_error **error);

// Makes a canceller for calls that wait at the listener.
enum farhaul_result farhaul_listener_canceller(const struct farhaul_listener *listener,
                                               struct farhaul_canceller **out,
                                               struct farhaul_error **error);

// Refuses further connections and those that were not accepted, and frees the listener.
void farhaul_listener_free(struct farhaul_listener *listener);

// Connects to `HOST:PORT`, and waits until the peer answers. Of a name with several addresses, the first one that works.
enum farhaul_result farhaul_connect(const struct farhaul_endpoint *endpoint,
                                    const char *peer,
                                    struct farhaul_connection **out,
                                    struct farhaul_error **error);

// The same for a connection that carries messages.
enum farhaul_result farhaul_connect_for_messages(const struct farhaul_endpoint *endpoint,
                                                 const char *peer,
                                                 struct farhaul_connection **out,
                                                 struct farhaul_error **error);

// Connects with a peer that calls this port at the same time. Neither side listens.
enum farhaul_result farhaul_rendezvous(const struct farhaul_endpoint *endpoint,
                                       const char *peer,
                                       struct farhaul_connection **out,
                                       struct farhaul_error **error);

// Begins to connect and returns at once. A watch tells when the connection exists (`FARHAUL_READY_CONNECTED`) or the attempt has
// failed (`FARHAUL_READY_ENDED`). Only the first address of a name is tried, and resolving the name may wait: give a number.
enum farhaul_result farhaul_begin_connect(const struct farhaul_endpoint *endpoint,
                                          const char *peer,
                                          struct farhaul_connection **out,
                                          struct farhaul_error **error);

// The same for a connection that carries messages.
enum farhaul_result farhaul_begin_connect_for_messages(const struct farhaul_endpoint *endpoint,
                                                       const char *peer,
                                                       struct farhaul_connection **out,
                                                       struct farhaul_error **error);

// Waits until the peer has acknowledged everything that was written, and closes the connection. Its success is the proof of
// delivery. What the peer has yet to send is given up.
enum farhaul_result farhaul_connection_finish(const struct farhaul_connection *connection,
                                              struct farhaul_error **error);

// The same without waiting: the library goes on with it. `farhaul_wait_idle` waits for all of these.
enum farhaul_result farhaul_connection_finish_in_background(const struct farhaul_connection *connection,
                                                            struct farhaul_error **error);

// Ends this side's direction of a stream and returns at once, as `shutdown(SHUT_WR)` does. Reading goes on. Encrypted streams
// between two programs of this library can; others fail with `FARHAUL_RESULT_UNSUPPORTED`.
enum farhaul_result farhaul_connection_finish_sending(const struct farhaul_connection *connection,
                                                      struct farhaul_error **error);

// Ends the connection at once, because this side cannot go on. The peer does not take what it got for everything.
enum farhaul_result farhaul_connection_abort(const struct farhaul_connection *connection,
                                             struct farhaul_error **error);

// The longest time in milliseconds that a call waits for bytes or a message. Zero: no limit, the default.
enum farhaul_result farhaul_connection_set_read_timeout(const struct farhaul_connection *connection,
                                                        uint64_t milliseconds,
                                                        struct farhaul_error **error);

// The longest time in milliseconds that a call waits for room. Zero: no limit, the default.
enum farhaul_result farhaul_connection_set_write_timeout(const struct farhaul_connection *connection,
                                                         uint64_t milliseconds,
                                                         struct farhaul_error **error);

// Caps the send rate of a running connection in bits per second. Zero: no cap.
enum farhaul_result farhaul_connection_set_max_rate(const struct farhaul_connection *connection,
                                                    uint64_t bits_per_second,
                                                    struct farhaul_error **error);

// Writes the address of the peer as text into a buffer of `size` bytes. 64 bytes are always enough.
enum farhaul_result farhaul_connection_peer_address(const struct farhaul_connection *connection,
                                                    char *buffer,
                                                    size_t size,
                                                    struct farhaul_error **error);

// Writes the public key of the peer as text into a buffer of `size` bytes; 128 are always enough. Fails with
// `FARHAUL_RESULT_UNSUPPORTED` for a plain connection.
enum farhaul_result farhaul_connection_peer_key(const struct farhaul_connection *connection,
                                                char *buffer,
                                                size_t size,
                                                struct farhaul_error **error);

// Tells whether `farhaul_connection_finish_sending` works.
enum farhaul_result farhaul_connection_has_half_close(const struct farhaul_connection *connection,
                                                      bool *has,
                                                      struct farhaul_error **error);

// Makes a watch of the connection for an event loop.
enum farhaul_result farhaul_connection_watch(const struct farhaul_connection *connection,
                                             struct farhaul_watch **out,
                                             struct farhaul_error **error);

// Makes a canceller for calls that wait at the connection.
enum farhaul_result farhaul_connection_canceller(const struct farhaul_connection *connection,
                                                 struct farhaul_canceller **out,
                                                 struct farhaul_error **error);

// Frees a connection. One that was not finished is aborted, so that the peer does not take what it got for everything.
void farhaul_connection_free(struct farhaul_connection *connection);

// Waits for bytes and moves as many as have arrived, at most `length`. `count` becomes their number. Zero is the end of the
// stream, unless `length` is zero.
enum farhaul_result farhaul_read(const struct farhaul_connection *connection,
                                 void *buffer,
                                 size_t length,
                                 size_t *count,
                                 struct farhaul_error **error);

// The same without waiting: `FARHAUL_RESULT_WOULD_BLOCK` if there are no bytes.
enum farhaul_result farhaul_try_read(const struct farhaul_connection *connection,
                                     void *buffer,
                                     size_t length,
                                     size_t *count,
                                     struct farhaul_error **error);

// Waits for room and takes as many bytes as fit, at least one. `count` becomes their number.
enum farhaul_result farhaul_write(const struct farhaul_connection *connection,
                                  const void *data,
                                  size_t length,
                                  size_t *count,
                                  struct farhaul_error **error);

// The same without waiting: `FARHAUL_RESULT_WOULD_BLOCK` if there is no room.
enum farhaul_result farhaul_try_write(const struct farhaul_connection *connection,
                                      const void *data,
                                      size_t length,
                                      size_t *count,
                                      struct farhaul_error **error);

// Takes all bytes, and waits for room as often as it must. After a failure, some of them may have been taken.
enum farhaul_result farhaul_write_all(const struct farhaul_connection *connection,
                                      const void *data,
                                      size_t length,
                                      struct farhaul_error **error);

// Sends `length` bytes of an open file from `offset` on. The position of the file does not change.
enum farhaul_result farhaul_send_file(const struct farhaul_connection *connection,
                                      int32_t file,
                                      uint64_t offset,
                                      uint64_t length,
                                      struct farhaul_error **error);

// Receives `length` bytes into an open file, from its position on. If they cannot be written, the peer is told.
enum farhaul_result farhaul_recv_file(const struct farhaul_connection *connection,
                                      int32_t file,
                                      uint64_t length,
                                      struct farhaul_error **error);

// Sends a message whole, and waits for room.
//
// A message that was not delivered within `time_to_live` milliseconds is dropped; zero: never. With `in_order`, it is delivered
// after all earlier ones.
enum farhaul_result farhaul_send_message(const struct farhaul_connection *connection,
                                         const void *data,
                                         size_t length,
                                         uint64_t time_to_live,
                                         bool in_order,
                                         struct farhaul_error **error);

// The same without waiting: `FARHAUL_RESULT_WOULD_BLOCK` if there is no room.
enum farhaul_result farhaul_try_send_message(const struct farhaul_connection *connection,
                                             const void *data,
                                             size_t length,
                                             uint64_t time_to_live,
                                             bool in_order,
                                             struct farhaul_error **error);

// Waits for a message and moves it into the buffer.
enum farhaul_result farhaul_recv_message(const struct farhaul_connection *connection,
                                         void *buffer,
                                         size_t length,
                                         struct farhaul_received *received,
                                         struct farhaul_error **error);

// The same without waiting: `FARHAUL_RESULT_WOULD_BLOCK` if no message is complete.
enum farhaul_result farhaul_try_recv_message(const struct farhaul_connection *connection,
                                             void *buffer,
                                             size_t length,
                                             struct farhaul_received *received,
                                             struct farhaul_error **error);

// Reads the figures of a connection.
enum farhaul_result farhaul_connection_stats(const struct farhaul_connection *connection,
                                             struct farhaul_stats *stats,
                                             struct farhaul_error **error);

// Ends the calls that wait, and all later ones that would, with `FARHAUL_RESULT_CANCELLED`, until `farhaul_canceller_reset`.
// Nothing is closed. Permitted in a signal handler if the process was not forked.
void farhaul_canceller_cancel(const struct farhaul_canceller *canceller);

// Lets calls wait again.
void farhaul_canceller_reset(const struct farhaul_canceller *canceller);

// Frees a canceller. What it cancelled stays so.
void farhaul_canceller_free(struct farhaul_canceller *canceller);

// The descriptor of a watch, an eventfd. Wait until it is readable (`POLLIN`), then call `farhaul_watch_check`. It belongs to the
// watch: do not read, write or close it. -1 for no watch.
int32_t farhaul_watch_descriptor(const struct farhaul_watch *watch);

// Tells what is ready now, as `FARHAUL_READY_…` together, and makes the descriptor unreadable until more may be ready. After a
// call that would block, check again before you wait.
enum farhaul_result farhaul_watch_check(const struct farhaul_watch *watch,
                                        uint32_t *ready,
                                        struct farhaul_error **error);

// Frees a watch and closes its descriptor. Remove it from an epoll set before.
void farhaul_watch_free(struct farhaul_watch *watch);

// New settings with the defaults. Null if the process was forked off a user of this library.
struct farhaul_access *farhaul_access_new(void);

// Frees it. Copies and file services that were made with it keep what they need.
void farhaul_access_free(struct farhaul_access *access);

// Connections to a server (`udt://`) are neither encrypted nor authenticated.
enum farhaul_result farhaul_access_plain(struct farhaul_access *access,
                                         struct farhaul_error **error);

// The file of this side's private key, in place of the user's own.
enum farhaul_result farhaul_access_key_file(struct farhaul_access *access,
                                            const char *path,
                                            struct farhaul_error **error);

// The fingerprint of the server's key, `SHA256:…`, in place of what the file of known hosts says.
enum farhaul_result farhaul_access_host_key(struct farhaul_access *access,
                                            const char *fingerprint,
                                            struct farhaul_error **error);

// The cap of the send rate in bits per second, which a sender there keeps as well. Above zero.
enum farhaul_result farhaul_access_set_max_rate(struct farhaul_access *access,
                                                uint64_t bits_per_second,
                                                struct farhaul_error **error);

// The silence of the peer that ends a connection (default 30 s), and the longest time of an attempt to connect (default 5 s), in
// milliseconds. Above zero.
enum farhaul_result farhaul_access_set_timeouts(struct farhaul_access *access,
                                                uint64_t silence,
                                                uint64_t connecting,
                                                struct farhaul_error **error);

// The program in place of `ssh`, with its first arguments: `count` texts.
enum farhaul_result farhaul_access_ssh(struct farhaul_access *access,
                                       const char *const *words,
                                       size_t count,
                                       struct farhaul_error **error);

// The program `farhaul` on hosts that ssh reaches. Default: that on their `PATH`.
enum farhaul_result farhaul_access_remote_program(struct farhaul_access *access,
                                                  const char *path,
                                                  struct farhaul_error **error);

// Describes a copy of `count` sources to a target. `flags` are `FARHAUL_COPY_…` together. `access` may be null.
//
// A place is a path of this host, `[user@]host:path` over SSH, or `udt://host:port/path` below the root of a server, as the
// command has them. At least one side is another host.
enum farhaul_result farhaul_copy_new(const char *const *sources,
                                     size_t count,
                                     const char *target,
                                     uint32_t flags,
                                     const struct farhaul_access *access,
                                     struct farhaul_copy **out,
                                     struct farhaul_error **error);

// Removes from the target directories what the source lacks, once everything has arrived. Removes nothing if it would be more
// than `most` entries.
enum farhaul_result farhaul_copy_delete(struct farhaul_copy *copy,
                                        uint64_t most,
                                        struct farhaul_error **error);

// Leaves out what a line of a .gitignore file at the top of the copy matches. Of several lines that match, the last one counts.
enum farhaul_result farhaul_copy_exclude(struct farhaul_copy *copy,
                                         const char *pattern,
                                         struct farhaul_error **error);

// Copies only the `index`-th of `count` parts of the files, from 1 on. All parts together are the whole copy.
enum farhaul_result farhaul_copy_shard(struct farhaul_copy *copy,
                                       uint32_t index,
                                       uint32_t count,
                                       struct farhaul_error **error);

// After the connection was lost, tries again until nothing more arrived for this many milliseconds. Default 0: fails at once.
enum farhaul_result farhaul_copy_give_up_after(struct farhaul_copy *copy,
                                               uint64_t milliseconds,
                                               struct farhaul_error **error);

// Runs a copy to its end. `callback`, `cancellation` and `report` may be null. After a failure, the report tells what was done.
//
// A file gets its final name once both ends computed the same digest. Repeat a copy that failed: it goes on where it was.
enum farhaul_result farhaul_copy_run(const struct farhaul_copy *copy,
                                     farhaul_event_callback callback,
                                     void *context,
                                     const struct farhaul_cancellation *cancellation,
                                     struct farhaul_report *report,
                                     struct farhaul_error **error);

// Frees a copy, which must not be running.
void farhaul_copy_free(struct farhaul_copy *copy);

// Makes a cancellation for any number of copies. Null if the process was forked off a user of this library.
struct farhaul_cancellation *farhaul_cancellation_new(void);

// Ends the copies that were given it, now and later, with `FARHAUL_RESULT_CANCELLED`. Any thread may call it, also a callback.
// A signal handler may not.
void farhaul_cancellation_cancel(const struct farhaul_cancellation *cancellation);

// Frees a cancellation. Copies that run with it go on.
void farhaul_cancellation_free(struct farhaul_cancellation *cancellation);

// Connects to the file service of a host: `udt://host:port`, or `[user@]host:` over SSH. `access` may be null.
enum farhaul_result farhaul_files_connect(const char *host,
                                          const struct farhaul_access *access,
                                          struct farhaul_files **out,
                                          struct farhaul_error **error);

// Tells the properties of an entry. A symbolic link is not followed.
enum farhaul_result farhaul_files_stat(const struct farhaul_files *files,
                                       const char *path,
                                       struct farhaul_file_info *info,
                                       struct farhaul_error **error);

// Lists a directory: calls `callback` for each entry.
enum farhaul_result farhaul_files_list(const struct farhaul_files *files,
                                       const char *path,
                                       farhaul_entry_callback callback,
                                       void *context,
                                       struct farhaul_error **error);

// Reads `length` bytes of a file from `offset` on, or fewer at its end. `count` becomes their number. Their digest was compared.
enum farhaul_result farhaul_files_read(const struct farhaul_files *files,
                                       const char *path,
                                       uint64_t offset,
                                       void *buffer,
                                       size_t length,
                                       size_t *count,
                                       struct farhaul_error **error);

// Writes a file with these bytes. It has its name once it is whole, verified and safe on the disk there. `flags` are
// `FARHAUL_PUT_…` together.
enum farhaul_result farhaul_files_put(const struct farhaul_files *files,
                                      const char *path,
                                      const void *data,
                                      size_t length,
                                      uint32_t flags,
                                      struct farhaul_error **error);

// The same with what an open file has, from its position to its end.
enum farhaul_result farhaul_files_put_file(const struct farhaul_files *files,
                                           const char *path,
                                           int32_t file,
                                           uint32_t flags,
                                           struct farhaul_error **error);

// Makes a directory. With `parents`, missing ones on the way as well, and one that exists is no failure.
enum farhaul_result farhaul_files_make_directory(const struct farhaul_files *files,
                                                 const char *path,
                                                 bool parents,
                                                 struct farhaul_error **error);

// Removes a file, a link, or an empty directory.
enum farhaul_result farhaul_files_remove(const struct farhaul_files *files,
                                         const char *path,
                                         struct farhaul_error **error);

// Removes a directory with everything in it, or a file. If there are more than `most` entries, the rest stays. `count` becomes the
// number of entries removed.
enum farhaul_result farhaul_files_remove_tree(const struct farhaul_files *files,
                                              const char *path,
                                              uint64_t most,
                                              uint64_t *count,
                                              struct farhaul_error **error);

// Gives an entry another name. With `replace`, it replaces a file, or an empty directory by a directory. Missing directories are
// made.
enum farhaul_result farhaul_files_rename(const struct farhaul_files *files,
                                         const char *from,
                                         const char *to,
                                         bool replace,
                                         struct farhaul_error **error);

// Copies a file at the server, whose bytes do not come here. Missing directories are made.
enum farhaul_result farhaul_files_copy(const struct farhaul_files *files,
                                       const char *from,
                                       const char *to,
                                       bool replace,
                                       struct farhaul_error **error);

// Ends the connection once every request has its answer. A later request makes a new one.
enum farhaul_result farhaul_files_close(const struct farhaul_files *files,
                                        struct farhaul_error **error);

// Frees a file service.
void farhaul_files_free(struct farhaul_files *files);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FARHAUL_H */
