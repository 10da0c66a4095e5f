//! The answers to scrapers: one request per connection, as little of HTTP/1.1 as they need (RFC 9112).
//!
//! A library would bring a server of its own, with threads and queues to bound. This needs three bounds: callers at a time, bytes of
//! a request, and time for all of it.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use farhaul_udp::Clock;

use super::Metrics;

/// Callers at a time. Others wait in the system's queue, which is bounded as well.
const CALLERS: usize = 8;
/// Longest request with its headers. Those of Prometheus have less than 1 kB.
const LONGEST: usize = 8 << 10;
/// Time for the whole request, and again for the whole answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes that are read to their end and thrown away, so that the answer is not lost with them.
const REST: usize = 64 << 10;

/// The type of the text: OpenMetrics 1.0.
const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Opens the port.
///
/// # Errors
/// It cannot be opened.
pub(crate) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address)
}

/// Answers scrapers on threads of its own, for as long as the program runs. `refused` counts refusals.
///
/// # Errors
/// The system gives no thread.
pub(crate) fn serve(
    listener: TcpListener,
    metrics: Metrics,
    clock: Clock,
    refused: impl Fn() -> u64 + Send + Sync + 'static,
) -> io::Result<()> {
    let shared = Arc::new((listener, metrics, refused));
    for _ in 0..CALLERS {
        let its = Arc::clone(&shared);
        thread::Builder::new().name("metrics".into()).spawn(move || {
            let (listener, metrics, refused) = &*its;
            for caller in listener.incoming() {
                match caller {
                    Ok(caller) => drop(answer(&caller, clock, || metrics.text(refused()).ok())),
                    // Out of descriptors, for instance: without a rest this would be a loop.
                    Err(_) => thread::park_timeout(PATIENCE),
                }
            }
        })?;
    }
    Ok(())
}

fn answer(caller: &TcpStream, clock: Clock, text: impl Fn() -> Option<String>) -> io::Result<()> {
    let (status, body) = match request(caller, clock)?.as_deref() {
        Some("GET /metrics") => match text() {
            Some(text) => ("200 OK", text),
            None => ("500 Internal Server Error", String::new()),
        },
        Some(other) if other.starts_with("GET ") => ("404 Not Found", "the figures are at /metrics\n".to_owned()),
        Some(_) => ("405 Method Not Allowed", String::new()),
        None => ("400 Bad Request", String::new()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {TYPE}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    write_all(caller, clock, &[head.as_bytes(), body.as_bytes()].concat())?;
    caller.shutdown(Shutdown::Write)?;
    let _ = caller.take(REST as u64).read(&mut [0; 512]);
    Ok(())
}

/// Method and path of a request, once its headers have ended; `None` if it is none.
fn request(caller: &TcpStream, clock: Clock) -> io::Result<Option<String>> {
    let (ends, mut bytes, mut block) = (clock.now() + PATIENCE, Vec::new(), [0; 1 << 10]);
    loop {
        let left = ends.saturating_since(clock.now());
        if left.is_zero() || bytes.len() > LONGEST {
            return Ok(None);
        }
        caller.set_read_timeout(Some(left))?;
        match (&mut &*caller).read(&mut block)? {
            0 => return Ok(None),
            len => bytes.extend_from_slice(&block[..len]),
        }
        if bytes.windows(4).any(|end| end == b"\r\n\r\n") || bytes.windows(2).any(|end| end == b"\n\n") {
            let text = String::from_utf8_lossy(&bytes);
            let mut words = text.lines().next().unwrap_or_default().split(' ');
            let target = words.next().zip(words.next());
            return Ok(target.map(|(method, path)| format!("{method} {}", path.split('?').next().unwrap_or(path))));
        }
    }
}

/// Writes all of it within its time, however slowly the caller reads.
fn write_all(caller: &TcpStream, clock: Clock, mut bytes: &[u8]) -> io::Result<()> {
    let ends = clock.now() + PATIENCE;
    while !bytes.is_empty() {
        let left = ends.saturating_since(clock.now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        caller.set_write_timeout(Some(left))?;
        let written = (&mut &*caller).write(bytes)?;
        bytes = &bytes[written..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn begin() -> SocketAddr {
        let listener = bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let address = listener.local_addr().unwrap();
        serve(listener, Metrics::new(), Clock::start(), || 7).unwrap();
        address
    }

    fn ask(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn figures_are_at_one_path_and_everything_else_is_refused() {
        let address = begin();
        let answer = ask(address, b"GET /metrics?x=1 HTTP/1.1\r\nHost: here\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("farhaul_refusals_total 7"), "{answer}");
        assert!(ask(address, b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(ask(address, b"POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
        assert!(ask(address, b"\xff\r\n\r\n").starts_with("HTTP/1.1 400"));
    }

    #[test]
    fn an_endless_request_and_callers_that_say_nothing_do_not_keep_others_from_their_figures() {
        let address = begin();
        let silent: Vec<TcpStream> = (0..CALLERS - 1).map(|_| TcpStream::connect(address).unwrap()).collect();
        let mut endless = TcpStream::connect(address).unwrap();
        let _ = endless.write_all(&vec![b'x'; LONGEST + 1_024]);
        let answer = ask(address, b"GET /metrics HTTP/1.1\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        drop(silent);
    }
}
