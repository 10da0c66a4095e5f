//! Two sides that know each other's keys, and a third one that is not admitted.

use std::io::{Read, Write};

use farhaul::security::{KeyPair, Pinned, Security};
use farhaul::{Connection, Endpoint, Listener};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Each side makes its key pair once and keeps it. Only public keys are exchanged, over a channel that both trust.
    let (alice, bob, mallory) = (KeyPair::generate()?, KeyPair::generate()?, KeyPair::generate()?);
    println!("the server is {}", bob.public().fingerprint());

    let admits = Pinned { clients: vec![alice.public()], ..Pinned::default() };
    let port = Endpoint::builder().secure(Security::new(bob.clone(), admits)).bind("127.0.0.1:0".parse()?)?;
    let listener: Listener = port.listen()?;
    let address = listener.local_addr();
    let server = std::thread::spawn(move || -> std::io::Result<String> {
        let (mut stream, peer) = listener.accept()?;
        println!("{peer}: {}", stream.protection()?.expect("the port is secure"));
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    });

    let trusts = || Pinned { servers: vec![bob.public()], ..Pinned::default() };
    let stranger = Endpoint::builder().secure(Security::new(mallory, trusts())).bind("127.0.0.1:0".parse()?)?;
    match stranger.connect(address) {
        // The server's verdict comes a round trip after the client's last message.
        Ok(stream) => println!("a stranger: {}", stream.finish().expect_err("it is not admitted")),
        Err(error) => println!("a stranger: {error}"),
    }

    let client = Endpoint::builder().secure(Security::new(alice, trusts())).bind("127.0.0.1:0".parse()?)?;
    let mut stream = client.connect(address)?;
    stream.write_all(b"for your eyes only")?;
    Connection::finish(&stream)?;
    println!("received: {}", server.join().expect("the server does not panic")?);
    Ok(())
}
