//! stdin and stdout as one end of a copy.

use std::io;
use std::os::fd::AsFd;

use farhaul_transfer::CopyJob;
use rustix::fs::{OFlags, fcntl_getfl, fstat, makedev};

use crate::exit::Fault;

/// Major and minor number of /dev/null (null(4)).
const NULL_DEVICE: (u32, u32) = (1, 3);

/// Refuses a copy from a closed stdin or to a closed stdout, which would be an empty file, or lost.
pub(super) fn check(copy: &CopyJob) -> Result<(), Fault> {
    if copy.reads_stream() && is_closed(io::stdin()) {
        return Err(Fault::usage("stdin is closed, so there is nothing to copy")
            .remedy("give the program an input; `< /dev/null` makes an empty file"));
    }
    if copy.writes_stream() && is_closed(io::stdout()) {
        return Err(Fault::usage("stdout is closed, so the copy would be lost")
            .remedy("redirect it to a file or a program; `> /dev/null` drops it"));
    }
    Ok(())
}

/// Whether nobody opened this stream. At the start of a program, the standard library opens /dev/null in the place of a closed
/// stream, for reading and writing. A shell opens it for one of them.
fn is_closed(stream: impl AsFd) -> bool {
    let is_null = fstat(&stream).is_ok_and(|stat| stat.st_rdev == makedev(NULL_DEVICE.0, NULL_DEVICE.1));
    is_null && fcntl_getfl(&stream).is_ok_and(|flags| flags.contains(OFlags::RDWR))
}
