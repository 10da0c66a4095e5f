//! Hosts and links in deterministic virtual time.
