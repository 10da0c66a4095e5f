//! The packets that a link loses: `loss = …`.

use farhaul_netem::{GilbertElliottSpec, LossSpec, Periodic};

use super::super::reader::{self, Node, Section, Value};
use super::kind_error;
use crate::error::ScenarioError;

/// Kinds of losses.
const KINDS: [&str; 5] = ["bernoulli", "gilbert-elliott", "ber", "periodic", "pattern"];

/// `1e-4`, `"0.1%"` or a table with a kind.
pub(super) fn read(section: &Section<'_>, node: &Node) -> Result<Option<LossSpec>, ScenarioError> {
    if !matches!(node.value, Value::Table(_)) {
        let share = reader::share(&node.value)
            .map_err(|what| section.error(node.line, format!("`loss` in {}: {what}", section.name())))?;
        return Ok((share > 0.0).then_some(LossSpec::Bernoulli(share)));
    }
    let mut table = Section::of(section.file(), format!("`loss` of {}", section.name()), node)?;
    let kind = table.required_text("kind")?;
    let line = table.line();
    let spec = match kind.as_str() {
        "bernoulli" => LossSpec::Bernoulli(needed(&mut table, "rate")?),
        "ber" => LossSpec::BitErrors(needed(&mut table, "rate")?),
        "gilbert-elliott" if table.has("burst") => {
            let burst = table.number("burst", 1.0..=1e9)?.unwrap_or(1.0);
            LossSpec::GilbertElliott(GilbertElliottSpec::bursts(needed(&mut table, "rate")?, burst))
        }
        "gilbert-elliott" => LossSpec::GilbertElliott(GilbertElliottSpec {
            into_bad: needed(&mut table, "into_bad")?,
            out_of_bad: needed(&mut table, "out_of_bad")?,
            loss_in_bad: table.share("loss_in_bad")?.unwrap_or(1.0),
            loss_in_good: table.share("loss_in_good")?.unwrap_or(0.0),
        }),
        "periodic" => {
            let every = table.integer("every", 1..=i64::MAX)?;
            let periodic = Periodic::every(every.ok_or_else(|| table.error(line, "this loss needs `every`"))? as u64);
            LossSpec::Periodic(match table.integer("after", 0..=i64::MAX)? {
                Some(passed) => periodic.after(passed as u64),
                None => periodic,
            })
        }
        "pattern" => {
            let line = table.line_of("packets");
            let text = table.required_text("packets")?;
            LossSpec::Pattern(text.parse().map_err(|wrong| table.error(line, format!("`packets`: {wrong}")))?)
        }
        other => return Err(kind_error(&table, other, &KINDS)),
    };
    table.finish()?;
    Ok(Some(spec))
}

/// A required share.
fn needed(table: &mut Section<'_>, key: &'static str) -> Result<f64, ScenarioError> {
    table
        .share(key)?
        .ok_or_else(|| table.error(table.line(), format!("{} needs `{key}`, a share such as 1e-4", table.name())))
}
