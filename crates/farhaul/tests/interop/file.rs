//! Files, by the file calls of each side.

use std::fs::{self, File};
use std::path::PathBuf;

use farhaul::{ConnectionLost, Error};

use crate::content::{digest_of, recv, send, stream};
use crate::here::Here;
use crate::libudt::Libudt;

const LEN: usize = 5_000_001;

/// A file that is removed with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("farhaul-interop-{name}-{}", std::process::id())))
    }

    fn with(name: &str, content: &[u8]) -> Self {
        let file = Self::new(name);
        fs::write(&file.0, content).unwrap();
        file
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The test may never have written it.
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn sendfile_of_libudt_fills_our_file() {
    let Some(libudt) = Libudt::find() else { return };
    let source = Scratch::with("sent-there", &stream(10, LEN));
    let target = Scratch::new("received-here");
    let (peer, address) = libudt.listen(&format!("send --sendfile --file {}", source.0.display()));
    let here = Here::new();
    // This side stays until libudt has ended. libudt fails if this side ends before its last acknowledgement arrives.
    let from = here.connect(address).unwrap();
    from.recv_file(&File::create(&target.0).unwrap(), LEN as u64).unwrap();
    assert!(fs::read(&target.0).unwrap() == stream(10, LEN));
    assert_eq!(peer.report().digest("sent_digest"), digest_of(&stream(10, LEN)));
}

#[test]
fn recvfile_of_libudt_takes_our_file() {
    let Some(libudt) = Libudt::find() else { return };
    let source = Scratch::with("sent-here", &stream(11, LEN));
    let target = Scratch::new("received-there");
    let here = Here::new();
    let listener = here.listen().unwrap();
    let action = format!("recv --recvfile --expect {LEN} --out {} --close-delay 10000", target.0.display());
    let peer = libudt.connect(here.local_addr(), &action);
    let accepted = Here::accept(&listener);
    accepted.send_file(&File::open(&source.0).unwrap(), 0, LEN as u64).unwrap();
    accepted.finish().unwrap();
    assert_eq!(peer.report().digest("received_digest"), digest_of(&stream(11, LEN)));
    assert!(fs::read(&target.0).unwrap() == stream(11, LEN));
}

#[test]
fn a_full_disk_of_libudt_is_reported_here() {
    let Some(libudt) = Libudt::find() else { return };
    let (peer, address) = libudt.listen("recv --error-signal --expect 20000000");
    let here = Here::new();
    let to = here.connect(address).unwrap();
    let error = send(&to, 12, 20_000_000).and_then(|_| to.finish()).unwrap_err();
    assert!(matches!(error, Error::Lost(ConnectionLost::PeerError(4000))), "{error}");
    assert_eq!(peer.end().0, Some(1));
}

#[test]
fn a_file_that_cannot_be_written_here_is_reported_to_libudt() {
    let Some(libudt) = Libudt::find() else { return };
    let here = Here::new();
    let listener = here.listen().unwrap();
    let peer = libudt.connect(here.local_addr(), "send --bytes 20000000 --sndbuf 200000");
    let accepted = Here::accept(&listener);
    // libudt loses the first packet after connecting, which must not be the signal.
    recv(&accepted, Some(1_000_000)).unwrap();
    let error = accepted.recv_file(&File::open("/dev/null").unwrap(), 20_000_000).unwrap_err();
    assert!(matches!(error, Error::File { action: "write", .. }), "{error}");
    let (status, reports) = peer.end();
    assert_eq!((status, reports[0].count("code")), (Some(1), 7000), "{reports:?}");
}
