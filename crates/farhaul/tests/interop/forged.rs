//! What somebody sends in the name of a real libudt, and how that tells us that it was not from there.

use std::time::Duration;

use farhaul::Error;
use farhaul_wire::udt4::Control;

use crate::content::{recv, send};
use crate::here::Here;
use crate::libudt::Libudt;
use crate::tap::Direction::Up;
use crate::tap::{Kind, Tap};

/// Longer than any shutdown is doubted.
const CERTAINTY: Duration = Duration::from_millis(800);

#[test]
fn an_idle_libudt_disproves_shutdowns_that_it_did_not_send() {
    let Some(libudt) = Libudt::find() else { return };
    // Before anything was received, when there is nothing to acknowledge, and after.
    for first in [0, 50_000] {
        let here = Here::new();
        let listener = here.listen().unwrap();
        let tap = Tap::new(here.local_addr(), 0);
        let peer = libudt.connect(tap.address(), &format!("both --bytes {first} --expect 100000"));
        let accepted = Here::accept(&listener);
        let (_, digest) = recv(&accepted, Some(first)).unwrap();
        // From here on it is idle, and not deaf any more, as it is for a moment after connecting.
        tap.wait_for(Up, Kind::KeepAlive);
        accepted.set_read_timeout(Some(CERTAINTY));
        for _ in 0..3 {
            tap.slip_in(Up, &Control::Shutdown);
        }
        let waited = accepted.recv(&mut [0]).unwrap_err();
        assert!(matches!(waited, Error::TimedOut(_)), "after {first} bytes: {waited}");
        tap.wait_for(Up, Kind::Ack2);
        let sent = send(&accepted, 21, 100_000).unwrap();
        accepted.finish().unwrap();
        let report = peer.report();
        assert_eq!((report.digest("received_digest"), report.digest("sent_digest")), (sent, digest));
    }
}
