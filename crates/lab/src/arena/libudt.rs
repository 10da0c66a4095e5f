//! The family of receivers that answer as libudt does.
//!
//! libudt acknowledges when a packet comes 10 ms or more after the last acknowledgement. So the first packet after a pause is
//! acknowledged alone, and a sender in bursts sees its bursts in place of the path. There are no receipts. A sender that
//! knows its path needs neither, so the goals are those of the families whose paths are drawn.

use super::hosts::late_hosts;
use super::lan::lan;
use super::single::{clean, loss, shallow};
use super::sketch::Sketch;

pub(super) fn libudt(cell: &mut Sketch) {
    type Paths = fn(&mut Sketch);
    let (name, draw) = cell.draw.pick::<(&str, Paths)>(&[
        ("clean", clean),
        ("loss", loss),
        ("shallow", shallow),
        ("late-hosts", late_hosts),
        ("lan", lan),
    ]);
    draw(cell);
    cell.note = format!("{name} {}", cell.note);
    for flow in &mut cell.flows {
        flow.keys.push(("answers", "\"libudt\"".to_owned()));
    }
}
