//! Tasks in place of threads: `cargo run --example tasks --features tokio`.
//!
//! The streams implement tokio's `AsyncRead` and `AsyncWrite`, so code for these traits works on them.

use farhaul::{Endpoint, Listener};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = Listener::plain("127.0.0.1:0")?;
    let endpoint = Endpoint::plain("127.0.0.1:0")?;
    let address = listener.local_addr();

    let answering = tokio::spawn(async move {
        let (mut stream, peer) = listener.accept_async().await?;
        let mut question = [0; 5];
        stream.read_exact(&mut question).await?;
        println!("{peer} sent {question:?}");
        stream.write_all(&vec![7; 10_000_000]).await?;
        // Like `finish`, shutting down waits until the peer has acknowledged everything.
        stream.shutdown().await
    });

    let mut stream = endpoint.connect_async(address).await?;
    stream.write_all(&[1, 2, 3, 4, 5]).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    println!("received {} bytes", answer.len());
    answering.await??;
    Ok(())
}
