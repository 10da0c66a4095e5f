//! CCC subclasses of the program as congestion controllers.
//!
//! The C++ part gives a factory and a table of functions ([`Calls`]). Each connection has one object of the factory. A
//! [`Bridge`] around it translates events and settings.
//!
//! Callbacks run under the lock of the port. [`callback`] notes that, so that calls of sockets from there are refused in
//! place of a deadlock. Messages to the peer are collected, and leave after the callback.

mod bridge;
pub(crate) mod callback;
mod foreign;

use farhaul::Connection;

use bridge::Bridge;
pub(crate) use bridge::swap_words;
pub(crate) use foreign::{Calls, Factory, Object};

/// Makes a controller for a connection and puts it in place. Returns its object; `None` if the factory or the connection
/// fails.
pub(crate) fn install(socket: i32, connection: &Connection, factory: &Factory) -> Option<Object> {
    let owned = factory.create(socket)?;
    let object = owned.object();
    connection.set_controller_with(Box::new(Bridge::new(owned))).ok()?;
    Some(object)
}
