//! UDP sockets in batches, with offloads that switch themselves off.
