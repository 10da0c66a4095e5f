//! Two ends of a stream in one program: `cargo run --example hello`.

use std::io::{self, Read, Write};
use std::thread;

use farhaul::{Listener, Stream};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = Listener::plain("127.0.0.1:0")?;
    let address = listener.local_addr();

    let caller = thread::spawn(move || -> io::Result<String> {
        let mut stream = Stream::connect_plain(address)?;
        stream.write_all(b"Is anybody there?\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    });

    let (mut stream, peer) = listener.accept()?;
    let mut question = [0; 64];
    let len = stream.read(&mut question)?;
    print!("{peer} asks: {}", String::from_utf8_lossy(&question[..len]));
    stream.write_all(b"Yes, and I can prove it.\n")?;
    // Returns once the caller has acknowledged every byte.
    stream.finish()?;

    print!("the answer: {}", caller.join().expect("the caller does not panic")?);
    Ok(())
}
