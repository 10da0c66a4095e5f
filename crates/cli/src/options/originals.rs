//! The original programs whose streams `pipe` takes and gives: those of SABUL 2.1, built with 32-bit words.

use farhaul::Protocol;

use crate::exit::Fault;

/// The protocol whose original programs have streams.
const SABUL: &str = "sabul";

/// Whether `pipe` speaks the format of original programs with this protocol.
///
/// # Errors
/// It does, and the options of the protocol are none of that format.
pub(crate) fn is_original_stream(protocol: &Protocol) -> Result<bool, Fault> {
    let name = protocol.entry().name;
    if name == SABUL && protocol.to_string() != name {
        return Err(Fault::usage(format!(
            "pipe speaks the format of the original {name}, which takes no options; copy and bench take them"
        )));
    }
    Ok(name == SABUL)
}
