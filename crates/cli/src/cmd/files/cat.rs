//! `cat`: files of another host to stdout, in ranges that are verified.

use std::io::{self, Write};

use clap::Args;
use farhaul_session::ReadFrom;
use farhaul_transfer::{Code, Error, RemoteFiles, RemotePlace};
use farhaul_units::ByteSize;

use super::{Visit, remote};
use crate::cmd::Context;
use crate::exit::Fault;
use crate::options::FilesOptions;
use crate::output::standard_stream::unwritable;
use crate::values::{Location, location};

/// Print files of another host, or a part of them
///
/// Each range is verified by its BLAKE3 digest before it is printed. A file that changes meanwhile is a failure. Records go to stderr.
///
///     farhaul cat far.example:run42/log | less
///     farhaul cat --offset=-1MiB far.example:run42/log        the last mebibyte
///     farhaul cat --offset 4096 --length 512 udt://host:9000/disk.img
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct CatArgs {
    /// Files
    #[arg(required = true, value_name = "PLACE", value_parser = location())]
    pub(crate) places: Vec<Location>,
    /// First byte: 4096, 1GiB; with a minus, that many bytes before the end: --offset=-1MiB
    #[arg(long, value_name = "BYTES", value_parser = offset, allow_hyphen_values = true)]
    offset: Option<Offset>,
    /// Most bytes of each file [default: all up to its end]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    length: Option<u64>,
    /// Go on if a file changes meanwhile, as a log does
    #[arg(long)]
    allow_changing: bool,
    #[command(flatten)]
    pub(crate) options: FilesOptions,
}

/// Where to begin. A type of its own for the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offset(ReadFrom);

pub(crate) fn run(args: &CatArgs, context: &Context) -> Result<(), Fault> {
    let places = remote(&args.places)?;
    let visit = Visit::begin("cat", &places, (&args.options, true), context);
    visit.each(&places, |_, files, place| print(files, place, args).map_err(explained))
}

fn print(files: &RemoteFiles, place: &RemotePlace, args: &CatArgs) -> Result<(), Error> {
    let Offset(from) = args.offset.unwrap_or(Offset(ReadFrom::Start(0)));
    let length = args.length.unwrap_or(u64::MAX);
    let mut file = match args.allow_changing {
        true => files.open_changing(&place.path, from, length),
        false => files.open_part(&place.path, from, length),
    }?;
    file.read_far_ahead()?;
    let mut stdout = io::stdout().lock();
    loop {
        let bytes = file.next_bytes()?;
        if bytes.is_empty() {
            break stdout.flush();
        }
        if let Err(error) = stdout.write_all(bytes) {
            break Err(error);
        }
    }
    .map_err(|error| unwritable(&error))
}

/// The option for files that change, where it helps.
fn explained(error: Error) -> Error {
    match error.code {
        Code::SourceChanged => error.remedy("for a log that grows, give --allow-changing"),
        _ => error,
    }
}

/// Reads a number of bytes, with or without a unit: programs know offsets to the byte.
fn bytes(text: &str) -> Result<u64, String> {
    match text.parse::<u64>() {
        Ok(bytes) => Ok(bytes),
        Err(_) => text.parse::<ByteSize>().map(|ByteSize(bytes)| bytes).map_err(|error| error.to_string()),
    }
}

fn offset(text: &str) -> Result<Offset, String> {
    let offset = match text.strip_prefix('-') {
        Some(before) => ReadFrom::End(bytes(before)?),
        None => ReadFrom::Start(bytes(text)?),
    };
    Ok(Offset(offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_count_from_the_beginning_or_from_the_end() {
        for (text, expected) in [
            ("0", ReadFrom::Start(0)),
            ("4096", ReadFrom::Start(4096)),
            ("1KiB", ReadFrom::Start(1024)),
            ("-1MB", ReadFrom::End(1_000_000)),
            ("18446744073709551615", ReadFrom::Start(u64::MAX)),
        ] {
            assert_eq!(offset(text), Ok(Offset(expected)));
        }
        assert!(["", "-", "--1", "x", "1Mbit"].iter().all(|text| offset(text).is_err()));
    }
}
