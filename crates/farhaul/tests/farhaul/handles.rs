//! Handles go from thread to thread, and any number of threads may use one.

use farhaul::security::{KeyPair, Pinned, PlainClients, PublicKey, Security};
use farhaul::{
    Builder, Canceller, ConnectOptions, Connection, ControlStream, Endpoint, Error, Listener, MessageSocket,
    OtherClients, RecentPaths, Stream, Watch, WeakEndpoint,
};

const fn is_shared<T: Send + Sync>() {}
const fn is_sent<T: Send>() {}

const _: () = {
    is_shared::<Builder>();
    is_shared::<Canceller>();
    is_shared::<ConnectOptions>();
    is_shared::<Connection>();
    is_shared::<ControlStream>();
    is_shared::<Endpoint>();
    is_shared::<Error>();
    is_shared::<KeyPair>();
    is_shared::<Listener>();
    is_shared::<Listener<MessageSocket>>();
    is_shared::<MessageSocket>();
    is_shared::<Pinned>();
    is_shared::<PlainClients>();
    is_shared::<PublicKey>();
    is_shared::<RecentPaths>();
    is_shared::<Security>();
    is_shared::<Stream>();
    is_shared::<Watch>();
    is_shared::<WeakEndpoint>();
    // One thread at a time receives the clients.
    is_sent::<OtherClients>();
};

#[cfg(feature = "tokio")]
const _: () = {
    is_shared::<farhaul::AsyncStream>();
    is_shared::<farhaul::AsyncMessageSocket>();
};
