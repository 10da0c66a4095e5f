//! Every controller by name: summary, source, options and constructor. Programs may add theirs
//! ([`Registration`](crate::Registration)).
//!
//! The command line, configuration files and the table in the documentation are derived from this one.

use farhaul_units::{Rate, parse_duration};

use crate::entry::added;
pub use crate::entry::{Entry, LawFamily, Revision};
use crate::model::{Bbr, C4, Union};
use crate::options::{OptionDoc, Settings, SpecError};
use crate::rate::{Fixed, Udt4, Udt2004, Udt2004Options, Udt2007, Udt2011};
use crate::selection::Row;
use crate::window::{
    Bic, Copa, Cubic, Fast, HTcp, HighSpeed, Hybla, Illinois, Ledbat, NewReno, Reno, Scalable, TARGET, Tahoe, Vegas,
    Westwood, Windowed,
};

impl Row for Entry {
    const KIND: &'static str = "congestion controller";

    fn all() -> Vec<&'static Self> {
        controllers()
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn options(&self) -> &'static [OptionDoc] {
        self.options
    }

    fn check(&self, settings: &Settings) -> Result<(), SpecError> {
        (self.construct)(settings, 0).map(drop)
    }
}

/// The built-in controllers.
pub(crate) static BUILT_IN: &[Entry] = &[
    Entry {
        name: "union",
        summary: "sends at 99 % of the path it measures; flows share by draining queues together; tolerates 2 % of random loss",
        family: LawFamily::Model,
        unsuited: "a path on which exactly a standard's law is wanted",
        source: "none",
        options: &[],
        revision: Revision::BuiltIn,
        construct: &|_settings, _seed| Ok(Box::new(Union::new())),
    },
    Entry {
        name: "udt",
        summary: "UDT4's rate control: increase by the power of ten of the spare capacity, a ninth less on loss",
        family: LawFamily::Rate,
        unsuited: "random loss: one packet in 1000 leaves a third of 1 Gbit/s at 100 ms",
        source: "udt-2007, udt-draft",
        options: &[OptionDoc::flag("native", "without effect: the name of this law before it was plain udt")],
        revision: Revision::BuiltIn,
        construct: &|_settings, seed| Ok(Box::new(Udt4::new(seed))),
    },
    Entry {
        name: "udt-2004",
        summary: "the first UDT: increase by the power of ten of the capacity, a ninth less on loss or growing delay",
        family: LawFamily::Rate,
        unsuited: "anything but comparisons with the first papers",
        source: "udt-2004",
        options: &[
            OptionDoc::optional("warnings", "whether to obey the peer's delay warnings: on or off", "on"),
            OptionDoc::optional("capacity-factor", "factor of the capacity estimate, for experiments", "1"),
            OptionDoc::optional("missed-warnings", "probability of ignoring a delay warning, for experiments", "0"),
            OptionDoc::optional(
                "false-warnings",
                "probability of treating an acknowledgement as a delay warning, for experiments",
                "0",
            ),
        ],
        revision: Revision::BuiltIn,
        construct: &|settings, seed| {
            Ok(Box::new(Udt2004::new(udt_2004_options(settings)?, settings.to_string(), seed)))
        },
    },
    Entry {
        name: "udt-2007",
        summary: "UDT of 2007 (releases 3.x): the first loss report stops sending for 10 ms and keeps the rate",
        family: LawFamily::Rate,
        unsuited: "anything but comparisons with releases 3.x",
        source: "udt-2007, udt-draft",
        options: &[OptionDoc::flag(
            "release-3.3",
            "as release 3.3: slow start ends at the speed of the bottleneck, further reports cut less often",
        )],
        revision: Revision::BuiltIn,
        construct: &|settings, seed| {
            let release = settings.flag("release-3.3");
            Ok(Box::new(if release { Udt2007::of_release(seed) } else { Udt2007::new(seed) }))
        },
    },
    Entry {
        name: "udt-2011",
        summary: "UDT4's law with the modification of 2011: decrease by RTT, window by backlog",
        family: LawFamily::Rate,
        unsuited: "paths whose RTT varies without a queue: it takes that for one",
        source: "udt-2011",
        options: &[
            OptionDoc::optional("only", "a single rule: rate (the decrease) or window", "both"),
            OptionDoc::optional("alpha", "backlog above which the window stays unchanged, packets", "1.5"),
            OptionDoc::optional("beta", "backlog above which the window shrinks, packets", "3.5"),
            OptionDoc::optional("interval", "time that the window covers in addition to the RTT", "10ms"),
            OptionDoc::optional(
                "speed",
                "rate that sizes the window: arrival (receiver's report) or delivery (sender's measurement)",
                "arrival",
            ),
        ],
        revision: Revision::BuiltIn,
        construct: &|settings, seed| Ok(Box::new(Udt2011::from_settings(settings, seed)?)),
    },
    Entry {
        name: "fixed",
        summary: "a fixed rate without reaction to loss, for dedicated channels",
        family: LawFamily::Rate,
        unsuited: "paths that others share: it never slows down",
        source: "none",
        options: &[OptionDoc::required("rate", "bits per second on the wire, headers included", "500mbit")],
        revision: Revision::BuiltIn,
        construct: &|settings, _seed| {
            let rate: Rate = settings.required("rate")?;
            if rate == Rate::ZERO {
                return Err(settings.out_of_range("rate", "above zero"));
            }
            Ok(Box::new(Fixed::new(rate, settings.to_string())))
        },
    },
    Entry {
        name: "bbr",
        summary: "BBRv3: a model of the path by its largest delivery rate and least RTT; probes every two to three seconds",
        family: LawFamily::Model,
        unsuited: "short queues beside laws that react to loss: it may take most of the path",
        source: "bbr-draft",
        options: &[],
        revision: Revision::BuiltIn,
        construct: &|_settings, seed| Ok(Box::new(Bbr::new(seed))),
    },
    Entry {
        name: "c4",
        summary: "C4: the rate that was measured, until delay or losses refute it; probes by a sixteenth every four RTTs",
        family: LawFamily::Model,
        unsuited: "paths shared with reno or cubic, which get a tenth of 100 Mbit/s at 20 ms beside it",
        source: "c4-draft",
        options: &[],
        revision: Revision::BuiltIn,
        construct: &|_settings, _seed| Ok(Box::new(C4::new())),
    },
    Entry {
        name: "reno",
        summary: "TCP's standard window: slow start, congestion avoidance, half the window on loss",
        family: LawFamily::Loss,
        unsuited: "long fast paths: 1 Gbit/s at 100 ms needs fewer losses than one packet in 40 million",
        source: "rfc5681",
        options: &[],
        revision: Revision::BuiltIn,
        construct: &|settings, _seed| Ok(Box::new(Windowed::new(settings.to_string(), Reno))),
    },
    Entry {
        name: "newreno",
        summary: "TCP's standard window, whose recovery ends without a burst",
        family: LawFamily::Loss,
        unsuited: "long fast paths, as reno",
        source: "rfc6582",
        options: &[],
        revision: Revision::BuiltIn,
        construct: &|settings, _seed| Ok(Box::new(Windowed::new(settings.to_string(), NewReno))),
    },
    Entry {
        name: "cubic",
        summary: "TCP's window on most systems: cubic growth, at least Reno's, and 7/10 of the window on loss",
        family: LawFamily::Loss,
        unsuited: "random loss: one packet in 10 000 leaves 2 % of 1 Gbit/s at 100 ms",
        source: "rfc9438",
        options: &[],
        revision: Revision::BuiltIn,
        construct: &|settings, _seed| Ok(Box::new(Windowed::new(settings.to_string(), Cubic::new()))),
    },
    Entry {
        name: "highspeed",
        summary: "HighSpeed TCP: grows faster and decreases less the larger the window is",
        family: LawFamily::Loss,
        unsuited: "long paths shared with reno, and flows of different RTTs: the one with the larger window takes more and more",
        source: "rfc3649",
        options: &[],
        revision: Revision::BuiltIn,
        construct: &|settings, _seed| Ok(Box::new(Windowed::new(settings.to_string(), HighSpeed))),
    },
    Entry {
        name: "scalable",
        summary: "Scalable TCP: a hundredth of a packet more for each acknowledged one, an eighth less on loss",
        family: LawFamily::Loss,
        unsuited: "several flows: their shares stay as unequal as they began",
        source: "kelly-2003",
        options: &[],
        revision: Revision::BuiltIn,
        construct: &|settings, _seed| Ok(Box::new(Windowed::new(settings.to_string(), Scalable))),
    },
    Entry {
        name: "htcp",
        summary: "H-TCP: grows with the time since the last loss, and keeps what the path carried without its queue",
        family: LawFamily::Loss,
        unsuited: "random loss: below one second between losses it is reno",
        source: "htcp",
        options: &[],
        revision: Revision::BuiltIn,
        construct: &|settings, _seed| Ok(Box::new(Windowed::new(settings.to_string(), HTcp::new()))),
    },
    Entry {
        name: "bic",
        summary: "BIC: a binary search for the window at which the last loss came",
        family: LawFamily::Loss,
        unsuited: "short paths shared with reno, where it takes most",
        source: "bic",
        options: &[],
        revision: Revision::BuiltIn,
        construct: &|settings, _seed| Ok(Box::new(Windowed::new(settings.to_string(), Bic::new()))),
    },
    Entry {
        name: "westwood",
        summary: "TCP Westwood+: a loss leaves what the path has carried; for random loss",
        family: LawFamily::Loss,
        unsuited: "paths whose least RTT rises: it then keeps too small a window",
        source: "westwood-plus",
        options: &[],
        revision: Revision::BuiltIn,
        construct: &|settings, _seed| Ok(Box::new(Windowed::new(settings.to_string(), Westwood::new()))),
    },
    Entry {
        name: "illinois",
        summary: "TCP-Illinois: loss says when to decrease, delay says by how much",
        family: LawFamily::Loss,
        unsuited: "paths whose delay varies without a queue: it is then as slow as reno",
        source: "illinois",
        options: &[],
        revision: Revision::BuiltIn,
        construct: &|settings, _seed| Ok(Box::new(Windowed::new(settings.to_string(), Illinois::new()))),
    },
    Entry {
        name: "hybla",
        summary: "TCP Hybla: grows over a satellite as over an RTT of 25 ms",
        family: LawFamily::Loss,
        unsuited: "short queues: over 100 ms it sends 16 packets more in each RTT",
        source: "hybla",
        options: &[],
        revision: Revision::BuiltIn,
        construct: &|settings, _seed| Ok(Box::new(Windowed::new(settings.to_string(), Hybla))),
    },
    Entry {
        name: "vegas",
        summary: "TCP Vegas: keeps two to four packets in the queue, told by the RTT",
        family: LawFamily::Delay,
        unsuited: "paths shared with laws that fill the queue, to which it gives way",
        source: "vegas",
        options: &[
            OptionDoc::optional("alpha", "packets in the queue below which the window grows", "2"),
            OptionDoc::optional("beta", "packets in the queue above which the window shrinks", "4"),
        ],
        revision: Revision::BuiltIn,
        construct: &|settings, _seed| {
            let (alpha, beta) = (packets(settings, "alpha", Vegas::ALPHA)?, packets(settings, "beta", Vegas::BETA)?);
            if alpha > beta {
                return Err(settings.out_of_range("beta", "at least alpha"));
            }
            Ok(Box::new(Windowed::new(settings.to_string(), Vegas::new(alpha, beta))))
        },
    },
    Entry {
        name: "fast",
        summary: "FAST TCP: keeps a number of packets in the queue, and moves there without oscillation",
        family: LawFamily::Delay,
        unsuited: "slow paths, and many flows on one: each keeps alpha packets in the queue",
        source: "fast-tcp",
        options: &[OptionDoc::optional("alpha", "packets of a flow in the queue", "200")],
        revision: Revision::BuiltIn,
        construct: &|settings, _seed| {
            let alpha = packets(settings, "alpha", Fast::ALPHA)?;
            Ok(Box::new(Windowed::new(settings.to_string(), Fast::new(alpha))))
        },
    },
    Entry {
        name: "copa",
        summary: "Copa: a rate in inverse proportion to the queueing delay, which competes where others fill the queue",
        family: LawFamily::Delay,
        unsuited: "paths whose delay varies without a queue: it takes that for one",
        source: "copa",
        options: &[],
        revision: Revision::BuiltIn,
        construct: &|settings, _seed| Ok(Box::new(Windowed::new(settings.to_string(), Copa::new()))),
    },
    Entry {
        name: "ledbat",
        summary: "LEDBAT++: a scavenger, which gives way to everything else as a queue begins to grow",
        family: LawFamily::Delay,
        unsuited: "data that is wanted soon",
        source: "ledbat-plus-plus, rfc6817",
        options: &[OptionDoc::optional("target", "queueing delay at which it stops to grow", "2ms")],
        revision: Revision::BuiltIn,
        construct: &|settings, _seed| {
            let target = settings.optional("target", parse_duration)?.unwrap_or(TARGET);
            if target.is_zero() {
                return Err(settings.out_of_range("target", "above zero"));
            }
            Ok(Box::new(Ledbat::new(target, settings.to_string())))
        },
    },
    Entry {
        name: "tahoe",
        summary: "TCP before fast recovery: every loss restarts slow start",
        family: LawFamily::Loss,
        unsuited: "anything but comparisons: each loss costs several RTTs",
        source: "jacobson-1988",
        options: &[],
        revision: Revision::BuiltIn,
        construct: &|settings, _seed| Ok(Box::new(Windowed::new(settings.to_string(), Tahoe))),
    },
];

/// Every controller, the default one first and those that the program has added last. Those that it may replace
/// ([`Spec::register`](crate::Spec::register)) are not here.
pub fn controllers() -> Vec<&'static Entry> {
    BUILT_IN.iter().chain(added().entries.iter().copied()).collect()
}

/// A number of packets in a queue.
fn packets(settings: &Settings, name: &'static str, default: f64) -> Result<f64, SpecError> {
    let packets: f64 = settings.optional(name, str::parse)?.unwrap_or(default);
    if (1.0..=1e6).contains(&packets) { Ok(packets) } else { Err(settings.out_of_range(name, "from 1 to 1000000")) }
}

fn udt_2004_options(settings: &Settings) -> Result<Udt2004Options, SpecError> {
    let probability = |name: &'static str| {
        let value: f64 = settings.optional(name, str::parse)?.unwrap_or(0.0);
        let allowed = (0.0..=1.0).contains(&value);
        if allowed { Ok(value) } else { Err(settings.out_of_range(name, "a probability from 0 to 1")) }
    };
    let capacity_factor: f64 = settings.optional("capacity-factor", str::parse)?.unwrap_or(1.0);
    if !(1e-6..=1e6).contains(&capacity_factor) {
        return Err(settings.out_of_range("capacity-factor", "from 0.000001 to 1000000"));
    }
    Ok(Udt2004Options {
        warnings: settings.switch("warnings")?.unwrap_or(true),
        capacity_factor,
        missed_warnings: probability("missed-warnings")?,
        false_warnings: probability("false-warnings")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;

    #[test]
    fn names_are_unique_and_lines_are_single() {
        for (index, entry) in BUILT_IN.iter().enumerate() {
            assert!(BUILT_IN[..index].iter().all(|other| other.name != entry.name), "{}", entry.name);
            assert!(!entry.summary.contains('\n') && !entry.summary.is_empty());
        }
    }

    #[test]
    fn every_controller_has_the_name_of_its_spec() {
        for text in [
            "union",
            "udt",
            "udt-2004",
            "udt-2004:capacity-factor=5",
            "udt-2007",
            "udt-2007:release-3.3",
            "udt-2011",
            "udt-2011:only=rate",
            "fixed:rate=500mbit",
            "bbr",
            "c4",
            "reno",
            "newreno",
            "cubic",
            "highspeed",
            "scalable",
            "htcp",
            "bic",
            "westwood",
            "illinois",
            "hybla",
            "vegas",
            "vegas:alpha=1,beta=3",
            "copa",
            "fast",
            "fast:alpha=20",
            "ledbat",
            "ledbat:target=5ms",
            "tahoe",
        ] {
            let spec: Spec = text.parse().unwrap();
            assert_eq!(spec.build(1).name(), text);
        }
    }

    #[test]
    fn every_source_is_a_key_of_the_bibliography() {
        let bibliography = include_str!("../../../docs/papers/papers.bib");
        for key in BUILT_IN.iter().flat_map(|entry| entry.source.split(", ")).filter(|key| *key != "none") {
            assert!(bibliography.contains(&format!("{{{key},")), "{key}");
        }
    }
}
