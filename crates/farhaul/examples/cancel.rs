//! Ends of waiting calls: time-outs, cancellation, and their errors. `cargo run --example cancel`.

use std::io;
use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

use farhaul::{ConnectionLost, Endpoint, Error, Listener, Stream};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = Listener::plain("127.0.0.1:0")?;
    let stream = Stream::connect_plain(listener.local_addr())?;
    let (peer, _) = listener.accept()?;

    // A call that times out fails alone. The connection survives.
    stream.set_read_timeout(Some(Duration::from_millis(100)));
    if let Err(error @ Error::TimedOut(_)) = stream.recv(&mut [0; 10]) {
        println!("reading: {error}");
    }
    stream.set_read_timeout(None);

    // A canceller ends calls that wait now, and later ones that would wait, until it is reset. It may be used in a
    // signal handler.
    let canceller = stream.canceller();
    thread::scope(|scope| {
        let reader = scope.spawn(|| stream.recv(&mut [0; 10]));
        canceller.cancel();
        let error = reader.join().expect("the reader does not panic").expect_err("nothing came");
        println!("reading: {error}");
    });
    canceller.reset();
    peer.send_all(b"still here")?;
    let mut text = [0; 10];
    let len = stream.recv(&mut text)?;
    println!("reading: {}", String::from_utf8_lossy(&text[..len]));

    // Nobody answers. The error of the connect time-out names possible reasons.
    let nobody = UdpSocket::bind("127.0.0.1:0")?;
    let endpoint =
        Endpoint::builder().plain().connect_timeout(Duration::from_millis(300)).bind("127.0.0.1:0".parse()?)?;
    let error = endpoint.connect(nobody.local_addr()?).expect_err("nobody answers");
    println!("connecting: {error}");

    // As `std::io::Error` it keeps its kind and contains the typed error.
    let error = io::Error::from(error);
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    let typed = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    assert!(matches!(typed, Some(Error::Lost(ConnectionLost::ConnectTimeout(_)))));
    Ok(())
}
