//! A relay of TCP connections to a server, which can break them.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::limits::{Relay, relay};
use crate::process::Server;

/// Passes connections on to a server. Datagrams take another path, or none.
pub(super) struct BreakableRelay {
    pub(super) address: String,
    connections: Arc<Mutex<Vec<TcpStream>>>,
    _datagrams: Option<Relay>,
}

impl BreakableRelay {
    /// For TCP alone.
    pub(super) fn of_tcp(server: &Server) -> Self {
        Self::at(TcpListener::bind("127.0.0.1:0").unwrap(), server, None)
    }

    /// For TCP and UDP on the same port.
    pub(super) fn of_both(server: &Server) -> Self {
        loop {
            let (datagrams, address) = relay(server, &[]);
            match TcpListener::bind(&address) {
                Ok(listener) => return Self::at(listener, server, Some(datagrams)),
                // A connection of another test has the port in TCP.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) => panic!("{address}: {error}"),
            }
        }
    }

    fn at(listener: TcpListener, server: &Server, datagrams: Option<Relay>) -> Self {
        let address = listener.local_addr().unwrap().to_string();
        let (connections, behind) = (Arc::new(Mutex::new(Vec::new())), server.address.clone());
        let kept = Arc::clone(&connections);
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let far = TcpStream::connect(&behind).unwrap();
                kept.lock().unwrap().extend([near.try_clone().unwrap(), far.try_clone().unwrap()]);
                for (mut from, mut to) in [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)] {
                    thread::spawn(move || {
                        // A broken connection ends without an end in order.
                        if io::copy(&mut from, &mut to).is_ok() {
                            let _ = to.shutdown(Shutdown::Write);
                        }
                    });
                }
            }
        });
        Self { address, connections, _datagrams: datagrams }
    }

    /// Resets all connections at both ends.
    pub(super) fn breaks(&self) {
        for connection in self.connections.lock().unwrap().drain(..) {
            resets(connection);
        }
    }
}

/// Ends a connection by RST, without an end in order before it. Another thread may hold it open in a read.
pub(super) fn resets(connection: TcpStream) {
    rustix::net::connect_unspec(&connection).unwrap();
}
