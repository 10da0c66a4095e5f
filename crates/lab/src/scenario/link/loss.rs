//! The packets that a link loses: `loss = { kind = … }`.

use farhaul_netem::{GilbertElliottSpec, LossSpec, ParsePatternError, Pattern, Periodic};
use serde::Deserialize;

use super::super::reader::{Number, Section, Share, Whole};
use crate::error::ScenarioError;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum LossKind {
    Bernoulli,
    GilbertElliott,
    Ber,
    Periodic,
    Pattern,
}

/// The packets that are lost: `x`, and those that pass: `.`.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Packets(Pattern);

impl TryFrom<String> for Packets {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map(Self).map_err(|wrong: ParsePatternError| wrong.to_string())
    }
}

/// A table with a kind.
pub(super) fn read(mut table: Section<'_>) -> Result<LossSpec, ScenarioError> {
    let share = |table: &mut Section<'_>, key| table.needed(key, &format!("{key} = 1e-4")).map(|Share(share)| share);
    let spec = match table.needed("kind", "{ kind = \"bernoulli\", rate = 1e-4 }")? {
        LossKind::Bernoulli => LossSpec::Bernoulli(share(&mut table, "rate")?),
        LossKind::Ber => LossSpec::BitErrors(share(&mut table, "rate")?),
        LossKind::GilbertElliott => LossSpec::GilbertElliott(match table.value("burst")? {
            Some(Number::<1, 1_000_000_000>(burst)) => GilbertElliottSpec::bursts(share(&mut table, "rate")?, burst),
            None => GilbertElliottSpec {
                into_bad: share(&mut table, "into_bad")?,
                out_of_bad: share(&mut table, "out_of_bad")?,
                loss_in_bad: table.value("loss_in_bad")?.map_or(1.0, |Share(share)| share),
                loss_in_good: table.value("loss_in_good")?.map_or(0.0, |Share(share)| share),
            },
        }),
        LossKind::Periodic => {
            let Whole::<1, { i64::MAX }>(every) = table.needed("every", "{ kind = \"periodic\", every = 1000 }")?;
            let periodic = Periodic::every(every as u64);
            LossSpec::Periodic(match table.value("after")? {
                Some(Whole::<0, { i64::MAX }>(passed)) => periodic.after(passed as u64),
                None => periodic,
            })
        }
        LossKind::Pattern => {
            let Packets(pattern) = table.needed("packets", "{ kind = \"pattern\", packets = \"..x.\" }")?;
            LossSpec::Pattern(pattern)
        }
    };
    table.finish()?;
    Ok(spec)
}
