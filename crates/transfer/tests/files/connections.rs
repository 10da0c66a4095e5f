//! Connections that end, and servers of earlier versions.

use std::thread;

use farhaul_transfer::{Code, Environment, RemoteFiles, RemoteHost, Ssh};

use super::{Served, settings};

#[test]
fn a_connection_that_the_server_closed_is_made_again() {
    let served = Served::new("again", |server| server.idle(Some(std::time::Duration::from_millis(300))));
    served.write("f", b"content");
    let files = served.files();
    for _ in 0..2 {
        assert_eq!(files.read_range("f", 0, 99).unwrap().bytes, b"content");
        // Longer than the server waits, which looks every second.
        thread::park_timeout(std::time::Duration::from_millis(1_600));
    }
    files.rename("f", "g").unwrap();
}

/// A server that knows copies alone answers the opening with these words.
#[test]
fn an_older_server_is_told_from_one_that_misbehaves() {
    let listener = farhaul::Listener::plain("127.0.0.1:0").unwrap();
    let host: RemoteHost = format!("udt://{}", listener.local_addr()).parse().unwrap();
    let server = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        assert!(stream.recv(&mut [0; 1000]).unwrap() > 0);
        let why = "protocol violation by the peer: malformed Open frame: invalid verb";
        stream.send_all(&farhaul_session::refusal(farhaul_session::AbortCode::Protocol, why)).unwrap();
        let _ = stream.finish();
    });
    let error = RemoteFiles::connect(host, settings(), Ssh::default(), &Environment::default()).unwrap_err();
    assert!(error.code == Code::Protocol && error.message.contains("older than this one"), "{error}");
    server.join().unwrap();
}
